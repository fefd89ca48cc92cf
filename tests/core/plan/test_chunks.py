"""chunked_run_bytes: never below what a run in chunks is measured to hold, and below one go where that is wide."""

from __future__ import annotations

import random
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

import pytest
import torch

import core
from core.edits import Edit
from core.errors import ConfigError
from core.model.config import ModelConfig
from core.plan import PRESETS, chunked_run_bytes, run_bytes
from core.plan.tracing import LiveBytes
from core.run import chunks
from tests.core.plan.configs import Case, cases
from tests.core.plan.test_runs import RULES, no_grad, tokens, tracing, untrained
from tests.thorough import THOROUGH

GiB = 1 << 30


def measure(
    case: Case, rows: int | None, *, padded: bool, keep_values: bool, edits: tuple[core.edits.Intervention, ...] = ()
) -> int:
    """Bytes at the peak of core.trace and of a look at the next word, weights included; rows None: in one go."""
    with ExitStack() as contexts:
        patch = contexts.enter_context(pytest.MonkeyPatch.context())
        patch.setattr(torch, "inference_mode", no_grad)
        patch.setattr(tracing, "HELD_BYTES", 1 << 62 if keep_values else 0)
        needed = predicted(case, rows or 1, padded=padded, keep_values=keep_values)
        cut = None if rows is None else chunks.Chunks(rows, False, needed.total)
        patch.setattr(tracing, "plan_chunks", lambda *_: cut)
        loaded = untrained(case.config, getattr(torch, case.dtype))
        live = contexts.enter_context(LiveBytes())
        live.track(*loaded.model.parameters(), *loaded.model.buffers())
        sources = tokens(case.source_len, case.batch, padded)
        assert sources is not None
        run = core.trace_tokens(loaded, sources, None, edits)
        if loaded.model.head is not None:
            last = torch.tensor([case.source_len - 1 - padded])
            loaded.model.head(run.last_residual(last)).float().softmax(-1)
        return live.peak


def predicted(case: Case, rows: int, *, padded: bool, keep_values: bool) -> Any:
    return chunked_run_bytes(
        case.config,
        rows=rows,
        batch=case.batch,
        source_len=case.source_len,
        dtype=case.dtype,
        padded=padded,
        keep_values=keep_values,
    )


def test_never_below_where_masks_are_edited() -> None:
    for i, case in enumerate(decoders(12, 6)):
        edits = tuple(edit for edit in RULES if isinstance(edit, Edit) and not edit.sees_ahead)[i % 6 :][: 1 + i % 2]
        padded = i % 3 == 0
        run = chunked_run_bytes(
            case.config,
            rows=64,
            batch=case.batch,
            source_len=case.source_len,
            dtype=case.dtype,
            padded=padded,
            edited_rules=True,
        )
        peak = measure(case, 64, padded=padded, keep_values=True, edits=edits)
        assert peak <= run.total, (case, edits, run)


def decoders(seed: int, n: int) -> list[Case]:
    lengths = (256, 300, 700, 2048) if THOROUGH else (256, 300, 700)
    found = cases(seed, 5 * n, 7, source=lengths, vocab=(50,))
    return [case for case in found if case.config.kind == "decoder"][:n]


def test_never_below_and_close_above() -> None:
    pick = random.Random(1)
    for i, case in enumerate(decoders(9, 14)):
        rows, padded, keep_values = pick.choice((37, 64, 200)), i % 3 == 0, i % 4 != 3
        run = predicted(case, rows, padded=padded, keep_values=keep_values)
        peak = measure(case, rows, padded=padded, keep_values=keep_values)
        assert peak <= run.total, (case, rows, run)
        assert run.total - run.weights <= 1.6 * (peak - run.weights), (case, rows, run)


@pytest.mark.thorough
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_a_wide_model_peaks_lower_in_chunks(dtype: str) -> None:
    config = ModelConfig(
        vocab_size=50,
        d_model=128,
        n_heads=4,
        n_kv_heads=2,
        d_ff=1024,
        n_decoder_layers=2,
        position="rotary",
        gated=True,
    )
    case = Case(config, batch=1, source_len=1500, target_len=0, dtype=dtype)
    options: Any = {"padded": False, "keep_values": False}
    one_go, in_chunks = measure(case, None, **options), measure(case, 100, **options)
    run = predicted(case, 100, **options)
    assert in_chunks <= run.total < 0.6 * one_go


def test_llama_3_8b_reads_100_000_tokens_on_one_card() -> None:
    config = replace(PRESETS["llama-3-8b"].config, n_ctx=131_072)
    options: dict[str, Any] = {"source_len": 100_000, "dtype": "bfloat16", "keep_values": False}
    one_go = run_bytes(config, **options)
    here = chunked_run_bytes(config, rows=8192, **options)
    there = chunked_run_bytes(config, rows=8192, on_host=True, **options)
    assert there.total < here.total < 139 * GiB
    assert there.total < one_go.total
    q_and_k = 32 * 100_000 * (32 + 8) * 128 * 2
    assert (here.captured, here.host) == (q_and_k, 0)
    assert (there.captured, there.host) == (0, q_and_k)
    assert there.total < 48 * GiB  # weights, the cache, and one chunk


def test_refusals_are_sentences() -> None:
    config = ModelConfig(vocab_size=10, d_model=8, n_heads=2, d_ff=16, n_encoder_layers=1)
    with pytest.raises(ConfigError, match="a run in chunks is for decoders; this model is encoder"):
        chunked_run_bytes(config, rows=5, source_len=10)
    with pytest.raises(ConfigError, match=r"rows \(0\) must be at least 1"):
        chunked_run_bytes(replace(config, n_encoder_layers=0, n_decoder_layers=1), rows=0, source_len=10)
