"""Facts of a run in plain data: everything but its large arrays. Answers are frozen records that can travel between machines."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

import numpy as np
import torch

from ..checkpoints import ModelSpec
from ..device import array
from ..model.config import ModelConfig
from ..model.text import Tokens
from ..run.recorder import NonFinite, TensorStep
from ..run.request import HIDE_TYPED, Prompt, notices
from ..trace import Trace

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
    """A kind of attention that a model has in several layers. `query` and `key` name the texts of its queries and keys."""

    id: SiteId
    records: tuple[int, ...]  # indices into Facts.records, by layer
    query: Side
    key: Side
    n_heads: int
    n_kv_heads: int
    n_query: int
    n_key: int

    @property
    def weights(self) -> int:
        """Number of attention weights in all layers."""
        return len(self.records) * self.n_heads * self.n_query * self.n_key


@dataclass(frozen=True, eq=False)
class Facts:
    """Everything about a run except its large arrays. A run in progress has no steps, norms, seconds or bytes yet."""

    key: str
    spec: ModelSpec
    config: ModelConfig
    texts: int  # number of texts that ran together; the other fields are about the first one
    source: Tokens
    target: Tokens | None
    records: tuple[RecordFacts, ...]  # in the order of the pass
    sites: tuple[Site, ...]
    device: str
    dtype: str
    torch_version: str
    interventions: tuple[str, ...]  # as Python source
    steps: tuple[TensorStep, ...] = ()
    residual_norms: dict[str, np.ndarray] | None = None  # hook point -> ‖x‖ float32 [pos]
    notices: tuple[str, ...] = ()  # caveats about the numbers, such as padding that was read like words
    non_finite: NonFinite | None = None  # first number that is not finite
    seconds: float = 0.0
    held_bytes: int = 0
    predicted_bytes: int = 0
    # Of a finished run of a chat: the user's message, and the answer so far. The source is the whole conversation.
    conversation: tuple[str, str] | None = None

    @property
    def writes(self) -> bool:
        """True if the model can continue a text."""
        return self.config.writes and self.config.head != "none"

    @property
    def weights(self) -> int:
        """Number of attention weights in the whole run."""
        return sum(site.weights for site in self.sites)

    def tokens(self, side: Side) -> Tokens:
        """Tokens of one side; those of the source if the run has no target."""
        return self.source if side == "source" or self.target is None else self.target

    def site_of(self, record: int) -> Site:
        """The site that a record belongs to. Raises IndexError if there is no such record."""
        if not 0 <= record < len(self.records):
            raise IndexError(f"record {record} of {len(self.records)}")
        return next(site for site in self.sites if record in site.records)

    def tokens_of(self, record: int) -> tuple[Tokens, Tokens]:
        """Tokens of a record's queries and of its keys."""
        site = self.site_of(record)
        return self.tokens(site.query), self.tokens(site.key)


@dataclass(frozen=True)
class TensorPlace:
    """A tensor of a run. `layer`, `site` and `head` are ignored if `what` does not belong to a layer, an attention or a head."""

    stack: str
    layer: int
    site: str  # attn or cross
    what: str  # one of pictures.HEAD_TENSORS, position, embed, final, or a hook point of the residual stream
    head: int


@dataclass(frozen=True, eq=False)
class Values:
    """First numbers of a tensor, and the size of the whole tensor. Masked ones are NaN."""

    values: np.ndarray  # float32 [row, column]
    all_rows: int
    all_columns: int

    @cached_property
    def extremes(self) -> tuple[float, float]:
        """Smallest and largest finite number; (0, 0) if there is none."""
        finite = self.values[np.isfinite(self.values)]
        return (float(finite.min()), float(finite.max())) if finite.size else (0.0, 0.0)


def facts_of(run: Trace, key: str) -> Facts:
    """Facts of a finished run, or those that are known before the pass starts."""
    sites = run_sites(run)
    facts = Facts(
        key=key,
        spec=run.spec,
        config=run.config,
        texts=run.texts,
        source=run.source,
        target=run.target,
        records=_records_of(sites),
        sites=sites,
        device=run.device,
        dtype=run.dtype,
        torch_version=str(torch.__version__),
        interventions=tuple(map(repr, run.interventions)),
        notices=notices(run.loaded, Prompt(run.sources, run.targets), HIDE_TYPED),
    )
    if not run.steps:
        return facts
    return replace(
        facts,
        steps=run.steps,
        residual_norms={name: array(norms) for name, norms in run.residual_norms.items()},
        non_finite=run.non_finite,
        seconds=run.seconds,
        held_bytes=run.nbytes,
        predicted_bytes=run.predicted_bytes,
    )


def run_sites(run: Trace) -> tuple[Site, ...]:
    """The sites of a run, in the order of the pass."""
    config = run.config
    lengths: dict[Side, int] = {"source": len(run.source), "target": 0 if run.target is None else len(run.target)}
    sites, start = [], 0
    for stack, layers in config.stacks:
        query: Side = "target" if stack == "decoder" and run.target is not None else "source"
        kinds: tuple[SiteId, ...] = ("encoder",) if stack == "encoder" else ("decoder",)
        if stack == "decoder" and config.kind == "encoder-decoder":
            kinds = ("decoder", "cross")
        stop = start + len(kinds) * layers
        for i, kind in enumerate(kinds):
            key: Side = "source" if kind == "cross" else query
            records = tuple(range(start + i, stop, len(kinds)))
            sizes = (config.n_heads, config.n_kv_heads, lengths[query], lengths[key])
            sites.append(Site(kind, records, query, key, *sizes))
        start = stop
    return tuple(sites)


def _records_of(sites: tuple[Site, ...]) -> tuple[RecordFacts, ...]:
    found: dict[int, RecordFacts] = {}
    for site in sites:
        stack = "encoder" if site.id == "encoder" else "decoder"
        attention = "cross_attn" if site.id == "cross" else "attn"
        for layer, at in enumerate(site.records):
            name = f"{stack}.blocks.{layer}.{attention}"
            sizes = (site.n_heads, site.n_kv_heads, site.n_query, site.n_key)
            found[at] = RecordFacts(name, stack, layer, attention, *sizes)
    return tuple(found[at] for at in sorted(found))
