"""A step asked anew, of another text or of other sizes, is another question with an answer of its own."""

from __future__ import annotations

import pytest

from app.rooms.lessons.checks import check
from app.rooms.lessons.opening import TEXTS
from app.rooms.lessons.replies import reply
from app.rooms.lessons.step import Shown, Truth
from app.rooms.lessons.steps import LESSONS, true_of
from app.session import service as session_service
from tests.app.served import ask
from tests.app.test_lesson_steps import STEPS, run, truth

ANEW = [name for name, step in STEPS.items() if step.varied]


def test_every_lesson_has_three_steps_that_can_be_asked_anew() -> None:
    assert all(sum(bool(step.varied) for step in lesson.steps) >= 3 for lesson in LESSONS)


def test_what_would_be_no_other_question_is_never_asked_anew() -> None:
    assert STEPS["1.5"].anew("Birds can fly") is None and STEPS["1.3"].anew("Birds can fly") is None


@pytest.mark.thorough(but=8)
@pytest.mark.parametrize("name", ANEW)
def test_a_step_asked_anew_is_another_question_with_an_answer(name: str) -> None:
    step = STEPS[name].anew(TEXTS[STEPS[name].model])
    assert step is not None and step.title == STEPS[name].title
    facts = run(step.model, step.sentence) if step.model else None
    is_so = ask(true_of(step, Shown(session_service.service(), step.state, facts, step.sentence)))
    assert isinstance(is_so, Truth), is_so
    before = truth(name)
    assert (is_so.question, is_so.reason) != (before.question, before.reason)
    if is_so.kind == "choose":
        assert check(is_so, list(is_so.right)).right
    if is_so.kind == "drag":
        assert check(is_so, is_so.number).right and reply(is_so, is_so.low) is not None
