"""Packages that only one function needs are extras of ours: who lacks one reads what to install, and everything else works."""

from __future__ import annotations


def install_line(extra: str) -> str:
    """The command that brings an extra. In quotes, because some shells take brackets for a pattern."""
    return f'pip install "headlight-attention[{extra}]"'


def lacking(what: str, module: str, extra: str) -> str:
    """The sentence for who asks for what needs a module that is not here."""
    return f"{what} needs {module}, which is not installed. It comes with: {install_line(extra)}"
