"""Runs that have ended, as Train opens on them: the curve, every frame, and each frame's look at the task's example. No weights."""

from __future__ import annotations

import gzip
import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from app.transport import messages
from core.edits import to_text
from core.learn import watched_training
from core.learn.tasks import problems
from core.learn.watched_training import LIVE, TWINS, Example, Frame, Point, Spec, described
from core.service import FrameFacts, LookFacts, News, frame_facts, look_facts

FOLDER = Path(__file__).parent / "finished"  # `python -m scripts.train_records` writes it
TASK = "copy"  # the one that Train opens with, whose twins there are too
EXAMPLES = {"copy": "feedback", "echo": "feedback", "reverse": "feedback", "sort": "feedback", "addition": "247+386"}


def opening_example(task: str) -> str:
    """What is watched where no one typed anything."""
    return EXAMPLES.get(task) or problems(LIVE[task], 1, seed="watched", held_out=True)[0].rstrip("=")


def wanted(twins: Iterable[str]) -> list[Spec]:
    """The runs to keep: of every task as it is, and of TASK with each of these twins."""
    return [*(Spec(task) for task in LIVE), *(Spec(TASK, twin) for twin in twins if twin != "none")]


def path_of(spec: Spec, folder: Path = FOLDER) -> Path:
    return folder / f"{spec.task}-{spec.twin}.gz"


@cache
def there(folder: Path = FOLDER) -> dict[str, list[str]]:
    """Which runs are kept, when this is first asked: of each task its twins."""
    names = sorted(path.stem.split("-") for path in folder.glob("*-*.gz"))
    found: dict[str, list[str]] = {task: [] for task, _ in names}
    for task, twin in names:
        found[task].append(twin)
    return found


def made(spec: Spec, points: Sequence[Point], frames: Sequence[Frame]) -> bytes:
    """A run as a message: what the route of its news says, and what the route of its looks says of the task's example."""
    of = watched_training.example(spec, opening_example(spec.task))
    looks = [look_facts(spec, frame, of) for frame in frames]
    header = {
        "points": points_text(points),
        "frames": [asdict(frame_facts(frame)) for frame in frames],
        **looks_header(spec, of, looks),
    }
    return messages.pack(header, looks_body(looks))


def write(spec: Spec, message: bytes, folder: Path = FOLDER) -> Path:
    """Keep a run. The same run gives the same file."""
    folder.mkdir(exist_ok=True)
    path = path_of(spec, folder)
    path.write_bytes(gzip.compress(message, compresslevel=9, mtime=0))
    return path


def read(spec: Spec, folder: Path = FOLDER) -> bytes:
    """The message of a run that is kept. Raises FileNotFoundError for any other."""
    return gzip.decompress(path_of(spec, folder).read_bytes())


def news(spec: Spec) -> News | None:
    """What a run that is kept came to, as the service says it of one that has ended; None of any other."""
    is_kept = spec == Spec(spec.task, spec.twin) and spec.twin in there().get(spec.task, ())
    return _news(spec) if is_kept else None


@cache
def _news(spec: Spec) -> News:
    header, _ = messages.unpack(read(spec))
    points = tuple(Point(step, math.inf if loss is None else loss, right) for step, loss, right in header["points"])
    frames = tuple(
        FrameFacts(one["step"], tuple(one["given"]), tuple(one["own"]), one["whole"], tuple(one["gradients"]))
        for one in header["frames"]
    )
    return News("ended", points=points, frames=frames)


# as they travel


def points_text(points: Iterable[Point]) -> list[list[float | None]]:
    """The curve: step, loss and share right; a loss that is no number is null."""
    return [[p.step, p.loss if math.isfinite(p.loss) else None, p.accuracy] for p in points]


def looks_header(spec: Spec, of: Example, looks: Sequence[LookFacts]) -> dict[str, Any]:
    """What is looked at, and the numbers of each frame."""
    twin = TWINS[spec.twin]
    return {
        "tokens": list(of.tokens),
        "answer": of.answer,
        "first": of.first,
        "unseen": of.is_unseen,
        "model": described(spec).title,
        "edits": to_text(twin.edits) if twin.residual else None,
        "looks": [look_text(look) for look in looks],
    }


def looks_body(looks: Iterable[LookFacts]) -> bytes:
    """The maps of each frame as bytes, 255 for a weight of 1."""
    return messages.joined(*(messages.quantised(look.pattern, 255) for look in looks))


def look_text(look: LookFacts) -> dict[str, object]:
    """One frame's numbers, and the shape of its maps [layer, head, query, key]."""

    def rounded(x: np.ndarray) -> list[list[float]]:
        return [[round(float(w), 4) for w in row] for row in x]

    numbers = {"step": look.step, "p": [round(p, 5) for p in look.p], "best": list(look.best), "own": look.own}
    return {**numbers, "finds": rounded(look.finds), "ahead": rounded(look.ahead), "shape": list(look.pattern.shape)}
