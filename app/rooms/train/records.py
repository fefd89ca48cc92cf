"""Runs that have ended, as Train opens on them: the curve, every frame, and looks at the task's example. No weights.

Of a run and its twins other seeds may be kept as well, by their curves alone: how far seeds differ is what a lead is measured by.
"""

from __future__ import annotations

import gzip
import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from app.transport import messages
from core.edits import to_text
from core.learn import watched_training
from core.learn.recorded_runs import leads, milestones, share_right
from core.learn.tasks import problems
from core.learn.watched_training import LIVE, VARIANTS, Example, Frame, Point, Spec, described
from core.service import FrameFacts, LookFacts, TrainingUpdate, frame_facts, look_facts

FOLDER = Path(__file__).parent / "finished"  # `python -m scripts.train_records` writes it
TASK = "induction"  # the one that Train opens with, whose twins there are with SEEDS
SEEDS = (0, 1, 2)
RACES = ("nomask", "nopositions", "heads1", "heads2", "heads8", "heads16", "postnow", "postln", "noresidual")
COPIES = ("heads1", "heads16", "postln", "rate10", "nowarmup", "nomask", "nopositions", "noscale", "noresidual")
EVERY, EVERY_TWIN = 5, 10  # steps between two frames of TASK as it is, and of its twins and other seeds
LOOKS_OF_TWIN = 20  # steps between two looks of a twin
EXAMPLES = {
    "induction": "machine|m",
    "copy": "feedback",
    "echo": "feedback",
    "reverse": "feedback",
    "sort": "feedback",
    "addition": "247+386",
}


def opening_example(task: str) -> str:
    """What is watched where no one typed anything."""
    return EXAMPLES.get(task) or problems(LIVE[task], 1, seed="watched", held_out=True)[0].rstrip("=")


def wanted() -> list[Spec]:
    """The runs to keep whole: every task as it is, Copy with its twins, and TASK with its own."""
    twins = [*(Spec("copy", twin) for twin in COPIES), *(Spec(TASK, twin) for twin in RACES)]
    return [*(Spec(task) for task in LIVE), *twins]


def others(spec: Spec) -> list[Spec]:
    """Its other seeds, kept by their curves."""
    return [replace(spec, seed=seed) for seed in SEEDS if seed != spec.seed] if spec.task == TASK else []


def every(spec: Spec) -> int:
    """Steps between its frames; 0 where they are those of every run."""
    return 0 if spec.task != TASK else EVERY if spec == Spec(TASK) else EVERY_TWIN


def weighs(spec: Spec) -> bool:
    """Whether the weights of its last frame are kept as well: those of TASK's twins would be too many."""
    return spec.twin == "none" or spec.task != TASK


def path_of(spec: Spec, folder: Path = FOLDER) -> Path:
    return folder / (f"seeds/{spec.task}-{spec.twin}-{spec.seed}.gz" if spec.seed else f"{spec.task}-{spec.twin}.gz")


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
    apart = LOOKS_OF_TWIN if every(spec) == EVERY_TWIN else 1
    looks = [look_facts(spec, frame, of) for frame in frames if apart == 1 or frame.step % apart == 0]
    if every(spec):  # many maps: each weight in six bits
        looks = [replace(look, pattern=np.round(look.pattern * 63) / 63) for look in looks]
    header = {
        "points": points_text(points),
        "frames": [rounded(asdict(frame_facts(frame))) for frame in frames],
        **looks_header(spec, of, looks),
    }
    return messages.pack(header, looks_body(looks))


def curves(points: Sequence[Point], frames: Sequence[Frame]) -> bytes:
    """Of a run that is kept by its curves alone: loss by step, and of each frame the share of right letters and how many are whole."""
    losses = [round(p.loss, 4) if math.isfinite(p.loss) else None for p in points]
    seen = [[frame.step, round(share_right(frame), 4), frame.whole] for frame in frames]
    return json.dumps({"losses": losses, "frames": seen}, allow_nan=False).encode()


def rounded(said: Any) -> Any:
    """Its numbers to five digits after the point: what is drawn and told has fewer."""
    if isinstance(said, dict):
        return {name: rounded(one) for name, one in said.items()}
    if isinstance(said, list | tuple):
        return [rounded(one) for one in said]
    return round(said, 5) if isinstance(said, float) else said


@cache
def opened(spec: Spec, folder: Path = FOLDER) -> bytes:
    """A kept run as the room gets it: with its moments, and with its other seeds and leads where these are kept."""
    header, body = messages.unpack(read(spec, folder))
    mine, plain = seeds_of(spec, folder), seeds_of(replace(spec, twin="none"), folder)
    more = {
        "moments": [asdict(one) for one in milestones(frames_of(header["frames"]))],
        "seeds": mine,
        "leads": [asdict(one) for one in leads([shares_of(one) for one in plain], [shares_of(one) for one in mine])]
        if spec.twin != "none"
        else [],
    }
    return gzip.compress(messages.pack({**header, **more}, body), compresslevel=6, mtime=0)


def seeds_of(spec: Spec, folder: Path = FOLDER) -> list[dict[str, Any]]:
    """Curves of each seed of a run that is kept, its own first; none where there is its own alone."""
    paths = [path_of(one, folder) for one in others(spec)]
    if not paths or not all(path.is_file() for path in paths):
        return []
    own, _ = messages.unpack(read(spec, folder))
    seen = [[one.step, share_right(one), one.whole] for one in frames_of(own["frames"])]
    first = {"losses": [loss for _, loss, _ in own["points"]], "frames": seen}
    return [first, *(json.loads(gzip.decompress(path.read_bytes())) for path in paths)]


def shares_of(seed: dict[str, Any]) -> dict[int, float]:
    """Share of right letters by step."""
    return {step: share for step, share, _ in seed["frames"]}


def write(spec: Spec, message: bytes, folder: Path = FOLDER) -> Path:
    """Keep a run. The same run gives the same file."""
    folder.mkdir(exist_ok=True)
    path = path_of(spec, folder)
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(gzip.compress(message, compresslevel=9, mtime=0))
    return path


def read(spec: Spec, folder: Path = FOLDER) -> bytes:
    """The message of a run that is kept. Raises FileNotFoundError for any other."""
    return gzip.decompress(path_of(spec, folder).read_bytes())


def news(spec: Spec) -> TrainingUpdate | None:
    """What a run that is kept came to, as the service says it of one that has ended; None of any other."""
    is_kept = spec == Spec(spec.task, spec.twin) and spec.twin in there().get(spec.task, ())
    return _news(spec) if is_kept else None


@cache
def _news(spec: Spec) -> TrainingUpdate:
    header, _ = messages.unpack(read(spec))
    points = tuple(Point(step, math.inf if loss is None else loss, right) for step, loss, right in header["points"])
    return TrainingUpdate("ended", points=points, frames=frames_of(header["frames"]))


def frames_of(said: Iterable[dict[str, Any]]) -> tuple[FrameFacts, ...]:
    """Frames as a record has them; one that was made before heads were measured says nothing of these."""

    def tupled(x: Any) -> Any:
        return tuple(map(tupled, x)) if isinstance(x, list) else x

    return tuple(FrameFacts(**{name: tupled(x) for name, x in one.items()}) for one in said)


# as they travel


def points_text(points: Iterable[Point]) -> list[list[float | None]]:
    """The curve: step, loss and share right; a loss that is no number is null."""
    return [[p.step, p.loss if math.isfinite(p.loss) else None, p.accuracy] for p in points]


def looks_header(spec: Spec, of: Example, looks: Sequence[LookFacts]) -> dict[str, Any]:
    """What is looked at, and the numbers of each frame."""
    twin = VARIANTS[spec.twin]
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
