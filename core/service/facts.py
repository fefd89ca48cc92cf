"""facts_of(): what a trace, finished or not, says about itself in plain data."""

from __future__ import annotations

from dataclasses import replace

import torch

from ..model.config import ModelConfig
from ..run.prompt import HIDE_TYPED, Prompt, notices
from ..trace import Trace
from .answers import Facts, RecordFacts, Side, Site, SiteId
from .maps.compute import array


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
        residual_norms={name: array(norms) for name, norms in run.residual_norms.items()},
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
