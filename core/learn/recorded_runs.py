"""Stored training runs, and their milestones."""

from __future__ import annotations

import json
import logging
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any, Literal, Protocol

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file

from ..checkpoints.catalog import MODELS
from .watched_training import Frame, Point, Spec, Weights, name_of

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
class Milestone:
    """A milestone. `since` is the step it is compared with; before and after are the measured values at both."""

    kind: Kind
    step: int
    since: int = 0
    before: float = 0.0
    after: float = 0.0
    layer: int = -1
    head: int = -1


@dataclass(frozen=True)
class LeadInterval:
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


def milestones(frames: Sequence[Seen]) -> list[Milestone]:
    """The milestones of a finished run in the order of their steps. A milestone that does not occur is left out."""
    if len(frames) < 2:
        return []
    first, last = frames[0], frames[-1]
    found = [
        Milestone("start", first.step, first.step, first.loss or 0.0, first.loss or 0.0),
        *(moment for rule in (_plateau, _finds, _right, _back) if (moment := rule(frames)) is not None),
        Milestone("done", last.step, first.step, share_right(first), share_right(last)),
    ]
    return sorted(found, key=lambda moment: moment.step)


def leads(runs: Sequence[Mapping[int, float]], twins: Sequence[Mapping[int, float]]) -> list[LeadInterval]:
    """Leads of LEAST steps or more in accuracy by step, one mapping for each seed.

    One seed on a side gives no estimate of how much seeds differ, so a lead needs two of each.
    """
    if min(len(runs), len(twins)) < 2:
        return []
    steps = sorted(set.intersection(*(set(seed) for seed in (*runs, *twins))))
    sides = [(step, _leading([seed[step] for seed in runs], [seed[step] for seed in twins])) for step in steps]
    found: list[LeadInterval] = []
    for side, group in groupby(sides, key=itemgetter(1)):
        interval = [step for step, _ in group]
        if side is not None and interval[-1] - interval[0] >= LEAST:
            found.append(LeadInterval(side, interval[0], interval[-1]))
    return found


def _leading(ours: Sequence[float], theirs: Sequence[float]) -> int | None:
    return 0 if min(ours) > max(theirs) else 1 if min(theirs) > max(ours) else None


def _after(frames: Sequence[Seen], i: int, steps: int) -> int | None:
    """Index of the first frame at least so many steps after a frame."""
    return next((j for j in range(i + 1, len(frames)) if frames[j].step - frames[i].step >= steps), None)


def _before(frames: Sequence[Seen], i: int) -> Seen:
    """The last frame at least RISE steps before a frame; the first if there is none."""
    return next((frame for frame in reversed(frames[:i]) if frames[i].step - frame.step >= RISE), frames[0])


def _plateau(frames: Sequence[Seen]) -> Milestone | None:
    """The steps with the smallest fall of the loss, before an accuracy of one half."""
    half = next((i for i, frame in enumerate(frames) if share_right(frame) >= 0.5), len(frames))
    best: tuple[float, Milestone] | None = None
    for i, frame in enumerate(frames[:half]):
        j = _after(frames, i, WINDOW)
        if j is None or j >= half or frame.step < WINDOW / 5:
            continue
        a, b = frame.loss, frames[j].loss
        if a is None or b is None or not math.isfinite(a + b):
            continue
        fall = (a - b) * WINDOW / (frames[j].step - frame.step)
        if best is None or fall < best[0]:
            best = fall, Milestone("plateau", frames[j].step, frame.step, a, b)
    return best and best[1]


def _finds(frames: Sequence[Seen]) -> Milestone | None:
    """The first head with half of its attention on the sources of the next symbol."""
    for i, frame in enumerate(frames):
        value, layer, head = _largest(frame.finds)
        if value >= FOUND:
            before = _before(frames, i)
            return Milestone("finds", frame.step, before.step, before.finds[layer][head], value, layer, head)
    return None


def _right(frames: Sequence[Seen]) -> Milestone | None:
    step = reached(frames)
    if step is None:
        return None
    i = next(i for i, frame in enumerate(frames) if frame.step == step)
    before = _before(frames, i)
    return Milestone("right", step, before.step, share_right(before), share_right(frames[i]))


def _back(frames: Sequence[Seen]) -> Milestone | None:
    """The steepest rise of the head with the most attention on the previous position at the end."""
    value, layer, head = _largest(frames[-1].back)
    if value < LOOKS_BACK:
        return None
    best: tuple[float, Milestone] | None = None
    for i, frame in enumerate(frames):
        j = _after(frames, i, RISE)
        if j is None:
            break
        a, b = frame.back[layer][head], frames[j].back[layer][head]
        rise = (b - a) / (frames[j].step - frame.step)
        if best is None or rise > best[0]:
            best = rise, Milestone("back", frames[j].step, frame.step, a, b, layer, head)
    return best and best[1]


def _largest(rows: Sequence[Sequence[float]]) -> tuple[float, int, int]:
    """(value, layer, head) of the largest value; -1 if there is none."""
    return max(
        ((x, layer, head) for layer, row in enumerate(rows) for head, x in enumerate(row)), default=(-1.0, -1, -1)
    )


FOLDER = MODELS / "live" / "training"  # created on use, not shipped
# Last frames of the runs that Train opens on; `python -m scripts.train_records` makes them.
ENDS = MODELS / "trained"
# The fields of a frame other than its weights.
FACTS = ("step", "given", "own", "whole", "gradients", "loss", "finds", "back", "ahead")

log = logging.getLogger("headlight")


def write(folder: Path, spec: Spec, points: Sequence[Point], frames: Sequence[Frame]) -> Path:
    """Store a finished run. The file is written atomically."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name_of(spec)}.safetensors"
    tensors = {f"{frame.step}/{name}": x.contiguous() for frame in frames for name, x in frame.weights.items()}
    metadata = {
        "run": json.dumps(asdict(spec)),
        "points": json.dumps([[point.step, point.loss, point.accuracy] for point in points]),
        "frames": json.dumps([{name: getattr(frame, name) for name in FACTS} for frame in frames]),
    }
    part = path.with_suffix(".part")
    save_file(tensors, part, metadata=metadata)
    part.replace(path)
    return path


def read(folder: Path, spec: Spec) -> tuple[list[Point], list[Frame]] | None:
    """Read the points and frames of a stored run; None if there is none. An unreadable file is logged."""
    path = folder / f"{name_of(spec)}.safetensors"
    if not path.is_file():
        return None
    try:
        with safe_open(path, framework="pt") as file:
            metadata = file.metadata() or {}
            if json.loads(metadata["run"]) != asdict(spec):
                return None
            points = [
                Point(int(step), float(loss), float(right)) for step, loss, right in json.loads(metadata["points"])
            ]
            weights: dict[int, dict[str, torch.Tensor]] = {}
            for key in file.keys():  # noqa: SIM118  not a dict
                step, _, name = key.partition("/")
                weights.setdefault(int(step), {})[name] = file.get_tensor(key)
            return points, [frame_of(facts, weights[facts["step"]]) for facts in json.loads(metadata["frames"])]
    except (OSError, SafetensorError, ValueError, KeyError, TypeError) as error:
        log.warning("%s cannot be read, and the run is trained again when it is asked for: %s", path.name, error)
        return None


def frame_of(facts: Mapping[str, Any], weights: Mapping[str, torch.Tensor]) -> Frame:
    """Build a frame from its FACTS, as decoded from JSON, and its weights."""
    given, own, gradients = (tuple(map(float, facts[name])) for name in ("given", "own", "gradients"))
    measures = (rows_of(facts.get(name, ())) for name in ("finds", "back", "ahead"))  # older files have none
    loss = float(facts.get("loss", math.nan))
    return Frame(int(facts["step"]), weights, given, own, int(facts["whole"]), gradients, loss, *measures)


def rows_of(rows: Sequence[Sequence[float]]) -> Weights:
    """[layer][head], from JSON."""
    return tuple(tuple(map(float, row)) for row in rows)
