"""Explore of a language model: it opens on a finding, page keys walk through the others, and all heads are one map."""

from __future__ import annotations

import io
import json
import re
from dataclasses import replace
from datetime import date
from urllib.parse import parse_qs, urlsplit
from xml.etree import ElementTree

import numpy as np
import pytest
from playwright.sync_api import Route, expect

import core
from app.attention import export, picture
from app.attention import selection as attention_selection
from app.attention import words as attention_words
from app.session.examples import MARY
from app.shell import registry
from core.read.edge_attribution import head_logit_attribution
from core.read.head_roles import opening_edges
from core.read.measures import correlation
from core.service.facts import facts_of
from core.service.service import next_words_of
from tests.app.browsing import box_of
from tests.app.plain import Plain
from tests.app.test_export import SVG, matrix, saved, table
from tests.core.gguf.test_smollm2 import pytestmark as needs_smollm2
from tests.core.gguf.test_smollm2 import smollm2

APP = "app/main.py"
WORDS = attention_words.COMPONENT
TO, GAVE, FIRST = 13, 10, 0  # where MARY ends, a word of it, and the token that its heads rest on


@pytest.fixture(scope="module")
def run() -> core.Trace:
    return core.trace(smollm2(), MARY)


@needs_smollm2
def test_the_look_takes_the_place_of_the_opening_of_its_own_kind_of_attention(run: core.Trace) -> None:
    look = core.opening_finding(run)
    (link,) = opening_edges(run, look=look)
    assert (link.layer, link.head, link.query, link.key) == (23, 0, TO, 1)
    other = replace(look, stack="encoder")
    assert opening_edges(run, look=other) == opening_edges(run)
    said = picture.finding_message(look)
    assert (said["kind"], said["site"], said["word"]) == ("writes", "decoder", "Mary")
    assert "habit" not in said and said["addition"] == pytest.approx(1.146, abs=1e-3)


@needs_smollm2
def test_a_caption_says_which_token_the_colours_leave_out(run: core.Trace) -> None:
    facts = facts_of(run, "key")
    asked = {"site": "decoder", "layer": "23", "head": "0"}
    plain = attention_selection.selected(facts, asked)
    apart = attention_selection.selected(facts, asked | {"apart": str(FIRST)})
    said = attention_words.EXPORT_APART.format(token="When")
    assert said in export.caption(facts, apart, date(2026, 1, 1))
    assert said not in export.caption(facts, plain, date(2026, 1, 1))
    assert export.snippet(facts, apart) == export.snippet(facts, plain)  # numbers are the same


@needs_smollm2
def test_it_opens_on_a_finding_and_page_keys_walk_through_the_others(plain: Plain, run: core.Trace) -> None:
    plain.open("?model=smollm2")
    root, keys = plain.root, plain.page.keyboard
    found = core.findings(run)
    chips = root.locator(".findings .chip")
    expect(chips).to_have_count(len(found))
    expect(root.locator(".big")).to_have_text(
        "To write Mary, head 0 of layer 23 looks back from to₂ at Mary: 69 %. That look alone adds +1.15 to the logit of Mary."
    )
    expect(root.locator(".bars.writes .rows .bar")).to_have_count(5)
    expect(root.locator(".bars.writes .rows .bar").first).to_have_text(re.compile("Mary.*92 %"))
    expect(root.locator(".strips .after")).to_have_text("Mary 92 %")
    for part in (".big", ".bars.writes", ".headmap", ".headcard", ".matrix"):
        box = box_of(root.locator(part))
        assert box["y"] + box["height"] <= 720 and box["x"] + box["width"] <= 1280
    for i, one in enumerate(found):
        plain.wait(finding=one.kind, layer=str(one.layer), head=str(one.head), locked=str(one.query))
        expect(chips.nth(i)).to_have_attribute("aria-pressed", "true")
        keys.press("PageDown")
    plain.wait(layer="23", head="0")  # from the last to the first
    keys.press("PageUp")
    plain.wait(finding=found[-1].kind, by="first")
    plain.page.wait_for_url(re.compile(f"layer={found[-1].layer}.*head={found[-1].head}"))
    chips.first.click()
    plain.wait(layer="23", head="0", by="adds")

    # The map of all heads: pointing shows a head, and only a click keeps it.
    grid = root.locator(".headmap .grid")
    additions = head_logit_attribution(run)[0]
    box = box_of(grid.locator("canvas").first)
    chosen = {name: plain.data()[name] for name in ("layer", "head")}
    plain.page.mouse.move(box["x"] + 0.9 * box["width"], box["y"] + 8)
    plain.until("root.dataset.peeked !== ''")
    layer, head = map(int, plain.data()["peeked"].split("."))
    assert (
        {name: plain.data()[name] for name in ("layer", "head")} == chosen != {"layer": str(layer), "head": str(head)}
    )
    expect(root.locator(".tip")).to_contain_text(f"{abs(float(additions[layer, head])):.2f}")
    expect(root.locator(".big")).not_to_contain_text("head 0 of layer 23")
    plain.page.mouse.move(5, 5)
    plain.until("root.dataset.peeked === ''")
    expect(root.locator(".big")).to_contain_text("head 0 of layer 23")
    plain.page.mouse.move(box["x"] + 0.9 * box["width"], box["y"] + 8)
    plain.page.mouse.down()
    plain.page.mouse.up()
    plain.wait(layer=str(layer), head=str(head))


@needs_smollm2
def test_the_first_token_leaves_the_colours_and_no_number(plain: Plain, run: core.Trace) -> None:
    plain.open("?model=smollm2")
    root = plain.root
    cell = (8, 1)  # a weight that is small beside what rests
    weight = run.attention[23].row(0, cell[0])[cell[1]].item()
    pixels = "root => root.querySelector('.matrix canvas').toDataURL()"

    def shown() -> tuple[str, float]:
        plain.page.mouse.move(*plain.cell(*cell))
        plain.wait(cell=f"{cell[0]},{cell[1]}")
        value = float(plain.data()["value"])
        plain.page.mouse.move(5, 5)
        plain.wait(cell="")
        return root.evaluate(pixels), value

    apart, value = shown()
    assert value == pytest.approx(weight, abs=2e-5)
    root.get_by_role("button", name=WORDS["set_apart_in"]).click()
    plain.page.wait_for_url(re.compile("sink=in"))
    together, same = shown()
    assert same == value and together != apart

    # A visitor who guesses first sees no answer: neither the word, nor where it looked.
    root.get_by_role("button", name=WORDS["predict_first"]).click()
    plain.page.wait_for_url(re.compile("predict=true"))
    expect(root.locator(".big")).to_have_text(WORDS["predict_ask"])
    for part in (".bars.writes", ".matrix", ".headmap", ".findings", ".headcard"):
        expect(root.locator(part)).to_be_hidden()
    assert "Mary 92" not in root.inner_text()
    root.get_by_role("button", name=WORDS["predict_show"]).click()
    expect(root.locator(".big")).to_contain_text("To write Mary")


@needs_smollm2
def test_a_staircase_is_saved_as_it_is_drawn(plain: Plain, run: core.Trace) -> None:
    """What the model would write right of each row, shares in the chosen one, the sink as bars, a scale that leaves it out.

    The file is asked for as soon as there is a picture: what comes later is waited for.
    """
    plain.arrive("?model=smollm2&layer=23&head=0&query=13&sink=out")
    root = ElementTree.fromstring(saved(plain, "SVG")[1])
    texts = ["".join(node.itertext()) for node in root.iter(f"{SVG}text")]
    pattern = run.attention[23].pattern(0)[0]
    for row in range(TO + 1):
        told = run.predictions([row], 1)
        assert told.strings[0][0].strip("Ġ ") in texts, row
    shares = [weight for weight in pattern[TO].tolist() if weight >= 0.03]
    said = [text for text in texts if re.fullmatch(r"[\d.]+( %)?", text)]
    assert {f"{100 * pattern[TO, 1]:.0f}", f"{100 * pattern[TO, FIRST]:.1f}"} <= {*said} and len(shares) == 5
    assert f"{pattern[:, 1:].max():.3g}" in texts and "1" not in texts  # the upper end of the scale
    widths = [float(node.attrib["width"]) for node in root.iter(f"{SVG}rect") if node.get("height") == "21"]
    bars, wholes = widths[1::2], widths[::2]
    assert [bar / whole for bar, whole in zip(bars, wholes, strict=True)] == pytest.approx(
        pattern[:, FIRST].tolist(), abs=2e-3
    )
    assert not any(node.get("fill") == "url(#hatch)" for node in root.iter(f"{SVG}rect"))  # there stand the words

    # The same bars where all columns are equally wide
    plain.arrive("?model=smollm2&layer=23&head=0&query=13&sink=out&columns=equal")
    root = ElementTree.fromstring(saved(plain, "SVG")[1])
    rects = [node.attrib for node in root.iter(f"{SVG}rect") if node.get("height") == "33"]
    first = [float(one["width"]) for one in rects if one["x"] == rects[0]["x"]]
    assert [bar / whole for bar, whole in zip(first[1::2], first[::2], strict=True)] == pytest.approx(
        pattern[:, FIRST].tolist(), abs=2e-3
    )


@pytest.mark.thorough
@needs_smollm2
def test_numbers_are_saved_with_the_sink_and_without(plain: Plain, run: core.Trace) -> None:
    """Once as they are, and once as shares of what it leaves of a row: nothing in its own column and where it leaves nothing."""
    plain.open("?model=smollm2&layer=23&head=0&query=13&sink=out")
    pattern = run.attention[23].pattern(0)[0].double().numpy()
    rest = pattern / np.where(pattern[:, [FIRST]] < 1 - 1e-6, 1 - pattern[:, [FIRST]], np.nan)
    rest[:, FIRST] = np.nan
    frame = table(saved(plain, "CSV")[1])[1].replace("", np.nan)
    assert np.array_equal(matrix(frame).astype(np.float32), pattern.astype(np.float32))
    without = matrix(frame, "weight_without_sink").astype(np.float64)
    assert np.allclose(without, rest, atol=1e-5, equal_nan=True) and np.isnan(without[0]).all()
    assert np.nansum(without[1:], 1) == pytest.approx(1, abs=1e-4)
    with np.load(io.BytesIO(saved(plain, "NPZ")[1])) as arrays:
        assert np.allclose(arrays["weight_without_sink"], rest, atol=1e-5, equal_nan=True)
    name, data = saved(plain, "JSON")
    said = json.loads(data)
    assert name == "smollm2-135m-layer-23-head-0.json" and said["keys"][1] == "Mary"
    assert np.array_equal(np.array(said["weight"], np.float32), pattern.astype(np.float32))
    assert said["weight_without_sink"][TO][FIRST] is None and said["masked"][0][:2] == [None, "future"]
    assert said["next"][TO]["word"] == "Mary" and said["next"][TO]["probability"] == pytest.approx(0.923, abs=1e-3)
    plain.root.get_by_role("button", name="like the others", exact=True).click()
    plain.until("location.search.includes('sink=in')")
    assert "weight_without_sink" not in table(saved(plain, "CSV")[1])[1]


@pytest.mark.thorough
@needs_smollm2
def test_a_projected_window_of_any_size_keeps_the_staircase_and_a_heading_that_reads_as_a_sentence(
    plain: Plain, run: core.Trace
) -> None:
    shown = []
    for width, height in ((1280, 720), (1920, 1080)):
        plain.page.set_viewport_size({"width": width, "height": height})
        plain.open("?model=smollm2&projector=true")
        root, data = plain.root, plain.data()
        assert data["folded"] == ""
        columns = len(data["columns"].split()) - 1
        em = root.evaluate("root => parseFloat(getComputedStyle(root).fontSize)")
        words = root.locator(".strip.over").evaluate("strip => parseFloat(getComputedStyle(strip).fontSize)")
        assert words >= 0.82 * em >= 28 * height / 1080, "as large on the wall"
        shown.append((columns, round(words / em, 2)))
        title = root.locator(".headmap h2")
        expect(title).to_have_text("270 heads: what each adds to Mary")
        assert title.evaluate("title => title.scrollWidth <= title.clientWidth")
        legend = box_of(root.locator(".headmap .legend"))
        assert legend["y"] + legend["height"] <= box_of(root.locator(".clicker"))["y"]
    assert shown[0] == shown[1] and shown[0][0] == TO + 1
    for _ in core.findings(run):  # the same columns for all heads
        plain.page.keyboard.press("PageDown")
        plain.idle()
        assert len(plain.data()["columns"].split()) - 1 == TO + 1


@needs_smollm2
def test_page_keys_before_the_findings_are_there_count_once_they_are(plain: Plain, run: core.Trace) -> None:
    found, late, chips = core.findings(run), list[Route](), plain.root.locator(".findings .chip")
    assert len(found) > 3
    plain.page.route(re.compile("/headlight/findings"), lambda route: late.append(route))
    first, second, clicked = [dict(layer=str(one.layer), head=str(one.head)) for one in (found[0], found[2], found[1])]
    plain.open("?model=smollm2")
    plain.page.keyboard.press("PageDown")
    plain.page.keyboard.press("PageDown")
    plain.idle()
    assert len(late) == 1 and plain.data().items() >= first.items()
    late.pop().continue_()
    plain.wait(**second)
    expect(chips.nth(2)).to_have_attribute("aria-pressed", "true")
    # Who has chosen another head in between stays there.
    plain.open("?model=smollm2")
    plain.page.keyboard.press("PageDown")
    layer, head = found[1].layer, found[1].head
    plain.page.keyboard.press("/")
    plain.page.keyboard.type(f"{layer}.{head}")
    plain.page.keyboard.press("Enter")
    plain.wait(**clicked)
    late.pop().continue_()
    expect(chips).to_have_count(len(found))
    plain.idle()
    assert plain.data().items() >= clicked.items()


HOUSES = "a house, a house, and a tree. " * 12
# How far the number of each repeated word is from the end of its token, in pixels, as [word, left]
DIGITS = """root => {
  const pen = document.createElement("canvas").getContext("2d");
  const text = document.createRange();
  return [...root.querySelectorAll(".strip span[data-which]")].map((node) => {
    const digits = getComputedStyle(node, "::after");
    pen.font = `${digits.fontWeight} ${digits.fontSize} ${digits.fontFamily}`;
    text.selectNodeContents(node);
    const [word, token] = [text.getBoundingClientRect(), node.getBoundingClientRect()];
    return [node.textContent, token.right - word.right - pen.measureText(node.dataset.which).width];
  });
}"""


@needs_smollm2
@pytest.mark.parametrize(
    ("text", "projector"),
    [
        (HOUSES, ""),
        ("a to " * 12, "&projector=true"),
        pytest.param(HOUSES, "&projector=true", marks=pytest.mark.thorough),
        pytest.param("a to " * 12, "", marks=pytest.mark.thorough),
    ],
)
def test_the_number_of_a_repeated_word_ends_before_the_next_token(plain: Plain, text: str, projector: str) -> None:
    plain.open(f"?model=smollm2&text={text.strip().replace(' ', '+')}{projector}")
    found = plain.root.evaluate(DIGITS)
    assert len(found) > 20
    assert [(word, left) for word, left in found if left < 0.8] == []


@needs_smollm2
def test_heads_are_coloured_by_how_like_the_chosen_one_they_are(plain: Plain, run: core.Trace) -> None:
    plain.open("?model=smollm2")
    root, more = plain.root, plain.root.get_by_label(WORDS["by_more"])
    more.select_option(label=WORDS["by"]["like"][0])
    plain.wait(by="like")
    plain.page.wait_for_url(re.compile("by=like"))
    for part in (more, root.locator(".headmap .legend")):
        box = box_of(part)
        assert box["x"] + box["width"] <= 1280 - 20
    expect(root.locator(".headmap .legend")).to_contain_text("When is left out")
    cells = run.attention[23].mask().clone()
    cells[:, FIRST] = False
    like = [correlation(record.pattern(), run.attention[23].pattern(0)[0], cells) for record in run.attention]
    grid = root.locator(".headmap .grid")
    box = box_of(grid.locator("canvas").first)
    left = 3.1 * root.evaluate("root => parseFloat(getComputedStyle(root).fontSize)")  # of the names of rows
    for layer, head in ((5, 0), (17, 0), (28, 0)):
        middle = left + (layer + 0.5) * (box["width"] - left - 3) / 30
        plain.page.mouse.move(box["x"] + middle, box["y"] + 8)
        plain.wait(peeked=f"{layer}.{head}")
        expect(root.locator(".tip")).to_contain_text(f"layer 23, head 0: {said(like[layer][head].item())}")
        plain.page.mouse.move(5, 5)
        plain.until("root.dataset.peeked === ''")
    # A screen reader hears the number of the chosen head, which is now like itself.
    now = root.locator("#all-heads-now")
    expect(now).to_have_text("Layer 23 · Head 0: correlation with layer 23, head 0: +1.00.")
    assert grid.get_attribute("aria-describedby") == "all-heads-now"
    assert (grid.get_attribute("aria-label") or "").startswith("All 270 heads")
    grid.press("ArrowDown")
    plain.wait(layer="23", head="1", by="like")
    expect(now).to_have_text("Layer 23 · Head 1: correlation with layer 23, head 1: +1.00.")


def said(x: float) -> str:
    return f"{'−' if x < 0 else '+'}{abs(x):.2f}"


def test_the_menu_of_rooms_has_their_titles() -> None:
    titles = {room.id: room.title for room in registry.rooms()}
    assert {id: title for id, (title, *_) in WORDS["elsewhere_rooms"].items()}.items() <= titles.items()


@needs_smollm2
def test_the_chosen_head_opens_in_the_other_rooms(plain: Plain) -> None:
    plain.open("?model=smollm2&layer=24&head=4&query=13&theme=dark")
    root = plain.root
    opener = root.locator(".elsewhere summary")
    opener.focus()
    plain.page.keyboard.press("Enter")
    links = root.locator(".elsewhere a")
    expect(links).to_have_count(len(WORDS["elsewhere_rooms"]))
    known = registry.params()
    for link in links.all():
        said = {name: values[0] for name, values in parse_qs(urlsplit(link.get_attribute("href") or "").query).items()}
        room = said.pop("view")
        assert (said.pop("text"), said.pop("theme"), said.pop("model")) == (MARY, "dark", "SmolLM2-135M")
        assert (said["layer"], said["head"]) == ("24", "4")
        assert said.get("query", "13") == "13" and ("query" in said) == (room != "generate")
        assert said.keys() <= set(known[room]), f"{room} reads all that its link says"
    plain.page.keyboard.press("Escape")
    expect(links.first).to_be_hidden()
    expect(opener).to_be_focused()
    opener.click()
    expect(links.first).to_be_visible()
    root.locator(".big").click()  # on nothing that takes the focus
    expect(links.first).to_be_hidden()
    opener.focus()
    plain.page.keyboard.press("Enter")
    expect(links.first).to_have_text("Masks forbid to₂ → Mary")
    plain.page.keyboard.press("Tab")
    plain.page.keyboard.press("Enter")
    plain.page.wait_for_url(re.compile("view=masks.*query=13.*key=1"))
    fact = plain.page.locator(".hl .fact").first
    expect(fact).to_contain_text("In this head, to2 may not look at Mary")


@needs_smollm2
def test_heads_are_coloured_by_the_candidate_that_is_pressed(plain: Plain, run: core.Trace) -> None:
    plain.open("?model=smollm2&by=first")
    root, keys = plain.root, plain.page.keyboard
    rows = root.locator(".bars.writes .rows button")
    additions = head_logit_attribution(run, tokens=run.predictions([TO], 5).ids[0])

    def is_of(which: int, word: str) -> None:
        for i in range(5):
            expect(rows.nth(i)).to_have_attribute("aria-pressed", str(i == which).lower())
        plain.wait(by="adds", candidate=str(which))
        plain.page.wait_for_url(re.compile(f"by=adds.*candidate={which}"))
        expect(root.locator(".headmap .seg button").first).to_have_text(f"adds to {word}")
        value = additions[which, 23, 0].item()
        expect(root.locator("#all-heads-now")).to_have_text(f"Layer 23 · Head 0: adds to {word} {said(value)}.")
        expect(root.locator(".headcard dd").first).to_contain_text(f"{said(value)} to {word}")
        # The looks that this is from are to the same word.
        looks = core.edge_attribution(run, TO, run.predictions([TO], 5).ids[0][which])[23, 0]
        expect(root.locator(".headcard dd").nth(1)).to_contain_text(f"Mary {said(looks[1].item())}")

    expect(rows.first).to_have_attribute("aria-pressed", "true")
    rows.nth(1).click()
    is_of(1, "the")
    keys.press("Shift+Tab")
    keys.press("Enter")
    is_of(0, "Mary")
    plain.page.go_back()
    is_of(1, "the")


@needs_smollm2
def test_a_candidate_keeps_its_word_in_another_row_or_says_that_it_is_none_there(plain: Plain, run: core.Trace) -> None:
    plain.open("?model=smollm2")
    rows, legend = plain.root.locator(".bars.writes .rows button"), plain.root.locator(".headmap .legend")
    rows.nth(1).click()
    plain.wait(candidate="1", by="adds")
    asked = next_words_of(run, [TO, GAVE, GAVE + 1], 5)
    (_, (word, _), *_), there, (none, *_) = asked[0].words, [label for label, _ in asked[1].words], asked[2].words[0]
    assert there.index(word) != 1
    plain.root.locator(f".strip [data-i='{GAVE}']").click()
    plain.wait(query=str(GAVE), candidate=str(there.index(word)))
    expect(plain.root.locator(".headmap .seg button").first).to_have_text(f"adds to {word}")
    expect(rows.nth(there.index(word))).to_have_attribute("aria-pressed", "true")
    plain.page.keyboard.press("ArrowDown")
    plain.wait(query=str(GAVE + 1), candidate="0")
    expect(legend).to_contain_text(f"{word} is none of the five here; shown: {none}")
    late: list[Route] = []  # what heads add in the next row, which comes when all else of that row is there
    plain.page.route(re.compile(f"/additions\\?.*query={GAVE + 2}"), lambda route: late.append(route))
    with plain.page.expect_request(re.compile("/additions")):
        plain.page.keyboard.press("ArrowDown")
    plain.wait(query=str(GAVE + 2))
    plain.idle()
    expect(legend).to_contain_text(WORDS["loading"])
    assert len(late) == 1
    late[0].continue_()
    (last, _), *_ = next_words_of(run, [GAVE + 2], 5)[0].words
    expect(plain.root.locator(".headmap .seg button").first).to_have_text(f"adds to {last}")
    expect(legend).not_to_contain_text("none of the five")  # said of that row alone


@needs_smollm2
@pytest.mark.parametrize("by", ["adds", pytest.param("like", marks=pytest.mark.thorough)])
def test_no_name_of_a_measure_is_cut(plain: Plain, by: str) -> None:
    """On a text whose words are long: where they do not fit beside each other, the line below the map says them."""
    plain.open(f"?model=smollm2&by={by}&text=The+veterinarian+examined+the+Tyrannosaurus+and+the+veterinarian")
    buttons = plain.root.locator(".headmap .seg button")
    expect(buttons).to_have_count(3)
    expect(buttons.first).to_have_attribute("aria-label", re.compile("adds to .+"))
    assert buttons.evaluate_all("all => all.filter((one) => one.scrollWidth > one.clientWidth).length") == 0
    assert buttons.all_inner_texts() == ["adds", "looks", "first"]
    if by == "adds":
        expect(plain.root.locator(".headmap .legend")).to_contain_text("to ")
