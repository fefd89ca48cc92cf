"""A view stays on its place in the page, whenever Streamlit calls what its component returned, and goes with the place."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page

from app.kit import scripts
from app.transport import modules
from tests.app.browsing import Screen
from tests.app.pages import lend

APP = "app/main.py"
scripts.add()
MODULE = modules.address("kit/browser/component.js")
MOUNT = f"""
    const {{ component }} = await import(new URL("headlight/m/{MODULE}", document.baseURI).href);
    const place = document.body.appendChild(document.createElement("div"));
    place.innerHTML = '<div class="hl"></div>';
    const [made, gone] = [[], []];
    class Part {{
        static style = ".hl {{}}";
        constructor(root) {{ made.push(root); }}
        enter() {{ return this; }}
        receive(data) {{ this.data = data; }}
        destroy() {{ gone.push(this.data); }}
    }}
    const shown = component(Part);
    const call = (data = 0) => shown({{ data, parentElement: place, setStateValue() {{}}, setTriggerValue() {{}} }});
"""


@pytest.fixture
def page(browser: Browser, address: str) -> Iterator[Page]:
    """A page of the server without Streamlit in it."""
    with lend(browser, viewport={"width": 1280, "height": 720}) as page:
        page.goto(f"{address}/healthz")
        yield page


def test_a_call_that_came_too_late_takes_nothing_away(page: Page):
    found = page.evaluate(
        "async () => {"
        + MOUNT
        + """
            const tooLate = call();
            call();
            tooLate();
            call();
            return [made.length, gone.length, place.querySelectorAll("style").length];
        }"""
    )
    assert found == [1, 0, 1]


def test_a_view_goes_with_its_place_and_once(page: Page):
    found = page.evaluate(
        "async () => {"
        + MOUNT
        + """
            const leave = call("first");
            place.innerHTML = '<div class="hl"></div>';  // another place in the same element
            const leaveSecond = call("second");
            const ended = [[...gone]];
            leave();
            ended.push([...gone]);
            place.remove();
            leaveSecond();
            leaveSecond();
            return [made.length, ...ended, gone];
        }"""
    )
    assert found == [2, ["first"], ["first"], ["first", "second"]]


@pytest.mark.thorough
def test_the_picture_stays_as_it_is_when_the_script_says_the_same_again(screen: Screen):
    screen.open()
    screen.root.evaluate("root => (window.was = root.querySelector('.overview'))")
    screen.shapes().click()  # a script that sends the same picture
    screen.page.get_by_test_id("stDataFrame").wait_for()
    screen.page.keyboard.press("Escape")
    assert screen.root.evaluate("root => root.querySelector('.overview') === window.was")


@pytest.mark.thorough
def test_the_tokens_under_a_finger_stay_when_the_page_is_laid_out_anew(screen: Screen):
    screen.open()
    screen.root.evaluate("root => (window.was = root.querySelector('.strip'))")
    painted = screen.data()["painted"]
    screen.page.set_viewport_size({"width": 1200, "height": 700})
    screen.until(f"root.dataset.painted > {painted}")
    assert screen.root.evaluate("root => root.querySelector('.strip') === window.was")
    screen.run_text("Another sentence.")
    assert screen.root.evaluate("root => root.querySelector('.strip') !== window.was")
