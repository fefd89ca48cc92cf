"""Served below a path, as behind an operator's proxy: the page, its modules, its numbers and its files are all there."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from app.attention import words
from tests.app.browsing import Screen, go_to, serving

BASE = "lights/demo"


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    log = tmp_path_factory.mktemp("server") / "log"
    with serving("app/main.py", log, "--server.baseUrlPath", BASE) as root:
        yield f"{root}/{BASE}"


def test_everything_is_below_the_path(browser: Browser, address: str, tmp_path: Path):
    page = browser.new_context(viewport={"width": 1280, "height": 720}).new_page()
    screen = Screen(page, address).open("?whole=true")
    screen.run_text("the quick brown fox jumps over the lazy dog " * 10)  # its weights are fetched
    screen.until("root.dataset.exact === 'true'")
    page.mouse.move(*screen.cell(20, 3))
    screen.until("root.dataset.value !== ''")
    screen.root.get_by_role("button", name=words.COMPONENT["export"], exact=True).click()
    with page.expect_download() as download:
        screen.root.get_by_role("button", name="CSV").click()
    file = tmp_path / "numbers.csv"
    download.value.save_as(file)
    assert "fox" in file.read_text()
    go_to(page, "Shapes")
    page.locator(".hl.shapes[data-painted]").wait_for()
    assert screen.errors == [] and screen.foreign == []
    assert any("/headlight/heads" in url for url in screen.requests)
    page.context.close()
