"""Context extension: RoPE scaling of the same weights, its effect on the loss, and texts with a gap in their positions."""

from __future__ import annotations

import copy
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import torch

from ..checkpoints import Loaded
from ..edits import DropPositions, SetPositions
from ..errors import Refused
from ..model.config import ModelConfig, RotaryScaling
from ..model.positions import rotary_frequencies
from ..model.text import Tokens
from ..run.trace import Trace, trace
from .conditional_loss import given

Rule = Literal["none", "linear", "dynamic", "yarn", "llama3"]
RULES: tuple[Rule, ...] = ("none", "linear", "dynamic", "yarn", "llama3")  # none: the trained positions


def under(config: ModelConfig, rule: Rule, factor: float) -> ModelConfig:
    """A config whose rotary positions reach `factor` times the trained context (n_ctx), by one of RULES.

    "none" or a factor of 1 returns the config itself with its own scaling, which any other rule replaces. Raises Refused for
    positions that are not rotary, for an unknown rule, and for a factor below 1.
    """
    if config.position != "rotary":
        raise Refused(
            f"Only rotary positions can be slowed, and these are {config.position}. Choose a model with rotary positions."
        )
    if rule not in RULES:
        raise Refused(f"There is no rule {rule!r} for longer texts. It is one of {', '.join(RULES)}.")
    if not (math.isfinite(factor) and factor >= 1):
        raise Refused(f"A text is made longer by a factor of 1 or more, and not by {factor:g}.")
    if rule == "none" or factor == 1:
        return config
    return replace(config, rotary_scaling=RotaryScaling(kind=rule, factor=factor, n_ctx_original=config.n_ctx))


def rescaled(loaded: Loaded, rule: Rule, factor: float) -> Loaded:
    """The model with another RoPE scaling (under()); it shares all weights and hook points with `loaded`.

    Neither is changed, so threads may run both at once. Cached angles are stored by their rule.
    """
    config = under(loaded.config, rule, factor)
    if config is loaded.config:
        return loaded
    model = copy.copy(loaded.model)
    model._modules = dict(model._modules)
    model.config = config
    for name, _ in config.stacks:
        stack: Any = copy.copy(loaded.model.get_submodule(name))
        stack.config = config
        model._modules[name] = stack
    return replace(loaded, model=model, config=config)


@dataclass(frozen=True, eq=False)
class Stretch:
    """Frequencies under one rule, for a text of `factor` times the trained length."""

    rule: Rule
    frequencies: torch.Tensor  # float32 [d_rotary/2]: radians per position
    factor: float  # YaRN's factor on q and k; 1 otherwise


def stretches(config: ModelConfig, factor: float) -> tuple[Stretch, ...]:
    """Every rule's frequencies for a text of factor · n_ctx tokens."""
    n = round(config.n_ctx * factor)
    return tuple(Stretch(rule, *rotary_frequencies(under(config, rule, factor), n)) for rule in RULES)


def end_loss(loaded: Loaded, ids: Sequence[int], last: int = 64, dropped: bool = False) -> float:
    """Mean loss, in nats, of the last `last` predictions in a text.

    With `dropped`, positions are removed. Raises TextError for a model that does not predict the next token.
    """
    run = trace(loaded, ids=ids, interventions=[DropPositions()] if dropped else [])
    n = len(run.source)
    return given(run, range(max(0, n - 1 - last), n - 1)).losses.mean().item()


def gap_after(tokens: Tokens) -> int:
    """The token after which a gap is inserted: the last comma before two or more tokens, else the middle one.

    Raises Refused for a text of fewer than two tokens.
    """
    n = len(tokens)
    if n < 2:
        raise Refused("A text of one token has no room for a gap. Type two words or more.")
    commas = [i for i in range(1, n - 2) if tokens.labels[i].strip() in {",", ";", ":", "，", "、"}]
    return commas[-1] if commas else (n - 1) // 2


def chances_by_gap(
    run: Trace, rule: Rule, factor: float, gaps: Sequence[int], after: int, token: int | None = None
) -> Iterator[tuple[int, float]]:
    """Id and probability of one next token after the whole text, for each gap: the positions that are skipped after token `after`.

    `token` None is the model's prediction on the text without a gap. One run of the text for each gap.
    """
    ids = list(run.source.ids)
    loaded = rescaled(run.loaded, rule, factor)
    if (head := loaded.model.head) is None:
        raise Refused(f"{loaded.spec.title} writes no next word. Choose a model that does.")
    if token is None:
        token = trace(run.loaded, ids=ids).predictions([len(ids) - 1], k=1).ids[0][0]
    for gap in gaps:
        places = [i if i <= after else i + gap for i in range(len(ids))]
        apart = trace(loaded, ids=ids, interventions=[SetPositions(places)])
        last = torch.tensor([len(ids) - 1], device=apart.device)
        with torch.inference_mode():
            yield token, head(apart.final_residual(last)[None])[0, 0].float().softmax(-1)[token].item()
