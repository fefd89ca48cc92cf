"""docs/lessons.md: every row of the course is in a table, its tests are there, and what it names is three clicks from the first screen."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from app.shell import registry
from tests import thorough
from tests.app.browsing import PATIENCE
from tests.app.pages import lend

APP = "app/main.py"
ROOT = Path(__file__).resolve().parents[2]
NAMED = "A1 A3 A6 A7 B1 B2 B3 B4 B5 B6 C1 C2 C3 C4 D1 D2 D3 D6 D7 E1 E2 E3 E7 F1 F2 F3 F4 F5 F6 F7 F8 F9 F10 F11 F12 F13 F14"


@cache
def table() -> list[tuple[list[str], str, int, list[str]]]:
    """Of every line: its rows of the course, where they are, how many clicks away, and the names of tests."""
    found = []
    for line in (ROOT / "docs/lessons.md").read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if len(cells) == 5 and cells[3].isdecimal():
            found.append((cells[0].split(), cells[2], int(cells[3]), re.findall(r"`([^`]+)`", cells[4])))
    return found


def test_every_row_has_a_place_within_three_clicks_and_its_tests_are_there() -> None:
    assert {row for rows, *_ in table() for row in rows} >= set(NAMED.split())
    sources: dict[str, str] = {}
    for path in (ROOT / "tests").rglob("test_*.py"):
        sources[path.name] = sources.get(path.name, "") + path.read_text(encoding="utf-8")
    for rows, where, clicks, tests in table():
        assert clicks <= 3 and tests, (rows, where)
        last = ""
        for test in tests:
            path, _, name = test.rpartition("::")
            last = Path(path or (test if test.endswith(".py") else last)).name
            assert last in sources, test
            assert test.endswith(".py") or f"def {name or test}(" in sources[last], test


# The clicks of each row, and a text that then stands there. A room of the bar, a button, a text, an option of a select box that
# is open then (a click opens it, a second chooses), and a station of the line or a row of a diagram.

Click = Callable[[Page], object]


def button(name: str) -> Click:
    return lambda page: page.get_by_role("button", name=name, exact=True).first.click()


def text(said: str) -> Click:
    return lambda page: page.get_by_text(said, exact=True).first.click()


def part(name: str) -> Click:
    return lambda page: page.get_by_role("radiogroup").get_by_text(name, exact=True).first.click()


def step(name: str) -> Click:
    return lambda page: page.locator(f".station[data-step='{name}']").click()


def box(label: str) -> Click:
    return lambda page: page.get_by_role("combobox", name=label).first.click()


def option(name: str) -> Click:
    return lambda page: page.get_by_role("option", name=name, exact=True).click()


def lab(name: str) -> Click:
    return lambda page: page.get_by_role("combobox", name="More labs").select_option(label=name)


def link(name: str) -> Click:
    return lambda page: page.get_by_role("link", name=name).click()


PATHS: dict[str, tuple[str, list[Click], str]] = {  # row: (room, clicks in it, what it says there)
    "A1 F7": ("Shapes", [box("What to trace"), option("A textbook encoder")], "dropout of weights"),
    "A3": ("Masks", [button("Padding")], "Nothing masks the padding now"),
    "A6 A7": ("Memory", [part("Longer texts")], "GB"),
    "B1": ("Masks", [button("Three kinds"), link("Translator")], "cross"),
    "B2 D6": ("Train", [button("Recorded curves"), part("Where the norm stands")], "do not serve the other"),
    "B3": ("Step through", [step("act"), button("SiLU")], "−0.28"),
    "B4": ("Step through", [step("add1")], "10.9 long and 6.24 long make 13.4."),
    "B5 F14": ("Compute", [part("Parameters")], "93,324,544"),
    "B6": ("Step through", [step("end")], "Choose Storyteller or Translator"),
    "F14": (
        "Step through",
        [button("3 × 4, every number"), text("F.softmax(scaled, dim=-1)")],
        ".1886 .8114",
    ),
    "C1": ("Step through", [button("3 × 4, every number")], "0.3172"),
    "C2": ("Step through", [button("3 × 4, every number"), button("A batch: transpose(-2, -1)")], "RuntimeError"),
    "C4": ("Step through", [button("3 × 4, every number"), button("Two heads: the reshape")], "memory 53"),
    "C3": ("Masks", [], "it may not look at animal. Its 68 % is shared out: every other weight grows × 3.1"),
    "D1": ("Positions", [lab("Two positions")], "Rows 20 and 26 have cosine 0.67"),
    "D2": ("Step through", [step("norm1"), button("BatchNorm")], "BatchNorm measures each column"),
    "D3": ("Explore", [button("Examples"), text("The cat sat on the mat: “on” looks at “mat”")], "on gives"),
    "D7 F9": ("Positions", [lab("Two positions")], "has positions for 512"),
    "E1": ("Masks", [button("Why ÷ √d")], "bits of entropy"),
    "E2": ("Masks", [button("after")], "the row of it adds up to 0.32. The 68 % from animal goes to no word"),
    "E3": ("Positions", [lab("Digits to waves")], "in binary is 0111"),
    "E7 F5 F10": ("Compute", [part("Operations")], "takes 2·n·m·k and writes n·k"),
    "F1": ("Positions", [lab("Order")], "max |Δ|"),
    "F2": ("Train", [button("no residual")], "no residual"),
    "F3": (
        "Shapes",
        [text("q, k, v"), button("What if I change a transpose?")],
        "one product, then views of its parts",
    ),
    "F4": ("Compute", [part("Known models")], "128"),
    "F6": ("Masks", [button("Reset"), button("−1e9")], "−1e9 takes the place of −∞"),
    "F8": ("Shapes", [], "weights of their own"),
    "F11": ("Compute", [part("Roofline")], "% at a batch of 1, "),
    "F12": (
        "Compute",
        [part("Known models"), text("A textbook encoder class in five sizes: sinusoids, attention without biases")],
        "197760",
    ),
    "F13": ("Shapes", [text("join heads"), button("What if I change a transpose?")], "Strides of z"),
}


def test_every_row_has_its_clicks() -> None:
    assert {row for rows in PATHS for row in rows.split()} == set(NAMED.split())
    assert all(len(clicks) <= 2 for _, clicks, _ in PATHS.values()), "the room itself is the third"


@pytest.fixture(scope="module")
def page(browser: Browser):
    with lend(browser, viewport={"width": 1280, "height": 720}, reduced_motion="reduce") as page:
        page.set_default_timeout(PATIENCE)
        yield page


def test_every_room_is_one_click_from_the_first_screen(page: Page, address: str) -> None:
    page.goto(address)
    bar = page.get_by_role("navigation")
    for room in registry.rooms():
        link = bar.get_by_role("link", name=room.title, exact=True)
        expect(link).to_be_visible()
        expect(link).to_have_attribute("href", re.compile(rf"\\?view={room.id}(&|$)"))


@pytest.mark.parametrize("rows", thorough.part(list(PATHS), share=3))
@pytest.mark.thorough
def test_three_clicks_from_the_first_screen(page: Page, address: str, rows: str) -> None:
    """The first of them is the room, where its link leads."""
    room, clicks, says = PATHS[rows]
    page.goto(f"{address}/?view={next(one.id for one in registry.rooms() if one.title == room)}")
    for click in clicks:
        click(page)
    expect(page.locator("[data-testid=stMain]")).to_contain_text(says, timeout=PATIENCE)
