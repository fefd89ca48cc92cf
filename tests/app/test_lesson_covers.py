"""A step covers what gives its answer away, and leaves what one reasons with; a first wrong answer brings a hint, and Show me uncovers all."""

from __future__ import annotations

import re
from collections.abc import Iterator
from math import exp

import pytest
from playwright.sync_api import Browser, Locator, Page, ViewportSize, expect

from app.kit.words import COVERED, COVERED_CHART, PROJECTED
from app.rooms.lessons import words
from app.rooms.lessons.step import Truth
from tests.app.browsing import PATIENCE, box_of, idle
from tests.app.pages import lend
from tests.app.rail import SAYS, STAYS, STEPS, is_there, read, ready
from tests.app.test_lesson_own import look, say
from tests.app.test_lesson_replies import answers_in, on, wrong_answers
from tests.thorough import part

APP = "app/main.py"
COMPONENT = words.COMPONENT
WINDOW: ViewportSize = {"width": 1280, "height": 720}
PHONE: ViewportSize = {"width": 390, "height": 844}


@pytest.fixture(scope="module")
def page(browser: Browser) -> Iterator[Page]:
    with lend(browser, viewport=WINDOW, reduced_motion="reduce") as page:
        page.set_default_timeout(PATIENCE)
        yield page


def open_step(page: Page, address: str, step: str) -> Locator:
    lesson, at = step.split(".")
    page.goto(f"{address}/?view=lessons&lesson={lesson}&at={at}")
    ready(page, step)
    return page.locator(f'.lessons[data-ready=true][data-step="{step}"]')


CASES = [*((step, WINDOW) for step in part([*STAYS], 9)), *((step, PHONE) for step in part([*STAYS], 18, first=4))]


@pytest.mark.thorough(but=1)
@pytest.mark.parametrize(("step", "size"), CASES, ids=[f"{step} at {size['width']}" for step, size in CASES])
def test_a_step_covers_its_answer_and_leaves_what_one_reasons_with(
    page: Page, address: str, step: str, size: ViewportSize
) -> None:
    """In a window, and some on a phone; uncovered it says all, and covered again nothing of the answer."""
    page.set_viewport_size(size)
    truth = on(step, 0)
    assert isinstance(truth, Truth)
    rail = open_step(page, address, step)

    def is_covered() -> None:
        is_there(page, STAYS[step])
        idle(page)  # a picture is drawn a frame after its words are covered
        before = read(page)
        assert SAYS[step] not in before
        if truth.kind in ("drag", "choose"):
            assert not answers_in(truth, "", before)
        snapshot = page.locator(".st-key-lessons_view").aria_snapshot()
        assert COVERED in snapshot or COVERED_CHART in snapshot, "nothing says that it is covered"
        assert SAYS[step] not in snapshot

    is_covered()
    hint = STEPS[step].hint
    expect(rail.locator(".reply")).not_to_contain_text(hint)
    answer = next(one for one in wrong_answers(truth) if truth.kind != "point" or len(one) == 1)
    say(rail, truth, answer)
    look(rail)
    expect(rail.locator(".reply")).to_contain_text(hint)
    is_covered()
    rail.get_by_role("button", name=COMPONENT["show_me"]).click()
    is_there(page, SAYS[step])
    is_there(page, STAYS[step])
    expect(page.locator(".st-key-lessons_view .covered")).to_have_count(0)
    idle(page)
    assert COVERED not in read(page) and COVERED_CHART not in read(page)
    rail.get_by_role("button", name=COMPONENT["again"]).click()
    is_covered()


@pytest.mark.thorough(but=6)
@pytest.mark.parametrize("step", STAYS)
def test_a_hint_is_a_sentence_without_the_answer(step: str) -> None:
    truth, hint = on(step, 0), STEPS[step].hint
    assert isinstance(truth, Truth)
    assert 20 < len(hint) < 110 and hint[-1] in ".?"
    assert not answers_in(truth, "", hint)


@pytest.mark.parametrize("step", ["1.6", "1.7"])
@pytest.mark.thorough
def test_scores_stay_where_a_mask_is_asked_about(page: Page, address: str, step: str) -> None:
    """Those of every key of the row: the sum of the weights can be computed of them."""
    page.set_viewport_size(WINDOW)
    open_step(page, address, step)
    slots = page.locator(".st-key-lessons_view .row.pairs .slot .now")
    expect(slots.first).to_contain_text(re.compile(r"\d"))  # none before the run with the mask is there
    told = slots.all_inner_texts()
    scores = [float(text.replace("−", "-")) for text in told]
    assert len(scores) == 5
    if step == "1.7":
        parts = [exp(score) for score in scores]
        truth = on(step, 0)
        assert isinstance(truth, Truth)
        assert sum(parts[:2]) / sum(parts) == pytest.approx(truth.number, abs=0.01)


def test_a_pointer_on_a_covered_row_says_nothing_of_it(page: Page, address: str) -> None:
    page.set_viewport_size(WINDOW)
    rail = open_step(page, address, "1.7")
    room = page.locator(".st-key-lessons_view .masks")
    told = []
    for looked in (False, True):
        for row in (0.3, 0.9):
            found = box_of(room.locator(".map.after svg").first)
            page.mouse.move(5, 5)
            page.mouse.move(found["x"] + 0.3 * found["width"], found["y"] + found["height"] * (0.25 + 0.7 * row))
            expect(room.locator(".tip")).to_contain_text("weight")
            told.append(room.locator(".tip").inner_text().split("weight ")[1])
        if not looked:
            look(rail)
            is_there(page, SAYS["1.7"])
    assert told[0] == "?" and "%" in told[1] and "%" in told[2] and told[1] == told[3]


def test_a_projected_step_can_be_answered(page: Page, address: str) -> None:
    page.set_viewport_size(WINDOW)
    rail = open_step(page, address, "1.2")
    page.evaluate("headlight.settings.set('projector', 'true')")
    expect(page.get_by_role("button", name=PROJECTED["exit"], exact=True)).to_be_visible()
    for name in ("look", "ask_room"):
        expect(rail.get_by_role("button", name=COMPONENT[name], exact=True)).to_be_visible()


@pytest.mark.thorough
def test_a_cell_of_a_row_without_its_mask_is_an_answer_and_paints_nothing(page: Page, address: str) -> None:
    page.set_viewport_size(WINDOW)
    rail = open_step(page, address, "1.6")
    found = box_of(page.locator(".st-key-lessons_view .brush"))
    page.mouse.click(found["x"] + found["width"] * 0.1, found["y"] + found["height"] * 0.3)
    expect(rail).to_have_attribute("data-said", "0")
    page.mouse.click(found["x"] + found["width"] * 0.1, found["y"] + found["height"] * 0.5)  # of another row
    expect(rail).to_have_attribute("data-said", "0")
    page.locator(".st-key-lessons_view .brush").focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    expect(rail).to_have_attribute("data-said", "0,1")
    assert "forbid=" not in page.url or "forbid=&" in page.url
