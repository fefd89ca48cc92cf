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
from app.kit.stage import SHARED, Stage, entered, follow
from app.transport import messages
from core.errors import Unknown

PARAMS = (
    one_of("show", "map", "lines"),
    whole("layer", "0", lambda shown: shown["layers"]),
    whole("key", "", lambda shown: shown["tokens"], empty=True),
    number("divide", 4, 0.5, 16),
)
SHOWN = {"layers": 6, "tokens": 16}


class Address(dict[str, str]):
    """As st.query_params: an empty list takes a name out."""

    def update(self, said: Mapping[str, str | list[str]]) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
        for name, text in said.items():
            if isinstance(text, list):
                self.pop(name, None)
            else:
                self[name] = text


class Visit:
    """A visitor's session and address, without a browser."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.session: dict[str, Any] = {}
        self.address = Address()
        monkeypatch.setattr(st, "session_state", self.session)
        monkeypatch.setattr(st, "query_params", self.address)
        monkeypatch.setattr(kit_stage, "is_history_navigation", lambda: False)
        self.stage = Stage("toy", PARAMS, lambda **_: None)
        self.number = 0

    def run(self, shown: Any = SHOWN) -> kit_stage.Followed:
        entered("toy", {"toy": [param.name for param in PARAMS]})
        return follow(self.stage, shown)

    def choose(self, **said: str) -> None:
        self.number += 1
        self.session["toy_stage"] = {"chosen": {"number": self.number, "said": said}}


@pytest.fixture
def visit(monkeypatch: pytest.MonkeyPatch) -> Visit:
    return Visit(monkeypatch)


def test_a_link_decides_when_the_room_is_entered_and_says_only_what_is_not_as_it_opens(visit: Visit) -> None:
    visit.address |= {"layer": "3", "show": "map", "other": "x"}
    found = visit.run()
    assert found.values == {"show": "map", "layer": "3", "key": "", "divide": "4"}
    assert visit.address == {"layer": "3", "other": "x"}
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


def test_what_the_browser_reports_goes_into_the_address(visit: Visit) -> None:
    visit.run()
    visit.choose(layer="2", show="lines", key="", divide="4", foreign="x")
    found = visit.run()
    assert found.values["layer"] == "2" and found.reported == 1 and found.stamp == 1
    assert visit.address == {"layer": "2", "show": "lines"}


def test_a_message_with_the_address_of_before_takes_nothing_back(visit: Visit) -> None:
    visit.run()
    visit.choose(layer="2")
    visit.run()
    visit.address.clear()  # a message that left before the browser knew its new address
    assert visit.run().values["layer"] == "2"
    assert visit.address == {"layer": "2"}
    visit.run()  # now the browser has said it
    visit.address.clear()
    assert visit.run().values["layer"] == "0", "the visitor has changed the address"


def test_a_link_counts_although_the_browser_has_not_yet_said_the_address_that_it_was_given(visit: Visit) -> None:
    """As the next step of a lesson, where the run that it asks for takes longer than the message that came with it."""
    visit.address |= {"layer": "3", "show": "map"}
    visit.run()
    assert visit.address == {"layer": "3"}, "which no message has said since"
    visit.address.clear()
    visit.address["show"] = "lines"
    found = visit.run()
    assert (found.values["show"], found.values["layer"], found.stamp) == ("lines", "0", 2)


def test_back_counts_at_once(visit: Visit, monkeypatch: pytest.MonkeyPatch) -> None:
    visit.run()
    visit.choose(layer="2")
    visit.run()
    visit.address.clear()
    monkeypatch.setattr(kit_stage, "is_history_navigation", lambda: True)
    found = visit.run()
    assert found.values["layer"] == "0" and found.stamp == 2


def test_what_another_run_lacks_comes_back_with_one_that_has_it(visit: Visit) -> None:
    visit.run()
    visit.choose(layer="5")
    visit.run()
    assert visit.run({"layers": 2, "tokens": 16}).values["layer"] == "0"
    assert visit.run().values["layer"] == "5"


def test_a_room_that_is_entered_again_is_as_it_was_left_but_for_what_the_link_says(visit: Visit) -> None:
    visit.run()
    visit.choose(layer="2", divide="8", show="lines")
    visit.run()
    names = {"toy": [param.name for param in PARAMS], "other": ["at"]}
    entered("other", names)
    assert visit.address == {"layer": "2"}, f"{SHARED} go along"
    visit.address["layer"] = "4"
    visit.session.pop("toy_stage")
    found = visit.run()
    assert found.values == {"show": "lines", "layer": "4", "key": "", "divide": "8"}
    assert found.stamp == 2


def test_a_room_has_no_name_of_the_request() -> None:
    with pytest.raises(ValueError, match="step"):
        one_of("step", "a")


def test_numbers_are_written_one_way() -> None:
    param: Param = PARAMS[3]
    assert param.read("4.0", SHOWN) == "4" and param.read("0.50", SHOWN) == "0.5"


# a room that others see


def drawn(visit: Visit, mounted: list[Any], header: Mapping[str, Any], shown: Any = SHOWN) -> dict[str, Any]:
    """What a followed stage sends of itself for a class."""
    on = Stage("toy", PARAMS, lambda **said: mounted.append(said["data"]), is_followed=True)
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
    on = Stage("toy", params, lambda **said: mounted.append(said["data"]), is_followed=True)
    for text, base in (("1-2", ""), ("1-2," * 300, "1-2," * 300)):
        visit.address["forbid"] = text
        kit_stage.draw(on, follow(on, SHOWN), {})
        assert messages.unpack(mounted[-1])[0]["chosen"]["follow"]["base"] == {"forbid": base}


def test_a_room_that_is_too_large_for_others_says_so(visit: Visit, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(kit_stage, "MOST_DRAWN", 10)
    assert drawn(visit, [], {})["drawn"] == ""
