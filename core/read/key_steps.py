"""Key steps of a run: the residual profile of a token, and the steps of a walk worth reading."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch

from ..device import array
from ..errors import TextError
from ..run.predictions import checked_positions, labels_of
from ..run.trace_record import TraceRecord
from .attribution import Site, contributions
from .findings import Finding, Kind, findings
from .layer_walk import SUBLAYERS, Walk, unwalked, walk
from .next_token_loss import tokens_read

SUBLAYER_OF_SITE = {"attn": "attention", "cross_attn": "cross-attention"}


@dataclass(frozen=True, eq=False)
class ResidualProfile:
    """One stack at one position. The keys are the sublayers that its layers have: attention, cross-attention, MLP."""

    stack: str
    position: int
    stream: np.ndarray  # float32 [layer + 1]: ‖x‖ before every layer, and after the last
    lengths: Mapping[str, np.ndarray]  # sublayer -> float32 [layer]: norm of the vector that it adds
    adds: Mapping[str, np.ndarray] | None  # sublayer -> float32 [layer], in logits; None if the logit is not a sum
    next_word: tuple[str, float] | None  # label and probability of the most likely token
    next_id: int | None
    wires: np.ndarray | None  # float32 [layer, key]: weights of cross-attention, averaged over heads


def residual_profile(run: TraceRecord, stack: str, position: int | None = None) -> ResidualProfile:
    """The stack at a position (None: the last real token), from the norms that every run keeps and one more pass for `adds`.

    adds is the direct logit attribution (Trace.contributions) of the most likely next token. The bias of an attention's W_O counts
    with its heads. Raises KeyError for a stack that the model does not have, IndexError for a position, and Outdated after a
    training.
    """
    layers: dict[str, int] = dict(run.config.stacks)
    if stack not in layers:
        raise KeyError(f"no stack {stack!r}")
    n_layers = layers[stack]
    (position,) = checked_positions(tokens_read(run, stack), None if position is None else [position])
    known = run.residual_norms

    def norms(hook: str, *more: str) -> np.ndarray:
        hooks = [f"{stack}.blocks.{layer}.hook_{hook}" for layer in range(n_layers)]
        return array(torch.stack([known[point][position] for point in (*hooks, *more)]))

    stream = norms("resid_pre", f"{stack}.blocks.{n_layers - 1}.hook_resid_post")
    lengths = {name: norms(hook) for hook, name in SUBLAYERS.items() if f"{stack}.blocks.0.hook_{hook}" in known}
    crossing = [record for record in run.attention if record.stack == stack and record.site == "cross_attn"]
    wires = (
        np.stack([array(record.pattern(queries=[position])[:, 0].mean(0)) for record in crossing]) if crossing else None
    )
    adds = next_word = next_id = None
    if run.loaded.model.head is not None and run.config.stacks[-1][0] == stack:
        predicted = run.predictions([position], 1)
        next_id = predicted.ids[0][0]
        next_word = (labels_of(run.loaded, [next_id])[0], predicted.probs[0][0])
        adds = _logit_additions(run, position, next_id, tuple(lengths), n_layers)
    return ResidualProfile(stack, position, stream, lengths, adds, next_word, next_id, wires)


def _logit_additions(
    run: TraceRecord, position: int, token: int, sublayers: tuple[str, ...], n_layers: int
) -> Mapping[str, np.ndarray] | None:
    try:
        parts = contributions(run.forward, run.index, run.predicting_tokens, position, token).parts
    except TextError:  # a head that is not linear
        return None
    adds = {name: np.zeros(n_layers, np.float32) for name in sublayers}
    for part in parts:
        name = "MLP" if part.part == "mlp" else SUBLAYER_OF_SITE.get(part.site or part.what)
        if part.layer is not None and name is not None and part.part in ("mlp", "head", "bias"):
            adds[name][part.layer] += part.value
    return adds


WorthKind = Literal[Kind, "the turn decides", "the MLP decides"]
ORDER: tuple[WorthKind, ...] = (
    *("writes", "stands out", "largest push", "one word", "the turn decides", "one back", "one ahead", "rests"),
    *("after a repeat", "same word", "votes against", "the MLP decides"),
)
TURN_FROM = 0.4  # part of a weight that must be due to RoPE
REST_BELOW = 0.5  # of the median norm of a value: a weight on a shorter value has next to no effect
MLP_FROM = 2.0  # logits that an MLP adds to the next token


@dataclass(frozen=True)
class KeyStep:
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


def key_steps(run: TraceRecord, found: Sequence[Finding] | None = None) -> tuple[KeyStep, ...]:
    """Suggested steps of a run, in the order of ORDER, at most one of each kind. found: core.read.findings of the run.

    Each finding has its own step. "one back" becomes "the turn decides" if the weight without RoPE is smaller by 0.4 or more.
    "rests" requires a value shorter than half the median of its head, so that the large weight has little effect. "the MLP decides"
    is the MLP that adds most to the logit of the most likely next token at the last position, from 2 on (the last of equal ones).
    Layers without steps (core.read.layer_walk) are left out. Raises Outdated after a training, and TooLarge as walk() does.
    """
    walkable = [finding for finding in found or findings(run) if unwalked(run.config, finding.layer) is None]
    steps = [*(_step_of(run, finding) for finding in walkable), _decisive_mlp(run)]
    return tuple(sorted((step for step in steps if step is not None), key=lambda step: ORDER.index(step.kind)))


def _step_of(run: TraceRecord, finding: Finding) -> KeyStep | None:
    site, head, key, weight = finding.site, finding.head, finding.key, finding.weight
    place = (finding.stack, site, finding.layer, head, finding.query, key, weight)
    if finding.kind not in ("one back", "rests"):
        return KeyStep(finding.kind, *place, addition=finding.addition, word=finding.word)
    of = walk(run, finding.stack, finding.layer, finding.query)
    if finding.kind == "one back":
        if site != "attn" or "attn.turned" not in of.values:
            return KeyStep("one back", *place)
        unturned = without_rotary(of)[head, key].item()
        is_due_to_rotation = weight - unturned >= TURN_FROM
        return (
            KeyStep("the turn decides", *place, unturned=unturned)
            if is_due_to_rotation
            else KeyStep("one back", *place)
        )
    record = of.record(site)
    norms = of.values[f"{site}.v"][head // (record.n_heads // record.n_kv_heads)].norm(dim=-1)
    real = ~torch.tensor(run.tokens_of(record)[1].padding, device=norms.device)
    value, median = float(norms[key]), float(norms[real].median())
    return KeyStep("rests", *place, value=value, median=median) if value < REST_BELOW * median else None


def without_rotary(of: Walk) -> torch.Tensor:
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


def _decisive_mlp(run: TraceRecord) -> KeyStep | None:
    """The MLP that adds most to the most likely next token, if it adds enough."""
    if run.config.head == "none":
        return None
    profile = residual_profile(run, run.config.stacks[-1][0])
    if profile.adds is None or profile.next_word is None or "MLP" not in profile.adds:
        return None
    adds = profile.adds["MLP"]
    layer = int(np.flatnonzero(adds == adds.max())[-1])
    if adds[layer] < MLP_FROM or unwalked(run.config, layer) is not None:
        return None
    place = (profile.stack, "attn", layer, None, profile.position, None)
    return KeyStep("the MLP decides", *place, addition=float(adds[layer]), word=profile.next_word[0])
