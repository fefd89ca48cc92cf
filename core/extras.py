"""Optional dependencies. If one is missing, the error names the extra to install; everything else works."""

from __future__ import annotations


def install_line(extra: str) -> str:
    """The command that installs an extra, in quotes because shells expand brackets."""
    return f'pip install "headlight-attention[{extra}]"'


def lacking(what: str, module: str, extra: str) -> str:
    """Error message for a missing module."""
    return f"{what} needs {module}, which is not installed. It comes with: {install_line(extra)}"
