"""Milestones of a training run, each found by a rule, and intervals in which one run leads its variant by more than seeds differ."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from typing import Literal, Protocol

Kind = Literal["start", "plateau", "finds", "right", "back", "done"]

WINDOW = 100  # steps of a plateau
RISE = 40  # steps in which a head changes
FOUND = 0.5  # share of a head's attention on the sources of the next symbol
RIGHT = 0.9  # accuracy
LOOKS_BACK = 0.4  # share of a head's attention on the previous position at the end, below which no head counts
LEAST = 30  # steps of a lead


class Seen(Protocol):
    """The fields of a Frame that milestones are computed from."""

    @property
    def step(self) -> int: ...
    @property
    def given(self) -> Sequence[float]: ...
    @property
    def loss(self) -> float | None: ...
    @property
    def finds(self) -> Sequence[Sequence[float]]: ...
    @property
    def back(self) -> Sequence[Sequence[float]]: ...


@dataclass(frozen=True)
class Moment:
    """A milestone. `since` is the step it is compared with; before and after are the measured values at both."""

    kind: Kind
    step: int
    since: int = 0
    before: float = 0.0
    after: float = 0.0
    layer: int = -1
    head: int = -1


@dataclass(frozen=True)
class Lead:
    """Interval of steps in which every seed of one side (0: the run, 1: its twin) is ahead of every seed of the other."""

    side: int
    first: int
    last: int


def share_right(frame: Seen) -> float:
    """Mean accuracy on unseen problems over the places of the answer."""
    return sum(frame.given) / max(1, len(frame.given))


def reached(frames: Sequence[Seen], share: float = RIGHT) -> int | None:
    """The first step from which on the accuracy stays at least this high; None if there is none."""
    step = None
    for frame in reversed(frames):
        if share_right(frame) < share:
            break
        step = frame.step
    return step


def moments(frames: Sequence[Seen]) -> list[Moment]:
    """The milestones of a finished run in the order of their steps. A milestone that does not occur is left out."""
    if len(frames) < 2:
        return []
    first, last = frames[0], frames[-1]
    found = [
        Moment("start", first.step, first.step, first.loss or 0.0, first.loss or 0.0),
        *(moment for rule in (_plateau, _finds, _right, _back) if (moment := rule(frames)) is not None),
        Moment("done", last.step, first.step, share_right(first), share_right(last)),
    ]
    return sorted(found, key=lambda moment: moment.step)


def leads(runs: Sequence[Mapping[int, float]], twins: Sequence[Mapping[int, float]]) -> list[Lead]:
    """Leads of LEAST steps or more in accuracy by step, one mapping for each seed.

    One seed on a side gives no estimate of how much seeds differ, so a lead needs two of each.
    """
    if min(len(runs), len(twins)) < 2:
        return []
    steps = sorted(set.intersection(*(set(seed) for seed in (*runs, *twins))))
    sides = [(step, _leading([seed[step] for seed in runs], [seed[step] for seed in twins])) for step in steps]
    found: list[Lead] = []
    for side, group in groupby(sides, key=itemgetter(1)):
        interval = [step for step, _ in group]
        if side is not None and interval[-1] - interval[0] >= LEAST:
            found.append(Lead(side, interval[0], interval[-1]))
    return found


def _leading(ours: Sequence[float], theirs: Sequence[float]) -> int | None:
    return 0 if min(ours) > max(theirs) else 1 if min(theirs) > max(ours) else None


def _after(frames: Sequence[Seen], i: int, steps: int) -> int | None:
    """Index of the first frame at least so many steps after a frame."""
    return next((j for j in range(i + 1, len(frames)) if frames[j].step - frames[i].step >= steps), None)


def _before(frames: Sequence[Seen], i: int) -> Seen:
    """The last frame at least RISE steps before a frame; the first if there is none."""
    return next((frame for frame in reversed(frames[:i]) if frames[i].step - frame.step >= RISE), frames[0])


def _plateau(frames: Sequence[Seen]) -> Moment | None:
    """The steps with the smallest fall of the loss, before an accuracy of one half."""
    half = next((i for i, frame in enumerate(frames) if share_right(frame) >= 0.5), len(frames))
    best: tuple[float, Moment] | None = None
    for i, frame in enumerate(frames[:half]):
        j = _after(frames, i, WINDOW)
        if j is None or j >= half or frame.step < WINDOW / 5:
            continue
        a, b = frame.loss, frames[j].loss
        if a is None or b is None or not math.isfinite(a + b):
            continue
        fall = (a - b) * WINDOW / (frames[j].step - frame.step)
        if best is None or fall < best[0]:
            best = fall, Moment("plateau", frames[j].step, frame.step, a, b)
    return best and best[1]


def _finds(frames: Sequence[Seen]) -> Moment | None:
    """The first head with half of its attention on the sources of the next symbol."""
    for i, frame in enumerate(frames):
        value, layer, head = _largest(frame.finds)
        if value >= FOUND:
            before = _before(frames, i)
            return Moment("finds", frame.step, before.step, before.finds[layer][head], value, layer, head)
    return None


def _right(frames: Sequence[Seen]) -> Moment | None:
    step = reached(frames)
    if step is None:
        return None
    i = next(i for i, frame in enumerate(frames) if frame.step == step)
    before = _before(frames, i)
    return Moment("right", step, before.step, share_right(before), share_right(frames[i]))


def _back(frames: Sequence[Seen]) -> Moment | None:
    """The steepest rise of the head with the most attention on the previous position at the end."""
    value, layer, head = _largest(frames[-1].back)
    if value < LOOKS_BACK:
        return None
    best: tuple[float, Moment] | None = None
    for i, frame in enumerate(frames):
        j = _after(frames, i, RISE)
        if j is None:
            break
        a, b = frame.back[layer][head], frames[j].back[layer][head]
        rise = (b - a) / (frames[j].step - frame.step)
        if best is None or rise > best[0]:
            best = rise, Moment("back", frames[j].step, frame.step, a, b, layer, head)
    return best and best[1]


def _largest(rows: Sequence[Sequence[float]]) -> tuple[float, int, int]:
    """(value, layer, head) of the largest value; -1 if there is none."""
    return max(
        ((x, layer, head) for layer, row in enumerate(rows) for head, x in enumerate(row)), default=(-1.0, -1, -1)
    )
