"""`headlight run` of an installed package, without a checkout: the first picture, each room, code that it exports, and its end."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Browser

import core
from app.shell import registry
from tests import wheels
from tests.app.browsing import bar_hears, idle, running

pytestmark = pytest.mark.thorough


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> wheels.Environment:
    place = tmp_path_factory.mktemp("installed")
    wheel = wheels.built(wheels.copied(place / "source"), place / "wheel")
    return wheels.Environment(place / "environment", wheel)


def test_headlight_run_opens_a_picture_in_every_room_and_ends_when_it_is_told(
    installed: wheels.Environment, browser: Browser, tmp_path: Path
) -> None:
    core.save(core.load("storyteller"), tmp_path / "my own")
    log = tmp_path / "log"
    command = [installed.command, "run", "--model", "my own", "--port"]
    with running(command, log, tmp_path) as (address, process):
        page = browser.new_page()
        asked: list[str] = []
        page.on("request", lambda request: asked.append(request.url))
        page.goto(address)
        page.locator("[data-painted]").first.wait_for()
        assert "model=my+own" in page.url  # the model that was named opens
        assert page.evaluate("window.isSecureContext")
        for room in registry.rooms():
            page.goto(f"{address}/?view={room.id}&model=storyteller")
            bar_hears(page)
            idle(page)
            page.locator("[data-painted], .js-plotly-plot, .hl").first.wait_for(state="attached")
            assert not page.locator('[data-testid="stException"]').count(), room.id
        assert not [url for url in asked if not url.startswith((address, "data:", "blob:"))]
        page.close()
        process.terminate()
        assert process.wait(20) in (0, -15)
    said = log.read_text(encoding="utf-8")
    assert "Traceback" not in said and address in said


def test_what_is_missing_is_said_before_a_server_is_started(installed: wheels.Environment, tmp_path: Path) -> None:
    said = wheels.ran(installed.command, "run", "--model", "nowhere/at/all", cwd=tmp_path, status=2)
    assert said.startswith("headlight: ") and "nowhere/at/all" in said
    (installed.packages / "others.pth").rename(tmp_path / "others.pth")  # as after `pip install` without the extra
    try:
        lines = wheels.ran(installed.python, "-c", "import headlight", cwd=tmp_path, status=1)
        assert "torch" in lines
    finally:
        (tmp_path / "others.pth").rename(installed.packages / "others.pth")
