"""Labs on sizes: which sizes double together, why scores are scaled, and common mistakes with shapes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from types import SimpleNamespace
from typing import Any, Literal, get_args

import torch
import torch.nn.functional as F
from torch import Tensor

from ..errors import ConfigError
from ..model.config import ModelConfig
from ..plan.operations import Device, Operation, prefill, total_flops
from ..plan.parameters import parameters, with_layers
from ..plan.plan import Part, is_step_of_map, memory_plan, reading
from ..plan.workload import Workload, kv_cache
from ..read import measures
from ..run.attention import AttentionRecord

ScaledSize = Literal["d_model", "layers", "source_len", "heads", "batch"]
LENGTHS = (512, 8192, 131_072)


def scaling_factors(config: ModelConfig, work: Workload, what: ScaledSize) -> dict[str, Any]:
    """Growth factor of every cost when one size doubles; None for costs that were 0.

    d_model   with d_ff and the number of heads of the same width: four times the parameters of a layer, twice those of a table
    heads     twice as many, half as wide: the same parameters, twice as many maps
    layers, source_len, batch   only this size

    {"parameters": {"layers", "tables", "total"}, "memory": the fields of Memory and "total", "flops": of a forward pass, "cache"}.
    Raises ConfigError for another word, as memory_plan does, and for heads of an odd width.
    """
    if what not in get_args(ScaledSize):
        raise ConfigError(f"what ({what!r}) must be one of {', '.join(map(repr, get_args(ScaledSize)))}")
    larger, more = _twice(config, work, what)
    before, after = _sizes(config, work), _sizes(larger, more)
    return {
        group: {name: after[group][name] / size if size else None for name, size in sizes.items()}
        for group, sizes in before.items()
    }


def bottleneck(
    config: ModelConfig, work: Workload, device: Device, lengths: Sequence[int] = LENGTHS
) -> tuple[dict[str, Any], ...]:
    """Work of a forward pass at each length, split into the n² part of attention (its maps) and the products with weights.

    {"n", "attention": {"flops", "bytes", "flops_share", "seconds", "seconds_share", "limit"}, "products": the same}. Shares are of
    both parts together. Times, FLOPs and bytes are those of the roofline of `device`, where a fused kernel skips masked cells. The
    length of a position table is ignored. Raises ConfigError as memory_plan does.
    """
    return tuple(_work_at(config, replace(work, source_len=n, piece=0), n, device) for n in lengths)


def memory_accesses(config: ModelConfig, work: Workload) -> dict[str, Any]:
    """Memory accesses of the first layer for one text, in numbers (not bytes), for attention and for the products with weights.

    {"formulas": {...}, "eager": numbers moved by its maps, "fused": the same of a kernel that materialises no map, "weights": numbers
    of its matrices, "stream": numbers that these products read and write}. eager grows with n², fused and stream with n; weights
    depend only on d².
    """
    one = replace(
        work, batch=1, training=False, recompute="none", rank=0, weight_dtype=None, kv_dtype=None, dtype="float32"
    )
    counted: dict[str, Any] = {}
    for way, attention in (("eager", "eager"), ("fused", "flash")):
        found = _products(prefill(with_layers(config, 1), replace(one, attention=attention)))
        counted[way] = sum(op.bytes for op in found if not op.weights) // one.by
        counted["weights"] = sum(op.weights for op in found) // one.by
        counted["stream"] = sum(op.bytes - op.weights for op in found if op.weights) // one.by
    formulas = {
        "eager": "heads · n² written and read again at each step, and n · d of q, k, v and z",
        "fused": "n · d of q, k, v and z alone",
        "weights": "d² for each of q, k, v and o, and d · d_ff for each matrix of the MLP",
        "stream": "n · d in and out of each product",
    }
    return {"formulas": formulas, **counted}


def _twice(config: ModelConfig, work: Workload, what: ScaledSize) -> tuple[ModelConfig, Workload]:
    if what == "layers":
        return with_layers(config, 2 * max(config.n_encoder_layers, config.n_decoder_layers)), work
    if what == "source_len":
        return config, replace(work, source_len=2 * work.source_len)
    if what == "batch":
        return config, replace(work, batch=2 * work.batch)
    heads = {"n_heads": 2 * config.n_heads, "n_kv_heads": 2 * config.n_kv_heads}
    if what == "heads":
        if config.d_head % 2:
            raise ConfigError(f"doubling the heads halves their width: d_head ({config.d_head}) must be even")
        return replace(config, d_head=config.d_head // 2, d_v=config.d_v // 2, **heads), work
    widths = {
        name: 2 * getattr(config, name) for name in ("d_model", "d_ff", "d_embed", "d_unembed", "d_dense", "d_shared")
    }
    latent = {"kv_rank": 2 * config.kv_rank, "q_rank": 2 * config.q_rank}
    return replace(config, **widths, **heads, **latent), work


def _sizes(config: ModelConfig, work: Workload) -> dict[str, dict[str, int]]:
    counted, memory = parameters(config), memory_plan(config, work)
    cache = kv_cache(
        config,
        batch=work.batch,
        n=work.last_len,
        memory_len=work.memory_len(config),
        dtype=work.kv_dtype or work.dtype,
    )
    return {
        "parameters": {
            "layers": sum(
                stack.n_layers * stack.layer.total + stack.others for stack in (counted.encoder, counted.decoder)
            ),
            "tables": sum(table.token + table.position for table in (counted.source, counted.target)) + counted.unembed,
            "total": counted.total,
        },
        "memory": memory.to_dict(),
        "flops": {"total": total_flops(prefill(config, work))},
        "cache": {"total": cache.total},
    }


def _products(operations: Sequence[Operation]) -> list[Operation]:
    """Operations of the first layer's attention and MLP, without norms, residuals and activations."""
    found: list[Operation] = []
    stack = next(op.stack for op in operations if op.stack)
    for op in operations:
        attends = op.name.startswith("attn ") and "norm" not in op.name and "residual" not in op.name
        if op.stack == stack and (op.flops or attends) and not op.name.startswith(("cross", "embed")):
            found.append(op)
    return found


def _work_at(config: ModelConfig, work: Workload, n: int, device: Device) -> dict[str, Any]:
    weight_dtype = None if work.training else work.weight_dtype
    plain = replace(work, training=False, recompute="none", rank=0, weight_dtype=weight_dtype)
    found = [p for p in reading(config, plain) if p.operation.stack and (p.flops or is_step_of_map(p.operation))]
    flops, seconds = sum(part.flops for part in found), sum(part.seconds(device) for part in found)
    return {
        "n": n,
        "attention": _group_work([part for part in found if not part.operation.weights], device, flops, seconds),
        "products": _group_work([part for part in found if part.operation.weights], device, flops, seconds),
    }


def _group_work(parts: list[Part], device: Device, flops: float, seconds: float) -> dict[str, Any]:
    mine, took = sum(part.flops for part in parts), sum(part.seconds(device) for part in parts)
    compute = sum(part.compute_seconds(device) for part in parts)
    memory = sum(part.memory_seconds(device) for part in parts)
    return {
        "flops": mine,
        "bytes": sum(part.bytes for part in parts),
        "flops_share": mine / flops,
        "seconds": took,
        "seconds_share": took / seconds,
        "limit": "compute" if compute > memory else "memory",
    }


WIDTHS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512)
SPREAD_PAIRS, SPREAD_ROWS, SPREAD_KEYS = 20_000, 4_000, 12
SPREAD_CELLS = 1 << 22  # random numbers that are held at one time


@dataclass(frozen=True)
class Spread:
    """Statistics of q and k with d standard normal numbers each (Vaswani et al. 2017, footnote 4)."""

    d: int
    variance: float  # of q·k
    scaled: float  # of q·k / √d
    largest: float  # mean of the largest weight of a row, without the division
    largest_scaled: float


def spread(
    d: int, pairs: int = SPREAD_PAIRS, rows: int = SPREAD_ROWS, keys: int = SPREAD_KEYS, seed: int = 0
) -> Spread:
    """Measured on `pairs` products, and on `rows` rows of `keys` keys each. Deterministic for a seed."""
    generator = torch.Generator().manual_seed(seed * 1_000 + d)
    q, k = torch.randn(2, pairs, d, generator=generator)
    products = (q * k).sum(-1)
    parts = []
    for some in torch.randn(rows, d, generator=generator).split(max(1, SPREAD_CELLS // (keys * d))):
        parts.append(torch.einsum("rd,rkd->rk", some, torch.randn(len(some), keys, d, generator=generator)))
    scores = torch.cat(parts)  # [row, key]
    variance = products.var().item()
    return Spread(
        d,
        variance,
        variance / d,
        scores.softmax(-1).amax(-1).mean().item(),
        (scores / d**0.5).softmax(-1).amax(-1).mean().item(),
    )


@dataclass(frozen=True, eq=False)
class Sharpness:
    """Averages over some attentions."""

    raw: float  # variance of q·k over the visible cells, averaged over heads
    scaled: float  # the same of the scores
    entropy: float  # bits of a row, averaged over rows with two or more visible keys


def sharpness(records: Sequence[AttentionRecord]) -> Sharpness:
    """Variance of the scores of these attentions, and entropy of their softmax."""
    raw, scaled, entropies = [], [], []
    for record in records:
        for head in range(record.n_heads):
            allowed = record.mask(head=head)
            choice = allowed.sum(-1) > 1
            raw.append(_variance(record.raw(head)[0][allowed]))
            scaled.append(_variance(record.scores(head)[0][allowed]))
            entropies.append(measures.entropy(record.pattern(head)[0][choice]))
    every = torch.cat(entropies)
    return Sharpness(sum(raw) / len(raw), sum(scaled) / len(scaled), every.mean().item() if every.numel() else 0.0)


def _variance(values: Tensor) -> float:
    return values.var().item() if values.numel() > 1 else 0.0


Verdict = Literal["right", "error", "wrong"]


@dataclass(frozen=True)
class Attempt:
    """A line and its result. `shape` is None if PyTorch raised `error`; `why` names the reason."""

    code: str
    verdict: Verdict
    shape: tuple[int, ...] | None
    error: str
    why: str


@dataclass(frozen=True)
class Line:
    """A line of code that can be tried. `raises` and `silent` name the reason of an error or of a wrong result without one."""

    code: str
    run: Callable[[Any], Tensor]
    raises: str
    silent: str | None  # None: the result is right


# kind of row -> the lines that can be tried there, the right one first. Links store their index, so append new ones.
LINES: dict[str, tuple[Line, ...]] = {
    "split": (
        Line("q.unflatten(-1, (h, d)).transpose(1, 2)", lambda t: t.flat.unflatten(-1, (t.h, t.d)).transpose(1, 2), "", None),
        Line("q.unflatten(-1, (h, d))", lambda t: t.flat.unflatten(-1, (t.h, t.d)), "", "split_no_transpose"),
        Line("q.view(batch, h, n, d)", lambda t: t.flat.view(t.b, t.h, t.n, t.d), "", "split_view"),
        Line("q.unflatten(-1, (h + 1, d))", lambda t: t.flat.unflatten(-1, (t.h + 1, t.d)), "split_heads", None),
    ),
    "qkv": (
        Line("self.q(x)", lambda t: F.linear(t.x, t.own), "", None),
        Line("self.qkv(x).split(h * d, -1)[0]", lambda t: F.linear(t.x, t.joined).split(t.h * t.d, -1)[0], "", None),
        Line("self.qkv(x).view(batch, n, h, 3, d)[..., 0, :].flatten(2)", lambda t: F.linear(t.x, t.joined).view(t.b, t.n, t.h, 3, t.d)[..., 0, :].flatten(2), "", "qkv_by_head"),
        Line("self.qkv(x).chunk(3, 1)[0]", lambda t: F.linear(t.x, t.joined).chunk(3, 1)[0], "", "qkv_chunk"),
    ),
    "scores": (
        Line("q @ k.mT", lambda t: t.q @ t.k.mT, "", None),
        Line("q @ k", lambda t: t.q @ t.k, "scores_no_transpose", "scores_square"),
        Line("q @ k.transpose(1, 2)", lambda t: t.q @ t.k.transpose(1, 2), "scores_heads", "scores_heads_silent"),
        Line("q.transpose(1, 2) @ k.transpose(1, 2).mT", lambda t: t.q.transpose(1, 2) @ t.k.transpose(1, 2).mT, "scores_unsplit_lengths", "scores_unsplit"),
        Line("q @ k.T", lambda t: t.q @ _reversed(t.k), "scores_t", "scores_t_silent"),
    ),
    "mask": (
        Line("scores.masked_fill(~keep[:, None, None, :], -inf)", lambda t: t.scores.masked_fill(~t.keep[:, None, None, :], -torch.inf), "", None),
        Line("scores.masked_fill(~keep, -inf)", lambda t: t.scores.masked_fill(~t.keep, -torch.inf), "mask_flat", "mask_flat_silent"),
        Line("scores.masked_fill(~keep[:, None], -inf)", lambda t: t.scores.masked_fill(~t.keep[:, None], -torch.inf), "mask_head", "mask_head_silent"),
        Line("scores.masked_fill(~keep[:, None, :, None], -inf)", lambda t: t.scores.masked_fill(~t.keep[:, None, :, None], -torch.inf), "mask_rows_error", "mask_rows"),
    ),
    "weights": (
        Line("scores.softmax(-1)", lambda t: t.scores.softmax(-1), "", None),
        Line("scores.softmax(-2)", lambda t: t.scores.softmax(-2), "", "softmax_columns"),
        Line("scores.softmax(1)", lambda t: t.scores.softmax(1), "", "softmax_heads"),
    ),
    "z": (
        Line("pattern @ v", lambda t: t.scores @ t.k, "", None),
        Line("pattern @ v.mT", lambda t: t.scores @ t.k.mT, "z_transposed", "z_square"),
        Line("pattern.mT @ v", lambda t: t.scores.mT @ t.k, "z_lengths", "z_pattern"),
    ),
    "join": (
        Line("z.transpose(1, 2).flatten(2)", lambda t: t.q.transpose(1, 2).flatten(2), "", None),
        Line("z.transpose(1, 2).view(batch, n, -1)", lambda t: t.q.transpose(1, 2).view(t.b, t.n, -1), "join_view", "join_view_silent"),
        Line("z.reshape(batch, n, -1)", lambda t: t.q.reshape(t.b, t.n, -1), "", "join_reshape"),
        Line("self.o(z.flatten(2))", lambda t: F.linear(t.q.flatten(2), t.o), "join_flatten", "join_flatten_silent"),
        Line("z.transpose(1, 2).contiguous().view(batch, n, -1)", lambda t: t.q.transpose(1, 2).contiguous().view(t.b, t.n, -1), "", None),
    ),
    "position": (
        Line("x + table[:n]", lambda t: t.x + t.table[: t.n], "", None),
        Line("x + table", lambda t: t.x + t.table, "position_all", "position_same"),
        Line("x + table[:n].T", lambda t: t.x + t.table[: t.n].T, "position_turned", "position_square"),
        Line("x + table[:n, None]", lambda t: t.x + t.table[: t.n, None], "position_axis_error", "position_axis"),
        Line("x + table[None][:, :, :n]", lambda t: t.x + t.table[None][:, :, : t.n], "position_features", "position_features_silent"),
    ),
    "ffn": (
        Line("self.down(F.relu(self.up(x)))", lambda t: F.linear(F.relu(F.linear(t.x, t.up)), t.down), "", None),
        Line("self.down(x)", lambda t: F.linear(t.x, t.down), "ffn_no_up", "ffn_same"),
        Line("self.up(x.mT)", lambda t: F.linear(t.x.mT, t.up), "ffn_turned", "ffn_square"),
    ),
}  # fmt: skip


@lru_cache(maxsize=64)
def attempts(config: ModelConfig, place: str, *, batch: int, n: int, n_key: int) -> tuple[Attempt, ...]:
    """Results of all LINES[place], for n queries, n_key keys, and texts of n tokens."""
    sizes = {"batch": batch, "n": n, "n_key": n_key}
    h, d = config.n_heads, config.d_head
    numbers = {
        "(h, d)": f"({h}, {d})",
        "(h + 1, d)": f"({h + 1}, {d})",
        "[:n": f"[:{n}",
        ":, :n]": f":, :{n}]",
        "(batch, h, n, d)": f"({batch}, {h}, {n}, {d})",
        "(batch, n, -1)": f"({batch}, {n}, -1)",
        "split(h * d": f"split({h * d}",
        "(batch, n, h, 3, d)": f"({batch}, {n}, {h}, 3, {d})",
    }
    found = []
    for line in LINES[place]:
        code = line.code
        for names, values in numbers.items():
            code = code.replace(names, values)
        try:
            shape = tuple(line.run(_tensors(config, "meta", **sizes)).shape)
        except (RuntimeError, IndexError) as error:
            found.append(Attempt(code, "error", None, _message_on_cpu(line, config, error, **sizes), line.raises))
        else:
            verdict: Verdict = "right" if line.silent is None else "wrong"
            found.append(Attempt(code, verdict, shape, "", line.silent or ""))
    return tuple(found)


def _message_on_cpu(line: Line, config: ModelConfig, error: Exception, **sizes: int) -> str:
    """First line of PyTorch's error on the CPU; that of the meta device if the line works there."""
    try:
        line.run(_tensors(config, "cpu", **sizes))
    except (RuntimeError, IndexError) as on_cpu:
        error = on_cpu
    return str(error).splitlines()[0]


def _reversed(x: Tensor) -> Tensor:
    """x.T: all axes in reverse order, without PyTorch's warning for more than two."""
    return x.permute(*reversed(range(x.ndim)))


def strides(config: ModelConfig, *, batch: int, n: int) -> dict[str, tuple[int, ...]]:
    """PyTorch's strides of z, of its transpose, and of a contiguous copy."""
    z = torch.empty(batch, config.n_heads, n, config.d_head, device="meta")
    turned = z.transpose(1, 2)
    return {"z": z.stride(), "turned": turned.stride(), "copied": turned.contiguous().stride()}


def _tensors(config: ModelConfig, device: str, *, batch: int, n: int, n_key: int) -> SimpleNamespace:
    def empty(*shape: int, dtype: torch.dtype = torch.float32) -> Tensor:
        if device == "meta":
            return torch.empty(shape, dtype=dtype, device="meta")
        return torch.zeros((), dtype=dtype).expand(shape)

    h, d, width = config.n_heads, config.d_head, config.n_heads * config.d_head
    return SimpleNamespace(
        b=batch,
        h=h,
        n=n,
        d=d,
        flat=empty(batch, n, width),
        x=empty(batch, n, config.d_model),
        q=empty(batch, h, n, d),
        k=empty(batch, h, n_key, d),
        scores=empty(batch, h, n, n_key),
        keep=empty(batch, n_key, dtype=torch.bool),
        table=empty(max(config.n_ctx, n), config.d_model),
        o=empty(config.d_model, width),
        own=empty(width, config.d_model),
        joined=empty(3 * width, config.d_model),
        up=empty(config.d_ff, config.d_model),
        down=empty(config.d_model, config.d_ff),
    )
