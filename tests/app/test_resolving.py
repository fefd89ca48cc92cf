"""The run that a screen shows: each room's choices, as the registry told them; and what rooms register is there once, however often they are imported."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Iterator, Mapping
from types import ModuleType
from typing import Any
from urllib.parse import urlencode

import pytest

import core
from app.kit import held, progress
from app.session import past_trainings, resolving, screen
from app.shell import registry
from core.edits import Ablate, Edit, to_text
from core.learn.watched_training import Spec
from core.run.request import Request
from tests.app.served import ask

TEXT = "Dorothy and Toto went to the Emerald City"
SILENT = Ablate("decoder", 0, 5)
registry.rooms()


def link(**said: str) -> screen.Screen:
    return screen.from_link("?" + urlencode({"model": "Storyteller", "text": TEXT, "with": to_text((SILENT,)), **said}))


def ran(there: screen.Screen, model: str = "") -> Request:
    return ask(resolving.resolve(there, model))


@pytest.mark.parametrize(
    ("said", "edits"),
    [
        ({}, ()),
        ({"view": "explore", "edits": "temperature_2"}, ()),  # of no room that has such a choice
        ({"view": "nowhere", "edits": "temperature_2"}, ()),
        ({"view": "Training", "edits": "temperature_2"}, ()),
        ({"view": "masks", "mask": "window", "window": "2"}, (core.edits.SetMask("window", 2),)),
        ({"view": "masks", "lab": "scale", "scale": "off"}, (core.edits.NoScale(),)),
        ({"view": "positions", "order": "drop"}, (core.edits.DropPositions(),)),
        ({"view": "positions", "lab": "clock"}, ()),
        ({"view": "step", "edits": "temperature_2"}, (core.edits.Temperature(2),)),
        ({"view": "whatif", "edits": "temperature_2"}, (core.edits.Temperature(2),)),
    ],
)
def test_what_is_chosen_comes_after_the_edits_of_the_link(said: Mapping[str, str], edits: tuple[Edit, ...]) -> None:
    assert ran(link(**said)) == Request("storyteller", (TEXT,), None, (SILENT, *edits))


def test_another_model_reads_the_text_of_a_link_and_the_words_that_the_links_own_model_wrote() -> None:
    em = core.trace(core.load("storyteller"), TEXT, interventions=[SILENT]).predictions(k=1).ids[0][0]
    there = link(view="generate", path=str(em))
    own, other = ran(there), ran(there, "gpt2")
    assert own.model_id == "storyteller" and own.texts[0].startswith(TEXT) and own.texts[0] != TEXT
    assert other == dataclasses.replace(own, model_id="gpt2")
    # an edit is of the run that is changed: each model makes another number of tokens of the text
    swapped = link(**{"with": "", "view": "positions", "order": "words", "swap": "1-2"})
    sizes = []
    for model in ("", "minilm"):
        (moved,) = ran(swapped, model).interventions
        assert isinstance(moved, core.edits.SetPositions)
        sizes.append(sum(len(one) if isinstance(one, range) else 1 for one in moved.places))
    n = len(core.trace(core.load("storyteller"), TEXT).source), len(core.trace(core.load("minilm"), TEXT).source)
    assert tuple(sizes) == n and n[0] != n[1]


def test_nothing_is_resolved_before_the_registry_has_told_the_rooms(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resolving, "_rooms", None)
    with pytest.raises(LookupError):
        ran(link())


def forget_rooms() -> None:
    rooms: Any = registry.rooms  # cached
    rooms.cache_clear()


@pytest.fixture
def own_rooms(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Rooms that may be imported again: those that the other tests have come back."""
    before = {name: module for name, module in sys.modules.items() if name.split(".")[:2] == ["app", "rooms"]}
    yield
    for name in [name for name in sys.modules if name.split(".")[:2] == ["app", "rooms"]]:
        del sys.modules[name]
    sys.modules.update(before)
    forget_rooms()
    registry.rooms()


def registered() -> tuple[object, ...]:
    """Everything that rooms have registered, by purpose."""
    assert resolving._rooms is not None
    return (
        [*held._rooms],
        set(held._holders),
        dict(progress._steps),
        [*past_trainings._sources],
        {said: run is not None for said, run in resolving._rooms.items()},
    )


@pytest.mark.thorough
def test_rooms_that_are_imported_again_are_registered_once_and_as_they_are_now(own_rooms: None) -> None:
    before, first = registered(), resolving._rooms
    assert progress.steps("lessons") == 52 and progress.steps("masks") == 0 and held.holds("lessons")
    for _ in range(2):
        for name in [name for name in sys.modules if name.split(".")[:2] == ["app", "rooms"]]:
            del sys.modules[name]
        forget_rooms()
        registry.rooms()
    assert registered() == before
    now = resolving._rooms
    assert first is not None and now is not None and now["masks"] is not first["masks"]
    records: ModuleType = sys.modules["app.rooms.train.records"]
    assert past_trainings._sources["train"] is records.news
    found = past_trainings.news(Spec("copy"))
    assert found is not None and found.state == "ended" and past_trainings.news(Spec("copy", seed=77)) is None


def test_a_lesson_keeps_the_choices_of_every_room_in_the_address() -> None:
    names = registry.params()
    own = {name for room, those in names.items() if room != "lessons" for name in those}
    assert own < set(names["lessons"]) and set(names["masks"]) < own
    assert {"plan_model", "plan_batch", "of", "typed_heads", "training_part"} < set(names["lessons"])
    assert held.names()["masks"] == next(room.title for room in registry.rooms() if room.id == "masks")
