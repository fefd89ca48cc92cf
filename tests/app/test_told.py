"""What the browser tells counts, whatever is on its way meanwhile: reports and addresses that come late, one order after another."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import SimpleNamespace
from typing import Any

import pytest

from app.attention import component
from app.attention.picture import Picture
from app.session import room
from app.transport import messages

LABELS = {
    "first": ["[CLS]", "The", "cat", "saw", "it", "."],
    "second": ["[CLS]", "It", "was", "it", "."],
    "third": ["[CLS]", "No", "."],
}


class Params(dict[str, str]):
    """The address, as a message of the browser says it and as a script changes it."""

    def update(self, changed: Mapping[str, Any]) -> None:  # type: ignore[override]
        for name, value in changed.items():
            if value == []:
                self.pop(name, None)
            else:
                self[name] = value


class Visit:
    """A visit to Explore without a browser: scripts run one after the other, each with what its message said."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.session: dict[str, Any] = {room.ARRIVALS: 1}
        self.sent: list[dict[str, Any]] = []
        self.st = SimpleNamespace(session_state=self.session, query_params=Params())
        monkeypatch.setattr(component, "st", self.st)
        self.mounts = component.Mounts(
            picture=lambda **given: self.sent.append(messages.unpack(given["data"])[0]),
            underway=print,
            opens=lambda: None,
        )

    def script(self, run: str, address: str = "", told: dict[str, Any] | None = None, *, back: bool = False) -> str:
        """Run the script for a message with this address, and what was told last; the address that it writes.

        Addresses are written as "head=2&hide=0".
        """
        self.st.query_params = Params(pair.split("=") for pair in address.split("&") if pair)
        if told is not None:
            self.session["explore"] = {"place": told}
        self.session[room.ARRIVALS] += back
        self.notes = component.explore(self.mounts, None, Picture(header(run), b""), {})  # type: ignore[arg-type]
        return "&".join(f"{name}={value}" for name, value in self.st.query_params.items())

    @property
    def opened(self) -> dict[str, Any]:
        """The place and the options with which the last picture was sent."""
        return self.sent[-1]["opened"] | self.sent[-1]["options"]


def header(run: str) -> dict[str, Any]:
    labels = LABELS[run]
    of = {"query": "source", "key": "source", "n_query": len(labels), "n_key": len(labels)}
    site = {"id": "encoder", "records": [0, 1], "heads": 4} | of
    about = {"key": run, "model": "Small", "model_id": "small", "whole": True}
    return about | {"tokens": {"source": labels, "target": None}, "sites": [site]}


def told(run: str, number: int, head: int = 1, query: int | None = 4, **options: str) -> dict[str, Any]:
    """A report of the browser: where the visitor is in this picture."""
    return {"key": run, "told": number, "site": "encoder", "layer": 1, "head": head, "query": query, "options": options}


@pytest.fixture
def visit(monkeypatch: pytest.MonkeyPatch) -> Iterator[Visit]:
    visit = Visit(monkeypatch)
    assert visit.script("first") == ""
    assert (visit.opened["layer"], visit.opened["head"], visit.opened["query"]) == (1, 1, 4)
    yield visit


def test_what_is_told_is_written_and_the_picture_sent_again_as_it_was(visit: Visit):
    assert visit.script("first", told=told("first", 1, head=2, hide="0")) == "head=2&hide=0"
    assert visit.sent[0] == visit.sent[1]  # the browser has it on the screen already


def test_a_sentence_whose_message_left_before_the_new_address_came_keeps_what_was_told(visit: Visit):
    """Enter, right after a token was hidden: the message with the sentence still has the address of before."""
    hidden = told("first", 1, head=2, hide="0")
    assert visit.script("first", told=hidden) == "head=2&hide=0"
    assert visit.script("second", address="", told=hidden) == "head=2&hide=0"
    assert (visit.opened["head"], visit.opened["hide"]) == (2, [0])
    assert visit.notes == []


def test_so_does_one_that_left_before_the_second_of_two_addresses_came(visit: Visit):
    visit.script("first", told=told("first", 1, head=2))
    last = told("first", 2, head=3)
    visit.script("first", address="", told=last)
    for late in ("", "head=2"):
        visit.script("first", address=late, told=last)
        assert visit.st.query_params == {"head": "3"} and visit.session["explore_place"]["place"].head == 3
    visit.script("second", address="head=2", told=last)
    assert visit.opened["head"] == 3


def test_who_goes_back_to_such_an_address_gets_what_it_says(visit: Visit):
    chosen = told("first", 1, head=2, hide="0")
    visit.script("first", told=chosen)
    assert visit.script("first", address="", told=chosen, back=True) == ""
    assert (visit.opened["head"], visit.opened["hide"]) == (1, [])
    assert visit.script("first", address="head=2&hide=0", told=chosen, back=True) == "head=2&hide=0"
    assert (visit.opened["head"], visit.opened["hide"]) == (2, [0])


def test_an_address_that_the_browser_has_said_since_is_news_when_it_changes(visit: Visit):
    """Another room may change it, and a hand."""
    chosen = told("first", 1, head=2)
    visit.script("first", told=chosen)
    visit.script("first", address="head=2", told=chosen)
    visit.script("first", address="", told=chosen)
    assert visit.opened["head"] == 1


def test_what_is_told_of_the_picture_before_when_the_next_is_on_its_way_is_carried_over(visit: Visit):
    visit.script("second")
    assert visit.opened["hide"] == [] and visit.opened["query"] == 3  # the same word
    stamp = visit.sent[-1]["stamp"]
    assert visit.script("second", told=told("first", 1, head=2, query=1, hide="0", show="lines"))
    assert visit.sent[-1]["stamp"] == stamp + 1 and visit.sent[-1]["told"] == 1
    opened = visit.opened
    assert (opened["head"], opened["hide"], opened["show"]) == (2, [0], "lines")
    assert opened["query"] == 3  # "The" is not there: where the picture opens
    visit.script("second", told=told("second", 2, head=3))
    assert visit.sent[-1]["stamp"] == stamp + 1 and visit.session["explore_place"]["place"].head == 3


def test_what_is_told_of_it_when_the_visitor_has_gone_back_changes_only_the_manner(visit: Visit):
    visit.script("second", address="text=2")
    visit.script("second", told=told("second", 1, head=2, query=3))
    visit.script("first", address="", told=told("second", 1, head=2, query=3), back=True)
    assert visit.opened["head"] == 1
    visit.script("first", told=told("second", 2, head=3, query=3, hide="0", scale="log"))
    assert (visit.opened["head"], visit.opened["hide"], visit.opened["scale"]) == (1, [], "log")
    assert visit.st.query_params == {"scale": "log"}


def test_what_is_told_of_a_picture_of_long_ago_changes_nothing(visit: Visit):
    visit.script("second")
    visit.script("third")
    before = visit.opened
    visit.script("third", told=told("first", 1, head=2, hide="0"))
    assert visit.opened == before and visit.st.query_params == {}


def test_the_browser_is_told_how_much_of_it_is_known_also_after_it_began_to_count_anew(visit: Visit):
    visit.script("first", told=told("first", 7, head=2))
    visit.session.pop("explore")  # another room was on the screen
    visit.script("second", address="head=2")
    assert visit.sent[-1]["told"] == 7


class Broken(Exception):
    pass


def test_a_script_that_is_broken_off_while_it_writes_the_address_leaves_nothing_half_done(visit: Visit, monkeypatch):
    """Streamlit ends a script for a newer message before the address is sent."""
    chosen = told("first", 1, head=2, query=None, hide="0")

    def broken(self: Params, changed: Mapping[str, Any]) -> None:
        raise Broken

    with monkeypatch.context() as patch, pytest.raises(Broken):
        patch.setattr(Params, "update", broken)
        visit.script("first", told=chosen)
    visit.script("second", address="", told=chosen)
    assert (visit.opened["head"], visit.opened["query"], visit.opened["hide"]) == (2, None, [0])
    assert visit.st.query_params == {"head": "2", "query": "none", "hide": "0"} and visit.notes == []
