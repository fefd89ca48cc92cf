"""The selection in the address: unchanged on the same run, carried over to another one where its words exist."""

from __future__ import annotations

from typing import Any

import pytest
import streamlit as st
from hypothesis import given
from hypothesis import strategies as draw

from app.session import chosen
from app.session.chosen import Chosen, carried, moved_to
from app.streamlit_edge import history
from tests.app.visits import TEXTS, Address, facts

CAT, DOG = {"model": "Small", "text": "cat"}, {"model": "Small", "text": "dog"}


@pytest.fixture
def address(monkeypatch: pytest.MonkeyPatch) -> Address:
    """Of a visitor whose session has just begun."""
    said, session = Address(), dict[str, Any]()
    monkeypatch.setattr(st, "query_params", said)
    monkeypatch.setattr(st, "session_state", session)
    monkeypatch.setattr(history, "write", said.change)
    monkeypatch.setattr(history, "assume", said.change)
    return said


PLACE = {"layer": "2", "head": "3", "query": "2", "show": "lines", "zoom": "1,2,3,4"}


def test_another_text_opens_on_its_own_finding() -> None:
    assert carried(Chosen(PLACE), facts("cat"), facts("dog"), ["zoom"]).values == {"show": "lines"}
    assert carried(Chosen({"hide": "0,2"}), facts("cat"), facts("no")).values == {"hide": "0"}
    assert (unchanged := Chosen(PLACE)) is carried(unchanged, facts("cat"), facts("cat"), ["zoom"])


def test_a_pinned_head_stays_with_the_same_word_and_nothing_that_a_rule_chose() -> None:
    said = Chosen(PLACE | {"pinned": "true"}, frozenset({"layer"}))
    found = carried(said, facts("cat"), facts("dog"), ["zoom"])
    assert found == Chosen({"head": "3", "query": "5", "show": "lines", "pinned": "true"}), (
        "cat is the sixth word there"
    )


def test_a_word_that_is_not_there_is_left_out_and_of_several_those_that_are() -> None:
    said = Chosen({"query": "2", "key": "", "hide": "0,2,5", "pinned": "true"})
    assert carried(said, facts("cat"), facts("no")).values == {"key": "", "hide": "0,2", "pinned": "true"}


@pytest.mark.parametrize("was", [facts("cat", "large"), None])
def test_of_another_model_or_a_run_that_no_one_knows_there_is_no_place(was: Any) -> None:
    said = Chosen({"layer": "2", "query": "none", "show": "lines"})
    assert carried(said, was, facts("dog")).values == {"show": "lines"}


def test_of_the_same_model_along_its_training_the_place_stays() -> None:
    was = facts("cat", "small@10")
    was.key = "another run"  # type: ignore[misc]
    assert carried(Chosen({"layer": "2"}), was, facts("cat")).values == {"layer": "2"}


@given(draw.sampled_from(sorted(TEXTS)), draw.sampled_from(sorted(TEXTS)), draw.integers(0, 9))
def test_a_word_that_was_moved_is_the_same_word(was: str, now: str, at: int) -> None:
    before, after = TEXTS[was], TEXTS[now]
    moved = moved_to(str(at), before, after)
    if moved:
        assert after[int(moved)] == before[at]
    else:
        assert at >= len(before) or before[at] not in after
    assert moved_to("none", before, after) == "none"


def test_the_address_decides_where_a_visit_begins_and_after_each_arrival_once(address: Address) -> None:
    for arrived, count in ((None, 1), (None, 1), ("1", 2), ("1", 2), (None, 2), ("2", 3)):
        address.change({history.ARRIVED: arrived})
        chosen.begin()
        assert chosen.arrivals() == count


def test_another_text_is_in_the_address_at_once_with_the_run_that_the_rest_is_of(address: Address) -> None:
    address.change(CAT | {"head": "2"})
    chosen.ask(CAT, is_arrival=True)
    chosen.drawn(CAT, facts("cat"))
    chosen.ask(DOG, is_arrival=False)
    assert address == DOG | {"head": "2", "was": "run of cat"}
    chosen.ask({**DOG, "text": "no"}, is_arrival=False)
    assert address["was"] == "run of cat", "its own run was never there"
    assert chosen.facts_of("run of cat") == chosen.facts_of(address["was"])


def test_a_short_link_and_what_it_means_are_one_run(address: Address) -> None:
    address.change({"text": "cat", "head": "2"})
    chosen.ask(CAT, is_arrival=True)
    assert address == CAT | {"head": "2"}
    address.change({"model": None})  # a message that left the browser before it was completed
    chosen.ask(CAT, is_arrival=False)
    assert chosen.WAS not in address
    address.change({"model": None})
    chosen.ask(DOG, is_arrival=False)
    assert address[chosen.WAS] == chosen.NOWHERE and chosen.facts_of(chosen.NOWHERE) is None


def test_what_only_other_rooms_have_leaves_the_address(address: Address) -> None:
    address.change({"view": "compute", "layer": "1", "head": "2", "lab": "x", "rule": "head,lab", "was": "run of cat"})
    chosen.leave({"layer", "head"})
    assert address == {"view": "compute", "lab": "x", "rule": "lab"}


def test_what_older_links_say_once_for_each_value_is_one_text(
    address: Address, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chosen, "_many", {"cards"})
    address.change({"cards": "a"})
    monkeypatch.setattr(address, "get_all", lambda name: ["a", "b"])
    assert chosen.address() == {"cards": "a,b"}
