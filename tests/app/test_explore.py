"""Explore, end to end: a server as users start it, a real browser, and core as the judge of every number."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest
from playwright.sync_api import expect

import core
from app.attention import component
from app.kit.stage import Followed
from app.rooms.explore import component as explore
from app.session import words
from app.shell import words as shell_words
from tests.app.browsing import Another, Screen, box_of, once

APP = "app/main.py"
LAYER, HEAD, IT, ANIMAL = 3, 1, 10, 2  # where the view opens, and what it shows there


@pytest.fixture(scope="module")
def model() -> core.Loaded:
    return core.load("minilm")


def test_it_opens_on_a_result_that_is_core_s(screen: Screen, model: core.Loaded):
    screen.open()
    run = core.trace(model, words.EXAMPLE)
    data = screen.data()
    assert (data["site"], data["layer"], data["head"], data["locked"]) == ("encoder", str(LAYER), str(HEAD), str(IT))
    assert screen.tokens() == list(run.source.labels)
    weight = run.attention[LAYER].row(HEAD, IT)[ANIMAL].item()
    assert f"{weight:.0%}".replace("%", " %") in screen.facts()
    assert screen.facts() == f"it gives {weight * 100:.0f} % of its attention to animal, rank 1 of 16."
    screen.until("root.querySelectorAll('.proofs .holds').length === 2")
    assert screen.root.locator(".proofs .fails").count() == 0


def test_the_first_view_needs_no_scrolling_and_no_plotly(screen: Screen):
    screen.record().open()
    height, window = screen.page.evaluate("[document.querySelector('[data-testid=stMain]').scrollHeight, innerHeight]")
    assert height <= window == 720
    width = screen.page.evaluate("document.querySelector('[data-testid=stMain]').scrollWidth")
    assert width <= 1280
    for part in (".strip", ".overview", ".matrix", ".facts", "footer"):
        box = box_of(screen.root.locator(part))
        assert box["y"] + box["height"] <= 720
    assert not [url for url in screen.requests if "plotly" in url.lower()]


def test_a_hovered_cell_shows_the_value_that_core_gives(screen: Screen, model: core.Loaded):
    screen.open()
    run = core.trace(model, words.EXAMPLE)
    for query, key in ((IT, ANIMAL), (0, 0), (15, 15), (6, 8)):
        screen.page.mouse.move(*screen.cell(query, key))
        screen.wait(cell=f"{query},{key}")
        row = run.attention[LAYER].row(HEAD, query)
        assert float(screen.data()["value"]) == pytest.approx(row[key].item(), abs=0.5 / 65535 + 1e-6)
        tip = screen.root.locator(".tip").inner_text()
        rank = 1 + int((row > row[key]).sum())
        assert f"{row[key].item():.4f}"[:5] in tip
        assert f"rank {rank} of 16" in tip
        assert run.source.labels[query] in tip and f"position {query}" in tip and f"position {key}" in tip
    screen.page.mouse.move(5, 5)
    screen.wait(cell="", query=str(IT))


def test_a_typed_sentence_changes_tokens_overview_and_map(screen: Screen, model: core.Loaded):
    screen.open()
    pictures = "[...root.querySelectorAll('.overview canvas, .matrix canvas')].map((c) => c.toDataURL())"
    before = screen.root.evaluate(f"root => {pictures}")
    screen.run_text("A bird in the hand is worth two in the bush.")
    run = core.trace(model, "A bird in the hand is worth two in the bush.")
    assert screen.tokens() == list(run.source.labels)
    after = screen.root.evaluate(f"root => {pictures}")
    assert before[0] != after[0] and before[2] != after[2]
    screen.page.mouse.move(*screen.cell(3, 5))
    screen.wait(cell="3,5")
    layer, head = (int(screen.data()[name]) for name in ("layer", "head"))
    assert float(screen.data()["value"]) == pytest.approx(run.attention[layer].row(head, 3)[5].item(), abs=1e-5)
    screen.page.wait_for_url(re.compile(r"text=A\+bird"))


def test_the_keyboard_moves_between_heads_and_the_link_reproduces_the_screen(screen: Screen, another: Another):
    screen.open("?metric=maps")
    screen.root.locator(".overview").focus()
    for key in ("ArrowDown", "ArrowRight", "ArrowRight", "ArrowUp", "ArrowUp"):
        screen.page.keyboard.press(key)
    screen.wait(layer="2", head="3")
    screen.page.wait_for_url(re.compile(r"layer=2"))
    screen.page.wait_for_url(re.compile(r"head=3"))
    other = another()
    other.open(screen.page.url.removeprefix(f"{screen.address}/"))
    data = other.data()
    assert (data["layer"], data["head"], data["locked"]) == ("2", "3", str(IT))
    assert other.facts() == screen.facts()


def test_switching_heads_does_not_fetch_anything(screen: Screen):
    screen.record().open("?metric=maps")
    screen.page.wait_for_load_state("networkidle")
    asked = len(screen.requests)
    screen.root.locator(".overview").focus()
    for key in ("ArrowRight", "ArrowRight", "ArrowDown", "ArrowRight", "ArrowRight", "ArrowUp"):
        screen.page.keyboard.press(key)
    screen.wait(head="5", layer="3")
    screen.page.wait_for_url(re.compile("head=5"))
    # A proof comes when it is done, and the browser asks for the page's icon whenever it likes.
    later = [url for url in screen.requests[asked:] if "/headlight/proof" not in url and "/favicon" not in url]
    assert later == []


def test_a_click_on_the_overview_chooses_that_head(screen: Screen):
    screen.open()
    for head in (0, 5, 11):
        screen.page.mouse.click(*screen.head(3, head))
        screen.until(f"root.dataset.head === '{head}'")
        assert screen.data()["layer"] == "3"


def test_going_back_goes_back_to_the_head_before(screen: Screen):
    screen.open()
    screen.root.locator(".overview").focus()
    screen.page.keyboard.press("ArrowRight")
    screen.page.wait_for_url(re.compile("head=2"))
    screen.page.go_back()
    screen.wait(head="1")
    assert screen.data()["layer"] == str(LAYER)


def test_going_back_to_a_sentence_goes_back_to_its_token(screen: Screen):
    screen.open()
    before, address = screen.data(), screen.page.evaluate("location.search")
    screen.run_text("Never mind the dog.")
    screen.wait(fetching="false")
    screen.page.wait_for_url(re.compile("text=Never"))
    screen.page.go_back()
    screen.wait(run=before["run"])
    screen.idle()
    assert [screen.data()[name] for name in ("layer", "head", "locked")] == [
        before[name] for name in ("layer", "head", "locked")
    ]
    screen.page.wait_for_timeout(
        400
    )  # longer than it takes to tell the server: nothing is told, and nothing comes of it
    assert screen.page.evaluate("location.search") == address


def test_steps_back_in_one_breath_end_where_the_link_says(screen: Screen):
    screen.open()
    first, address = screen.data()["run"], screen.page.evaluate("location.search")
    for hidden in (0, 3):
        screen.root.locator(f".strip [data-i='{hidden}']").focus()
        screen.page.keyboard.press("h")
        screen.page.wait_for_url(re.compile(r"[?&]hide=0(&|$)" if not hidden else r"[?&]hide=0(,|%2C)3(&|$)"))
        if not hidden:
            screen.run_text("Never mind the dog.")
            screen.page.wait_for_url(re.compile("text=Never"))
    screen.page.evaluate("""new Promise(async (done) => {
        for (let i = 0; i < 3; i++) { history.back(); await new Promise((wait) => setTimeout(wait, 60)); }
        done(true);
    })""")
    screen.wait(run=first, hide="[]")
    screen.idle()
    screen.page.wait_for_timeout(
        400
    )  # longer than it takes to tell the server: nothing is told, and nothing comes of it
    assert (screen.data()["locked"], screen.page.evaluate("location.search")) == ("10", address)


def test_keys_reach_the_examples_again_and_again(screen: Screen):
    screen.open()
    shown = []
    for down in (2, 3):
        before = "{layer}.{head}".format(**screen.data())
        screen.page.get_by_role("button", name=shell_words.EXAMPLES).focus()
        screen.page.keyboard.press("Enter")
        once(screen.page, "document.querySelector('[role=menu]')?.contains(document.activeElement)")
        for _ in range(down):
            screen.page.keyboard.press("ArrowDown")
        screen.page.keyboard.press("Enter")
        screen.until(f"`${{root.dataset.layer}}.${{root.dataset.head}}` !== '{before}'")
        screen.idle()
        shown.append("{layer}.{head}".format(**screen.data()))
    assert len(set(shown)) == 2
    screen.page.get_by_role("button", name=shell_words.EXAMPLES).focus()
    screen.page.keyboard.press("Enter")
    once(screen.page, "document.querySelector('[role=menu]')?.contains(document.activeElement)")
    screen.page.keyboard.press("Escape")
    screen.page.get_by_role("menu").wait_for(state="detached")


def test_keys_mean_the_same_from_the_page_s_body_as_in_every_room(screen: Screen):
    """Arrows go through heads and tokens, Page keys through findings, "/" finds a head, and Escape lets go of what is locked."""
    screen.open()
    keys = screen.page.keyboard
    for _ in range(3):  # within one frame, each begins where the one before has led
        keys.press("ArrowRight")
    screen.wait(layer=str(LAYER), head=str(HEAD + 3))
    keys.press("ArrowLeft")
    keys.press("ArrowDown")
    screen.wait(head=str(HEAD + 2), locked=str(IT + 1))
    keys.press("/")
    keys.type("0.5")
    keys.press("Enter")
    screen.wait(layer="0", head="5", locked=str(IT + 1))
    keys.press("Escape")
    screen.wait(locked="", query="")
    screen.page.wait_for_url(re.compile("query=none"))
    screen.root.locator(".matrix").focus()
    keys.press("ArrowRight")
    screen.until("root.dataset.cell !== ''")  # of the map, which has the focus
    assert (screen.data()["layer"], screen.data()["head"]) == ("0", "5")


def test_the_head_that_is_picked_is_offered_and_never_taken(screen: Screen):
    screen.open()
    screen.run_text("A bird in the hand is worth two in the bush.")
    picked, offer = screen.data(), screen.root.locator(".offer")
    expect(screen.root.locator(".rule")).to_be_visible()
    expect(offer).to_be_hidden()
    screen.root.locator(".overview").focus()
    screen.page.keyboard.press("PageDown")
    screen.until(f"root.dataset.head !== '{picked['head']}'")
    expect(offer).to_have_text("clearest: L{layer} H{head}".format(**picked))
    screen.run_text("Two birds in the bush are worth one in the hand.")
    expect(offer).to_have_text(re.compile("clearest: L[0-9]+ H[0-9]+$"))
    layer, head = re.findall(" [LH]([0-9]+)", offer.inner_text())
    assert (screen.data()["layer"], screen.data()["head"]) != (layer, head)
    offer.click()
    screen.wait(layer=layer, head=head)
    expect(offer).to_be_hidden()


def test_the_map_is_walked_locked_and_released_by_keyboard(screen: Screen):
    screen.open()
    screen.root.locator(".matrix").focus()
    screen.page.keyboard.press("ArrowRight")
    screen.wait(cell=f"{IT},{ANIMAL}")
    screen.page.keyboard.press("ArrowDown")
    screen.page.keyboard.press("ArrowLeft")
    screen.wait(cell=f"{IT + 1},{ANIMAL - 1}")
    assert "The" in screen.facts() and screen.facts().startswith("was")
    screen.page.keyboard.press("Enter")
    screen.wait(locked=str(IT + 1))
    screen.page.keyboard.press("Escape")
    screen.wait(locked="", query="")
    assert "On average" in screen.facts()
    screen.page.wait_for_url(re.compile("query=none"))


def test_tab_reaches_strip_overview_and_map_and_the_summary_is_spoken(screen: Screen):
    screen.open("?metric=maps")
    screen.page.get_by_role("textbox", name="Sentence", exact=True).focus()
    reached = []
    for _ in range(24):
        screen.page.keyboard.press("Tab")
        reached.append(screen.root.evaluate("root => root.getRootNode().activeElement?.className ?? ''"))
    assert "overview" in reached and "matrix" in reached
    assert any(name.split()[:1] == ["q"] for name in reached)
    screen.root.locator(".overview").focus()
    screen.page.keyboard.press("ArrowDown")
    screen.until("root.querySelector('.unseen[role=status]').textContent.includes('Layer 4 · Head 1')")
    assert screen.facts() in (screen.root.locator(".unseen[role=status]").text_content() or "")


def test_a_click_on_a_token_locks_it_and_a_second_releases_it(screen: Screen):
    screen.open()
    token = screen.root.locator(".strip [data-i='13']")
    token.click()
    screen.wait(locked="13")
    assert screen.facts().startswith("tired gives")
    token.click()
    screen.wait(locked="")


def test_the_table_holds_the_same_numbers(screen: Screen, model: core.Loaded):
    screen.open()
    screen.root.get_by_role("button", name="table", exact=True).click()
    screen.wait(show="table")
    rows = screen.root.locator("table tbody tr").all_inner_texts()
    weights = core.trace(model, words.EXAMPLE).attention[LAYER].row(HEAD, IT)
    assert len(rows) == 16
    for row in rows:
        _, _, position, weight = row.split("\t")
        assert float(weight) == pytest.approx(weights[int(position)].item(), abs=6e-5)
    assert "What it looks at, layer 3, head 1" in screen.root.locator("caption").inner_text()


def test_markup_in_a_sentence_is_text(screen: Screen):
    screen.open()
    screen.run_text("<img src=x onerror=alert(1)> & <script>alert(2)</script>")
    assert "".join(screen.tokens()).replace("[CLS]", "").startswith("<imgsrc=xonerror=alert(1)>")
    assert screen.page.locator(".hl img, .hl script").count() == 0
    screen.page.mouse.move(*screen.cell(2, 3))
    screen.wait(cell="2,3")
    assert "im" in screen.root.locator(".tip").inner_text()


@pytest.mark.parametrize(
    ("text", "said"),
    [("", "empty"), ("   ", "spaces"), ("word " * 600, "MiniLM-L6 has positions for 512")],
)
def test_a_text_that_cannot_run_gets_a_sentence_and_nothing_is_lost(screen: Screen, text: str, said: str):
    screen.open()
    run = screen.data()["run"]
    screen.type(text)
    screen.page.locator(".st-key-sentences").get_by_text(said).wait_for()
    assert words.LAST_PICTURE in screen.sentences()
    assert screen.page.get_by_role("textbox", name="Sentence", exact=True).input_value() == text
    assert screen.data()["run"] == run and len(screen.tokens()) == 16
    screen.run_text("It works again.")
    screen.page.locator(".st-key-sentences").get_by_text(words.LAST_PICTURE).wait_for(state="detached")


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("?view=Nowhere&model=nothing", ["a view called “Nowhere”", "a model called “nothing”"]),
        (
            "?layer=6&head=twelve&site=cross&query=16",
            [
                "layer “6”. Possible here: a whole number from 0 to 5. Shown instead: 3.",
                "head “twelve”. Possible here: a whole number from 0 to 11",
                "site “cross”. Possible here: encoder.",
                "query “16”",
            ],
        ),
        (
            "?model=<b>x</b>&head=%00%0A" + 60 * "x",
            ["a model called “<b>x</b>”", "head “��" + 37 * "x" + "…”. Possible here: a whole number"],
        ),
    ],
)
def test_a_link_to_what_does_not_exist_says_so_and_shows_what_does(screen: Screen, query: str, said: list[str]):
    screen.open(query)
    for sentence in said:
        screen.page.locator(".st-key-sentences").get_by_text(sentence).wait_for()
    assert (screen.data()["layer"], screen.data()["head"]) == (str(LAYER), str(HEAD))
    assert screen.page.locator(".st-key-sentences b").count() == 0


def test_a_link_may_name_the_model_by_its_id(screen: Screen):
    screen.open("?model=minilm&layer=0&head=2&query=5")
    assert screen.page.locator(".st-key-sentences").get_by_text("This link").count() == 0
    assert (screen.data()["layer"], screen.data()["head"], screen.data()["locked"]) == ("0", "2", "5")


def test_a_link_that_names_another_model_by_its_id_keeps_it(screen: Screen):
    screen.open("?model=copy")
    screen.page.wait_for_url(re.compile("model=Copy"))
    run = screen.data()["run"]
    screen.page.reload()
    screen.wait(run=run)
    assert screen.page.locator("[class*=st-key-box_model_] input").input_value() == "Copy"


@pytest.mark.parametrize("choice", ["lines", "hide"])
def test_what_is_chosen_right_before_a_sentence_counts_in_its_picture(screen: Screen, choice: str):
    screen.open()
    name = "lines" if choice == "lines" else "hide [CLS]"
    screen.root.get_by_role("button", name=name, exact=True).click()
    screen.run_text("At once another one.")
    assert (screen.data()["show"], screen.data()["hide"]) == (("lines", "[]") if choice == "lines" else ("map", "[0]"))
    screen.page.wait_for_url(re.compile("show=lines" if choice == "lines" else "hide=0"))


@pytest.mark.parametrize("query", ["", "&projector=true"])
def test_nothing_of_a_locked_token_is_cut_off(screen: Screen, query: str):
    screen.open(f"?query=2{query}")
    room, token = (screen.root.locator(part).bounding_box() for part in (".strip", ".strip span.q"))
    assert room and token and room["y"] <= token["y"] and token["x"] >= room["x"]  # the ring is inside of it
    assert token["y"] + token["height"] <= room["y"] + room["height"]


def test_a_first_visit_with_a_text_that_cannot_run_is_taught(screen: Screen):
    screen.page.goto(f"{screen.address}/?text=%20")
    screen.page.get_by_text(shell_words.NOTHING_YET).wait_for()
    screen.page.get_by_role("button", name=shell_words.TAKE_EXAMPLE).click()
    screen.wait(locked=str(IT))
    assert screen.page.get_by_role("textbox", name="Sentence", exact=True).input_value() == words.EXAMPLE


def test_repeated_tokens_keep_their_own_places(screen: Screen, model: core.Loaded):
    screen.open()
    text = "the the the the"
    screen.run_text(text)
    run = core.trace(model, text)
    assert screen.tokens() == ["[CLS]", "the", "the", "the", "the", "[SEP]"]
    for key in (1, 4):
        screen.page.mouse.move(*screen.cell(2, key))
        screen.wait(cell=f"2,{key}")
        layer, head = (int(screen.data()[name]) for name in ("layer", "head"))
        assert float(screen.data()["value"]) == pytest.approx(run.attention[layer].row(head, 2)[key].item(), abs=1e-5)


@pytest.mark.parametrize(("scheme", "dark"), [("light", False), ("dark", True)])
def test_light_and_dark_follow_the_page(another: Another, scheme: str, dark: bool):
    screen = another((1280, 720), scheme=scheme).open()
    assert screen.data()["theme"] == scheme
    pixel = "root.querySelector('.matrix canvas').getContext('2d')"
    x, y = (float(screen.data()[name]) for name in ("left", "top"))
    ratio = screen.page.evaluate("devicePixelRatio")
    size = float(screen.data()["size"])
    at = f"{(x + 12.5 * size) * ratio}, {(y + 2.5 * size) * ratio}"  # a weight near 0: close to the page
    colour = screen.root.evaluate(f"root => [...{pixel}.getImageData({at}, 1, 1).data]")
    assert (sum(colour[:3]) < 300) is dark


def test_the_shapes_of_the_run_are_one_click_away(screen: Screen):
    screen.open()
    screen.shapes().click()
    screen.page.locator("[data-testid=stDataFrame]").wait_for()
    expect(screen.page.get_by_role("dialog").get_by_text("cpu, float32")).to_be_visible()


def test_the_shapes_are_of_the_sentence_that_was_on_its_way_when_they_were_asked_for(screen: Screen):
    screen.open()
    screen.type("A shorter one.")
    screen.shapes().click()  # the picture of the sentence before is still there
    screen.page.locator("[data-testid=stDataFrame]").wait_for()
    assert screen.tokens() == ["[CLS]", "A", "shorter", "one", ".", "[SEP]"]


def test_what_is_beside_the_proofs_keeps_its_place_when_they_come(screen: Screen):
    """A click on it that is under way when a picture comes would else be lost."""
    screen.open()
    screen.until("root.querySelectorAll('.proofs .holds').length === 2")
    ran, held = screen.root.locator("footer .ran"), []
    left = box_of(ran)["x"]
    screen.page.route("**/headlight/proof*", lambda route: held.append(route))
    try:
        screen.type("A shorter one.")
        screen.until("root.dataset.tokens === '6' && !root.querySelector('.proofs .holds')")
        assert abs(box_of(ran)["x"] - left) <= 1
    finally:
        screen.page.unroute("**/headlight/proof*")  # which lets those continue that were held
    screen.until("root.querySelectorAll('.proofs .holds').length === 2")
    assert abs(box_of(ran)["x"] - left) <= 1


def test_what_is_opened_is_noted_even_if_the_script_is_begun_anew_at_once(monkeypatch: pytest.MonkeyPatch):
    """Streamlit tells it to one run of the script, which the next choice may end: so it is noted before that run begins."""
    given: dict[str, Any] = {}
    session: dict[str, Any] = {"explore_stage": {"shapes": {"run": "before"}}}
    monkeypatch.setattr(explore.st, "session_state", session)
    on = replace(explore.EXPLORE.stage, mount=lambda **named: given.update(named))
    component._draw(replace(explore.EXPLORE, stage=on), Followed({}, 1, 0, [], None), {}, b"")
    given["on_shapes_change"]()
    assert explore.OPENED.get() == ("shapes", {})
    session["explore_stage"] = {"inspect": {"run": "now", "layer": 1}}
    given["on_inspect_change"]()
    assert explore.OPENED.get() == ("inspect", {"run": "now", "layer": 1})


def test_a_wide_window_shows_it_larger(another: Another):
    screen = another((1920, 1080)).open()
    height = screen.page.evaluate("document.querySelector('[data-testid=stMain]').scrollHeight")
    assert height <= 1080
    assert float(screen.data()["size"]) > 27  # with the guide open, and the strip of the whole model above


def test_a_phone_has_one_column_and_no_sideways_scroll(another: Another):
    screen = another((390, 844), has_touch=True).open()
    assert screen.page.evaluate("document.querySelector('[data-testid=stMain]').scrollWidth") <= 390
    assert screen.root.evaluate("root => root.classList.contains('narrow')")
    screen.run_text(
        "The old keeper climbed the narrow stairs every single evening to light the lamp, because many ships needed it so very badly."
    )
    columns = [[float(x) for x in part.split(":")] for part in screen.data()["folded"].split()]
    assert len([key for key, *_ in columns if key >= 0]) > 5
    assert min(abs(right - left) for _, left, right in columns) >= 24  # every name is written, over what a finger finds
    assert float(screen.data()["size"]) >= 16
    assert "Tap ⋯" in screen.root.locator(".map > .note").inner_text()
    screen.run_text("שלום לכל העולם")  # all of it has room
    xs = [float(x) for x in screen.data()["columns"].split()]
    assert xs == sorted(xs, reverse=True) and not screen.data()["folded"]  # the first key stands at the right
    screen.page.mouse.move(*screen.cell(4, 1))
    screen.wait(cell="4,1")
