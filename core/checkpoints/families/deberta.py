"""DeBERTa: encoders whose attention scores add content and distance terms."""

from __future__ import annotations

from dataclasses import replace

from ...errors import CheckpointError
from ..family import Family, Source, Theirs, fused, number, shown, whole
from .encoders import BERT_BLOCK, BERT_FIELDS, BERT_FIXED, BERT_REQUIRES, layer_rows


def _position_terms(c: Theirs) -> tuple[str, ...]:
    """Terms in `pos_att_type`, a list or a string such as "p2c|c2p"."""
    stated = c.any("pos_att_type", None) or []
    words = [word.strip() for word in stated.lower().split("|")] if isinstance(stated, str) else stated
    if not isinstance(words, list) or any(word not in ("c2p", "p2c") for word in words):
        raise CheckpointError(f"{c.where}: pos_att_type is {shown(stated)}, but it must be c2p, p2c or both.")
    return tuple(term for term in ("c2p", "p2c") if term in words)


def _deberta_position(c: Theirs) -> str:
    """Distances in the scores, learned positions, or neither. Published models have only distances."""
    learned = c.bool("position_biased_input", True)
    if not c.bool("relative_attention", False):
        return "learned" if learned else "none"
    if learned:
        raise CheckpointError(
            f"{c.where}: DeBERTa with relative_attention and position_biased_input together is not supported; no published one has both."
        )
    if not _position_terms(c):
        return "none"
    return "disentangled"


def _deberta_scale(c: Theirs) -> float:
    """1/√(d_head · terms), where content-to-content counts as a term."""
    return (c.int("hidden_size") // c.int("num_attention_heads") * (1 + len(_position_terms(c)))) ** -0.5


def _deberta_distances(c: Theirs) -> int:
    key = "max_relative_positions"
    return c.any(key) if _is_positive(c, key) else c.int("max_position_embeddings")


def _is_positive(c: Theirs, key: str) -> bool:
    """True if a number is stated and positive; these files write -1 for none."""
    value = c.any(key, -1)
    if isinstance(value, bool) or not isinstance(value, int):
        raise CheckpointError(f"{c.where}: {key} is {shown(value)}, but it must be a whole number.")
    return value > 0


DEBERTA_V2 = Family(
    model_type="deberta-v2",
    title="DeBERTa v2 and v3",
    prefix="deberta.",
    head="mlm",
    fields=BERT_FIELDS
    | {
        "norm_eps": number("layer_norm_eps", 1e-7),
        "n_token_types": whole("type_vocab_size", 0),
        "position": _deberta_position,
        "position_terms": lambda c: _position_terms(c) if _deberta_position(c) == "disentangled" else (),
        "attn_scale": _deberta_scale,
        "n_position_buckets": lambda c: c.int("position_buckets") if _is_positive(c, "position_buckets") else 0,
        "max_relative_distance": _deberta_distances,
        "distance_norm": lambda c: "layer_norm" in c.str("norm_rel_ebd", "none").lower(),
        "own_distance_projections": lambda c: not c.bool("share_att_key", False),
    },
    fixed=BERT_FIXED,
    requires=BERT_REQUIRES | {"conv_kernel_size": (0,), "tie_word_embeddings": (True,)},
    weights=BERT_BLOCK
    | layer_rows(
        "encoder.layer.{i}.attention.self",
        attn__q="query_proj",
        attn__k="key_proj",
        attn__v="value_proj",
        attn__q_distance="pos_query_proj",
        attn__k_distance="pos_key_proj",
    )
    | {
        "encoder.distances": "encoder.rel_embeddings",
        "encoder.distance_norm": "encoder.LayerNorm",
        "head.dense": ("cls.predictions.transform.dense", "lm_predictions.lm_head.dense"),
        "head.norm": ("cls.predictions.transform.LayerNorm", "lm_predictions.lm_head.LayerNorm"),
        "head.unembed.weight": "cls.predictions.decoder.weight",
        "head.unembed.bias": (
            "cls.predictions.bias",
            "cls.predictions.decoder.bias",
            "lm_predictions.lm_head.bias",
        ),
    },
)

_SELF = "encoder.layer.{i}.attention.self"
_ROW = "encoder.blocks.{i}.attn"
DEBERTA = replace(
    DEBERTA_V2,
    model_type="deberta",
    title="DeBERTa",
    fields={
        **DEBERTA_V2.fields,
        "n_position_buckets": lambda _: 0,
        "distance_norm": lambda _: False,
        "own_distance_projections": lambda _: True,
    },
    requires=BERT_REQUIRES | {"talking_head": (False,)},
    # Keys have no bias, neither for content nor for distance.
    weights={
        row: source
        for row, source in DEBERTA_V2.weights.items()
        if not row.startswith((f"{_ROW}.q", f"{_ROW}.k", f"{_ROW}.v", "encoder.distance_norm"))
    }
    | {f"{row}.weight": source for row, source in fused(_ROW, f"{_SELF}.in_proj.weight", per_head=True).items()}
    | {
        f"{_ROW}.q.bias": f"{_SELF}.q_bias",
        f"{_ROW}.k.bias": Source(f"{_SELF}.k_bias", zeros_if_absent=True),
        f"{_ROW}.v.bias": f"{_SELF}.v_bias",
        f"{_ROW}.q_distance": f"{_SELF}.pos_q_proj",
        f"{_ROW}.k_distance.weight": f"{_SELF}.pos_proj.weight",
        f"{_ROW}.k_distance.bias": Source(f"{_SELF}.pos_proj.bias", zeros_if_absent=True),
    },
)

DEBERTAS = (DEBERTA, DEBERTA_V2)
