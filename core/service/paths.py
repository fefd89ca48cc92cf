"""Single heads beside their runs: three tests of one, the paths between several, and what each of them reads."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch

from ..errors import InterventionError, TextError
from ..read.attribution import head_pushes
from ..sweep.evidence import Evidence
from ..sweep.leads import logit_diff_between
from ..sweep.part import Component
from ..sweep.parts import patch_components
from ..sweep.paths import PathEdge, begin_paths
from ..sweep.sides import To
from ..sweep.sweeps import final_token_input
from ..trace import Trace
from .answers import AskedParts, AskedPaths, HeadNotes, PartEstimates, PartTests


def tests_of(run: Trace, other: Trace | None, asked: AskedParts, part: Component) -> PartTests:
    """A part silent, at its mean and, where there is another run, taken from it. Raises as patch_components()."""
    if part.kind == "resid":
        raise InterventionError(
            "The stream at a word is taken from another run; it has no silence and no mean of its own."
        )
    lead = logit_diff_between(run, other, asked.answer, asked.alternative, asked.position)
    names: tuple[To, ...] = ("zero", "mean") if other is None else ("other", "zero", "mean")
    changes, p, before = dict[To, float](), list[float](), 0.0
    for to in names:
        (rows,) = patch_components(run, other, [part], [lead.answer, lead.alternative], to, lead.position)
        before = float(rows.before[0] - rows.before[1])
        changes[to] = float(rows.log_p[0, 0] - rows.log_p[0, 1]) - before
        p.append(float(np.exp(rows.log_p[0, 0])))
    found = Evidence(part, lead, before, changes["zero"], changes["mean"], changes.get("other"))
    return PartTests(part, before, names, tuple(changes.values()), tuple(p), found.verdict)


@dataclass(frozen=True, eq=False)
class PathRuns:
    """Paths that are to run, a batch at a time."""

    of: int
    batches: Iterator[tuple[PathEdge, ...]]


def begin_path_runs(run: Trace, other: Trace, asked: AskedParts, paths: AskedPaths) -> PathRuns:
    """The runs of paths, which memory is admitted for. Raises as patch_paths()."""
    lead = logit_diff_between(run, other, asked.answer, asked.alternative, asked.position)
    found = begin_paths(run, other, paths.heads, lead, receivers=None if paths.into is None else [paths.into])
    return PathRuns(found.n, found.batches())


def notes_of(run: Trace, known: PartEstimates) -> HeadNotes:
    """The tokens that heads read where they act, by their own weights, and what their outputs add to the answer and to its alternative."""
    last = run.config.stacks[-1][0]
    records = [record for record in run.attention if (record.stack, record.site) == (last, "attn")]
    shape = known.acts.shape
    key, weight, first = np.zeros(shape, np.int64), np.zeros(shape, np.float32), np.zeros(shape, np.float32)
    for layer, record in enumerate(records):
        for query in sorted(set(known.acts[layer].tolist())):
            heads = np.flatnonzero(known.acts[layer] == query)
            rows = torch.nan_to_num(record.pattern(heads.tolist(), [query]))[:, 0].cpu().numpy()  # [head, key]
            read = rows[:, 1 : query + 1].argmax(1) + 1 if query else np.zeros(len(heads), np.int64)
            key[layer, heads], first[layer, heads] = read, rows[:, 0]
            weight[layer, heads] = rows[np.arange(len(heads)), read]
    watched = [known.answer, known.alternative]
    try:
        pushes = head_pushes(run.forward, run.index, final_token_input(run), known.position, watched)
    except TextError:  # of a model whose logits bend
        pushes = None
    return HeadNotes(key, weight, first, pushes)
