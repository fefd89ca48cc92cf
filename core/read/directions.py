"""The direction in which a logit reads what each attention of the last stack writes, every norm's scale as it was in the run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn

from ..errors import TextError
from ..model.transformer import Block, Head, RMSNorm, Stack
from ..run.attention import AttentionRecord
from ..run.predictions import check_token, checked_positions, likeliest
from ..run.trace import Trace
from .attribution import back_through, frozen_scale, linear_head

Site = Literal["attn", "cross_attn"]

LOGIT_ROWS = 32  # positions whose logits over the whole vocabulary are computed together


@dataclass(frozen=True)
class Asked:
    """Logits of a run, one a row: each of one token, after one position; or the mean of several tokens' logits."""

    run: Trace
    site: Site
    positions: tuple[int, ...]
    tokens: tuple[tuple[int, ...], ...]  # as many as positions; the mean of no token's is 0


@dataclass(frozen=True)
class _Norm:
    """A norm between an attention and the logit, and the points whose sum it is given."""

    module: nn.Module
    points: tuple[str, ...]


def asked(run: Trace, positions: Sequence[int] | None, tokens: Sequence[int] | None, site: Site | None) -> Asked:
    """Checked. positions None: the last real token; tokens None: the likeliest after each; site None: see site_of().

    One token goes with every position, and several with one position. Raises IndexError for a position, TextError for a token,
    for numbers of both that do not go together, and for a model whose logits are not linear in its stream.
    """
    linear_head(run.loaded)
    rows = checked_positions(run.forward.prompt.last_read[run.index], positions)
    if tokens is None:
        return Asked(run, site_of(run, site), tuple(rows), likeliest_tokens(run, rows, 1))
    for token in tokens:
        check_token(run.loaded, token)
    if len(tokens) == 1:
        tokens = list(tokens) * len(rows)
    if len(rows) == 1:
        rows = rows * len(tokens)
    if len(rows) != len(tokens):
        raise TextError(
            f"{len(rows)} positions and {len(tokens)} tokens: give one token for each position, or one for all."
        )
    return Asked(run, site_of(run, site), tuple(rows), tuple((token,) for token in tokens))


def has_looks(run: Trace) -> bool:
    """Whether a logit of this model is a sum over looks: where it writes words, or scores them by a linear head."""
    head = run.loaded.model.head
    return isinstance(head, Head) and not head.mlm and head.softcap is None and run.config.kind != "encoder"


def site_of(run: Trace, site: Site | None) -> Site:
    """The attention that is meant: None is cross-attention where the model has it. Raises TextError for one that it lacks."""
    has_cross = run.config.kind == "encoder-decoder"
    if site == "cross_attn" and not has_cross:
        raise TextError(f"{run.spec.title} has no cross-attention. Leave the site out, or ask for attn.")
    return site or ("cross_attn" if has_cross else "attn")


def records_of(run: Trace, site: Site | None) -> tuple[AttentionRecord, ...]:
    """The attentions of one site of the last stack, one a layer, in the order of the pass."""
    stack, site = run.config.stacks[-1][0], site_of(run, site)
    return tuple(record for record in run.attention if (record.stack, record.site) == (stack, site))


def likeliest_tokens(run: Trace, positions: Sequence[int], k: int) -> tuple[tuple[int, ...], ...]:
    """The k likeliest tokens that may follow each position, fewer where fewer may; the logits of a few positions at a time."""
    found: list[tuple[int, ...]] = []
    tokens = run.forward.prompt.last_read[run.index]
    x = run.last_residual(torch.tensor(positions, device=run.loaded.device))[run.index]  # [pos, d_model]
    for start in range(0, len(positions), LOGIT_ROWS):
        some = positions[start : start + LOGIT_ROWS]
        found += likeliest(run.loaded, x[start : start + LOGIT_ROWS], tokens, some, k).ids
    return tuple(found)


def directions(wanted: Asked) -> tuple[Tensor, ...]:
    """For each layer the g [row, d_model] with: what a head's output x [d_model] adds to the logit of a row is g · x, float32.

    Direct logit attribution (Elhage et al. 2021): norms are passed through with the scale that they had, so that what all parts
    add is the logit. Between attention and logit lie the last norm, in sandwich order the norm of the attention's output, and in
    post order every norm that follows. Raises Outdated after a training, and TooLarge.
    """
    run = wanted.run
    head, stack, (name, _) = linear_head(run.loaded), run.loaded.model.stacks[-1], run.config.stacks[-1]
    unique = sorted(set(wanted.positions))
    row = torch.tensor([unique.index(position) for position in wanted.positions], device=run.loaded.device)
    norms = _norms(name, stack, wanted.site)
    run.forward.weights.check()
    scales = {path: scale[row] for path, scale in _scales(run, norms, unique).items()}  # [row]

    def back(path: str, g: Tensor) -> Tensor:
        return back_through(norms[path].module, g, scales[path]) if path in norms else g

    found: list[Tensor] = []
    with torch.inference_mode():
        words = [head.unembed.weight[list(some)].float().sum(0) / max(1, len(some)) for some in wanted.tokens]
        g = back(f"{name}.norm", torch.stack(words) * head.scale)
        for layer in reversed(range(len(stack.blocks))):
            path = f"{name}.blocks.{layer}"
            at = g
            for short in reversed(_sublayers(stack)):
                g = back(f"{path}.{short}_norm", g)
                if short == wanted.site.removesuffix("_attn"):
                    at = back(f"{path}.{short}_out_norm", g)
            found.append(at)
    run.forward.weights.check()  # a training may run beside this
    return tuple(reversed(found))


def _sublayers(stack: Stack) -> tuple[str, ...]:
    """attn, cross where there is cross-attention, mlp: as the norms of a block are called, in the order of the pass."""
    first = stack.blocks[0]
    assert isinstance(first, Block)
    return ("attn", "cross", "mlp") if hasattr(first, "cross_attn") else ("attn", "mlp")


def _norms(name: str, stack: Stack, site: Site) -> dict[str, _Norm]:
    """The norms that lie between this attention and a logit, by their path, in the order of the pass."""
    n, found = len(stack.blocks), {}
    for layer, block in enumerate(stack.blocks):
        assert isinstance(block, Block)
        path, short = f"{name}.blocks.{layer}", site.removesuffix("_attn")
        if block.norm_order == "sandwich":
            found[f"{path}.{short}_out_norm"] = _Norm(
                block.get_submodule(f"{short}_out_norm"), (f"{path}.{site}.hook_o",)
            )
        if block.norm_order == "post":
            before = f"{path}.hook_resid_pre"
            for part in _sublayers(stack):
                found[f"{path}.{part}_norm"] = _Norm(
                    block.get_submodule(f"{part}_norm"), (before, f"{path}.hook_{part}_out")
                )
                before = f"{path}.hook_resid_{'mid' if part == 'attn' else part}"
    found[f"{name}.norm"] = _Norm(stack.norm, (f"{name}.blocks.{n - 1}.hook_resid_post",))
    return {path: norm for path, norm in found.items() if not isinstance(norm.module, nn.Identity)}


def _scales(run: Trace, norms: dict[str, _Norm], positions: Sequence[int]) -> dict[str, Tensor]:
    """The scale of each norm at these positions, [position]: from the lengths that a run keeps where these suffice, else from
    another pass, which keeps one number of each vector."""
    rows = torch.tensor(positions, device=run.loaded.device)
    lengths = run.residual_norms
    if all(
        isinstance(norm.module, RMSNorm) and norm.points[0] in lengths and len(norm.points) == 1
        for norm in norms.values()
    ):
        width = run.config.d_model
        return {
            path: torch.rsqrt(lengths[norm.points[0]][rows].pow(2) / width + norm.module.eps)
            for path, norm in norms.items()
            if isinstance(norm.module, RMSNorm)
        }
    ends = {norm.points[-1]: path for path, norm in norms.items()}
    begun: dict[str, Tensor] = {}  # the stream before a sublayer, until what is added to it has come
    index = run.index

    def part(point: str, x: Tensor) -> Tensor:
        x = x[index if x.shape[0] > 1 else 0, rows].float()
        if point not in ends:
            begun[point] = x
            return x[:0, 0]
        norm = norms[ends[point]]
        if len(norm.points) > 1:
            x = x + begun.pop(norm.points[0])
        return frozen_scale(norm.module, x)

    seen = run.forward.moments({point for norm in norms.values() for point in norm.points}, part)
    return {path: seen[point] for point, path in ends.items()}
