"""Models that are trained before one's eyes, of the Service in this process."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from functools import partial
from typing import Any

from ...checkpoints import Loaded
from ...errors import CheckpointError, Refused
from ...learn import watched_training
from ...learn.watched_training import Spec
from ..engine import Engine
from ..maps.compute import array
from ..worker import Worker
from .answers import LookFacts, News
from .trainer import Trainer

LOOKS = 3  # frames of a training in one answer


def look_facts(spec: Spec, frame: watched_training.Frame, of: watched_training.Example) -> LookFacts:
    """An example as a frame sees it, in plain data."""
    seen = watched_training.look(spec, frame, of)
    pattern, finds, ahead = (array(x) for x in (seen.pattern, seen.finds, seen.ahead))
    return LookFacts(seen.step, pattern, seen.p, seen.best, seen.own, finds, ahead)


class LocalTraining(Worker):
    """Trainings, their models, and what these make of an example."""

    def __init__(self, engine: Engine, workers: int | None = None) -> None:
        super().__init__(engine, workers)
        self._trainer = Trainer()
        engine.load_model = partial(self._load, engine.load_model)

    def train(self, spec: Spec) -> AsyncGenerator[News]:
        """A training from its beginning, as far as it is, and then what comes of it until it has ended. Raises Busy.

        It is begun if nobody did; when the last who watches closes the iterator, one that has not ended is cancelled.
        """
        return self._trainer.watch(spec)

    async def expect_training(self, spec: Spec) -> None:
        """Somebody may begin this training in a moment: let what it runs in be there by then. Nothing is begun."""
        self._trainer.ready()

    async def training(self, spec: Spec) -> News:
        """What there is of a training now. Nothing is begun and nobody watches. Raises Refused where there is no such training."""
        return self._trainer.now(spec)

    async def trained(self, spec: Spec, step: int) -> bytes:
        """The model of a frame as a zip: config, weights, tokenizer, recipe, card. Raises Refused where there is no such frame."""
        frames = {frame.step: frame for frame in self._trainer.frames(spec)}
        if step not in frames:
            raise Refused(f"This training keeps no step {step}. It keeps {', '.join(map(str, frames))}.")
        return await self._work(partial(watched_training.archive, spec, frames[step]), slow=True)

    async def looks(self, spec: Spec, example: str, after: int = -1) -> tuple[LookFacts, ...]:
        """An example as every frame of a training behind step `after` sees it, so far: the next few, so that the first come soon.

        Raises Refused for an example that the task does not read, and where there is no such training.
        """
        of, frames = watched_training.example(spec, example), self._trainer.frames(spec)
        coming = [frame for frame in frames if frame.step > after][:LOOKS]
        return tuple([await self._look(spec, frame, of) for frame in coming])

    async def _look(self, spec: Spec, frame: watched_training.Frame, of: watched_training.Example) -> LookFacts:
        make = partial(look_facts, spec, frame, of)
        return await self._kept.get(("look", spec, frame.step, of), lambda: self._work(make, slow=True))

    def _load(self, others: Callable[..., Loaded], model_id: str, **options: Any) -> Loaded:
        """A model by its name, also one that a training has come to. Raises CheckpointError where that training is gone."""
        name, _, point = model_id.partition("@")
        spec = watched_training.named(name)
        if spec is None:
            return others(model_id, **options)
        step = int(point) if point.isdecimal() else spec.steps
        title = watched_training.described(spec).title
        try:
            frames = {frame.step: frame for frame in self._trainer.frames(spec)}
        except Refused:
            raise CheckpointError(
                f"{title}: this run is not kept here any more. Open Train with the same task, twin and seed and press "
                "Train: it comes to the same weights."
            ) from None
        if step not in frames:
            raise CheckpointError(f"{title} keeps no step {step}. It keeps {', '.join(map(str, frames))}.")
        return watched_training.opened(spec, frames[step], options["device"], options["dtype"])

    async def pause_training(self, spec: Spec) -> None:
        """Let a training wait where it is once nobody watches it, instead of ending it; whoever watches it next lets it go on."""
        self._trainer.pause(spec)
