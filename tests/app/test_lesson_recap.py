"""The recap of a lesson: three of its steps asked again, those that were not known first; one that fails is open again."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from app.rooms.lessons import opening
from app.rooms.lessons.steps import LESSONS
from app.rooms.lessons.words import COMPONENT
from tests.app.browsing import PATIENCE
from tests.app.pages import lend
from tests.app.rail import ready

APP = "app/main.py"
STEPS, EVERY = opening.steps(), opening.every()
AGAIN = [name for name in EVERY if name not in STEPS]
ALL = "ff.b1.44"  # of lesson 1: the steps 1, 5, 6 and 8 known, 3 and 7 at the second try, 2 and 4 shown


def test_every_lesson_has_three_steps_that_a_recap_asks_again_of_something_else() -> None:
    for i, _ in enumerate(LESSONS, 1):
        assert sum(name.startswith(f"{i}.") for name in AGAIN) >= 3
    for name in AGAIN:
        before, after = STEPS[name[:-1]], EVERY[name]
        assert before.sentence != after.sentence if after.model else before.state != after.state
        assert (before.title, before.kind, before.cover) == (after.title, after.kind, after.cover)


@pytest.fixture(scope="module")
def page(browser: Browser) -> Iterator[Page]:
    with lend(browser, viewport={"width": 1280, "height": 720}, reduced_motion="reduce") as page:
        page.set_default_timeout(PATIENCE)
        yield page


def at(page: Page, step: str) -> Locator:
    """The rail at a step of the recap, with its room."""
    rail = page.locator(f'.lessons[data-ready=true][data-step="{step}r"]')
    rail.wait_for()
    ready(page, f"{step}r")
    return rail


def opened(page: Page, address: str, where: str, kept: str) -> None:
    page.goto(f"{address}/?view=overview")
    page.evaluate("(kept) => localStorage.setItem('headlight.lessons', kept)", kept)
    page.goto(f"{address}/?view=lessons&{where}")


def press(rail: Locator, name: str) -> None:
    rail.get_by_role("button", name=name, exact=True).click()


@pytest.mark.thorough
def test_a_lesson_ends_with_three_of_its_questions_about_another_text(page: Page, address: str) -> None:
    opened(page, address, "lesson=1&at=8&said=1.0.0&seen=1", ALL)
    ready(page, "1.8")
    rail = page.locator(".lessons")
    expect(rail.locator(".knew")).to_be_hidden()
    expect(rail.locator(".rail li.done.second")).to_have_count(2)
    press(rail, COMPONENT["recap"])
    rail = at(page, "1.2")  # the first that was not known
    expect(rail.locator(".knew")).to_have_text("You knew 4 of 8; 2 came at the second try, 2 were shown.")
    expect(rail.locator(".rail > li")).to_have_text([re.compile(STEPS[f"1.{i}"].title) for i in (2, 4, 7)])
    expect(rail.locator(".question")).to_have_text("Which word will “she” take most from?")
    expect(page.get_by_role("textbox", name="Sentence", exact=True)).to_have_value(opening.TEXTS["minilm"])
    assert re.search(r"lesson=1\.2&.*recap=1", page.url)
    expect(page.locator(".st-key-lessons_view .facts > .covered")).to_be_visible()
    press(rail, "pilot")
    press(rail, COMPONENT["look"])
    expect(rail).to_have_attribute("data-right", "true")
    assert page.evaluate("localStorage.getItem('headlight.lessons')") == ALL  # one that was shown is not known by that
    press(rail, COMPONENT["next"])
    rail = at(page, "1.4")
    press(rail, COMPONENT["look"])  # without an answer
    expect(rail.locator(".note")).to_have_text(COMPONENT["reopened"].format(step=STEPS["1.4"].title))
    expect(rail.locator(".knew")).to_have_text("You knew 4 of 8; 2 came at the second try, 1 was shown, 1 is open.")
    assert page.evaluate("localStorage.getItem('headlight.lessons')") == "f7.b1.44"
    press(rail, COMPONENT["next"])
    rail = at(page, "1.7")
    press(rail, COMPONENT["look"])
    press(rail, COMPONENT["next_lesson"])
    ready(page, "2.1")
    expect(page.locator(".lessons .knew")).to_be_hidden()
    assert "recap" not in page.url


@pytest.mark.thorough
def test_a_first_wrong_answer_fails_nothing_and_a_second_one_opens_a_known_step(page: Page, address: str) -> None:
    opened(page, address, "lesson=1&at=2&recap=1", "ff.ff")
    rail = at(page, "1.2")
    expect(rail.locator(".rail > li")).to_have_count(3)
    press(rail, "nurse")
    press(rail, COMPONENT["look"])
    expect(rail.locator(".reply b")).not_to_be_empty()
    assert page.evaluate("localStorage.getItem('headlight.lessons')") == "ff.ff"
    press(rail, "thanked")
    press(rail, COMPONENT["look"])
    expect(rail.locator(".reply")).to_contain_text("“thanked” gets")  # this mistake, beside the answer
    expect(rail.locator(".answer")).to_contain_text("pilot")
    assert page.evaluate("localStorage.getItem('headlight.lessons')") == "fd.fd"
    press(rail, COMPONENT["back_to_lesson"])
    ready(page, "1.2")
    expect(page.locator(".lessons")).to_have_attribute("data-seen", "false")
    assert "recap" not in page.url


@pytest.mark.thorough
def test_a_link_into_a_recap_shows_the_same_question_and_answer(page: Page, address: str) -> None:
    opened(page, address, "lesson=1&at=2&recap=1", "")
    rail = at(page, "1.2")
    press(rail, "nurse")
    press(rail, COMPONENT["look"])
    press(rail, COMPONENT["show_me"])
    page.wait_for_url("**seen=1**")
    page.evaluate("localStorage.setItem('headlight.lessons', 'ff.ff')")
    page.goto(page.url)
    rail = at(page, "1.2")
    expect(rail.locator(".answer")).to_contain_text("You chose nurse")
    expect(rail.locator(".knew")).to_have_text("You knew 8 of 8; 0 came at the second try, 0 were shown.")
    page.go_back()
    page.evaluate("localStorage.clear()")


@pytest.mark.parametrize("lesson", [3, 5])
@pytest.mark.thorough
def test_a_recap_without_a_lesson_before_it_asks_three(page: Page, address: str, lesson: int) -> None:
    opened(page, address, f"lesson={lesson}&recap=1", "")
    first = next(name for name in AGAIN if name.startswith(f"{lesson}."))
    rail = at(page, first[:-1])
    expect(rail.locator(".rail > li")).to_have_count(3)
    expect(rail.locator(".knew")).to_contain_text(f"You knew 0 of {len(LESSONS[lesson - 1].steps)}")
