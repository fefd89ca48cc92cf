"""WrappedTrace: the run of a wrapped model on a text, with everything of a Trace that can be known of it."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import Any, NoReturn, cast

import torch
from torch import Tensor

from ..device import dtype_name
from ..edits import Intervention, hooks_of
from ..errors import InterventionError, Outdated, Refused, TextError
from ..memory import admit_large
from ..model.hooks import Hook
from ..model.rules import attend
from .attention import AttentionRecord
from .forward_pass import Pass
from .interface import AttentionCall, recording
from .prompt import Prompt, model_inputs
from .recorder import HELD_BYTES, Held, NonFinite, Step, last_rows
from .trace import Trace
from .wrapped import Place, Rules, Wrapped, accepted_by, cannot, options_of, recorded

RULE, Z = ".hook_rule", ".hook_z"
ADVICE = "Ask for fewer positions, or run a shorter text."
KEY_AXES = ("batch", "kv_head", "key", "d_head")
QUERY_AXES = ("batch", "head", "query", "d_head")


@dataclass(frozen=True, eq=False, repr=False)
class WrappedMark:
    """The weights of a person's model at one moment, by torch's own counters and a few of the numbers."""

    theirs: Any
    version: int
    sample: tuple[float, ...]

    def check(self) -> None:
        """Raises Outdated where the weights have changed."""
        if mark_of(self.theirs)[1:] != (self.version, self.sample):
            raise Outdated(
                "The model has been trained since this run, so what its weights then would give is no longer known. "
                "What the run holds can still be read; run the text again for the rest."
            )


def mark_of(theirs: Any) -> tuple[Any, int, tuple[float, ...]]:
    """The model, the number of times that its weights were written to, and one number of some of them."""
    weights = list(theirs.parameters())
    version = sum(0 if p.is_inference() else p._version for p in weights)
    some = weights[:: max(1, len(weights) // 16)]
    sample = tuple(str(p.detach().flatten()[0].item()) for p in some if p.numel())
    return theirs, version, cast(Any, sample)


@dataclass(frozen=True, eq=False, repr=False)
class WrappedPass:
    """A wrapped model, texts and edits, to be run and run again. What else a Pass has raises Refused."""

    loaded: Wrapped
    prompt: Prompt
    interventions: tuple[Intervention, ...]
    edits: Mapping[str, Hook]
    weights: WrappedMark

    def __repr__(self) -> str:
        return f"<WrappedPass of {self.loaded.spec.title}>"

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        cannot(f"the pass between its attentions ({name})")

    def of(self, text: int) -> WrappedPass:
        """The same over one text of the batch, with its padding."""
        return replace(self, prompt=self.prompt.of(text))

    def outputs(self, see: Callable[[AttentionRecord], object] | None = None, **options: Any) -> Any:
        """The result of the model. `see` is told each attention with its record. Raises what the model raises."""
        watch = Watch(self.loaded, self.edits, see)
        ids, target, keep, target_keep, types = model_inputs(self.prompt, self.loaded.device)
        theirs = self.loaded.theirs
        accepted = accepted_by(theirs) | accepted_by(inner_of(theirs))
        words = {"attention_mask": keep, "decoder_input_ids": target, "decoder_attention_mask": target_keep}
        given = {name: x.long() if x.dtype == torch.bool else x for name, x in words.items() if x is not None}
        if "token_type_ids" in accepted and bool(types.any()):
            given["token_type_ids"] = types
        seen = recording(theirs, watch.before, watch.after) if see is not None or self.edits else nullcontext()
        with torch.no_grad(), seen:
            try:
                return theirs(input_ids=ids, **given, **options_of(inner_of(theirs)), **options)
            except IndexError as error:
                n = max(self.prompt.source_len, self.prompt.target_len)
                raise TextError(
                    f"{self.loaded.spec.title} could not read {n:,} tokens: {error}. It may have fewer positions, or a smaller "
                    "vocabulary than the token numbers."
                ) from error

    def logits(self, rows: Tensor) -> Tensor:
        """[batch, row, vocab] of these positions, from another pass."""
        self.weights.check()
        if "logits_to_keep" in accepted_by(inner_of(self.loaded.theirs)):
            found = self.outputs(logits_to_keep=rows).logits
            if found.shape[1] == len(rows):
                return found
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
        cannot("the last hidden state")


def inner_of(theirs: Any) -> Any:
    """The model of transformers inside of an adapter, or itself."""
    import transformers

    kind = transformers.PreTrainedModel
    return theirs if isinstance(theirs, kind) else next(part for part in theirs.modules() if isinstance(part, kind))


class Watch:
    """The edits of each attention of one pass, and its record."""

    def __init__(
        self, loaded: Wrapped, edits: Mapping[str, Hook], see: Callable[[AttentionRecord], object] | None
    ) -> None:
        self.loaded, self.edits, self.see = loaded, edits, see
        self.paths = {module: name for name, module in loaded.theirs.named_modules()}
        self.calls: Counter[str] = Counter()
        self.rules = Rules()

    def place(self, call: AttentionCall) -> Place:
        name = self.paths[call.module]
        place = self.loaded.places.get((name, self.calls[name]))
        if place is None:
            raise Refused(
                f"{name} ran more often than in the pass that showed which attentions there are, so this call has no layer. "
                "Use wrapped.recording(), whose records are named by module and call."
            )
        return place

    def before(self, call: AttentionCall) -> Tensor | None:
        """The z that edits of the mask, the scale or the softmax make, or None where there are none."""
        place = self.place(call)
        hook = self.edits.get(place.attention + RULE)
        if hook is None:
            return None
        record = recorded(call, call.query, self.rules)
        rule = hook(record.batch_rule)
        if rule is None or rule is record.batch_rule:
            return None
        q, k, v = call.query, call.key, call.value
        z = attend(q, k, v, rule).to(q.dtype)
        edited = self.silenced(place, z)
        self.keep(call, replace(record, batch_rule=rule, returned=None), place, edited)
        return z if edited is None else edited

    def after(self, call: AttentionCall, z: Tensor) -> Tensor | None:
        """The z that edits of it make, or None where there are none."""
        place = self.place(call)
        edited = self.silenced(place, z)
        if self.see is not None:
            self.keep(call, recorded(call, z, self.rules), place, edited)
        else:
            self.calls[self.paths[call.module]] += 1
        return edited

    def silenced(self, place: Place, z: Tensor) -> Tensor | None:
        hook = self.edits.get(place.attention + Z)
        return None if hook is None else hook(z)

    def keep(self, call: AttentionCall, record: AttentionRecord, place: Place, edited: Tensor | None) -> None:
        self.calls[self.paths[call.module]] += 1
        if self.see is not None:
            z = None if edited is None else Held(edited.detach().clone())
            self.see(
                replace(record, name=place.name, stack=place.stack, layer=place.layer, site=place.site, edited_z=z)
            )


@dataclass(frozen=True, eq=False, repr=False)
class WrappedTrace(Trace):
    """One run of a wrapped model: patterns, rows, tiles, measures, reasons, exports, comparison and next words.

    `cannot` lists what else a Trace has and this one does not; asking for it raises Refused.
    """

    logits: Callable[[Tensor], Tensor] | None = None  # positions [pos] -> [batch, pos, vocab]

    @property
    def cannot(self) -> tuple[str, ...]:
        """The things that are not known of this run, a line each."""
        return cast(Wrapped, self.loaded).cannot

    def head_input(self, positions: Sequence[int] | Tensor) -> Tensor:
        """The logits of these positions of this text, [pos, vocab], which the pass has computed itself."""
        if self.logits is None:
            raise TextError(self.loaded.headless)
        return self.logits(torch.as_tensor(positions, device=self.loaded.device))[self.index]

    @property
    def notices(self) -> tuple[str, ...]:
        return (*super().notices, *self.loaded.notices)

    @property
    def non_finite(self) -> NonFinite | None:
        """The first attention whose queries hold NaN or an infinity, with the first token that has it."""
        for record in self.attention:
            bad = ~record.q.isfinite().all(-1).all(0)  # [query]
            bad &= ~torch.tensor(self.tokens_of(record)[0].padding, device=bad.device)
            if bool(bad.any()):
                at = int(bad.int().argmax())
                kind = "nan" if bool(record.q[:, at].isnan().any()) else "inf"
                return NonFinite(record.stack, record.layer, f"{record.name}.hook_q", "the queries", kind, at)
        return None

    def __getitem__(self, name: str) -> AttentionRecord | Tensor:
        """An attention by its name, or what value() gives. Raises KeyError as that does."""
        found = next((record for record in self.attention if record.name == name), None)
        return self.value(name) if found is None else found

    def value(self, point: str, positions: Sequence[int] | None = None) -> Tensor:
        """q, k, v, z, scores or pattern of an attention, such as decoder.blocks.3.attn.hook_z, or head.hook_logits.

        Raises KeyError for what no model has, Refused for what a wrapped one does not show, IndexError and TooLarge.
        """
        name, _, kind = point.rpartition(".")
        if point == "head.hook_logits":
            n = len(self._last_read)
            chosen = list(range(n)) if positions is None else list(positions)
            check_places(chosen, n)
            size = len(chosen) * self.config.vocab_size * self.loaded.dtype.itemsize
            admit_large(size, self.loaded.device, f"The numbers at {point}", ADVICE)
            return self.head_input(chosen)
        record = next((record for record in self.attention if record.name == name), None)
        if record is None and point.startswith(("encoder.", "decoder.", "head.")):
            cannot(f"the point {point}")
        if record is None:
            near = ", ".join(record.name for record in self.records[:2])
            raise KeyError(
                f"there is no attention {name or point!r}; there are {near} and so on, and run.cannot says what else is not known"
            )
        whole = {"hook_q": record.n_query, "hook_z": record.n_query, "hook_k": record.n_key, "hook_v": record.n_key}
        n = whole.get(kind, record.n_query)
        chosen = list(range(n)) if positions is None else list(positions)
        check_places(chosen, n)
        rows = torch.tensor(chosen, device=record.device)
        if kind in ("hook_scores", "hook_pattern"):
            return record.scores(queries=rows) if kind == "hook_scores" else record.pattern(queries=rows)
        if kind == "hook_z":
            return record.z(queries=rows)
        if kind in whole:
            return {"hook_q": record.q, "hook_k": record.k, "hook_v": record.v}[kind][:, rows]
        cannot(f"the point {point}")

    def logit_lens(self, k: int = 10, positions: Sequence[int] | None = None) -> NoReturn:
        """Raises Refused."""
        cannot("the residual stream between layers, which the logit lens reads,")

    def contributions(self, position: int | None = None, token: int | None = None) -> NoReturn:
        """Raises Refused."""
        cannot("what each part adds to a logit")

    def ablate_each(
        self,
        position: int | None = None,
        token: int | None = None,
        watch: Callable[[int, int], object] = lambda done, of: None,
    ) -> NoReturn:
        """Raises Refused."""
        cannot("a sweep over all heads (interventions=[core.Ablate(…)] silences one a run)")


def check_places(chosen: Iterable[int], n: int) -> None:
    """Raises IndexError for a position that there is not."""
    if bad := [p for p in chosen if not 0 <= p < n]:
        raise IndexError(f"position {bad[0]} of {n}")


def edits_of(loaded: Wrapped, interventions: tuple[Intervention, ...]) -> dict[str, Hook]:
    """The hooks of all interventions. Raises InterventionError for those that need what is not known."""
    hooks = hooks_of(loaded.model, interventions)
    known = {place.attention + end for place in loaded.places.values() for end in (RULE, Z)}
    for point in hooks:
        if not point.endswith((RULE, Z)):
            raise InterventionError(
                f"A wrapped model (headlight.wrap) is edited at its masks, scales and heads, and this edit needs {point}. "
                "Where headlight.load reads its family, headlight.load runs it with every edit."
            )
    lost = [point for point in hooks if point not in known]
    if lost and len(lost) == len(hooks):
        name = lost[0].rsplit(".", 1)[0]
        there = ", ".join(dict.fromkeys(place.attention for place in loaded.places.values()))
        raise InterventionError(f"There is no attention {name} in this model; there are {there}.")
    return {point: hook for point, hook in hooks.items() if point in known}


def run_wrapped(
    loaded: Wrapped, prompt: Prompt, interventions: tuple[Intervention, ...], watch: Callable[[Trace], object]
) -> WrappedTrace:
    """trace_tokens() for a wrapped model."""
    forward = WrappedPass(
        loaded, prompt, interventions, edits_of(loaded, interventions), WrappedMark(*mark_of(loaded.theirs))
    )
    records: list[AttentionRecord] = []
    last, empty = _Last(forward), (loaded, prompt.sources, prompt.targets)

    def so_far(records: Sequence[AttentionRecord], seconds: float, logits: Any) -> WrappedTrace:
        shapes = tuple(step for record in records for step in steps_of(record))
        held = tuple(records)
        return WrappedTrace(*empty, held, (), shapes, {}, last, cast(Pass, forward), seconds, logits=logits)

    def see(record: AttentionRecord) -> None:
        records.append(record)
        watch(so_far(records, 0, None))

    watch(so_far([], 0, None))
    start = time.perf_counter()
    n, n_vocab = len(prompt.last_read[0]), loaded.config.vocab_size
    whole = prompt.batch * n * n_vocab * loaded.dtype.itemsize <= HELD_BYTES
    rows = sorted(last_rows(prompt.last_read))
    options: dict[str, Any] = {}
    if loaded.model.head is not None and not whole and "logits_to_keep" in accepted_by(inner_of(loaded.theirs)):
        options["logits_to_keep"] = torch.tensor(rows, device=loaded.device)
    out = forward.outputs(see, **options)
    if loaded.device.type == "cuda":
        torch.cuda.synchronize(loaded.device)
    seconds = time.perf_counter() - start
    forward.weights.check()
    logits = None
    if loaded.model.head is not None:
        kept = out.logits if whole or options else out.logits[:, rows]
        logits = _Logits(forward, {row: i for i, row in enumerate(range(n) if whole else rows)}, kept.detach().clone())
    return so_far(records, seconds, logits)


def steps_of(record: AttentionRecord) -> tuple[Step, ...]:
    """The tensors of one attention that passed."""
    found = []
    v = record.values()
    z = (*record.batch_q.shape[:3], v.shape[-1])
    shapes = {"q": record.batch_q.shape, "k": record.keys.shape, "v": v.shape, "z": z}
    dtype, by = dtype_name(record.batch_q.dtype), record.batch_q.element_size()
    for what, shape in shapes.items():
        size = torch.Size(shape).numel() * by
        axes = QUERY_AXES if what in "qz" else KEY_AXES
        found.append(Step(f"{record.name}.hook_{what}", axes, tuple(shape), dtype, size))
    return tuple(found)


@dataclass(frozen=True, eq=False)
class _Logits:
    """positions [pos] -> [batch, pos, vocab]: the rows that are held, or all that are asked for from another pass."""

    forward: WrappedPass
    places: Mapping[int, int]
    held: Tensor

    def __call__(self, positions: Tensor) -> Tensor:
        wanted = positions.tolist()
        if all(position in self.places for position in wanted):
            self.forward.weights.check()
            return self.held[:, [self.places[position] for position in wanted]]
        return self.forward.logits(positions)


@dataclass(eq=False)
class _Last:
    """positions [pos] -> [batch, pos, d_model]: the last hidden states, from another pass with the run's edits."""

    forward: WrappedPass

    def __call__(self, positions: Tensor) -> Tensor:
        return self.forward.last_hidden()[:, positions]
