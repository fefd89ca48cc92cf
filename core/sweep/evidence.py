"""Three tests of one head or MLP, and whether they agree: zero ablation, mean ablation, and patching from another sentence."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from ..run.trace import Trace
from .leads import Given, Head, LogitDiff, check_pair, checked_head, logit_diff_between, logit_diff_changes
from .part import Component
from .parts import patch_components
from .sweeps import HeadPlace

Verdict = Literal["none", "same", "disagree", "silence", "other", "some"]
SIGNIFICANT = 0.05  # of the logit difference: a smaller change does not count


@dataclass(frozen=True)
class Evidence:
    """One head, or MLP, under each test: the change of the logit difference of an answer and its alternative, in nats."""

    head: HeadPlace | Component
    lead: LogitDiff
    before: float  # the logit difference in the run itself
    zero_ablation: float
    mean_ablation: float  # set to the mean over the tokens of this text
    patching: float | None  # set to its output in the other run, at every token; None without one

    @property
    def _changes(self) -> dict[Given, float | None]:
        return {"zero": self.zero_ablation, "mean": self.mean_ablation, "other": self.patching}

    @property
    def significant(self) -> tuple[Given, ...]:
        """The tests that change the logit difference by 5 % of it or more."""
        least = SIGNIFICANT * abs(self.before)
        return tuple(test for test, change in self._changes.items() if change is not None and abs(change) >= least)

    @property
    def verdict(self) -> Verdict:
        """Compare the significant tests: "none" is significant; they "disagree" in sign; all have the "same" sign; only "silence" (zero
        ablation) is, so the model needs the head's usual output and not its output for this text; only the "other" sentence is, so
        the head matters where the texts differ; or "some" are, with one sign."""
        significant = self.significant
        if not significant:
            return "none"
        if len({(self._changes[test] or 0) > 0 for test in significant}) > 1:
            return "disagree"
        if len(significant) == 2 + (self.patching is not None):
            return "same"
        return "silence" if significant == ("zero",) else "other" if significant == ("other",) else "some"


def three_tests(
    run: Trace,
    other: Trace | None,
    head: Head | Component,
    lead: LogitDiff | None = None,
) -> Evidence:
    """Ablate one head to zero, to its mean, and patch it from another run if there is one: three edited runs with one edit each.

    `head` is a HeadPlace, (layer, head) of the last stack, or a Component; an MLP is tested in the same way. `lead` comes from
    logit_diff_between(); None: of the most likely tokens of both runs. Raises as patch_paths(), logit_diff_changes() and patch_components().
    """
    if isinstance(head, Component):
        return _component_evidence(run, other, head, lead or logit_diff_between(run, other))
    place = checked_head(run.loaded, head)
    if other is not None:
        check_pair(run, other)
    lead = lead or logit_diff_between(run, other)
    zero, before = logit_diff_changes(run, None, [place], lead, "zero")
    mean, _ = logit_diff_changes(run, None, [place], lead, "mean")
    patching = None if other is None else float(logit_diff_changes(run, other, [place], lead)[0][0])
    return Evidence(place, lead, before, float(zero[0]), float(mean[0]), patching)


def _component_evidence(run: Trace, other: Trace | None, part: Component, lead: LogitDiff) -> Evidence:
    def change(to: Given) -> tuple[float, float]:
        (rows,) = patch_components(run, other, [part], [lead.answer, lead.alternative], to, lead.position)
        before = rows.before[0] - rows.before[1]
        return float(rows.log_p[0, 0] - rows.log_p[0, 1] - before), float(before)

    (zero, before), (mean, _) = change("zero"), change("mean")
    return Evidence(part, lead, before, zero, mean, None if other is None else change("other")[0])
