"""A visitor who saves data, as the browser tells, is sent only what is looked at."""

from __future__ import annotations

import pytest
from playwright.sync_api import Browser

from tests.app.every_room import see

pytestmark = pytest.mark.thorough

APP = "app/main.py"


@pytest.mark.parametrize("is_sparing", [False, True])
def test_a_visitor_who_saves_data_gets_nothing_that_is_only_beside(browser: Browser, address: str, is_sparing: bool):
    context = browser.new_context(viewport={"width": 1280, "height": 800}, reduced_motion="reduce")
    saving = "Object.defineProperty(navigator, 'connection', { value: { saveData: true } })"
    if is_sparing:
        context.add_init_script(saving)
    page, asked = context.new_page(), list[str]()
    page.on("request", lambda request: asked.append(request.url))
    see(page, address, "masks")
    page.wait_for_timeout(1000)
    assert any("/headlight/" in url for url in asked)
    assert any("/headlight/strip" in url for url in asked) == (not is_sparing)
    assert page.locator(".model-strip.low").is_visible() == (not is_sparing)
    context.close()
