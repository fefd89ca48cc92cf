"""A page that tests borrow one after the other: the next one finds it as if it were new."""

from __future__ import annotations

from playwright.sync_api import Browser

from tests.app.pages import lend

KEPT = 50  # steps that a browser keeps of a page: one more, and the oldest goes


def test_the_next_one_finds_none_of_the_steps_of_the_one_before(browser: Browser):
    size = {"width": 401, "height": 402}
    with lend(browser, viewport=size) as page:
        page.goto("about:blank?one")
        page.evaluate("count => { for (let step = 0; step < count; step++) location.hash = step }", KEPT)
        first = page
    with lend(browser, viewport=size) as page:
        assert page is first
        steps = page.evaluate("history.length")
        page.goto("about:blank?two")
        assert page.evaluate("history.length") == steps + 1
