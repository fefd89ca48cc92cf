"""A script that the visitor's next message breaks off, wherever that is, loses nothing that it had begun to do with."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest
import streamlit as st

from app.kit import widgets
from app.session import answer, chosen, notices
from app.session.session_state import FILLED, WRITING, Side
from app.shell import request
from core.run.request import Request
from tests.app.visits import Address

ASKED = Request("storyteller", ("Once upon a time",))
LONGEST = 200  # looks into the session that a part of a script takes at most


class BrokenOff(BaseException):
    """Streamlit raises this when a script looks into its session and another message has come."""


class Fragile(dict[str, Any]):
    """A session that breaks its script off at the look after so many."""

    left = LONGEST

    def look(self) -> None:
        self.left -= 1
        if self.left < 0:
            raise BrokenOff

    def __getitem__(self, name: str) -> Any:
        self.look()
        return super().__getitem__(name)

    def __setitem__(self, name: str, value: Any) -> None:
        self.look()
        super().__setitem__(name, value)

    def get(self, name: str, otherwise: Any = None) -> Any:
        self.look()
        return super().get(name, otherwise)

    def pop(self, name: str, *otherwise: Any) -> Any:
        self.look()
        return super().pop(name, *otherwise)


@pytest.fixture
def sessions(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[], None], Callable[[], object]], Iterator[int]]:
    """sessions(before, does): a session for each place where `does` can be broken off, after it was; and where."""

    def every(before: Callable[[], None], does: Callable[[], object]) -> Iterator[int]:
        for n in range(LONGEST):
            session = Fragile()
            monkeypatch.setattr(st, "session_state", session)
            before()
            session.left = n
            try:
                does()
            except BrokenOff:
                session.left = LONGEST
                yield n
            else:
                assert n > 1, "it looks into the session"
                return
        raise AssertionError("it never ends")

    return every


def test_a_sentence_that_waits_is_said(sessions: Any):
    def says() -> list[str]:
        notices.begin()
        notices.add("of this script")
        return notices.take()

    for n in sessions(lambda: notices.add("one"), says):
        assert says() == ["one", "of this script"], n
        notices.end()
        notices.begin()
        assert notices.take() == [], n


def test_what_a_link_asks_in_vain_is_said(sessions: Any, monkeypatch: pytest.MonkeyPatch):
    panel = widgets.Panel("part", (widgets.whole("layer", (0, 5), "0"), widgets.whole("head", (0, 3), "0")))

    def says() -> list[str]:
        notices.begin()
        notes = panel.fill(None)
        return panel.keep(panel.said(), notes)

    def link() -> None:
        monkeypatch.setattr(st, "query_params", Address(layer="99", head="2"))
        chosen.ARRIVALS.put(1)

    for n in sessions(link, says):
        (said,) = says()
        assert "“99”" in said and panel.said() == {"layer": "0", "head": "2"}, n
        assert says() == [said] and panel.keep({"layer": "1"}, []) == [], "until a person chooses"


def test_a_run_that_was_cancelled_is_cancelled_or_still_waited_for(sessions: Any):
    waiting: Any = SimpleNamespace(request=ASKED, cancel=lambda: None)
    side = Side("")
    for n in sessions(lambda: side.waiting.put(waiting), answer.stop):
        assert side.stopped.get() == ASKED or side.waiting.get() is waiting, n


def test_what_a_model_wrote_is_in_its_box_or_still_to_be_put_there(sessions: Any, monkeypatch: pytest.MonkeyPatch):
    written: Any = SimpleNamespace(target=None, source=SimpleNamespace(text="Once upon a time there was"))
    monkeypatch.setattr(st, "rerun", lambda: None)
    for n in sessions(lambda: WRITING.put(ASKED), lambda: request.was_written(ASKED, written)):
        filled = FILLED.get()
        assert WRITING.get() == ASKED or filled == ("storyteller", {"text": "Once upon a time there was"}), n
