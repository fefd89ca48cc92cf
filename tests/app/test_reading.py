"""Reading Explore: where a text of one's own opens, what a decoder's rows are about to write, bars on one scale, long texts folded."""

from __future__ import annotations

import itertools
import re
from urllib.parse import quote

import pytest
from playwright.sync_api import Route

import core
from tests.app.browsing import Screen, eventually

APP = "app/main.py"
WATER = "She poured water from the jug into the glass until it was full."
LONG = " ".join(
    ["The old lighthouse keeper climbed the narrow stairs every evening to light the lamp, because ships needed it."]
    * 4
)


def widths(screen: Screen, which: str) -> list[float]:
    """How long the bars are, as parts of their track."""
    return screen.root.locator(f".{which} .rows .track").evaluate_all(
        "(all) => all.map((t) => t.firstChild.getBoundingClientRect().width / t.getBoundingClientRect().width)"
    )


def values(screen: Screen, which: str) -> list[str]:
    return screen.root.locator(f".{which} .rows u").all_inner_texts()


def test_a_text_of_one_s_own_opens_on_the_link_that_stands_out(screen: Screen):
    screen.open()
    screen.run_text(WATER)
    assert (screen.data()["layer"], screen.data()["head"]) == ("1", "6")
    assert (
        screen.facts()
        == "Head 6 of layer 1 looks from into back at poured: 93 %. 5 tokens back it usually gives 4.4 %."
    )
    assert screen.root.locator(".map h2 .rule").count() == 1
    screen.root.locator(".overview").focus()
    screen.page.keyboard.press("ArrowRight")
    screen.wait(head="7")
    assert not screen.root.locator(".map h2 .rule").count()
    screen.page.wait_for_url(re.compile("head=7"))
    screen.run_text("Never mind the dog.")
    assert (screen.data()["layer"], screen.data()["head"]) == ("1", "7")  # chosen by hand, so it stays


def test_a_head_says_where_its_attention_goes(screen: Screen):
    screen.open()
    screen.until("root.querySelector('.map h2').textContent.includes('on average 52 % rests on [CLS]')")
    screen.root.locator(".overview").focus()
    screen.page.keyboard.press("ArrowUp")
    screen.wait(layer="2")
    assert "52 %" not in screen.root.locator(".map h2").inner_text()


def test_bars_have_one_scale_and_add_up(screen: Screen):
    screen.open()
    shown = [float(value.removesuffix(" %")) for value in values(screen, "looks")]
    assert shown[0] == 67.7 and sum(shown) == pytest.approx(100, abs=0.3)
    assert screen.root.locator(".looks .rest span").inner_text() == "other 12"
    assert widths(screen, "looks") == pytest.approx([value / 100 for value in shown], abs=0.006)


def test_a_decoder_s_rows_say_what_they_are_about_to_write(screen: Screen):
    screen.open("?model=translator")
    screen.until("root.querySelector('.big').textContent.includes('writes')")
    assert screen.facts() == "After the it writes snow, 96 %. This head looks at Schnee, 99.8 %."
    run = core.trace(core.load("translator"), "Ein Hund rennt durch den Schnee.", "A dog runs through the snow.")
    chances = run.predictions([5], 5).probs[0]
    assert widths(screen, "writes") == pytest.approx(chances, abs=0.006)
    screen.root.get_by_role("button", name="this row", exact=True).click()
    screen.wait(low="looks")
    assert "next in the text: snow 96.0 %, rank 1 of 6,000" in screen.root.locator(".facts").inner_text()
    screen.root.locator(".strip.query [data-i='2']").click()
    screen.wait(locked="2")
    assert screen.facts().startswith("After dog its best guess is runs, 48 %.")
    screen.root.get_by_role("button", name="self", exact=True).click()
    screen.wait(site="encoder")
    assert not screen.root.locator(".writes").is_visible()  # an encoder writes nothing


def test_the_next_word_of_a_target_is_underlined_however_late_it_comes(screen: Screen):
    held: list[Route] = []
    screen.page.route("**/headlight/next?*", lambda route: held.append(route))
    screen.open("?model=translator")

    def is_held() -> None:
        assert held

    eventually(screen.page, is_held)
    assert not screen.root.locator(".strip .coming").count()
    for route in held:
        route.continue_()
    screen.root.locator(".strip .coming").wait_for()
    assert screen.root.locator(".strip .coming").all_inner_texts() == ["snow"]
    colour = "(one) => getComputedStyle(one).color"
    assert screen.root.locator(".strip .coming").evaluate(colour) == screen.root.locator(".big .w").evaluate(colour)
    assert screen.root.locator(".strip.key .k").all_inner_texts() == [
        "Schnee"
    ]  # the sixth, as “the” is of its own text
    screen.page.unroute("**/headlight/next?*")


def columns_of(screen: Screen) -> list[float]:
    """How wide each column is whose word stands above it, in px."""
    xs = [float(x) for x in screen.data()["columns"].split()]
    return [after - before for before, after in itertools.pairwise(xs)]


def test_columns_may_be_equally_wide(screen: Screen):
    screen.open()
    assert max(columns_of(screen)) > 1.5 * min(columns_of(screen))  # as wide as their words
    screen.page.keyboard.press("o")
    screen.root.get_by_role("button", name="equal", exact=True).click()
    screen.wait(widths="equal")
    widths = columns_of(screen)
    assert len(widths) == 16 and max(widths) - min(widths) < 0.3
    screen.page.wait_for_url(re.compile("columns=equal"))
    words = screen.root.locator(".strip [data-i]")
    assert words.evaluate_all("(all) => all.every((word) => word.scrollWidth <= word.clientWidth)")  # none is cut off
    screen.page.mouse.move(*screen.cell(10, 2))
    screen.wait(cell="10,2")
    assert float(screen.data()["value"]) == pytest.approx(0.677, abs=1e-3)
    # Words that are too long for that lean over columns that are as wide as rows are high.
    screen.open(
        "?columns=equal&text="
        + quote("The interdisciplinary representative did not apologise to me, so I left at once.")
    )
    assert screen.data()["columns"] == "" and screen.data()["folded"] == ""
    assert not screen.root.get_by_role("button", name="whole", exact=True).count()
    screen.page.mouse.move(*screen.cell(3, 5))
    screen.wait(cell="3,5")


def test_a_text_that_is_longer_than_what_a_model_learnt_on_says_so(screen: Screen):
    said = "Longer than the 256 tokens it learnt on."
    note = screen.root.locator(".map > .note")
    screen.open("?model=storyteller&layer=1&head=0&query=60&text=" + quote("The cat sat on the old mat. " * 180))
    screen.until("root.dataset.folded && root.dataset.fetching === 'false'")
    assert int(screen.data()["tokens"]) > 1200 and note.inner_text().endswith(said)
    columns = [[float(x) for x in part.split(":")] for part in screen.data()["folded"].split()]
    wide, narrow = (
        {round(right - left) for of, left, right in columns if low < -of < high}
        for low, high in ((999, 9999), (0, 1000))
    )
    assert wide and narrow and min(wide) > max(narrow)  # "1,234" needs more room than "12"
    screen.open("?model=storyteller&text=" + quote("The cat sat on the old mat. " * 20))
    assert said not in note.inner_text()


def test_arcs_fly_over_a_folded_map_too(screen: Screen):
    screen.open(f"?layer=3&head=1&query=30&text={quote(LONG)}")
    screen.until("root.dataset.folded && root.dataset.fetching === 'false'")
    drawn = """root.querySelector('.matrix .arcs') && new Set(root.querySelector('.matrix .arcs')
        .getContext('2d').getImageData(0, 0, 900, 20).data).size > 1"""
    screen.until(drawn)
    screen.root.get_by_role("button", name="whole", exact=True).click()
    screen.wait(whole="true", folded="")
    assert not screen.root.locator(".arcs").count()


def test_a_projected_fold_uses_the_room_that_its_note_leaves(screen: Screen):
    screen.open("?projector=true")
    note, keys = (screen.root.locator(name).bounding_box() for name in (".map > .note", ".clicker"))
    assert screen.data()["folded"] and note and keys
    left = keys["y"] - note["y"] - note["height"]
    assert 0 <= left < float(screen.data()["size"])  # else there would be another row


def test_a_long_text_is_folded_and_its_strongest_key_is_on_the_screen(screen: Screen):
    screen.open(f"?layer=3&head=1&query=30&text={quote(LONG)}")
    screen.until("root.dataset.folded && root.dataset.fetching === 'false'")
    run = core.trace(core.load("minilm"), LONG)
    row = run.attention[3].row(1, 30)
    columns = [[float(x) for x in part.split(":")] for part in screen.data()["folded"].split()]
    keys = [int(key) for key, *_ in columns if key >= 0]
    assert int(row.argmax()) in keys and 30 in keys
    assert len(keys) + sum(-int(key) for key, *_ in columns if key < 0) == len(row)
    note = screen.root.locator(".map > .note").inner_text()
    folded = float(re.search(r"\(<?([\d.]+) % of this row\)", note).group(1))  # type: ignore[union-attr]
    assert folded / 100 + row[keys].sum().item() == pytest.approx(1, abs=2e-3)
    assert f"{len(row) - len(keys)} of {len(row)} columns are folded" in note
    box = screen.root.locator(".matrix").bounding_box()
    assert box is not None
    strip = screen.root.locator(".strip").bounding_box()
    token = screen.root.locator(f".strip [data-i='{int(row.argmax())}']").bounding_box()
    assert strip and token and strip["y"] <= token["y"] and token["y"] + token["height"] <= strip["y"] + strip["height"]
    key, left, right = next(column for column in columns if column[0] == int(row.argmax()))
    data = screen.data()
    y = float(data["top"]) + (30 - int(data["row"]) + 0.5) * float(data["size"])
    screen.page.mouse.move(box["x"] + (left + right) / 2, box["y"] + y)
    screen.wait(cell=f"30,{int(key)}")
    assert float(screen.data()["value"]) == pytest.approx(row.max().item(), abs=1e-4)
    gap = next(column for column in columns if column[0] < -1)
    screen.page.mouse.click(box["x"] + (gap[1] + gap[2]) / 2, box["y"] + y)
    screen.until(f"root.dataset.folded !== '{data['folded']}'")
    screen.root.get_by_role("button", name="whole", exact=True).click()
    screen.wait(whole="true", folded="")
    screen.page.wait_for_url(re.compile("whole=true"))


def test_hebrew_stands_from_right_to_left(screen: Screen):
    screen.open(f"?text={quote('שלום לכל העולם')}")
    first, last = (screen.root.locator(f".strip [data-i='{i}']").bounding_box() for i in (1, 12))
    assert first and last and first["x"] > last["x"]  # over their columns
    screen.page.mouse.move(*screen.cell(4, 1))
    screen.wait(cell="4,1")
    text = screen.page.get_by_role("textbox", name="Sentence", exact=True).input_value()
    screen.run_text(f"{text} " * 9)  # too long for a map of all of it
    screen.until("root.dataset.folded && root.dataset.fetching === 'false'")
    columns = [[float(x) for x in part.split(":")] for part in screen.data()["folded"].split()]
    edges = [edge for _, start, end in columns for edge in (start, end)]
    assert edges == sorted(edges, reverse=True) and len(columns) > 5  # the first key stands at the right there too
    query, key = int(screen.data()["row"]) + 1, next(int(of) for of, *_ in columns[1:] if of >= 0)
    screen.page.mouse.move(*screen.cell(query, key))
    screen.wait(cell=f"{query},{key}")
    screen.run_text(text)
    screen.root.get_by_role("button", name="lines", exact=True).click()
    screen.wait(show="lines")
    first, last = (screen.root.locator(f".strip [data-i='{i}']").bounding_box() for i in (1, 12))
    assert first and last and first["x"] > last["x"]  # and as it was typed
    assert screen.root.locator(".strip").get_attribute("dir") == "rtl"
