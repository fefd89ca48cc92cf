"""Every room is for everybody: axe finds nothing in it in either colour scheme, and it fits into any window."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

import pytest
from playwright.sync_api import Browser, Page

from app.shell import registry
from tests.app.axe import faults
from tests.app.browsing import eventually
from tests.app.every_room import ROOMS, SEEN_AT, WRONG, measured, see
from tests.app.lab import sized
from tests.app.pages import lend
from tests.app.plain import Plain

APP = "app/main.py"
LANGUAGES = ("en",)
SCHEMES: tuple[Literal["light", "dark"], ...] = ("light", "dark")
LAPTOP = (1280, 720)
NARROW = (320, 360, 390, 480, 600, 639, 641, 700)
TWICE, FOUR_TIMES = (640, 512), (320, 256)  # a window of 1280 × 1024 at 200 % and at 400 %
CONTROL = "button, [role=button], summary, a[href], select, input, textarea, [role=slider], [role=application], [tabindex='0']"
# Controls out of reach: they cannot be brought into sight, or something else lies on them wherever they are.
UNREACHED = (
    f"""(every, controls) => {{{SEEN_AT}"""
    """
  const wrong = [];
  const drawnOver = "label, [data-testid=stSlider], [data-testid=stDataFrame]"; // what has a picture of its own over what has the focus
  for (const node of every) {
    if (!node.matches(controls) || !node.checkVisibility({ visibilityProperty: true, opacityProperty: true })) continue;
    if (node.closest("[aria-hidden=true], [inert], .unseen") || node.tabIndex < 0 || node.localName === "main") continue;
    node.scrollIntoView({ block: "center", inline: "center" });
    const box = node.getClientRects()[0] ?? node.getBoundingClientRect(); // a link may be broken into lines
    if (box.width < 2 || box.height < 2) continue;
    const [left, right] = [Math.max(0, box.left), Math.min(innerWidth, box.right)];
    const [top, bottom] = [Math.max(0, box.top), Math.min(innerHeight, box.bottom)];
    const isHit = [0.5, 0.2, 0.8].some((down) => [0.5, 0.2, 0.8].some((along) => {
      const hit = seenAt(left + (right - left) * along, top + (bottom - top) * down);
      return hit && (holds(node, hit) || (holds(hit, node) && hit.matches("label, span, .quiet")) || hit.closest(drawnOver)?.contains(node));
    }));
    if (right <= left || bottom <= top || !isHit) wrong.push(`${node.localName}.${node.className} “${(node.ariaLabel || node.textContent).trim().slice(0, 40)}”`);
  }
  return wrong;
}"""
)


@pytest.fixture(scope="module", params=LANGUAGES)
def language(request: pytest.FixtureRequest) -> str:
    return request.param


# Explore stands for what is around a room; the rooms themselves are measured on a plain page as well.
IN_THE_APPLICATION = [room if room == "explore" else pytest.param(room, marks=pytest.mark.thorough) for room in ROOMS]


@pytest.fixture(scope="module", params=IN_THE_APPLICATION)
def room(request: pytest.FixtureRequest, browser: Browser, address: str, language: str) -> Iterator[Page]:
    """The page of a visitor in a room, in one language; every test of this file looks at it."""
    with lend(browser, viewport={"width": 1280, "height": 720}, reduced_motion="reduce", locale=language) as page:
        yield see(page, address, request.param)


@pytest.fixture(autouse=True)
def as_it_was(request: pytest.FixtureRequest) -> Iterator[None]:
    yield
    if "room" not in request.fixturenames:
        return
    room: Page = request.getfixturevalue("room")
    room.emulate_media(color_scheme="light", media="screen", forced_colors="none", reduced_motion="reduce")
    sized(room, *LAPTOP)


@pytest.mark.thorough
@pytest.mark.parametrize("scheme", SCHEMES)
def test_axe_finds_nothing(room: Page, scheme: Literal["light", "dark"]):
    room.emulate_media(color_scheme=scheme)
    room.locator(f".hl[data-theme={scheme}]").first.wait_for()
    sized(room, *LAPTOP)
    assert faults(room) == []


@pytest.mark.thorough
def test_axe_finds_nothing_on_the_narrowest_phone(room: Page):
    sized(room, 320, 640)
    assert faults(room) == []


@pytest.mark.thorough
def test_no_window_is_too_narrow(room: Page):
    found: dict[int, Any] = {}
    for width in NARROW:
        sized(room, width, 800)
        found[width] = measured(room, WRONG)
    assert not any(found.values()), found


@pytest.mark.thorough(but=1)
@pytest.mark.parametrize("size", [TWICE, FOUR_TIMES], ids=["200 %", "400 %"])
def test_everything_can_be_reached_in_a_page_made_larger(room: Page, size: tuple[int, int]):
    sized(room, *size)
    assert measured(room, WRONG) == []
    assert measured(room, UNREACHED, CONTROL) == []


# Marks that have a number in their size or colour, and what becomes of them where the system chooses the colours
MARKS = """(every, _) => {
  window.marks = every.filter((node) => {
    if (!node.closest(".hl") || node.textContent.trim() || node.matches("button, input, select, textarea, canvas, svg, svg *, img")) return false;
    const [box, style] = [node.getBoundingClientRect(), getComputedStyle(node)];
    const alpha = /^rgba\\(.*, ([\\d.]+)\\)$/.exec(style.backgroundColor)?.[1] ?? 1;
    return box.width > 1 && box.height > 1 && node.checkVisibility() && (Number(alpha) > 0.1 || style.backgroundImage !== "none");
  });
  return window.marks.length;
}"""
LOST = """(every, _) => {
  const canvas = Object.assign(document.createElement("i"), { style: "background: Canvas" });
  document.body.append(canvas);
  const plain = getComputedStyle(canvas).backgroundColor;
  canvas.remove();
  const gone = ({ backgroundColor, backgroundImage }) => backgroundImage === "none" && (backgroundColor === plain || /^rgba\\(.*, 0\\)$/.test(backgroundColor));
  const lost = window.marks.filter((node) => node.isConnected && gone(getComputedStyle(node))).map((node) => `mark: ${node.outerHTML.slice(0, 90)} in ${node.parentElement?.className}`);
  const isOn = "[aria-pressed=true], [aria-checked=true], [aria-selected=true], a[aria-current]";
  for (const node of every) {
    if (!node.matches(isOn) || !node.checkVisibility({ visibilityProperty: true })) continue;
    const [style, looks] = [getComputedStyle(node), (one) => [one.backgroundColor, one.borderColor, one.outline].join()];
    const other = [...node.parentElement.children, ...(node.closest("ul, nav, .seg, .chips")?.querySelectorAll(node.localName) ?? [])].find((one) => one !== node && one.localName === node.localName && !one.matches(isOn));
    if (other && looks(style) === looks(getComputedStyle(other))) lost.push(`chosen: ${node.outerHTML.slice(0, 90)}`);
  }
  return [...new Set(lost)];
}"""


def test_forced_colours_leave_every_bar_cell_legend_and_choice(room: Page):
    measured(room, MARKS)
    room.emulate_media(forced_colors="active")
    assert measured(room, LOST) == []


# On a sheet of A4: what is still there to press, and what is cut off at its sides
PRINTED = """(every, _) => {
  const wrong = [];
  const isSeen = (node) => node.checkVisibility({ visibilityProperty: true, opacityProperty: true }) && node.getBoundingClientRect().width > 1;
  for (const node of every) {
    if (!isSeen(node)) continue;
    if (node.matches("nav a, textarea, select, .acts, .acts button, .seg button, [data-testid=stMain] [data-testid=stButton] button, [data-testid=stHeader]")) wrong.push(`to press: ${node.localName}.${node.className} “${node.textContent.slice(0, 30)}”`);
    if (node.matches(".hl :is(svg, canvas, table, h2), .js-plotly-plot .main-svg") && !node.closest("[aria-hidden=true]")) {
      const box = node.getBoundingClientRect();
      if (box.right > innerWidth + 1 || box.left < -1) wrong.push(`cut off: ${node.localName}.${node.className.baseVal ?? node.className} ${Math.round(box.left)} to ${Math.round(box.right)}`);
    }
  }
  const main = document.querySelector("[data-testid=stMain]");
  for (let box = main; box; box = box.parentElement) {
    const style = getComputedStyle(box);
    if (box !== document.documentElement && /auto|scroll|hidden/.test(style.overflowY)) wrong.push(`one page alone: ${box.localName} ${box.dataset.testid}`);
  }
  const ground = getComputedStyle(document.querySelector("[data-testid=stApp]")).backgroundColor;
  if (ground !== "rgb(255, 255, 255)") wrong.push(`the ground is ${ground}`);
  return [...new Set(wrong)];
}"""


def test_on_paper_there_is_the_picture_and_nothing_to_press(room: Page):
    sized(room, 718, 1000)  # an A4 sheet within its margins, at 96 points an inch
    room.emulate_media(media="print")
    assert measured(room, PRINTED) == []
    drawn = room.locator(".hl :is(svg, canvas), .js-plotly-plot .main-svg").filter(visible=True)
    drawn.first.wait_for()
    assert "".join(room.locator(".hl").all_inner_texts()).strip()


@pytest.mark.thorough(but=2)
@pytest.mark.parametrize("place", [room.id for room in registry.rooms() if room.message is not None])
def test_a_room_fits_any_window_and_any_colours(plain: Plain, place: str):
    plain.open(f"?view={place}&model=Storyteller")
    page = plain.page

    def expect_fit() -> None:
        assert measured(page, WRONG) == []

    for size in ((320, 800), (641, 800), FOUR_TIMES):
        sized(page, *size)
        eventually(page, expect_fit)  # a room that measures itself is laid out again some frames after the window
    assert measured(page, UNREACHED, CONTROL) == []
    sized(page, *LAPTOP)
    measured(page, MARKS)
    page.emulate_media(forced_colors="active")
    assert measured(page, LOST) == []
    page.emulate_media(forced_colors="none", media="print")
    sized(page, 718, 1000)
    assert measured(page, PRINTED) == []
