"""Our logits and every head's pattern against transformers, family by family, through real folders on disk."""

from __future__ import annotations

from functools import cache

import pytest
import torch
from torch import Tensor

from core.checkpoints import Loaded, load
from core.hooks import hook_points, hooked
from tests.core.published import PUBLISHED, Run, reference

LOGITS, PATTERNS = 1e-5, 1e-6

names = pytest.mark.parametrize("name", PUBLISHED)


@cache
def ours(name: str) -> Loaded:
    return load(reference(name).folder)


def watched(loaded: Loaded, **inputs: Tensor | None) -> tuple[Tensor, dict[str, Tensor]]:
    """Logits, and the pattern at every hook_pattern."""
    seen: dict[str, Tensor] = {}
    hooks = {n: lambda x, n=n: seen.__setitem__(n, x) for n in hook_points(loaded.model) if n.endswith("hook_pattern")}
    with torch.inference_mode(), hooked(loaded.model, hooks):
        return loaded.model(**inputs), seen


def delta(a: Tensor, b: Tensor) -> float:
    return (a - b).abs().max().item()


@names
def test_alone(name: str) -> None:
    loaded = ours(name)
    for theirs in reference(name).runs:
        logits, patterns = watched(loaded, ids=theirs.source, target_ids=theirs.target)
        assert patterns.keys() == theirs.patterns.keys()
        assert delta(logits[0], theirs.out) <= LOGITS * max(1.0, theirs.out.abs().max().item() / 10)
        for key, pattern in patterns.items():
            assert delta(pattern[0], theirs.patterns[key]) <= PATTERNS, key


@names
def test_fused(name: str) -> None:
    """The same logits without hooks, when attention takes the fused kernel."""
    theirs = reference(name).runs[0]
    with torch.inference_mode():
        logits = ours(name).model(theirs.source, theirs.target)
    assert delta(logits[0], theirs.out) <= LOGITS * max(1.0, theirs.out.abs().max().item() / 10)


def padded(runs: tuple[Run, Run], side: str) -> dict[str, Tensor | None]:
    """Both texts in one batch, the shorter one filled up with token 0."""

    def batch(rows: list[Tensor]) -> tuple[Tensor, Tensor]:
        n = max(row.shape[1] for row in rows)
        ids, keep = torch.zeros(len(rows), n, dtype=torch.long), torch.zeros(len(rows), n, dtype=torch.bool)
        for i, row in enumerate(rows):
            at = real(row.shape[1], n, side)
            ids[i, at], keep[i, at] = row[0], True
        return ids, keep

    ids, keep = batch([run.source for run in runs])
    if runs[0].target is None:
        return dict(ids=ids, keep=keep)
    target_ids, target_keep = batch([run.target for run in runs if run.target is not None])
    return dict(ids=ids, keep=keep, target_ids=target_ids, target_keep=target_keep)


def real(n: int, longest: int, side: str) -> slice:
    return slice(longest - n, longest) if side == "left" else slice(0, n)


@names
@pytest.mark.parametrize("side", ["left", "right"])
def test_padded(name: str, side: str) -> None:
    """In a padded batch each text is what it is alone, on either side."""
    if PUBLISHED[name].grows:
        pytest.skip("its angles depend on the length of the batch")
    runs = reference(name).runs
    logits, patterns = watched(ours(name), **padded(runs, side))
    for i, theirs in enumerate(runs):
        n_source, n_target = theirs.source.shape[1], 0 if theirs.target is None else theirs.target.shape[1]
        source = real(n_source, runs[0].source.shape[1], side)
        target = source if theirs.target is None else real(n_target, runs[0].target.shape[1], side)  # type: ignore[union-attr]
        assert delta(logits[i, target], theirs.out) <= LOGITS * max(1.0, theirs.out.abs().max().item() / 10)
        for key, pattern in patterns.items():
            rows = source if key.startswith("encoder") else target
            columns = source if key.startswith("encoder") or "cross_attn" in key else target
            assert delta(pattern[i, :, rows, columns], theirs.patterns[key]) <= PATTERNS, key
