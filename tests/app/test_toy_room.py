"""A room is a folder and a line in the registry: the shell finds it in the bar, in links, in projector mode, in files, and on a phone."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, expect

from tests.app.pages import lend
from tests.app.planning_screen import Planner

pytestmark = pytest.mark.thorough

APP = "tests/app/toy.py"
SENTENCE = "This room stands in a temporary folder."
WIDE, PHONE = (1280, 720), (390, 844)


@pytest.fixture
def window(request: pytest.FixtureRequest) -> tuple[int, int]:
    return getattr(request, "param", WIDE)


@pytest.fixture
def screen(browser: Browser, address: str, window: tuple[int, int]) -> Iterator[Planner]:
    with lend(browser, viewport={"width": window[0], "height": window[1]}, reduced_motion="reduce") as page:
        screen = Planner(page, address)
        yield screen
        screen.leave()


def test_the_bar_leads_to_it_and_the_link_names_it(screen: Planner) -> None:
    screen.see("memory")
    screen.page.locator(".st-key-bar nav [data-room=toy]").first.dispatch_event("click")
    screen.says(SENTENCE)
    screen.page.wait_for_url(lambda url: "view=toy" in url)
    expect(screen.page.locator(".toy b")).to_have_text("drawn in the browser")


def test_a_link_opens_it_projected(screen: Planner) -> None:
    screen.see("toy", False, projector="true")
    screen.says(SENTENCE)
    expect(screen.page.locator("html")).to_have_attribute("data-projector", "true")
    screen.page.keyboard.press("Escape")
    expect(screen.page.locator("html")).not_to_have_attribute("data-projector", "true")


def test_its_files_say_what_they_are(screen: Planner) -> None:
    screen.see("toy", False)
    table, about = screen.table("CSV: numbers")
    assert table["number"].tolist() == [1, 2]
    assert SENTENCE in about


@pytest.mark.parametrize("window", [PHONE], indirect=True)
def test_a_phone_finds_it_in_the_sheet(screen: Planner) -> None:
    screen.see("memory")
    screen.page.locator(".st-key-bar .pick").click()
    screen.page.locator(".st-key-bar dialog [data-room=toy]").click()
    screen.says(SENTENCE)
    expect(screen.page.locator(".toy b")).to_have_text("drawn in the browser")
