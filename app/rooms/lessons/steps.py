"""The table of the steps: five lessons in the order of what a step needs, and two of claims that can be tried."""

from __future__ import annotations

from dataclasses import replace

from app import languages
from app.rooms.lessons import counting, depth, infinities, lesson_1, lesson_2, lesson_3, lesson_4, lesson_5, words
from app.rooms.lessons.step import Ask, Candidate, Kind, Lesson, Shown, Step, Truth, Unanswerable
from core.errors import HeadlightError

LESSONS = (
    Lesson("Attention", lesson_1.STEPS),
    Lesson("Order and depth", lesson_2.STEPS),
    Lesson("Shapes and memory", lesson_3.STEPS),
    Lesson("Two stacks", lesson_4.STEPS),
    Lesson("Writing, training, cost", lesson_5.STEPS),
    # The steps that a visitor has looked at are kept by their place in this table: new ones come at its end.
    Lesson("Claims, checked", (*infinities.STEPS, *depth.STEPS, *counting.BATCH)),
    Lesson("Costs, counted", (*counting.WIDTHS, *counting.COSTS)),
)

__all__ = ["LESSONS", "Ask", "Candidate", "Kind", "Lesson", "Shown", "Step", "Truth", "Unanswerable", "true_of"]


async def true_of(step: Step, shown: Shown) -> Truth | Unanswerable:
    """What is true of a step on what is on the screen. What the engine refuses is a reason why it cannot be answered."""
    try:
        found = Unanswerable(words.NO_RUN) if step.model and shown.facts is None else await step.truth(shown)
    except HeadlightError as refusal:
        found = Unanswerable(languages.said(refusal))
    if isinstance(found, Unanswerable):
        return replace(found, model=step.model, text=step.sentence)
    return found
