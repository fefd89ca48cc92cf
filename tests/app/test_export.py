"""Exports: each is made in a browser as a visitor makes it, opened again, and held to core's numbers."""

from __future__ import annotations

import io
import json
import re
import struct
import subprocess
import sys
import zlib
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest
from playwright.sync_api import Browser, Page

import core
from app import export, export_routes, words
from app.figures import attention
from core import aggregate
from core.errors import Refused
from tests.app.browsing import ROOT, Screen, browsing, serving

NASTY = "<img src=x onerror=alert(1)> </script><script>alert(2)</script> =1+1, @cmd"
TODAY = date(2026, 1, 2)
SVG = "{http://www.w3.org/2000/svg}"
LAYER, HEAD, IT, ANIMAL = 3, 1, 10, 2


@pytest.fixture(scope="module")
def address(tmp_path_factory) -> Iterator[str]:
    log = tmp_path_factory.mktemp("server") / "log"
    with serving("tests/app/gallery.py", log) as address:
        yield address
    assert "Traceback" not in log.read_text()


@pytest.fixture(scope="module")
def browser(chromium: str) -> Iterator[Browser]:
    with browsing(chromium) as browser:
        yield browser


@pytest.fixture
def screen(browser: Browser, address: str) -> Iterator[Screen]:
    context = browser.new_context(viewport={"width": 1280, "height": 720}, reduced_motion="reduce")
    screen = Screen(context.new_page(), address)
    yield screen
    assert screen.foreign == []
    assert screen.errors == []
    assert screen.dialogs == []
    context.close()


@pytest.fixture(scope="module")
def model() -> core.Loaded:
    return core.load("minilm")


@pytest.fixture(scope="module")
def run(model: core.Loaded) -> core.Trace:
    return core.trace(model, words.EXAMPLE)


def saved(screen: Screen, label: str, *choices: str) -> tuple[str, bytes]:
    """Name and bytes of what a button of the Export menu saves, after these choices in it."""
    menu = screen.root.locator(".export")
    if not menu.is_visible():
        screen.root.get_by_role("button", name=words.COMPONENT["export"], exact=True).click()
    for choice in choices:
        menu.get_by_role("button", name=choice, exact=True).click()
    with screen.page.expect_download() as download:
        menu.get_by_role("button", name=label, exact=True).click()
    return download.value.suggested_filename, Path(download.value.path()).read_bytes()


def chunks(png: bytes) -> dict[str, str]:
    """The iTXt chunks of a PNG by keyword; every chunk's checksum is looked at."""
    assert png[:8] == b"\x89PNG\r\n\x1a\n"
    at, found = 8, {}
    while at < len(png):
        (length,) = struct.unpack_from(">I", png, at)
        name, data = png[at + 4 : at + 8], png[at + 8 : at + 8 + length]
        assert struct.unpack_from(">I", png, at + 8 + length)[0] == zlib.crc32(name + data)
        if name == b"iTXt":
            keyword, rest = data.split(b"\0", 1)
            assert rest[:4] == b"\0\0\0\0"  # not compressed, no language
            found[keyword.decode()] = rest[4:].decode()
        at += 12 + length
    return found


def size(png: bytes) -> tuple[int, int]:
    return struct.unpack(">II", png[16:24])


def table(data: bytes) -> tuple[list[str], pd.DataFrame]:
    """The comment lines of a CSV, and its table."""
    text = data.decode()
    comments = [line[2:] for line in text.split("\r\n") if line.startswith("#")]
    return comments, pd.read_csv(io.StringIO(text), comment="#", keep_default_na=False)


def matrix(frame: pd.DataFrame, unit: str = "weight") -> np.ndarray:
    return frame.pivot(index="query_position", columns="key_position", values=unit).to_numpy()


# ---------------------------------------------------------------- pictures


def test_png_has_its_size_and_says_what_it_shows(screen: Screen):
    screen.open()
    sizes = []
    for scale in (1, 2, 4):
        name, png = saved(screen, f"PNG {scale}×")
        sizes.append(size(png))
        assert name == "minilm-l6-layer-3-head-1" + (f"@{scale}x" if scale > 1 else "") + ".png"
        texts = chunks(png)
        assert texts["Title"] == "MiniLM-L6, self-attention, layer 3, head 1"
        assert "it gives 68 % of its attention to animal, rank 1 of 16." in texts["Description"]
        assert texts["Comment"].startswith("MiniLM-L6, self-attention, layer 3, head 1 (sha256 53aa51172d14)")
        assert "core.load('minilm')" in texts["Source"]
    assert sizes[1] == (2 * sizes[0][0], 2 * sizes[0][1]) and sizes[2] == (4 * sizes[0][0], 4 * sizes[0][1])
    assert min(sizes[0]) > 400


def pixel(page: Page, data: bytes, kind: str, x: int, y: int) -> list[int]:
    """The colour of one point of a picture, as the browser draws it."""
    return page.evaluate(
        """async ([bytes, kind, x, y]) => {
            const bitmap = new Image();
            bitmap.src = URL.createObjectURL(new Blob([Uint8Array.from(bytes)], { type: kind }));
            await bitmap.decode();
            const c = document.createElement("canvas").getContext("2d");
            Object.assign(c.canvas, { width: bitmap.naturalWidth, height: bitmap.naturalHeight });
            c.drawImage(bitmap, 0, 0);
            return [...c.getImageData(x, y, 1, 1).data];
        }""",
        [list(data), kind, x, y],
    )


def test_svg_has_real_text_and_agrees_with_the_png(screen: Screen, run: core.Trace):
    screen.open()
    _, data = saved(screen, "SVG")
    root = ElementTree.fromstring(data)
    texts = ["".join(node.itertext()) for node in root.iter(f"{SVG}text")]
    for label in run.source.labels:
        assert texts.count(label) >= 2  # once down, once across
    assert "MiniLM-L6, self-attention, layer 3, head 1" in texts
    assert any(text.startswith("query") for text in texts) and any(text.startswith("key") for text in texts)
    assert root.findtext(f"{SVG}title") == "MiniLM-L6, self-attention, layer 3, head 1"
    assert "68 %" in (root.findtext(f"{SVG}desc") or "")
    about = {node.tag.split("}")[1]: node.text or "" for node in root.find(f"{SVG}metadata") or ()}
    assert "Headlight" in about["caption"] and "core.trace" in about["snippet"]
    assert not list(root.iter(f"{SVG}script")) and "Sans" in root.attrib["font-family"]
    cells = [node for node in root.iter(f"{SVG}rect") if float(node.get("width", "0")) == float(node.get("height", "1"))]
    assert len(cells) == 16 * 16
    _, png = saved(screen, "PNG 1×")
    for cell in (cells[0], cells[IT * 16 + ANIMAL], cells[40]):
        x, y = (int(float(cell.attrib[name])) + 9 for name in ("x", "y"))
        drawn = pixel(screen.page, data, "image/svg+xml", x, y)
        assert drawn == pixel(screen.page, png, "image/png", x, y)
        assert cell.attrib["fill"] == f"rgb({drawn[0]},{drawn[1]},{drawn[2]})"


def test_a_picture_is_in_the_colours_on_screen_or_on_white(browser: Browser, address: str):
    context = browser.new_context(viewport={"width": 1280, "height": 720}, color_scheme="dark")
    screen = Screen(context.new_page(), address).open()
    assert sum(pixel(screen.page, saved(screen, "PNG 1×")[1], "image/png", 3, 3)[:3]) < 150
    assert pixel(screen.page, saved(screen, "PNG 1×", "on white")[1], "image/png", 3, 3)[:3] == [255, 255, 255]
    context.close()


def test_masked_cells_are_hatched_and_the_picture_says_why(screen: Screen):
    screen.open("?model=grouped")
    root = ElementTree.fromstring(saved(screen, "SVG")[1])
    hatched = [node for node in root.iter(f"{SVG}rect") if node.get("fill") == "url(#hatch)"]
    assert len(hatched) > 16
    assert any("in the future" in "".join(node.itertext()) for node in root.iter(f"{SVG}text"))


def test_the_lines_on_the_screen_are_exported_as_lines(screen: Screen):
    screen.open("?show=lines")
    name, data = saved(screen, "SVG")
    root = ElementTree.fromstring(data)
    assert name == "minilm-l6-layer-3-head-1-lines.svg"
    assert len(list(root.iter(f"{SVG}path"))) > 16
    texts = ["".join(node.itertext()) for node in root.iter(f"{SVG}text")]
    assert "animal  67.7 %" in texts
    assert "the fewest lines that carry 80 % of each row" in " ".join(texts)


@pytest.mark.parametrize("query", ["", "?metric=entropy"])
def test_all_heads_are_one_picture(screen: Screen, run: core.Trace, query: str):
    screen.open(query)
    name, data = saved(screen, "SVG", "all heads")
    root = ElementTree.fromstring(data)
    texts = ["".join(node.itertext()) for node in root.iter(f"{SVG}text")]
    assert name == "minilm-l6-all-heads.svg" and "Outlined: Layer 3 · Head 1" in texts
    if query:
        entropy = core.measures.entropy(run.attention[0].pattern(0)).mean().item()
        assert f"{entropy:.2f}" in texts and len(texts) > 72
    else:
        assert len(list(root.iter(f"{SVG}image"))) == 1


# ---------------------------------------------------------------- what an export says


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("", ["layer 3, head 1", "linear colour scale", "cpu float32", f"torch {core.trace.__globals__['torch'].__version__}"]),
        ("?kind=mean", ["mean of all 12 heads of layer 3"]),
        ("?kind=max&heads=3.1,3.4", ["max of heads 3.1, 3.4"]),
        ("?kind=rollout", ["attention rollout from layer 0 to layer 3"]),
        ("?kind=value&words=true", ["value-weighted", "sub-words merged to words", "norm"]),
        ("?hide=0&scale=log", ["hidden: [CLS] (0)", "renormalised", "logarithmic colour scale"]),
    ],
)
def test_the_caption_says_what_was_done(screen: Screen, query: str, said: list[str]):
    screen.open(query)
    root = ElementTree.fromstring(saved(screen, "SVG")[1])
    about = {node.tag.split("}")[1]: node.text or "" for node in root.find(f"{SVG}metadata") or ()}
    drawn = " ".join("".join(node.itertext()) for node in root.iter(f"{SVG}text"))
    for part in said:
        assert part in about["caption"]
        assert part in drawn
