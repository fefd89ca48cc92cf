"""Token lines and the sentence strip, in a real browser: every line and every number is held to core's."""

from __future__ import annotations

import itertools
import json
from typing import Any, Literal

import numpy as np
import pytest
import torch

import core
from app.attention import words as attention_words
from app.kit import theme
from app.session import words
from app.transport import messages
from core.checkpoints import Loaded
from tests.app import models
from tests.app.browsing import Screen, box_of
from tests.app.plain import Plain, opened
from tests.app.served import serve

APP = "tests/app/gallery.py"
LAYER, HEAD, IT, ANIMAL = 3, 1, 10, 2  # where the view opens, and what it shows there
SHORT = "I love old dogs."
LONGER = " ".join(["The old keeper watched the ships pass in the evening, and he wrote down their names."] * 3)
LARGE = f"?show=lines&layer={LAYER}&head={HEAD}&text={' '.join([LONGER] * 3)}"
PAIR = "?model=pair&text=The+dog+sat+down+there&target=Der+Hund+sass+dort&site=cross&query=3&show=lines"


drawn = opened("?show=lines&query=none")


@pytest.fixture(scope="module")
def model() -> Loaded:
    return core.load("minilm")


@pytest.fixture(scope="module")
def run(model: Loaded) -> core.Trace:
    return core.trace(model, words.EXAMPLE)


def sent(pattern: torch.Tensor) -> np.ndarray:
    """Weights as the browser has them."""
    return messages.quantised(pattern.numpy()).astype(np.float64) / 65535


def fewest(row: np.ndarray, keep: float) -> dict[int, float]:
    """The definition: the fewest keys whose weights reach the share of the row, and their weights."""
    order = [int(k) for k in np.argsort(-row, kind="stable") if row[k] > 0]
    kept: dict[int, float] = {}
    for key in order:
        if sum(kept.values()) >= row.sum() * (keep / 100 - 1e-7):
            break
        kept[key] = float(row[key])
    return kept


def shown(screen: Screen) -> dict[str, Any]:
    """What the large lines say about themselves."""
    data = json.loads(screen.root.locator(".tokenlines").evaluate("box => JSON.stringify(box.dataset)"))
    return {name: json.loads(value) if value[:1] in "[{" else value for name, value in data.items() if value}


def edges(screen: Screen) -> dict[tuple[int, int, str], float]:
    """(query, key, head) -> weight of the lines of the token that stands alone."""
    return {(q, k, head): weight for q, k, weight, head in shown(screen).get("edges", [])}


def place(screen: Screen, side: str, token: int) -> tuple[float, float]:
    """Where on the page a token of a side stands."""
    box = box_of(screen.root.locator(".scroller"))
    x, y = next((x, y) for i, x, y in shown(screen)[side] if i == token)
    return box["x"] + x, box["y"] + y


def alone(screen: Screen, what: str) -> None:
    screen.page.locator(f'.tokenlines[data-alone="{what}"]').wait_for(state="attached")


def settled(screen: Screen, **attributes: object) -> None:
    wanted = "".join(f'[data-{name}="{value}"]' for name, value in attributes.items())
    screen.page.locator(f".tokenlines{wanted}").wait_for(state="attached")


def test_a_query_under_the_pointer_stands_alone_with_core_s_numbers(drawn: Plain, run: core.Trace):
    for query in (IT, 0, 14):
        drawn.page.mouse.move(*place(drawn, "queries", query))
        alone(drawn, f"{query},")
        row = run.attention[LAYER].row(HEAD, query)
        expected = fewest(sent(row), 80)
        found = edges(drawn)
        assert {key for _, key, _ in found} == set(expected) and {q for q, _, _ in found} == {query}
        for (_, key, _), weight in found.items():
            assert weight == pytest.approx(row[key].item(), abs=1e-5)
    assert drawn.facts().startswith("“.”")
    drawn.wait(query="14")
    assert drawn.root.locator(".strip .q").text_content() == "."
    drawn.page.mouse.move(5, 5)
    alone(drawn, "")
    assert drawn.root.locator(".scroller canvas").first.evaluate("canvas => canvas.style.opacity") == "1"


def test_a_key_under_the_pointer_shows_who_looks_at_it_on_every_part_of_the_screen(drawn: Plain, run: core.Trace):
    drawn.page.mouse.move(*place(drawn, "keys", ANIMAL))
    alone(drawn, f",{ANIMAL}")
    pattern = sent(run.attention[LAYER].pattern(HEAD)[0])
    expected = {q for q, row in enumerate(pattern) if ANIMAL in fewest(row, 80)}
    assert {q for q, _, _ in edges(drawn)} == expected and {k for _, k, _ in edges(drawn)} == {ANIMAL}
    drawn.wait(key=str(ANIMAL), query="")
    most = pattern[:, ANIMAL].max()
    assert drawn.facts() == f"animal is looked at most by it, with {most * 100:.0f} % of its attention."
    assert drawn.root.locator(".strip .k").text_content() == "animal"
    assert drawn.root.locator(".looks .rows u").first.inner_text() == f"{most * 100:.1f} %"
    label = drawn.root.locator(".scroller").get_attribute("aria-label") or ""
    assert "Layer 3 · Head 1" in label and drawn.facts() in label


def test_the_lines_are_those_of_the_definition_at_every_share(drawn: Plain, run: core.Trace):
    pattern = sent(run.attention[LAYER].pattern(HEAD)[0])
    counts = []
    for keep in (80, 50, 100):
        drawn.root.locator(".keep input").evaluate(
            "(input, keep) => { input.value = keep; input.dispatchEvent(new Event('input')); }", keep
        )
        expected = sum(len(fewest(row, keep)) for row in pattern)
        settled(drawn, lines=expected, all=expected)
        counts.append(expected)
    assert counts[1] < counts[0] < counts[2]
    drawn.page.wait_for_url("**keep=100**")


def test_the_share_moves_by_keyboard_and_stands_in_the_link(plain: Plain, run: core.Trace):
    plain.open("?show=lines&query=none&keep=90")
    slider = plain.page.get_by_role("slider", name="keep")
    assert slider.input_value() == "90"
    slider.focus()
    plain.page.keyboard.press("ArrowRight")
    plain.wait(keep="91")
    pattern = sent(run.attention[LAYER].pattern(HEAD)[0])
    settled(plain, all=sum(len(fewest(row, 91)) for row in pattern))
    assert "91 % of each row" in plain.root.locator(".keep").inner_text()
    plain.page.keyboard.press("Home")
    plain.wait(keep="50")


def test_a_click_locks_either_side_and_escape_releases(plain: Plain):
    plain.open("?show=lines&query=none")
    plain.page.mouse.click(*place(plain, "keys", ANIMAL))
    plain.page.mouse.move(5, 5)
    plain.wait(pin=str(ANIMAL))
    alone(plain, f",{ANIMAL}")
    plain.page.mouse.click(*place(plain, "queries", 4))
    plain.wait(locked="4", pin="")
    plain.page.mouse.move(5, 5)
    alone(plain, "4,")
    plain.page.wait_for_url("**query=4**")
    plain.page.keyboard.press("Escape")
    plain.wait(locked="")
    alone(plain, "")
    assert plain.data()["pin"] == ""


def test_arrow_keys_walk_tokens_and_sides(plain: Plain):
    plain.open("?show=lines&query=none")
    plain.root.locator(".scroller").focus()
    plain.page.keyboard.press("ArrowDown")
    alone(plain, "0,")
    for _ in range(IT):
        plain.page.keyboard.press("ArrowDown")
    alone(plain, f"{IT},")
    plain.page.keyboard.press("ArrowRight")  # to the key it looks at most
    alone(plain, f",{ANIMAL}")
    plain.page.keyboard.press("Enter")
    plain.wait(pin=str(ANIMAL))
    plain.page.keyboard.press("ArrowLeft")  # to the query that looks at it most
    alone(plain, f"{IT},")
    plain.page.keyboard.press("Enter")
    plain.wait(locked=str(IT), pin="")
    plain.until("root.querySelector('.unseen[role=status]').textContent.includes('it gives')")
    plain.page.keyboard.press("Escape")
    plain.wait(locked="", query="")
    plain.page.keyboard.press("End")
    alone(plain, "15,")
    assert plain.data()["locked"] == ""


def test_the_exact_value_of_a_line_is_in_the_tip(plain: Plain, run: core.Trace):
    plain.open("?show=lines")
    (x0, y0), (x1, y1) = place(plain, "queries", IT), place(plain, "keys", ANIMAL)
    plain.page.mouse.move((x0 + x1) / 2, (y0 + y1) / 2)
    plain.wait(cell=f"{IT},{ANIMAL}")
    value = run.attention[LAYER].row(HEAD, IT)[ANIMAL].item()
    assert float(plain.data()["value"]) == pytest.approx(value, abs=1e-5)
    tip = plain.root.locator(".tip:not(.card)").inner_text()
    assert f"{value:.4f}"[:5] in tip and "rank 1 of 16" in tip and f"position {ANIMAL}" in tip


def test_tab_reaches_the_slider_the_heads_and_the_lines(plain: Plain):
    plain.open("?show=lines&heads=3.0,3.1")
    reached = set()
    for _ in range(30):
        plain.page.keyboard.press("Tab")
        reached.add(
            plain.root.evaluate("root => root.getRootNode().activeElement?.closest('[class]')?.className ?? ''")
        )
    assert {"scroller", "chip"} <= reached
    assert any("keep" in name for name in reached) or plain.root.locator(".keep input").evaluate("i => i.tabIndex") == 0


def test_several_heads_have_a_hue_a_dash_and_a_name_each(plain: Plain, run: core.Trace):
    plain.open("?show=lines")
    plain.page.get_by_role("button", name="several heads").click()
    heads = [f"{LAYER}.{head}" for head in range(12)]
    settled(plain, heads=",".join(heads))
    chips = plain.root.locator(".chip:not(.chips *)")  # and not those of the findings
    assert chips.all_inner_texts() == [f"H{head}" for head in range(12)]
    pictures = chips.evaluate_all("chips => chips.map((chip) => chip.querySelector('canvas').toDataURL())")
    assert len(set(pictures)) == 12
    patterns = sent(run.attention[LAYER].pattern())
    expected = {(IT, key, heads[h]) for h in range(12) for key in fewest(patterns[h, IT], 80)}
    assert set(edges(plain)) == expected
    for (query, key, head), weight in edges(plain).items():
        assert weight == pytest.approx(patterns[int(head.split(".")[1]), query, key], abs=1e-5)
    assert plain.root.locator(".map h2").inner_text() == "Layer 3 · 12 heads"
    assert "the average of these heads" in plain.root.locator(".tokenlines .note").inner_text()
    assert plain.facts().startswith("Averaged over these heads")
    assert (
        plain.page.evaluate("document.querySelector('[data-testid=stMain]').scrollHeight") <= 720
    )  # nothing is cut off
    plain.page.wait_for_url("**heads=3.0%2C3.1**")
    chips.nth(4).click()
    settled(plain, heads=",".join(heads[:4] + heads[5:]))
    assert chips.nth(4).get_attribute("aria-pressed") == "false"
    assert not [head for _, _, head in edges(plain) if head == "3.4"]
    chips.nth(7).focus()
    plain.page.keyboard.press("Shift+Enter")
    settled(plain, heads="3.7")
    plain.page.get_by_role("button", name="this head").click()
    settled(plain, heads=f"{LAYER}.{HEAD}")
    assert not chips.first.is_visible()


def test_the_heads_that_are_drawn_go_to_the_next_layer_with_it(plain: Plain):
    plain.open("?show=lines&heads=3.1,3.5&metric=maps")
    plain.root.locator(".overview").focus()
    plain.page.keyboard.press("ArrowDown")
    settled(plain, heads="4.1,4.5")
    plain.wait(layer="4", members="[[4,1],[4,5]]")
    plain.page.wait_for_url("**heads=4.1%2C4.5**")
    assert plain.data()["head"] == "1"


def test_strips_beside_the_keys_are_as_dark_as_each_head_s_weight(plain: Plain, run: core.Trace):
    plain.open("?show=lines&heads=3.1,3.5")
    settled(plain, heads="3.1,3.5")
    row = sent(run.attention[LAYER].pattern())[:, IT]
    x, y = next((x, y) for i, x, y in shown(plain)["keys"] if i == ANIMAL)
    ink = """(canvas, [x, y]) => {
        const ratio = devicePixelRatio, line = canvas.getContext('2d').getImageData(0, y * ratio, x * ratio, 1).data;
        return [...Array(line.length / 4).keys()].map((i) => [...line.slice(4 * i, 4 * i + 4)]);
    }"""
    pixels = plain.root.locator(".scroller canvas").nth(1).evaluate(ink, [x - 20, y - 5])
    hue = [int(theme.LIGHT["heads"][1][i : i + 2], 16) for i in (1, 3, 5)]
    page = [int(theme.LIGHT["background"][i : i + 2], 16) for i in (1, 3, 5)]
    opacity = row[1, ANIMAL] ** 0.7
    wanted = [p + (h - p) * opacity for h, p in zip(hue, page, strict=True)]
    near = [pixel for pixel in pixels if pixel[3] == 255 and np.abs(np.array(pixel[:3]) - wanted).max() < 6]
    assert len(near) >= 3  # a cell's width


def test_cross_attention_names_its_sides_and_has_two_strips(plain: Plain):
    plain.open(PAIR)
    loaded = models.load("pair")
    run = core.trace(loaded, "The dog sat down there", target="Der Hund sass dort")
    data = plain.data()
    assert data["site"] == "cross"
    site = next(place for place in serve(run)[1].sites if place.id == "cross")
    pattern = sent(run.attention[site.records[int(data["layer"])]].pattern(int(data["head"]))[0])
    alone(plain, "3,")
    assert {key for _, key, _ in edges(plain)} == set(fewest(pattern[3], 80))
    assert plain.tokens("query") == list(run.target.labels) and plain.tokens("key") == list(run.source.labels)  # type: ignore[union-attr]
    labels = plain.root.locator(".strip small").all_inner_texts()
    assert labels == [attention_words.COMPONENT["target"], attention_words.COMPONENT["source"]]
    shades = plain.root.locator(".strip.key span").evaluate_all("s => s.map((t) => t.style.backgroundColor)")
    assert all(shades) and len(set(shades)) > 1
    plain.root.locator(".strip.key span").nth(2).hover()
    alone(plain, ",2")
    found = {q for q, _, _ in edges(plain)}
    assert found == {q for q, row in enumerate(pattern) if 2 in fewest(row, 80)}


def test_masked_pairs_are_never_drawn(plain: Plain):
    plain.open("?model=grouped&text=The+dog+sat+down+over+there+and+slept&show=lines&query=none&keep=100")
    run = core.trace(models.load("grouped"), "The dog sat down over there and slept")
    data = plain.data()
    record = run.attention[int(data["layer"])]
    allowed = record.mask(range(record.n_query), range(record.n_key), int(data["head"])).numpy()
    pattern = sent(record.pattern(int(data["head"]))[0])
    settled(plain, all=int((pattern > 0).sum()))
    for query in range(record.n_query):
        plain.page.mouse.move(*place(plain, "queries", query))
        alone(plain, f"{query},")
        assert all(allowed[q, k] for q, k, _ in edges(plain))


def test_a_short_sentence_stands_in_rows_and_a_long_one_in_columns(plain: Plain):
    plain.open(f"?show=lines&text={SHORT}")
    assert shown(plain)["layout"] == "rows"
    plain.page.mouse.move(*place(plain, "queries", 2))
    alone(plain, "2,")
    plain.page.mouse.move(*place(plain, "keys", 4))
    alone(plain, ",4")
    plain.run_text(words.EXAMPLE)
    settled(plain, layout="columns")


def test_in_rows_masked_neighbours_are_named_once_and_values_never_touch(plain: Plain):
    plain.page.evaluate("""() => {
        const canvas = CanvasRenderingContext2D.prototype, write = canvas.fillText, said = window.said = new Map();
        window.asBefore = () => { canvas.fillText = write; };
        canvas.fillText = function (text, x, y, ...more) {
            if (/^(masked|[0-9]+ %)$/.test(text)) {
                const half = this.measureText(text).width / 2;
                const now = document.timeline.currentTime; // the same for all of one drawing
                if (now !== window.drawnAt) said.clear();
                window.drawnAt = now;
                said.set(`${text} ${x}`, [text, x - half, x + half]);
            }
            write.call(this, text, x, y, ...more);
        };
    }""")
    plain.open("?model=grouped&show=lines&layer=2&head=1&query=4&keep=100&text=I+am+a+cat+or+a+dog")
    settled(plain, layout="rows")
    said = sorted(plain.page.evaluate("[...said.values()]"), key=lambda label: label[1])
    assert [text for text, *_ in said].count("masked") == 1 and len(said) > 2
    assert all(before[2] < after[1] for before, after in itertools.pairwise(said))
    plain.page.evaluate("asBefore()")


def test_a_long_text_is_capped_says_so_and_scrolls_inside(plain: Plain):
    text = LONGER + " " + LONGER
    plain.open(f"?model=one&show=lines&query=none&keep=100&text={text}")
    run = core.trace(models.load("one"), text)
    total = int((sent(run.attention[0].pattern(0)[0]) > 0).sum())
    settled(plain, lines=3000, all=total)
    assert f"The 3,000 strongest of {total:,} lines are drawn." in plain.root.locator(".tokenlines .note").inner_text()
    assert float(shown(plain)["font"]) >= 11
    height, scroll = plain.root.locator(".scroller").evaluate("s => [s.clientHeight, s.scrollHeight]")
    assert scroll > height
    page = plain.page.evaluate("document.querySelector('[data-testid=stMain]').scrollHeight")
    assert page <= 720
    last = len(run.source) - 1
    plain.root.locator(".scroller").focus()
    plain.page.keyboard.press("End")
    alone(plain, f"{last},")
    plain.until(f"JSON.parse(root.querySelector('.tokenlines').dataset.queries).some(([i]) => i === {last})")


def test_a_large_run_shows_one_token_s_lines_at_a_time_and_says_so(plain: Plain, model: Loaded):
    plain.open(f"{LARGE}&query=20")
    assert plain.root.locator(".tokenlines .note").inner_text() == attention_words.COMPONENT["lines_large"]
    run = core.trace(model, " ".join([LONGER] * 3))
    plain.until("JSON.parse(root.querySelector('.tokenlines').dataset.edges || '[]').length > 0")
    assert {key for _, key, _ in edges(plain)} == set(fewest(sent(run.attention[LAYER].row(HEAD, 20)), 80))


def test_a_locked_key_of_a_large_run_shows_who_makes_up_most_of_what_it_gets(plain: Plain, model: Loaded):
    plain.open(f"{LARGE}&key=3")
    column = core.trace(model, " ".join([LONGER] * 3)).attention[LAYER].pattern(HEAD)[0, :, 3]
    plain.until("JSON.parse(root.querySelector('.tokenlines').dataset.edges || '[]').length > 0")
    drawn = edges(plain)
    assert {key for _, key, _ in drawn} == {3}
    assert {query for query, _, _ in drawn} == set(fewest(sent(column), 80))
    for (query, _, _), weight in drawn.items():
        assert weight == pytest.approx(float(column[query]), abs=1e-4)
    assert plain.root.locator(".tokenlines .note").inner_text() == attention_words.COMPONENT["lines_large_key"].format(
        keep=80
    )


def test_hidden_tokens_and_words_are_the_lens_s(plain: Plain, run: core.Trace):
    plain.open("?show=lines&hide=0&query=10")
    row = sent(run.attention[LAYER].row(HEAD, IT))
    row[0] = 0
    row /= row.sum()
    alone(plain, f"{IT},")
    expected = fewest(row, 80)
    assert {key for _, key, _ in edges(plain)} == set(expected)
    for (_, key, _), weight in edges(plain).items():
        assert weight == pytest.approx(expected[key], abs=1e-4)
    assert "[CLS] hidden" in plain.root.locator(".tokenlines .note").inner_text()
    assert plain.root.locator(".strip .gone").text_content() == "[CLS]"


def test_the_strip_reads_as_the_sentence_was_typed(plain: Plain):
    plain.open()
    read = "root => root.querySelector('.strip').textContent"
    assert plain.root.evaluate(read) == f"[CLS] {words.EXAMPLE} [SEP]"
    text = "Unbelievably, the re-tokenised word-pieces (all of them) touch!"
    plain.run_text(text)
    assert plain.root.evaluate(read) == f"[CLS] {text} [SEP]"
    plain.root.get_by_role("button", name="lines", exact=True).click()  # over the map, each has a column
    plain.wait(show="lines")
    gaps = plain.root.locator(".strip .joined").evaluate_all(
        """pieces => pieces.map((piece) => [piece, piece.previousElementSibling].map((node) => node.getBoundingClientRect()))
            .filter(([a, b]) => a.top === b.top).map(([a, b]) => Math.abs(a.left - b.right))"""
    )
    assert gaps and max(gaps) < 0.6


@pytest.mark.thorough
@pytest.mark.parametrize("scheme", ["light", pytest.param("dark", marks=pytest.mark.thorough)])
def test_ink_on_every_shade_of_the_strip_reaches_aa(plain: Plain, scheme: Literal["light", "dark"]):
    plain.page.emulate_media(color_scheme=scheme)
    plain.open()
    plain.wait(theme=scheme)
    pairs: set[tuple[str, str]] = set()
    for token in range(16):
        plain.root.locator(f".strip [data-i='{token}']").hover()
        plain.wait(query=str(token))
        found = plain.root.locator(".strip [data-i]").evaluate_all(
            "tokens => tokens.map((t) => getComputedStyle(t)).map((s) => [s.color, s.backgroundColor])"
        )
        pairs |= {(ink, ground) for ink, ground in found}
    assert len(pairs) > 10
    for ink, ground in pairs:
        assert contrast(channels(ink), channels(ground)) >= 4.5


def test_a_phone_has_the_lines_without_a_sideways_scroll(plain_phone: Plain):
    plain = plain_phone.open("?show=lines&heads=3.0,3.1,3.2")
    settled(plain, heads="3.0,3.1,3.2")
    assert plain.page.evaluate("document.querySelector('[data-testid=stMain]').scrollWidth") <= 390
    assert box_of(plain.root.locator(".scroller"))["height"] > 200
    assert box_of(plain.root.locator(".keep input"))["height"] >= 44
    assert float(shown(plain)["font"]) >= 11


def channels(css: str) -> tuple[float, ...]:
    return tuple(float(part) / 255 for part in css[css.index("(") + 1 : -1].split(",")[:3])


def luminance(colour: tuple[float, ...]) -> float:
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in colour]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(a: tuple[float, ...], b: tuple[float, ...]) -> float:
    high, low = sorted((luminance(a), luminance(b)), reverse=True)
    return (high + 0.05) / (low + 0.05)


# How people without one kind of cone see linear RGB: Machado, Oliveira & Fernandes 2009, severity 1
SIGHTS = {
    "full": np.eye(3),
    "protanopia": np.array(
        [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]]
    ),
    "deuteranopia": np.array(
        [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]]
    ),
    "tritanopia": np.array(
        [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]]
    ),
}


def oklab(linear: np.ndarray) -> np.ndarray:
    """Ottosson 2020."""
    cones = np.array(
        [
            [0.4122214708, 0.5363325363, 0.0514459929],
            [0.2119034982, 0.6806995451, 0.1073969566],
            [0.0883024619, 0.2817188376, 0.6299787005],
        ]
    )
    lab = np.array(
        [
            [0.2104542553, 0.793617785, -0.0040720468],
            [1.9779984951, -2.428592205, 0.4505937099],
            [0.0259040371, 0.7827717662, -0.808675766],
        ]
    )
    return np.cbrt(linear @ cones.T) @ lab.T


@pytest.mark.parametrize("name", ["light", "dark"])
@pytest.mark.parametrize("sight", SIGHTS)
def test_the_hues_of_heads_can_be_told_apart_by_everybody(name: str, sight: str):
    palette = theme.PALETTES[name]
    seen = []
    for colour in palette["heads"]:
        srgb = np.array([int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)])
        assert contrast(tuple(srgb), channels_of(palette["background"])) >= 3
        linear = np.where(srgb <= 0.04045, srgb / 12.92, ((srgb + 0.055) / 1.055) ** 2.4)
        seen.append(oklab((SIGHTS[sight] @ linear).clip(0, 1)))
    assert min(float(np.linalg.norm(a - b)) for a, b in itertools.combinations(seen, 2)) > 0.1


def channels_of(colour: str) -> tuple[float, ...]:
    return tuple(int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5))
