"""Lessons that teachers wrote, in the room Lessons of a browser: the good file of a folder is there, the faulty one is not, and answers are told its sentences."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from app.rooms.lessons.written import folder
from tests.app.axe import faults
from tests.app.browsing import PATIENCE, serving
from tests.app.pages import lend
from tests.app.rail import is_there, rail, read, ready

GOOD = """---
lesson: Keys & <b>cabinets</b>
model: smollm2
---

# Is, or <i>are</i>?
text: The keys to the cabinet
show: next are is were was
A verb agrees with its subject, whatever key is near it.

? Which verb is likelier next?
check: next
- are
- is | You followed the noun next to it. {said} gets {p}.
> {best} has {p.best}, {second} {p.second}.

# Who looks back?
text: The keys to the cabinet
head: 26.0
at: cabinet

? Which word does cabinet look at most?
check: look
> {best} gets {p.best}.

# How many times?
text: The keys to the cabinet

? How many times as likely as is are?
check: number p.are / p.is
within: 5 %
- p.are * 100 | That is {p.are}, and no ratio.
> It is {best}.
"""
FAULTY = GOOD.replace("lesson: Keys & <b>cabinets</b>", "lesson: Never seen").replace("model:", "modle:")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = tmp_path_factory.mktemp("lessons")
    (found / "keys.md").write_text(GOOD, encoding="utf-8")
    (found / "faulty.md").write_text(FAULTY, encoding="utf-8")
    return found


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("log") / "log"


@pytest.fixture(scope="module")
def address(place: Path, log: Path) -> Iterator[str]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(folder.LESSONS, str(place))
        with serving("app/main.py", log) as address:
            yield address


@pytest.fixture(scope="module")
def page(browser: Browser) -> Iterator[Page]:
    with lend(browser, viewport={"width": 1280, "height": 720}, reduced_motion="reduce") as page:
        page.set_default_timeout(PATIENCE)
        yield page


def open_step(page: Page, address: str, lesson: str, at: int, room: str) -> Locator:
    page.goto(f"{address}/?view=lessons&lesson={lesson}&at={at}")
    ready(page, f"{lesson}.{at}", room)
    return rail(page)


def say(on: Locator, name: str) -> None:
    on.locator(".place").get_by_role("button", name=name, exact=True).click()
    on.get_by_role("button", name="Look", exact=True).click()


def replied(on: Locator, name: str) -> list[str]:
    """The lines that a first wrong answer gets."""
    say(on, name)
    expect(on).to_have_attribute("data-tries", "1")
    return on.locator(".reply > *").all_inner_texts()


def answered(on: Locator, name: str = "") -> list[str]:
    """The lines that an answer gets, which is right or the second one."""
    if name:
        say(on, name)
    expect(on).to_have_attribute("data-seen", "true")
    expect(on.locator(".answer p").first).to_be_visible()
    return on.locator(".answer > *").all_inner_texts()


def kept(page: Page) -> list[str]:
    return page.evaluate("[localStorage['headlight.lessons'], localStorage['headlight.lessons.written']]")


def all_lessons(page: Page) -> list[str]:
    rail(page).get_by_role("button", name="All lessons").click()
    return [re.sub(r" \d+ of \d+$", "", said) for said in rail(page).locator(".lessons-all h3").all_inner_texts()]


@pytest.mark.thorough
def test_the_good_file_and_the_examples_are_listed_and_the_faulty_one_is_told_the_operator_alone(
    page: Page, address: str, log: Path
) -> None:
    page.goto(f"{address}/?view=lessons&lesson=1&at=1")
    ready(page, "1.1")
    assert all_lessons(page)[6:] == ["7 Costs, counted", "Keys & <b>cabinets</b>", "Agreement", "She, or he?"]
    assert "Never seen" not in page.content() and "modle" not in page.content()
    assert rail(page).locator("b, i").count() == 0, "no text of a lesson is markup"
    line = 1 + FAULTY.splitlines().index("modle: smollm2")
    said = f"faulty.md is left out: line {line}: “modle” is no key of the head. Did you mean “model”?"
    assert log.read_text(encoding="utf-8").count(said) == 1
    rail(page).get_by_role("button", name="Who looks back?").click()
    ready(page, "file-keys.2", "explore")
    expect(rail(page).locator("h2")).to_have_text("Keys & <b>cabinets</b>")


@pytest.mark.thorough
def test_a_wrong_and_a_right_answer_are_told_what_the_file_says(page: Page, address: str) -> None:
    on = open_step(page, address, "file-keys", 1, "generate")
    assert "16 %" not in read(page), "the run is covered"
    assert on.locator(".text em").count() == 0, "a key in a teacher's text is no key of a head"
    told = ["It is not this one.", "You followed the noun next to it. is gets 0.5 %."]
    assert replied(on, "is") == [*told, "You have a second try."]
    assert "16 %" not in read(page) + on.inner_text(), "the run is covered until the second try"
    on.get_by_role("button", name="Look", exact=True).click()
    wrong = answered(on)
    assert on.locator(".reply > *").all_inner_texts() == told
    assert wrong[:2] == ["You chose: is.", "The answer is are."]
    assert wrong[2] == "are has 16 %, is 0.5 %. Also: were 2.7 %, was less than 0.1 %."
    assert wrong[3] == "Checked against this run: the word after “The keys to the cabinet”."
    is_there(page, "16 %")
    on.get_by_role("button", name="Cover it again").click()
    expect(on).to_have_attribute("data-said", "")
    right = answered(on, "are")
    assert right[:2] == ["You chose: are.", "Correct."]
    assert right[2] == wrong[2] and on.get_attribute("data-right") == "true"
    expect(on.locator(".reply")).to_be_hidden()


@pytest.mark.thorough
def test_the_row_of_a_step_is_covered_and_pointed_at(page: Page, address: str) -> None:
    on = open_step(page, address, "file-keys", 2, "explore")
    assert "query=4" in page.url and "layer=26" in page.url
    assert "73" not in read(page)
    assert replied(on, "cabinet")[1] == "cabinet gets 5.6 % here. Layer 29, head 1 looks there most: 85 %."
    assert answered(on, "keys")[:3] == [
        "You chose keys: 73.3 %, rank 1 of 5.",
        "That is where it looks most.",
        "keys gets 73 %.",
    ]
    is_there(page, "73")


@pytest.mark.thorough
def test_a_number_has_the_reply_to_its_mistake(page: Page, address: str) -> None:
    on = open_step(page, address, "file-keys", 3, "generate")
    number = on.locator(".typed input")
    number.fill("16")
    on.get_by_role("button", name="Look", exact=True).click()
    expect(on.locator(".reply > *")).to_have_text(["Too low.", "That is 16 %, and no ratio.", "You have a second try."])
    number.fill("30")
    on.get_by_role("button", name="Look", exact=True).click()
    assert "It is 30.25." in answered(on) and on.get_attribute("data-right") == "true"
    assert json.loads(kept(page)[1])["file-keys.3"] == "second"
    expect(on.get_by_role("button", name="The next step")).to_be_disabled()  # it leads into no other lesson


@pytest.mark.thorough
def test_a_link_says_what_was_answered(page: Page, address: str) -> None:
    page.goto(f"{address}/?view=lessons&lesson=file-keys&at=1&said=1&seen=1")
    ready(page, "file-keys.1", "generate")
    expect(rail(page).locator(".reply p")).to_have_text("You followed the noun next to it. is gets 0.5 %.")
    expect(rail(page).locator(".answer p").nth(1)).to_have_text("The answer is are.")


@pytest.mark.thorough
def test_a_link_to_a_lesson_that_is_gone_says_so(page: Page, address: str) -> None:
    page.goto(f"{address}/?view=lessons&lesson=faulty&at=1")
    ready(page, "1.1")
    expect(page.get_by_text("step “faulty, 1” of the lessons, which does not exist: 1.1 is shown")).to_be_visible()


@pytest.mark.thorough
def test_progress_is_kept_apart_from_the_course(page: Page, address: str) -> None:
    page.goto(f"{address}/?view=lessons&lesson=1&at=1&done=3")
    ready(page, "1.1")
    page.evaluate("localStorage.removeItem('headlight.lessons.written')")
    on = open_step(page, address, "example-agreement", 3, "generate")
    answered(on, "is")
    ours, theirs = kept(page)
    assert ours == "3" and json.loads(theirs) == {"example-agreement.3": "known"}
    expect(on.locator(".sum > span")).to_have_text("Known: 1 of 3; at the second try: 0; shown: 0.")
    expect(on.get_by_role("button", name="Recap")).to_have_count(0)
    expect(on.locator(".open").get_by_role("button", name="All lessons", exact=True)).to_be_visible()
    assert on.locator("li.done .title").evaluate_all("all => all.map((one) => one.dataset.step)") == [
        "example-agreement.3"
    ]
    for broken in ("nonsense", '{"a": 1}', "[1, null]", "null"):
        page.evaluate("(text) => localStorage.setItem('headlight.lessons.written', text)", broken)
        page.goto(f"{address}/?view=lessons&lesson=example-agreement&at=1")
        ready(page, "example-agreement.1", "generate")
        expect(rail(page).locator("li.done")).to_have_count(0)


@pytest.mark.thorough
def test_the_second_example_ends_with_the_list_of_lessons(page: Page, address: str) -> None:
    page.evaluate("localStorage.clear()")
    on = open_step(page, address, "example-pronouns", 1, "generate")
    answered(on, "he")
    on.get_by_role("button", name="Next", exact=True).click()
    ready(page, "example-pronouns.2", "explore")
    say(on, "nurse")
    on.get_by_role("button", name="Show me", exact=True).click()
    answered(on)
    assert json.loads(kept(page)[1]) == {"example-pronouns.1": "known", "example-pronouns.2": ""}
    expect(on.locator(".sum > span")).to_have_text("Known: 1 of 2; at the second try: 0; shown: 1.")
    expect(on.locator(".sum button")).to_be_hidden()
    with page.expect_download() as saved:
        on.get_by_role("button", name="Save the lesson", exact=True).click()
    page_of = Path(saved.value.path()).read_text(encoding="utf-8")
    assert "It is not this one. nurse gets more in 98 of 270; it is the farther one." in page_of
    on.locator(".open").get_by_role("button", name="All lessons", exact=True).click()
    expect(on.locator(".lessons-all")).to_be_visible()


@pytest.mark.thorough
def test_an_own_sentence_of_the_visitor_does_not_go_along(page: Page, address: str) -> None:
    open_step(page, address, "example-agreement", 1, "generate")
    box = page.get_by_label("Sentence", exact=True)
    box.fill("The cats on the mat")
    box.press("Enter")
    expect(rail(page)).to_contain_text("This step asks about the teacher’s own text.")
    rail(page).get_by_role("button", name="Take the example").click()
    ready(page, "example-agreement.1", "generate")
    expect(box).to_have_value("The keys to the cabinet")
    expect(rail(page).locator(".place")).to_be_visible()


@pytest.mark.thorough
def test_a_file_that_is_mended_is_listed(page: Page, address: str, place: Path) -> None:
    (place / "faulty.md").write_text(FAULTY.replace("modle:", "model:"), encoding="utf-8")
    page.goto(f"{address}/?view=lessons&lesson=file-faulty&at=1")
    ready(page, "file-faulty.1", "generate")
    expect(rail(page).locator("h2")).to_have_text("Never seen")
    (place / "faulty.md").unlink()
    page.goto(f"{address}/?view=lessons&lesson=file-keys&at=1")
    ready(page, "file-keys.1", "generate")
    assert "Never seen" not in all_lessons(page)


@pytest.mark.thorough
def test_a_written_step_has_no_fault_of_access(page: Page, address: str) -> None:
    open_step(page, address, "file-keys", 1, "generate")
    assert faults(page, ".st-key-lessons_rail_box") == []
    assert rail(page).locator(".question").get_attribute("lang") == "en"
    page.goto(f"{address}/?view=lessons&lesson=1&at=1")
    ready(page, "1.1")
    assert rail(page).locator(".question").get_attribute("lang") is None
