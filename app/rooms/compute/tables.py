"""Numbers of the compute room, pure: a setup or a plan in, a DataFrame or a list of numbers out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import pandas as pd

from app import languages
from app.kit import numbers
from app.kit.numbers import MIB
from app.rooms.compute import words
from app.sizes import words as sizes_words
from app.sizes.setup import Setup, layers
from core.model.config import ModelConfig
from core.plan import LESSON_CLASS, PRESETS, Device, Operation, decode, parameters, prefill, roofline, with_layers
from core.plan.operations import ideal_bytes, share_of_peak

# compute

_GROUP: dict[str, str] = {
    "q": "qkv",
    "k": "qkv",
    "v": "qkv",
    "scores": "scores",
    "scale": "softmax",
    "bias": "softmax",
    "mask": "softmax",
    "softmax": "softmax",
    "weights × v": "mix",
    "fused": "fused",
    "o": "o",
}


def group_of(operation: Operation) -> str:
    """The row of the textbook table that an operation belongs to."""
    name = operation.name
    for start in ("cross attn ", "attn "):
        if name.startswith(start) and name.removeprefix(start) in _GROUP:
            return _GROUP[name.removeprefix(start)]
    if name in ("mlp up", "mlp gate", "mlp activation", "mlp product", "mlp down"):
        return "mlp"
    if name in ("unembed", "head dense"):
        return "head"
    return "embed" if name == "embedding" else "rest"


@dataclass(frozen=True)
class Formula:
    """One row of the textbook table, of one layer: exact FLOPs, their O(), numbers moved, and the O() of those."""

    flops: str
    order: str
    moved: str
    moved_order: str


def formulas(config: ModelConfig, step: str) -> dict[str, Formula]:
    """The row of each group for the whole text (prefill), or for one new token that looks at n (decode).

    Biases and cross-attention are not counted. A decoded token is O(b·d² + b·n·d): its projections know nothing of the
    tokens before it, and it has one query.
    """
    whole = step == "prefill"
    t, n, m = ("T", "n", "m") if whole else ("b", "", "n")  # tokens computed now; queries and keys of one text
    rows, cells = ("b·n", "b·n²") if whole else ("b", "b·n")
    linear, weights = f"O({rows}·d²)", f"O({rows}·d + d²)"
    ungrouped = config.n_kv_heads == config.n_heads and config.n_heads * config.d_head == config.d_model
    wide = config.d_ff == 4 * config.d_model and not config.gated
    qkv = (f"6{t}d²", f"6{t}d + 3d²") if ungrouped else (f"2{t}d(q + 2k)", f"3{t}d + {t}(q + 2k) + d(q + 2k)")
    o = (f"2{t}d²", f"2{t}d + d²") if ungrouped else (f"2{t}qd", f"{t}(q + d) + qd")
    mlp = (f"16{t}d²", f"18{t}d + 8d²") if wide else (f"4{t}dF", f"2{t}d + 4{t}F + 2dF")
    mlp = (f"6{t}dF", f"3{t}d + 8{t}F + 3dF") if config.gated else mlp
    width = "d" if ungrouped else "q"
    maps, written = f"2b{n}{m}{width}", f"O(b·n·d + {cells.replace('b', 'b·h')})"
    grid = f"bh{n}{m}"
    return {
        "qkv": Formula(qkv[0], linear, qkv[1], weights),
        "scores": Formula(maps, f"O({cells}·d)", f"{t}q + b{m}k + {grid}", written),
        "softmax": Formula(
            words.NOT_COUNTED.format(n=f"5{grid}"),
            "–",
            f"4{grid}" + (words.WITH_MASK.format(n=f"6{grid}") if whole else ""),
            f"O({cells.replace('b', 'b·h')})",
        ),
        "mix": Formula(maps, f"O({cells}·d)", f"{grid} + b{m}k + {t}q", written),
        "fused": Formula(f"4b{n}{m}{width}", f"O({cells}·d)", f"2{t}q + 2b{m}k", "O(b·n·d)"),
        "o": Formula(o[0], linear, o[1], weights),
        "mlp": Formula(mlp[0], linear, mlp[1], weights),
        "rest": Formula("–", "–", f"10{t}d", f"O({rows}·d)"),
        "embed": Formula("–", "–", f"2{t}d", f"O({rows}·d)"),
        "head": Formula(f"2{t}dV", f"O({rows}·d·V)", f"{t}d + {t}V + dV", f"O({rows}·V + d·V)"),
    }


def orders(step: str) -> tuple[str, str]:
    """The O() of all layers together: FLOPs, and numbers moved where scores and weights are tensors."""
    if step == "prefill":
        return "O(b·n·d² + b·n²·d)", "O(b·n·d + b·h·n² + d²)"
    return "O(b·d² + b·n·d)", "O(b·n·d + b·h·n + d²)"


def operations_of(setup: Setup, step: str) -> tuple[Operation, ...]:
    """The operations of the whole text, or of one more token."""
    config, memory_len = setup.config, setup.source_len if setup.config.kind == "encoder-decoder" else 0
    formats = {"dtype": setup.dtype, "weight_dtype": setup.weight_dtype, "attention": setup.attention}
    if step == "decode":
        cached = setup.target_len or setup.source_len
        return decode(
            config, batch=setup.batch, cached=cached, memory_len=memory_len, kv_dtype=setup.kv_dtype, **formats
        )
    return prefill(config, setup.workload)


def operation_groups(operations: Sequence[Operation]) -> dict[str, tuple[int, int, int]]:
    """FLOPs, FLOPs of use and bytes of each row of the textbook table, all layers together."""
    found: dict[str, tuple[int, int, int]] = {}
    for op in operations:
        flops, useful, n_bytes = found.get(group_of(op), (0, 0, 0))
        found[group_of(op)] = (
            flops + op.times * op.flops,
            useful + op.times * op.useful_flops,
            n_bytes + op.times * op.bytes,
        )
    return {name: found[name] for name in words.GROUPS if name in found}


def operations_table(setup: Setup, step: str) -> pd.DataFrame:
    """Exact numbers with their formulas, and the textbook's O() beside them."""
    told = formulas(setup.config, step)
    rows = []
    for name, (flops, useful, n_bytes) in operation_groups(operations_of(setup, step)).items():
        row = told[name]
        rows.append(
            {
                "operation": words.GROUPS[name],
                "flops": flops,
                "useful": useful,
                "formula": row.flops,
                "order": row.order,
                **numbers.in_both(n_bytes),
                "moved": row.moved,
                "moved_order": row.moved_order,
                "intensity": flops / n_bytes if n_bytes else 0.0,
            }
        )
    flops, useful, moved = (sum(row[name] for row in rows) for name in ("flops", "useful", "mib"))
    n_bytes = moved * MIB
    order, moved_order = orders(step)
    total = {
        "operation": "total",
        "flops": flops,
        "useful": useful,
        "formula": "",
        "order": order,
        **numbers.in_both(round(n_bytes)),
        "moved": "",
        "moved_order": moved_order,
        "intensity": flops / n_bytes,
    }
    return pd.DataFrame([*rows, total])


def ideal(setup: Setup, step: str) -> tuple[int, int]:
    """FLOPs and the least traffic of a step: attention fused, every weight once."""
    fused = replace(setup, attention="flash")
    operations = operations_of(fused, step)
    flops = sum(op.times * op.flops for op in operations)
    return flops, ideal_bytes(operations)


def bounds_table(setup: Setup, device: Device) -> pd.DataFrame:
    """Each operation with a product, of the whole text and of one token, on one device: its limit and its least time."""
    rows = []
    for step, label in languages.translated(sizes_words.STEPS).items():
        for bound in roofline([op for op in operations_of(setup, step) if op.flops], device):
            op = bound.operation
            rows.append(
                {
                    "step": label,
                    "operation": f"{op.stack} {op.name}".strip(),
                    "times": op.times,
                    "flops": op.times * op.flops,
                    **numbers.in_both(op.times * op.bytes),
                    "intensity": op.intensity,
                    "limit": words.LIMITS[bound.limit],
                    "share": 100 * min(1.0, op.intensity / device.ridge),
                    "microseconds": bound.seconds * 1e6,
                }
            )
    return pd.DataFrame(rows)


def devices_table(cards: Sequence[Device]) -> pd.DataFrame:
    """The cards with their figures and where each is from."""
    return pd.DataFrame([device.to_dict() for device in cards], columns=list(words.CARDS_COLUMNS)).astype(
        {"gigabytes_per_second": float, "teraflops": float, "gibibytes": float}
    )


def rnn_line(config: ModelConfig, n: int) -> dict[str, int]:
    """FLOPs of one layer on n tokens: a plain RNN of width d_model (Elman 1990: two d × d products per token), and the attention of the model."""
    d = config.d_model
    alone = ModelConfig(
        vocab_size=1,
        d_model=d,
        n_heads=config.n_heads,
        n_kv_heads=config.n_kv_heads,
        d_head=config.d_head,
        d_ff=1,
        n_decoder_layers=1,
        position="none",
        head="none",
        n_ctx=1,
    )
    groups = operation_groups(prefill(alone, source_len=n, attention="eager"))
    maps = groups["scores"][0] + groups["mix"][0]
    return {
        "n": n,
        "rnn": 4 * n * d * d,
        "attention": maps,
        "whole": maps + groups["qkv"][0] + groups["o"][0],
        "rnn_steps": n,
        "attention_steps": 1,
    }


def rnn_lines(config: ModelConfig, lengths: Sequence[int]) -> pd.DataFrame:
    """The same against the tokens."""
    return pd.DataFrame([rnn_line(config, n) for n in lengths])


def cross_terms(setup: Setup) -> dict[str, dict[str, int]]:
    """FLOPs of an encoder–decoder by the term that they grow with, for the target at once and word by word.

    Word by word, token i attends to i tokens and the encoder runs once: each term is linear in i, so first and last give
    the sum.
    """
    n, m = setup.source_len, setup.target_len
    at_once = _by_term(operations_of(setup, "prefill"))
    options: dict[str, Any] = {
        "batch": setup.batch,
        "memory_len": n,
        "dtype": setup.dtype,
        "attention": setup.attention,
    }
    first = _by_term(decode(setup.config, cached=1, **options))
    last = _by_term(decode(setup.config, cached=m, **options))
    by_word = {name: m * (first[name] + last[name]) // 2 for name in first}
    for name in ("encoder", "encoder_maps", "memory"):
        by_word[name] = at_once[name]  # once, before the first word
    return {"at_once": at_once, "by_word": by_word}


def _by_term(operations: Sequence[Operation]) -> dict[str, int]:
    terms = dict.fromkeys(words.CROSS_TERMS, 0)
    for op in operations:
        maps = group_of(op) in ("scores", "mix", "fused")
        if not op.stack:
            name = "words"
        elif op.name.startswith("cross attn"):
            name = "cross_maps" if maps else "memory" if op.name.endswith((" k", " v")) else "decoder"
        else:
            name = f"{op.stack}_maps" if maps else op.stack
        terms[name] += op.times * op.flops
    return terms


def cross_table(setup: Setup) -> pd.DataFrame:
    """The terms of cross_terms(), with their share of all."""
    found = cross_terms(setup)
    rows = []
    for name, label in words.CROSS_TERMS.items():
        row: dict[str, Any] = {"operation": label}
        for way, title in words.CROSS_WAYS.items():
            row[f"{title}, FLOPs"] = found[way][name]
            row[f"{title}, %"] = 100 * found[way][name] / sum(found[way].values())
        rows.append(row)
    return pd.DataFrame(rows)


def depth_lines(config: ModelConfig) -> pd.DataFrame:
    """Parameters by component for 2 to 12 layers of each stack, and for as many as the model has."""
    rows = []
    for n in sorted({*range(2, 13), layers(config)}):
        found = parameters(with_layers(config, n))
        rows.append(
            {
                "layers": n,
                "embedding": found.embedding,
                "encoder": found.encoder.total,
                "decoder": found.decoder.total,
                "unembed": found.unembed + found.head,
                "parameters": found.total,
            }
        )
    return pd.DataFrame(rows)


def _translator(base: ModelConfig) -> ModelConfig:
    """As lectures write it: Pre-LN, an output of its own with a bias, vocabularies of 32,000."""
    return replace(base, vocab_size=32_000, tied=False, head_bias=True, norm_order="pre", final_norm=True)


def translator() -> dict[str, int]:
    """A textbook translator: its true total, and the totals that tied tables would have."""
    base = PRESETS["transformer-base"].config
    paper = parameters(base)
    layer = paper.encoder.layer.total
    d, f = base.d_model, base.d_ff
    return {
        "three": parameters(_translator(base), two_vocabularies=True).total,
        "one": parameters(replace(base, vocab_size=32_000)).total,
        "paper": paper.total,
        "layer": layer,
        "lesson": 4 * d * d + 2 * d * f + 4 * d,
    }


def translator_table() -> pd.DataFrame:
    """The textbook translator by component, at the sizes of Vaswani et al. 2017, base and big, with two vocabularies of 32,000."""
    columns: dict[str, list[int]] = {}
    for name, title in (("transformer-base", "base"), ("transformer-big", "large")):
        found = parameters(_translator(PRESETS[name].config), two_vocabularies=True)
        stacks = (found.encoder.total, found.decoder.total, found.unembed + found.head)
        columns[title] = [found.source.total, found.target.total, *stacks, found.total]
    return pd.DataFrame({words.TRANSLATOR_COLUMN: list(words.TRANSLATOR_ROWS), **columns})


def lesson_sizes() -> pd.DataFrame:
    """A textbook encoder class in its five sizes: sinusoids, Pre-LN, attention without biases; all of it and one block."""
    rows = []
    for title, config in LESSON_CLASS.items():
        found = parameters(config)
        sizes = {"vocabulary": config.vocab_size, "d_model": config.d_model, "layers": config.n_encoder_layers}
        rows.append({"model": title, **sizes, "parameters": found.total, "block": found.encoder.layer.total})
    return pd.DataFrame(rows)


def one_head(setup: Setup) -> tuple[int, int, int, int] | None:
    """FLOPs of scores and sum, and parameters of the four projections of a layer: with its heads, and with one head as wide as all.

    None where heads do not share d_model evenly among them.
    """
    config = setup.config
    if config.n_kv_heads != config.n_heads or config.n_heads * config.d_head != config.d_model:
        return None
    if config.position == "rotary" or config.qk_norm:
        return None
    found: list[int] = []
    for one in (config, replace(config, n_heads=1, n_kv_heads=1, d_head=config.d_model)):
        groups = operation_groups(prefill(one, setup.workload))
        layer = parameters(one).encoder.layer if one.n_encoder_layers else parameters(one).decoder.layer
        found += [sum(groups[name][0] for name in ("scores", "mix", "fused") if name in groups), layer.attn]
    return found[0], found[1], found[2], found[3]


def reached(setup: Setup, device: Device, step: str = "decode") -> dict[int, float]:
    """Which part of a card's arithmetic a step can use at a batch of 1 and of 32: its intensity over the ridge, at most 1."""
    shares = {}
    for batch in (1, 32):
        fused = replace(setup, batch=batch, attention="flash")
        shares[batch] = share_of_peak(operations_of(fused, step), device)
    return shares


def known_models(setup: Setup | None = None) -> pd.DataFrame:
    """Every preset with its exact count and its authors'; `setup` adds a row of its own."""
    rows = [
        {
            "model": preset.title,
            "parameters": parameters(preset.config).total + preset.more,
            "layers": layers(preset.config),
            "d_head": preset.config.d_head,
            "published": preset.published,
            "source": preset.source,
        }
        for preset in PRESETS.values()
    ]
    if setup is not None:
        own = parameters(setup.config).total
        rows.append(
            {
                "model": words.YOURS,
                "parameters": own,
                "layers": layers(setup.config),
                "d_head": setup.config.d_head,
                "published": "–",
                "source": "",
            }
        )
    return pd.DataFrame(rows).sort_values("parameters").reset_index(drop=True)


def furthest(table: pd.DataFrame) -> tuple[str, int, str]:
    """The model whose authors' figure is furthest from its exact count: its name, the count, the figure."""
    found: list[tuple[float, str, int, str]] = []
    columns = (table[name] for name in ("model", "parameters", "published"))
    for model, exact, said in zip(*columns, strict=True):
        parts = said.split()
        if len(parts) == 2:
            published = float(parts[0]) * {"M": 1e6, "B": 1e9}[parts[1]]
            found.append((abs(exact / published - 1), model, exact, said))
    return max(found)[1:]
