"""Suggested steps of a walkthrough: the step that shows each finding, and the MLP with the largest effect on the next token."""

from __future__ import annotations

from collections.abc import Sequence
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
TURN_FROM = 0.4  # part of a weight that must be due to RoPE
REST_BELOW = 0.5  # of the median norm of a value: a weight on a shorter value has next to no effect
MLP_FROM = 2.0  # logits that an MLP adds to the next token


@dataclass(frozen=True)
class Worth:
    """One step of one layer at one position, and the reason to show it."""

    kind: WorthKind
    stack: str
    site: Site
    layer: int
    head: int | None  # None for an MLP, as key
    query: int
    key: int | None
    weight: float = 0.0  # 0 for an MLP
    addition: float | None = None  # contribution of the attention edge or the MLP to the logit of `word`, if known
    word: str = ""
    unturned: float | None = None  # the weight without RoPE, for "the turn decides"
    value: float | None = None  # ‖v‖ of the key, and the median over keys, for "rests"
    median: float | None = None


def worth(run: Trace, found: Sequence[Finding] | None = None) -> tuple[Worth, ...]:
    """Suggested steps of a run, in the order of ORDER, at most one of each kind. found: core.read.findings of the run.

    Each finding has its own step. "one back" becomes "the turn decides" if the weight without RoPE is smaller by 0.4 or more.
    "rests" requires a value shorter than half the median of its head, so that the large weight has little effect. "the MLP decides"
    is the MLP that adds most to the logit of the most likely next token at the last position, from 2 on (the last of equal ones).
    Layers without steps (core.read.layer_walk) are left out. Raises Outdated after a training, and TooLarge as walk() does.
    """
    walkable = [finding for finding in found or findings(run) if unwalked(run.config, finding.layer) is None]
    steps = [*(_step_of(run, finding) for finding in walkable), _decisive_mlp(run)]
    return tuple(sorted((step for step in steps if step is not None), key=lambda step: ORDER.index(step.kind)))


def _step_of(run: Trace, finding: Finding) -> Worth | None:
    site, head, key, weight = finding.site, finding.head, finding.key, finding.weight
    place = (finding.stack, site, finding.layer, head, finding.query, key, weight)
    if finding.kind not in ("one back", "rests"):
        return Worth(finding.kind, *place, addition=finding.addition, word=finding.word)
    of = walk(run, finding.stack, finding.layer, finding.query)
    if finding.kind == "one back":
        if site != "attn" or "attn.turned" not in of.values:
            return Worth("one back", *place)
        unturned = without_turn(of)[head, key].item()
        is_due_to_rotation = weight - unturned >= TURN_FROM
        return Worth("the turn decides", *place, unturned=unturned) if is_due_to_rotation else Worth("one back", *place)
    record = of.record(site)
    norms = of.values[f"{site}.v"][head // (record.n_heads // record.n_kv_heads)].norm(dim=-1)
    real = ~torch.tensor(run.tokens_of(record)[1].padding, device=norms.device)
    value, median = float(norms[key]), float(norms[real].median())
    return Worth("rests", *place, value=value, median=median) if value < REST_BELOW * median else None


def without_turn(of: Walk) -> torch.Tensor:
    """The weights [head, key] of a layer's scores without RoPE on queries and keys, float32.

    Raises KeyError for a walk without rotary positions.
    """
    rule, q, k = of.record("attn").rule, of.values["attn.q"], of.values["attn.k"]
    if "attn.turned" not in of.values:
        raise KeyError("attn.turned")
    raw = torch.einsum("hd,hkd->hk", q, k.repeat_interleave(len(q) // len(k), 0))
    masked = of.values["attn.scores"].isneginf()
    change = (raw - of.values["attn.raw"]) * rule.scale / rule.temperature
    return (of.values["attn.scores"] + change).masked_fill(masked, -torch.inf).softmax(-1)


def _decisive_mlp(run: Trace) -> Worth | None:
    """The MLP that adds most to the most likely next token, if it adds enough."""
    if run.config.head == "none":
        return None
    profile = strip(run, run.config.stacks[-1][0])
    if profile.adds is None or profile.next_word is None or "MLP" not in profile.adds:
        return None
    adds = profile.adds["MLP"]
    layer = int(np.flatnonzero(adds == adds.max())[-1])
    if adds[layer] < MLP_FROM or unwalked(run.config, layer) is not None:
        return None
    place = (profile.stack, "attn", layer, None, profile.position, None)
    return Worth("the MLP decides", *place, addition=float(adds[layer]), word=profile.next_word[0])
