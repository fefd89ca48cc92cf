"""Steps of a run that are worth stepping through: findings, each at the step that shows it, and the MLP that decides the next word."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch

from ..run.trace import Trace
from .directions import Site
from .findings import Finding, Kind, findings
from .layer_walk import Walk, unwalked, walk
from .strip import strip

WorthKind = Literal[Kind, "the turn decides", "the MLP decides"]
ORDER: tuple[WorthKind, ...] = (
    *("writes", "stands out", "largest push", "one word", "the turn decides", "one back", "one ahead", "rests"),
    *("after a repeat", "same word", "votes against", "the MLP decides"),
)
TURN_FROM = 0.4  # of a weight, that is gone where queries and keys are not turned
REST_BELOW = 0.5  # of the median length of a value: a weight on a shorter one brings next to nothing
MLP_FROM = 2.0  # logits that an MLP adds to the next word


@dataclass(frozen=True)
class Worth:
    """One step of one layer at one word, and the reason for looking at it.

    Of an MLP head and key are None and weight is 0. addition is what the look or the MLP adds to the logit of `word`; None where
    that is not known.
    """

    kind: WorthKind
    stack: str
    site: Site
    layer: int
    head: int | None
    query: int
    key: int | None
    weight: float = 0.0
    addition: float | None = None
    word: str = ""
    unturned: float | None = None  # the weight without rotary positions, of "the turn decides"
    value: float | None = None  # ‖v‖ of the key, and the median over keys, of "rests"
    median: float | None = None


def worth(run: Trace, found: Sequence[Finding] | None = None) -> tuple[Worth, ...]:
    """The steps of a run that are worth a look, in the order of ORDER, each of another kind. found: core.read.findings of the run.

    Of each finding the step that shows it. "one back" becomes "the turn decides" where the weight, minus the weight that the same
    scores give without rotary positions, is 0.4 or more. "rests" needs a value that is shorter than half the median of its head:
    only then does a large weight bring little. "the MLP decides": the MLP that adds most to the logit of the likeliest next word, at the
    last word, from 2 on; the last of the layers if two add the same. Layers without steps (core.read.layer_walk) are left out.
    Raises Outdated after a training, and TooLarge where a walk is.
    """
    kinds = [one for one in found or findings(run) if unwalked(run.config, one.layer) is None]
    chosen = [judged for one in kinds if (judged := _judged(run, one)) is not None]
    return tuple(sorted([*chosen, *_deciding(run)], key=lambda one: ORDER.index(one.kind)))


def _judged(run: Trace, one: Finding) -> Worth | None:
    place = (one.stack, one.site, one.layer, one.head, one.query, one.key, one.weight)
    judge: Callable[[Walk, Finding], Worth | None] | None = {"one back": _turn, "rests": _rest}.get(one.kind)
    if judge is None:
        return Worth(one.kind, *place, addition=one.addition, word=one.word)
    return judge(walk(run, one.stack, one.layer, one.query), one)


def _turn(of: Walk, one: Finding) -> Worth:
    """The look at the word before: decided by the turn of query and key, or only where it is."""
    place = (one.stack, one.site, one.layer, one.head, one.query, one.key, one.weight)
    if one.site != "attn" or "attn.turned" not in of.values:
        return Worth("one back", *place)
    unturned = without_turn(of)[one.head, one.key].item()
    if one.weight - unturned < TURN_FROM:
        return Worth("one back", *place)
    return Worth("the turn decides", *place, unturned=unturned)


def without_turn(of: Walk) -> torch.Tensor:
    """The weights [head, key] that a layer's scores would give if neither query nor keys were turned, all else the same, float32.

    Raises KeyError for a walk without rotary positions.
    """
    rule, q, k = of.record("attn").rule, of.values["attn.q"], of.values["attn.k"]
    if "attn.turned" not in of.values:
        raise KeyError("attn.turned")
    per = len(q) // len(k)
    raw = torch.einsum("hd,hkd->hk", q, k.repeat_interleave(per, 0))
    hidden = of.values["attn.scores"].isneginf()
    change = (raw - of.values["attn.raw"]) * rule.scale / rule.temperature
    return (of.values["attn.scores"] + change).masked_fill(hidden, -torch.inf).softmax(-1)


def _rest(of: Walk, one: Finding) -> Worth | None:
    """A weight that rests, where the value that it is on is short."""
    record = of.record(one.site)
    lengths = of.values[f"{one.site}.v"][one.head // (record.n_heads // record.n_kv_heads)].norm(dim=-1)
    tokens = of.run.tokens_of(record)[1]
    real = ~torch.tensor(tokens.padding, device=lengths.device)
    value, median = float(lengths[one.key]), float(lengths[real].median())
    if value >= REST_BELOW * median:
        return None
    place = (one.stack, one.site, one.layer, one.head, one.query, one.key, one.weight)
    return Worth("rests", *place, value=value, median=median)


def _deciding(run: Trace) -> Iterator[Worth]:
    """The MLP that adds most to the likeliest next word, if it adds enough."""
    if run.config.head == "none":
        return
    whole = strip(run, run.config.stacks[-1][0])
    if whole.adds is None or whole.next_word is None or "MLP" not in whole.adds:
        return
    adds = whole.adds["MLP"]
    layer = int(np.flatnonzero(adds == adds.max())[-1])
    if adds[layer] < MLP_FROM or unwalked(run.config, layer) is not None:
        return
    yield Worth(
        *("the MLP decides", whole.stack, "attn", layer, None, whole.position, None),
        addition=float(adds[layer]),
        word=whole.next_word[0],
    )
