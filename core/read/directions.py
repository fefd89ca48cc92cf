"""Directions in which a logit reads the output of each attention of the last stack, with norm scales fixed at the run's values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn

from ..errors import TextError
from ..model.attention import RMSNorm
from ..model.transformer import Block, LMHead, Stack
from ..run.attention import AttentionRecord
from ..run.predictions import check_token, checked_positions, likeliest
from ..run.trace import Trace
from .attribution import back_through, frozen_scale, linear_head

Site = Literal["attn", "cross_attn"]

LOGIT_ROWS = 32  # positions for which the logits of the whole vocabulary are computed together


@dataclass(frozen=True)
class Asked:
    """Logits of a run, one per row: of a token after a position, or the mean of the logits of several tokens."""

    run: Trace
    site: Site
    positions: tuple[int, ...]
    tokens: tuple[tuple[int, ...], ...]  # of each position; the mean over no token is 0


@dataclass(frozen=True)
class _Norm:
    """A norm between an attention and the logit, and the hook points whose sum is its input."""

    module: nn.Module
    points: tuple[str, ...]


def asked(run: Trace, positions: Sequence[int] | None, tokens: Sequence[int] | None, site: Site | None) -> Asked:
    """Validate a request. positions None: the last real token; tokens None: the most likely after each; site None: see site_of().

    One token is used for every position, one position for every token. Raises IndexError for a position, TextError for a
    token, for different numbers of both, and for a model whose logits are not linear in the residual stream.
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
    """True if the logits of this model are sums over attention edges: it predicts tokens with a linear head."""
    head = run.loaded.model.head
    return isinstance(head, LMHead) and not head.mlm and head.softcap is None and run.config.kind != "encoder"


def site_of(run: Trace, site: Site | None) -> Site:
    """Resolve a site: None is cross-attention if the model has it. Raises TextError for cross-attention if it has none."""
    has_cross = run.config.kind == "encoder-decoder"
    if site == "cross_attn" and not has_cross:
        raise TextError(f"{run.spec.title} has no cross-attention. Leave the site out, or ask for attn.")
    return site or ("cross_attn" if has_cross else "attn")


def records_of(run: Trace, site: Site | None) -> tuple[AttentionRecord, ...]:
    """The attentions of one site of the last stack, one per layer, in forward order."""
    stack, site = run.config.stacks[-1][0], site_of(run, site)
    return tuple(record for record in run.attention if (record.stack, record.site) == (stack, site))


def likeliest_tokens(run: Trace, positions: Sequence[int], k: int) -> tuple[tuple[int, ...], ...]:
    """The k most likely tokens that may follow each position (fewer if fewer may), computed for a few positions at a time."""
    found: list[tuple[int, ...]] = []
    tokens = run.forward.prompt.last_read[run.index]
    x = run.last_residual(torch.tensor(positions, device=run.loaded.device))[run.index]  # [pos, d_model]
    for start in range(0, len(positions), LOGIT_ROWS):
        some = positions[start : start + LOGIT_ROWS]
        found += likeliest(run.loaded, x[start : start + LOGIT_ROWS], tokens, some, k).ids
    return tuple(found)


def directions(wanted: Asked) -> tuple[Tensor, ...]:
    """The g [row, d_model] of each layer with: a head's output x [d_model] adds g · x to the logit of a row. float32.

    Direct logit attribution (Elhage et al. 2021): the scale of every norm is fixed at its value in the run, so that the
    contributions of all components sum to the logit. Between attention and logit are the final norm, in sandwich order the
    norm of the attention's output, and in post order every later norm. Raises TooLarge. The caller checks that the weights
    are still those of the run.
    """
    run = wanted.run
    head, stack, (name, _) = linear_head(run.loaded), run.loaded.model.stacks[-1], run.config.stacks[-1]
    unique = sorted(set(wanted.positions))
    row = torch.tensor([unique.index(position) for position in wanted.positions], device=run.loaded.device)
    norms = _norms(name, stack, wanted.site)
    scales = {path: scale[row] for path, scale in _scales(run, norms, unique).items()}  # [row]

    def back(path: str, g: Tensor) -> Tensor:
        return back_through(norms[path].module, g, scales[path]) if path in norms else g

    found: list[Tensor] = []
    sublayers, attention = _sublayers(stack), wanted.site.removesuffix("_attn")
    with torch.inference_mode():
        unembedded = [head.unembed.weight[list(some)].float().sum(0) / max(1, len(some)) for some in wanted.tokens]
        g = back(f"{name}.norm", torch.stack(unembedded) * head.scale)
        for layer in reversed(range(len(stack.blocks))):
            path = f"{name}.blocks.{layer}"
            of_attention = g
            for short in reversed(sublayers):
                g = back(f"{path}.{short}_norm", g)
                if short == attention:
                    of_attention = back(f"{path}.{short}_out_norm", g)
            found.append(of_attention)
    return tuple(reversed(found))


def _sublayers(stack: Stack) -> tuple[str, ...]:
    """The sublayers of a block in forward order, by the names of their norms."""
    first = stack.blocks[0]
    assert isinstance(first, Block)
    return ("attn", "cross", "mlp") if hasattr(first, "cross_attn") else ("attn", "mlp")


def _norms(name: str, stack: Stack, site: Site) -> dict[str, _Norm]:
    """The norms between the attentions of a site and a logit, by module path, in forward order."""
    found, sublayers, short = dict[str, _Norm](), _sublayers(stack), site.removesuffix("_attn")
    for layer, block in enumerate(stack.blocks):
        assert isinstance(block, Block)
        path = f"{name}.blocks.{layer}"
        if block.norm_order == "sandwich":
            norm = block.get_submodule(f"{short}_out_norm")
            found[f"{path}.{short}_out_norm"] = _Norm(norm, (f"{path}.{site}.hook_o",))
        if block.norm_order == "post":
            before = f"{path}.hook_resid_pre"
            for part in sublayers:
                norm = block.get_submodule(f"{part}_norm")
                found[f"{path}.{part}_norm"] = _Norm(norm, (before, f"{path}.hook_{part}_out"))
                before = f"{path}.hook_resid_{'mid' if part == 'attn' else part}"
    found[f"{name}.norm"] = _Norm(stack.norm, (f"{name}.blocks.{len(stack.blocks) - 1}.hook_resid_post",))
    return {path: norm for path, norm in found.items() if not isinstance(norm.module, nn.Identity)}


def _scales(run: Trace, norms: dict[str, _Norm], positions: Sequence[int]) -> dict[str, Tensor]:
    """The scale of each norm at these positions, [position].

    They come from the lengths that a run stores if these suffice, otherwise from another pass, which keeps one number of
    each vector.
    """
    index, rows = run.index, torch.tensor(positions, device=run.loaded.device)
    by_length = {
        path: torch.rsqrt(run.norms[norm.points[0]][index, rows].pow(2) / run.config.d_model + norm.module.eps)
        for path, norm in norms.items()
        if isinstance(norm.module, RMSNorm) and len(norm.points) == 1 and norm.points[0] in run.norms
    }
    if len(by_length) == len(norms):
        return by_length
    ends = {norm.points[-1]: path for path, norm in norms.items()}
    residual: dict[str, Tensor] = {}  # before a sublayer, until the pass reaches the sublayer's output

    def part(point: str, x: Tensor) -> Tensor:
        x = x[index if x.shape[0] > 1 else 0, rows].float()
        if point not in ends:
            residual[point] = x
            return x[:0, 0]
        norm = norms[ends[point]]
        if len(norm.points) > 1:
            x = x + residual.pop(norm.points[0])
        return frozen_scale(norm.module, x)

    seen = run.forward.moments({point for norm in norms.values() for point in norm.points}, part)
    return {path: seen[point] for point, path in ends.items()}
