"""Reading Explore: where a text of one's own opens, what a decoder's rows are about to write, bars on one scale, long texts folded."""

from __future__ import annotations

import itertools
import re
from urllib.parse import quote

import pytest
from playwright.sync_api import Route

import core
from app.kit import words as kit_words
from tests.app.browsing import Screen, eventually
from tests.app.plain import Plain, opened

APP = "app/main.py"
WATER = "She poured water from the jug into the glass until it was full."
LONG = " ".join(
    ["The old lighthouse keeper climbed the narrow stairs every evening to light the lamp, because ships needed it."]
    * 4
)


first = opened("")


def widths(screen: Screen, which: str) -> list[float]:
    """How long the bars are, as parts of their track."""
    return screen.root.locator(f".{which} .rows .track").evaluate_all(
        "(all) => all.map((t) => t.firstChild.getBoundingClientRect().width / t.getBoundingClientRect().width)"
    )


def values(screen: Screen, which: str) -> list[str]:
    return screen.root.locator(f".{which} .rows u").all_inner_texts()


def test_bars_have_one_scale_and_add_up(first: Plain):
    shown = [float(value.removesuffix(" %")) for value in values(first, "looks")]
    assert shown[0] == 67.7 and sum(shown) == pytest.approx(100, abs=0.3)
    assert first.root.locator(".looks .rest span").inner_text() == "other 12"
    assert widths(first, "looks") == pytest.approx([value / 100 for value in shown], abs=0.006)


def test_a_head_says_where_its_attention_goes(first: Plain):
    first.until("root.querySelector('.map h2').textContent.includes('on average 52 % rests on [CLS]')")
    first.root.locator(".overview").focus()
    first.page.keyboard.press("ArrowUp")
    first.wait(layer="2")
    assert "52 %" not in first.root.locator(".map h2").inner_text()


def test_a_text_of_one_s_own_opens_on_the_link_that_stands_out(plain: Plain):
    plain.open()
    plain.run_text(WATER)
    assert (plain.data()["layer"], plain.data()["head"]) == ("1", "6")
    assert (
        plain.facts() == "Head 6 of layer 1 looks from into back at poured: 93 %. 5 tokens back it usually gives 4.4 %."
    )
    assert plain.root.locator(".map h2 .rule").count() == 1
    plain.root.locator(".overview").focus()
    plain.page.keyboard.press("ArrowRight")
    plain.wait(head="7")
    assert not plain.root.locator(".map h2 .rule").count()
    plain.page.wait_for_url(re.compile("head=7"))
    plain.run_text("Never mind the dog.")
    assert (plain.data()["layer"], plain.data()["head"]) != ("1", "7")  # a new text opens on its own link
    assert plain.root.locator(".map h2 .rule").count() == 1


def test_a_decoder_s_rows_say_what_they_are_about_to_write(plain: Plain):
    plain.open("?model=translator")
    plain.until("root.querySelector('.big').textContent.includes('writes')")
    assert plain.facts() == "After the it writes snow, 96 %. This head looks at Schnee, 99.8 %."
    run = core.trace(core.load("translator"), "Ein Hund rennt durch den Schnee.", "A dog runs through the snow.")
    chances = run.predictions([5], 5).probs[0]
    assert widths(plain, "writes") == pytest.approx(chances, abs=0.006)
    plain.root.get_by_role("button", name="this row", exact=True).click()
    plain.wait(low="looks")
    assert "next in the text: snow 96.2 %, rank 1 of 6,000" in plain.root.locator(".facts").inner_text()
    plain.root.locator(".strip.query [data-i='2']").click()
    plain.wait(locked="2")
    assert plain.facts().startswith("After dog its best guess is runs, 48 %.")
    plain.root.get_by_role("button", name="self", exact=True).click()
    plain.wait(site="encoder")
    assert not plain.root.locator(".writes").is_visible()  # an encoder writes nothing


def test_the_next_word_of_a_target_is_underlined_however_late_it_comes(plain: Plain):
    held: list[Route] = []
    plain.page.route("**/headlight/next?*", lambda route: held.append(route))
    plain.open("?model=translator")

    def is_held() -> None:
        assert held

    eventually(plain.page, is_held)
    assert not plain.root.locator(".strip .coming").count()
    for route in held:
        route.continue_()
    plain.root.locator(".strip .coming").wait_for()
    assert plain.root.locator(".strip .coming").all_inner_texts() == ["snow"]
    colour = "(one) => getComputedStyle(one).color"
    assert plain.root.locator(".strip .coming").evaluate(colour) == plain.root.locator(".big .w").evaluate(colour)
    assert plain.root.locator(".strip.key .k").all_inner_texts() == ["Schnee"]  # the sixth, as “the” is of its own text
    plain.page.unroute("**/headlight/next?*")


def columns_of(screen: Screen) -> list[float]:
    """How wide each column is whose word stands above it, in px."""
    xs = [float(x) for x in screen.data()["columns"].split()]
    return [after - before for before, after in itertools.pairwise(xs)]


def test_columns_may_be_equally_wide(plain: Plain):
    plain.open()
    assert max(columns_of(plain)) > 1.5 * min(columns_of(plain))  # as wide as their words
    plain.page.keyboard.press("o")
    plain.root.get_by_role("button", name="equal", exact=True).click()
    plain.wait(widths="equal")
    widths = columns_of(plain)
    assert len(widths) == 16 and max(widths) - min(widths) < 0.3
    plain.page.wait_for_url(re.compile("columns=equal"))
    words = plain.root.locator(".strip [data-i]")
    assert words.evaluate_all("(all) => all.every((word) => word.scrollWidth <= word.clientWidth)")  # none is cut off
    plain.page.mouse.move(*plain.cell(10, 2))
    plain.wait(cell="10,2")
    assert float(plain.data()["value"]) == pytest.approx(0.677, abs=1e-3)
    # Words that are too long for that lean over columns that are as wide as rows are high.
    plain.open(
        "?columns=equal&text="
        + quote("The interdisciplinary representative did not apologise to me, so I left at once.")
    )
    assert plain.data()["columns"] == "" and plain.data()["folded"] == ""
    assert not plain.root.get_by_role("button", name="whole", exact=True).count()
    plain.page.mouse.move(*plain.cell(3, 5))
    plain.wait(cell="3,5")


@pytest.mark.thorough
def test_a_text_that_is_longer_than_what_a_model_learnt_on_says_so(plain: Plain):
    said = "Longer than the 256 tokens it learnt on."
    note = plain.root.locator(".map > .note")
    plain.open("?model=storyteller&layer=1&head=0&query=60&text=" + quote("The cat sat on the old mat. " * 180))
    plain.until("root.dataset.folded && root.dataset.fetching === 'false'")
    assert int(plain.data()["tokens"]) > 1200 and note.inner_text().endswith(said)
    columns = [[float(x) for x in part.split(":")] for part in plain.data()["folded"].split()]
    wide, narrow = (
        {round(right - left) for of, left, right in columns if low < -of < high}
        for low, high in ((999, 9999), (0, 1000))
    )
    assert wide and narrow and min(wide) > max(narrow)  # "1,234" needs more room than "12"
    plain.open("?model=storyteller&text=" + quote("The cat sat on the old mat. " * 20))
    assert said not in note.inner_text()


def test_arcs_fly_over_a_folded_map_too(plain: Plain):
    plain.open(f"?layer=3&head=1&query=30&text={quote(LONG)}")
    plain.until("root.dataset.folded && root.dataset.fetching === 'false'")
    drawn = """root.querySelector('.matrix .arcs') && new Set(root.querySelector('.matrix .arcs')
        .getContext('2d').getImageData(0, 0, 900, 20).data).size > 1"""
    plain.until(drawn)
    plain.root.get_by_role("button", name="whole", exact=True).click()
    plain.wait(whole="true", folded="")
    assert not plain.root.locator(".arcs").count()


def test_a_projected_fold_uses_the_room_that_its_note_leaves(plain: Plain):
    plain.open("?projector=true")
    note = plain.root.locator(".map > .note").bounding_box()
    bar = plain.page.get_by_role("toolbar", name=kit_words.COMPONENT["projection"]).bounding_box()
    assert plain.data()["folded"] and note and bar
    left = bar["y"] - note["y"] - note["height"]
    assert 0 <= left < float(plain.data()["size"])  # else there would be another row


def test_a_long_text_is_folded_and_its_strongest_key_is_on_the_screen(plain: Plain):
    plain.open(f"?layer=3&head=1&query=30&text={quote(LONG)}")
    plain.until("root.dataset.folded && root.dataset.fetching === 'false'")
    run = core.trace(core.load("minilm"), LONG)
    row = run.attention[3].row(1, 30)
    columns = [[float(x) for x in part.split(":")] for part in plain.data()["folded"].split()]
    keys = [int(key) for key, *_ in columns if key >= 0]
    assert int(row.argmax()) in keys and 30 in keys
    assert len(keys) + sum(-int(key) for key, *_ in columns if key < 0) == len(row)
    note = plain.root.locator(".map > .note").inner_text()
    folded = float(re.search(r"\(<?([\d.]+) % of this row\)", note).group(1))  # type: ignore[union-attr]
    assert folded / 100 + row[keys].sum().item() == pytest.approx(1, abs=2e-3)
    assert f"{len(row) - len(keys)} of {len(row)} columns are folded" in note
    box = plain.root.locator(".matrix").bounding_box()
    assert box is not None
    strip = plain.root.locator(".strip").bounding_box()
    token = plain.root.locator(f".strip [data-i='{int(row.argmax())}']").bounding_box()
    assert strip and token and strip["y"] <= token["y"] and token["y"] + token["height"] <= strip["y"] + strip["height"]
    key, left, right = next(column for column in columns if column[0] == int(row.argmax()))
    data = plain.data()
    y = float(data["top"]) + (30 - int(data["row"]) + 0.5) * float(data["size"])
    plain.page.mouse.move(box["x"] + (left + right) / 2, box["y"] + y)
    plain.wait(cell=f"30,{int(key)}")
    assert float(plain.data()["value"]) == pytest.approx(row.max().item(), abs=1e-4)
    gap = next(column for column in columns if column[0] < -1)
    plain.page.mouse.click(box["x"] + (gap[1] + gap[2]) / 2, box["y"] + y)
    plain.until(f"root.dataset.folded !== '{data['folded']}'")
    plain.root.get_by_role("button", name="whole", exact=True).click()
    plain.wait(whole="true", folded="")
    plain.page.wait_for_url(re.compile("whole=true"))


@pytest.mark.thorough
def test_hebrew_stands_from_right_to_left(plain: Plain):
    text = "שלום לכל העולם"
    plain.open(f"?text={quote(text)}")
    first, last = (plain.root.locator(f".strip [data-i='{i}']").bounding_box() for i in (1, 12))
    assert first and last and first["x"] > last["x"]  # over their columns
    plain.page.mouse.move(*plain.cell(4, 1))
    plain.wait(cell="4,1")
    plain.run_text(f"{text} " * 9)  # too long for a map of all of it
    plain.until("root.dataset.folded && root.dataset.fetching === 'false'")
    columns = [[float(x) for x in part.split(":")] for part in plain.data()["folded"].split()]
    edges = [edge for _, start, end in columns for edge in (start, end)]
    assert edges == sorted(edges, reverse=True) and len(columns) > 5  # the first key stands at the right there too
    query, key = int(plain.data()["row"]) + 1, next(int(of) for of, *_ in columns[1:] if of >= 0)
    plain.page.mouse.move(*plain.cell(query, key))
    plain.wait(cell=f"{query},{key}")
    plain.run_text(text)
    plain.root.get_by_role("button", name="lines", exact=True).click()
    plain.wait(show="lines")
    first, last = (plain.root.locator(f".strip [data-i='{i}']").bounding_box() for i in (1, 12))
    assert first and last and first["x"] > last["x"]  # and as it was typed
    assert plain.root.locator(".strip").get_attribute("dir") == "rtl"
