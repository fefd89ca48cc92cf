"""Components of a model, and the run and counterfactual values they are patched with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal, cast

import torch
from torch import Tensor

from .. import device
from ..errors import InterventionError, TextError
from ..model.cache import KV, Cache, with_prefix_cache
from ..model.hooks import hook_points
from ..model.text import Tokens
from ..model.transformer import Block, Stack, StackInputs
from ..plan.peak import run_bytes
from ..run.forward_pass import Pass
from ..run.predictions import checked_positions, head_of
from ..run.recorder import HeldTensor
from ..run.request import model_inputs
from ..run.trace_record import TraceRecord
from .head_sweeps import check_lengths, check_same_model, final_token_input

ComponentKind = Literal["head", "mlp", "resid"]
Site = Literal["attn", "cross_attn"]
_ENDS: dict[ComponentKind, str] = {"head": "hook_z", "mlp": "hook_mlp_out", "resid": "hook_resid_post"}


@dataclass(frozen=True)
class Component:
    """Component of a model: Component("head", layer, head), Component("mlp", layer), or Component("resid", layer, token), which is the
    residual stream after a layer.

    `stack` None is the last one, the decoder of a model with two.
    """

    kind: ComponentKind
    layer: int
    at: int = 0  # index of the head, or of the token; 0 for an MLP
    stack: str | None = None
    site: Site = "attn"  # of a head

    def point(self, last_stack: str) -> str:
        """The hook point of the component's output."""
        site = f"{self.site}." if self.kind == "head" else ""
        return f"{self.stack or last_stack}.blocks.{self.layer}.{site}{_ENDS[self.kind]}"


def check_component(run: TraceRecord, part: Component) -> None:
    """Raise InterventionError if the run has no such component."""
    stacks = dict(run.config.stacks)
    name = part.stack or run.config.stacks[-1][0]
    if part.kind not in _ENDS:
        raise InterventionError(f"A part is a head, an mlp or a resid, not {part.kind!r}.")
    if name not in stacks:
        raise InterventionError(f"This model has no {name}; it has: {', '.join(stacks)}.")
    if not 0 <= part.layer < stacks[name]:
        raise InterventionError(f"There is no {name} layer {part.layer}: its layers are 0 to {stacks[name] - 1}.")
    if part.kind == "head" and part.site != "attn" and not (name == "decoder" and "encoder" in stacks):
        raise InterventionError(f"The {name} of this model has no {part.site}: its heads are those of attn.")
    tokens = run.source if name == "encoder" or run.target is None else run.target
    n, noun = {"head": (run.config.n_heads, "head"), "mlp": (1, "MLP"), "resid": (len(tokens), "token")}[part.kind]
    if not 0 <= part.at < n:
        raise InterventionError(f"There is no {noun} {part.at}: they are 0 to {n - 1}.")


LENGTH_SCALINGS = ("dynamic", "longrope")  # rotary scalings whose angles depend on the length of the whole text


def can_grow(forward: Pass, position: int) -> bool:
    """True if rows of this pass can join halfway and share their first tokens: it must be a decoder without edits.

    An edit may read the whole text, and a token of an encoder attends to later tokens.
    """
    config = forward.loaded.config
    if config.kind != "decoder" or forward.edited:
        return False
    by_length = config.rotary_scaling is not None and config.rotary_scaling.kind in LENGTH_SCALINGS
    return not by_length or position == forward.prompt.source_len - 1


@dataclass(frozen=True, eq=False)
class SharedPrefix:
    """A text up to the position under study, optionally with a counterfactual text, and the keys and values of the tokens before
    `first`, which are the same in both."""

    ids: Tensor  # [text, pos]
    keep: Tensor | None  # [1, pos], True on real tokens
    first: int
    cached: tuple[KV, ...]  # by layer, [1, kv_head, key, d_head]; () if `first` is 0

    def with_counterfactual(self, forward: Pass) -> SharedPrefix:
        """The prefix with the text of another pass of the same model, which costs little more: few tokens do not fill the processor."""
        ids, _ = text_until(forward, self.ids.shape[1] - 1)
        return replace(self, ids=torch.cat([self.ids[:1], ids]))

    def of_other_model(self, forward: Pass) -> SharedPrefix:
        """The text of a pass of another model, from its first token on, because other weights share no activations."""
        return SharedPrefix(*text_until(forward, self.ids.shape[1] - 1), 0, ())

    @property
    def n_computed(self) -> int:
        """Number of tokens computed for each row."""
        return self.ids.shape[1] - self.first

    def cache(self, stack: Stack) -> Cache | None:
        return with_prefix_cache(stack.config, self.cached) if self.first else None

    def prepare_inputs(self, stack: Stack) -> StackInputs:
        """Layer prepare_inputs of the tokens from `first` on, for any number of rows."""
        return stack.prepare_inputs(self.ids[:1, self.first :], self.keep, cache=self.cache(stack))

    def run(self, stack: Stack) -> Tensor:
        """Return the last residual [text, pos, d_model] of the tokens from `first` on."""
        return stack(self.ids[:, self.first :], None, self.keep, cache=self.cache(stack))


def shared_prefix_of(run: TraceRecord, position: int, first: int) -> SharedPrefix:
    """The prefix of a run up to a position. Keys and values before `first` come from the run if it stored them, otherwise from another
    pass."""
    forward = run.forward.of(run.index)
    ids, keep = text_until(forward, position)
    if not first:
        return SharedPrefix(ids, keep, 0, ())
    device = run.loaded.device
    if all(isinstance(record.values, HeldTensor) for record in run.records):
        pairs = [(record.batch_k[run.index], record.values()[run.index]) for record in run.records]
    else:
        points = [f"{record.name}.hook_{what}" for record in run.records for what in "kv"]
        seen = forward.moments(points, lambda _, x: x[0, :first].transpose(0, 1).clone())
        pairs = [(seen[f"{record.name}.hook_k"], seen[f"{record.name}.hook_v"]) for record in run.records]
    cached = tuple((k[None, :, :first].to(device), v[None, :, :first].to(device)) for k, v in pairs)
    return SharedPrefix(ids, keep, first, cached)


def text_until(forward: Pass, position: int) -> tuple[Tensor, Tensor | None]:
    """Return the ids and the mask of a text up to a position, [1, pos] each; no mask if no token is masked."""
    ids, _, keep, _, _ = model_inputs(forward.prompt, forward.loaded.device)
    keep = None if keep is None else keep[:, : position + 1]
    return ids[:, : position + 1], None if keep is None or bool(keep.all()) else keep


def joining_points(forward: Pass) -> list[str]:
    """The hook points of a decoder at which rows join."""
    config = forward.loaded.config
    ends = ["attn.hook_z", "attn.hook_o", "hook_mlp_out", "hook_resid_post"]
    ends += [] if config.parallel else ["hook_resid_mid"]
    layers = [f"decoder.blocks.{i}" for i in range(config.n_decoder_layers)]
    return ["decoder.embed.hook_embed", *(f"{layer}.{end}" for layer in layers for end in ends)]


@dataclass(frozen=True, eq=False)
class Activations:
    """Activations of one pass by hook point, without the batch axis."""

    own: Mapping[str, Tensor]
    other: Mapping[str, Tensor] | None  # of the counterfactual text, if it ran in the same pass
    final: Tensor  # [d_model]: the last residual of the last token of the run


def activations_of(seen: Mapping[str, Tensor], final: Tensor) -> Activations:
    """Split activations [text, ...] and the last residual [text, pos, d_model] by text."""
    own = {point: x.detach()[0] for point, x in seen.items()}
    other = {point: x.detach()[1] for point, x in seen.items()} if len(final) > 1 else None
    return Activations(own, other, final.detach()[0, -1])


def prefix_activations(forward: Pass, prefix: SharedPrefix, points: Sequence[str]) -> Activations:
    """Return the activations at these hook points in one unedited pass."""
    seen: dict[str, Tensor] = {}
    forward.weights.check()
    with forward.within({point: lambda x, point=point: seen.__setitem__(point, x) for point in points}):
        activations = activations_of(seen, prefix.run(decoder_of(forward)))
    forward.weights.check()  # a training may have changed them in the meantime
    return activations


def decoder_of(forward: Pass) -> Stack:
    return cast(Stack, forward.loaded.model.decoder)


def held_bytes(forward: Pass, tokens: int, first: int, sides: int) -> int:
    """Bytes of the activations of one run and of `sides` others, for `tokens` tokens from `first` on, and of the keys and values before."""
    config = forward.loaded.config
    width = config.n_heads * config.value_width
    own = config.n_decoder_layers * tokens * (width + 4 * config.d_model) + tokens * config.d_model
    kv_heads = config.n_heads if config.kv_rank else config.n_kv_heads
    cached = config.n_decoder_layers * first * kv_heads * (config.d_head + config.value_width)
    return ((1 + sides) * own + cached) * forward.loaded.dtype.itemsize


def row_bytes(forward: Pass, tokens: int, first: int) -> int:
    """Peak bytes of one row of the batch, including its logits."""
    config, itemsize = forward.loaded.config, forward.loaded.dtype.itemsize
    kv_heads = config.n_heads if config.kv_rank else config.n_kv_heads
    run = run_bytes(config, source_len=tokens, dtype=forward.workload.dtype, keep_values=False)
    keys = 2 * (tokens + first) * kv_heads * (config.d_head + config.value_width) * itemsize
    eager = 4 * config.n_heads * tokens * (tokens + first) * 4 if config.runs_in_steps else 0
    streams = 3 * tokens * config.d_model * itemsize  # before and after rows join
    return run.transient + run.captured // config.n_decoder_layers + keys + eager + streams + 12 * config.vocab_size


@dataclass(frozen=True, eq=False)
class IncrementalBatch:
    """Rows of one text, each with one component replaced."""

    forward: Pass
    prefix: SharedPrefix
    own: Mapping[str, Tensor]  # activations of the run at joining_points()
    replacements: Mapping[str, Tensor]  # by hook point: the values that replace them, for every token or one for all

    def run(self, parts: Sequence[Component]) -> Tensor:
        """Return the last residual [row, d_model] of the last token, one row for each component, in their order."""
        order = sorted(range(len(parts)), key=lambda i: (parts[i].layer, JOIN_ORDER[parts[i].kind]))
        stack, n = decoder_of(self.forward), self.forward.loaded.config.n_decoder_layers
        joining: dict[tuple[int, str], list[Component]] = {}
        for i in order:
            joining.setdefault((parts[i].layer, parts[i].kind), []).append(parts[i])
        with self.forward.within():
            inputs = self.prefix.prepare_inputs(stack)
            x = self.own["decoder.embed.hook_embed"].new_empty(0, self.prefix.n_computed, stack.config.d_model)
            for layer in range(n):
                block, last = cast(Block, stack.blocks[layer]), layer == n - 1
                step = block.attention_sublayers_last if last else block.attention_sublayers
                x = step(x, stack.layer_inputs(layer, inputs)) if len(x) else x[:, -1:] if last else x
                heads = self._rows_with_heads(block, layer, joining.get((layer, "head"), []), last)
                if block.parallel:
                    x = torch.cat([block.hook_resid_post(x) if len(x) else x, *heads])
                else:
                    x = torch.cat([x, *heads])
                    x = block.mlp_sublayer(x) if len(x) else x
                mlps = self._rows_with_mlps(block, layer, joining.get((layer, "mlp"), []), last)
                streams = self._rows_with_streams(layer, joining.get((layer, "resid"), []), last)
                x = torch.cat([x, *mlps, *streams])
            final = stack.hook_final(stack.norm(x))[:, -1]
        rows = torch.empty_like(final)
        rows[torch.tensor(order, device=rows.device)] = final
        return rows

    def _rows_with_heads(self, block: Block, layer: int, parts: Sequence[Component], last: bool) -> list[Tensor]:
        """The residual stream [row, pos, d_model] after the attention (in a parallel block, after the layer) with one head replaced."""
        if not parts:
            return []
        own, z = partial(self._own, layer, last), f"decoder.blocks.{layer}.attn.hook_z"
        heads = [part.at for part in parts]
        change = (
            _positions(self.replacements[z], last)[:, heads] - _positions(self.own[z], last)[:, heads]
        )  # [pos, row, d_v]
        weight = block.attn.o.weight.unflatten(1, (-1, block.attn.d_v))[:, heads]  # [d_model, row, d_v]
        written = torch.einsum("prv,mrv->rpm", change, weight)
        if block.parallel:
            return [own("hook_resid_post") + written]
        attended = block.attn_out_norm(own("attn.hook_o") + written)
        before = f"decoder.blocks.{layer - 1}.hook_resid_post" if layer else "decoder.embed.hook_embed"
        x = _positions(self.own[before], last) + attended
        return [block.attn_norm(x) if block.norm_order == "post" else x]

    def _rows_with_mlps(self, block: Block, layer: int, parts: Sequence[Component], last: bool) -> list[Tensor]:
        """The residual stream [row, pos, d_model] after the layer with its MLP output replaced."""
        if not parts:
            return []
        own = partial(self._own, layer, last)
        output = _positions(self.replacements[f"decoder.blocks.{layer}.hook_mlp_out"], last)
        if block.parallel:
            x = own("hook_resid_post") + (output - own("hook_mlp_out"))
        else:
            x = own("hook_resid_mid") + output
            x = block.mlp_norm(x) if block.norm_order == "post" else x
        return [x.expand(len(parts), -1, -1)]

    def _rows_with_streams(self, layer: int, parts: Sequence[Component], last: bool) -> list[Tensor]:
        """The residual stream [row, pos, d_model] after the layer with the vector of one token replaced. Tokens before the prefix's
        `first` are equal anyway."""
        if not parts:
            return []
        point = f"decoder.blocks.{layer}.hook_resid_post"
        x = self.own[point].repeat(len(parts), 1, 1)
        for row, part in enumerate(parts):
            at = part.at - self.prefix.first
            if 0 <= at < x.shape[1]:
                x[row, at] = self.replacements[point][at]
        return [x[:, -1:] if last else x]

    def _own(self, layer: int, last: bool, end: str) -> Tensor:
        return _positions(self.own[f"decoder.blocks.{layer}.{end}"], last)


JOIN_ORDER = {"head": 0, "mlp": 1, "resid": 2}  # the order within a layer


def _positions(x: Tensor, last: bool) -> Tensor:
    """[pos, ...] -> the same, or only its last position if `last`."""
    return x[-1:] if last else x


To = Literal["other", "zero", "mean"]
COMPONENT_ENDS = ("attn.hook_z", "hook_mlp_out", "hook_resid_post")
ADVICE = "Try a shorter text, or a smaller model."


@dataclass(frozen=True, eq=False)
class Counterfactual:
    """A run of one text, the position whose prediction is studied, and the source of the replacement values."""

    run: TraceRecord
    forward: Pass  # of this text of the run
    position: int
    to: To
    prefix: SharedPrefix | None  # None: every row is an edited run of the whole text
    # Activations of the other run by hook point, without the batch axis; None if its text is in the prefix, or there is none.
    other_activations: Mapping[str, Tensor] | None

    @property
    def tokens(self) -> Tokens:
        """The text whose next token is studied."""
        return final_token_input(self.run)

    def replacements(
        self, own: Mapping[str, Tensor], other: Mapping[str, Tensor] | None = None
    ) -> Mapping[str, Tensor]:
        """Return what replaces the activations `own`, by hook point: for every token, or one value for all of them. `other` are the
        activations of a counterfactual text that ran in the same pass."""
        values = self.other_activations if self.other_activations is not None else other
        if values is not None:
            return values
        outputs = {point: x for point, x in own.items() if point.endswith(("attn.hook_z", "hook_mlp_out"))}
        if self.to == "zero":
            return {point: torch.zeros_like(x[:1]) for point, x in outputs.items()}
        return {point: self._mean(point, x) for point, x in outputs.items()}

    def _mean(self, point: str, x: Tensor) -> Tensor:
        """[pos, ...] -> [1, ...], the mean over the tokens of the text without padding."""
        tokens = self.run.source if point.startswith("encoder") else self.tokens
        real = ~torch.tensor(tokens.padding[: len(x)], device=x.device)
        return x[real].mean(0, keepdim=True)


def component_points(run: TraceRecord) -> list[str]:
    """The hook points of all components of a run's model, in the order of the pass."""
    return [point for point in hook_points(run.loaded.model) if point.endswith(COMPONENT_ENDS)]


def counterfactual_of(run: TraceRecord, other: TraceRecord | None, to: To, position: int | None) -> Counterfactual:
    """Pair a run with the values that replace its activations. Raises as patch_components()."""
    _check_patchable(run, other, to, position)
    (at,) = checked_positions(final_token_input(run), None if position is None else [position])
    forward, other_forward = run.forward.of(run.index), None
    if other is not None and to == "other":
        _check_counterparts(run, other)
        other_forward = other.forward.of(other.index)
    (last_real,) = checked_positions(final_token_input(run), None)
    passes = [forward] if other_forward is None else [forward, other_forward]
    if not all(can_grow(each, at) for each in passes) or (to == "mean" and at != last_real):
        whole = None if other_forward is None else whole_activations(other_forward, run)
        return Counterfactual(run, forward, at, to, None, whole)
    return Counterfactual(run, forward, at, to, *_prefix_of(run, at, other, other_forward))


def _prefix_of(
    run: TraceRecord, at: int, other: TraceRecord | None, other_forward: Pass | None
) -> tuple[SharedPrefix, dict[str, Tensor] | None]:
    """The prefix of a run up to a position, with the counterfactual text; and the activations of the other run if its model is another.

    Other weights have other activations from the first token on, so a prefix is shared only within one model.
    """
    is_same_model = other is not None and other_forward is not None and other.loaded.model is run.loaded.model
    first = first_difference(run.source, other.source, at) if other is not None and is_same_model else 0
    needed = held_bytes(run.forward.of(run.index), at + 1 - first, first, sides=other_forward is not None)
    device.check_fits_or_retry(needed, run.loaded.device, f"Keeping every part of a text of {at + 1:,} tokens", ADVICE)
    prefix = shared_prefix_of(run, at, first)
    if other_forward is None:
        return prefix, None
    if is_same_model:
        return prefix.with_counterfactual(other_forward), None
    own_prefix = prefix.of_other_model(other_forward)
    return prefix, dict(prefix_activations(other_forward, own_prefix, component_points(run)).own)


def _check_patchable(run: TraceRecord, other: TraceRecord | None, to: To, position: int | None) -> None:
    """Raise Refused in its kinds unless components of the run can be replaced as requested."""
    run.require_model("what its parts give, which runs the model,")
    if to not in ("other", "zero", "mean"):
        raise InterventionError(f"A part is set to what it gives in the other run, to zero or to its mean, not {to!r}.")
    if to == "other" and other is None:
        raise TextError('Parts are taken from another run: give one as `other`, or choose to="zero" or to="mean".')
    if run.loaded.model.head is None or (run.config.kind == "encoder" and position is None):
        raise TextError(
            f"{run.spec.title} writes no next word, so there is no answer whose score a part could change. Try a language model"
            + ("." if run.loaded.model.head is None else ", or name the position of the word that it is to find.")
        )
    head_of(run.loaded)


def _check_counterparts(run: TraceRecord, other: TraceRecord) -> None:
    """Raise TextError unless both runs are of models of one shape and of texts of one length."""
    check_same_model(run, other)
    if run.config.d_model != other.config.d_model:
        raise TextError(
            "A part's output can be taken from a run of the same model alone; this other model is of another width."
        )
    check_lengths(run, other)


def whole_activations(forward: Pass, run: TraceRecord) -> dict[str, Tensor]:
    """Return the outputs of all components in a pass over one whole text."""
    config, prompt = forward.loaded.config, forward.prompt
    each = config.n_heads * config.value_width * 2 + 2 * config.d_model  # a decoder with an encoder has two attentions
    lengths = (prompt.source_len, prompt.target_len)
    tokens = sum(n * length for (_, n), length in zip(config.stacks, lengths, strict=False))
    size = f"Keeping every part of a text of {prompt.source_len:,} tokens"
    device.check_fits_or_retry(tokens * each * forward.loaded.dtype.itemsize, forward.loaded.device, size, ADVICE)
    return forward.moments(component_points(run), lambda _, x: x[0].clone())


def first_difference(own: Tokens, other: Tokens, position: int) -> int:
    """Index of the first token that differs; `position` if none before it does."""
    pairs = zip(own.ids, other.ids, own.type_ids, other.type_ids, strict=True)
    return next((i for i, (a, b, c, d) in enumerate(pairs) if (a, c) != (b, d) and i < position), position)
