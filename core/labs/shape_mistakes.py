"""Shape mistakes: lines with one changed transpose or axis, and PyTorch's result for them at any size.

Every line runs on the meta device, which has shapes but no data, so that GPT-3's sizes cost nothing. If that raises, the line runs
again on CPU tensors with strides of 0 to get the error message of a real machine. PyTorch checks shapes before it allocates.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from types import SimpleNamespace
from typing import Any, Literal

import torch
import torch.nn.functional as F
from torch import Tensor

from ..model.config import ModelConfig

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
