"""A walk of core.read made into plain data, and what is kept of one."""

from __future__ import annotations

from dataclasses import fields
from functools import partial

import numpy as np
import torch
from torch import nn

from ...learn.residual_paths import residual_paths
from ...model.text import from_ids
from ...model.transformer import RMSNorm
from ...read.additions import additions, by_head, loudest, start
from ...read.ending import ending
from ...read.experts import routing
from ...read.layer_walk import Walk
from ...read.strip import strip
from ...trace import Trace
from ..maps.compute import array
from .answers import (
    EVERYONES,
    AddedFacts,
    EndingFacts,
    ExpertFacts,
    LastNormFacts,
    NormFacts,
    ResidualPathFacts,
    SiteWalk,
    StripFacts,
    WalkFacts,
)


def walk_facts(walk: Walk) -> WalkFacts:
    """Raises Outdated after a training."""
    begun = start(walk.run, walk.stack, walk.query)
    loud = loudest(walk)
    return WalkFacts(
        walk.stack,
        walk.layer,
        walk.query,
        {step: array(values) for step, values in walk.values.items()},
        norms_of(walk),
        tuple(site_walk(walk, site) for site in walk.inputs if site != "mlp"),
        {name: array(vector) for name, vector in begun.parts},
        array(begun.embed),
        begun.is_normed,
        tuple(loud.indices.tolist()),
        tuple(loud.lengths.tolist()),
        tuple(EVERYONES if number is None else number for number in walk.chosen),
    )


def norms_of(walk: Walk) -> dict[str, NormFacts]:
    found: dict[str, NormFacts] = {}
    for step in walk.steps:
        part, _, name = step.rpartition(".")
        if name not in ("norm", "out_norm"):
            continue
        which = {"attn": "attn", "cross_attn": "cross", "mlp": "mlp"}[part]
        norm = walk.block.get_submodule(f"{which}_{name}")
        assert isinstance(norm, nn.LayerNorm | RMSNorm)
        before = walk.before_norm[step] if name == "norm" else walk.values[f"{part}.out"][None]
        bias = norm.bias if isinstance(norm, nn.LayerNorm) else None
        found[step] = NormFacts(
            array(before),
            array(norm.weight.detach()),
            None if bias is None else array(bias.detach()),
            norm.eps,
            isinstance(norm, nn.LayerNorm),
        )
    return found


def site_walk(walk: Walk, site: str) -> SiteWalk:
    record = walk.record(site)
    rule = record.rule
    queries = torch.tensor([walk.query], device=record.device)
    keys = torch.arange(record.n_key, device=record.device)
    bias, terms = None, dict[str, np.ndarray]()
    if rule.bias is not None:
        blocks = {name: term[0, :, 0] for name, term in rule.bias.terms(queries, keys).items()}  # [head or 1, key]
        terms = {name: array(block.expand(record.n_heads, -1)) for name, block in blocks.items()}
        bias = sum(terms.values(), np.zeros(1, np.float32))
    heads = range(record.n_heads) if rule.mask.heads_differ else range(1)
    reasons = torch.stack([rule.mask.reasons(queries, keys, head)[0] for head in heads])
    return SiteWalk(
        site,
        next(i for i, other in enumerate(walk.run.attention) if other.name == record.name),
        array(walk.turned_keys[site]),
        rule.scale,
        rule.temperature,
        bias,
        terms if len(terms) > 1 else {},
        reasons.cpu().numpy(),
        array(by_head(walk, site)),
    )


def added(run: Trace, stack: str) -> tuple[AddedFacts, ...]:
    return tuple(AddedFacts(one.layer, one.sublayer, array(one.lengths)) for one in additions(run, stack))


def strip_facts(run: Trace, stack: str, position: int | None) -> StripFacts:
    """Raises KeyError for a stack, IndexError for a position, and Outdated after a training."""
    found = strip(run, stack, position)
    next_word = None
    if found.next_word is not None:
        token, _, chance = found.next_word
        next_word = (from_ids(run.loaded.tokenizer, (token,)).labels[0], chance)
    return StripFacts(
        stack,
        found.position,
        array(found.stream),
        {name: array(lengths) for name, lengths in found.lengths.items()},
        None if found.adds is None else {name: array(values) for name, values in found.adds.items()},
        next_word,
        None if found.wires is None else array(found.wires),
    )


def ending_facts(run: Trace, position: int | None, k: int) -> EndingFacts:
    """Raises TextError for models without a head, IndexError for a position, and Outdated after a training."""
    found, norm = ending(run, position, k), None
    if (own := found.norm) is not None:
        norm = LastNormFacts(own.centre, own.scale, array(own.gain), None if own.shift is None else array(own.shift))
    return EndingFacts(
        found.position,
        array(found.before),
        array(found.after),
        norm,
        found.labels,
        tuple(found.logits.tolist()),
        tuple(found.probabilities.tolist()),
        found.log_sum_exp,
        found.mean,
        found.deviation,
        found.lowest,
        array(found.losses),
    )


def residual_path_facts() -> tuple[ResidualPathFacts, ...]:
    return tuple(
        ResidualPathFacts(one.norm, one.residual, tuple(one.gradients.tolist()), tuple(one.alike.tolist()))
        for one in residual_paths()
    )


def expert_facts(run: Trace, stack: str) -> ExpertFacts:
    """Raises TextError for a stack without experts, TooLarge and Outdated."""
    found = routing(run, stack)
    numbers = found.chosen.cpu().numpy().astype("int32")
    return ExpertFacts(stack, found.layers, found.n_experts, numbers, array(found.weights), array(found.load))


def without_run(walk: Walk) -> partial[Walk]:
    """A walk's own numbers, for the same run again: runs are the engine's to hold, and to drop."""
    return partial(Walk, **{field.name: getattr(walk, field.name) for field in fields(walk) if field.name != "run"})


def walk_bytes(kept: partial[Walk]) -> int:
    """About what it holds: the whole of whatever its tensors are parts of."""
    own = kept.keywords
    tensors = [x for name in ("values", "before_norm", "turned_keys") for x in own[name].values()]
    tensors += [x for pair in own["inputs"].values() for x in pair]
    return 16_384 + sum({x.untyped_storage().data_ptr(): x.untyped_storage().nbytes() for x in tensors}.values())
