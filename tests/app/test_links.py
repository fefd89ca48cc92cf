"""A notice is said once; one that a script said which was broken off is said again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import streamlit as st

from app.session import notices


@pytest.fixture
def session(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    session: dict[str, Any] = {}
    monkeypatch.setattr(st, "session_state", session)
    return session


def script(does: Callable[[], Any], ends: bool = True) -> Any:
    """One run of the script, to its end or broken off before."""
    notices.begin()
    found = does()
    if ends:
        notices.end()
    return found


@pytest.mark.usefixtures("session")
def test_a_notice_is_said_until_a_script_that_said_it_came_to_its_end():
    def says(*more: str) -> list[str]:
        notices.add(*more)
        return notices.take() + notices.take()

    assert script(lambda: says("one"), ends=False) == ["one"], "once in a script"
    assert script(lambda: says("two", "two"), ends=False) == ["one", "two"]
    assert script(lambda: says("two")) == ["one", "two"]
    assert script(says) == []


@pytest.mark.usefixtures("session")
def test_a_notice_of_a_later_part_of_the_script_waits_for_the_next_room():
    def says() -> list[str]:
        found = notices.take()
        notices.add("one", "two")
        return found

    notices.add("one")
    assert notices.waiting() == ["one"]
    assert script(says) == ["one"]
    assert notices.waiting() == ["one", "two"], "what was said and what comes after it are two"
    assert script(notices.take, ends=False) == script(notices.take) == ["one", "two"]
    assert script(notices.take) == []
