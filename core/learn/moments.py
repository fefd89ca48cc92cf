"""Where a run turns, each by a rule, and where one run is ahead of its twin by more than seeds differ."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

Kind = Literal["start", "plateau", "finds", "right", "back", "done"]

WINDOW = 100  # steps of a plateau
RISE = 40  # steps in which a head turns
FOUND = 0.5  # of a head's attention: it has found what comes next
RIGHT = 0.9  # of the letters
LOOKS_BACK = 0.4  # of a head's attention at the end, without which no head looks back
LEAST = 30  # steps of a lead


class Seen(Protocol):
    """The part of a Frame that a moment is read from."""

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
    """A step of a run. `since` is the step that it is told from; before and after are what the rule reads at both."""

    kind: Kind
    step: int
    since: int = 0
    before: float = 0.0
    after: float = 0.0
    layer: int = -1
    head: int = -1


@dataclass(frozen=True)
class Lead:
    """Steps from which to which every seed of one side (0: the run as it is, 1: its twin) is ahead of every seed of the other."""

    side: int
    first: int
    last: int


def share_right(frame: Seen) -> float:
    """Of the unseen letters, the mean over the places of the answer."""
    return sum(frame.given) / max(1, len(frame.given))


def reached(frames: Sequence[Seen], share: float = RIGHT) -> int | None:
    """The first step from which on the share of right letters stays this high; None where it never does."""
    found = None
    for frame in reversed(frames):
        if share_right(frame) < share:
            break
        found = frame.step
    return found


def moments(frames: Sequence[Seen]) -> list[Moment]:
    """The moments of a run that has ended, in the order of their steps. A run without such a head or step has no such moment."""
    if len(frames) < 2:
        return []
    first, last = frames[0], frames[-1]
    found = [Moment("start", first.step, first.step, first.loss or 0.0, first.loss or 0.0)]
    found += [one for one in (_plateau(frames), _finds(frames), _right(frames), _back(frames)) if one is not None]
    found.append(Moment("done", last.step, first.step, share_right(first), share_right(last)))
    return sorted(found, key=lambda one: one.step)


def leads(runs: Sequence[Mapping[int, float]], twins: Sequence[Mapping[int, float]]) -> list[Lead]:
    """Leads of LEAST steps or more in the share of right letters by step, of as many seeds as there are.

    One seed on a side says nothing of how far seeds differ, so there is no lead without two of each.
    """
    if min(len(runs), len(twins)) < 2:
        return []
    steps = sorted(set.intersection(*(set(one) for one in (*runs, *twins))))
    found: list[Lead] = []
    side, first, before = None, 0, 0
    for step in [*steps, None]:
        now = None
        if step is not None:
            ours, theirs = [one[step] for one in runs], [one[step] for one in twins]
            now = 0 if min(ours) > max(theirs) else 1 if min(theirs) > max(ours) else None
        if now != side:
            if side is not None and before - first >= LEAST:
                found.append(Lead(side, first, before))
            side, first = now, step or 0
        before = step or before
    return found


def _after(frames: Sequence[Seen], i: int, steps: int) -> int | None:
    """The first frame so many steps after a frame."""
    return next((j for j in range(i + 1, len(frames)) if frames[j].step - frames[i].step >= steps), None)


def _plateau(frames: Sequence[Seen]) -> Moment | None:
    """The steps before half are right in which the loss falls least."""
    half = next((i for i, one in enumerate(frames) if share_right(one) >= 0.5), len(frames))
    best: tuple[float, Moment] | None = None
    for i, one in enumerate(frames[:half]):
        j = _after(frames, i, WINDOW)
        if j is None or j >= half or one.step < WINDOW / 5:
            continue
        a, b = one.loss, frames[j].loss
        if a is None or b is None or not math.isfinite(a + b):
            continue
        fall = (a - b) * WINDOW / (frames[j].step - one.step)
        if best is None or fall < best[0]:
            best = fall, Moment("plateau", frames[j].step, one.step, a, b)
    return best and best[1]


def _finds(frames: Sequence[Seen]) -> Moment | None:
    """The first head with half its attention on what comes next."""
    for i, one in enumerate(frames):
        value, layer, head = _largest(one.finds)
        if value < FOUND:
            continue
        before = next((other for other in reversed(frames[:i]) if one.step - other.step >= RISE), frames[0])
        return Moment("finds", one.step, before.step, before.finds[layer][head], value, layer, head)
    return None


def _right(frames: Sequence[Seen]) -> Moment | None:
    step = reached(frames)
    if step is None:
        return None
    i = next(i for i, one in enumerate(frames) if one.step == step)
    before = next((other for other in reversed(frames[:i]) if step - other.step >= RISE), frames[0])
    return Moment("right", step, before.step, share_right(before), share_right(frames[i]))


def _back(frames: Sequence[Seen]) -> Moment | None:
    """The steepest rise of the head that ends highest on the place before."""
    value, layer, head = _largest(frames[-1].back)
    if value < LOOKS_BACK:
        return None
    best: tuple[float, Moment] | None = None
    for i, one in enumerate(frames):
        j = _after(frames, i, RISE)
        if j is None:
            break
        a, b = one.back[layer][head], frames[j].back[layer][head]
        rise = (b - a) / (frames[j].step - one.step)
        if best is None or rise > best[0]:
            best = rise, Moment("back", frames[j].step, one.step, a, b, layer, head)
    return best and best[1]


def _largest(of: Sequence[Sequence[float]]) -> tuple[float, int, int]:
    """(value, layer, head); -1 of nothing."""
    return max(((x, layer, head) for layer, row in enumerate(of) for head, x in enumerate(row)), default=(-1.0, -1, -1))
