"""Parts of a run by estimate, in the order in which their runs come, and the rows of these runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from ..run.predictions import allowed_scores, following, labels_of
from ..sweep.estimates import AttributionEstimates, attribution_patching, run_order
from ..sweep.leads import logit_diff_between
from ..sweep.part import Component
from ..sweep.parts import Patching, PatchResults, check_changed, patching_of
from ..sweep.sides import counterfactual_of, first_difference
from ..sweep.sweeps import final_token_input
from ..trace import Trace
from .answers import AskedParts, PartEstimates, PartRows

WATCHED = 6  # words
MOST_WORDS = 12  # tokens whose stream is a part: of more, those that may move the lead most


@dataclass(frozen=True, eq=False)
class Ordered:
    """Estimates, and the groups that parts run in."""

    estimates: PartEstimates
    groups: tuple[tuple[Component, ...], ...]


def ordered(run: Trace, other: Trace | None, asked: AskedParts) -> Ordered:
    """All that is told before any part runs. Raises as attribution_patching() and logit_diff_between()."""
    lead = logit_diff_between(run, other, asked.answer, asked.alternative, asked.position)
    found = attribution_patching(run, other, lead.answer, lead.alternative, asked.to, lead.position)
    likeliest = run.predictions([found.position], WATCHED).ids[0]
    watched = tuple(dict.fromkeys((lead.answer, lead.alternative, *likeliest)))[:WATCHED]
    tokens = tokens_of(run, other, found)
    groups = run_order(found, tokens)
    estimates = PartEstimates(
        found.position,
        lead.answer,
        lead.alternative,
        watched,
        dict(zip(watched, labels_of(run.loaded, watched), strict=True)),
        log_p_of(run, found.position, watched),
        None if other is None else log_p_of(other, found.position, watched),
        found.heads,
        found.mlps,
        None if found.resid is None else found.resid[:, list(tokens)],
        tokens,
        sum(map(len, groups)),
        found.acts,
    )
    return Ordered(estimates, groups)


def tokens_of(run: Trace, other: Trace | None, found: AttributionEstimates) -> tuple[int, ...]:
    """The tokens whose stream is taken from the other run: from the first that differs on, of many the strongest by estimate."""
    if other is None or found.resid is None:
        return ()
    first = first_difference(final_token_input(run), final_token_input(other), found.position)
    tokens = range(first, found.position + 1)
    if len(tokens) <= MOST_WORDS:
        return tuple(tokens)
    strength = np.abs(found.resid).max(0)
    others = sorted(tokens[1:-1], key=lambda token: -strength[token])[: MOST_WORDS - 2]
    return tuple(sorted((first, found.position, *others)))


def log_p_of(run: Trace, position: int, watched: Sequence[int]) -> np.ndarray:
    """float32 [watched]: log p of these tokens after a position."""
    logits = run.activation("head.hook_logits", [position]).float()
    scores = allowed_scores(logits, following(run.loaded, final_token_input(run), [position]))
    return torch.log_softmax(scores, -1)[0, list(watched)].cpu().numpy()


@dataclass(frozen=True, eq=False)
class PartRuns:
    """Parts that are to run, in their order, a batch at a time."""

    patching: Patching
    groups: tuple[tuple[Component, ...], ...]

    @property
    def n(self) -> int:
        return sum(map(len, self.groups))

    def batch(self, at: int, most: int) -> tuple[Component, ...]:
        """At most so many parts from one on, all of one group."""
        for group in self.groups:
            if at < len(group):
                return group[at : at + min(most, self.patching.most())]
            at -= len(group)
        return ()

    def run(self, parts: tuple[Component, ...], first: int) -> PartRows:
        """Their rows. In a turn."""
        return rows_of(self, self.patching.run(parts, first))


def begin_parts(
    run: Trace, other: Trace | None, asked: AskedParts, known: PartEstimates, groups: tuple[tuple[Component, ...], ...]
) -> PartRuns:
    """The runs of some parts. Raises as patch_components()."""
    for part in (part for group in groups for part in group):
        check_changed(run, part, asked.to)
    counterfactual = counterfactual_of(run, other if asked.to == "other" else None, asked.to, known.position)
    return PartRuns(patching_of(counterfactual, known.watched), groups)


def rows_of(runs: PartRuns, found: PatchResults) -> PartRows:
    """The same in plain data, with names."""
    likeliest = tuple(dict.fromkeys(found.top.tolist()))
    labels = labels_of(runs.patching.counterfactual.run.loaded, likeliest)
    return PartRows(
        found.first,
        runs.n,
        found.parts,
        found.log_p,
        found.top,
        found.top_p,
        dict(zip(likeliest, labels, strict=True)),
    )


def together(found: Sequence[PartRows]) -> PartRows:
    """All rows, in one."""
    log_p, top, top_p = (np.concatenate([getattr(rows, name) for rows in found]) for name in ("log_p", "top", "top_p"))
    labels = {token: label for rows in found for token, label in rows.labels.items()}
    parts = tuple(part for rows in found for part in rows.parts)
    return PartRows(0, found[0].of, parts, log_p, top, top_p, labels)
