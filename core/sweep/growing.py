"""A batch that grows: a row joins it after the part of the model that it changes, and begins at the first token that may differ."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import cast

import torch
from torch import Tensor

from ..model.cache import KV, Cache, with_prefix_cache
from ..model.transformer import Block, Stack, StackInputs
from ..plan.runs import run_bytes
from ..run.forward_pass import Pass
from ..run.prompt import model_inputs
from ..run.recorder import Held
from ..run.trace import Trace
from .part import Part

OF_LENGTH = ("dynamic", "longrope")  # rotary scalings that turn every token by the length of the whole text


def can_grow(forward: Pass, position: int) -> bool:
    """Whether rows of this pass over one text can join halfway and share their first tokens: of a decoder without edits.

    An edit may read the whole text at once, and a token of an encoder sees those after it.
    """
    config = forward.loaded.config
    if config.kind != "decoder" or forward.edited:
        return False
    of_length = config.rotary_scaling is not None and config.rotary_scaling.kind in OF_LENGTH
    return not of_length or position == forward.prompt.source_len - 1


@dataclass(frozen=True, eq=False)
class Stem:
    """A text up to the token that is asked about, with another one or none beside it, and the keys and values of the tokens before
    `first`, which are the same in both."""

    ids: Tensor  # [text, pos]
    keep: Tensor | None  # [1, pos], True on real tokens
    first: int
    known: tuple[KV, ...]  # of each layer, [1, kv_head, key, d_head]; () where `first` is 0

    def beside(self, forward: Pass) -> Stem:
        """The same with the text of another pass of this model beside it: few tokens are multiplied hardly faster than twice as many."""
        ids, _ = text_until(forward, self.ids.shape[1] - 1)
        return replace(self, ids=torch.cat([self.ids[:1], ids]))

    def of(self, forward: Pass) -> Stem:
        """The text of a pass of another model, by itself and from its first token on."""
        ids, keep = text_until(forward, self.ids.shape[1] - 1)
        return Stem(ids, keep, 0, ())

    @property
    def n_computed(self) -> int:
        """How many tokens are computed for each row."""
        return self.ids.shape[1] - self.first

    def cache(self, stack: Stack) -> Cache | None:
        return with_prefix_cache(stack.config, self.known) if self.first else None

    def prepare_inputs(self, stack: Stack) -> StackInputs:
        """Inputs of the layers for tokens from `first` on, of any number of rows."""
        return stack.prepare_inputs(self.ids[:1, self.first :], self.keep, cache=self.cache(stack))

    def run(self, stack: Stack) -> Tensor:
        """The last residual [text, pos, d_model] of the tokens from `first` on."""
        return stack(self.ids[:, self.first :], None, self.keep, cache=self.cache(stack))


def stem_of(run: Trace, position: int, first: int) -> Stem:
    """The stem of a run up to a position; its first keys and values are those that the run holds, or come from another pass."""
    forward = run.forward.of(run.index)
    ids, keep = text_until(forward, position)
    if not first:
        return Stem(ids, keep, 0, ())
    device = run.loaded.device
    if all(isinstance(record.values, Held) for record in run.records):
        found = [(record.batch_k[run.index], record.values()[run.index]) for record in run.records]
    else:
        points = [f"{record.name}.hook_{what}" for record in run.records for what in "kv"]
        seen = forward.moments(points, lambda _, x: x[0, :, :first].clone())
        found = [(seen[f"{record.name}.hook_k"], seen[f"{record.name}.hook_v"]) for record in run.records]
    known = tuple((k[None, :, :first].to(device), v[None, :, :first].to(device)) for k, v in found)
    return Stem(ids, keep, first, known)


def text_until(forward: Pass, position: int) -> tuple[Tensor, Tensor | None]:
    """Ids and mask of a text, [1, pos] each, up to a position; no mask where nothing is hidden."""
    ids, _, keep, _, _ = model_inputs(forward.prompt, forward.loaded.device)
    keep = None if keep is None else keep[:, : position + 1]
    return ids[:, : position + 1], None if keep is None or bool(keep.all()) else keep


def stem_points(forward: Pass) -> list[str]:
    """The hook points of a decoder that rows join at."""
    config = forward.loaded.config
    ends = ["attn.hook_z", "attn.hook_o", "hook_mlp_out", "hook_resid_post"]
    ends += [] if config.parallel else ["hook_resid_mid"]
    layers = [f"decoder.blocks.{i}" for i in range(config.n_decoder_layers)]
    return ["decoder.embed.hook_embed", *(f"{layer}.{end}" for layer in layers for end in ends)]


@dataclass(frozen=True, eq=False)
class Passed:
    """Tensors that passed in a run, by hook point and without the batch; the same of another text that ran beside it; and the last residual
    [d_model] of the run's last token."""

    own: Mapping[str, Tensor]
    theirs: Mapping[str, Tensor] | None
    final: Tensor


def passed_of(seen: Mapping[str, Tensor], final: Tensor) -> Passed:
    """From what passed with the axis of texts, and the last residual [text, pos, d_model]."""
    own = {point: x.detach()[0] for point, x in seen.items()}
    theirs = {point: x.detach()[1] for point, x in seen.items()} if len(final) > 1 else None
    return Passed(own, theirs, final.detach()[0, -1])


def stem_moments(forward: Pass, stem: Stem, points: Sequence[str]) -> Passed:
    """All that passes these points in one plain pass."""
    seen: dict[str, Tensor] = {}

    def look(point: str, x: Tensor) -> None:
        seen[point] = x

    forward.weights.check()
    with forward.within({point: partial(look, point) for point in points}):
        found = passed_of(seen, stem.run(decoder_of(forward)))
    forward.weights.check()  # a training may run meanwhile
    return found


def decoder_of(forward: Pass) -> Stack:
    return cast(Stack, forward.loaded.model.decoder)


def held_bytes(forward: Pass, tokens: int, first: int, sides: int) -> int:
    """Bytes of the moments of one run and of `sides` others, of so many tokens from `first` on, and of the keys and values before."""
    config = forward.loaded.config
    width = config.n_heads * config.value_width
    own = config.n_decoder_layers * tokens * (width + 4 * config.d_model) + tokens * config.d_model
    kv_heads = config.n_heads if config.kv_rank else config.n_kv_heads
    known = config.n_decoder_layers * first * kv_heads * (config.d_head + config.value_width)
    return ((1 + sides) * own + known) * forward.loaded.dtype.itemsize


def row_bytes(forward: Pass, tokens: int, first: int) -> int:
    """Bytes that one row of the batch needs at its widest moment, scores of words included."""
    config, by = forward.loaded.config, forward.loaded.dtype.itemsize
    kv_heads = config.n_heads if config.kv_rank else config.n_kv_heads
    one = run_bytes(config, source_len=tokens, dtype=forward.workload.dtype, keep_values=False)
    keys = 2 * (tokens + first) * kv_heads * (config.d_head + config.value_width) * by
    in_steps = 4 * config.n_heads * tokens * (tokens + first) * 4 if config.runs_in_steps else 0
    streams = 3 * tokens * config.d_model * by  # before and after rows join
    return one.transient + one.captured // config.n_decoder_layers + keys + in_steps + streams + 12 * config.vocab_size


@dataclass(frozen=True, eq=False)
class Growing:
    """Rows of one text, each with one part that gives something else than in the run."""

    forward: Pass
    stem: Stem
    own: Mapping[str, Tensor]  # what passed stem_points() in the run
    given: Mapping[str, Tensor]  # by hook point: what each part gives instead, of every token or one for all

    def run(self, parts: Sequence[Part]) -> Tensor:
        """The last residual [row, d_model] of the last token, a row for each part, in their order."""
        order = sorted(range(len(parts)), key=lambda i: (parts[i].layer, JOINS[parts[i].kind]))
        stack, n = decoder_of(self.forward), self.forward.loaded.config.n_decoder_layers
        joining: dict[tuple[int, str], list[Part]] = {}
        for i in order:
            joining.setdefault((parts[i].layer, parts[i].kind), []).append(parts[i])
        with self.forward.within():
            inputs = self.stem.prepare_inputs(stack)
            x = self.own["decoder.embed.hook_embed"].new_empty(0, self.stem.n_computed, stack.config.d_model)
            for layer in range(n):
                block, last = cast(Block, stack.blocks[layer]), layer == n - 1
                step = block.attention_sublayers_last if last else block.attention_sublayers
                x = step(x, stack.layer_inputs(layer, inputs)) if len(x) else x[:, -1:] if last else x
                heads = self._with_heads(block, layer, joining.get((layer, "head"), []), last)
                if block.parallel:
                    x = block.hook_resid_post(x) if len(x) else x
                    x = torch.cat([x, *heads])
                else:
                    x = torch.cat([x, *heads])
                    x = block.mlp_sublayer(x) if len(x) else x
                mlps = self._with_mlps(block, layer, joining.get((layer, "mlp"), []), last)
                words = self._with_words(layer, joining.get((layer, "resid"), []), last)
                x = torch.cat([x, *mlps, *words])
            final = stack.hook_final(stack.norm(x))[:, -1]
        rows = torch.empty_like(final)
        rows[torch.tensor(order, device=rows.device)] = final
        return rows

    def _with_heads(self, block: Block, layer: int, parts: Sequence[Part], last: bool) -> list[Tensor]:
        """The stream [row, pos, d_model] after the attention with one head changed; in parallel order, after the layer."""
        if not parts:
            return []
        own, z = self._own(layer, last), f"decoder.blocks.{layer}.attn.hook_z"
        chosen = [part.at for part in parts]
        change = cut(self.given[z], last)[chosen] - cut(self.own[z], last)[chosen]  # [row, pos, d_v]
        weight = block.attn.o.weight.unflatten(1, (-1, block.attn.d_v))[:, chosen]  # [d_model, row, d_v]
        written = torch.einsum("rpv,mrv->rpm", change, weight)
        if block.parallel:
            return [own("hook_resid_post") + written]
        attended = block.attn_out_norm(own("attn.hook_o") + written)
        before = cut(self.own[stream_before(layer)], last)
        return [block.attn_norm(before + attended) if block.norm_order == "post" else before + attended]

    def _with_mlps(self, block: Block, layer: int, parts: Sequence[Part], last: bool) -> list[Tensor]:
        """The stream [row, pos, d_model] after the layer with another output of its MLP."""
        if not parts:
            return []
        own = self._own(layer, last)
        worked = cut(self.given[f"decoder.blocks.{layer}.hook_mlp_out"], last)
        if block.parallel:
            found = own("hook_resid_post") + (worked - own("hook_mlp_out"))
        else:
            found = own("hook_resid_mid") + worked
            found = block.mlp_norm(found) if block.norm_order == "post" else found
        return [found.expand(len(parts), -1, -1)]

    def _with_words(self, layer: int, parts: Sequence[Part], last: bool) -> list[Tensor]:
        """The stream [row, pos, d_model] after the layer with another vector at one token; tokens before the first are the same."""
        if not parts:
            return []
        point = f"decoder.blocks.{layer}.hook_resid_post"
        found = self.own[point].repeat(len(parts), 1, 1)
        for row, part in enumerate(parts):
            at = part.at - self.stem.first
            if 0 <= at < found.shape[1]:
                found[row, at] = self.given[point][at]
        return [cut(found, last)]

    def _own(self, layer: int, last: bool):
        return lambda end: cut(self.own[f"decoder.blocks.{layer}.{end}"], last)


JOINS = {"head": 0, "mlp": 1, "resid": 2}  # in the order of a layer


def cut(x: Tensor, last: bool) -> Tensor:
    """[..., pos, width] -> that of the last token alone, where `last` asks for it."""
    return x[..., -1:, :] if last else x


def stream_before(layer: int) -> str:
    return f"decoder.blocks.{layer - 1}.hook_resid_post" if layer else "decoder.embed.hook_embed"
