"""One record of choices: screen, address and a fresh browser at that address say the same, in whatever order news come."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import streamlit as st
from hypothesis import HealthCheck, settings
from hypothesis import strategies as draw
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test
from streamlit.runtime.state.query_params import QueryParams

from app.session import chosen
from tests.app.visits import BORROWS, HEADS, LAYERS, ROOMS, TEXTS, Address, Visit
from tests.thorough import how_many


@pytest.fixture
def visit(monkeypatch: pytest.MonkeyPatch) -> Iterator[Visit]:
    found = Visit(monkeypatch.setattr)
    found.script()
    yield found


def same(visit: Visit) -> None:
    """The address says what the screen says, with nothing left out, and a fresh browser shows it."""
    on = ROOMS[visit.inner]
    silent = {param.name for param in on.params if param.default == ""}
    said = {name: text for name, text in visit.shown.values.items() if text or name not in silent}
    assert {name: visit.address.get(name) for name in said} == said
    assert visit.address["view"] == visit.room
    if on.of_run:
        assert visit.address["text"] == visit.text
    other = visit.at()
    assert (other.room, other.text) == (visit.room, visit.text if on.of_run else other.text)
    assert other.shown.values == visit.shown.values and other.address == visit.address


def test_nothing_is_left_out_because_it_is_as_a_room_opens(visit: Visit):
    assert visit.address["layer"] == visit.shown.values["layer"] and visit.address["show"] == "map"
    assert set(visit.address[chosen.RULE].split(",")) == {"layer", "head", "query"}
    same(visit)


def test_the_address_that_counts_is_the_one_that_the_visitor_went_back_to(visit: Visit):
    """The script for it may be broken off by a message that has the address of the room that was left, which came late."""
    visit.report(layer="1", head="3")
    visit.script()
    there = dict(visit.address)
    visit.enter("two")
    visit.report(layer="0", head="1")
    visit.script()
    late = dict(visit.address)
    visit.address = Address(there)
    visit.use(back=True)
    chosen.note_arrival()  # and is broken off
    visit.script(late=late)
    assert (visit.shown.values["layer"], visit.shown.values["head"]) == ("1", "3")


def test_what_was_taken_out_of_the_address_can_be_said_to_be_nothing(visit: Visit, monkeypatch: pytest.MonkeyPatch):
    """Streamlit keeps a name that was taken out, and says "" of it."""
    address, sent = QueryParams(), []
    monkeypatch.setattr(QueryParams, "_send_query_param_msg", lambda self: sent.append(dict(self._query_params)))
    monkeypatch.setattr(st, "query_params", address)
    for shown in ({"forbid": "1-0"}, {}, {"forbid": ""}, {"forbid": ""}, {}, {}):
        chosen.note_arrival()
        chosen.drawn("one", shown, frozenset(), {}, (), ())
        chosen.write(names=("forbid",))
        assert address.get_all("forbid") == list(shown.values())
    assert [said["forbid"] for said in sent] == ["1-0", [], "", []], "nothing is said twice"


def test_a_head_goes_along_into_every_room_and_back(visit: Visit):
    """Today's fault: a head chosen in one room was another one in the next."""
    visit.report(layer="1", head="3")
    visit.script()
    for room in ("two", "one", "own", "two"):
        visit.enter(room)
        if room != "own":
            assert (visit.shown.values["layer"], visit.shown.values["head"]) == ("1", "3")
        same(visit)


def test_so_does_a_head_that_a_rule_chose(visit: Visit):
    before = visit.shown.values
    visit.enter("two")
    assert {n: visit.shown.values[n] for n in ("layer", "head", "query")} == {
        n: before[n] for n in ("layer", "head", "query")
    }
    same(visit)


def test_another_text_keeps_what_a_person_chose_and_replaces_what_a_rule_chose(visit: Visit):
    visit.report(query="2")  # cat
    visit.script()
    assert visit.address[chosen.RULE] == "head,layer"
    visit.type("dog")
    assert visit.shown.values["query"] == "5", "cat is there now"
    opening = Visit(visit.patch, Address(text="dog"))
    opening.script()
    assert visit.shown.values["layer"] == opening.shown.values["layer"]
    visit.use()
    same(visit)
    visit.type("no")
    assert visit.shown.values["query"] == opening.at().shown.values["query"] or visit.shown.values["query"] in "012"


def test_what_belongs_to_a_text_goes_with_it_also_where_the_text_changed_in_another_room(visit: Visit):
    visit.enter("two")
    visit.report(path="5.7")
    visit.script()
    assert visit.address["path"] == "5.7"
    visit.enter("one")
    visit.type("dog")
    visit.enter("two")
    assert visit.shown.values["path"] == "" and "path" not in visit.address


def test_a_room_is_found_as_it_was_left(visit: Visit):
    visit.report(show="lines")
    visit.script()
    visit.enter("two")
    assert "show" not in visit.address
    visit.enter("one")
    assert visit.shown.values["show"] == "lines" == visit.address["show"]


def test_a_room_with_a_model_of_its_own_has_layers_of_its_own(visit: Visit):
    visit.report(layer="2")
    visit.script()
    visit.enter("own")
    assert visit.shown.values["layer"] == "0"
    visit.report(layer="7")
    visit.script()
    same(visit)
    visit.enter("one")
    assert visit.shown.values["layer"] == "2"


def test_a_message_that_left_before_the_address_came_takes_nothing_back(visit: Visit):
    old = dict(visit.address)
    visit.report(layer="2")
    visit.script()
    stamp = visit.shown.stamp
    for late in (old, {}, {"layer": "0"}):
        visit.script(late=late)
        assert visit.shown.values["layer"] == "2" == visit.address["layer"] and visit.shown.stamp == stamp


def test_news_of_the_picture_before_count_as_if_they_had_been_known_in_time(visit: Visit):
    """Chosen in the picture before, while the one of another text was on its way."""
    before = f"run of {visit.text}"
    visit.type("dog")
    visit.report(of=before, query="2", head="2")
    found = visit.script()
    assert (found.values["head"], found.values["query"]) == ("2", "5")
    assert (found.stamp, found.merged) == (1, 1), "the browser takes it, but for what it has not told yet"
    same(visit)


def test_the_first_change_after_a_run_that_was_drawn_on_its_way_counts(visit: Visit):
    """Its end lets the rule choose again, which is no link: one would take back what the visitor changes next."""
    other = Visit(visit.patch, Address(text="dog"))
    on_its_way = other.script(going=True)
    ended = other.script()
    assert ended.stamp == on_its_way.stamp
    assert set(other.address[chosen.RULE].split(",")) == {"layer", "head", "query"}
    other.report(show="lines")
    found = other.script()
    assert (found.values["show"], found.stamp) == ("lines", ended.stamp)
    same(other)


def test_a_head_chosen_while_a_run_is_on_its_way_stays_when_it_has_ended(visit: Visit):
    other = Visit(visit.patch, Address(text="dog"))
    other.script(going=True)
    other.report(head="3")
    other.script(going=True)
    assert other.script().values["head"] == "3"
    same(other)


def test_news_of_a_picture_long_gone_change_nothing(visit: Visit):
    visit.type("dog")
    visit.type("no")
    values = visit.shown.values
    visit.report(of="run of cat", query="2", layer="2")
    assert visit.script().values == values


def test_back_shows_what_the_address_says_and_all_of_it(visit: Visit):
    first = dict(visit.address)
    visit.report(layer="2", show="lines")
    visit.script()
    visit.type("dog")
    visit.address = Address(first)
    visit.script(back=True)
    assert visit.text == "cat" and visit.shown.values["show"] == "map"
    assert dict(visit.address) == first
    same(visit)


def test_a_short_link_of_before_opens_what_it_opened(monkeypatch: pytest.MonkeyPatch):
    visit = Visit(monkeypatch.setattr, Address(view="two", text="dog", layer="1"))
    visit.script()
    assert visit.shown.values["layer"] == "1" and visit.text == "dog"
    assert visit.address[chosen.RULE] == "head,query"
    same(visit)


def test_a_link_that_asks_in_vain_gets_a_sentence_until_something_else_is_chosen(monkeypatch: pytest.MonkeyPatch):
    visit = Visit(monkeypatch.setattr, Address(layer="7"))
    (note,) = visit.script().notes
    assert "layer" in note and "7" in note
    assert visit.script().notes == [note]
    visit.report(head="1")
    assert visit.script().notes == []


def test_lessons_borrow_the_screen_and_give_it_back(visit: Visit):
    visit.report(layer="2", head="3")
    visit.script()
    mine = dict(visit.address)
    visit.enter(BORROWS)
    step = {"view": BORROWS, "lesson": "1.2", "text": "dog", "layer": "0", "head": "1"}
    visit.address = Address(step)
    visit.script(back=True)
    assert visit.text == "dog" and visit.shown.values["layer"] == "0" and visit.address["lesson"] == "1.2"
    visit.enter("one")
    assert visit.text == "cat"
    assert {n: visit.address[n] for n in mine} == mine
    same(visit)


def test_a_text_is_in_the_address_before_its_run_is_there_and_nothing_that_a_rule_chose(visit: Visit):
    visit.report(head="2")
    visit.script()
    visit.use()
    chosen.note_arrival()
    chosen.ask({"model": "Small", "text": "dog"})
    assert visit.address["text"] == "dog" and visit.address["head"] == "2" and "query" not in visit.address


# a walk


class Walk(RuleBasedStateMachine):
    """A visitor who does anything, and a browser with its history: after each move all three say the same."""

    @initialize()
    def begin(self) -> None:
        self.patch = pytest.MonkeyPatch()
        self.visit = Visit(self.patch.setattr)
        self.visit.script()
        self.history: list[dict[str, str]] = [dict(self.visit.address)]
        self.place = 0

    def moved(self) -> None:
        """One move is one step of the history, and what lay ahead is gone."""
        now = dict(self.visit.address)
        if now != self.history[self.place]:
            del self.history[self.place + 1 :]
            self.history.append(now)
            self.place += 1

    @rule(text=draw.sampled_from(sorted(TEXTS)))
    def types(self, text: str) -> None:
        if ROOMS[self.visit.inner].of_run:
            self.visit.type(text)
            self.moved()

    @rule(layer=draw.integers(0, LAYERS - 1), head=draw.integers(0, HEADS - 1))
    def chooses_a_head(self, layer: int, head: int) -> None:
        if ROOMS[self.visit.inner].of_run:
            self.visit.report(layer=str(layer), head=str(head))
            self.visit.script()
            self.moved()

    @rule(word=draw.integers(0, 6), key=draw.booleans())
    def chooses_a_word(self, word: int, key: bool) -> None:
        if ROOMS[self.visit.inner].of_run:
            self.visit.report(**{"key" if key else "query": str(word % len(TEXTS[self.visit.text]))})
            self.visit.script()
            self.moved()

    @rule(data=draw.data())
    def chooses_an_option(self, data: Any) -> None:
        options = {"one": ("show", ["map", "lines"]), "two": ("path", ["", "1.2"]), "own": ("task", ["a", "b"])}
        name, values = options[self.visit.inner]
        self.visit.report(**{name: data.draw(draw.sampled_from(values))})
        self.visit.script()
        self.moved()

    @rule(room=draw.sampled_from([*ROOMS, BORROWS]))
    def enters(self, room: str) -> None:
        if room != self.visit.room:
            self.visit.enter(room)
            self.moved()

    @rule(text=draw.sampled_from(sorted(TEXTS)), word=draw.integers(0, 2))
    def chooses_while_a_text_is_on_its_way(self, text: str, word: int) -> None:
        if ROOMS[self.visit.inner].of_run and text != self.visit.text:
            before = f"run of {self.visit.text}"
            self.visit.type(text)
            self.moved()
            self.visit.report(of=before, query=str(word))
            self.visit.script()
            self.moved()

    @rule(back=draw.integers(1, 3))
    def a_late_message(self, back: int) -> None:
        values = self.visit.shown.values
        self.visit.script(late=self.history[max(0, self.place - back)])
        assert self.visit.shown.values == values

    @rule()
    def goes_back(self) -> None:
        if self.place:
            self.place -= 1
            self.goes()

    @rule()
    def goes_forward(self) -> None:
        if self.place + 1 < len(self.history):
            self.place += 1
            self.goes()

    def goes(self) -> None:
        self.visit.session.pop("own_stage", None)
        self.visit.address = Address(self.history[self.place])
        self.visit.script(back=True)
        assert dict(self.visit.address) == self.history[self.place], "back undoes exactly one move"

    @rule()
    def reloads(self) -> None:
        self.visit = self.visit.at()

    @invariant()
    def all_say_the_same(self) -> None:
        if hasattr(self, "visit"):
            same(self.visit)

    def teardown(self) -> None:
        if hasattr(self, "patch"):
            self.patch.undo()


def test_whoever_walks_anywhere_sees_what_the_address_says():
    """Some four thousand moves, with THOROUGH=1 twenty thousand; a failure prints the shortest walk that leads to it."""
    quiet = settings(
        max_examples=how_many(400, share=5),
        stateful_step_count=50,
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
    )
    assert run_state_machine_as_test(Walk, settings=quiet) is None, "its invariant is asserted after each move"
