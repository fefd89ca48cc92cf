"""The bar: every room is a link, in any window; a choice is never lost, Back finds the room before, and nothing loads the page anew."""

from __future__ import annotations

import re
from collections.abc import Iterator
from types import SimpleNamespace
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from app.attention import words
from app.session import room
from app.shell import bar, registry
from tests.app import axe
from tests.app.browsing import Screen, box_of, digit, go_to, idle
from tests.app.pages import lend

APP = "app/main.py"
ROOMS = ("explore", "shapes", "memory")
REDIRECTS = {"Explore": "explore", "Memory": "memory"}
# Clicks in the bar, one behind the other in one task of the browser
CHOOSE = "rooms => rooms.forEach(room => document.querySelectorAll('*').forEach(node => node.shadowRoot?.querySelector(`nav a[data-room=${room}]`)?.click()))"
WIDE, NARROW, PHONE = (1280, 720), (768, 900), (390, 844)


# which room is on the screen


class Visit:
    """The messages of one visitor, each a run of the script with the address that the browser had by then."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.query: dict[str, str] = {}
        monkeypatch.setattr(room, "st", SimpleNamespace(session_state={}, query_params=self.query))
        monkeypatch.setattr(room.history, "write", self.query.update)

    def message(self, address: str | None = None) -> str:
        self.query.clear()
        if address is not None:
            self.query["view"] = address
        shown, self.unknown = room.follow(ROOMS, REDIRECTS)
        return shown

    @property
    def address(self) -> str | None:
        return self.query.get("view")


@pytest.fixture
def visit(monkeypatch: pytest.MonkeyPatch) -> Visit:
    return Visit(monkeypatch)


@pytest.mark.parametrize(
    ("asked", "shown", "address"),
    [
        (None, "explore", "explore"),
        ("memory", "memory", "memory"),
        ("Memory", "memory", "memory"),
        ("Explore", "explore", "explore"),
    ],
)
def test_a_visit_begins_where_its_link_says(visit: Visit, asked: str | None, shown: str, address: str | None):
    assert (visit.message(asked), visit.address, visit.unknown) == (shown, address, "")


def test_a_room_that_there_is_not_is_named_and_leaves_the_address(visit: Visit):
    assert (visit.message("Nowhere"), visit.address, visit.unknown) == ("explore", "explore", "Nowhere")
    assert (visit.message(visit.address), visit.unknown) == ("explore", "")


def test_a_fragment_knows_that_its_room_was_left(visit: Visit):
    assert not room.is_left("memory")  # drawn without a bar
    visit.message("Memory")
    assert not room.is_left("memory") and room.is_left("shapes")
    visit.query["view"] = "Memory"  # its message left before the address was completed
    assert not room.is_left("memory")
    visit.query["view"] = "shapes"
    assert room.is_left("memory")


def test_the_links_are_there_without_the_script():
    entries = [bar.Entry("one", "<One>", "look", "a & b"), bar.Entry("two", "Lessons", "learn", "")]
    text = bar.markup(entries)
    assert text.count('href="?view=one"') == 2 and 'data-key="1"' in text and 'data-key="l"' in text
    assert "&lt;One&gt;" in text and "a &amp; b" in text and "<One>" not in text


# in a browser


@pytest.fixture
def page(request: pytest.FixtureRequest, browser: Browser, address: str) -> Iterator[Page]:
    """Compute in a window of this size and scheme."""
    (width, height), scheme = getattr(request, "param", (WIDE, "light"))
    size = {"width": width, "height": height}
    with lend(browser, viewport=size, color_scheme=scheme, reduced_motion="reduce") as page:
        screen = Screen(page, address)
        open_at(page, address, "?view=compute")
        yield page
        screen.leave()


def open_at(page: Page, address: str, query: str) -> None:
    page.goto(f"{address}/{query}")
    shows(page, "compute")


def shows(page: Page, planner: str) -> None:
    page.locator(f".planner[data-painted][data-view={planner}]").wait_for()
    expect(links(page, planner)).to_have_attribute("aria-current", "page")


def links(page: Page, room: str) -> Locator:
    return page.locator(f"nav [data-room={room}]")


def test_a_room_is_chosen_without_loading_the_page_and_back_finds_the_one_before(page: Page):
    page.evaluate("window.loaded = 'once'")
    go_to(page, "Memory")
    shows(page, "memory")
    page.wait_for_url("**view=memory**")
    assert links(page, "memory").evaluate("link => link === link.getRootNode().activeElement")
    with page.expect_request("**/train.js"):  # where the pointer rests, what the room is made of comes before the click
        links(page, "train").hover()
    go_to(page, "Train")
    page.locator(".train[data-painted]").wait_for()
    page.go_back()
    shows(page, "memory")
    page.go_back()
    shows(page, "compute")
    page.go_forward()
    shows(page, "memory")
    assert page.evaluate("window.loaded") == "once"


@pytest.mark.thorough
def test_a_room_that_is_left_by_back_before_the_server_answers_does_not_come(page: Page):
    go_to(page, "Memory")
    shows(page, "memory")
    idle(page)
    page.evaluate(f"() => {{ ({CHOOSE})(['train']); history.back(); }}")
    page.wait_for_url("**view=memory**")
    idle(page)
    page.wait_for_timeout(500)  # in which a script that was to come would have begun
    idle(page)
    shows(page, "memory")
    assert "view=memory" in page.url
    page.go_back()
    shows(page, "compute")
    page.go_forward()
    shows(page, "memory")


@pytest.mark.thorough
def test_two_rooms_chosen_before_the_server_answers_are_two_steps(page: Page):
    """Else Back would lead past the first of them, or out of the page."""
    go_to(page, "Memory")
    shows(page, "memory")
    idle(page)
    ago = page.evaluate("history.length")
    page.evaluate(CHOOSE, ["train", "compute"])
    shows(page, "compute")
    idle(page)
    assert page.evaluate("history.length") == ago + 2
    page.go_back()
    page.locator(".train[data-painted]").wait_for()
    page.go_back()
    shows(page, "memory")


@pytest.mark.thorough
def test_a_link_opens_a_tab_with_the_sentence_the_model_and_the_page_as_it_is(page: Page, address: str):
    page.goto(f"{address}/?text=Two+words+%26+more&model=Storyteller&theme=dark")
    page.locator(".hl[data-painted]").wait_for()
    idle(page)
    links(page, "memory").hover()
    expect(links(page, "memory")).to_have_attribute(
        "href",
        re.compile(
            r"^\?view=memory&model=Storyteller&text=Two\+words\+%26\+more&.*layer=\d&head=\d&query=\d&rule=[\w%]+&theme=dark$"
        ),
    )
    with page.context.expect_page() as opened:
        links(page, "memory").click(modifiers=["ControlOrMeta"])
    tab = opened.value
    shows(tab, "memory")
    go_to(tab, "Explore")
    tab.locator(".st-key-explore_stage .hl[data-painted]").wait_for()
    assert tab.get_by_role("textbox", name="Sentence", exact=True).input_value() == "Two words & more"
    assert page.locator(".st-key-explore_stage .hl[data-painted]").is_visible()


@pytest.mark.thorough
def test_digits_choose_rooms_in_their_order_and_are_digits_where_somebody_writes(page: Page):
    page.keyboard.press(digit("memory"))
    shows(page, "memory")
    page.keyboard.press("1")
    page.locator(".st-key-explore_stage .hl[data-painted]").wait_for()
    box = page.get_by_role("textbox", name="Sentence", exact=True)
    box.focus()
    box.press("End")
    page.keyboard.press("5")
    expect(box).to_have_value(re.compile(r"tired\.5$"))
    assert links(page, "explore").get_attribute("aria-current") == "page"  # a choice is marked before it is told


@pytest.mark.thorough
def test_a_projector_has_no_bar_and_its_keys(page: Page, address: str):
    open_at(page, address, "?view=compute&projector=true")
    assert not page.locator("nav").is_visible()
    page.keyboard.press(digit("memory"))
    page.locator(".planner[data-view=memory][data-projector=true]").wait_for()
    query = parse_qs(urlsplit(page.url).query)
    assert (query["view"], query["projector"]) == (["memory"], ["true"])


# How many listeners of keys and pointers the whole page has: each that a room leaves behind would hear of every later one.
LISTENING = """
window.listening = new Map();
for (const target of [window, document]) {
  const { addEventListener, removeEventListener } = target;
  const known = (type) => ["keydown", "pointerdown"].includes(type);
  target.addEventListener = function (type, hear, options) {
    if (known(type)) {
      listening.set(hear, type);
      options?.signal?.addEventListener("abort", () => listening.delete(hear));
    }
    return addEventListener.call(target, type, hear, options);
  };
  target.removeEventListener = function (type, hear, options) {
    if (known(type)) listening.delete(hear);
    return removeEventListener.call(target, type, hear, options);
  };
}
"""


@pytest.mark.thorough
def test_a_room_that_is_left_leaves_no_listener_behind(browser: Browser, address: str):
    """Also where one of its panels was open, which listens for a click beside it."""
    context = browser.new_context(viewport={"width": 1280, "height": 720}, reduced_motion="reduce")
    page = context.new_page()
    page.add_init_script(LISTENING)
    open_at(page, address, "?view=compute")
    found = []
    for opened in (False, True):
        page.keyboard.press("1")
        page.locator(".st-key-explore_stage .hl[data-painted]").wait_for()
        if opened:
            page.get_by_role("button", name=words.COMPONENT["options"], exact=True).click()
            page.get_by_role("dialog", name=words.COMPONENT["options_label"]).wait_for()
        page.evaluate("document.documentElement.dataset.underway = ''")  # which Explore takes away last, as it ends
        page.keyboard.press(digit("compute"))
        shows(page, "compute")
        page.locator(".st-key-explore_stage").wait_for(state="detached")
        page.locator("html:not([data-underway])").wait_for(state="attached")
        idle(page)
        found.append(page.evaluate("[...listening.values()].sort()"))
    assert found[0] == found[1] and "keydown" in found[0]
    context.close()


@pytest.mark.parametrize("page", [(NARROW, "light")], indirect=True)
def test_in_a_narrow_window_groups_are_menus_that_keys_open_and_close(page: Page):
    opener = page.get_by_role("button", name="Count: Compute")
    assert not links(page, "memory").is_visible()
    opener.focus()
    page.keyboard.press("Enter")
    expect(opener).to_have_attribute("aria-expanded", "true")
    expect(page.get_by_role("link", name="Memory what fits, and what does not")).to_be_visible()
    page.keyboard.press("Escape")
    expect(opener).to_have_attribute("aria-expanded", "false")
    expect(opener).to_be_focused()
    page.keyboard.press("ArrowDown")
    expect(links(page, "shapes")).to_be_focused()
    page.keyboard.press("ArrowUp")
    expect(links(page, "compute")).to_be_focused()
    page.keyboard.press("ArrowUp")
    page.keyboard.press("Enter")
    page.locator(".planner[data-painted][data-view=memory]").wait_for()
    expect(page.get_by_role("button", name="Count: Memory")).to_be_focused()
    assert not links(page, "memory").is_visible()
    page.get_by_role("button", name="Count: Memory").click()
    page.mouse.click(10, 800)
    expect(links(page, "memory")).to_be_hidden()


@pytest.mark.thorough
@pytest.mark.parametrize("page", [(PHONE, "light")], indirect=True)
def test_on_a_phone_a_sheet_from_below_has_every_room_for_a_finger(page: Page):
    pick = page.get_by_role("button", name="View: Compute")
    pick.click()
    sheet = page.get_by_role("dialog", name="Views")
    sheet.wait_for()
    boxes = [box_of(link) for link in sheet.get_by_role("link").all()]
    assert len(boxes) == len(registry.ROOMS)
    assert all(box["height"] >= 44 and box["x"] + box["width"] <= 390 for box in boxes)
    page.keyboard.press("Escape")
    sheet.wait_for(state="hidden")
    expect(pick).to_be_focused()
    pick.click()
    sheet.get_by_role("link", name="Memory").click()
    page.locator(".planner[data-painted][data-view=memory]").wait_for()
    page.get_by_role("button", name="View: Memory").wait_for()
    assert not sheet.is_visible()


@pytest.mark.thorough
def test_axe_finds_nothing(browser: Browser, address: str):
    """In three widths, light and dark, each opened as it is where there is room for a row of links or for one button."""
    with lend(browser, viewport={"width": WIDE[0], "height": WIDE[1]}, reduced_motion="reduce") as page:
        found = {}
        for size in (WIDE, NARROW, PHONE):
            page.set_viewport_size({"width": size[0], "height": size[1]})
            open_at(page, address, "?view=compute")
            if size != WIDE:
                page.get_by_role("button", name="Compute").first.click()
            for scheme in ("light", "dark"):
                page.emulate_media(color_scheme=scheme)
                page.locator(f".hl.planner[data-theme={scheme}]").first.wait_for()
                found[size, scheme] = axe.faults(page, ".st-key-bar")
        assert not any(found.values()), found
