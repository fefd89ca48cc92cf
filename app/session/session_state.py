"""Typed names of what a visitor's session holds: one place that says what is there and of which type."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeVar

import streamlit as st

from core.edits import Edit
from core.run.request import Request
from core.service import RunHandle

T = TypeVar("T")


@dataclass(frozen=True)
class Key(Generic[T]):
    """A name in the session, and the type of what it holds."""

    name: str

    def get(self) -> T | None:
        """What is there; None where nothing is."""
        return st.session_state.get(self.name)

    def put(self, value: T) -> None:
        st.session_state[self.name] = value

    def take(self) -> T | None:
        """What is there, which is then there no more."""
        return st.session_state.pop(self.name, None)


@dataclass(frozen=True)
class Side:
    """What a session holds of one run on the screen: "" is the one that the request box asks for, "b" one beside it."""

    name: str

    @property
    def waiting(self) -> Key[RunHandle[None]]:
        """For the newest, while it is still under way."""
        return Key(f"waiting{self.name}")

    @property
    def stopped(self) -> Key[Request]:
        """What the visitor cancelled, and has not asked for again."""
        return Key(f"stopped{self.name}")

    @property
    def last_good(self) -> Key[Request]:
        """The last one that was drawn."""
        return Key(f"last_good{self.name}")


ANSWERED: Key[frozenset[str]] = Key("answered")  # the sides for which a room has asked for a run while it was drawn
EDITS: Key[tuple[Edit, ...]] = Key("edits")  # of the run that the request box asks for, in every room
WRITING: Key[Request] = Key("writing")  # what the model is to continue, until it has
WRITTEN: Key[str] = Key("written")  # the text that a model wrote last: nobody typed it
FILLED: Key[tuple[str, dict[str, str]]] = Key("filled")  # a model, and what it wrote for boxes that are not drawn yet
TRAINED: Key[dict[str, str]] = Key("trained_models")  # titles, by id, of the runs of Train that links have named
NOTICES: Key[tuple[str, ...]] = Key("notices")  # sentences that wait for the next room
