"""Each step opens in its room, and what it asks for is nowhere to read before Look. Of the trainings test_train.py says the same."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.app.browsing import PATIENCE, once
from tests.app.pages import lend
from tests.app.rail import HERE, READ, SAYS, STEPS, rail, read, ready

APP = "app/main.py"


@pytest.fixture(scope="module")
def page(browser: Browser) -> Iterator[Page]:
    with lend(browser, viewport={"width": 1280, "height": 720}, reduced_motion="reduce") as page:
        yield page


def test_every_covered_step_is_here_and_every_kind_of_answer() -> None:
    assert set(SAYS) == {name for name, step in STEPS.items() if step.room in HERE and step.cover}
    assert {step.room for step in STEPS.values()} == {*HERE, "train"}
    assert {STEPS[name].kind for name in SAYS} == {step.kind for step in STEPS.values()}


@pytest.mark.parametrize("name", SAYS)
def test_nothing_is_read_before_look(page: Page, address: str, name: str) -> None:
    page.goto(f"{address}/?view=lessons&lesson={name}")
    ready(page, name)
    assert "This link" not in page.locator(".st-key-lessons_view").inner_text(), "something was asked in vain"
    assert SAYS[name] not in read(page)
    rail(page).get_by_role("button", name="Look", exact=True).click()
    once(page, f"(says) => ({READ})().includes(says)", arg=SAYS[name], timeout=PATIENCE)
    expect(rail(page)).to_have_attribute("data-seen", "true")
