"""What is true of a training that is on the screen: the frames of a run and of its twin, as far as they are."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from app import languages
from app.rooms.lessons import truths, words
from app.rooms.lessons.step import Shown
from app.session import past_trainings
from core.errors import HeadlightError
from core.learn.watched_training import LIVE, STEPS, UNSEEN, Spec
from core.service import FrameFacts

__all__ = ["UNSEEN", "Race", "both", "footer", "name_of", "race", "right", "spec_of"]
OVER = 5  # steps whose mean a loss is, as the curve has it


@dataclass(frozen=True)
class Race:
    """One run, as far as it is: the loss of each step, and its frames."""

    name: str
    spec: Spec
    losses: dict[int, float]
    frames: tuple[FrameFacts, ...]

    def loss(self, step: int) -> float:
        """The mean of OVER steps up to this one. Raises Refused where the run has not come so far."""
        if step not in self.losses:
            raise HeadlightError(words.NO_STEP.format(run=self.name, step=step))
        found = [self.losses[at] for at in range(step - OVER + 1, step + 1) if at in self.losses]
        return sum(found) / len(found)

    @property
    def last(self) -> FrameFacts:
        """The frame of its last step."""
        if not self.frames or self.frames[-1].step < self.spec.steps:
            raise HeadlightError(words.NO_STEP.format(run=self.name, step=self.spec.steps))
        return self.frames[-1]


async def both(shown: Shown) -> tuple[Race, Race]:
    """The run on the screen and its twin."""
    spec = spec_of(shown)
    if spec.twin == "none":
        raise HeadlightError(words.NO_TWIN)
    return await race(shown, spec.alone), await race(shown, spec)


async def race(shown: Shown, spec: Spec) -> Race:
    """What there is of a run by now, or what it comes to where it ended before: a run follows from its description alone.

    Nothing is begun: raises Refused where there is neither.
    """
    name = name_of(spec)
    try:
        news = await shown.service.training(spec)
    except HeadlightError:
        news = None
    if news is None or news.state != "ended":
        news = past_trainings.news(spec) or news
    if news is None:
        raise HeadlightError(words.NO_TRAINING.format(run=name))
    return Race(name, spec, {point.step: point.loss for point in news.points}, news.frames)


def spec_of(shown: Shown) -> Spec:
    """The run that the room shows."""
    values = shown.values
    seed = truths.number(shown, "seed", 1 << 20)
    fork = truths.number(shown, "from", STEPS)
    return Spec(values.get("task", "copy"), values.get("twin", "none"), seed, STEPS, fork)


def name_of(spec: Spec) -> str:
    """How a run is called in a sentence."""
    return words.RACES[spec.twin]


def right(frame: FrameFacts) -> float:
    """The share of unseen symbols right, the answer given."""
    return sum(frame.given) / len(frame.given)


def footer(races: Iterable[Race]) -> str:
    found = list(races)
    task = LIVE[found[0].spec.task].title
    return words.FOOTER_TRAINED.format(
        what=languages.said(
            f"{task}, {', '.join(one.name[0].lower() + one.name[1:] for one in found)}, seed {found[0].spec.seed}"
        )
    )
