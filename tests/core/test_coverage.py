"""The table of published architectures: each row is at parity with transformers, or refused with a sentence that names it."""

from __future__ import annotations

import json
from functools import cache

import pytest
import torch

from benchmarks import coverage
from core import trace
from core.checkpoints import Loaded, load
from core.model.cache import Cache
from core.model.hooks import hook_points, hooked
from core.plan import parameters, plan
from core.plan.tracing import Flops, LiveBytes
from tests.core.published import COVERED, reference
from tests.thorough import part

SHARE = 6  # one row in so many is tried where not all are
rows = pytest.mark.parametrize("name", part(list(COVERED), SHARE, first=1))


@cache
def ours(name: str) -> Loaded:
    return load(reference(name).folder)


@rows
def test_spelled_out(name: str) -> None:
    """Every pattern as the model itself made it, and every logit, step by step."""
    for theirs in reference(name).runs:
        seen: dict[str, torch.Tensor] = {}
        model = ours(name).model
        names = [point for point in hook_points(model) if point.endswith("hook_pattern")]
        looks = {point: lambda x, point=point, seen=seen: seen.__setitem__(point, x) for point in names}
        with torch.inference_mode(), hooked(model, looks):
            logits = model(theirs.source, theirs.target)[0]
        assert seen.keys() == theirs.patterns.keys()
        assert (logits - theirs.out).abs().max() <= coverage.LOGITS
        for point, pattern in seen.items():
            assert (pattern[0] - theirs.patterns[point]).abs().max() <= coverage.PATTERNS, point


@rows
def test_traced(name: str) -> None:
    """The same from a trace: patterns of the record, logits of the pass without hooks, and the receipts of every record."""
    theirs = reference(name).runs[0]
    target = None if theirs.target is None else theirs.target[0].tolist()
    run = trace(ours(name), ids=theirs.source[0].tolist(), target_ids=target)
    for record in run.attention:
        assert (record.pattern() - theirs.patterns[f"{record.name}.hook_pattern"]).abs().max() <= coverage.PATTERNS
        receipt = record.receipt()
        assert receipt.rows_sum_error < 1e-5
        assert receipt.masked_max == 0
        assert receipt.fused_error is not None and receipt.fused_error < 1e-4
        assert receipt.added_error is not None and receipt.added_error < 1e-4
    with torch.inference_mode():
        logits = ours(name).model(theirs.source, theirs.target)[0]
    assert (logits - theirs.out).abs().max() <= coverage.LOGITS


@rows
def test_with_a_cache(name: str) -> None:
    """Token by token through the cache, a decoder comes to the same residual as over the whole text at once."""
    loaded, theirs = ours(name), reference(name).runs[0]
    if not loaded.config.writes or loaded.config.kind == "encoder-decoder":
        pytest.skip("it does not write, or its cache is tried with the others that have an encoder")
    decoder = loaded.model.decoder
    assert decoder is not None
    with torch.inference_mode():
        whole, cache_ = decoder(theirs.source), Cache(loaded.config)
        steps = [decoder(theirs.source[:, i : i + 1], cache=cache_) for i in range(theirs.source.shape[1])]
    assert (torch.cat(steps, dim=1) - whole).abs().max() <= coverage.LOGITS


@pytest.mark.parametrize("row", part([row for row in coverage.ROWS if row.name in coverage.REFUSED], SHARE), ids=str)
def test_refused(row: coverage.Row) -> None:
    result = coverage.tried(row)
    assert result.pattern is None
    assert result.model_type in result.sentence


@rows
def test_counted(name: str) -> None:
    """The plan knows the model's parameters and products, and no less memory than a run takes."""
    loaded, theirs = ours(name), reference(name).runs[0]
    config = loaded.config
    weights = list(loaded.model.parameters())
    assert parameters(config).total == sum(weight.numel() for weight in weights)
    target_len = 0 if theirs.target is None else theirs.target.shape[1]
    planned = plan(config, source_len=theirs.source.shape[1], target_len=target_len, logits="all")
    with Flops() as counted, LiveBytes() as live, torch.no_grad():
        live.track(*weights, *loaded.model.buffers())
        loaded.model(theirs.source, theirs.target)
    assert counted.total == planned.step_flops
    assert live.peak <= planned.total


def test_the_table_counts_every_row_once() -> None:
    names = [row.name for row in coverage.ROWS]
    assert len(names) == len(set(names)) == 105
    assert set(names) >= coverage.REFUSED
    assert len(names) - len(coverage.REFUSED) >= 80


def test_a_damaged_row_is_seen() -> None:
    """A row at parity is not so by accident: the soft-cap left out of Gemma 2 is noticed."""
    folder = reference("row Gemma 2").folder
    config = json.loads((folder / "config.json").read_text())
    theirs = reference("row Gemma 2").runs[0]
    kept = (folder / "config.json").read_text()
    try:
        (folder / "config.json").write_text(json.dumps(config | {"attn_logit_softcapping": None}))
        with torch.inference_mode():
            logits = load(folder).model(theirs.source)[0]
    finally:
        (folder / "config.json").write_text(kept)
    assert (logits - theirs.out).abs().max() > 10 * coverage.LOGITS
