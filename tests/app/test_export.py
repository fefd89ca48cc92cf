"""Exports: each is made in a browser as a visitor makes it, opened again, and held to core's numbers."""

from __future__ import annotations

import io
import json
import re
import struct
import subprocess
import sys
import zlib
from dataclasses import replace
from datetime import date
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest
import torch
from playwright.sync_api import Browser, Dialog, Page, expect

import core
from app.attention import export, inspect, transform
from app.attention import selection as attention_selection
from app.attention import words as attention_words
from app.export import files
from app.export import offline as export_offline
from app.rooms.explore import routes
from app.rooms.explore import words as explore_words
from app.session import words
from app.transport import modules
from core.checkpoints import Loaded
from core.errors import HeadlightError
from core.read import measures
from tests.app.browsing import ROOT, Screen
from tests.app.plain import AnotherPlain, Plain
from tests.app.served import ask, serve

APP = "tests/app/gallery.py"
NASTY = "<img src=x onerror=alert(1)> </script><script>alert(2)</script> =1+1, @cmd"
TODAY = date(2026, 1, 2)
SVG = "{http://www.w3.org/2000/svg}"
LAYER, HEAD, IT, ANIMAL = 3, 1, 10, 2


@pytest.fixture(scope="module")
def model() -> Loaded:
    return core.load("minilm")


@pytest.fixture(scope="module")
def run(model: Loaded) -> core.Trace:
    return core.trace(model, words.EXAMPLE)


def saved(screen: Screen, label: str, *choices: str) -> tuple[str, bytes]:
    """Name and bytes of what a button of the Export menu saves, after these choices in it, of a picture that is all there."""
    expect(screen.root).not_to_have_attribute("data-fetching", "true")
    menu = screen.files()
    if not menu.is_visible():
        screen.root.get_by_role("button", name=attention_words.COMPONENT["export"], exact=True).click()
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


def test_png_has_its_size_and_says_what_it_shows(plain: Plain):
    plain.open()
    sizes = []
    for scale in (1, 2, 4):
        name, png = saved(plain, f"PNG {scale}×")
        sizes.append(size(png))
        assert name == "minilm-l6-layer-3-head-1" + (f"@{scale}x" if scale > 1 else "") + ".png"
        texts = chunks(png)
        assert texts["Title"] == "MiniLM-L6, self-attention, layer 3, head 1"
        assert "it gives 68 % of its attention to animal, rank 1 of 16." in texts["Description"]
        assert texts["Comment"].startswith("MiniLM-L6, self-attention, layer 3, head 1 (sha256 53aa51172d14)")
        assert "hl.load('minilm')" in texts["Source"]
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


def test_svg_has_real_text_and_agrees_with_the_png(plain: Plain, run: core.Trace):
    plain.open("?columns=equal")
    _, data = saved(plain, "SVG")
    root = ElementTree.fromstring(data)
    texts = ["".join(node.itertext()) for node in root.iter(f"{SVG}text")]
    for label in run.source.labels:
        assert texts.count(label) >= 2  # once down, once across
    assert "MiniLM-L6, self-attention, layer 3, head 1" in texts
    assert any(text.startswith("query") for text in texts) and any(text.startswith("key") for text in texts)
    assert root.findtext(f"{SVG}title") == "MiniLM-L6, self-attention, layer 3, head 1"
    assert "68 %" in (root.findtext(f"{SVG}desc") or "")
    about = {node.tag.split("}")[1]: node.text or "" for node in root.find(f"{SVG}metadata") or ()}
    assert "Headlight" in about["caption"] and "hl.trace" in about["snippet"]
    assert not list(root.iter(f"{SVG}script")) and "Sans" in root.attrib["font-family"]
    cells = [
        node for node in root.iter(f"{SVG}rect") if float(node.get("width", "0")) == float(node.get("height", "1"))
    ]
    assert len(cells) == 16 * 16
    _, png = saved(plain, "PNG 1×")
    for cell in (cells[0], cells[IT * 16 + ANIMAL], cells[40]):
        x, y = (int(float(cell.attrib[name])) + 9 for name in ("x", "y"))
        drawn = pixel(plain.page, data, "image/svg+xml", x, y)
        assert drawn == pixel(plain.page, png, "image/png", x, y)
        assert cell.attrib["fill"] == f"rgb({drawn[0]},{drawn[1]},{drawn[2]})"


def test_a_map_under_its_words_is_saved_as_it_is_drawn(plain: Plain):
    """Columns as wide as the words over them, the arc, and of a decoder what each row is about to write."""
    plain.open()
    root = ElementTree.fromstring(saved(plain, "SVG")[1])
    cells = [node for node in root.iter(f"{SVG}rect") if node.get("height") == "30"]
    assert len(cells) == 16 * 16
    widths = {round(float(node.attrib["width"])) for node in cells}
    assert max(widths) > 1.3 * min(widths)
    assert not any(node.get("transform") for node in root.iter(f"{SVG}text"))  # no name leans
    arcs = [node for node in root.iter(f"{SVG}path") if node.get("fill") == "none" and node.get("stroke") == "#b45309"]
    assert len(arcs) == 1
    plain.open("?model=translator")
    plain.until("root.querySelector('.facts').textContent.includes('next in the text')")
    root = ElementTree.fromstring(saved(plain, "SVG")[1])
    texts = ["".join(node.itertext()) for node in root.iter(f"{SVG}text")]
    assert {"→", "snow", "96.2 %", "will write"} <= {*texts}


def test_a_folded_map_is_saved_as_it_is_folded(plain: Plain):
    """Its rows and columns and no others, and how much of the row the others hold."""
    plain.open("?model=minilm&text=" + "+".join(f"the+cat+saw+{i}+dogs" for i in range(14)))
    plain.wait(fetching="false")  # its rows are fetched, and which columns are shown follows from them
    shown = [part.split(":")[0] for part in plain.data()["folded"].split()]
    keys = [plain.tokens()[int(k)] for k in shown if int(k) >= 0]
    _, data = saved(plain, "SVG")
    written = ["".join(node.itertext()) for node in ElementTree.fromstring(data).iter(f"{SVG}text")]
    assert all(key in written for key in keys)
    folded = len(plain.tokens()) - len(keys)
    assert any(f"{folded} of {len(plain.tokens())} columns are folded (" in line for line in written)
    assert not any("Click" in line for line in written)


def test_a_picture_of_hebrew_has_its_first_key_at_the_right(plain: Plain):
    plain.open("?model=minilm&columns=equal&text=שלום לכל")
    root = ElementTree.fromstring(saved(plain, "SVG")[1])
    cells = [float(node.attrib["x"]) for node in root.iter(f"{SVG}rect") if node.get("width") == node.get("height")]
    n = len(plain.tokens())
    assert len(cells) == n * n and cells[:n] == sorted(cells[:n], reverse=True)
    texts = [("".join(node.itertext()), node.get("transform", "")) for node in root.iter(f"{SVG}text")]
    across = {label: float(turned.split("(")[1].split(" ")[0]) for label, turned in texts if turned}
    assert across["[CLS]"] > across["[SEP]"]
    assert "← key" in [label for label, _ in texts]


@pytest.mark.thorough
def test_a_picture_is_in_the_colours_on_screen_or_on_white(plain_another: AnotherPlain):
    plain = plain_another((1280, 720), scheme="dark").open()
    assert sum(pixel(plain.page, saved(plain, "PNG 1×")[1], "image/png", 3, 3)[:3]) < 150
    assert pixel(plain.page, saved(plain, "PNG 1×", "on white")[1], "image/png", 3, 3)[:3] == [255, 255, 255]


def test_masked_cells_are_hatched_and_the_picture_says_why(plain: Plain):
    plain.open("?model=grouped&layer=3")
    root = ElementTree.fromstring(saved(plain, "SVG")[1])
    hatched = [node for node in root.iter(f"{SVG}rect") if node.get("fill") == "url(#hatch)"]
    assert len(hatched) > 16
    assert any("in the future" in "".join(node.itertext()) for node in root.iter(f"{SVG}text"))


@pytest.mark.thorough(but=1)
@pytest.mark.parametrize("label", ["SVG", "CSV", "NPZ", "HTML", "PNG 1×"])
def test_a_file_is_of_what_was_on_the_screen_when_it_was_asked_for(plain: Plain, label: str):
    plain.open()
    quiet = saved(plain, label)
    plain.page.evaluate("""() => {
        const ask = window.fetch;
        window.fetch = async (...given) => { await new Promise((wait) => setTimeout(wait, 200)); return ask(...given); };
    }""")
    with plain.page.expect_download() as download:
        plain.files().get_by_role("button", name=label, exact=True).click(no_wait_after=True)
        plain.root.locator(".overview").focus()
        plain.page.keyboard.press("ArrowDown")
        plain.page.keyboard.press("Escape")
    assert plain.data()["layer"] == "4"
    assert download.value.suggested_filename == quiet[0]
    hasty = Path(download.value.path()).read_bytes()
    assert content(label, hasty) == content(label, quiet[1])


def content(label: str, data: bytes) -> object:
    """What a file holds: an archive keeps the time at which it was packed as well."""
    if label == "NPZ":
        with np.load(io.BytesIO(data)) as found:
            return {name: found[name].tolist() for name in found}
    return data


def test_the_lines_on_the_screen_are_exported_as_lines(plain: Plain):
    plain.open("?show=lines")
    name, data = saved(plain, "SVG")
    root = ElementTree.fromstring(data)
    assert name == "minilm-l6-layer-3-head-1-lines.svg"
    assert len(list(root.iter(f"{SVG}path"))) > 16
    texts = ["".join(node.itertext()) for node in root.iter(f"{SVG}text")]
    assert "animal  68 %" in texts
    assert "the fewest lines that carry 80 % of each row" in " ".join(texts)


@pytest.mark.parametrize("query", ["", "?metric=entropy"])
def test_all_heads_are_one_picture(plain: Plain, run: core.Trace, query: str):
    plain.open(query)
    name, data = saved(plain, "SVG", "all heads")
    root = ElementTree.fromstring(data)
    texts = ["".join(node.itertext()) for node in root.iter(f"{SVG}text")]
    assert name == "minilm-l6-all-heads.svg" and "Outlined: Layer 3 · Head 1" in texts
    if query:
        entropy = measures.entropy(run.attention[0].pattern(0)).mean().item()
        assert f"{entropy:.2f}" in texts and len(texts) > 72
    else:
        assert len(list(root.iter(f"{SVG}image"))) == 1


# ---------------------------------------------------------------- what an export says


@pytest.mark.thorough(but=2)
@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("", ["layer 3, head 1", "linear colour scale", "cpu float32", f"torch {torch.__version__}"]),
        ("?kind=mean", ["mean of all 12 heads of layer 3"]),
        ("?kind=max&heads=3.1,3.4", ["max of heads 3.1, 3.4"]),
        ("?kind=rollout", ["attention rollout from layer 0 to layer 3"]),
        ("?kind=value&words=true", ["value-weighted", "sub-words merged to words", "norm"]),
        ("?hide=0&scale=log", ["hidden: [CLS] (0)", "renormalised", "logarithmic colour scale"]),
        ("?bounds=0.01,0.3", ["linear colour scale from 0.01 to 0.3"]),
    ],
)
def test_the_caption_says_what_was_done(plain: Plain, query: str, said: list[str]):
    plain.open(query)
    root = ElementTree.fromstring(saved(plain, "SVG")[1])
    about = {node.tag.split("}")[1]: node.text or "" for node in root.find(f"{SVG}metadata") or ()}
    drawn = " ".join("".join(node.itertext()) for node in root.iter(f"{SVG}text"))
    for part in said:
        assert part in about["caption"]
        assert part in drawn


# ---------------------------------------------------------------- numbers


def test_csv_and_npz_hold_core_s_numbers(plain: Plain, run: core.Trace):
    plain.open()
    pattern = run.attention[LAYER].pattern(HEAD)[0].numpy()
    name, data = saved(plain, "CSV")
    comments, frame = table(data)
    assert name == "minilm-l6-layer-3-head-1.csv" and b"\r\n" in data
    assert comments[0].startswith("MiniLM-L6, self-attention, layer 3, head 1") and "68 %" in comments[1]
    assert np.array_equal(matrix(frame).astype(np.float32), pattern)
    assert frame["query"].iloc[IT * 16] == "it" and frame["key"].iloc[ANIMAL] == "animal"
    name, data = saved(plain, "NPZ")
    arrays = np.load(io.BytesIO(data), allow_pickle=False)
    assert np.array_equal(arrays["weight"], pattern) and arrays["weight"].dtype == np.float32
    assert list(arrays["keys"]) == list(run.source.labels) and not arrays["masked"].any()
    assert (
        "Headlight" in str(arrays["caption"]) and "68 %" in str(arrays["alt"]) and "hl.trace" in str(arrays["snippet"])
    )


def snippet_numbers(snippet: str, tmp_path: Path) -> np.ndarray:
    """What the code of an export computes, run as a reader would run it."""
    script = tmp_path / "snippet.py"
    out = tmp_path / "weights.npy"
    script.write_text(f"{snippet}\nimport numpy\nnumpy.save({str(out)!r}, weights.numpy())\n", encoding="utf-8")
    done = subprocess.run([sys.executable, str(script)], env={"PYTHONPATH": str(ROOT)}, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return np.load(out)


@pytest.mark.thorough
def test_numbers_of_a_decoder_say_what_each_row_is_about_to_write(plain: Plain):
    plain.open("?model=translator")
    _, frame = table(saved(plain, "CSV")[1])
    told = core.trace(core.load("translator"), "Ein Hund rennt durch den Schnee.", "A dog runs through the snow.")
    rows = frame.drop_duplicates("query_position")
    assert rows["next_word"].tolist() == ["A", "dog", "runs", "through", "the", "snow", ".", "</s>"]
    chances = [told.predictions([i], 1).probs[0][0] for i in range(8)]
    assert rows["next_probability"].tolist() == pytest.approx(chances, abs=1e-5)
    with np.load(io.BytesIO(saved(plain, "NPZ")[1])) as found:
        assert found["next_words"].tolist() == rows["next_word"].tolist()
        assert found["next_probabilities"] == pytest.approx(chances, abs=1e-5)
    plain.root.get_by_role("button", name="self", exact=True).click()
    plain.wait(site="encoder")
    assert "next_word" not in table(saved(plain, "CSV")[1])[1]  # an encoder writes nothing


@pytest.mark.thorough(but=1)
@pytest.mark.parametrize(
    ("query", "unit"),
    [
        ("", "weight"),
        ("?kind=mean&hide=0,15&words=true", "weight"),
        ("?kind=value&head=4", "norm"),
        (
            "?kind=rollout&text=" + NASTY.replace(" ", "+").replace("=", "%3D").replace("<", "%3C").replace(">", "%3E"),
            "weight",
        ),
    ],
)
def test_the_code_of_an_export_gives_its_numbers(plain: Plain, tmp_path: Path, query: str, unit: str):
    plain.open(query)
    comments, frame = table(saved(plain, "CSV")[1])
    snippet = "\n".join(comments[2:])
    assert np.allclose(snippet_numbers(snippet, tmp_path), matrix(frame, unit), rtol=1e-5, atol=1e-7)


@pytest.mark.thorough
def test_numbers_of_a_zoomed_map_are_still_whole_and_a_picture_says_which_part_it_is(plain: Plain):
    plain.open("?whole=true&text=" + "+".join(["one two three"] * 10))
    plain.root.get_by_role("button", name="Zoom in").click()
    plain.until("root.querySelector('.matrix')")
    _, frame = table(saved(plain, "CSV")[1])
    assert len(frame) == 32 * 32
    drawn = " ".join("".join(n.itertext()) for n in ElementTree.fromstring(saved(plain, "SVG")[1]).iter(f"{SVG}text"))
    assert "part of the map: queries" in drawn and "of 32" in drawn


def test_what_the_map_hides_is_said_in_the_table(plain: Plain):
    plain.open("?model=grouped&layer=3&hide=1")
    _, frame = table(saved(plain, "CSV")[1])
    assert set(frame["masked"]) == {"", "future", "outside the window", "hidden"}
    assert (frame.loc[frame["masked"] != "", "weight"] == 0).all()


def numbers_of(run: core.Trace, selection: attention_selection.Selection, most: int = files.CSV_CELLS) -> files.Numbers:
    service, facts = serve(run)
    return ask(attention_selection.numbers(service, facts, selection, most))


def test_labels_never_become_formulas(run: core.Trace, model: Loaded):
    nasty = core.trace(model, '=1+1 @x -2 +3 "quoted", =4')
    selection = attention_selection.Selection(record=0)
    found, facts = numbers_of(nasty, selection), serve(nasty)[1]
    about = (export.caption(facts, selection, TODAY), "alt,=5\n;@x", export.snippet(facts, selection))
    text = "".join(files.csv_lines(found, about, "weight"))
    comments, frame = table(text.encode())
    assert not any(re.search(r"[,;\t][=+\-@]|^[=+\-@]", line) for line in comments)
    assert not frame["key"].str.match(r"[=+\-@]").any()
    assert {"'=", "'@", "'-", "'+", '"'} <= set(frame["key"])
    assert np.array_equal(matrix(frame).astype(np.float32), nasty.attention[0].pattern(0)[0].numpy())


@pytest.mark.parametrize("kind", ["head", "mean", "max", "rollout", "value"])
@pytest.mark.parametrize("merged", [False, True])
def test_numbers_are_what_the_selection_says(model: Loaded, kind, merged: bool):
    run = core.trace(model, "An unbelievably long tokenization")
    selection = attention_selection.Selection(record=2, head=5, kind=kind, hide=(0, 3), merged=merged)
    expected = {
        "head": lambda: run.attention[2].pattern(5)[0],
        "mean": lambda: run.attention[2].pattern().mean(0),
        "max": lambda: run.attention[2].pattern().amax(0),
        "rollout": lambda: measures.rollout(run.attention, 2),
        "value": lambda: run.attention[2].pattern(5)[0] * run.attention[2].value_norms(5)[0],
    }[kind]().clone()
    expected[:, [0, 3]] = 0
    if kind != "value":
        expected /= expected.sum(-1, keepdim=True)
    found, facts = numbers_of(run, selection), serve(run)[1]
    if merged:
        assert "unbelievably" in found.keys and "tokenization" in found.queries
        assert found.values.sum() == pytest.approx(
            sum(
                expected[group].mean(0).sum().item()
                for group in map(list, transform.axes(facts, attention_selection.transform_of(selection))[0])
            ),
            rel=1e-5,
        )
    else:
        assert np.allclose(found.values, expected.numpy(), atol=1e-6)
    part = numbers_of(run, attention_selection.replace(selection, rows=(1, 3), columns=(2, 4)))
    assert np.array_equal(part.values, found.values[1:3, 2:4]) and part.keys == found.keys[2:4]


def test_a_table_that_is_too_large_is_refused_with_both_numbers(run: core.Trace):
    with pytest.raises(HeadlightError, match="256, and this file may hold 100"):
        numbers_of(run, attention_selection.Selection(record=0), 100)


def test_several_heads_are_their_mean_in_a_map_and_apart_in_lines(run: core.Trace):
    asked = {"site": "encoder", "layer": "3", "head": "1", "heads": "3.1,3.4"}
    for show, kind in (("map", "mean"), ("lines", "head")):
        found = attention_selection.selected(serve(run)[1], asked | {"show": show})
        assert (found.kind, found.members) == (kind, ((3, 1), (3, 4)))


@pytest.mark.parametrize(
    ("params", "said"),
    [
        ({"site": "cross"}, "site must be one of encoder"),
        ({"layer": "6"}, "from 0 to 5"),
        ({"head": "x"}, "whole number"),
        ({"kind": "sum"}, "kind must be one of"),
        ({"heads": "3.12"}, "from 0 to 11"),
        ({"hide": "99"}, "from 0 to 15"),
        ({"hide": ",".join(map(str, range(16)))}, "Every key would be hidden"),
        ({"q0": "5", "q1": "5"}, "from 6 to 16"),
        ({"scale": "<b>"}, "“<b>”"),
        ({"bounds": "0.5,0.1"}, "the smaller one first"),
    ],
)
def test_parameters_that_do_not_do_get_a_sentence(run: core.Trace, params: dict[str, str], said: str):
    with pytest.raises(HeadlightError) as refusal:
        attention_selection.selected(serve(run)[1], {"site": "encoder", "layer": "3", "head": "1"} | params)
    assert said in str(refusal.value)


def test_the_route_answers_for_runs_that_it_does_not_know(plain: Plain):
    plain.open()
    answer = plain.page.request.get(f"{plain.address}/headlight/export?format=csv&run=none")
    assert answer.status == 404 and "Reload" in answer.text()
    answer = plain.page.request.get(f"{plain.address}/headlight/export?format=exe")
    assert answer.status == 400 and "format must be one of" in answer.text()


# ---------------------------------------------------------------- the page that works offline


def opened(browser: Browser, path: Path, data: bytes) -> tuple[Page, list[str]]:
    """An exported file opened without a network, and everything that it should not have done."""
    path.write_bytes(data)
    context = browser.new_context(viewport={"width": 1280, "height": 720}, offline=True)
    page, faults = context.new_page(), []
    page.on("request", lambda r: None if r.url.startswith(("file:", "data:", "blob:")) else faults.append(r.url))
    page.on("pageerror", lambda error: faults.append(str(error)))
    page.on("console", lambda message: faults.append(message.text) if message.type == "error" else None)

    def dismiss(dialog: Dialog) -> None:
        faults.append(dialog.message)
        dialog.dismiss()

    page.on("dialog", dismiss)
    page.goto(path.as_uri())
    return page, faults


def test_the_page_works_offline(plain: Plain, browser: Browser, tmp_path: Path, run: core.Trace):
    plain.open("?layer=2&head=7&query=6&scale=log&metric=maps")
    name, data = saved(plain, "HTML")
    assert name == "minilm-l6-layer-2-head-7.html" and b"default-src 'none'" in data
    page, faults = opened(browser, tmp_path / name, data)
    offline = Screen(page, "file://")
    offline.painted()
    shown = offline.data()
    assert (shown["layer"], shown["head"], shown["locked"], shown["scale"]) == ("2", "7", "6", "log")
    assert offline.facts() == plain.facts()
    for text in ("MiniLM-L6, self-attention, layer 2, head 7", "cross gives", "Heat map of 16 queries"):
        assert text in page.locator("aside").inner_text()
    assert "hl.trace" in (page.locator("#snippet").text_content() or "")
    offline.until("root.querySelectorAll('.proofs .holds').length === 2")
    offline.root.locator(".overview").focus()
    page.keyboard.press("ArrowRight")
    offline.wait(layer="2", head="8")
    page.mouse.move(*offline.cell(IT, ANIMAL))
    offline.wait(cell=f"{IT},{ANIMAL}")
    value = run.attention[2].row(8, IT)[ANIMAL].item()
    assert float(offline.data()["value"]) == pytest.approx(value, abs=1e-5)
    assert f"{value:.4f}" in offline.root.locator(".tip:not(.card)").inner_text()
    offline.root.get_by_role("button", name="lines", exact=True).click()
    offline.wait(show="lines")
    assert offline.root.get_by_role("button", name=attention_words.COMPONENT["export"], exact=True).count() == 0
    assert faults == []
    page.context.close()


def test_markup_in_a_sentence_is_text_in_every_export(plain: Plain, browser: Browser, tmp_path: Path, model: Loaded):
    plain.open()
    plain.run_text(NASTY)
    for label in ("SVG", "HTML"):
        name, data = saved(plain, label)
        assert b"<img" not in data and data.count(b"<script") == (2 if label == "HTML" else 0)
        page, faults = opened(browser, tmp_path / name, data)
        if label == "HTML":
            Screen(page, "file://").painted()
            assert "<img src=x" in (page.locator("#snippet").text_content() or "")
        page.wait_for_timeout(300)
        assert page.evaluate("document.querySelectorAll('img, foreignObject').length") == 0
        assert faults == []
        page.context.close()
    texts = chunks(saved(plain, "PNG 1×")[1])
    assert "<img src=x onerror=alert(1)>" in texts["Source"]
    labels = list(core.trace(model, NASTY).source.labels)
    name, data = saved(plain, "CSV")
    assert name.endswith(".csv")  # which a browser saves and never shows
    table = pd.read_csv(io.BytesIO(data), comment="#", keep_default_na=False)
    assert [text.removeprefix("'") for text in table["query"].unique()] == list(dict.fromkeys(labels))
    with np.load(io.BytesIO(saved(plain, "NPZ")[1])) as arrays:
        assert arrays["queries"].tolist() == labels
        assert "<img src=x onerror=alert(1)>" in str(arrays["snippet"])


@pytest.mark.usefixtures("own_modules")
def test_modules_are_bundled_in_the_order_of_their_imports(tmp_path: Path):
    def bundled(**sources: str) -> str:
        for name, source in sources.items():
            (tmp_path / f"{name}.js").write_text(source, encoding="utf-8")
        modules.add("rooms/bundled/browser", tmp_path)
        return export_offline.bundle("rooms/bundled/browser/a.js")

    script = bundled(a='import { two as zwei } from "./b.js";\nzwei(1);\n', b="// one less\nexport const two = 2;\n")
    assert "one less" not in script
    assert "\nzwei(1);" in bundled(a='import { two as zwei } from "./b.js";\n  zwei(1);\n'), "indentation is left out"
    assert "`\n  two`" in bundled(c="export const text = `\n  two`;\n", a='import { text } from "./c.js";\ntext;\n')
    assert script.index("const two = 2") < script.index("const { two: zwei }")
    script = bundled(a='import b from "./b.js";\nb();\n', b="const made = (of) => of;\nexport default made(1);\n")
    assert "const byDefault = made(1);" in script and "return { default: byDefault };" in script
    with pytest.raises(ValueError, match="does not know"):
        bundled(a='import b, { two as zwei } from "./b.js";\n', b="export default function () {}\n")
    with pytest.raises(ValueError, match=r"a\.js → \S*b\.js → \S*a\.js"):
        bundled(a='import { b } from "./b.js";\n', b='import { a } from "./a.js";\n')
    assert len(routes.page("en")) < 655_000  # 62 kB of it the writer of PDF


# ---------------------------------------------------------------- Plotly, the clipboard, the keyboard


@pytest.mark.thorough
def test_plotly_opens_on_demand(screen: Screen):
    screen.record().open("?scale=log")
    saved(screen, "CSV")
    assert not [url for url in screen.requests if "plotly" in url.lower()]
    screen.files().get_by_role("button", name="Plotly", exact=True).click()
    chart = screen.page.locator(".js-plotly-plot")
    chart.wait_for()
    assert [url for url in screen.requests if "plotly" in url.lower()]
    expect(screen.page.get_by_role("dialog", name=explore_words.INSPECT)).to_contain_text("logarithmic colour scale")
    expect(chart.locator(".ytick text").get_by_text("animal", exact=True)).to_be_visible()


def test_the_figure_keeps_equal_tokens_apart_and_masked_cells_empty(model: Loaded):
    run = core.trace(model, "the the the <b>")
    selection = attention_selection.Selection(record=3, head=1, hide=(0,))
    figure = inspect.heatmap(numbers_of(run, selection), selection, "dark")
    spec = json.loads(figure.to_json() or "")
    axis = spec["layout"]["xaxis"]
    assert (
        axis["tickvals"] == [0, 1, 2, 3, 4, 5, 6, 7]
        and axis["ticktext"][1:4] == ["the"] * 3
        and "&lt;" in axis["ticktext"]
    )
    values = np.array(figure.data[0].customdata, dtype=float)  # type: ignore[attr-defined]
    assert np.isnan(values[:, 0]).all()
    assert np.allclose(values[:, 1:].sum(1), 1, atol=1e-5)
    assert (figure.data[0].zmin, figure.data[0].zmax) == (0, 1)  # type: ignore[attr-defined]
    for scale, ends in (("linear", (0.01, 0.1)), ("log", (-2, -1))):
        bounded = replace(selection, scale=scale, bounds=(0.01, 0.1))
        trace = inspect.heatmap(numbers_of(run, bounded), bounded).data[0]
        assert (trace.zmin, trace.zmax) == pytest.approx(ends)  # type: ignore[attr-defined]
    assert figure.layout.template.layout.colorway != ("#000001",)  # type: ignore[attr-defined]
    with pytest.raises(HeadlightError, match="Plotly draws at most"):
        inspect.check_size(serve(run)[1], attention_selection.Selection(record=0), most=10)


def test_code_and_description_go_to_the_clipboard(plain: Plain):
    plain.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    plain.open()
    saved(plain, "CSV")
    menu = plain.files()
    for label, part in (("code", "run.attention[3].pattern(1)"), ("description", "Heat map of 16 queries")):
        menu.get_by_role("button", name=label, exact=True).click()
        menu.get_by_text("Copied.").wait_for()
        assert part in plain.page.evaluate("navigator.clipboard.readText()")
        menu.get_by_role("button", name="as on screen").click()


def test_the_menu_is_used_by_keyboard_alone(plain: Plain):
    plain.open()
    plain.root.get_by_role("button", name=attention_words.COMPONENT["export"], exact=True).focus()
    plain.page.keyboard.press("Enter")
    plain.files().wait_for()
    reached: list[str] = []
    for _ in range(14):
        reached.append(plain.root.evaluate("root => root.getRootNode().activeElement?.textContent ?? ''"))
        if reached[-1] == "SVG":
            break
        plain.page.keyboard.press("Tab")
    assert {"map", "all heads", "PNG 1×", "SVG"} <= set(reached)
    with plain.page.expect_download() as download:
        plain.page.keyboard.press("Enter")
    assert download.value.suggested_filename.endswith(".svg")
    plain.page.keyboard.press("Escape")
    plain.files().wait_for(state="hidden")
    focused = plain.root.evaluate("root => root.getRootNode().activeElement?.textContent")
    assert focused == attention_words.COMPONENT["export"]
