"""The state of a room, read from its address, and the view of others who follow it."""

from __future__ import annotations

import gc
from collections.abc import Mapping
from typing import Any

import pytest
import streamlit as st

from app.classroom import pictures
from app.kit import params as kit_params
from app.kit import stage as kit_stage
from app.kit.params import Param, number, one_of, pinned, whole
from app.kit.stage import Stage, entered, follow, selected
from app.session import chosen
from app.transport import messages
from core.errors import UnknownRun
from tests.app.visits import Address, facts

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
        self.address = Address()
        monkeypatch.setattr(st, "session_state", {})
        monkeypatch.setattr(st, "query_params", self.address)
        self.stage = Stage("toy", PARAMS, lambda **_: None, of_run=False)

    def run(self, shown: Any = SHOWN) -> kit_stage.Followed:
        entered("toy")
        return follow(self.stage, shown)


@pytest.fixture
def visit(monkeypatch: pytest.MonkeyPatch) -> Visit:
    return Visit(monkeypatch)


def test_a_room_shows_what_the_address_says_and_says_what_it_has_read(visit: Visit) -> None:
    visit.address |= {"layer": "3", "show": "map", "other": "x", "rule": "layer"}
    found = visit.run()
    assert found.values == {"show": "map", "layer": "3", "key": "", "divide": "4"}
    assert (found.asked, found.notes) == ({"layer": "3", "show": "map", "rule": "layer"}, [])
    assert kit_stage.values("toy") == found.values and kit_stage.values("other") == {}
    sent = kit_stage.sent(visit.stage, found)
    assert sent["address"]["silent"] == ["key"] and sent["address"]["shared"] == []


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
    visit.address |= found.values
    assert visit.run().notes == []


OF_RUN = Stage(
    "run",
    (
        whole("head", lambda run: str(len(run.labels) % 4), lambda _: 4),
        whole("query", lambda run: str(len(run.labels) - 1), lambda run: len(run.labels)),
        whole("key", "", lambda run: len(run.labels), empty=True),
        one_of("show", "map", "lines"),
        pinned(),
    ),
    lambda **_: None,
)


def test_what_is_left_out_or_open_a_rule_chooses_and_keeps_until_a_person_does() -> None:
    cat = facts("cat")
    opened = selected(OF_RUN, cat, {"head": ""}, cat, cat)
    assert opened.values == {"head": "2", "query": "5", "key": "", "show": "map", "pinned": ""}
    assert opened.by_rule == {"head", "query"} and opened.of == cat.key
    again = selected(OF_RUN, cat, opened.values | {chosen.RULE: "query"}, cat, cat)
    assert (again.values, again.by_rule) == (opened.values, {"query"})
    wished = selected(OF_RUN, cat, opened.values | {chosen.RULE: "query"}, cat, cat, {"query": "2"})
    assert (wished.values["query"], wished.by_rule) == ("2", frozenset())


def test_what_was_chosen_on_another_run_is_looked_for_in_this_one() -> None:
    cat, dog = facts("cat"), facts("dog")
    said = {"head": "1", "query": "2", "show": "lines", "rule": "head", "was": cat.key, "pinned": "true"}
    found = selected(OF_RUN, dog, said, dog, cat)
    assert found.values == {"head": "3", "query": "5", "key": "", "show": "lines", "pinned": "true"}
    assert found.by_rule == {"head"} and found.asked == said
    unknown = selected(OF_RUN, dog, said, dog, None)
    assert unknown.values["query"] == "6" and unknown.by_rule == {"head", "query"}


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
    visit.address |= {"show": "lines", "layer": "3"}
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
    with pytest.raises(UnknownRun):
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
    kept = kit_stage.drawn(told["drawn"])
    assert kept is not None
    own, others = messages.unpack(mounted[0]), messages.unpack(kept.message)
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
        visit.address["forbid"] = text
        kit_stage.draw(on, follow(on, SHOWN), {})
        assert messages.unpack(mounted[-1])[0]["chosen"]["follow"]["base"] == {"forbid": base}


def test_a_room_that_is_too_large_for_others_says_so(visit: Visit, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(kit_stage, "MOST_DRAWN", 10)
    assert drawn(visit, [], {})["drawn"] == ""
