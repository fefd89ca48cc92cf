"""What a link asks for, told apart from what it asked before."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from app.session import at_end
from app.session.session_state import Key

T = TypeVar("T")


def newly_asked(of: str, asked: Mapping[str, T]) -> dict[str, T]:
    """What a link asks of a part of the page that it did not ask in the script before: a link was opened, or gone back to.

    `of` names the part. So a choice that does not exist is reported each time that a link asks for it, and not again at every rerun;
    a script that was broken off has reported nothing.
    """
    key: Key[dict[str, T]] = Key(f"{of}_asked")
    before = key.get() or {}
    at_end.put(key, dict(asked))
    return {name: said for name, said in asked.items() if said != before.get(name)}
