"""Models of other programs on a machine of one's own: who is shown them, what the list says, and that no link opens one."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from app.session import models
from app.session import screen as session_screen
from app.shell import already_here, words
from app.transport import loopback
from core.checkpoints.local_models import Found
from core.errors import CheckpointError
from tests.app.browsing import PATIENCE, Screen, serving
from tests.app.pages import lend
from tests.core.gguf.test_gguf_tokenizers import byte_pieces, with_tokens
from tests.core.gguf.written import write

SIZES = ((1280, 720), (390, 844))


# who is shown them


@pytest.mark.parametrize(
    ("headers", "listens_at", "own"),
    [
        ({"Host": "localhost:8501"}, "localhost", True),
        ({"host": "127.0.0.1:8501"}, "127.0.0.1", True),
        ({"Host": "[::1]:8501"}, "::1", True),
        ({"Host": "localhost:8501"}, "0.0.0.0", False),
        ({"Host": "localhost:8501"}, None, False),
        ({"Host": "headlight.example.org"}, "localhost", False),
        ({"Host": "localhost.example.org"}, "localhost", False),
        ({"Host": "localhost:8501", "X-Forwarded-For": "192.0.2.7"}, "localhost", False),
        ({"Host": "localhost:8501", "Forwarded": "for=192.0.2.7"}, "localhost", False),
        ({}, "localhost", False),
    ],
)
def test_only_who_sits_at_this_machine_is_shown_them(
    headers: dict[str, str], listens_at: str | None, own: bool
) -> None:
    assert loopback.is_own(headers, listens_at) == own


def test_one_that_was_opened_is_a_model_and_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(models, "_opened", {})
    with pytest.raises(CheckpointError):
        models.spec_of("tiny:1b")
    with pytest.raises(ValueError, match="there is no model"):
        session_screen.from_link("?text=Hello&model=tiny:1b")
    first = models.open_found(Found("tiny:1b", "Ollama", "/models/a", 7))
    assert first == "tiny:1b" and models.spec_of(first).location == "/models/a"
    assert models.open_found(Found("tiny:1b", "Ollama", "/models/a", 7)) == first
    assert models.open_found(Found("tiny:1b", "Ollama", "/models/b", 7)) == "tiny:1b (Ollama)"
    assert models.open_found(Found("minilm", "Hub", "/models/c", 7)) == "minilm (Hub)"
    assert models.open_found(Found("MiniLM-L6", "Hub", "/models/d", 7)) == "MiniLM-L6 (Hub)"
    assert models.open_found(Found("lab/tiny-GGUF/tiny-Q8_0", "LM Studio", "/models/f", 7)) == "tiny-Q8_0"
    assert models.open_found(Found("copy@00122\n", "Hub", "/models/e", 7)) == "copy-00122-"
    assert session_screen.from_link("?text=Hello&model=tiny:1b").request.model_id == "tiny:1b"
    for n in range(2 * models.MOST_OPENED):
        models.open_found(Found(f"m{n}", "Hub", f"/models/{n}", 7))
    assert len(models.opened()) == models.MOST_OPENED and "tiny:1b" not in models.opened()


# on the screen


def manifest(home: Path, name: str, text: str) -> None:
    path = home / ".ollama" / "models" / "manifests" / "registry.ollama.ai" / "library" / name / "latest"
    path.parent.mkdir(parents=True)
    path.write_text(text)


def ollama(home: Path, name: str, number: int, content: bytes) -> None:
    """A model as Ollama keeps it."""
    blob = home / ".ollama" / "models" / "blobs" / f"sha256-{number:064x}"
    blob.parent.mkdir(parents=True, exist_ok=True)
    blob.write_bytes(content)
    layer = {"mediaType": "application/vnd.ollama.image.model", "digest": f"sha256:{number:064x}"}
    manifest(home, name, json.dumps({"schemaVersion": 2, "layers": [layer]}))


def tiny(folder: Path) -> bytes:
    """A Llama with a vocabulary that reads any text."""
    tokens, merges = byte_pieces()
    said = {"model": "gpt2", "pre": "gpt-2", "merges": merges}
    return with_tokens(folder / "tiny.gguf", tokens, [1] * len(tokens), **said).read_bytes()


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("home")


@pytest.fixture(scope="module")
def address(home: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server on a machine of one's own, with a home folder that a test fills."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOME", str(home))
        patch.setenv("HEADLIGHT_OWN_MACHINE", "1")
        patch.setenv("HEADLIGHT_CACHE", str(tmp_path_factory.mktemp("unpacked")))
        for name in ("OLLAMA_MODELS", "HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE", "HEADLIGHT_SERVICE"):
            patch.delenv(name, raising=False)
        log = tmp_path_factory.mktemp("server") / "log"
        with serving("app/main.py", log) as address:
            yield address
        assert "Traceback" not in log.read_text()


def choose(screen: Screen, title: str) -> None:
    screen.page.get_by_label(words.MODEL, exact=True).click()
    screen.page.get_by_role("option", name=title, exact=True).click()


@pytest.mark.thorough
@pytest.mark.parametrize("size", SIZES, ids=str)
def test_none_three_and_two_hundred_models(
    browser: Browser, address: str, home: Path, tmp_path: Path, size: tuple[int, int]
) -> None:
    view = {"width": size[0], "height": size[1]}
    for old in home.glob(".ollama"):
        old.rename(tmp_path / "before")
    with lend(browser, viewport=view, reduced_motion="reduce") as page:
        screen = Screen(page, address).open()
        dialog = page.get_by_role("dialog")
        choose(screen, words.HERE_OPTION)
        expect(dialog).to_contain_text("have no model here", timeout=PATIENCE)
        expect(dialog).to_contain_text(str(home / ".ollama" / "models"))
        page.keyboard.press("Escape")
        expect(dialog).to_have_count(0)
        assert "model=MiniLM-L6" in page.url  # the box shows again what it showed

        whole = tiny(tmp_path)
        ollama(home, "tiny", 1, whole)
        ollama(home, "mamba", 2, write(tmp_path / "b.gguf", "mamba", {}, {}).read_bytes())
        manifest(home, "broken", "{")
        choose(screen, words.HERE_OPTION)
        expect(dialog.locator(".st-key-already_here")).to_contain_text("in memory, where", timeout=PATIENCE)
        expect(dialog.get_by_role("button", name=words.HERE_OPEN, exact=True)).to_have_count(1)
        text = dialog.inner_text()
        assert "3 of 3" in text and "tiny:latest" in text
        assert "broken:latest" in text and "manifest is damaged" in text
        assert "mamba:latest: the architecture 'mamba' is not supported" in text
        wide = dialog.evaluate("box => [box.scrollWidth - box.clientWidth, document.documentElement.scrollWidth]")
        assert wide[0] <= 1 and wide[1] <= size[0]
        assert "model=MiniLM-L6" in page.url  # nothing is opened before it is chosen

        before = screen.data()["run"]
        dialog.get_by_role("button", name=words.HERE_OPEN, exact=True).click()
        expect(dialog).to_have_count(0)
        screen.until(f"root.dataset.run !== '{before}' && !root.dataset.underway")
        page.wait_for_url(re.compile(r"model=tiny(:|%3A)latest"))
        for n in range(200):
            manifest(home, f"m{n:03}", "{")
        choose(screen, words.HERE_OPTION)
        rows = dialog.locator("[class*='st-key-here_says_']")
        expect(rows).to_have_count(already_here.ROWS)
        expect(dialog).to_contain_text("20 of 203")
        dialog.get_by_role("button", name=words.HERE_MORE.format(n=20)).click()
        expect(rows).to_have_count(40)
        dialog.get_by_role("textbox", name=words.HERE_FIND).fill("M19")
        dialog.get_by_role("textbox", name=words.HERE_FIND).press("Enter")
        expect(rows).to_have_count(10)
        page.keyboard.press("Escape")
        screen.leave()


@pytest.mark.thorough
def test_no_link_opens_one_and_a_host_shows_none(browser: Browser, address: str, home: Path, tmp_path: Path) -> None:
    if not (home / ".ollama").exists():
        ollama(home, "tiny", 1, tiny(tmp_path))
    ollama(home, "other", 7, tiny(tmp_path))
    path = home / ".ollama" / "models" / "blobs" / f"sha256-{7:064x}"
    for named in ("other:latest", str(path), "%3Fhere"):
        with lend(browser, viewport={"width": 1280, "height": 720}, reduced_motion="reduce") as page:
            screen = Screen(page, address).open(f"?text=Hello&model={named}")
            assert "model=MiniLM-L6" in page.url and "not on the list" in screen.sentences()
            screen.leave()
    context = browser.new_context(
        viewport={"width": 1280, "height": 720},
        reduced_motion="reduce",
        extra_http_headers={"X-Forwarded-For": "192.0.2.7"},
    )
    screen = Screen(context.new_page(), address).open()
    screen.page.get_by_label(words.MODEL, exact=True).click()
    expect(screen.page.get_by_role("option", name="Storyteller", exact=True)).to_be_visible()
    expect(screen.page.get_by_role("option", name=words.HERE_OPTION, exact=True)).to_have_count(0)
    screen.leave()
    context.close()
