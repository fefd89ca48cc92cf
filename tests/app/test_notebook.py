"""A run as a page for a notebook: in a browser from a file, without scripts, without Streamlit, and what is refused."""

from __future__ import annotations

import base64
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from playwright.sync_api import Browser, Locator, Page

import core
from app.notebook import cell, widget
from app.notebook import page as notebook_page
from app.notebook.page import page_of
from app.transport import messages
from core.service import one_run
from tests.app.browsing import eventually, once

ROOT = Path(__file__).resolve().parents[2]
HOSTILE = "</script><b>&\"'`{{DATA}} {{STILL}} <!-- ${x}"
IT, TIRED = 10, 13


@pytest.fixture(scope="module")
def run() -> core.Trace:
    return core.trace(core.load("minilm"), f"The animal didn't cross the street because it was too tired. {HOSTILE}")


@contextmanager
def opened(browser: Browser, path: Path, scripts: bool = True) -> Iterator[Page]:
    """A page of a file, whose requests and mistakes are none."""
    context = browser.new_context(viewport={"width": 1100, "height": 700}, java_script_enabled=scripts, offline=True)
    page, found = context.new_page(), []
    page.on("request", lambda request: found.append(request.url))
    page.on("pageerror", lambda error: found.append(str(error)))
    page.on("console", lambda message: found.append(message.text) if message.type in ("error", "warning") else None)
    try:
        page.goto(path.as_uri())
        yield page
    finally:
        context.close()
    assert found == [path.as_uri()]


@pytest.fixture(scope="module")
def written(run: core.Trace, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("notebook") / "run.html"
    path.write_text(page_of(run, layer=2, head=1, query=IT), encoding="utf-8")
    return path


def test_the_page_has_the_numbers_of_the_run(browser: Browser, written: Path, run: core.Trace):
    with opened(browser, written) as page:
        page.wait_for_selector(".hl[data-painted]")
        shown = page.locator(".hl.explore")
        said = {name: shown.get_attribute(f"data-{name}") for name in ("layer", "head", "locked", "site")}
        assert said == {"layer": "2", "head": "1", "locked": str(IT), "site": "encoder"}
        weight = float(run.attention[2].pattern(1)[0, IT, TIRED])
        assert f"{weight:.1%}".replace("%", " %") in page.locator(".hl.explore").inner_text()
        assert HOSTILE.split()[0][2:8] in page.locator(".hl .strip").inner_text()
        page.wait_for_selector(".proofs .holds")
        assert page.locator(".hl .overview").is_visible()
        assert page.locator("#snippet").text_content() and "pattern(1)" in (
            page.locator("#snippet").text_content() or ""
        )


def test_without_scripts_there_is_a_picture_and_its_table(browser: Browser, written: Path, run: core.Trace):
    with opened(browser, written, scripts=False) as page:
        assert page.locator("figure svg").is_visible() and "layer" not in page.locator("aside").inner_text()
        page.locator("figure summary").click()
        rows = page.locator("figure tr").all_inner_texts()
        weights = run.attention[2].pattern(1)[0]
        key = int(weights[IT].argmax())
        assert rows[1 + IT].split("\t") == ["it", run.source.labels[key], f"{float(weights[IT, key]):.1%}"]
        assert page.locator("figure b").count() == 0  # no text is markup


def test_a_run_with_too_many_weights_has_small_pictures_and_the_head_that_is_opened(
    browser: Browser, tmp_path: Path, run: core.Trace
):
    path, query = tmp_path / "long.html", 4
    one = one_run(run, notebook_page.KEY, most=1000)
    path.write_text(notebook_page.page(one, 3, 5, query), encoding="utf-8")
    with opened(browser, path) as page:
        page.wait_for_selector(".hl[data-painted]")
        weights = run.attention[3].pattern(5)[0, query]
        found = page.locator(".hl.explore").inner_text()
        assert f"{float(weights.max()):.1%}".replace("%", " %") in found
        assert page.locator(".hl .overview").is_visible()


def test_what_is_left_out_opens_where_the_screen_does(run: core.Trace):
    look = one_run(run, notebook_page.KEY, most=notebook_page.MOST).whole
    assert look is not None and look.look is not None
    title = re.search(r"\b(encoder\.blocks\.\d+\.attn, head \d+)", page_of(run))
    assert title and title[1] == f"encoder.blocks.{look.look.layer}.attn, head {look.look.head}"


@pytest.mark.parametrize(
    "asked, said",
    [
        ({"layer": 6}, "layer goes from 0 to 5"),
        ({"head": -1}, "head goes from 0 to 11"),
        ({"query": 10**6}, "query goes from 0 to"),
        ({"head": "first"}, "'first' is none"),
        ({"layer": 1.5}, "1.5 is none"),
        ({"room": "shapes"}, "explore"),
    ],
)
def test_a_place_that_there_is_not_is_refused_with_what_there_is(run: core.Trace, asked: dict, said: str):
    with pytest.raises(core.HeadlightError, match=re.escape(said)):
        page_of(run, **asked)


WITHOUT = """
import sys

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {"streamlit", "starlette", "pandas", "plotly", "anywidget"}:
            raise ModuleNotFoundError(name)

sys.meta_path.insert(0, Missing())
import core
from app.notebook.page import page_of
print(len(page_of(core.trace(core.load("minilm"), "A cat sat."))))
"""


@pytest.mark.thorough
def test_it_needs_nothing_of_the_screens():
    done = subprocess.run([sys.executable, "-c", WITHOUT], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) > 100_000


# ---------------------------------------------------------------- the cell


@pytest.fixture(scope="module")
def cells(run: core.Trace, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two runs in one document, as a notebook has them."""
    other = core.trace(core.load("minilm"), "A cat sat on the mat.")
    html = f"{run.show(2, 1, IT, height=500)._repr_html_()}<hr>{other.show(layer=0, head=3)._repr_html_()}"
    path = tmp_path_factory.mktemp("cells") / "cells.html"
    path.write_text(f"<!doctype html><html><meta charset='utf-8'><title>cells</title><body>{html}", encoding="utf-8")
    return path


@pytest.mark.thorough
def test_two_cells_share_nothing(browser: Browser, cells: Path):
    context = browser.new_context(viewport={"width": 1100, "height": 1300}, offline=True)
    page = context.new_page()
    failed: list[str] = []
    page.on("pageerror", lambda error: failed.append(str(error)))
    page.goto(cells.as_uri())
    one, two = (page.frame_locator("iframe").nth(i).locator(".hl.explore") for i in range(2))
    assert page.locator("iframe").first.evaluate("frame => getComputedStyle(frame).height") == "500px"
    assert page.locator("iframe").first.get_attribute("sandbox") == "allow-scripts allow-downloads"
    assert not page.locator(".headlight-still").first.is_visible()
    assert page.evaluate("document.querySelectorAll('[id]').length") == 0  # nothing of a cell is named in the notebook
    eventually(page, lambda: _at(one, "2", "1"))
    eventually(page, lambda: _at(two, "0", "3"))
    two.locator(".overview").focus()
    page.keyboard.press("ArrowRight")
    eventually(page, lambda: _is_elsewhere(two, "0", "3"))
    _at(one, "2", "1")
    assert not failed
    context.close()


def _is_elsewhere(shown: Locator, layer: str, head: str) -> None:
    assert (shown.get_attribute("data-layer"), shown.get_attribute("data-head")) != (layer, head)


def _at(shown: Locator, layer: str, head: str) -> None:
    assert (shown.get_attribute("data-layer"), shown.get_attribute("data-head")) == (layer, head)


def test_where_a_host_takes_frames_and_styles_away_the_still_is_left(browser: Browser, run: core.Trace, tmp_path: Path):
    html = re.sub(r"<(iframe|style)\b.*?</\1>", "", run.show(2, 1)._repr_html_(), flags=re.DOTALL)
    path = tmp_path / "kept.html"
    path.write_text(f"<!doctype html><html><meta charset='utf-8'><body>{html}", encoding="utf-8")
    with opened(browser, path, scripts=False) as page:
        assert page.locator("svg").is_visible() and page.locator("tr").count() == 1 + len(run.source)
        assert "encoder.blocks.2.attn, head 1" in page.locator("figcaption").inner_text()


def test_a_trace_alone_shows_the_head_that_its_screen_opens_on(run: core.Trace):
    look = one_run(run, notebook_page.KEY, most=notebook_page.MOST).whole
    assert look is not None and look.look is not None and (look.look.layer, look.look.head) != (0, 0)
    assert f"encoder.blocks.{look.look.layer}.attn, head {look.look.head}:" in run._repr_html_()


@pytest.mark.parametrize("height", [0, 10**6, 640.5, "tall", True])
def test_a_height_that_no_cell_has_is_refused(run: core.Trace, height: object):
    with pytest.raises(core.HeadlightError, match="must be a whole number of pixels from 200 to 4000"):
        run.show(height=height)  # type: ignore[arg-type]


def test_where_the_screens_are_not_installed_it_says_so(run: core.Trace, monkeypatch: pytest.MonkeyPatch):
    def missing(name: str) -> None:
        raise ModuleNotFoundError(name="app.notebook")

    monkeypatch.setattr(sys.modules["core.trace"], "import_module", missing)  # core.trace itself is the function
    with pytest.raises(core.HeadlightError, match="no screens to show"):
        run.show()


# ---------------------------------------------------------------- the live cell


class Live(NamedTuple):
    view: Any
    sent: list[dict[str, Any]]


@pytest.fixture
def live(run: core.Trace) -> Live:
    """A widget as in a kernel, and what it sends to its browser half."""
    one = one_run(run, notebook_page.KEY, notebook_page.MOST)
    view = widget.live(run, notebook_page.placed(one, 2, 1, IT), 640)
    assert view is not None
    found: list[dict[str, Any]] = []
    view.send = lambda content, buffers=None: found.append(content)
    return Live(view, found)


def test_choices_are_traits_both_ways(live: Live):
    view, heard = live.view, []
    view.observe(lambda change: heard.append((change.name, change.new)), names=["layer", "head", "query"])
    view.head = 3
    view.set_state({"layer": 4, "head": 5, "query": None})  # as the browser half tells it
    assert heard == [("head", 3), ("layer", 4), ("head", 5), ("query", None)]
    assert (view.layer, view.head, view.query) == (4, 5, None)


@pytest.mark.parametrize(
    "name, asked, said", [("layer", 6, "0 to 5"), ("head", -1, "0 to 11"), ("query", 999, "query")]
)
def test_a_place_that_is_not_there_leaves_the_choice(live: Live, name: str, asked: int, said: str):
    before = getattr(live.view, name)
    with pytest.raises(core.HeadlightError, match=re.escape(said)):
        setattr(live.view, name, asked)
    assert getattr(live.view, name) == before


def test_another_text_is_run_by_the_same_model_in_the_same_head(live: Live):
    view = live.view
    view._hear(view, {"run": "The bird sang."}, [])
    assert live.sent == [{"sentence": ""}]
    assert view.run.source.text == view.text == "The bird sang." and view.run.loaded is not None
    assert (view.layer, view.head) == (2, 1)
    header, body = messages.unpack(view.picture)
    start, size = header["data"]
    picture, numbers = messages.unpack(body[start : start + size])
    assert picture["tokens"]["source"] == list(view.run.source.labels)
    shape = (6, 12, len(view.run.source), len(view.run.source))
    weights = np.frombuffer(numbers, "<u2", int(np.prod(shape)), picture["sites"][0]["weights_at"]).reshape(shape)
    np.testing.assert_allclose(weights[2, 1] / 65535, view.run.attention[2].pattern(1)[0].numpy(), atol=1e-5)


@pytest.mark.parametrize("text", ["", "word " * 5000])
def test_a_text_that_is_refused_is_a_sentence_and_the_picture_stays(live: Live, text: str):
    view, before = live.view, live.view.run
    view._hear(view, {"run": text}, [])
    assert view.run is before and view.text == before.source.text and view.picture == b""
    with pytest.raises(core.HeadlightError) as refused:
        core.trace(before.loaded, text)
    assert live.sent == [{"sentence": str(refused.value)}]


def test_the_live_cell_has_the_page_for_readers_without_a_kernel(live: Live, monkeypatch: pytest.MonkeyPatch):
    outputs: list[Any] = []
    monkeypatch.setattr("IPython.display.display", lambda shown, **_: outputs.append(shown))
    live.view._ipython_display_()
    page, bundle = (
        outputs  # apart: a host that knows of widgets, but has no kernel, draws none and leaves the text beside it out
    )
    assert page.data.count("<iframe") == 1 and f'data-headlight="{live.view.name}"' in page.data
    assert "application/vnd.jupyter.widget-view+json" in bundle and "text/html" not in bundle


def test_without_anywidget_the_page_is_shown(run: core.Trace, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(cell, "has_kernel", lambda: True)
    assert type(run.show()).__name__ == "LiveView"
    monkeypatch.setattr(widget, "find_spec", lambda name: None)
    assert type(run.show()).__name__ == "View"


# A model as hosts give it: its state, whom it tells of changes, and the bytes of a run in some form.
MODEL = """
const heard = {};
const state = STATE;
window.sent = [];
window.model = {
  get: (name) => state[name],
  set(name, value) {
    if (state[name] === value) return;
    state[name] = value;
    for (const hear of heard[`change:${name}`] ?? []) hear();
  },
  on: (name, hear) => (heard[name] ??= []).push(hear),
  off: (name, hear) => (heard[name] = (heard[name] ?? []).filter((one) => one !== hear)),
  save_changes: () => window.sent.push({ ...Object.fromEntries(["site", "layer", "head", "query"].map((n) => [n, state[n]])) }),
  send: (said) => window.sent.push(said),
  tell: (said) => (heard["msg:custom"] ?? []).forEach((hear) => hear(said)),
};
"""
FORMS = {
    "DataView": "new DataView(bytes.buffer)",
    "ArrayBuffer": "bytes.buffer",
    "typed array": "bytes",
    "base64": "text",
}


@pytest.mark.thorough(but=1)
@pytest.mark.parametrize("form", FORMS)
def test_the_browser_half(browser: Browser, live: Live, tmp_path: Path, form: str):
    view = live.view
    names = ("site", "layer", "head", "query", "text", "can_run", "name", "words")
    frame = cell.cell(view._place, 640, view.name)
    state = json.dumps({name: getattr(view, name) for name in names}).replace("<", "\\u003c")
    view.text = "The bird sang."
    script = widget.SCRIPT.read_text(encoding="utf-8").replace("export default { render };", "window.render = render;")
    path = tmp_path / "widget.html"
    path.write_text(
        f"<!doctype html><html><meta charset='utf-8'><body>{frame}<div id='cell'></div><script>{MODEL.replace('STATE', state, 1)}</script>"
        f"<script type='module'>{script}\nrender({{ model, el: document.getElementById('cell') }});</script>",
        encoding="utf-8",
    )
    context = browser.new_context(viewport={"width": 1100, "height": 900}, offline=True)
    page, failed = context.new_page(), []
    page.on("pageerror", lambda error: failed.append(str(error)))
    page.goto(path.as_uri())
    shown = page.frame_locator("iframe").locator(".hl.explore")
    eventually(page, lambda: _at(shown, "2", "1"))
    page.evaluate("model.set('head', 3)")  # Python chooses
    eventually(page, lambda: _at(shown, "2", "3"))
    shown.locator(".overview").focus()
    page.keyboard.press("ArrowRight")  # and the reader
    once(page, "() => sent.some(({ layer, head }) => layer === 2 && head === 4)")
    text = base64.b64encode(view.picture).decode()
    page.evaluate(
        f"(text) => {{ const bytes = Uint8Array.from(atob(text), (one) => one.charCodeAt(0)); model.set('query', 1); model.set('picture', {FORMS[form]}); }}",
        text,
    )
    eventually(page, lambda: _reads(shown, "bird"))
    _at(shown, "2", "4")
    page.get_by_role("textbox").fill("Something else")
    page.keyboard.press("Enter")
    once(page, "() => sent.some(({ run }) => run === 'Something else')")
    page.evaluate("model.tell({ sentence: 'That is too long.' })")
    assert "That is too long. The last picture is still there." in page.get_by_role("status").first.inner_text()
    _reads(shown, "bird")
    assert not failed
    context.close()


def _reads(shown: Locator, word: str) -> None:
    assert word in shown.locator(".strip").inner_text()
