"""The mask of one head as code: for PyTorch's attention, its MultiheadAttention, Hugging Face's models and FlexAttention."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from app.rooms.masks import words


@dataclass(frozen=True)
class Rule:
    """A mask as an expression of a query q and a key k, which is True where q may look at k."""

    text: str
    visible: np.ndarray  # bool [query, key]


@dataclass(frozen=True)
class Snippet:
    """One way to hand a mask over: `says` tells what True means there; running `code` gives the mask under the name `visible`."""

    name: str
    says: str
    code: str


def rules(n_query: int, n_key: int, windows: Sequence[int]) -> list[Rule]:
    """The expressions that a mask may be near: all, causal, and windows of these widths, with the first key kept and without."""
    q, k = np.arange(n_query)[:, None], np.arange(n_key)
    found = [Rule("k >= 0", np.ones((n_query, n_key), bool)), Rule("k <= q", k <= q)]
    for w in windows:
        back = (k <= q) & (q - k < w)
        both = abs(q - k) < w
        found += [
            Rule(f"(k <= q) & (q - k < {w})", back),
            Rule(f"(k <= q) & ((q - k < {w}) | (k == 0))", back | ((k <= q) & (k == 0))),
            Rule(f"(q - k < {w}) & (k - q < {w})", both),
            Rule(f"(q - k < {w}) & (k - q < {w}) | (k == 0)", both | (k == 0)),
        ]
    return found


def rule_of(visible: np.ndarray, windows: Sequence[int]) -> tuple[Rule, list[tuple[int, list[int], bool]]]:
    """The nearest expression, and the cells in which the mask differs from it: query, keys, and whether it may look at them."""
    n_query, n_key = visible.shape
    nearest = min(rules(n_query, n_key, windows), key=lambda rule: int((rule.visible != visible).sum()))
    cells = []
    for query in range(len(visible)):
        for may in (False, True):
            keys = np.flatnonzero((nearest.visible[query] != visible[query]) & (visible[query] == may)).tolist()
            if keys:
                cells.append((query, keys, may))
    return nearest, cells


def snippets(visible: np.ndarray, windows: Sequence[int] = ()) -> list[Snippet]:
    """The same mask, bool [query, key] with True where a query may look, in four forms. windows: widths that its rule may have."""
    n_query, n_key = visible.shape
    rule, cells = rule_of(visible, windows)
    begin = [
        "import torch",
        f"q, k = torch.arange({n_query})[:, None], torch.arange({n_key})",
        f"visible = ({rule.text}).expand({n_query}, {n_key}).clone()  # [query, key]: True = may look",
        *(f"visible[{query}, {keys}] = {may}" for query, keys, may in cells),
    ]
    body = "visible[q, k]" if cells else rule.text
    return [
        Snippet(
            "attn_mask",
            words.CODE_SDPA,
            _lines(
                begin,
                "from torch.nn.functional import scaled_dot_product_attention",
                "# query [batch, head, query, d], key and value [batch, head, key, d]",
                "attend = lambda query, key, value: scaled_dot_product_attention(query, key, value, attn_mask=visible)",
            ),
        ),
        Snippet(
            "key_padding_mask",
            words.CODE_MHA,
            _lines(
                begin,
                "hidden = ~visible  # attn_mask of nn.MultiheadAttention: True = may not look",
                "ignored = ~visible.any(0)[None]  # key_padding_mask [batch, key]: True = no query may look",
                "# attention = torch.nn.MultiheadAttention(d_model, n_heads, batch_first=True)",
                "attend = lambda attention, x: attention(x, x, x, attn_mask=hidden, key_padding_mask=ignored)",
            ),
        ),
        Snippet(
            "attention_mask",
            words.CODE_HF,
            _lines(
                begin,
                "kept = visible.any(0)[None].long()  # attention_mask [batch, key]: 1 = a real token; the model adds its own mask",
                "lowest = torch.finfo(torch.float32).min",
                "four = torch.zeros(visible.shape).masked_fill(~visible, lowest)[None, None]  # [batch, 1, query, key], added to scores",
                "attend = lambda model, input_ids: model(input_ids, attention_mask=four)",
            ),
        ),
        Snippet(
            "mask_mod",
            words.CODE_FLEX,
            _lines(
                begin,
                "from torch.nn.attention.flex_attention import create_block_mask, flex_attention",
                "def mask_mod(batch, head, q, k):  # True = may look",
                f"    return {body}",
                f"block_mask = create_block_mask(mask_mod, None, None, {n_query}, {n_key}, device=visible.device)",
                "# torch.compile(flex_attention) is the fast one",
                "attend = lambda query, key, value: flex_attention(query, key, value, block_mask=block_mask)",
            ),
        ),
    ]


def _lines(begin: Sequence[str], *more: str) -> str:
    return "\n".join([*begin, *more]) + "\n"
