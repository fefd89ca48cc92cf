"""Lessons in a browser: steps open as links do, what is asked is covered until somebody looks, and keys alone lead through all of them.

Of the steps about a training test_train.py says the same.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from app.rooms.lessons import opening
from app.rooms.lessons.words import COMPONENT
from app.session import room as session_room
from app.shell import registry
from app.transport import modules
from tests.app.axe import faults
from tests.app.browsing import Screen, digit
from tests.app.rail import HERE, SAYS, is_there, rail, read, ready
from tests.thorough import how_many

APP = "app/main.py"
STEPS = opening.steps()
FIRST, LAST = next(iter(STEPS)), list(STEPS)[-1]


# which step an address asks for


@pytest.mark.parametrize(
    ("address", "step", "fresh"),
    [
        ({"lesson": "1", "at": "2"}, "1.2", True),
        ({"lesson": "1.2"}, "1.2", True),
        ({"lesson": "1.2", "seen": "0", "at": "softmax"}, "1.2", False),
        ({"lesson": "2"}, "2.1", True),
        ({}, "", True),
        ({"lesson": "1.2", "recap": "1", "seen": "0", "at": "softmax"}, "1.2r", False),
        ({"lesson": "1.2", "recap": "1"}, "1.2r", True),
        ({"lesson": "1", "at": "4", "recap": "1", "seen": "0"}, "1.4r", True),
        ({"lesson": "2", "recap": "1"}, "2.1r", True),
        ({"lesson": "1.5", "recap": "1", "seen": "0"}, "1.5", False),  # which can be asked only once
        ({"lesson": "1.2", "recap": "2", "seen": "0"}, "1.2", False),
    ],
)
def test_an_address_names_a_step(address: dict[str, str], step: str, fresh: bool):
    asked = opening.read(address)
    assert (asked.step, asked.fresh, asked.note) == (step, fresh, "")


@pytest.mark.parametrize("address", [{"lesson": "9", "at": "1"}, {"lesson": "1", "at": "99"}, {"lesson": "<b>"}])
def test_a_step_that_there_is_not_gives_way_to_the_first_and_says_so(address: dict[str, str]):
    asked = opening.read(address)
    assert asked.step == FIRST and asked.fresh and FIRST in asked.note


def test_a_sentence_of_the_visitor_stays_with_its_model_and_ours_do_not():
    before = opening.own_texts({}, "minilm", "My own words.", ["Ours."])
    assert before == {"minilm": "My own words."}
    assert opening.own_texts(before, "storyteller", "Ours.", ["Ours."]) == before
    assert opening.own_texts(before, "minilm", "Ours.", ["Ours."]) == {}


def test_every_step_opens_a_room_that_there_is():
    assert len(STEPS) == 52
    assert {step.room for step in STEPS.values()} == {*HERE} <= set(registry.ROOMS)


def test_every_covered_step_and_every_kind_of_answer_is_read_before_look():
    assert set(SAYS) == {name for name, step in STEPS.items() if step.room in HERE and step.cover}
    assert {STEPS[name].kind for name in SAYS} == {step.kind for step in STEPS.values()}


@pytest.mark.parametrize("name", STEPS)
def test_a_link_opens_each_step(name: str):
    lesson, at = name.split(".")
    for address in ({"lesson": name}, {"lesson": lesson, "at": at}):
        asked = opening.read(address)
        assert (asked.step, asked.fresh, asked.note) == (name, True, "")


def test_a_room_inside_of_another_is_not_left(monkeypatch: pytest.MonkeyPatch):
    session = {session_room.STATE: session_room.Shown("lessons", "lessons")}
    monkeypatch.setattr(session_room.st, "session_state", session)
    monkeypatch.setattr(session_room.st, "query_params", {"view": "lessons"})
    assert session_room.is_left("memory")
    session_room.hold("memory")
    assert not session_room.is_left("memory") and session_room.is_left("compute")


# in a browser


@pytest.fixture(scope="module")
def visit(browser: Browser, address: str) -> Iterator[Screen]:
    context = browser.new_context(viewport={"width": 1280, "height": 720}, reduced_motion="reduce")
    screen = Screen(context.new_page(), address)
    yield screen
    screen.leave()
    context.close()


def open_step(screen: Screen, step: str) -> Page:
    lesson, at = step.split(".")
    screen.page.evaluate("location.protocol === 'about:' || localStorage.clear()")
    screen.page.goto(f"{screen.address}/?view=lessons&lesson={lesson}&at={at}")
    ready(screen.page, step)
    return screen.page


def view(page: Page) -> Locator:
    return page.locator(".st-key-lessons_view .hl[data-painted]").first


def test_what_is_asked_is_covered_until_somebody_looks(visit: Screen):
    page = open_step(visit, "1.2")
    covered = page.locator(".st-key-lessons_view .facts > .covered")
    expect(covered).to_be_visible()
    before = page.locator(".st-key-lessons_view").inner_text() + view(page).inner_text()
    assert "67.7" not in before and "68 %" not in before and view(page).get_attribute("data-value") == ""
    assert "67.7" not in page.locator("body").aria_snapshot()
    rail(page).get_by_role("button", name="street", exact=True).click()
    page.wait_for_url("**said=8**")
    rail(page).get_by_role("button", name="Look", exact=True).click()
    expect(rail(page).locator(".reply")).to_contain_text("“street” gets 5.0 % here, rank 4 of 16.")  # and no more
    expect(covered).to_be_visible()
    expect(rail(page)).to_have_attribute("data-seen", "false")
    assert "67.7" not in page.locator("body").aria_snapshot()
    rail(page).get_by_role("button", name="Look", exact=True).click()
    expect(covered).to_have_count(0)
    expect(rail(page).locator(".reply")).to_contain_text(
        "“street” gets 5.0 % here"
    )  # the mistake again, beside the answer
    expect(view(page).locator(".big")).to_contain_text("68 %")
    expect(rail(page).locator(".answer")).to_contain_text("You chose street: 5.0 %, rank 4 of 16.")
    expect(rail(page).locator(".answer")).to_contain_text("animal")
    expect(rail(page)).to_have_attribute("data-right", "false")
    page.wait_for_url("**seen=1**")


def test_back_takes_a_look_back_and_a_link_shows_the_answer(visit: Screen):
    page = open_step(visit, "1.2")
    rail(page).get_by_role("button", name="animal", exact=True).click()
    rail(page).get_by_role("button", name="Look", exact=True).click()
    expect(rail(page)).to_have_attribute("data-right", "true")
    page.wait_for_url("**seen=1**")
    link = page.url
    page.go_back()
    expect(rail(page)).to_have_attribute("data-seen", "false")
    expect(page.locator(".st-key-lessons_view .facts > .covered")).to_be_visible()
    page.goto(link)
    ready(page, "1.2")
    expect(rail(page).locator(".answer")).to_contain_text("That is where it looks most.")


@pytest.mark.thorough
def test_a_cell_of_the_covered_row_is_an_answer(visit: Screen):
    page = open_step(visit, "1.2")
    strip = page.locator(".st-key-lessons_view .strip [data-i='8']")
    strip.click()
    expect(rail(page)).to_have_attribute("data-said", "8")
    page.evaluate("new Promise(requestAnimationFrame).then(() => true)")  # in which another row would be drawn
    expect(view(page)).to_have_attribute("data-locked", "10")  # the row that is asked about stays


@pytest.mark.parametrize(
    ("step", "token", "said"), [("4.6", ".step .tok[data-i='2']", "2"), ("5.6", ".strip.own span >> nth=1", "1")]
)
@pytest.mark.thorough
def test_a_token_above_what_is_covered_is_an_answer(visit: Screen, step: str, token: str, said: str):
    """Where a picture has nothing that can be pointed at, the step does not say so."""
    page = open_step(visit, step)
    expect(rail(page).locator(".asks .hint")).to_contain_text("Point in the picture")
    page.locator(f".st-key-lessons_view {token}").click()
    expect(rail(page)).to_have_attribute("data-said", said)
    open_step(visit, "1.8")
    expect(rail(page).locator(".asks .hint")).not_to_contain_text("in the picture")


@pytest.mark.thorough
def test_beside_a_lesson_nothing_lies_over_the_maps_of_masks(visit: Screen):
    page = open_step(visit, "1.6")
    rail(page).get_by_role("button", name="Look", exact=True).click()
    boxes = [page.locator(f".masks .board {part}").bounding_box() for part in (".map.before svg", "aside")]
    assert boxes[0] and boxes[1]
    assert boxes[0]["y"] + boxes[0]["height"] <= boxes[1]["y"]
    assert boxes[0]["x"] + boxes[0]["width"] <= 1280


@pytest.mark.thorough
def test_on_a_small_laptop_no_control_beside_a_lesson_is_cut(visit: Screen):
    page = visit.page
    page.set_viewport_size({"width": 1024, "height": 768})
    try:
        open_step(visit, "3.8")
        fields = page.locator(".st-key-planning input[role=combobox]")
        assert fields.count() > 3
        cut = fields.evaluate_all(
            "all => all.filter((one) => one.scrollWidth > one.clientWidth + 1).map((one) => one.value)"
        )
        assert cut == []
    finally:
        page.set_viewport_size({"width": 1280, "height": 720})


@pytest.mark.thorough
def test_back_to_the_step_leads_to_its_address_and_the_next_answer_is_in_it(visit: Screen):
    page = open_step(visit, "1.2")
    page.goto(page.url.replace("query=10", "query=8"))
    ready(page, "1.2")
    rail(page).get_by_role("button", name="Back to the step").click()
    page.wait_for_url("**query=10**")
    ready(page, "1.2")
    rail(page).get_by_role("button", name="street", exact=True).click()
    page.wait_for_url("**said=8**")
    assert "query=10" in page.url and rail(page).get_attribute("data-said") == "8"


@pytest.mark.thorough
def test_a_rail_that_starts_after_what_is_true_was_told_hears_it(visit: Screen):
    """Streamlit starts the components of a page in any order: here a second rail comes when all the rest is there."""
    page = open_step(visit, "1.2")
    late = page.evaluate(
        """async (addresses) => {
          const root = document.body.appendChild(document.createElement("div"));
          root.attachShadow({ mode: "open" }).innerHTML = '<div class="hl lessons"></div>';
          const place = root.shadowRoot.querySelector(".hl");
          const states = new Proxy({}, { get: () => ({}) });
          const data = { step: "1.2", fresh: false, rooms: {}, models: {}, states, own: {}, written: {} };
          const [{ default: Rail }, { mount, unmount }] = await Promise.all(addresses.map((address) => import(address)));
          mount(place, Rail, data);
          const { ready } = place.dataset;
          root.remove();
          unmount(place);
          return ready;
        }""",
        [
            f"{visit.address}/headlight/m/{modules.address(name)}"
            for name in ("rooms/lessons/browser/lessons.js", "kit/browser/mount.js")
        ],
    )
    assert late == "true"


@pytest.mark.thorough
def test_progress_is_kept_by_the_browser_and_goes_along_in_a_copied_link(visit: Screen):
    page = open_step(visit, "1.2")
    expect(page.locator(".bar nav .steps")).to_have_text("")
    page.keyboard.press("PageDown")
    expect(page.locator(".bar nav .steps")).to_have_text(f"1 of {len(STEPS)}")
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    rail(page).get_by_role("button", name="Copy link").click()
    expect(rail(page)).to_have_attribute("data-link", re.compile(r"lesson=1\.2&.*done=2"))
    page.evaluate("localStorage.clear()")
    page.goto(f"{visit.address}/?view=lessons&lesson=1&at=1&done=3")
    ready(page, "1.1")
    expect(page.locator(".bar nav .steps")).to_have_text(f"2 of {len(STEPS)}")


@pytest.mark.thorough
def test_a_link_to_no_step_says_so(visit: Screen):
    visit.page.goto(f"{visit.address}/?view=Lessons&lesson=9&at=1")
    ready(visit.page, FIRST)
    expect(visit.page.get_by_text("does not exist: 1.1 is shown")).to_be_visible()


@pytest.mark.thorough
def test_a_step_has_no_fault_of_access(visit: Screen):
    page = open_step(visit, "1.2")
    assert faults(page, ".st-key-lessons_rail_box") == []


@pytest.mark.thorough
def test_keys_alone_lead_through_all_steps(visit: Screen):
    """From the bar's key on, the first third, with THOROUGH=1 all: each step is answered with arrows and Enter, looked at with Enter, and left with Enter.

    Its room takes all that it opens with, and what it asks for is nowhere to read before Look, and then it is.
    """
    page = visit.page
    page.goto(f"{visit.address}/?view=memory")
    page.locator(".planner[data-painted]").wait_for()
    expect(page.locator("nav [data-room=memory]")).to_have_attribute("aria-current", "page")  # the bar hears keys
    page.evaluate("localStorage.clear()")
    page.keyboard.press(digit("lessons"))
    ready(page, "1.2")
    page.keyboard.press("PageUp")
    ready(page, FIRST)
    look, on = rail(page).get_by_role("button", name="Look", exact=True), rail(page).locator(".acts .go:visible").last
    look.focus()
    steps = list(STEPS)[: how_many(len(STEPS), share=3)]
    for step in steps:
        ready(page, step)
        if says := SAYS.get(step):
            assert "This link" not in page.locator(".st-key-lessons_view").inner_text(), f"{step}: asked in vain"
            assert says not in read(page), step
            expect(look).to_be_visible()
        if look.is_visible():
            for _ in range(4):  # what is said, where the focus is on an answer; and Look; both again where it was wrong
                if rail(page).get_attribute("data-seen") == "false":
                    page.keyboard.press("Enter")
            expect(rail(page)).to_have_attribute("data-seen", "true")
            expect(rail(page).locator(".answer p").first).not_to_be_empty()
        if says:
            is_there(page, says)
        expect(on).to_be_focused()
        if step != steps[-1]:
            if step.split(".")[0] != steps[steps.index(step) + 1].split(".")[0]:
                expect(on).to_have_text(COMPONENT["recap"])
                page.keyboard.press("Tab")  # over the recap, to the next lesson
            page.keyboard.press("Enter")
    passed = page.evaluate("localStorage.getItem('headlight.lessons')")
    assert bin(int(passed.split(".")[0], 16)).count("1") == len(steps)


@pytest.mark.thorough
def test_a_clicker_leads_through_all_steps_in_front_of_a_class(visit: Screen):
    """The last third, with THOROUGH=1 all: with two keys alone, and nothing of what a step asks is to be read before the first of them is pressed on it: neither what its
    room says then nor the answer, unless that is a word of the sentence."""
    page = visit.page
    page.set_viewport_size({"width": 1024, "height": 768})
    try:
        steps = list(STEPS)[-how_many(len(STEPS), share=3) :]
        open_step(visit, steps[0])
        rail(page).get_by_role("button", name="Present").click()
        expect(rail(page)).to_have_attribute("data-projector", "true")
        for step in steps:
            ready(page, step)
            before = read(page)
            if step in SAYS:
                assert SAYS[step] not in before, step
            if rail(page).get_by_role("button", name="Look", exact=True).is_visible():
                page.keyboard.press("PageDown")
                expect(rail(page)).to_have_attribute("data-seen", "true")
                answer = (
                    rail(page).locator(".answer p").first.inner_text().removeprefix("The answer: ").removesuffix(".")
                )
                assert answer and (answer not in before or answer in STEPS[step].sentence), step
            if step != LAST:
                page.keyboard.press("PageDown")
        page.keyboard.press("PageUp")
        ready(page, list(STEPS)[-2])
        assert rail(page).get_attribute("data-seen") == "true"
        page.keyboard.press("b")
        expect(page.locator("html")).to_have_attribute("data-blank", "true")
        page.keyboard.press("b")
        page.keyboard.press("Escape")
    finally:
        page.set_viewport_size({"width": 1280, "height": 720})


@pytest.mark.thorough
def test_a_finished_lesson_is_a_page_that_asks_nobody_for_anything(visit: Screen):
    page = open_step(visit, "1.2")
    expect(rail(page).get_by_role("button", name="Save the lesson")).to_be_hidden()
    page.goto(f"{visit.address}/?view=lessons&lesson=1&at=2&said=8&seen=1&done=ff")
    ready(page, "1.2")
    expect(rail(page).locator(".answer")).to_contain_text("rank 4 of 16")
    with page.expect_download() as saved:  # it waits for the picture
        rail(page).get_by_role("button", name="Save the lesson").click()
    text = Path(saved.value.path()).read_text(encoding="utf-8")
    assert saved.value.suggested_filename == "headlight-1-attention.html"
    assert "You chose street: 5.0 %, rank 4 of 16." in text and text.count("<h2>") == 8
    assert 'src="data:image/png;base64,' in text
    assert not re.findall(r'(?:src|href)="(?!data:)', text) and "<script" not in text
