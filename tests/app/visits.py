"""Visits without a browser: scripts run one after the other, each with the address and the report that its message had."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, cast

import streamlit as st

from app.kit import stage as kit_stage
from app.kit.params import Param, one_of, whole
from app.kit.stage import Followed, Stage
from app.session import chosen
from core.service import Facts

LAYERS, HEADS = 3, 4
TEXTS = {
    "cat": ["[CLS]", "The", "cat", "saw", "it", "."],
    "dog": ["[CLS]", "The", "dog", "saw", "a", "cat", "."],
    "no": ["[CLS]", "No", "."],
}


class Address(dict[str, str]):
    """As st.query_params: an empty list takes a name out."""

    def update(self, said: Mapping[str, str | list[str]]) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
        for name, text in said.items():
            if isinstance(text, list):
                self.pop(name, None)
            else:
                self[name] = text

    def get_all(self, name: str) -> list[str]:
        return [self[name]] if name in self else []

    def to_dict(self) -> dict[str, str]:
        return dict(self)


def facts(text: str) -> Facts:
    """Of a run of one of TEXTS; each opens elsewhere."""
    labels = TEXTS[text]
    site = SimpleNamespace(id="encoder", query="source", key="source", n_heads=HEADS)
    return cast(
        Facts,
        SimpleNamespace(
            key=f"run of {text}",
            spec=SimpleNamespace(id="small"),
            sites=(site,),
            labels=labels,
            tokens=lambda side: SimpleNamespace(labels=labels),
        ),
    )


def _opens(shown: Any, add: int, below: int) -> str:
    return str((len(shown.labels) + add) % below)


def params(add: int, *own: Param) -> tuple[Param, ...]:
    """Of a room that opens at another head than any other, by text."""
    n_tokens: Callable[[Any], int] = lambda run: len(run.labels)  # noqa: E731
    return (
        whole("layer", lambda run: _opens(run, add, LAYERS), lambda _: LAYERS),
        whole("head", lambda run: _opens(run, add + 1, HEADS), lambda _: HEADS),
        whole("query", lambda run: _opens(run, add + 3, len(run.labels)), n_tokens),
        whole("key", "", n_tokens, empty=True),
        *own,
    )


def _stage(room: str, own: tuple[Param, ...], **more: Any) -> Stage:
    chosen.know(room, more.pop("of_text", ()))
    return Stage(room, own, lambda **_: None, **more)


ROOMS = {
    "one": _stage("one", params(0, one_of("show", "map", "lines"))),
    "two": _stage("two", params(1, Param("path", "", lambda text, _: text, "a path")), of_text=("path",)),
    "own": _stage("own", (whole("layer", "0", lambda _: 9), one_of("task", "a", "b")), of_run=False),
}
BORROWS = "lessons"  # a room that shows "one" inside of it
NAMES = {room: {param.name for param in stage.params} for room, stage in ROOMS.items()}


@dataclass
class Visit:
    """A visitor's session and the browser's address. `patch` sets attributes, as monkeypatch does."""

    patch: Callable[[Any, str, Any], None]
    address: Address = field(default_factory=Address)
    session: dict[str, Any] = field(default_factory=dict)
    room: str = "one"
    text: str = "cat"
    number: int = 0
    fresh: bool = True

    def use(self, back: bool = False) -> None:
        self.patch(st, "session_state", self.session)
        self.patch(st, "query_params", self.address)
        self.patch(chosen, "is_history_navigation", lambda: back)

    def script(self, back: bool = False, late: Mapping[str, str] | None = None, going: bool = False) -> Followed:
        """Run the script for a message that has the browser's address, or a `late` one that left before the last came.

        `going`: the run is still on its way, and drawn as far as it is.
        """
        if late is not None:
            self.address = Address(late)
        self.use(back)
        chosen.note_arrival()
        arrives = chosen.ARRIVED.get() is not None
        if arrives:
            self.room = self.address.get("view", "one")
        chosen.enter(self.room, lambda room: room == BORROWS)
        kit_stage.entered(self.room)
        record = chosen.now()
        if self.session.get("links") != record.links:  # as the request box does
            self.session["links"] = record.links
            self.text = record.run.get("text", "cat")
        inner = "one" if self.room == BORROWS else self.room
        on = ROOMS[inner]
        if on.of_run:
            chosen.ask({"model": "Small", "text": self.text})
            run = facts(self.text)
            followed = kit_stage.follow(on, run, run, going=going)
        else:
            followed = kit_stage.follow(on, None)
        others = {name for room, names in NAMES.items() if room != inner for name in names} - NAMES[inner]
        chosen.write(others)
        self.shown = followed
        return followed

    @property
    def inner(self) -> str:
        return "one" if self.room == BORROWS else self.room

    def report(self, of: str | None = None, **said: str) -> None:
        """Let the browser say this next, in the room on the screen, of the run on it or of another one."""
        self.number += 1
        values = {**self.shown.values, **said}
        run = f"run of {self.text}" if of is None else of
        self.session[f"{self.inner}_stage"] = {"chosen": {"number": self.number, "said": values, "of": run}}

    def enter(self, room: str) -> Followed:
        """Choose a room in the bar."""
        self.session.pop(f"{self.inner}_stage", None)  # Streamlit forgets a component that is not drawn
        self.room = room
        return self.script()

    def type(self, text: str) -> Followed:
        self.text = text
        return self.script()

    def at(self) -> Visit:
        """A fresh browser at this address."""
        other = Visit(self.patch, Address(self.address))
        other.script()
        self.use()
        return other
