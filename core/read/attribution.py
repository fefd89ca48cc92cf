"""Direct logit attribution: contributions of components to a logit, and the direction in which a logit reads them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .. import dataframes, device
from ..checkpoints import Loaded
from ..errors import TextError
from ..model.attention import Attention, RMSNorm
from ..model.hooks import hook_points
from ..model.text import Tokens
from ..model.transformer import Block, LMHead, Stack
from ..run.attention import AttentionRecord
from ..run.forward_pass import Pass
from ..run.predictions import (
    Predictions,
    allowed_scores,
    check_token,
    checked_positions,
    head_of,
    next_token_constraints,
    strings_of,
    top_k_tokens,
)
from ..run.trace_record import TraceRecord

Part = Literal["token", "position", "token type", "head", "mlp", "bias", "edit"]


@dataclass(frozen=True)
class LensLayer:
    """The head's prediction from the residual stream at `point`; layer None is the embedding, before any layer."""

    point: str
    layer: int | None
    predictions: Predictions

    def to_frame(self) -> dataframes.DataFrame:
        """The predictions and the point: pandas.concat(layer.to_frame() for layer in run.logit_lens()) has all layers."""
        made = self.predictions.to_frame()
        made.insert(0, "point", self.point)
        return made


@dataclass(frozen=True)
class Contribution:
    """The contribution of one component to a logit. layer, site and head are None if they do not apply to it."""

    part: Part
    value: float
    layer: int | None = None
    site: Literal["attn", "cross_attn"] | None = None
    head: int | None = None
    what: str = ""  # the owner of a bias or an edit


@dataclass(frozen=True)
class Contributions:
    """The contributions to one logit in forward order. They sum to it, up to rounding."""

    position: int
    token: int
    string: str
    logit: float  # the model's own
    parts: tuple[Contribution, ...]

    def to_frame(self) -> dataframes.DataFrame:
        """A row for each component. Requires pandas."""
        return dataframes.of_records(self.parts, Contribution)


def logit_lens(forward: Pass, text: int, positions: Sequence[int], k: int) -> tuple[LensLayer, ...]:
    """The k most likely tokens at each of `positions` from the residual stream before and after every layer: Trace.logit_lens()."""
    loaded = forward.loaded
    head_of(loaded)
    name, stack = _last_stack(forward)
    tokens = forward.prompt.last_read[text]
    n = len(stack.blocks)
    points = [f"{name}.blocks.0.hook_resid_pre", *(f"{name}.blocks.{i}.hook_resid_post" for i in range(n))]
    width, by = loaded.config.d_model, loaded.dtype.itemsize
    needed = len(positions) * ((n + 1) * width * by + loaded.config.vocab_size * (2 * by + 8))
    device.check_fits_or_retry(
        needed, loaded.device, f"The logit lens at {len(positions):,} positions", "Ask for fewer positions."
    )
    rows = torch.tensor(positions, device=loaded.device)
    streams = forward.moments(points, lambda _, x: x[text, rows])
    layers = []
    for i, point in enumerate(points):
        with torch.inference_mode():
            x = stack.norm(streams[point])
        layers.append(LensLayer(point, i - 1 if i else None, top_k_tokens(loaded, x, tokens, positions, k)))
    forward.weights.check()  # a training may run at the same time
    return tuple(layers)


def contributions(forward: Pass, text: int, tokens: Tokens, position: int, token: int | None) -> Contributions:
    """The contributions to the logit of `token` (None: the most likely one) after `position`: see Trace.logit_attribution()."""
    loaded = forward.loaded
    head = linear_head(loaded)
    name, stack = _last_stack(forward)
    seen = _seen(forward, name, text, position)
    with torch.inference_mode():
        scores = head(seen[f"{name}.hook_final"].to(loaded.dtype)[None, None])[0, 0].float()
        allowed = allowed_scores(scores[None], next_token_constraints(loaded, tokens, [position]))[0]
        token = int(allowed.argmax()) if token is None else token
        walk = _Walk(name, stack, seen, forward.edited, head.unembed.weight[token].float() * head.scale)
        walk.whole(head, token, tokens.type_ids[position] if name == "encoder" else 0)
    forward.weights.check()  # a training may run at the same time
    (string,) = strings_of(loaded, [token])
    return Contributions(position, token, string, scores[token].item(), tuple(reversed(walk.parts)))


def head_pushes(forward: Pass, text: int, tokens: Tokens, position: int, watched: Sequence[int]) -> np.ndarray:
    """float32 [layer, head, watched]: the contribution of every head of the last stack's self-attention to the logits of some
    tokens after `position`, above its mean over the vocabulary. Norms and errors are those of contributions().
    """
    loaded = forward.loaded
    head = linear_head(loaded)
    name, stack = _last_stack(forward)
    seen = _seen(forward, name, text, position)
    type_id = tokens.type_ids[position] if name == "encoder" else 0
    found = np.zeros((len(stack.blocks), loaded.config.n_heads, len(watched)), np.float32)
    with torch.inference_mode():
        average = head.unembed.weight.float().mean(0)
        for i, token in enumerate(watched):
            above = (head.unembed.weight[token].float() - average) * head.scale
            walk = _Walk(name, stack, seen, forward.edited, above)
            walk.whole(head, token, type_id)
            for part in walk.parts:
                if part.site == "attn" and part.layer is not None and part.head is not None:
                    found[part.layer, part.head, i] = part.value
    forward.weights.check()
    return found


def _seen(forward: Pass, name: str, text: int, position: int) -> dict[str, Tensor]:
    """The tensors that decide a logit, at one position of one text, by hook point."""

    def at_position(point: str, x: Tensor) -> Tensor:
        return x[text if x.shape[0] > 1 else 0, position].float()

    return forward.moments(_points(forward, name), at_position)


def linear_head(loaded: Loaded) -> LMHead:
    """The head of a model whose logits are linear in the residual stream. Raises TextError for other models."""
    head = head_of(loaded)
    if head.mlm:
        raise TextError(
            f"{loaded.spec.title} works on the stream once more before it scores words, with an activation between: what a part "
            "adds to a score is not defined there. Try a model that writes on, such as GPT-2."
        )
    if head.softcap is not None:
        raise TextError(
            f"{loaded.spec.title} bends every score by a tanh at its end: what a part adds to a score is not defined there. Try a model "
            "without a soft-cap on its logits."
        )
    return head


def frozen_scale(norm: nn.Module, x: Tensor) -> Tensor:
    """The factor that this norm applies to each x [..., d_model] in addition to its weight, [...], float32."""
    assert isinstance(norm, RMSNorm | nn.LayerNorm)
    spread = x.pow(2).mean(-1) if isinstance(norm, RMSNorm) else x.var(-1, correction=0)
    return torch.rsqrt(spread + norm.eps)


def back_through(norm: nn.Module, g: Tensor, scale: Tensor) -> Tensor:
    """From the gradient g [..., d_model] at norm(x) to that at x, with the scale [...] fixed at its value in the run."""
    assert isinstance(norm, RMSNorm | nn.LayerNorm) and norm.weight is not None
    scaled = g * norm.weight.float() * scale[..., None]
    return scaled if isinstance(norm, RMSNorm) else scaled - scaled.mean(-1, keepdim=True)  # it subtracts the mean of x


def _last_stack(forward: Pass) -> tuple[str, Stack]:
    return forward.loaded.config.stacks[-1][0], forward.loaded.model.stacks[-1]


def _points(forward: Pass, name: str) -> list[str]:
    """The hook points that decide a logit."""
    ends = tuple(f".hook_{what}" for what in ("final", "embed", "token", "position", "z", "o", "attn_out", "cross_out"))
    ends += tuple(f".hook_{what}" for what in ("mlp_out", "resid_pre", "resid_mid", "resid_cross", "resid_post"))
    points = hook_points(forward.loaded.model)
    edited = [point for point in forward.edited if point.startswith(name) and point.endswith(".hook_result")]
    return [*edited, *(point for point in points if point.startswith(name) and point.endswith(ends))]


@dataclass
class _Walk:
    """Backward walk from the logit to the embedding. `g` [d_model] is the direction read from the residual stream there."""

    name: str
    stack: Stack
    seen: dict[str, Tensor]  # by hook point, at one position
    edited: frozenset[str]
    g: Tensor
    parts: list[Contribution] = field(default_factory=list)

    def add(self, part: Part, x: Tensor, layer: int | None = None, what: str = "") -> None:
        self.parts.append(Contribution(part, (x @ self.g).item(), layer, what=what))

    def add_edit(self, point: str, made: Tensor, layer: int | None = None) -> None:
        """Add the change that a hook made at this point."""
        if point in self.edited:
            self.add("edit", self.seen[point] - made, layer, point.rsplit(".hook_", 1)[1])

    def through(self, norm: nn.Module, x: Tensor, layer: int | None, what: str) -> None:
        """Go back through norm(x) with its scale fixed: mean and weight go into g, its bias is a contribution."""
        if isinstance(norm, nn.Identity):
            return
        if isinstance(norm, nn.LayerNorm) and norm.bias is not None:
            self.add("bias", norm.bias.float(), layer, what)
        self.g = back_through(norm, self.g, frozen_scale(norm, x))

    def whole(self, head: LMHead, token: int, token_type: int) -> None:
        name, stack, n = self.name, self.stack, len(self.stack.blocks)
        if head.unembed.bias is not None:
            self.parts.append(Contribution("bias", head.unembed.bias[token].item(), what="head"))
        last = self.seen[f"{name}.blocks.{n - 1}.hook_resid_post"]
        self.add_edit(f"{name}.hook_final", _apply(stack.norm, last))
        self.through(stack.norm, last, None, "last norm")
        for layer in reversed(range(n)):
            block = stack.blocks[layer]
            assert isinstance(block, Block)
            self.block(block, f"{name}.blocks.{layer}", layer)
            before = f"{name}.blocks.{layer - 1}.hook_resid_post" if layer else f"{name}.embed.hook_embed"
            self.add_edit(f"{name}.blocks.{layer}.hook_resid_pre", self.seen[before], layer)
        self.embedding(token_type)

    def block(self, block: Block, path: str, layer: int) -> None:
        """Go back through the sublayers of a block."""
        seen, start = self.seen, f"{path}.hook_resid_pre"
        if block.parallel:
            attended, worked = seen[f"{path}.hook_attn_out"], seen[f"{path}.hook_mlp_out"]
            self.add_edit(f"{path}.hook_resid_post", seen[start] + attended + worked, layer)
            self.add("mlp", worked, layer)
            self.attention(block, path, "attn", layer)
            return
        steps = [
            ("attn", start, f"{path}.hook_resid_mid"),
            ("mlp", f"{path}.hook_resid_mid", f"{path}.hook_resid_post"),
        ]
        if f"{path}.hook_resid_cross" in seen:
            steps.insert(1, ("cross", f"{path}.hook_resid_mid", f"{path}.hook_resid_cross"))
            steps[2] = ("mlp", f"{path}.hook_resid_cross", f"{path}.hook_resid_post")
        for site, before, after in reversed(steps):
            total = seen[before] + seen[f"{path}.hook_{site}_out"]
            norm = block.get_submodule(f"{site}_norm") if block.norm_order == "post" else nn.Identity()
            self.add_edit(after, _apply(norm, total), layer)
            self.through(norm, total, layer, f"{site} norm")
            if site == "mlp":
                self.add("mlp", seen[f"{path}.hook_mlp_out"], layer)
            else:
                self.attention(block, path, "attn" if site == "attn" else "cross_attn", layer)

    def attention(self, block: Block, path: str, site: Literal["attn", "cross_attn"], layer: int) -> None:
        """Add the heads of an attention, each by its part of W_O, after the norm that a sandwich block has there."""
        seen, short, stream = self.seen, site.removesuffix("_attn"), self.g
        module = block.get_submodule(site)
        assert isinstance(module, Attention)
        added, out_norm = seen[f"{path}.{site}.hook_o"], block.get_submodule(f"{short}_out_norm")
        self.add_edit(f"{path}.hook_{short}_out", _apply(out_norm, added), layer)
        self.through(out_norm, added, layer, f"{short} out norm")
        result = seen.get(f"{path}.{site}.hook_result")
        if result is None:  # z [head, d_head]
            weight = module.o.weight.float().unflatten(1, (-1, module.d_v))  # [d_model, head, d_head]
            result = torch.einsum("hd,mhd->hm", seen[f"{path}.{site}.hook_z"], weight)
        bias = torch.zeros_like(added) if module.o.bias is None else module.o.bias.float()
        self.add_edit(f"{path}.{site}.hook_o", result.sum(0) + bias, layer)
        if module.o.bias is not None:
            self.add("bias", bias, layer, site)
        values = (result @ self.g).tolist()
        self.parts += [Contribution("head", values[h], layer, site, h) for h in reversed(range(len(values)))]
        self.g = stream

    def embedding(self, token_type: int) -> None:
        name, embed, seen = self.name, self.stack.embed, self.seen
        parts: list[tuple[Part, Tensor]] = [("token", seen[f"{name}.embed.hook_token"])]
        if embed.token_type is not None:
            parts.append(("token type", embed.token_type.weight[token_type].float()))
        if embed.has_table:
            parts.append(("position", seen[f"{name}.embed.hook_position"]))
        total = torch.stack([x for _, x in parts]).sum(0)
        made = _apply(embed.norm, total)
        if embed.project is not None:
            weight, bias = embed.project.weight.float(), embed.project.bias.float()
            self.add_edit(f"{name}.embed.hook_embed", F.linear(made, weight, bias))
            self.add("bias", bias, what="embedding projection")
            self.g = self.g @ weight
        else:
            self.add_edit(f"{name}.embed.hook_embed", made)
        self.through(embed.norm, total, None, "embedding norm")
        for part, x in reversed(parts):
            self.add(part, x)


def _apply(norm: nn.Module, x: Tensor) -> Tensor:
    """norm(x) in float32, whatever the dtype of its weights."""
    if isinstance(norm, nn.LayerNorm):
        bias = None if norm.bias is None else norm.bias.float()
        return F.layer_norm(x, norm.normalized_shape, norm.weight.float(), bias, norm.eps)
    return norm(x).float()


Site = Literal["attn", "cross_attn"]

LOGIT_ROWS = 32  # positions for which the logits of the whole vocabulary are computed together


@dataclass(frozen=True)
class Asked:
    """Logits of a run, one per row: of a token after a position, or the mean of the logits of several tokens."""

    run: TraceRecord
    site: Site
    positions: tuple[int, ...]
    tokens: tuple[tuple[int, ...], ...]  # of each position; the mean over no token is 0


@dataclass(frozen=True)
class _Norm:
    """A norm between an attention and the logit, and the hook points whose sum is its input."""

    module: nn.Module
    points: tuple[str, ...]


def asked(run: TraceRecord, positions: Sequence[int] | None, tokens: Sequence[int] | None, site: Site | None) -> Asked:
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


def has_looks(run: TraceRecord) -> bool:
    """True if the logits of this model are sums over attention edges: it predicts tokens with a linear head."""
    head = run.loaded.model.head
    return isinstance(head, LMHead) and not head.mlm and head.softcap is None and run.config.kind != "encoder"


def site_of(run: TraceRecord, site: Site | None) -> Site:
    """Resolve a site: None is cross-attention if the model has it. Raises TextError for cross-attention if it has none."""
    has_cross = run.config.kind == "encoder-decoder"
    if site == "cross_attn" and not has_cross:
        raise TextError(f"{run.spec.title} has no cross-attention. Leave the site out, or ask for attn.")
    return site or ("cross_attn" if has_cross else "attn")


def records_of(run: TraceRecord, site: Site | None) -> tuple[AttentionRecord, ...]:
    """The attentions of one site of the last stack, one per layer, in forward order."""
    stack, site = run.config.stacks[-1][0], site_of(run, site)
    return tuple(record for record in run.attention if (record.stack, record.site) == (stack, site))


def likeliest_tokens(run: TraceRecord, positions: Sequence[int], k: int) -> tuple[tuple[int, ...], ...]:
    """The k most likely tokens that may follow each position (fewer if fewer may), computed for a few positions at a time."""
    found: list[tuple[int, ...]] = []
    tokens = run.forward.prompt.last_read[run.index]
    x = run.last_residual(torch.tensor(positions, device=run.loaded.device))[run.index]  # [pos, d_model]
    for start in range(0, len(positions), LOGIT_ROWS):
        some = positions[start : start + LOGIT_ROWS]
        found += top_k_tokens(run.loaded, x[start : start + LOGIT_ROWS], tokens, some, k).ids
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


def _scales(run: TraceRecord, norms: dict[str, _Norm], positions: Sequence[int]) -> dict[str, Tensor]:
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
