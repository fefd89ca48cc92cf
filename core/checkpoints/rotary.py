"""Rotary settings in published files: rope_scaling and rope_theta in older ones, rope_parameters in newer ones."""

from __future__ import annotations

from typing import Any

from ..errors import CheckpointError
from ..model.config import RotaryScaling
from .family import Reader, Theirs, shown

KINDS = ("default", "linear", "dynamic", "yarn", "llama3", "longrope")
OLD_NAMES = {"su": "longrope"}  # in the first Phi-3 files


def rope(c: Theirs, layers: str = "full_attention") -> Theirs:
    """The object with the rotary settings. Models with two kinds of layers have one for each."""
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
    """1.0, for families whose published code rotates whole heads. Raises CheckpointError if a smaller share is stated.

    Published code ignores the key and other programs (vLLM) read it, so such a file is ambiguous.
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
    """The kind of scaling. Raises CheckpointError for an unsupported one."""
    r = rope(c)
    kind = r.str("rope_type", None) or r.str("type", "default")
    kind = OLD_NAMES.get(kind, kind)
    if kind not in supported:
        raise CheckpointError(
            f"{r.where}: rotary positions of type {shown(kind)} are not supported. Supported are {', '.join(supported)}."
        )
    return kind


def unscaled(c: Theirs) -> None:
    """For families whose published code has only a kind of scaling that is not supported here."""
    rotary_kind(c, ("default",))


def phi3_scaling(c: Theirs) -> RotaryScaling | None:
    """LongRoPE or none; Phi-3's first files call it "su" or "yarn"."""
    if rotary_kind(c, ("default", "longrope", "yarn")) == "yarn":
        r = rope(c)
        c = Theirs({**c.values, "rope_scaling": {**r.values, "rope_type": "longrope"}}, c.where, c.whole)
    return rotary_scaling(c)


def rotary_scaling(c: Theirs) -> RotaryScaling | None:
    """The scaling; None if there is none. Raises CheckpointError for an unsupported kind or missing settings."""
    r, kind = rope(c), rotary_kind(c)
    if kind == "default":
        return None
    n_ctx = c.int("max_position_embeddings")
    original = (
        c.int("original_max_position_embeddings", None) or r.int("original_max_position_embeddings", None) or n_ctx
    )
    # Published code scales `dynamic` from max_position_embeddings and ignores the original length.
    settings: dict[str, Any] = dict(kind=kind, n_ctx_original=n_ctx if kind == "dynamic" else original)
    settings["factor"] = r.float("factor", n_ctx / original) if kind in ("yarn", "longrope") else r.float("factor")
    if kind == "llama3":
        settings |= dict(low_freq_factor=r.float("low_freq_factor"), high_freq_factor=r.float("high_freq_factor"))
    if kind == "yarn":
        settings |= dict(beta_fast=r.float("beta_fast", None) or 32.0, beta_slow=r.float("beta_slow", None) or 1.0)
        settings |= dict(truncate=r.bool("truncate", True), attention_factor=r.float("attention_factor", None))
        settings |= dict(mscale=r.float("mscale", None), mscale_all_dim=r.float("mscale_all_dim", None))
    if kind == "longrope":
        settings["factor"] = max(settings["factor"], 1.0)  # only for the attention factor, which is at least 1
        settings |= dict(short_factors=_factors(r, "short_factor"), long_factors=_factors(r, "long_factor"))
        settings |= dict(attention_factor=r.float("attention_factor", None))
    return RotaryScaling(**settings)


def _factors(r: Theirs, key: str) -> tuple[float, ...]:
    """One divisor per frequency."""
    value = r.any(key)
    numbers = isinstance(value, list) and all(isinstance(x, int | float) and not isinstance(x, bool) for x in value)
    if not numbers or not all(0 < x < 1e6 for x in value):
        raise CheckpointError(f"{r.where}: {key} is {shown(value)}, but it must be a list of positive numbers.")
    return tuple(map(float, value))
