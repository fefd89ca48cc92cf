"""A run as a page for a notebook: in a browser from a file, without scripts, without Streamlit, and what is refused."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page

import core
from app.notebook import page as notebook_page
from app.notebook.page import page_of
from core.service import one_run

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
    with pytest.raises(core.Refused, match=re.escape(said)):
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


def test_it_needs_nothing_of_the_screens():
    done = subprocess.run([sys.executable, "-c", WITHOUT], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) > 100_000
