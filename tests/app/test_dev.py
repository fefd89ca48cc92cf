"""`make dev` on a copy of the application: what is edited is there at the next load of the page, and the server is the same."""

from __future__ import annotations

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from tests.app.browsing import ROOT, Screen, go_to

pytestmark = pytest.mark.thorough

COPIED, LINKED = ("app", "scripts", ".streamlit"), ("core", "cluster", "models")
LOADED = "headlight_models 1.0"  # what /metrics says of the models in memory


class Edited:
    """A copy of the application that somebody edits, and the server that runs it."""

    def __init__(self, root: Path, address: str, server: subprocess.Popen[bytes], log: Path) -> None:
        self.root, self.address, self.server, self.log = root, address, server, log

    def edit(self, path: str, old: str, new: str) -> None:
        text = (self.root / path).read_text(encoding="utf-8")
        assert old in text
        (self.root / path).write_text(text.replace(old, new), encoding="utf-8")

    def get(self, path: str) -> str:
        with urllib.request.urlopen(f"{self.address}/{path}", timeout=20) as answer:
            return answer.read().decode()

    def runs(self) -> list[str]:
        """How many runs of each model there were: a model that is loaded again runs its example again."""
        return re.findall(r"^headlight_runs_total.*$", self.get("metrics"), re.MULTILINE)


@pytest.fixture(scope="module")
def edited(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Edited]:
    root = tmp_path_factory.mktemp("edited")
    for name in COPIED:
        shutil.copytree(ROOT / name, root / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in LINKED:
        (root / name).symlink_to(ROOT / name)
    shutil.copy(ROOT / "pyproject.toml", root)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    log = root / "log"
    with log.open("w") as out:
        command = [sys.executable, "-m", "scripts.dev", "--server.port", str(port)]
        environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        server = subprocess.Popen(command, cwd=root, env=environment, stdout=out, stderr=subprocess.STDOUT)
    found = Edited(root, f"http://localhost:{port}", server, log)
    try:
        for _ in range(240):
            assert server.poll() is None, log.read_text()
            try:
                found.get("healthz")
                break
            except OSError:
                time.sleep(0.25)
        yield found
    finally:
        server.send_signal(signal.SIGTERM)
        try:
            server.wait(20)
        except subprocess.TimeoutExpired:
            server.kill()
            server.wait()


@pytest.fixture
def screen(browser: Browser, edited: Edited) -> Iterator[Screen]:
    context = browser.new_context(viewport={"width": 1280, "height": 720}, reduced_motion="reduce")
    screen = Screen(context.new_page(), edited.address)
    yield screen
    screen.leave()
    context.close()


def line_of(screen: Screen) -> str:
    return screen.root.locator(".big").evaluate("node => getComputedStyle(node).textDecorationLine")


def test_what_is_edited_is_there_after_a_reload_and_nothing_is_started_or_loaded_again(edited: Edited, screen: Screen):
    screen.open()
    page = screen.page
    before = edited.runs(), edited.server.pid
    assert LOADED in edited.get("metrics") and line_of(screen) == "none"

    edited.edit("app/attention/browser/attention.css", ".hl .big {", ".hl .big { text-decoration-line: underline;")
    edited.edit("app/kit/browser/picture/bars.js", '"100 %"', '"all of it"')
    edited.edit("app/attention/words.py", '"guide": "', '"guide": "Once more: ')
    screen.open()
    assert line_of(screen) == "underline"
    expect(page.locator(".hl .bars .scale").first).to_contain_text("all of it")
    expect(page.get_by_role("button", name=re.compile("^Once more: "))).to_be_visible()

    # the text of a room, as its view says it, without a hand at the page
    page.goto(f"{edited.address}/?view=compute")
    page.locator(".planner[data-painted][data-view=compute]").wait_for()
    edited.edit(
        "app/rooms/compute/view.py",
        "def show() -> None:",
        "def show() -> None:\n    st.text('Edited.')\n\n\ndef _show() -> None:",
    )
    expect(page.get_by_text("Edited.")).to_be_visible()

    # what is half written does nobody harm for longer than it is there
    edited.edit("app/rooms/compute/view.py", "st.text('Edited.')", "st.text('Mended'")
    expect(page.get_by_text("Edited.")).to_have_count(0)
    edited.edit("app/rooms/compute/view.py", "st.text('Mended'", "st.text('Mended.')")
    expect(page.get_by_text("Mended.")).to_be_visible()

    assert (edited.runs(), edited.server.pid) == before and edited.server.poll() is None
    assert LOADED in edited.get("metrics")


def test_a_view_that_is_edited_while_it_is_drawn_is_drawn_again_on_the_same_screen(edited: Edited, screen: Screen):
    """The script is not at its end when the page shows what it draws: the address of the visit is nowhere but in that script."""
    view, page = "app/rooms/memory/view.py", screen.page
    slow = "def show() -> None:\n    _show()\n    st.text('Drawn.')\n    import time\n\n    time.sleep(3)\n\n\ndef _show() -> None:"
    edited.edit(view, "def show() -> None:", slow)
    page.goto(f"{edited.address}/?view=memory&memory_part=What+is+kept")
    for now, then in pairwise(("Drawn.", "Drawn twice.", "Drawn three times.")):
        expect(page.get_by_text(now)).to_be_visible()
        edited.edit(view, f"'{now}'", f"'{then}'")
    expect(page.get_by_text("Drawn three times.")).to_be_visible()
    assert "view=memory" in page.url and "memory_part=What+is+kept" in page.url
    assert page.locator(".planner[data-view=memory]").count() == 1


def test_a_page_that_is_open_goes_on_with_the_files_that_it_has_loaded(edited: Edited, screen: Screen):
    screen.open()
    edited.edit("app/kit/browser/mount.js", "// The one way", "// Changed. The one way")
    edited.edit("app/attention/browser/attention.css", "text-decoration-line: underline;", "")
    screen.run_text("Another sentence.")
    go_to(screen.page, "Masks")
    screen.page.locator(".hl.masks").wait_for()
    go_to(screen.page, "Explore")
    screen.page.locator(".hl:not(.masks) .strip").wait_for()
    screen.page.locator(".hl.masks").wait_for(state="detached")  # the room before stays until its successor is there
    screen.painted()
    screen.idle()
    assert screen.root.locator(".strip").count() == 1 and line_of(screen) == "underline"
    screen.open()
    assert screen.root.locator(".strip").count() == 1 and line_of(screen) == "none"
