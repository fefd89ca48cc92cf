"""trace(): run a model once on a text and keep what happened, small enough to keep for any length."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, fields, replace
from functools import partial
from typing import Literal

import torch
from torch import Tensor

from . import memory
from .attention import AttentionRecord
from .checkpoints import Loaded, ModelSpec
from .config import ModelConfig
from .errors import TextError
from .hooks import Hook, hook_points, hooked
from .interventions import Intervention
from .planner.runs import run_bytes
from .recorder import HELD_BYTES, PositionRecord, Recorder, Step, dtype_name, held_bytes, logits_step, residual_of
from .text import Tokens, from_ids, pad, tokenize


@dataclass(frozen=True)
class Predictions:
    """The k likeliest words for each asked-for position: ids and probs [pos][k], strings as the tokenizer spells them."""

    positions: tuple[int, ...]
    ids: tuple[tuple[int, ...], ...]
    strings: tuple[tuple[str, ...], ...]
    probs: tuple[tuple[float, ...], ...]


@dataclass(frozen=True, eq=False)
class Trace:
    """One run, seen from text `index` of its batch. text(i) shows the others; nothing is copied."""

    loaded: Loaded
    interventions: tuple[Intervention, ...]
    sources: tuple[Tokens, ...]
    targets: tuple[Tokens, ...] | None
    records: tuple[AttentionRecord, ...]
    position_records: tuple[PositionRecord, ...]
    steps: tuple[Step, ...]
    norms: dict[str, Tensor]  # hook point of the residual stream or a sublayer's output -> ‖x‖, [batch, pos]
    last_residual: Callable[[Tensor], Tensor]  # positions [pos] -> [batch, pos, d_model]
    seconds: float
    index: int = 0
    predicted_bytes: int = 0

    @property
    def config(self) -> ModelConfig:
        return self.loaded.config

    @property
    def spec(self) -> ModelSpec:
        return self.loaded.spec

    @property
    def device(self) -> str:
        return str(self.loaded.device)

    @property
    def dtype(self) -> str:
        return dtype_name(self.loaded.dtype)

    @property
    def texts(self) -> int:
        """How many texts ran together."""
        return len(self.sources)

    @property
    def source(self) -> Tokens:
        return self.sources[self.index]

    @property
    def target(self) -> Tokens | None:
        return None if self.targets is None else self.targets[self.index]

    @property
    def attention(self) -> tuple[AttentionRecord, ...]:
        """In the order of the forward pass."""
        return tuple(record.of(self.index) for record in self.records)

    @property
    def positions(self) -> tuple[PositionRecord, ...]:
        """One for each stack."""
        return tuple(replace(record, text=self.index) for record in self.position_records)

    @property
    def resid(self) -> dict[str, Tensor]:
        """‖x‖ of the residual stream and of what each sublayer adds, [pos] by hook point, in the order of the pass."""
        return {name: norms[self.index] for name, norms in self.norms.items()}

    @property
    def bytes(self) -> int:
        """Bytes that the trace holds beside the model."""
        kept = sum(record.bytes + held_bytes(record.values) for record in self.records)
        return kept + sum(t.numel() * t.element_size() for t in self.norms.values()) + held_bytes(self.last_residual)

    def text(self, index: int) -> Trace:
        """The same run seen from another text of the batch."""
        if not 0 <= index < self.texts:
            raise IndexError(f"text {index} of a batch of {self.texts}")
        return replace(self, index=index)

    def tokens_of(self, record: AttentionRecord) -> tuple[Tokens, Tokens]:
        """The tokens of its queries and of its keys: for cross-attention, target and source."""
        if record.stack == "encoder" or self.targets is None:
            return self.sources[record.text], self.sources[record.text]
        queries = self.targets[record.text]
        return queries, self.sources[record.text] if record.site == "cross_attn" else queries

    def predictions(self, positions: Sequence[int] | None = None, k: int = 10) -> Predictions:
        """The k likeliest words at each position, most likely first; None asks for the last real token.

        Logits are computed for these positions alone. Raises TextError for models without a head.
        """
        head = self.loaded.model.head
        if head is None:
            raise TextError(f"{self.spec.title} has no head, so it predicts no words. Try a language model.")
        tokens = self.source if self.target is None else self.target
        if positions is None:
            positions = [max(i for i, padding in enumerate(tokens.padding) if not padding)]
        if bad := [p for p in positions if not 0 <= p < len(tokens)]:
            raise IndexError(f"position {bad[0]} of {len(tokens)}")
        with torch.inference_mode():
            x = self.last_residual(torch.tensor(positions, device=self.loaded.device))[self.index]
            probs, ids = head(x[None])[0].float().softmax(-1).topk(min(k, self.config.vocab_size))
        rows = ids.tolist()
        return Predictions(
            tuple(positions),
            tuple(map(tuple, rows)),
            tuple(from_ids(self.loaded.tokenizer, row).strings for row in rows),
            tuple(map(tuple, probs.tolist())),
        )


def trace(
    loaded: Loaded,
    source: str | Sequence[str] | None = None,
    target: str | Sequence[str] | None = None,
    *,
    ids: Sequence[int] | None = None,
    target_ids: Sequence[int] | None = None,
    interventions: Iterable[Intervention] = (),
    padding_side: Literal["left", "right"] = "right",
    watch: Callable[[Trace], object] = lambda _: None,
) -> Trace:
    """Run `loaded` on a text, a list of texts, or token ids, and keep what happened.

    target is what an encoder–decoder's decoder has written so far; without one it has only its start token. Texts of
    different length are padded, which moves and changes nothing. Interventions apply in order. `watch` is shown how far the
    run has come, before its first layer and as soon as the pass has left an attention: a trace with the tokens and the
    attentions so far, and nothing else yet.

    Raises TextError (empty, not tokenisable, too long for the model's positions), InterventionError, and TooLarge with the
    bytes needed and free, before anything runs.
    """
    sources = source_tokens(loaded, source, ids, "source", padding_side)
    targets = None
    if loaded.config.kind == "encoder-decoder":
        targets = target_tokens(loaded, target, target_ids, len(sources), padding_side)
    elif target is not None or target_ids is not None:
        raise TextError(f"{loaded.spec.title} takes one text, not a source and a target. Leave the target out.")
    return trace_tokens(loaded, sources, targets, tuple(interventions), watch)


def trace_tokens(
    loaded: Loaded,
    sources: tuple[Tokens, ...],
    targets: tuple[Tokens, ...] | None,
    interventions: tuple[Intervention, ...],
    watch: Callable[[Trace], object] = lambda _: None,
) -> Trace:
    """trace() for texts that are tokens already, of equal length within each batch."""
    model, config, device = loaded.model, loaded.config, loaded.device
    source_len, target_len = len(sources[0]), 0 if targets is None else len(targets[0])
    predicted = partial(
        run_bytes,
        config,
        batch=len(sources),
        source_len=source_len,
        target_len=target_len,
        dtype=dtype_name(loaded.dtype),
        padded=any(any(tokens.padding) for tokens in (*sources, *(targets or ()))),
    )
    last = len(sources) * (target_len or source_len) * config.d_model * loaded.dtype.itemsize
    hold = predicted().values + last <= HELD_BYTES
    spelled_out = any(
        point.watched for name, point in hook_points(model).items() if name.endswith(("hook_scores", "hook_pattern"))
    )
    needed = predicted(keep_values=hold, spelled_out=spelled_out)
    size = f"{source_len:,} tokens" + (f" and {target_len:,}" if targets is not None else "")
    memory.admit(needed.captured + needed.transient, memory.free_bytes(device), f"A run on {size}")

    edits: list[dict[str, Hook]] = [dict(edit.hooks(model)) for edit in interventions]
    inputs = model_inputs(sources, targets, device)

    def run(*watchers: dict[str, Hook]) -> Tensor:
        with torch.inference_mode(), ExitStack() as contexts:
            for hooks in (*edits, *watchers):
                contexts.enter_context(hooked(model, hooks))
            return model.last_residual(*inputs)

    def run_again(point: str) -> Tensor:
        """What passes one point, from another pass that goes no further."""
        seen: list[Tensor] = []

        def enough(x: Tensor) -> None:
            seen.append(x)
            raise _Enough

        with suppress(_Enough):
            run({point: enough})
        return seen[0]

    def show() -> None:
        so_far = tuple(recorder.records)
        watch(Trace(loaded, interventions, sources, targets, so_far, (), (), {}, not_yet, seconds=0))

    recorder = Recorder(loaded, hold_values=hold, run_again=run_again, left=show)
    show()
    edited_points = {name for hooks in edits for name in hooks}
    start = time.perf_counter()
    final = run(recorder.hooks(edited_points))
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    seconds = time.perf_counter() - start
    final_point = f"{config.stacks[-1][0]}.hook_final"
    return Trace(
        loaded,
        interventions,
        sources,
        targets,
        tuple(recorder.records),
        recorder.position_records(),
        (*recorder.steps, *logits_step(loaded, len(sources))),
        recorder.norms,
        residual_of(final, partial(run_again, final_point), sources if targets is None else targets, hold),
        seconds,
        predicted_bytes=needed.captured + needed.transient,
    )


class _Enough(Exception):
    """Ends a pass that has shown what it was run for."""


def not_yet(_: Tensor) -> Tensor:
    """What a run that still runs has for a last residual stream. Raises RuntimeError."""
    raise RuntimeError("The pass has not come to its end yet.")


def source_tokens(
    loaded: Loaded,
    text: str | Sequence[str] | None,
    ids: Sequence[int] | None,
    what: str,
    side: Literal["left", "right"],
) -> tuple[Tokens, ...]:
    """A text, several, or one list of numbers as a batch of equal length. Raises TextError; `what` is its word for the text."""
    if (text is None) == (ids is None):
        raise TextError(
            f"Give the {what} either as text or as token ids, not {'both' if ids is not None else 'neither'}."
        )
    if ids is not None:
        batch = [from_ids(loaded.tokenizer, ids)]
    else:
        texts = [text] if isinstance(text, str) else list(text or ())
        if not texts:
            raise TextError(f"The list of {what} texts is empty. Give at least one.")
        batch = [tokenize(loaded.tokenizer, t) for t in texts]
    return padded(loaded, batch, side)


def target_tokens(
    loaded: Loaded,
    text: str | Sequence[str] | None,
    ids: Sequence[int] | None,
    n_texts: int,
    side: Literal["left", "right"],
) -> tuple[Tokens, ...]:
    """What the decoder reads: its start token, then the target without the end that it has yet to write."""
    if ids is not None:
        if text is not None:
            raise TextError("Give the target either as text or as token ids, not both.")
        return padded(loaded, [from_ids(loaded.tokenizer, ids)] * n_texts, side)
    texts = [text or ""] * n_texts if text is None or isinstance(text, str) else list(text)
    if len(texts) != n_texts:
        raise TextError(f"{n_texts} source texts need as many target texts, not {len(texts)}.")
    if loaded.start_id is None:
        raise TextError(
            f"{loaded.spec.title} does not say which token starts its output; give target_ids=[...] instead."
        )
    start = replace(from_ids(loaded.tokenizer, [loaded.start_id]), text="", offsets=((0, 0),), special=(True,))
    batch = []
    for t in texts:
        if not t.strip():
            batch.append(start)
            continue
        batch.append(_behind(start, tokenize(loaded.tokenizer, t)))
    return padded(loaded, batch, side)


def _behind(start: Tokens, tokens: Tokens) -> Tokens:
    """What the decoder reads of a target: the start token, and no end of text, which is still to be written."""
    stop = len(tokens) - 1 if tokens.special[-1] else len(tokens)
    names = [f.name for f in fields(Tokens) if f.name != "text"]
    return Tokens(tokens.text, **{name: getattr(start, name) + getattr(tokens, name)[:stop] for name in names})


def padded(loaded: Loaded, batch: Sequence[Tokens], side: Literal["left", "right"]) -> tuple[Tokens, ...]:
    """The batch filled up to its longest text. Raises TextError for more tokens than positions, and for unknown numbers."""
    config = loaded.config
    for tokens in batch:
        if config.has_position_table and len(tokens) > config.n_ctx:
            raise TextError(
                f"This text is {len(tokens):,} tokens long, and {loaded.spec.title} has positions for {config.n_ctx:,}. "
                "Shorten the text, or choose a model with rotary or relative positions."
            )
    if (highest := max(max(tokens.ids) for tokens in batch)) >= config.vocab_size:
        raise TextError(
            f"Token number {highest} is not in this model's vocabulary, which has 0 to {config.vocab_size - 1}. "
            "Give numbers below that, or the tokenizer that belongs to this model."
        )
    pad_string = from_ids(loaded.tokenizer, [loaded.pad_id]).strings[0] if loaded.tokenizer else "[PAD]"
    return pad(batch, loaded.pad_id, pad_string, side)


def model_inputs(
    sources: tuple[Tokens, ...], targets: tuple[Tokens, ...] | None, device: torch.device
) -> tuple[Tensor, Tensor | None, Tensor | None, Tensor | None, Tensor]:
    """ids, target_ids, keep, target_keep and type_ids, [batch, pos] each.

    keep is None where there is no padding, so that the fused kernel needs no mask.
    """

    def column(batch: tuple[Tokens, ...], name: str) -> Tensor:
        return torch.tensor([getattr(tokens, name) for tokens in batch], device=device)

    def keep(batch: tuple[Tokens, ...]) -> Tensor | None:
        padding = column(batch, "padding")
        return ~padding if padding.any() else None

    return (
        column(sources, "ids"),
        None if targets is None else column(targets, "ids"),
        keep(sources),
        None if targets is None else keep(targets),
        column(sources, "type_ids"),
    )
