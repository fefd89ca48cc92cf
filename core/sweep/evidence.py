"""Three tests of one head or MLP, and whether they agree: it is silent, it gives its mean, it gives what it gave in another sentence."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from ..run.trace import Trace
from .leads import Given, Head, Lead, check_pair, checked_head, lead_between, lead_changes
from .part import Part
from .parts import patch_parts
from .sweeps import HeadPlace

Verdict = Literal["none", "same", "disagree", "silence", "other", "some"]
COUNTED = 0.05  # of the lead: a test that moves it by less does not count


@dataclass(frozen=True)
class Evidence:
    """One head, or MLP, under each test: by how much it changes the lead of an answer over its rival, in nats."""

    head: HeadPlace | Part
    lead: Lead
    before: float  # the lead in the run itself
    silence: float  # the head gives zero
    mean: float  # the mean of what it gives over the tokens of this text
    other: float | None  # what it gave in the other run, at every token; None without one

    @property
    def counted(self) -> tuple[Given, ...]:
        """The tests that move the lead by 5 % of it or more."""
        tests: dict[Given, float | None] = {"zero": self.silence, "mean": self.mean, "other": self.other}
        least = COUNTED * abs(self.before)
        return tuple(test for test, change in tests.items() if change is not None and abs(change) >= least)

    @property
    def verdict(self) -> Verdict:
        """Of the tests that count: "none" does; they "disagree" in direction; all that were made move the lead the "same" way;
        "silence" alone moves it, so that the model needs the head's usual output and not what it says here; the "other" sentence
        alone does, so that the head speaks up where the words differ; or "some" move it, and the same way."""
        counted = self.counted
        changes = {"zero": self.silence, "mean": self.mean, "other": self.other}
        signs = {(changes[test] or 0) > 0 for test in counted}
        if not counted:
            return "none"
        if len(signs) > 1:
            return "disagree"
        if len(counted) == 2 + (self.other is not None):
            return "same"
        return "silence" if counted == ("zero",) else "other" if counted == ("other",) else "some"


def three_tests(
    run: Trace,
    other: Trace | None,
    head: Head | Part,
    lead: Lead | None = None,
) -> Evidence:
    """One head silenced, set to its mean, and taken from another run where there is one: three edited runs, one edit each.

    `head` is a HeadPlace, (layer, head) of the last stack, or a Part: an MLP is tested in the same way. The lead is one that
    lead_between() makes; None: of the likeliest of both runs. Raises as patch_paths(), lead_changes() and patch_parts().
    """
    if isinstance(head, Part):
        return _of_part(run, other, head, lead or lead_between(run, other))
    place = checked_head(run.loaded, head)
    if other is not None:
        check_pair(run, other)
    lead = lead or lead_between(run, other)
    silence, before = lead_changes(run, None, [place], lead, "zero")
    mean, _ = lead_changes(run, None, [place], lead, "mean")
    taken = None if other is None else float(lead_changes(run, other, [place], lead)[0][0])
    return Evidence(place, lead, before, float(silence[0]), float(mean[0]), taken)


def _of_part(run: Trace, other: Trace | None, part: Part, lead: Lead) -> Evidence:
    def change(to: Given) -> tuple[float, float]:
        (rows,) = patch_parts(run, other, [part], [lead.answer, lead.rival], to, lead.position)
        before = rows.before[0] - rows.before[1]
        return float(rows.log_p[0, 0] - rows.log_p[0, 1] - before), float(before)

    (silence, before), (mean, _) = change("zero"), change("mean")
    return Evidence(part, lead, before, silence, mean, None if other is None else change("other")[0])
