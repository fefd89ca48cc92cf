"""Rotary positions as published files state them: rope_scaling and rope_theta of older files, rope_parameters of newer ones."""

from __future__ import annotations

from typing import Any

from ..errors import CheckpointError
from ..model.config import RotaryScaling
from .family import Reader, Theirs, shown

KINDS = ("default", "linear", "dynamic", "yarn", "llama3", "longrope")
OLD_NAMES = {"su": "longrope"}  # in the first Phi-3 files


def rope(c: Theirs, layers: str = "full_attention") -> Theirs:
    """The object that holds the rotary numbers. Models with two kinds of layers keep one for each."""
    parameters, scaling = c.inside("rope_parameters"), c.inside("rope_scaling")
    if layers in parameters.values:
        return parameters.inside(layers)
    return scaling if scaling.values else parameters


def rotary_base(key: str = "rope_theta", default: float = 10_000.0) -> Reader:
    def read(c: Theirs) -> float:
        stated = rope(c).float("rope_theta", None)
        base = c.float(key, default) if stated is None else stated
        if base <= 1:
            raise CheckpointError(f"{c.where}: rope_theta is {base}, but the base of rotary angles must be above 1.")
        return base

    return read


def rotary_fraction(key: str = "partial_rotary_factor", default: float = 1.0) -> Reader:
    def read(c: Theirs) -> float:
        share = rope(c).float("partial_rotary_factor", None)
        return c.float(key, default) if share is None else share

    return read


def all_turns(c: Theirs) -> float:
    """For families whose published code turns all of a head. Raises CheckpointError for a share, which it never reads.

    Others do read it there (vLLM), so that it is not known which of two models such a file means.
    """
    stated = [
        rope(c, layers).float("partial_rotary_factor", None) for layers in ("full_attention", "sliding_attention")
    ]
    share = next((s for s in (*stated, c.float("partial_rotary_factor", None)) if s is not None and s != 1), 1.0)
    if share != 1:
        raise CheckpointError(
            f"{c.where}: partial_rotary_factor is {share:g}, but the published code of this model type never reads it and "
            "turns all of a head, while other programs do turn a part of it. Take the key out for the first, which is what "
            "transformers computes."
        )
    return share


def rotary_kind(c: Theirs, supported: tuple[str, ...] = KINDS) -> str:
    """Raises CheckpointError by name for a kind that we do not compute."""
    r = rope(c)
    kind = r.str("rope_type", None) or r.str("type", "default")
    kind = OLD_NAMES.get(kind, kind)
    if kind not in supported:
        raise CheckpointError(
            f"{r.where}: rotary positions of type {shown(kind)} are not supported. Supported are {', '.join(supported)}."
        )
    return kind


def unscaled(c: Theirs) -> None:
    """For families whose published code has no scaling but one that we do not compute."""
    rotary_kind(c, ("default",))


def phi3_scaling(c: Theirs) -> RotaryScaling | None:
    """Long-rope or none; the first files of Phi-3 call it "su" or "yarn"."""
    if rotary_kind(c, ("default", "longrope", "yarn")) == "yarn":
        r = rope(c)
        c = Theirs({**c.values, "rope_scaling": {**r.values, "rope_type": "longrope"}}, c.where, c.whole)
    return rotary_scaling(c)


def rotary_scaling(c: Theirs) -> RotaryScaling | None:
    """Raises CheckpointError for a kind that we do not compute, or without its numbers."""
    r, kind = rope(c), rotary_kind(c)
    if kind == "default":
        return None
    n_ctx = c.int("max_position_embeddings")
    original = (
        c.int("original_max_position_embeddings", None) or r.int("original_max_position_embeddings", None) or n_ctx
    )
    # Published code lets `dynamic` grow from the stated length, whatever the file says it was trained on.
    settings: dict[str, Any] = dict(kind=kind, n_ctx_original=n_ctx if kind == "dynamic" else original)
    settings["factor"] = r.float("factor", n_ctx / original) if kind in ("yarn", "longrope") else r.float("factor")
    if kind == "llama3":
        settings |= dict(low_freq_factor=r.float("low_freq_factor"), high_freq_factor=r.float("high_freq_factor"))
    if kind == "yarn":
        settings |= dict(beta_fast=r.float("beta_fast", None) or 32.0, beta_slow=r.float("beta_slow", None) or 1.0)
        settings |= dict(truncate=r.bool("truncate", True), attention_factor=r.float("attention_factor", None))
        settings |= dict(mscale=r.float("mscale", None), mscale_all_dim=r.float("mscale_all_dim", None))
    if kind == "longrope":
        settings["factor"] = max(
            settings["factor"], 1.0
        )  # used only for the attention factor, which is 1 for a smaller one
        settings |= dict(short_factors=_factors(r, "short_factor"), long_factors=_factors(r, "long_factor"))
        settings |= dict(attention_factor=r.float("attention_factor", None))
    return RotaryScaling(**settings)


def _factors(r: Theirs, key: str) -> tuple[float, ...]:
    """A divisor for each frequency."""
    value = r.any(key)
    numbers = isinstance(value, list) and all(isinstance(x, int | float) and not isinstance(x, bool) for x in value)
    if not numbers or not all(0 < x < 1e6 for x in value):
        raise CheckpointError(f"{r.where}: {key} is {shown(value)}, but it must be a list of positive numbers.")
    return tuple(map(float, value))
