"""Explore in a browser, with core as the judge of every number."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any
from urllib.parse import quote

import pytest
from playwright.sync_api import expect

import core
from app.attention import component
from app.kit import words as kit_words
from app.kit.stage import Followed
from app.rooms.explore import component as explore
from app.session import words
from app.shell import words as shell_words
from core.checkpoints import Loaded
from tests.app.browsing import Screen, box_of, once
from tests.app.plain import Plain, opened

APP = "app/main.py"
LAYER, HEAD, IT, ANIMAL = 3, 1, 10, 2  # where the view opens, and what it shows there

first = opened("")  # the view as it opens


@pytest.fixture(scope="module")
def model() -> Loaded:
    return core.load("minilm")


def test_it_opens_on_a_result_that_is_core_s(first: Plain, model: Loaded):
    run = core.trace(model, words.EXAMPLE)
    data = first.data()
    assert (data["site"], data["layer"], data["head"], data["locked"]) == ("encoder", str(LAYER), str(HEAD), str(IT))
    assert first.tokens() == list(run.source.labels)
    weight = run.attention[LAYER].row(HEAD, IT)[ANIMAL].item()
    assert f"{weight:.0%}".replace("%", " %") in first.facts()
    assert first.facts() == f"it gives {weight * 100:.0f} % of its attention to animal, rank 1 of 16."
    first.until("root.querySelectorAll('.proofs .holds').length === 2")
    assert first.root.locator(".proofs .fails").count() == 0


def test_a_hovered_cell_shows_the_value_that_core_gives(first: Plain, model: Loaded):
    run = core.trace(model, words.EXAMPLE)
    for query, key in ((IT, ANIMAL), (0, 0), (15, 15), (6, 8)):
        first.page.mouse.move(*first.cell(query, key))
        first.wait(cell=f"{query},{key}")
        row = run.attention[LAYER].row(HEAD, query)
        assert float(first.data()["value"]) == pytest.approx(row[key].item(), abs=0.5 / 65535 + 1e-6)
        tip = first.root.locator(".tip").inner_text()
        rank = 1 + int((row > row[key]).sum())
        assert f"{row[key].item():.4f}"[:5] in tip
        assert f"rank {rank} of 16" in tip
        assert run.source.labels[query] in tip and f"position {query}" in tip and f"position {key}" in tip
    first.page.mouse.move(5, 5)
    first.wait(cell="", query=str(IT))


def test_light_and_dark_follow_the_page(first: Plain):
    for scheme in ("light", "dark"):
        first.page.emulate_media(color_scheme=scheme)
        first.wait(theme=scheme)
        x, y, size = (float(first.data()[name]) for name in ("left", "top", "size"))
        ratio = first.page.evaluate("devicePixelRatio")
        at = f"{(x + 12.5 * size) * ratio}, {(y + 2.5 * size) * ratio}"  # a weight near 0: close to the page
        pixels = "root.querySelector('.matrix canvas').getContext('2d')"
        colour = first.root.evaluate(f"root => [...{pixels}.getImageData({at}, 1, 1).data]")
        assert (sum(colour[:3]) < 300) is (scheme == "dark")


def test_the_table_holds_the_same_numbers(first: Plain, model: Loaded):
    first.root.get_by_role("button", name="table", exact=True).click()
    first.wait(show="table")
    rows = first.root.locator("table tbody tr").all_inner_texts()
    weights = core.trace(model, words.EXAMPLE).attention[LAYER].row(HEAD, IT)
    assert len(rows) == 16
    for row in rows:
        _, _, position, weight = row.split("\t")
        assert float(weight) == pytest.approx(weights[int(position)].item(), abs=6e-5)
    assert "What it looks at, layer 3, head 1" in first.root.locator("caption").inner_text()


def test_a_typed_sentence_changes_tokens_overview_and_map(plain: Plain, model: Loaded):
    plain.open()
    pictures = "[...root.querySelectorAll('.overview canvas, .matrix canvas')].map((c) => c.toDataURL())"
    before = plain.root.evaluate(f"root => {pictures}")
    plain.run_text("A bird in the hand is worth two in the bush.")
    run = core.trace(model, "A bird in the hand is worth two in the bush.")
    assert plain.tokens() == list(run.source.labels)
    after = plain.root.evaluate(f"root => {pictures}")
    assert before[0] != after[0] and before[2] != after[2]
    plain.page.mouse.move(*plain.cell(3, 5))
    plain.wait(cell="3,5")
    layer, head = (int(plain.data()[name]) for name in ("layer", "head"))
    assert float(plain.data()["value"]) == pytest.approx(run.attention[layer].row(head, 3)[5].item(), abs=1e-5)
    plain.page.wait_for_url(re.compile(r"text=A\+bird"))


def test_keys_move_between_heads_without_a_fetch_and_the_link_and_back_follow(plain: Plain):
    plain.record().open("?metric=maps")
    plain.page.wait_for_load_state("networkidle")
    asked = len(plain.requests)
    plain.root.locator(".overview").focus()
    for key in ("ArrowDown", "ArrowRight", "ArrowRight", "ArrowUp", "ArrowUp"):
        plain.page.keyboard.press(key)
    plain.wait(layer="2", head="3")
    plain.page.wait_for_url(re.compile(r"layer=2.*head=3"))
    assert [url for url in plain.requests[asked:] if re.search("[?&](layer|head)=", url)] == []
    facts, link = plain.facts(), plain.page.url.removeprefix(f"{plain.address}/")
    plain.open(link)
    data = plain.data()
    assert (data["layer"], data["head"], data["locked"]) == ("2", "3", str(IT))
    assert plain.facts() == facts
    plain.root.locator(".overview").focus()
    plain.page.keyboard.press("ArrowRight")
    plain.page.wait_for_url(re.compile("head=4"))
    plain.page.go_back()
    plain.wait(layer="2", head="3")


def test_a_click_chooses_a_head_or_locks_a_token_which_a_second_releases(plain: Plain):
    plain.open()
    for head in (0, 5, 11):
        plain.page.mouse.click(*plain.head(3, head))
        plain.until(f"root.dataset.head === '{head}'")
        assert plain.data()["layer"] == "3"
    token = plain.root.locator(".strip [data-i='13']")
    token.click()
    plain.wait(locked="13")
    assert plain.facts().startswith("tired gives")
    token.click()
    plain.wait(locked="")


@pytest.mark.thorough
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


@pytest.mark.thorough
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


@pytest.mark.thorough
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


def test_keys_mean_the_same_from_the_page_s_body_as_in_every_room(plain: Plain):
    """Arrows go through heads and tokens, Page keys through findings, "/" finds a head, and Escape lets go of what is locked."""
    plain.open()
    keys = plain.page.keyboard
    for _ in range(3):  # within one frame, each begins where the one before has led
        keys.press("ArrowRight")
    plain.wait(layer=str(LAYER), head=str(HEAD + 3))
    keys.press("ArrowLeft")
    keys.press("ArrowDown")
    plain.wait(head=str(HEAD + 2), locked=str(IT + 1))
    keys.press("/")
    keys.type("0.5")
    keys.press("Enter")
    plain.wait(layer="0", head="5", locked=str(IT + 1))
    keys.press("Escape")
    plain.wait(locked="", query="")
    plain.page.wait_for_url(re.compile("query=none"))
    plain.root.locator(".matrix").focus()
    keys.press("ArrowRight")
    plain.until("root.dataset.cell !== ''")  # of the map, which has the focus
    assert (plain.data()["layer"], plain.data()["head"]) == ("0", "5")


def test_the_head_that_is_picked_is_offered_and_never_taken(plain: Plain):
    plain.open()
    plain.run_text("A bird in the hand is worth two in the bush.")
    picked, offer = plain.data(), plain.root.locator(".offer")
    expect(plain.root.locator(".rule")).to_be_visible()
    expect(offer).to_be_hidden()
    plain.root.locator(".overview").focus()
    plain.page.keyboard.press("PageDown")
    plain.until(f"root.dataset.head !== '{picked['head']}'")
    expect(offer).to_have_text("clearest: L{layer} H{head}".format(**picked))
    plain.root.get_by_role("button", name=kit_words.COMPONENT["pin"], exact=True).click()
    plain.run_text("Two birds in the bush are worth one in the hand.")
    expect(offer).to_have_text(re.compile("clearest: L[0-9]+ H[0-9]+$"))
    layer, head = re.findall(" [LH]([0-9]+)", offer.inner_text())
    assert (plain.data()["layer"], plain.data()["head"]) != (layer, head)
    offer.click()
    plain.wait(layer=layer, head=head)
    expect(offer).to_be_hidden()


def test_the_map_is_walked_locked_and_released_by_keyboard(plain: Plain):
    plain.open()
    plain.root.locator(".matrix").focus()
    plain.page.keyboard.press("ArrowRight")
    plain.wait(cell=f"{IT},{ANIMAL}")
    plain.page.keyboard.press("ArrowDown")
    plain.page.keyboard.press("ArrowLeft")
    plain.wait(cell=f"{IT + 1},{ANIMAL - 1}")
    assert "The" in plain.facts() and plain.facts().startswith("was")
    plain.page.keyboard.press("Enter")
    plain.wait(locked=str(IT + 1))
    plain.page.keyboard.press("Escape")
    plain.wait(locked="", query="")
    assert "On average" in plain.facts()
    plain.page.wait_for_url(re.compile("query=none"))


def test_tab_reaches_strip_overview_and_map_and_the_summary_is_spoken(plain: Plain):
    plain.open("?metric=maps")
    reached = []
    for _ in range(24):
        plain.page.keyboard.press("Tab")
        reached.append(plain.root.evaluate("root => root.getRootNode().activeElement?.className ?? ''"))
    assert "overview" in reached and "matrix" in reached
    assert any(name.split()[:1] == ["q"] for name in reached)
    plain.root.locator(".overview").focus()
    plain.page.keyboard.press("ArrowDown")
    plain.until("root.querySelector('.unseen[role=status]').textContent.includes('Layer 4 · Head 1')")
    assert plain.facts() in (plain.root.locator(".unseen[role=status]").text_content() or "")


def test_markup_in_a_sentence_is_text(plain: Plain):
    plain.open(f"?text={quote('<img src=x onerror=alert(1)> & <script>alert(2)</script>')}")
    assert "".join(plain.tokens()).replace("[CLS]", "").startswith("<imgsrc=xonerror=alert(1)>")
    assert plain.page.locator(".hl img, .hl script").count() == 0
    plain.page.mouse.move(*plain.cell(2, 3))
    plain.wait(cell="2,3")
    assert "im" in plain.root.locator(".tip").inner_text()


@pytest.mark.thorough
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


@pytest.mark.thorough
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


def test_a_link_may_name_the_model_by_its_id(plain: Plain):
    plain.open(f"?model=minilm&text={quote(words.EXAMPLE)}&layer=0&head=2&query=5")
    assert plain.sentences() == ""
    assert (plain.data()["layer"], plain.data()["head"], plain.data()["locked"]) == ("0", "2", "5")


@pytest.mark.thorough
def test_a_link_that_names_another_model_by_its_id_keeps_it(screen: Screen):
    screen.open("?model=copy")
    screen.page.wait_for_url(re.compile("model=Copy"))
    run = screen.data()["run"]
    screen.page.reload()
    screen.wait(run=run)
    assert screen.page.locator("[class*=st-key-box_model_] input").input_value() == "Copy"


def test_what_is_chosen_counts_in_the_picture_of_the_next_sentence(plain: Plain):
    plain.open()
    plain.root.get_by_role("button", name="hide [CLS]", exact=True).click()
    plain.root.get_by_role("button", name="lines", exact=True).click()
    plain.page.wait_for_url(re.compile("show=lines.*hide=0"))
    plain.run_text("At once another one.")
    assert (plain.data()["show"], plain.data()["hide"]) == ("lines", "[0]")
    assert "show=lines" in plain.page.url and "hide=0" in plain.page.url


@pytest.mark.thorough
@pytest.mark.parametrize("choice", ["lines", "hide"])
def test_what_is_chosen_right_before_a_sentence_is_typed_counts_in_its_picture(screen: Screen, choice: str):
    screen.open()
    name = "lines" if choice == "lines" else "hide [CLS]"
    screen.root.get_by_role("button", name=name, exact=True).click()
    screen.run_text("At once another one.")
    assert (screen.data()["show"], screen.data()["hide"]) == (("lines", "[]") if choice == "lines" else ("map", "[0]"))
    screen.page.wait_for_url(re.compile("show=lines" if choice == "lines" else "hide=0"))


@pytest.mark.parametrize("query", ["", "&projector=true"])
def test_nothing_of_a_locked_token_is_cut_off(plain: Plain, query: str):
    plain.open(f"?query=2{query}")
    room, token = (plain.root.locator(part).bounding_box() for part in (".strip", ".strip span.q"))
    assert room and token and room["y"] <= token["y"] and token["x"] >= room["x"]  # the ring is inside of it
    assert token["y"] + token["height"] <= room["y"] + room["height"]


@pytest.mark.thorough
def test_a_first_visit_with_a_text_that_cannot_run_is_taught(screen: Screen):
    screen.page.goto(f"{screen.address}/?text=%20")
    screen.page.get_by_text(shell_words.NOTHING_YET).wait_for()
    screen.page.get_by_role("button", name=shell_words.TAKE_EXAMPLE).click()
    screen.wait(locked=str(IT))
    assert screen.page.get_by_role("textbox", name="Sentence", exact=True).input_value() == words.EXAMPLE


def test_repeated_tokens_keep_their_own_places(plain: Plain, model: Loaded):
    text = "the the the the"
    plain.open(f"?text={text.replace(' ', '+')}")
    run = core.trace(model, text)
    assert plain.tokens() == ["[CLS]", "the", "the", "the", "the", "[SEP]"]
    for key in (1, 4):
        plain.page.mouse.move(*plain.cell(2, key))
        plain.wait(cell=f"2,{key}")
        layer, head = (int(plain.data()[name]) for name in ("layer", "head"))
        assert float(plain.data()["value"]) == pytest.approx(run.attention[layer].row(head, 2)[key].item(), abs=1e-5)


def test_the_shapes_of_the_run_are_asked_for_with_one_click(plain: Plain):
    plain.open()
    plain.shapes().click()
    assert [name for name, _ in plain.page.evaluate("plain.asked")] == ["shapes"]


@pytest.mark.thorough
def test_the_shapes_of_the_run_are_one_click_away(screen: Screen):
    screen.open()
    screen.shapes().click()
    screen.page.locator("[data-testid=stDataFrame]").wait_for()
    expect(screen.page.get_by_role("dialog").get_by_text("cpu, float32")).to_be_visible()


@pytest.mark.thorough
def test_the_shapes_are_of_the_sentence_that_was_on_its_way_when_they_were_asked_for(screen: Screen):
    screen.open()
    screen.type("A shorter one.")
    screen.shapes().click()  # the picture of the sentence before is still there
    screen.page.locator("[data-testid=stDataFrame]").wait_for()
    assert screen.tokens() == ["[CLS]", "A", "shorter", "one", ".", "[SEP]"]


def test_what_is_beside_the_proofs_keeps_its_place_when_they_come(plain: Plain):
    """A click on it that is under way when a picture comes would else be lost."""
    plain.open()
    plain.until("root.querySelectorAll('.proofs .holds').length === 2")
    ran, held = plain.root.locator("footer .ran"), []
    left = box_of(ran)["x"]
    plain.page.route("**/headlight/proof*", lambda route: held.append(route))
    try:
        plain.run_text("A shorter one.")
        plain.until("root.dataset.tokens === '6' && !root.querySelector('.proofs .holds')")
        assert abs(box_of(ran)["x"] - left) <= 1
    finally:
        plain.page.unroute("**/headlight/proof*")  # which lets those continue that were held
    plain.until("root.querySelectorAll('.proofs .holds').length === 2")
    assert abs(box_of(ran)["x"] - left) <= 1


def test_what_is_opened_is_noted_even_if_the_script_is_begun_anew_at_once(monkeypatch: pytest.MonkeyPatch):
    """Streamlit tells it to one run of the script, which the next choice may end: so it is noted before that run begins."""
    given: dict[str, Any] = {}
    session: dict[str, Any] = {"explore_stage": {"shapes": {"run": "before"}}}
    monkeypatch.setattr(explore.st, "session_state", session)
    on = replace(explore.EXPLORE.stage, mount=lambda **named: given.update(named))
    component._draw(replace(explore.EXPLORE, stage=on), Followed({}, frozenset(), {}, [], None), {}, b"")
    given["on_shapes_change"]()
    assert explore.OPENED.get() == ("shapes", {})
    session["explore_stage"] = {"inspect": {"run": "now", "layer": 1}}
    given["on_inspect_change"]()
    assert explore.OPENED.get() == ("inspect", {"run": "now", "layer": 1})


def test_a_wide_window_shows_it_larger(plain: Plain):
    plain.page.set_viewport_size({"width": 1920, "height": 1080})
    plain.open()
    height = plain.page.evaluate("document.querySelector('[data-testid=stMain]').scrollHeight")
    assert height <= 1080
    assert float(plain.data()["size"]) > 27  # with the guide open, and the strip of the whole model above


def test_a_phone_has_one_column_and_no_sideways_scroll(plain_phone: Plain):
    plain_phone.open()
    assert plain_phone.page.evaluate("document.querySelector('[data-testid=stMain]').scrollWidth") <= 390
    assert plain_phone.root.evaluate("root => root.classList.contains('narrow')")
    plain_phone.run_text(
        "The old keeper climbed the narrow stairs every single evening to light the lamp, because many ships needed it so very badly."
    )
    columns = [[float(x) for x in part.split(":")] for part in plain_phone.data()["folded"].split()]
    assert len([key for key, *_ in columns if key >= 0]) > 5
    assert min(abs(right - left) for _, left, right in columns) >= 24  # every name is written, over what a finger finds
    assert float(plain_phone.data()["size"]) >= 16
    assert "Tap ⋯" in plain_phone.root.locator(".map > .note").inner_text()
    plain_phone.run_text("שלום לכל העולם")  # all of it has room
    xs = [float(x) for x in plain_phone.data()["columns"].split()]
    assert xs == sorted(xs, reverse=True) and not plain_phone.data()["folded"]  # the first key stands at the right
    plain_phone.page.mouse.move(*plain_phone.cell(4, 1))
    plain_phone.wait(cell="4,1")


def test_the_first_view_needs_no_scrolling_and_no_plotly_and_stays_where_a_text_cannot_run(screen: Screen):
    screen.record().open()
    height, window = screen.page.evaluate("[document.querySelector('[data-testid=stMain]').scrollHeight, innerHeight]")
    assert height <= window == 720
    width = screen.page.evaluate("document.querySelector('[data-testid=stMain]').scrollWidth")
    assert width <= 1280
    for part in (".strip", ".overview", ".matrix", ".facts", "footer"):
        box = box_of(screen.root.locator(part))
        assert box["y"] + box["height"] <= 720
    assert not [url for url in screen.requests if "plotly" in url.lower()]
    run = screen.data()["run"]
    screen.type("")
    screen.page.locator(".st-key-sentences").get_by_text("empty").wait_for()
    assert words.LAST_PICTURE in screen.sentences()
    assert screen.data()["run"] == run and len(screen.tokens()) == 16
