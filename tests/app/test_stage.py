"""What is chosen in a room, the link and the browser's reports agree, in whichever order they come."""

from __future__ import annotations

import gc
from collections.abc import Mapping
from typing import Any

import pytest
import streamlit as st

from app.classroom import pictures
from app.kit import params as kit_params
from app.kit import stage as kit_stage
from app.kit.params import Param, number, one_of, whole
from app.kit.stage import Stage, entered, follow
from app.session import chosen
from app.transport import messages
from core.errors import Unknown
from tests.app.visits import Address

PARAMS = (
    one_of("show", "map", "lines"),
    whole("layer", "0", lambda shown: shown["layers"]),
    whole("key", "", lambda shown: shown["tokens"], empty=True),
    number("divide", 4, 0.5, 16),
)
SHOWN = {"layers": 6, "tokens": 16}


class Visit:
    """A visitor's session and address, without a browser."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.session: dict[str, Any] = {}
        self.address = Address()
        monkeypatch.setattr(st, "session_state", self.session)
        monkeypatch.setattr(st, "query_params", self.address)
        monkeypatch.setattr(chosen, "is_history_navigation", lambda: False)
        self.stage = Stage("toy", PARAMS, lambda **_: None, of_run=False)
        self.number = 0

    def run(self, shown: Any = SHOWN) -> kit_stage.Followed:
        chosen.note_arrival()
        chosen.enter("toy", lambda _: False)
        entered("toy")
        return follow(self.stage, shown)

    def choose(self, **said: str) -> None:
        self.number += 1
        self.session["toy_stage"] = {"chosen": {"number": self.number, "said": said}}


@pytest.fixture
def visit(monkeypatch: pytest.MonkeyPatch) -> Visit:
    return Visit(monkeypatch)


def test_a_link_decides_when_a_visit_begins(visit: Visit) -> None:
    visit.address |= {"layer": "3", "show": "map", "other": "x"}
    found = visit.run()
    assert found.values == {"show": "map", "layer": "3", "key": "", "divide": "4"}
    assert (found.stamp, found.notes) == (1, [])


@pytest.mark.parametrize(
    "name, text",
    [("show", "pie"), ("layer", "6"), ("layer", "-1"), ("layer", "9" * 5000), ("divide", "nan"), ("key", "x")],
)
def test_what_a_link_asks_in_vain_gets_a_sentence_with_what_is_possible(visit: Visit, name: str, text: str) -> None:
    visit.address[name] = text
    found = visit.run()
    assert found.values == kit_params.opening(PARAMS, SHOWN)
    (note,) = found.notes
    assert name in note and text[:8] in note and len(note) < 200
    assert visit.run().notes == [note], "it stays until something else is chosen"
    visit.choose(layer="1")
    assert visit.run().notes == []


def test_what_the_browser_reports_is_shown_with_nothing_in_it_that_is_not_ours(visit: Visit) -> None:
    visit.run()
    visit.choose(layer="2", show="lines", key="", divide="4", foreign="x")
    found = visit.run()
    assert found.values == {"show": "lines", "layer": "2", "key": "", "divide": "4"}
    assert found.reported == 1 and found.stamp == 1


@pytest.mark.parametrize(
    "said", [None, "x", {"said": 3}, {"number": "x", "said": {"layer": 1}}, {"said": {"layer": "9"}}]
)
def test_a_report_that_says_nothing_readable_changes_nothing(visit: Visit, said: Any) -> None:
    before = visit.run().values
    visit.session["toy_stage"] = {"chosen": said}
    assert visit.run().values == before


def test_a_room_has_no_name_of_the_request() -> None:
    with pytest.raises(ValueError, match="step"):
        one_of("step", "a")


def test_numbers_are_written_one_way() -> None:
    param: Param = PARAMS[3]
    assert param.read("4.0", SHOWN) == "4" and param.read("0.50", SHOWN) == "0.5"


# a room that others see


def drawn(visit: Visit, mounted: list[Any], header: Mapping[str, Any], shown: Any = SHOWN) -> dict[str, Any]:
    """What a followed stage sends of itself for a class."""
    on = Stage("toy", PARAMS, lambda **said: mounted.append(said["data"]), is_followed=True, of_run=False)
    kit_stage.draw(on, visit.run(shown), header, b"1234")
    return messages.unpack(mounted[-1])[0]["chosen"]["follow"]


def test_a_room_is_kept_for_others_once_as_nobody_chose_and_goes_with_who_shows_it(visit: Visit):
    mounted: list[Any] = []
    visit.address["layer"] = "2"
    told = drawn(visit, mounted, {"title": "one"})
    found = kit_stage.drawn(told["drawn"])
    assert found is not None and found.room == told["room"] == "toy"
    header, body = messages.unpack(found.message)
    assert (header["title"], header["chosen"]["values"]["layer"], header["cover"], body) == ("one", "0", None, b"1234")
    assert told["base"] == header["chosen"]["values"]
    visit.choose(show="lines", layer="3")
    assert drawn(visit, mounted, {"title": "one"}) == told and kit_stage.drawn(told["drawn"]) is found, "one copy"
    said = {"layer": "5", "key": "99", "show": "map", "<b>": "x"}
    assert found.chosen(said) == {"layer": "5"}, "nothing that the room does not have, and nothing twice"
    digest = told["drawn"]
    del found
    for title in ("two", "three"):
        assert drawn(visit, mounted, {"title": title})["drawn"] != digest
    gc.collect()
    assert kit_stage.drawn(digest) is None


def test_what_is_kept_for_others_is_bounded_however_many_have_a_room_on_the_screen(visit: Visit, monkeypatch: Any):
    mounted: list[Any] = []
    gc.collect()
    told = drawn(visit, mounted, {"title": "one"})
    first = kit_stage.drawn(told["drawn"])
    assert first is not None
    monkeypatch.setattr(kit_stage, "MOST_KEPT", 2 * first.nbytes + 50)
    second, third = (drawn(visit, mounted, {"title": title})["drawn"] for title in ("two", "three"))
    assert kit_stage.drawn(told["drawn"]) is None and first.nbytes == 0, "the oldest, though somebody holds it"
    with pytest.raises(Unknown):
        _ = first.message
    kept = kit_stage.drawn(second)  # a class asks for it
    drawn(visit, mounted, {"title": "four"})
    assert kit_stage.drawn(second) is kept and kit_stage.drawn(third) is None, "what a class shows stays"
    assert drawn(visit, mounted, {"title": "one"}) == told and kit_stage.drawn(told["drawn"]) not in (None, first)


def test_what_is_large_in_a_room_is_written_once_for_the_visitor_and_for_others(visit: Visit, monkeypatch: Any):
    written: list[str] = []
    plain = messages.written
    monkeypatch.setattr(messages, "written", lambda header: written.extend(header) or plain(header))
    mounted: list[Any] = []
    told = drawn(visit, mounted, {"title": "one", "cover": "of the room's own"})
    assert written.count("title") == 1
    own, others = messages.unpack(mounted[0]), messages.unpack(kit_stage.drawn(told["drawn"]).message)  # pyright: ignore
    assert own[1] == others[1] == b"1234" and own[0]["title"] == others[0]["title"] == "one"
    assert own[0]["cover"] is None and others[0]["cover"] is None, "what the stage says goes over it"
    assert messages.unpack(messages.assembled(messages.written({}), b"x", {"a": 1})) == ({"a": 1}, b"x")


def test_a_browser_is_told_how_much_of_what_is_chosen_travels_beside_a_room(visit: Visit):
    assert drawn(visit, [], {})["most"] == kit_stage.MOST_BESIDE < pictures.MOST_CHOSEN


def test_what_is_too_much_for_a_message_comes_with_the_room(visit: Visit):
    params = (Param("forbid", "", lambda text, _: text, "cells"),)
    mounted: list[Any] = []
    on = Stage("toy", params, lambda **said: mounted.append(said["data"]), is_followed=True, of_run=False)
    for text, base in (("1-2", ""), ("1-2," * 300, "1-2," * 300)):
        visit.choose(forbid=text)
        kit_stage.draw(on, follow(on, SHOWN), {})
        assert messages.unpack(mounted[-1])[0]["chosen"]["follow"]["base"] == {"forbid": base}


def test_a_room_that_is_too_large_for_others_says_so(visit: Visit, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(kit_stage, "MOST_DRAWN", 10)
    assert drawn(visit, [], {})["drawn"] == ""
