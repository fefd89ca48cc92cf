"""Answers of every kind in a browser: right, wrong and tied words on the screen, a shape that is dragged, an example that is taken, a link that cannot be read."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from app.rooms.lessons import words
from tests.app.browsing import PATIENCE, box_of, eventually
from tests.app.pages import lend
from tests.app.rail import STEPS, ready
from tests.thorough import part

APP = "app/main.py"
SAID, COMPONENT = words.ANSWER, words.COMPONENT


@pytest.fixture(scope="module")
def page(browser: Browser) -> Iterator[Page]:
    with lend(browser, viewport={"width": 1280, "height": 720}, reduced_motion="reduce") as page:
        page.set_default_timeout(PATIENCE)
        yield page


def open_step(page: Page, address: str, step: str, more: str = "") -> Locator:
    """The rail, once a step is open, its room is drawn and what is true of it is there."""
    lesson, at = step.split(".")
    page.goto(f"{address}/?view=lessons&lesson={lesson}&at={at}{more}")
    ready(page, step)
    return page.locator(f'.lessons[data-ready=true][data-step="{step}"]')


def look(rail: Locator) -> Locator:
    """The words of the answer."""
    rail.get_by_role("button", name=COMPONENT["look"], exact=True).click()
    return rail.locator(".answer p")


def cover_again(rail: Locator) -> None:
    rail.get_by_role("button", name=COMPONENT["again"]).click()
    expect(rail).to_have_attribute("data-said", "")


def press(*names: str) -> Callable[[Locator], None]:
    def say(rail: Locator) -> None:
        for name in names:
            rail.locator(".place").get_by_role("button", name=name, exact=True).click()

    return say


def typed(number: float) -> Callable[[Locator], None]:
    return lambda rail: rail.locator(".place").get_by_role("textbox").fill(str(number))


# Of each kind: a step, a right and a wrong answer, and the first two lines of the words that each gets.
ANSWERS: dict[str, tuple[str, Callable[[Locator], None], tuple[str, str], Callable[[Locator], None], tuple[str, str]]] = {
    "point": (
        "1.2",
        press("animal"),
        ("You chose animal: 67.7 %, rank 1 of 16.", SAID["row_right"]),
        press("street"),
        ("You chose street: 5.0 %, rank 4 of 16.", "This head gives most to animal: 67.7 %."),
    ),
    "point at all": (
        "1.6",
        press("<s>", "Once"),
        ("You found all 2, and nothing else.", "They are: <s> and Once."),
        press("<s>", "upon"),
        ("You found 1 of 2, and pointed at 1 that do not belong there.", "They are: <s> and Once."),
    ),
    "drag": (
        "3.5",
        typed(12.6),
        ("You chose 12.600 MiB.", "It is 12.500 MiB."),
        typed(3),
        ("You chose 3.000 MiB: 9.500 MiB too low.", "It is 12.500 MiB."),
    ),
    "shape": (
        "1.5",
        press("4", "3", "2"),
        ("You chose [4, 3, 2].", SAID["plain_right"]),
        press("2", "4", "3"),
        ("You chose [2, 4, 3].", "It is [4, 3, 2]."),
    ),
    "choose": (
        "2.4",
        press("It is refused, and the text is kept"),
        ("You chose: It is refused, and the text is kept.", SAID["chosen_right"]),
        lambda rail: rail.locator(".options button").filter(has_not_text="It is refused").first.click(),
        ("You chose: ", "The answer is It is refused, and the text is kept."),
    ),
}  # fmt: skip


@pytest.mark.thorough(but=1)
@pytest.mark.parametrize("kind", part([*ANSWERS], share=4))
def test_a_right_and_a_wrong_answer_get_their_words(page: Page, address: str, kind: str) -> None:
    step, right, said_right, wrong, said_wrong = ANSWERS[kind]
    rail = open_step(page, address, step)
    for answer, (first, second), is_right in ((right, said_right, "true"), (wrong, said_wrong, "false")):
        answer(rail)
        lines = look(rail)
        if is_right == "false":  # the first try is told its mistake, and nothing else
            expect(rail.locator(".reply b")).not_to_be_empty()
            expect(rail).to_have_attribute("data-seen", "false")
            lines = look(rail)
        expect(lines.nth(0)).to_contain_text(first)
        expect(lines.nth(1)).to_have_text(second)
        expect(rail).to_have_attribute("data-right", is_right)
        expect(rail.locator(".answer small")).to_contain_text("hecked against")
        cover_again(rail)


def test_a_second_try_that_is_right_counts_as_one_and_what_is_shown_counts_as_shown(page: Page, address: str) -> None:
    rail = open_step(page, address, "1.5")
    page.evaluate("localStorage.clear()")
    press("2", "4", "3")(rail)
    look(rail)
    expect(rail.locator(".reply b")).to_have_text("Each sentence by itself.")
    for _ in range(3):
        rail.locator(".slots .slot").first.click()
    press("4", "3", "2")(rail)
    expect(look(rail).nth(1)).to_have_text(SAID["plain_right"])
    expect(rail.locator(".sum span")).to_have_text("Known: 0 of 8; at the second try: 1; shown: 0.")
    rail = open_step(page, address, "1.2")
    press("street")(rail)
    look(rail)
    rail.get_by_role("button", name=COMPONENT["show_me"]).click()
    expect(rail.locator(".answer p").nth(1)).to_have_text("This head gives most to animal: 67.7 %.")
    expect(rail.locator(".sum span")).to_have_text("Known: 0 of 8; at the second try: 1; shown: 1.")
    page.evaluate("localStorage.clear()")


@pytest.mark.thorough
def test_what_ties_is_right_whichever_was_pointed_at(page: Page, address: str) -> None:
    """At a temperature of a million every key gets the same: all of them tie."""
    rail = open_step(page, address, "1.2", "&with=temperature_1000000")
    for name in ("street", "[SEP]"):
        press(name)(rail)
        lines = look(rail)
        expect(lines.nth(0)).to_have_text(re.compile(rf"You chose {re.escape(name)}: 6\.[23] %, rank 1 of 16\."))
        expect(lines.nth(1)).to_contain_text("are within 1 % of each other: each of them is right.")
        expect(rail).to_have_attribute("data-right", "true")
        cover_again(rail)


@pytest.mark.thorough
def test_who_looks_without_a_word_is_told_the_answer(page: Page, address: str) -> None:
    rail = open_step(page, address, "1.5")
    expect(look(rail).nth(0)).to_have_text("The answer: [4, 3, 2].")
    expect(rail).to_have_attribute("data-right", "false")
    cover_again(rail)


@pytest.mark.thorough
def test_a_shape_is_dragged_into_its_slots(page: Page, address: str) -> None:
    rail = open_step(page, address, "1.5")
    tiles, slots = rail.locator(".tiles button"), rail.locator(".slots .slot")
    for i, size in enumerate(("2", "3", "2")):
        tiles.get_by_text(size, exact=True).drag_to(slots.nth(i))
        expect(slots.nth(i)).to_have_text(size)
    tiles.get_by_text("4", exact=True).drag_to(slots.nth(0))  # over one that is there
    expect(slots.nth(0)).to_have_text("4")
    expect(rail).to_have_attribute("data-said", "4,3,2")
    slots.nth(2).click()  # takes it out
    expect(rail).to_have_attribute("data-said", "4,3")
    tiles.get_by_text("2", exact=True).drag_to(slots.nth(2))
    look(rail)
    expect(rail).to_have_attribute("data-right", "true")
    cover_again(rail)


@pytest.mark.thorough
def test_what_is_covered_before_it_is_drawn_gets_the_size_of_what_is_drawn(page: Page, address: str) -> None:
    """So that nothing below it moves when somebody looks."""
    rail = open_step(page, address, "1.6")
    stage = page.locator(".st-key-lessons_view .map.after")
    under = stage.locator("> .covered")

    def is_no_strip() -> None:
        assert box_of(under)["height"] > 150

    eventually(page, is_no_strip)
    height = box_of(stage)["height"]
    look(rail)
    expect(under).to_have_count(0)

    def has_its_height() -> None:
        assert box_of(stage)["height"] == pytest.approx(height, abs=1)

    eventually(page, has_its_height)
    cover_again(rail)


@pytest.mark.thorough
def test_a_text_that_cannot_answer_gives_way_to_the_example(page: Page, address: str) -> None:
    rail = open_step(page, address, "2.1", "&text=Hi")
    expect(rail.locator(".question")).to_have_text(words.FEW_WORDS)
    expect(rail.get_by_role("button", name=COMPONENT["look"], exact=True)).to_be_hidden()
    rail.get_by_role("button", name=COMPONENT["take_example"]).click()
    expect(rail.locator(".question")).not_to_have_text(words.FEW_WORDS)
    expect(rail.locator(".options button").first).to_be_visible()
    expect(page.get_by_role("textbox", name="Sentence", exact=True)).not_to_have_value("Hi")


@pytest.mark.thorough
def test_progress_that_cannot_be_read_is_said_and_nobody_s_own_is_lost(page: Page, address: str) -> None:
    rail = open_step(page, address, "1.5")
    page.evaluate("localStorage.clear()")
    look(rail)
    expect(page.locator(".bar nav .steps")).to_have_text(f"1 of {len(STEPS)}")
    for unreadable in ("zz", "-1", "f" * 17, "%3Cb%3E"):
        rail = open_step(page, address, "1.5", f"&done={unreadable}")
        expect(rail.locator(".note")).to_have_text(COMPONENT["done_unknown"])
        expect(page.locator(".bar nav .steps")).to_have_text(f"1 of {len(STEPS)}")
    rail = open_step(page, address, "1.5", "&done=ffffffffffffffff")  # more steps than there are
    expect(rail.locator(".note")).to_be_hidden()
    expect(page.locator(".bar nav .steps")).to_have_text(f"{len(STEPS)} of {len(STEPS)}")
    page.evaluate("localStorage.clear()")


@pytest.mark.thorough
def test_what_is_no_number_stays_in_the_box_with_a_sentence(page: Page, address: str) -> None:
    rail = open_step(page, address, "3.5")
    box = rail.locator(".place").get_by_role("textbox")
    box.fill("twelve <b>")
    box.press("Enter")
    expect(rail.locator(".fault")).to_have_text(COMPONENT["no_number"].format(typed="twelve <b>"))
    expect(rail).to_have_attribute("data-said", "")
    expect(box).to_have_value("twelve <b>")
    box.fill("12,5 MiB")
    expect(rail.locator(".fault")).to_be_hidden()
    box.press("Enter")
    expect(rail).to_have_attribute("data-said", "12.5")
    expect(look(rail).nth(1)).to_have_text("It is 12.500 MiB.")


@pytest.mark.parametrize("size", [(1280, 720), (390, 844)], ids=["laptop", "phone"])
@pytest.mark.parametrize("step", part([*STEPS], share=8, first=1))
@pytest.mark.thorough
def test_a_question_and_its_first_answer_stand_on_the_first_screen(
    page: Page, address: str, step: str, size: tuple[int, int]
) -> None:
    page.set_viewport_size({"width": size[0], "height": size[1]})
    rail = open_step(page, address, step)
    look_button = rail.get_by_role("button", name=COMPONENT["look"], exact=True)
    for seen in (rail.locator(".question"), rail.locator(".place > *").first, look_button):
        box = seen.bounding_box()
        assert box and box["y"] >= 0 and box["y"] + box["height"] <= size[1], (step, seen)
    if size[0] < 720:  # there the picture begins below the question
        room, asks = page.locator(".st-key-lessons_view").bounding_box(), rail.locator(".asks").bounding_box()
        assert room and asks and asks["y"] < room["y"] < size[1]
