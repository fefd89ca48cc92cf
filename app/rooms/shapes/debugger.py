"""The shape debugger: what becomes of a line with one transpose or one axis changed, with the reason in words."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Any

from app.rooms.shapes import words
from core.labs import sizes
from core.labs.sizes import Attempt
from core.model.config import ModelConfig

# kind of row -> which lines can be tried there
PLACES = {
    "qkv": "qkv",
    "split_qkv": "split",
    "split_q": "split",
    "scores": "scores",
    "masked": "mask",
    "weights": "weights",
    "z": "z",
    "join": "join",
    "position": "position",
    "up": "ffn",
    "mlp_out": "ffn",
}


def tries(config: ModelConfig, place: str, *, batch: int, n: int, n_key: int) -> tuple[Attempt, ...]:
    """What becomes of each line of a place, for n queries, n_key keys, and texts of n tokens, with the reason spelled out."""
    found = sizes.attempts(config, place, batch=batch, n=n, n_key=n_key)
    said = words.STRIDES.format(
        **{name: str(list(steps)) for name, steps in sizes.strides(config, batch=batch, n=n).items()}
    )

    def why(one: Attempt) -> str:
        reasons = [words.WHY[one.why]] if one.why else []
        if place == "qkv" and one.verdict == "right":
            reasons.append(words.ONE_PRODUCT if "qkv" in one.code else words.THREE_PRODUCTS)
        return " ".join([*reasons, said] if ".view(" in one.code and place == "join" else reasons)

    return tuple(replace(one, why=why(one)) for one in found)


def plain(one: Attempt) -> dict[str, Any]:
    """A try as the browser reads it."""
    return asdict(one)
