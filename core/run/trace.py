"""trace(): run a model on a text and record the run compactly enough for texts of any length."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor

from .. import memory
from ..bars import bar
from ..checkpoints import Loaded
from ..edits import Intervention
from ..errors import InterventionError, TextError
from ..model.chat import Message
from ..model.text import Tokens
from ..plan.runs import run_bytes
from .attention import AttentionRecord
from .chunks import ChunkRecorder, advice, choose, run_in_chunks
from .foreign import ForeignModel
from .forward_pass import prepare
from .prompt import Keep, Prompt, Side, chat_sources, read_again, reads_again, source_tokens, target_tokens
from .recorder import HELD_BYTES, Recorder, logits_step, residual_of
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
    sources = source_tokens(loaded, source, ids, "source", padding_side, keep)
    targets = None
    if loaded.config.kind == "encoder-decoder":
        if target is None and target_ids is None and target_keep is None and reads_again(loaded):
            targets = read_again(loaded, sources)
        else:
            targets = target_tokens(loaded, target, target_ids, len(sources), padding_side, target_keep)
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
    with bar(unit=" attentions") as report:
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
    cut = choose(forward, hold, needed_bytes, kept_edits, free)
    needed_bytes = needed_bytes if cut is None else cut.needed
    memory.admit(needed_bytes, free, f"A run on {size}", advice(forward))
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
