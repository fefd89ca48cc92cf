"""What `make dev` reads anew: browser files, words and rooms that have changed on disk. And that nothing else ever does."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import pytest
from starlette.applications import Starlette
from starlette.routing import Route
from starlette.testclient import TestClient

import app
from app.kit import scripts
from app.shell import registry
from app.transport import edited, modules
from scripts import dev

registry.rooms()  # a module that nobody knows is looked for among all that there are
PLACE = "copy/browser"
DOM, KEYS, FILES = (f"{PLACE}/{name}.js" for name in ("dom", "shortcuts", "files"))


@pytest.fixture
def editing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(edited, "ON", True)
    monkeypatch.setattr(modules, "_stamps", {})


@pytest.fixture
def folder(tmp_path: Path, own_modules: None) -> Path:
    """A copy of the browser files of kit, taken in as the modules of a place of its own."""
    for path in (path for path in scripts.BROWSER.iterdir() if path.is_file()):
        text = path.read_text(encoding="utf-8").replace('"../../shell/', '"../../copy/')
        text = text.replace('"./picture/', '"../../kit/browser/picture/')
        (tmp_path / path.name).write_text(text, encoding="utf-8")
    for name in ("drawing", "headline"):  # they import what lies elsewhere
        (tmp_path / f"{name}.js").write_text("export const svg = 0, pixels = 0;\n", encoding="utf-8")
    modules.add(PLACE, tmp_path)
    modules.add_constants(
        f"{PLACE}/words.js", WORDS={}, COLOURS={}, STYLE=modules.style(tmp_path / "share.css", tmp_path / "menu.css")
    )
    return tmp_path


@pytest.fixture
def get() -> Callable[[str], int]:
    """get(address of a module) -> the status of what a browser gets there"""
    client = TestClient(Starlette(routes=[Route("/{digest}/{name}", modules.module)]))
    return lambda address: client.get(f"/{address}").status_code


def write(path: Path, text: str) -> None:
    """As an editor does, at another time: two writes within one tick of the file system's clock are of one time."""
    before = path.stat().st_mtime_ns if path.exists() else 0
    path.write_text(text, encoding="utf-8")
    now = max(path.stat().st_mtime_ns, before + 1_000_000)
    os.utime(path, ns=(now, now))


def change(path: Path) -> None:
    write(path, path.read_text(encoding="utf-8") + "\n// changed\n")


def test_a_changed_file_and_all_that_import_it_have_other_addresses(editing: None, folder: Path):
    before = {name: modules.address(name) for name in (DOM, KEYS, FILES)}
    loader = modules.loader(FILES)
    change(folder / "dom.js")
    after = {name: modules.address(name) for name in (DOM, KEYS, FILES)}
    assert after[DOM] != before[DOM] and after[FILES] != before[FILES] and after[KEYS] == before[KEYS]
    assert modules.loader(FILES) != loader and after[DOM] in modules.loader(FILES)


@pytest.mark.thorough
def test_a_page_that_is_open_finds_what_it_has_loaded_and_one_that_comes_later_the_rest(
    editing: None, folder: Path, get: Callable[[str], int]
):
    before = modules.address(FILES)
    assert get(before) == 200
    change(folder / "dom.js")
    assert get(before) == 200 and get(modules.address(FILES)) == 200
    assert get("0" * 16 + "/files.js") == 404


@pytest.mark.thorough
def test_the_texts_that_are_served_on_are_bounded(
    editing: None, folder: Path, get: Callable[[str], int], monkeypatch: pytest.MonkeyPatch
):
    change(folder / "dom.js")
    first = modules.address(DOM)
    assert get(first) == 200
    monkeypatch.setattr(modules, "MOST_SERVED", 20)
    for _ in range(30):
        change(folder / "dom.js")
        modules.address(DOM)
    assert len(modules._served) <= 21
    assert get(first) == 404


def test_a_changed_style_sheet_changes_the_module_that_has_its_text(editing: None, folder: Path):
    before = modules.address(f"{PLACE}/words.js"), modules.address(FILES), modules.address(DOM)
    write(folder / "menu.css", ".hl .menu { color: tomato; }")
    after = modules.address(f"{PLACE}/words.js"), modules.address(FILES), modules.address(DOM)
    assert "tomato" in modules.source(f"{PLACE}/words.js")
    assert after[0] != before[0] and after[1] != before[1] and after[2] == before[2]


def test_files_come_and_go(editing: None, folder: Path, get: Callable[[str], int]):
    modules.address(KEYS)
    write(folder / "new.js", 'import { isFree } from "./shortcuts.js";\nexport const free = isFree;\n')
    assert get(modules.address(f"{PLACE}/new.js")) == 200
    (folder / "new.js").unlink()
    modules.look()
    assert f"{PLACE}/new.js" not in modules.names()
    (folder / "shortcuts.js").rename(folder / "moved.js")
    modules.look()
    assert KEYS not in modules.names() and f"{PLACE}/moved.js" in modules.names()


def test_an_import_that_leads_nowhere_is_mended_by_the_next_change(editing: None, folder: Path):
    good, text = modules.address(DOM), (folder / "dom.js").read_text(encoding="utf-8")
    write(folder / "dom.js", f'import {{ none }} from "./none.js";\n{text}')
    with pytest.raises(ValueError, match="no such browser file"):
        modules.address(DOM)
    write(folder / "dom.js", text)
    assert modules.address(DOM) == good


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package "app.edited_room" with words and a view that says them."""
    folder = tmp_path / "edited_room"
    folder.mkdir()
    (folder / "__init__.py").write_text("from app.edited_room import view, words\nSAID = view.SAID\n")
    (folder / "words.py").write_text('TITLE = "before"\n')
    (folder / "view.py").write_text("from app.edited_room import words\nSAID = words.TITLE\n")
    monkeypatch.setattr(app, "__path__", [*app.__path__, str(tmp_path)])
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    monkeypatch.setattr(edited, "_imported", {})
    return folder


@pytest.fixture
def room(package: Path) -> Iterator[Callable[[], ModuleType]]:
    """room() -> the package as it is imported now"""
    yield lambda: importlib.import_module("app.edited_room")
    for name in [name for name in sys.modules if name.startswith("app.edited_room")]:
        del sys.modules[name]


def test_changed_words_are_evaluated_again_where_they_are(
    editing: None, own_modules: None, package: Path, room: Callable[[], ModuleType]
):
    words = room().words
    modules.add_constants("edited_room/browser/words.js", TITLE=lambda: words.TITLE)
    before = modules.address("edited_room/browser/words.js")
    write(package / "words.py", 'TITLE = "after all"\n')
    assert modules.address("edited_room/browser/words.js") != before
    assert words.TITLE == "after all"
    write(package / "words.py", "TITLE = (\n")  # half written
    modules.look()
    assert words.TITLE == "after all"
    write(package / "words.py", 'TITLE = "at last"\n')
    modules.look()
    assert words.TITLE == "at last"


def test_a_changed_view_is_imported_anew_with_its_room(editing: None, package: Path, room: Callable[[], ModuleType]):
    first = room()
    edited.forget_changed("app.edited_room")
    assert room() is first and first.SAID == "before"
    write(package / "view.py", 'SAID = "another view"\n')
    edited.forget_changed("app.edited_room")
    assert room().SAID == "another view"
    write(package / "view.py", "SAID = (\n")
    edited.forget_changed("app.edited_room")
    with pytest.raises(SyntaxError):
        room()
    write(package / "view.py", 'SAID = "mended"\n')
    edited.forget_changed("app.edited_room")
    assert room().SAID == "mended"


def test_a_server_that_nobody_edits_reads_everything_once(
    folder: Path, package: Path, room: Callable[[], ModuleType], get: Callable[[str], int]
):
    assert not edited.ON
    before, loader, first = modules.address(FILES), modules.loader(FILES), room()
    for name in ("dom.js", "files.js"):
        change(folder / name)
    write(folder / "menu.css", "")
    write(package / "words.py", 'TITLE = "after"\n')
    edited.forget_changed("app.edited_room")
    assert (modules.address(FILES), modules.loader(FILES)) == (before, loader)
    assert get(before) == 200 and room() is first and first.words.TITLE == "before"


def test_only_what_make_dev_starts_is_edited(monkeypatch: pytest.MonkeyPatch):
    root = Path(__file__).resolve().parents[2]
    asked = "fileWatcherType"
    assert (
        f"--server.{asked}" in dev.command([]) and f'{asked} = "none"' in (root / ".streamlit/config.toml").read_text()
    )
    naming = [path for path in (root / "Makefile", root / "Procfile") if edited.SETTING in path.read_text()]
    assert not naming  # scripts/dev.py sets it
