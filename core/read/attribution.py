"""Logit lens and direct logit attribution.

Logit lens: nostalgebraist 2020, "interpreting GPT: the logit lens". Direct attribution: Elhage et al. 2021, "A Mathematical
Framework for Transformer Circuits"; the scale of every norm is fixed at its value in the run, which makes the rest linear.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .. import frames, memory
from ..checkpoints import Loaded
from ..errors import TextError
from ..model.attention import Attention, RMSNorm
from ..model.hooks import hook_points
from ..model.text import Tokens
from ..model.transformer import Block, LMHead, Stack
from ..run.forward_pass import Pass
from ..run.predictions import Predictions, allowed_scores, following, head_of, likeliest, strings_of

Part = Literal["token", "position", "token type", "head", "mlp", "bias", "edit"]


@dataclass(frozen=True)
class LensLayer:
    """The head's prediction from the residual stream at `point`; layer None is the embedding, before any layer."""

    point: str
    layer: int | None
    predictions: Predictions

    def to_frame(self) -> frames.DataFrame:
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

    def to_frame(self) -> frames.DataFrame:
        """A row for each component. Requires pandas."""
        return frames.of_records(self.parts, Contribution)


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
    memory.admit_large(
        needed, loaded.device, f"The logit lens at {len(positions):,} positions", "Ask for fewer positions."
    )
    rows = torch.tensor(positions, device=loaded.device)
    streams = forward.moments(points, lambda _, x: x[text, rows])
    layers = []
    for i, point in enumerate(points):
        with torch.inference_mode():
            x = stack.norm(streams[point])
        layers.append(LensLayer(point, i - 1 if i else None, likeliest(loaded, x, tokens, positions, k)))
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
        allowed = allowed_scores(scores[None], following(loaded, tokens, [position]))[0]
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
        x = x[text if x.shape[0] > 1 else 0].float()
        return x[position] if point.endswith("hook_result") else x[..., position, :]

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
