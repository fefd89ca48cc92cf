"""Request and Progress: a request to an engine, and the progress of its run."""

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
    """Everything that determines a run: the cache key and the content of the URL.

    `write` is the number of tokens to generate before the run, after the text (sampled as in continuation.CONTINUATION) or
    after the target of an encoder-decoder (greedily). The run includes them. An encoder-decoder without a target generates
    one.
    """

    model_id: str
    texts: tuple[str, ...]
    target_text: str | None = None
    interventions: tuple[Intervention, ...] = ()
    padding_side: Literal["left", "right"] = "right"
    write: int = 0
    chat: bool = False  # each text is a user message, to be formatted by the chat template

    @cached_property
    def key(self) -> str:
        """A URL-safe name of this run that cannot be computed from its text, so that guessed texts reveal nothing."""
        return secret.digest("run", self._spelled.encode()).hex()

    @cached_property
    def nbytes(self) -> int:
        """Approximate size in memory."""
        return 450 + len(self._spelled)  # a constant overhead, plus the text

    @property
    def _spelled(self) -> str:
        edits = [edit_text(edit) for edit in self.interventions]
        chat = ("chat",) if self.chat else ()  # keys of other requests must not change
        return json.dumps((self.model_id, self.texts, self.target_text, edits, self.padding_side, self.write, *chat))


@dataclass(frozen=True)
class Progress:
    """Progress of a run. While downloading: the file and its bytes. While waiting: the number of runs ahead in the queue. While
    running: the finished layers, and for a chunked text the current part, from 0; each part passes all layers."""

    stage: Stage
    file: str = ""
    bytes_done: int = 0
    bytes_total: int = 0
    layers_done: int = 0
    layers_total: int = 0
    part: int = 0
    parts: int = 1
    ahead: int = 0  # while waiting: runs ahead in the queue
    is_shown: bool = False  # partial results are available (Service.facts_so_far, parts)


@dataclass(frozen=True)
class RunFinished:
    """Facts of a run for operators, without anything that could reveal its text."""

    model_id: str
    outcome: str  # "done", or the class name of the refusal or error
    tokens: int  # of all texts and the target; 0 without a trace
    waited: float  # seconds until its turn, including loading the model
    ran: float  # seconds of its turn
    nbytes: int  # of its trace
