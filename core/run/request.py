"""Request and Progress: a question to an engine, and the progress of its run."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from .. import secret
from ..edits import Intervention, edit_text

Stage = Literal["loading", "waiting", "running", "done"]


@dataclass(frozen=True)
class Request:
    """Everything that decides a run, and nothing else: the cache's key and the URL's content.

    Before the run a model may write. `write` is how many tokens it puts after the text, drawn as continuation.CONTINUATION says,
    or after the target of an encoder-decoder, the likeliest each time; the run is of what was there with what was added. An
    encoder-decoder that is given no target writes one, as far as it can.
    """

    model_id: str
    texts: tuple[str, ...]
    target_text: str | None = None
    interventions: tuple[Intervention, ...] = ()
    padding_side: Literal["left", "right"] = "right"
    write: int = 0
    chat: bool = (
        False  # each text is what a user says to a chat model: its template writes the rest of the conversation
    )

    @cached_property
    def key(self) -> str:
        """A name for this run, safe in a URL, that cannot be computed from its text: guessing a text reveals nothing."""
        return secret.digest("run", self._spelled.encode()).hex()

    @cached_property
    def nbytes(self) -> int:
        """About what it takes to remember it."""
        return 450 + len(self._spelled)  # a short text is the least of it

    @property
    def _spelled(self) -> str:
        edits = [edit_text(edit) for edit in self.interventions]
        chat = ("chat",) if self.chat else ()  # a key of a text as it is stays what it was
        return json.dumps((self.model_id, self.texts, self.target_text, edits, self.padding_side, self.write, *chat))


@dataclass(frozen=True)
class Progress:
    """How far a run is. While a model is downloaded: the file and its bytes; while it waits for a turn: how many are before it;
    while it runs: the layers that are done, and of a text that is read in parts, each through all layers, which part it is at,
    from 0."""

    stage: Stage
    file: str = ""
    bytes_done: int = 0
    bytes_total: int = 0
    layers_done: int = 0
    layers_total: int = 0
    part: int = 0
    parts: int = 1
    ahead: int = 0  # while it waits: how many runs have their turn before it
    is_shown: bool = False  # what there is of it so far can be asked for (Service.facts_so_far, parts)


@dataclass(frozen=True)
class RunEnded:
    """The facts of a run that an operator may know: no text, and nothing that a text could be told from."""

    model_id: str
    outcome: str  # "done", or the kind of refusal or error, as its class is called
    tokens: int  # of all its texts and its target; 0 where there is no trace
    waited: float  # seconds until its turn, loading the model among them
    ran: float  # seconds of its turn
    nbytes: int  # of its trace
