"""Steps in a browser on a visitor's own sentence or sizes: right, wrong, and wrong twice, as the truth of that run says."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from app.rooms.lessons import words
from app.rooms.lessons.checks import check
from app.rooms.lessons.replies import reply
from app.rooms.lessons.step import Truth
from tests.app.browsing import PATIENCE
from tests.app.pages import lend
from tests.app.rail import ready
from tests.app.test_lesson_replies import on, own_address, right_answer, wrong_answers

APP = "app/main.py"
COMPONENT = words.COMPONENT
SAMPLE = ("1.2", "3.4", "3.6", "5.1")  # a word, a shape, a number, an option


@pytest.fixture(scope="module")
def page(browser: Browser) -> Iterator[Page]:
    with lend(browser, viewport={"width": 1280, "height": 720}, reduced_motion="reduce") as page:
        page.set_default_timeout(PATIENCE)
        yield page


def say(rail: Locator, truth: Truth, answer: Any) -> None:
    """Give an answer in the rail. Places are in the order of the picture there, and not of what is right."""
    buttons = rail.locator(".place button:not(.slot)")
    if truth.kind == "drag":
        rail.locator(".place").get_by_role("textbox").fill(str(answer))
    elif truth.kind == "shape":
        for _ in range(rail.locator(".slot:not(:empty)").count()):
            rail.locator(".slot").first.click()
        for size in answer:
            buttons.nth(truth.options.index(size)).click()
    elif truth.kind == "choose":
        buttons.nth(answer[0]).click()
    else:
        buttons.nth(sorted(one.place for one in truth.candidates).index(tuple(answer[0]))).click()


def look(rail: Locator) -> None:
    rail.get_by_role("button", name=COMPONENT["look"], exact=True).click()


@pytest.mark.thorough(but=1)
@pytest.mark.parametrize("own", [1, 2])
@pytest.mark.parametrize("step", SAMPLE)
def test_a_step_on_an_own_text_is_answered_right_wrong_and_wrong_twice(
    page: Page, address: str, step: str, own: int
) -> None:
    truth = on(step, own)
    assert isinstance(truth, Truth)
    lesson, at = step.split(".")
    page.goto(f"{address}/?view=lessons&lesson={lesson}&at={at}&{own_address(step, own)}")
    ready(page, step)
    rail = page.locator(f'.lessons[data-ready=true][data-step="{step}"]')
    expect(rail.locator(".question")).to_have_text(truth.question)
    right = right_answer(truth)
    say(rail, truth, right)
    look(rail)
    expect(rail).to_have_attribute("data-right", "true")
    rail.get_by_role("button", name=COMPONENT["again"]).click()
    wrong = [answer for answer in wrong_answers(truth) if truth.kind != "shape" or len(answer) == len(truth.axes)]
    assert wrong
    first, second = wrong[0], wrong[-1]
    say(rail, truth, first)
    look(rail)
    told = reply(truth, first)
    assert told is not None
    expect(rail.locator(".reply b")).to_have_text(told.name)
    expect(rail).to_have_attribute("data-seen", "false")
    say(rail, truth, second)
    look(rail)
    expect(rail).to_have_attribute("data-right", "false")
    expect(rail.locator(".answer")).to_contain_text(check(truth, right).true)
    expect(rail.locator(".answer")).to_contain_text(truth.reason)
