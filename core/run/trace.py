"""trace(): run a model on a text and record the run compactly enough for texts of any length."""

from __future__ import annotations

import time
import weakref
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import torch
from torch import Tensor

from .. import device
from .. import device as memory
from ..checkpoints import Loaded
from ..edits import Intervention
from ..errors import InterventionError, TextError
from ..model.chat import Message
from ..model.hooks import Hook, HookPoint, hook_points
from ..model.rules import DisentangledBias, DistanceBias, ScoreRule
from ..model.text import Tokens
from ..plan.peak import run_bytes
from ..progress import progress_bar
from .attention import AttentionRecord
from .chunks import ChunkRecorder, advice, plan_chunks, run_in_chunks
from .foreign import ForeignModel
from .forward_pass import Pass, prepare
from .recorder import HELD_BYTES, KEPT, Recorder, logits_step, residual_of
from .request import (
    Keep,
    Prompt,
    Side,
    chat_sources,
    decoder_copies_source,
    padded,
    source_as_target,
    tokenize_source,
    tokenize_target,
)
from .trace_record import TraceRecord

Watch = Callable[[Any], object]  # receives a partial TraceRecord; through core.trace, a Trace


def trace(
    loaded: Loaded,
    source: str | Sequence[str] | None = None,
    target: str | Sequence[str] | None = None,
    *,
    ids: Sequence[int] | None = None,
    target_ids: Sequence[int] | None = None,
    keep: Keep = None,
    target_keep: Keep = None,
    interventions: Iterable[Intervention] = (),
    padding_side: Side = "right",
    watch: Watch | None = None,
) -> TraceRecord:
    """Run `loaded` on a text, a list of texts, or token ids, and return the recorded run.

    `keep` and `target_keep` are the attention masks of `ids` and `target_ids` (1 or True for real tokens); masked
    tokens are padding and are never attended to. Ids with padding but without a mask are attended to, and Trace.warnings
    reports it.

    `target` is the decoder's text so far in an encoder-decoder. Without it the decoder has only its start token; in a
    classifier, the source shifted by one token. Texts of different lengths are padded, which does not change the
    results. A text that does not fit in memory is processed in chunks if that gives the same result (core.run.chunks).
    Interventions are applied in order. `watch` is called before the first layer and after every attention with a
    partial trace that holds only the tokens and the attentions so far. Without it, a progress bar is shown in terminals
    and notebooks.

    Raises TextError (empty, cannot be tokenised, or too long for the model), InterventionError, and TooLarge with the
    bytes needed and free; all of them before anything runs.
    """
    if not isinstance(loaded, Loaded):
        raise TypeError(f"the first argument is a loaded model, as headlight.load(name) gives it, and not {loaded!r}")
    if isinstance(loaded, ForeignModel) and loaded.no_text:
        raise TextError(loaded.no_text)
    if not isinstance(interventions, Iterable):
        raise InterventionError(f"Interventions are a list, also where there is one alone: [{interventions!r}].")
    sources = tokenize_source(loaded, source, ids, "source", padding_side, keep)
    targets = None
    if loaded.config.kind == "encoder-decoder":
        if target is None and target_ids is None and target_keep is None and decoder_copies_source(loaded):
            targets = source_as_target(loaded, sources)
        else:
            targets = tokenize_target(loaded, target, target_ids, len(sources), padding_side, target_keep)
    elif target is not None or target_ids is not None or target_keep is not None:
        raise TextError(f"{loaded.spec.title} takes one text, not a source and a target. Leave the target out.")
    return _with_progress_bar(loaded, sources, targets, tuple(interventions), watch)


def trace_chat(
    loaded: Loaded,
    messages: Sequence[Message],
    *,
    add_generation_prompt: bool = True,
    answer: str = "",
    interventions: Iterable[Intervention] = (),
    watch: Watch | None = None,
) -> TraceRecord:
    """trace() for a conversation, [{"role": "user", "content": "Hello"}], formatted with the model's chat template.

    With `add_generation_prompt` the text ends where the model's answer starts; `answer` is the answer so far. In the
    result, run.source.text is the formatted text, run.source.roles has the role of each token, and
    run.source.from_template marks tokens added by the template. The ids equal those of apply_chat_template() in
    transformers. Raises TextError for a model without a template, messages that the template rejects, or a template
    that cannot be rendered; otherwise as trace().
    """
    if not isinstance(loaded, Loaded):
        raise TypeError(f"the first argument is a loaded model, as headlight.load(name) gives it, and not {loaded!r}")
    sources = chat_sources(loaded, [messages], add_generation_prompt=add_generation_prompt, answer=answer)
    return _with_progress_bar(loaded, sources, None, tuple(interventions), watch)


def _with_progress_bar(
    loaded: Loaded,
    sources: tuple[Tokens, ...],
    targets: tuple[Tokens, ...] | None,
    interventions: tuple[Intervention, ...],
    watch: Watch | None,
) -> TraceRecord:
    """trace_tokens(), with a progress bar unless the caller tracks progress."""
    if watch is not None:
        return trace_tokens(loaded, sources, targets, interventions, watch)
    config = loaded.config
    layers = config.n_encoder_layers + config.n_decoder_layers * (1 + (config.kind == "encoder-decoder"))
    n = sum(len(tokens) for tokens in sources)
    what = f"{loaded.spec.title}, {n:,} tokens"
    with progress_bar(unit=" attentions") as report:
        return trace_tokens(
            loaded, sources, targets, interventions, lambda so_far: report(len(so_far.records), layers, what)
        )


def trace_tokens(
    loaded: Loaded,
    sources: tuple[Tokens, ...],
    targets: tuple[Tokens, ...] | None,
    interventions: tuple[Intervention, ...],
    watch: Watch = lambda _: None,
) -> TraceRecord:
    """trace() for texts that are already tokenised and padded to equal length."""
    config, device = loaded.config, loaded.device
    prompt = Prompt(sources, targets)
    if isinstance(loaded, ForeignModel):
        return loaded.run(prompt, interventions, watch)
    forward = prepare(loaded, prompt, interventions)
    predicted = partial(run_bytes, config, forward.workload, edited_rules=forward.edited_rules)
    z_bytes = sum(attention_bytes(prompt, loaded) for name in forward.edited if name.endswith(".hook_z"))
    last = prompt.batch * len(prompt.last_read[0]) * config.d_model * loaded.dtype.itemsize
    hold = predicted().values + z_bytes + last <= HELD_BYTES
    needed = predicted(keep_values=hold, spelled_out=bool(forward.is_eager))
    kept_edits = (z_bytes if hold else 0) + (last if "decoder.embed.hook_position" in forward.edited else 0)
    needed_bytes = needed.captured + needed.transient + kept_edits
    size = f"{prompt.source_len:,} tokens" + (f" and {prompt.target_len:,}" if targets is not None else "")
    free = memory.free_bytes(device)  # called once: it reads a dozen files
    cut = plan_chunks(forward, hold, needed_bytes, kept_edits, free)
    needed_bytes = needed_bytes if cut is None else cut.needed
    memory.check_fits(needed_bytes, free, f"A run on {size}", advice(forward))
    chunks = 1 if cut is None else -(-prompt.source_len // cut.rows)

    def show(so_far: tuple[AttentionRecord, ...]) -> None:
        watch(
            TraceRecord(loaded, sources, targets, so_far, (), (), {}, not_available, forward, seconds=0, chunks=chunks)
        )

    recorder = (Recorder if cut is None else ChunkRecorder)(forward, hold_values=hold, on_attention=show)
    show(())
    start = time.perf_counter()
    if isinstance(recorder, ChunkRecorder) and cut is not None:
        last_residual = run_in_chunks(forward, recorder, cut)
    else:
        again = partial(forward.again, f"{config.stacks[-1][0]}.hook_final")
        last_residual = residual_of(forward.run(recorder.hooks()), again, prompt.last_read, hold)
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    seconds = time.perf_counter() - start
    forward.weights.check()  # fails if training changed the weights during the run
    return TraceRecord(
        loaded,
        sources,
        targets,
        tuple(recorder.records),
        recorder.position_records(),
        (*recorder.steps, *logits_step(loaded, len(sources))),
        recorder.norms,
        last_residual,
        forward,
        seconds,
        predicted_bytes=needed_bytes,
        chunks=chunks,
    )


def attention_bytes(prompt: Prompt, loaded: Loaded) -> int:
    """Bytes of q (or z) of one attention, for the longer of source and target."""
    n = max(prompt.source_len, prompt.target_len)
    return prompt.batch * n * loaded.config.n_heads * loaded.config.d_head * loaded.dtype.itemsize


def not_available(_: Tensor) -> Tensor:
    """Stands for the final residual stream of an unfinished run. Raises RuntimeError."""
    raise RuntimeError("The forward pass has not finished yet.")


ALONG = ("pos", "query", "key")  # axes along which a batch is padded


def trace_batch(loaded: Loaded, texts: Sequence[Tokens]) -> tuple[TraceRecord, ...]:
    """trace() of each of these texts without edits, from one pass over all of them. The model has one stack.

    Padding is masked and does not move positions, so a trace equals that of a separate run, up to the rounding of matrix
    products. It stores nothing of the other texts, and second passes run its text only. `seconds` is the time of the whole
    pass. Raises TextError like trace(), TooLarge with the bytes needed and free, and InterventionError for an editing hook.
    """
    together = prepare(loaded, Prompt(padded(loaded, texts, "right")), ())
    if together.edited:
        raise InterventionError("An edited text runs by itself. Trace these texts one by one.")
    whole = run_bytes(loaded.config, together.workload)
    what = f"A run on {len(texts)} texts at once"
    device.check_fits(whole.captured + whole.transient, device.free_bytes(loaded.device), what, "Run them one by one.")
    recorders = [_recorder(prepare(loaded, Prompt((own,)), ())) for own in texts]
    begun = time.perf_counter()
    final = together.run(_shown_to_each(loaded, recorders))  # [batch, pos, d_model]
    if loaded.device.type == "cuda":
        torch.cuda.synchronize(loaded.device)
    seconds = time.perf_counter() - begun
    together.weights.check()
    return tuple(
        _trace(recorder, final[i : i + 1, : len(own)], seconds)
        for i, (recorder, own) in enumerate(zip(recorders, texts, strict=True))
    )


def _recorder(forward: Pass) -> Recorder:
    last = forward.prompt.source_len * forward.loaded.config.d_model * forward.loaded.dtype.itemsize
    hold = run_bytes(forward.loaded.config, forward.workload).values + last <= HELD_BYTES
    return Recorder(forward, hold_values=hold, on_attention=lambda _: None)


def _trace(recorder: Recorder, final: Tensor, seconds: float) -> TraceRecord:
    """`final` [1, pos, d_model] is a view into the batch and is copied."""
    forward, hold = recorder.forward, recorder.hold_values
    loaded, sources = forward.loaded, forward.prompt.sources
    again = partial(forward.again, f"{loaded.config.stacks[-1][0]}.hook_final")
    needed = run_bytes(loaded.config, forward.workload, keep_values=hold)
    return TraceRecord(
        loaded,
        sources,
        None,
        tuple(recorder.records),
        recorder.position_records(),
        (*recorder.steps, *logits_step(loaded, 1)),
        recorder.norms,
        residual_of(final.clone() if hold else final, again, sources, hold),
        forward,
        seconds,
        predicted_bytes=needed.captured + needed.transient,
    )


def _shown_to_each(loaded: Loaded, recorders: Sequence[Recorder]) -> dict[str, Hook]:
    """Hooks of the batch that pass each text's part of a tensor to its recorder."""
    points = hook_points(loaded.model)
    sizes = [recorder.forward.prompt.source_len for recorder in recorders]
    of_each = [recorder.hooks() for recorder in recorders]
    last: tuple[weakref.ref[Any], list[Any]] | None = None  # the last tensor that is not stored, and its parts

    def show(name: str, x: Any) -> None:
        nonlocal last
        if last is not None and last[0]() is x:  # the residual stream between two layers passes two points
            parts = last[1]
        else:
            kept = name.rsplit(".", 1)[-1] in KEPT
            parts = [part_of(x, points[name], text, n, copy=kept) for text, n in enumerate(sizes)]
            last = None if kept else (weakref.ref(x), parts)
        for hooks, part in zip(of_each, parts, strict=True):
            hooks[name](part)

    return {name: partial(show, name) for name in of_each[0]}


def part_of(x: Any, point: HookPoint, text: int, n: int, copy: bool) -> Any:
    """The part of one text of n tokens, without padding, of a hook point's tensor [batch or 1, …] or rule."""
    if isinstance(x, ScoreRule):
        return rule_of(x, text, n)
    row = text if x.shape[0] > 1 else 0
    x = x[row : row + 1]
    for dim, axis in enumerate(point.axes):
        x = x.narrow(dim, 0, n) if axis in ALONG else x
    return x.clone() if copy else x  # a view would hold the whole batch


def rule_of(rule: ScoreRule, text: int, n: int) -> ScoreRule:
    """The rule of one text of n tokens as in a separate run, without padding."""
    own = rule.for_text(text)
    bias = own.bias
    if isinstance(bias, DistanceBias):
        queries, keys = bias.query_positions[:, :n].clone(), bias.key_positions[:, :n].clone()
        bias = replace(bias, query_positions=queries, key_positions=keys)
    if isinstance(bias, DisentangledBias):
        bias = bias.first(n)
    keep = None if own.mask.keep is None else own.mask.keep[:, :n]
    keep = None if keep is None or bool(keep.all()) else keep.clone()  # padding inside the text stays masked
    return replace(own, mask=replace(own.mask, n_query=n, n_key=n, keep=keep), bias=bias)
