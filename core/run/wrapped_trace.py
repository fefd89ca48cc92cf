"""Wrapped: a transformers model that runs unchanged, and WrappedRecord: what is known of its run on a text."""

from __future__ import annotations

import inspect
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from math import prod
from typing import Any, Literal, NoReturn, cast

import torch
from tokenizers import Tokenizer
from torch import Tensor, nn

from ..device import check_fits_or_retry, dtype_name
from ..edits import Intervention, hooks_of
from ..errors import HeadlightError, InterventionError, StaleTrace, TextError
from ..model.hooks import Hook
from ..model.rules import attend
from ..model.text import Tokens, from_ids, tokenize
from .attention import AttentionRecord
from .call_records import AttentionCall, Place, Pools, RuleCache, make_record, place_of, recording
from .foreign import ForeignConfig, ForeignModel, ForeignPass, ForeignRecord, Origin, StandIn
from .forward_pass import Pass
from .recorder import ADVICE, HELD_BYTES, HeldTensor, NonFinite, TensorStep, check_positions, last_rows
from .request import Prompt, model_inputs

NOT_SUPPORTED = (
    "step by step: the numbers between attentions (norms, MLPs, the residual stream) and any hook point but q, k, v, scores, "
    "pattern and z",
    "parts of a logit, the logit lens, and sweeps over heads or looks: a head is silenced by interventions=[core.edits.Ablate(…)], a run each",
    "what a head adds to the residual stream: how its output projection is used is not known",
    "edits of positions",
    "a long text in chunks",
    "Shapes, Memory and Compute: the rows inside of a layer",
    "writing and training: model.generate and your own training loop do that, with a recording() around them",
)
RULE, Z = ".hook_rule", ".hook_z"  # the hook points that can be edited
SAMPLED_WEIGHTS = 16  # parameters from which a mark takes one number each


def _refusal(what: str) -> str:
    return (
        f"This model runs in transformers (headlight.wrap), where {what} is not known; wrapped.cannot lists what else is not. Where "
        "headlight.load reads its family, model.save_pretrained(folder), tokenizer.save_pretrained(folder) and headlight.load(folder) give all."
    )


WRAP = Origin("wrap", _refusal, NOT_SUPPORTED)


@dataclass(frozen=True, kw_only=True)
class InferredConfig(ForeignConfig):
    """The sizes of a transformers model, from its config and one short pass."""

    model_type: str
    vocab_size: int
    d_model: int
    n_heads: int
    n_kv_heads: int
    d_head: int
    head: Literal["none", "lm"]
    n_ctx: int
    has_position_table: bool = False  # a text that is too long is refused by the model itself

    @property
    def writes(self) -> bool:
        return self.causal and self.head == "lm"

    def refuse(self, what: str) -> NoReturn:
        """Raises Refused: `what` is not known."""
        WRAP.refuse(what)


@dataclass(frozen=True, eq=False)
class WrappedHead(StandIn):
    """Takes the place of the LM head: the logits come from the model's own pass."""

    missing = "the way from the residual stream to a logit ({name})"
    origin: Origin = WRAP

    def __call__(self, logits: Tensor) -> Tensor:
        return logits


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Wrapped(ForeignModel):
    """A model of transformers with a tokenizer: core.trace() takes it like a model from core.load().

    `cannot` lists what a run of it does not show. recording() observes passes that are not of a text: generate(), images,
    a training step.
    """

    origin: Origin = WRAP
    hf_model: Any = None
    places: Mapping[tuple[str, int], Place] = field(default_factory=dict)  # module path, earlier calls of it -> place
    notes: tuple[str, ...] = ()
    hf_tokenizer: Any = None

    @property
    def notices(self) -> tuple[str, ...]:
        """Warnings about the model: attentions that are not recorded, and dropout."""
        if not self.hf_model.training:
            return self.notes
        return (
            *self.notes,
            "The model is in training mode: its dropout takes part, so another run gives other numbers. Weights are those "
            "before dropout. Call model.eval() for numbers that stay.",
        )

    @property
    def pretrained(self) -> Any:
        """The PreTrainedModel, which may be inside an adapter."""
        import transformers

        parts = (self.hf_model, *self.hf_model.modules())
        return next(part for part in parts if isinstance(part, transformers.PreTrainedModel))

    def tokens(self, text: str) -> Tokens:
        """A text as the model's tokenizer reads it. Raises TextError."""
        if self.tokenizer is None:
            raise TextError(
                "No tokenizer was given: headlight.wrap(model, tokenizer) reads texts; without one give ids=[…]."
            )
        if self.hf_tokenizer is None:
            return tokenize(self.tokenizer, text)
        if not isinstance(text, str):
            raise TextError(f"A text is a string, not {text!r}.")
        ids = [int(i) for i in self.hf_tokenizer(text)["input_ids"]]
        if isinstance(self.tokenizer, Tokenizer):
            tokens = tokenize(self.tokenizer, text)
            if list(tokens.ids) == ids:
                return tokens
        return from_ids(self.tokenizer, ids)

    @contextmanager
    def recording(self) -> Iterator[list[AttentionRecord]]:
        """Record every attention that the model runs in this context and thread, in order, named by its module's path.

        Records of one module are numbered by `call`, and keys that come again, as in the steps of generate(), are stored
        once. Gradients, dropout and random numbers are not affected. Raises Refused at the end if nothing was recorded.
        """
        records: list[AttentionRecord] = []
        pools: Pools = {}
        calls: Counter[str] = Counter()
        rules = RuleCache()
        paths = _paths(self.hf_model)

        def after(call: AttentionCall, z: Tensor) -> None:
            name = paths[call.module]
            with torch.inference_mode(False), torch.no_grad():
                record = make_record(call, z, rules, pools)
            place = self.places.get((name, 0)) or place_of(self.hf_model, name, call)
            records.append(replace(record, name=name, layer=place.layer, site=place.site, call=calls[name]))
            calls[name] += 1

        with recording(self.hf_model, lambda _: None, after):
            yield records
        if not records:
            raise HeadlightError(nothing_recorded(self.hf_model, set()))

    def run(
        self, prompt: Prompt, interventions: tuple[Intervention, ...], watch: Callable[[Any], object]
    ) -> WrappedRecord:
        """The run of these texts, as core.run.trace.trace_tokens() returns it."""
        edits = edits_of(self, interventions)
        forward = WrappedPass(self, prompt, interventions, edits, mark_weights(self.hf_model))
        records: list[AttentionRecord] = []

        def record_of(seconds: float, logits: Callable[[Tensor], Tensor] | None = None) -> WrappedRecord:
            return WrappedRecord(
                loaded=self,
                sources=prompt.sources,
                targets=prompt.targets,
                records=tuple(records),
                position_records=(),
                steps=tuple(step for record in records for step in _steps_of(record)),
                norms={},
                last_residual=lambda positions: forward.last_hidden()[:, positions],
                forward=cast(Pass, forward),
                seconds=seconds,
                logits=logits,
            )

        def on_attention(record: AttentionRecord) -> None:
            records.append(record)
            watch(record_of(0))

        watch(record_of(0))
        start = time.perf_counter()
        n = len(prompt.last_read[0])
        keep_all = prompt.batch * n * self.config.vocab_size * self.dtype.itemsize <= HELD_BYTES
        rows = list(range(n)) if keep_all else sorted(last_rows(prompt.last_read))
        options: dict[str, Any] = {}
        if self.model.head is not None and not keep_all and "logits_to_keep" in parameters_of(self.pretrained):
            options["logits_to_keep"] = torch.tensor(rows, device=self.device)
        out = forward.outputs(on_attention, **options)
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)
        seconds = time.perf_counter() - start
        forward.weights.check()
        if self.model.head is None:
            return record_of(seconds)
        logits = out.logits if keep_all or options else out.logits[:, rows]
        return record_of(seconds, _Logits(forward, {row: i for i, row in enumerate(rows)}, logits.detach().clone()))


@dataclass(frozen=True, eq=False, repr=False)
class WrappedMark:
    """The weights of a model at one moment: torch's own counters of writes, and a few numbers."""

    hf_model: Any
    version: int
    sample: tuple[str, ...]

    def check(self) -> None:
        """Raises Outdated if the weights have changed."""
        now = mark_weights(self.hf_model)
        if (now.version, now.sample) != (self.version, self.sample):
            raise StaleTrace(
                "The model has been trained since this run, so what its weights then would give is no longer known. "
                "What the run holds can still be read; run the text again for the rest."
            )


def mark_weights(hf_model: Any) -> WrappedMark:
    weights = list(hf_model.parameters())
    version = sum(0 if p.is_inference() else p._version for p in weights)
    some = weights[:: max(1, len(weights) // SAMPLED_WEIGHTS)]
    return WrappedMark(hf_model, version, tuple(str(p.detach().flatten()[0].item()) for p in some if p.numel()))


@dataclass(frozen=True, eq=False, repr=False)
class WrappedPass(ForeignPass):
    """A wrapped model, texts and edits, which can be run again."""

    loaded: Wrapped

    def __repr__(self) -> str:
        return f"<WrappedPass of {self.loaded.spec.title}>"

    def outputs(self, on_attention: Callable[[AttentionRecord], object] | None = None, **options: Any) -> Any:
        """The output of the model. `on_attention` receives the record of every attention. Raises what the model raises."""
        loaded = self.loaded
        observer = AttentionObserver(loaded, self.edits, on_attention)
        ids, target, keep, target_keep, types = model_inputs(self.prompt, loaded.device)
        accepted = parameters_of(loaded.hf_model) | parameters_of(loaded.pretrained)
        inputs = {"attention_mask": keep, "decoder_input_ids": target, "decoder_attention_mask": target_keep}
        given = {name: x.long() if x.dtype == torch.bool else x for name, x in inputs.items() if x is not None}
        if "token_type_ids" in accepted and bool(types.any()):
            given["token_type_ids"] = types
        observe = on_attention is not None or bool(self.edits)
        context = recording(loaded.hf_model, observer.before, observer.after) if observe else nullcontext()
        with torch.no_grad(), context:
            try:
                return loaded.hf_model(input_ids=ids, **given, **options_of(loaded.pretrained), **options)
            except IndexError as error:
                n = max(self.prompt.source_len, self.prompt.target_len)
                raise TextError(
                    f"{loaded.spec.title} could not read {n:,} tokens: {error}. It may have fewer positions, or a smaller "
                    "vocabulary than the token numbers."
                ) from error

    def logits(self, rows: Tensor) -> Tensor:
        """[batch, row, vocab] of these positions, from another pass."""
        self.weights.check()
        if "logits_to_keep" in parameters_of(self.loaded.pretrained):
            logits = self.outputs(logits_to_keep=rows).logits
            if logits.shape[1] == len(rows):
                return logits
        return self.outputs().logits[:, rows]

    def last_hidden(self) -> Tensor:
        """[batch, pos, d_model]: the last hidden states, from another pass."""
        self.weights.check()
        out = self.outputs(output_hidden_states=True)
        for name in ("decoder_hidden_states", "hidden_states"):
            if (states := getattr(out, name, None)) is not None:
                return states[-1]
        if (last := getattr(out, "last_hidden_state", None)) is not None:
            return last
        self.origin.refuse("the last hidden state")


def options_of(pretrained: Any) -> dict[str, Any]:
    """Arguments of a pass over a whole text."""
    accepted = parameters_of(pretrained)
    return {name: value for name, value in {"use_cache": False, "return_dict": True}.items() if name in accepted}


def parameters_of(module: Any) -> frozenset[str]:
    """The names of the parameters of a module's forward()."""
    return frozenset(inspect.signature(module.forward).parameters)


def _paths(module: nn.Module) -> dict[nn.Module, str]:
    return {child: name for name, child in module.named_modules()}


class AttentionObserver:
    """Applies the edits of every attention of one pass, and records it."""

    def __init__(
        self, loaded: Wrapped, edits: Mapping[str, Hook], on_attention: Callable[[AttentionRecord], object] | None
    ) -> None:
        self.loaded, self.edits, self.on_attention = loaded, edits, on_attention
        self.paths = _paths(loaded.hf_model)
        self.calls: Counter[str] = Counter()
        self.rules = RuleCache()

    def place(self, call: AttentionCall) -> Place:
        name = self.paths[call.module]
        place = self.loaded.places.get((name, self.calls[name]))
        if place is None:
            raise HeadlightError(
                f"{name} ran more often than in the pass that showed which attentions there are, so this call has no layer. "
                "Use wrapped.recording(), whose records are named by module and call."
            )
        return place

    def before(self, call: AttentionCall) -> Tensor | None:
        """z with an edited mask, scale or softmax; None without such an edit."""
        place = self.place(call)
        hook = self.edits.get(place.attention + RULE)
        if hook is None:
            return None
        record = make_record(call, call.query, self.rules)
        rule = hook(record.batch_rule)
        if rule is None or rule is record.batch_rule:
            return None
        z = attend(call.query, call.key, call.value, rule).to(call.query.dtype)
        edited = self.ablated(place, z)
        self.finish(call, place, replace(record, batch_rule=rule, returned=None), edited)
        return z if edited is None else edited

    def after(self, call: AttentionCall, z: Tensor) -> Tensor | None:
        """z with the edits of it; None without such an edit."""
        place = self.place(call)
        edited = self.ablated(place, z)
        record = None if self.on_attention is None else make_record(call, z, self.rules)
        self.finish(call, place, record, edited)
        return edited

    def ablated(self, place: Place, z: Tensor) -> Tensor | None:
        """z [batch, head, query, d_head] with the edits of it, whose hooks see [batch, query, head, d_head]."""
        hook = self.edits.get(place.attention + Z)
        edited = None if hook is None else hook(z.transpose(1, 2))
        return None if edited is None else edited.transpose(1, 2)

    def finish(self, call: AttentionCall, place: Place, record: AttentionRecord | None, edited: Tensor | None) -> None:
        self.calls[self.paths[call.module]] += 1
        if self.on_attention is not None and record is not None:
            z = None if edited is None else HeldTensor(edited.detach().clone())
            named = replace(record, name=place.name, stack=place.stack, layer=place.layer, site=place.site, edited_z=z)
            self.on_attention(named)


@dataclass(frozen=True, eq=False, repr=False)
class WrappedRecord(ForeignRecord):
    """Run of a wrapped model: patterns, rows, tiles, measures, reasons, exports, comparison and next tokens."""

    logits: Callable[[Tensor], Tensor] | None = None  # positions [pos] -> [batch, pos, vocab]

    def final_residual(self, positions: Sequence[int] | Tensor) -> Tensor:
        """The logits of these positions of this text, [pos, vocab], from the model's own head."""
        if self.logits is None:
            raise TextError(self.loaded.headless)
        return self.logits(torch.as_tensor(positions, device=self.loaded.device))[self.index]

    @property
    def warnings(self) -> tuple[str, ...]:
        return (*super().warnings, *self.loaded.notices)

    @property
    def non_finite(self) -> NonFinite | None:
        """The first attention with NaN or infinity in its queries, and the first such token."""

        def real_queries(record: AttentionRecord) -> Tensor:
            padding = torch.tensor(self.tokens_of(record)[0].padding, device=record.q.device)
            return record.q.masked_fill(padding[:, None], 0)

        pairs = ((record, real_queries(record)) for record in self.attention)
        return self._first_non_finite(pairs, "hook_q", "the queries")

    def activation(self, point: str, positions: Sequence[int] | None = None) -> Tensor:
        """q, k, v, z, scores or pattern of an attention, such as decoder.blocks.3.attn.hook_z, or head.hook_logits.

        Raises as ForeignRecord.activation() does, and TooLarge.
        """
        if point != "head.hook_logits":
            return super().activation(point, positions)
        chosen = check_positions(positions, len(self.predicting_tokens))
        size = len(chosen) * self.config.vocab_size * self.loaded.dtype.itemsize
        check_fits_or_retry(size, self.loaded.device, f"The numbers at {point}", ADVICE)
        return self.final_residual(chosen)


def edits_of(loaded: Wrapped, interventions: tuple[Intervention, ...]) -> dict[str, Hook]:
    """The hooks of all interventions. Raises InterventionError for those at other points than masks and heads."""
    hooks = hooks_of(loaded.model, interventions)
    if other := next((point for point in hooks if not point.endswith((RULE, Z))), None):
        raise InterventionError(
            f"A wrapped model (headlight.wrap) is edited at its masks, scales and heads, and this edit needs {other}. "
            "Where headlight.load reads its family, headlight.load runs it with every edit."
        )
    names = list(dict.fromkeys(place.attention for place in loaded.places.values()))
    known = {point: hook for point, hook in hooks.items() if point.rsplit(".", 1)[0] in names}
    if hooks and not known:
        name = next(iter(hooks)).rsplit(".", 1)[0]
        raise InterventionError(f"There is no attention {name} in this model; there are {', '.join(names)}.")
    return known


def nothing_recorded(model: Any, written_out: set[str]) -> str:
    """Why there are no records, and the remedy. `written_out` are modules that compute attention by hand."""
    kind = type(model).__name__
    if written_out:
        names = ", ".join(sorted(written_out)[:3])
        why = f"{kind} writes its attention out by hand ({names}), and does not call transformers' attention functions."
    else:
        why = f"{kind} called no attention function of transformers: it has no attention, or another kind of it."
    return (
        f"Nothing was recorded: {why} Where headlight.load reads its family, headlight.trace shows its attention; headlight.capture(module) "
        "records any module that calls torch.nn.functional.scaled_dot_product_attention."
    )


def _steps_of(record: AttentionRecord) -> Iterator[TensorStep]:
    """The tensors of one attention."""
    q, k, v = record.batch_q, record.keys, record.values()
    shapes = {"q": q.shape, "k": k.shape, "v": v.shape, "z": (*q.shape[:3], v.shape[-1])}
    for what, (batch, n_heads, n, width) in shapes.items():
        axes = ("batch", "query", "head", "d_head") if what in "qz" else ("batch", "key", "kv_head", "d_head")
        shape = (batch, n, n_heads, width)  # as a hook sees it
        yield TensorStep(f"{record.name}.hook_{what}", axes, shape, dtype_name(q.dtype), prod(shape) * q.element_size())


@dataclass(frozen=True, eq=False)
class _Logits:
    """positions [pos] -> [batch, pos, vocab]: rows that were kept, or all requested ones from another pass."""

    forward: WrappedPass
    rows: Mapping[int, int]  # position -> row of `held`
    held: Tensor

    def __call__(self, positions: Tensor) -> Tensor:
        wanted = positions.tolist()
        if not all(position in self.rows for position in wanted):
            return self.forward.logits(positions)
        self.forward.weights.check()
        return self.held[:, [self.rows[position] for position in wanted]]
