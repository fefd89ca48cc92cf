"""Answers of a Service: frozen records of numbers, words and numpy arrays, which can travel between machines.

Those of one topic are in answers.py of its folder.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from ..checkpoints import ModelSpec
from ..model.config import ModelConfig
from ..model.text import Tokens
from ..run.prompt import HIDE_TYPED, Prompt, notices
from ..run.recorder import NonFinite, Step
from ..run.trace import Trace

SiteId = Literal["encoder", "decoder", "cross"]
Side = Literal["source", "target"]


@dataclass(frozen=True)
class RecordFacts:
    """One attention of a run."""

    name: str  # its module path
    stack: str
    layer: int
    site: Literal["attn", "cross_attn"]
    n_heads: int
    n_kv_heads: int
    n_query: int
    n_key: int


@dataclass(frozen=True)
class Site:
    """A kind of attention that a model has in several layers. `query` and `key` say whose tokens look, and at whose."""

    id: SiteId
    records: tuple[int, ...]  # which of Facts.records, by layer
    query: Side
    key: Side
    n_heads: int
    n_kv_heads: int
    n_query: int
    n_key: int

    @property
    def weights(self) -> int:
        """How many attention weights all its layers have."""
        return len(self.records) * self.n_heads * self.n_query * self.n_key


@dataclass(frozen=True, eq=False)
class Facts:
    """Everything about a run but its large numbers. While the run goes on there are no steps, norms, seconds or bytes."""

    key: str
    spec: ModelSpec
    config: ModelConfig
    texts: int  # that ran together; what follows is of the first
    source: Tokens
    target: Tokens | None
    records: tuple[RecordFacts, ...]  # in the order of the pass
    sites: tuple[Site, ...]
    device: str
    dtype: str
    torch_version: str
    interventions: tuple[str, ...]  # as Python writes them
    steps: tuple[Step, ...] = ()
    residual_norms: dict[str, np.ndarray] | None = None  # hook point -> ‖x‖ float32 [pos]
    notices: tuple[str, ...] = ()  # what a reader of these numbers should know: padding that was read like words
    non_finite: NonFinite | None = None  # where the first number came up that is none; None where all are finite
    seconds: float = 0.0
    held_bytes: int = 0
    predicted_bytes: int = 0
    # Of a finished run of a text as a chat: the user's words, and the answer so far. The source is the whole conversation.
    conversation: tuple[str, str] | None = None

    @property
    def writes(self) -> bool:
        """Whether the model can continue a text."""
        return self.config.writes and self.config.head != "none"

    @property
    def weights(self) -> int:
        """How many attention weights the run has in all."""
        return sum(site.weights for site in self.sites)

    def tokens(self, side: Side) -> Tokens:
        """Of one side; the source's where the model has no target."""
        return self.source if side == "source" or self.target is None else self.target

    def site_of(self, record: int) -> Site:
        """The site that a record belongs to. Raises IndexError where there is no such record."""
        if not 0 <= record < len(self.records):
            raise IndexError(f"record {record} of {len(self.records)}")
        return next(site for site in self.sites if record in site.records)

    def tokens_of(self, record: int) -> tuple[Tokens, Tokens]:
        """The tokens of a record's queries and of its keys."""
        site = self.site_of(record)
        return self.tokens(site.query), self.tokens(site.key)


@dataclass(frozen=True)
class TensorPlace:
    """The place of a tensor in a run. `layer`, `site` and `head` count where `what` is of a layer, of an attention, of a head."""

    stack: str
    layer: int
    site: str  # attn or cross
    what: str  # one of maps.heads.OF_A_HEAD, position, embed, final, or a point of the residual stream
    head: int


@dataclass(frozen=True, eq=False)
class Values:
    """The first numbers of one tensor of a run, and its size. NaN where a mask hides one."""

    values: np.ndarray  # float32 [row, column]
    all_rows: int
    all_columns: int

    @cached_property
    def extremes(self) -> tuple[float, float]:
        """The smallest and the largest finite number that is there; 0, 0 where there is none."""
        finite = self.values[np.isfinite(self.values)]
        return (float(finite.min()), float(finite.max())) if finite.size else (0.0, 0.0)


@dataclass(frozen=True)
class NextWord:
    """What a model is about to write after one token: the likeliest words, most likely first, each with its probability.

    given is the probability and the rank (1: the best guess) of the word that the text goes on with, of `vocabulary` words;
    None after the last.
    """

    position: int
    words: tuple[tuple[str, float], ...]
    given: tuple[float, int] | None
    vocabulary: int


def facts_of(run: Trace, key: str) -> Facts:
    """What is known before the pass begins, and of a finished run the rest as well."""
    lengths: dict[Side, int] = {"source": len(run.source), "target": 0 if run.target is None else len(run.target)}
    found = Facts(
        key=key,
        spec=run.spec,
        config=run.config,
        texts=run.texts,
        source=run.source,
        target=run.target,
        records=records_of(run.config, lengths, has_target=run.target is not None),
        sites=sites_of(run.config, lengths, has_target=run.target is not None),
        device=run.device,
        dtype=run.dtype,
        torch_version=str(torch.__version__),
        interventions=tuple(map(repr, run.interventions)),
        notices=notices(run.loaded, Prompt(run.sources, run.targets), HIDE_TYPED),
    )
    if not run.steps:
        return found
    return replace(
        found,
        steps=run.steps,
        residual_norms={name: array(norms) for name, norms in run.resid.items()},
        non_finite=run.non_finite,
        seconds=run.seconds,
        held_bytes=run.nbytes,
        predicted_bytes=run.predicted_bytes,
    )


def sites_of(config: ModelConfig, lengths: dict[Side, int], has_target: bool) -> tuple[Site, ...]:
    """The sites of a run in the order of the pass."""
    found, start = [], 0
    for stack, layers in config.stacks:
        own: Side = "target" if stack == "decoder" and has_target else "source"
        kinds: tuple[SiteId, ...] = ("encoder",) if stack == "encoder" else ("decoder",)
        if stack == "decoder" and config.kind == "encoder-decoder":
            kinds = ("decoder", "cross")
        stop = start + len(kinds) * layers
        for i, kind in enumerate(kinds):
            key: Side = "source" if kind == "cross" else own
            records = tuple(range(start + i, stop, len(kinds)))
            sizes = (config.n_heads, config.n_kv_heads, lengths[own], lengths[key])
            found.append(Site(kind, records, own, key, *sizes))
        start = stop
    return tuple(found)


def records_of(config: ModelConfig, lengths: dict[Side, int], has_target: bool) -> tuple[RecordFacts, ...]:
    """Every attention of a run in the order of the pass."""
    found: dict[int, RecordFacts] = {}
    for site in sites_of(config, lengths, has_target):
        stack = "encoder" if site.id == "encoder" else "decoder"
        what = "cross_attn" if site.id == "cross" else "attn"
        for layer, at in enumerate(site.records):
            name = f"{stack}.blocks.{layer}.{what}"
            sizes = (site.n_heads, site.n_kv_heads, site.n_query, site.n_key)
            found[at] = RecordFacts(name, stack, layer, what, *sizes)
    return tuple(found[at] for at in sorted(found))


def array(values: Tensor) -> np.ndarray:
    """As numpy has it, without a copy where the tensor lies in the machine's own memory."""
    return values.float().cpu().numpy()
