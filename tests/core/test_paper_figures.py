"""Figures for a paper, read back from the files that are written: numbers, colours, fonts, words and sizes."""

from __future__ import annotations

import re
import sys
import zlib
from io import BytesIO
from typing import Any

import numpy as np
import pytest
import torch
from matplotlib.colors import LinearSegmentedColormap

import core
from core.read import report

TEXT = "When Mary and John went to the store, John gave a drink to"


@pytest.fixture(scope="module")
def run() -> core.Trace:
    return core.trace(core.load("smollm2"), TEXT)


def written(figure: Any, kind: str) -> bytes:
    file = BytesIO()
    figure.savefig(file, format=kind)
    return file.getvalue()


def opened(pdf: bytes) -> bytes:
    """The drawing of a PDF: its streams unpacked."""
    parts = []
    for stream in re.findall(rb"stream\r?\n(.*?)endstream", pdf, re.DOTALL):
        try:
            parts.append(zlib.decompress(stream))
        except zlib.error:
            parts.append(stream)
    return b"\n".join(parts)


def test_each_cell_is_the_weight_of_the_run_and_what_is_masked_has_none(run: core.Trace) -> None:
    figure = run.plot(23, 0)
    weights = run.attention.at(23).pattern(0)[0].cpu().numpy()
    (mesh,) = figure.axes[0].collections
    cells: Any = mesh.get_array()
    assert cells.shape == weights.shape
    past = np.tril(np.ones_like(weights, dtype=bool))
    assert np.asarray(cells)[past] == pytest.approx(weights[past]) and np.ma.getmaskarray(cells)[~past].all()
    assert figure.axes[0].patch.get_hatch()
    labels = list(run.source.labels)
    assert [tick.get_text() for tick in figure.axes[0].get_xticklabels()] == labels
    assert [tick.get_text() for tick in figure.axes[0].get_yticklabels()] == labels
    assert mesh.norm.vmax == pytest.approx(weights.max())


def test_without_a_head_it_is_the_one_that_the_screen_opens_on(run: core.Trace) -> None:
    look = core.opening_finding(run)
    assert f"layer {look.layer}, head {look.head}: " in run.plot().caption  # type: ignore[attr-defined]
    assert f"layer {look.layer}, head {look.head}: " in run.plot_query().caption  # type: ignore[attr-defined]


def test_the_sink_has_no_part_in_the_colours_and_is_named(run: core.Trace) -> None:
    record = run.attention.at(23)
    figure = run.plot(23, 0, sink=False)
    (mesh,) = figure.axes[0].collections
    rest = record.pattern(0)[0, :, 1:].max().item()
    assert mesh.norm.vmax == pytest.approx(rest) and rest < record.pattern(0).max().item()
    assert "“When” left out" in figure.axes[1].get_ylabel()
    assert f"Heads rest on “When”: it gets {record.pattern(0)[0, :, 0].mean():.2f} here" in figure.alt  # type: ignore[attr-defined]


def test_a_pdf_has_its_fonts_its_words_and_the_width_of_a_column(run: core.Trace) -> None:
    pdf = written(run.plot(23, 0), "pdf")
    assert b"/FontFile2" in pdf and b"/Type3" not in pdf and b"/CIDFontType2" in pdf
    left, bottom, right, top = map(float, re.findall(rb"/MediaBox \[ ?([\d. ]+)\]", pdf)[0].split())
    assert (left, bottom) == (0, 0) and right == pytest.approx(3.35 * 72, abs=0.5) and top < 3.35 * 72
    assert b"SmolLM2-135M, decoder self-attention, layer 23, head 0" in pdf
    # A path for each cell: none is an image.
    assert b"/Subtype /Image" not in pdf
    drawn = opened(pdf)
    assert drawn.count(b"\nB\n") >= 14 * 15 / 2 and drawn.count(b"\nn\n") == 14 * 13 / 2, "what is masked has no colour"


def test_an_svg_read_back_has_a_darker_cell_for_a_larger_weight(run: core.Trace) -> None:
    svg = written(run.plot(23, 0), "svg").decode()
    assert "<dc:title>SmolLM2-135M, decoder self-attention, layer 23, head 0" in svg
    assert "looks at “Mary”" in svg and "<text" not in svg, "letters are paths: no font has to be there"
    mesh = svg.split('<g id="QuadMesh_1">')[1].split("</g>\n  ")[0]
    fills = re.findall(r"fill: #([0-9a-f]{6})", mesh)
    weights = run.attention.at(23).pattern(0)[0].cpu()
    seen = weights[torch.ones_like(weights).tril().bool()].numpy()
    fills = fills[: len(seen)] if len(fills) > len(seen) else fills
    grey = np.array([0.299 * int(f[:2], 16) + 0.587 * int(f[2:4], 16) + 0.114 * int(f[4:], 16) for f in fills])
    assert len(grey) == len(seen)
    order = np.argsort(seen, kind="stable")
    assert (np.diff(grey[order]) <= 1).all(), "as grey, the order of the weights is the order of the shades"
    assert grey.min() < 60 and grey.max() > 250


def test_the_shades_darken_all_the_way() -> None:
    colours = LinearSegmentedColormap.from_list("weights", report.SHADES)(np.linspace(0, 1, 256))
    grey = colours[:, :3] @ [0.299, 0.587, 0.114]
    assert (np.diff(grey) < 0).all()


def test_all_heads_in_their_places_each_by_its_own_largest(run: core.Trace) -> None:
    figure = run.plot_heads()
    n = len(run.source)
    picture = (figure.axes[0].images or figure.axes[0].collections)[0]
    sheet: Any = picture.get_array()
    assert sheet.shape == (30 * (n + 1) - 1, 9 * (n + 1) - 1)
    tile = np.asarray(sheet)[23 * (n + 1) : 23 * (n + 1) + n, 4 * (n + 1) : 4 * (n + 1) + n]
    weights = run.attention.at(23).pattern(4)[0].cpu().numpy()
    assert tile == pytest.approx(weights / weights.max(), abs=1e-6)
    assert figure.get_figwidth() == 3.35 and figure.get_figheight() <= 8.5
    assert "all 270 heads" in figure.caption  # type: ignore[attr-defined]


LONG = " ".join(f"the quick brown fox number {i} jumps" for i in range(60))


@pytest.mark.thorough(but=1)
@pytest.mark.parametrize("text", ["one two three", LONG])
def test_a_row_adds_up_and_names_what_it_leaves_out(text: str) -> None:
    run = core.trace(core.load("smollm2"), text)
    n = len(run.source)
    axes = run.plot_query(layer=5, head=1).axes[0]
    bars: Any = axes.patches
    widths = [bar.get_width() for bar in bars]
    assert sum(widths) == pytest.approx(1, abs=1e-4)
    names = [tick.get_text() for tick in axes.get_yticklabels()]
    if text == LONG:
        assert n > 400 and len(names) == 13 and names[-1] == f"{n - 12} others"
        places = [int(re.findall(r"\((\d+)\)$", name)[0]) for name in names[:-1]]
        row = run.attention.at(5).row(1, n - 1).cpu()
        assert places == sorted(places) and set(places) == set(row.topk(12).indices.tolist())
        assert widths[:-1] == pytest.approx(row[places].tolist())
    else:
        assert names == list(run.source.labels)
    early = run.plot_query(1, layer=5, head=1)
    assert early.axes[0].get_xlabel().endswith(f"; {n - 2:,} keys are masked")


@pytest.mark.thorough
def test_a_long_text_keeps_thin_lines_and_says_that_cells_are_patches() -> None:
    run = core.trace(core.load("smollm2"), LONG)
    figure = run.plot(3, 2)
    cells: Any = figure.axes[0].images[0].get_array()
    assert cells.shape == (256, 256)
    weights = run.attention.at(3).pattern(2)[0].cpu()
    assert cells.max() == pytest.approx(weights.max().item())
    assert figure.axes[1].get_ylabel() == "largest attention weight of a patch"
    assert figure.axes[0].get_xlabel() == "position of the key"
    hidden = np.ma.getmaskarray(cells)
    assert not hidden[range(256), range(256)].any() and hidden[np.triu_indices(256, 2)].all()


@pytest.mark.thorough
def test_letters_that_no_font_has_are_numbers_and_signs_are_signs() -> None:
    known = report.font_coverage("a$x^2$\\alpha\U000f1234")
    assert known.missing == {"\U000f1234"} and known.label("a\U000f1234") == "aU+F1234"
    run = core.trace(core.load("smollm2"), "cost $x_1^$ and $\\frac{$ \U000f1234 <b>&")
    for kind in ("pdf", "svg", "png"):
        assert written(run.plot(2, 1), kind)
    assert written(run.plot_query(layer=2, head=1), "pdf")
    assert written(run.plot_heads(), "pdf")


def test_cross_attention_has_two_texts() -> None:
    run = core.trace(core.load("translator"), "the house is small", "das Haus")
    figure = run.plot(0, 1, site="cross_attn")
    assert "cross-attention, layer 0, head 1" in figure.caption  # type: ignore[attr-defined]
    assert [t.get_text() for t in figure.axes[0].get_xticklabels()] == list(run.source.labels)
    assert run.target is not None
    assert [t.get_text() for t in figure.axes[0].get_yticklabels()] == list(run.target.labels)
    assert "cross-attention" in run.plot_heads("cross_attn").caption  # type: ignore[attr-defined]


def test_a_head_that_is_not_there_is_named_with_those_that_are(run: core.Trace) -> None:
    with pytest.raises(IndexError, match=r"has no head 9: choose one of 0 to 8\."):
        run.plot(3, 9)
    with pytest.raises(IndexError, match=r"has no query 99: choose one of 0 to 13\."):
        run.plot_query(99, layer=3, head=1)
    with pytest.raises(KeyError, match="no attn in decoder layer 30"):
        run.plot(30, 0)
    with pytest.raises(KeyError, match="no cross_attn"):
        run.plot_heads("cross_attn")


def test_a_notebook_shows_vectors(run: core.Trace) -> None:
    figure: Any = run.plot_query(layer=3, head=1)
    assert figure._repr_svg_().lstrip().startswith("<?xml") and "</svg>" in figure._repr_svg_()


def test_without_matplotlib_it_says_what_to_install(run: core.Trace, monkeypatch: pytest.MonkeyPatch) -> None:
    report.paper_figure.cache_clear()
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match="pip install"):
        run.plot(3, 1)
    report.paper_figure.cache_clear()
