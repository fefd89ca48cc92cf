"""For the last row, and for the colleague who gets the link: projector mode, freeze, spotlight, light and dark, Copy link, Back."""

from __future__ import annotations

import re
from urllib.parse import parse_qs, urlencode, urlsplit

import pytest
from playwright.sync_api import Locator, Page, expect

from app.attention import words
from app.kit import words as kit_words
from app.session import words as session_words
from app.shell import registry
from tests.app.browsing import Another, Screen, box_of, once
from tests.app.plain import AnotherPlain, Plain

APP = "app/main.py"
LAYER, HEAD, IT, ANIMAL = 3, 1, 10, 2
WORDS = words.COMPONENT
ROW = """(root) => {  // the mean of a row's alpha on the layer over the map: what dims it
  const { left, top, size } = root.dataset;
  const canvas = root.querySelector('.matrix .over');
  const ratio = canvas.width / canvas.clientWidth;
  const at = (q) => canvas.getContext('2d').getImageData((+left + 5 * size) * ratio, (+top + (q + 0.3) * size) * ratio, 6, 3).data[3];
  return [at(8 - (root.dataset.row || 0)), at(10 - (root.dataset.row || 0))];
}"""


PLACES = [room.id for room in registry.rooms() if room.message is not None]
ONE = pytest.mark.parametrize("shown", ["light"], indirect=True)  # what no colour changes


@pytest.fixture(params=["light", pytest.param("dark", marks=pytest.mark.thorough)])
def shown(request: pytest.FixtureRequest, plain_another: AnotherPlain) -> Plain:
    return plain_another(scheme=request.param, reduced_motion="reduce")


def asked(page: Page) -> dict[str, str]:
    return {name: values[0] for name, values in parse_qs(urlsplit(page.url).query).items()}


def bar(page: Page, name: str) -> Locator:
    """A button of the bar of a projected page."""
    return page.get_by_role("toolbar").get_by_role("button", name=kit_words.COMPONENT[name], exact=True)


def root_size(page: Page) -> float:
    return page.evaluate("parseFloat(getComputedStyle(document.documentElement).fontSize)")


def test_p_makes_it_large_folds_the_controls_away_and_a_link_opens_it_so(screen: Screen, another: Another):
    screen.open()
    small = root_size(screen.page)
    screen.root.locator(".overview").focus()
    screen.page.keyboard.press("p")
    screen.wait(projector="true")
    screen.page.wait_for_url(re.compile("projector=true"))
    assert root_size(screen.page) >= 1.4 * small
    for gone in (
        screen.page.get_by_role("textbox", name="Sentence", exact=True),
        screen.root.locator("footer"),
        screen.root.locator(".overview"),
    ):
        gone.wait_for(state="hidden")
    fits = "({ scrollHeight, scrollWidth }) => scrollHeight <= 720 && scrollWidth <= 1280"
    once(screen.page, f"({fits})(document.querySelector('[data-testid=stMain]'))")
    # A quarter of this screen must still be read: the sentence and what is said about it are 30 pixels high and more.
    for part in (".strip span", ".story .big"):
        assert screen.root.locator(part).first.evaluate("n => parseFloat(getComputedStyle(n).fontSize)") >= 30
    other = another(reduced_motion="reduce").open(screen.page.url.removeprefix(f"{screen.address}/"))
    assert other.data()["projector"] == "true" and root_size(other.page) == root_size(screen.page)
    for key, name in (("f", "freeze"), ("s", "spotlight")):
        screen.page.keyboard.press(key)
        expect(bar(screen.page, name)).to_have_attribute("aria-pressed", "true")
    screen.page.wait_for_url(re.compile("frozen=true.*spotlight=true|spotlight=true.*frozen=true"))
    screen.page.keyboard.press("Escape")
    screen.wait(projector="false", spotlight="false")
    screen.page.get_by_role("textbox", name="Sentence", exact=True).wait_for()
    screen.page.wait_for_url(lambda url: not any(name in url for name in ("projector", "frozen", "spotlight")))
    # The map has its last row again: what stands above it had another size a moment ago.
    screen.until(
        "+root.dataset.top + root.dataset.size * root.dataset.tokens <= root.querySelector('.matrix').clientHeight + 1"
    )


@pytest.mark.thorough
def test_p_in_the_sentence_is_a_letter(screen: Screen):
    screen.open()
    box = screen.page.get_by_role("textbox", name="Sentence", exact=True)
    box.focus()
    box.press("End")
    screen.page.keyboard.press("p")
    assert box.input_value() == session_words.EXAMPLE + "p"
    assert screen.page.evaluate("headlight.settings.get('projector')") is None


@ONE
def test_a_clicker_and_arrows_go_through_heads_and_queries(shown: Plain):
    shown.open("?projector=true&layer=3&head=11")
    keys = shown.page.keyboard
    keys.press("ArrowRight")
    shown.wait(layer="4", head="0")
    keys.press("ArrowLeft")
    shown.wait(layer="3", head="11")
    keys.press("ArrowLeft")
    shown.wait(layer="3", head="10")
    keys.press("ArrowDown")
    shown.wait(locked=str(IT + 1))
    keys.press("ArrowUp")
    keys.press("ArrowUp")
    shown.wait(locked=str(IT - 1))
    assert shown.facts().startswith("because gives")
    shown.page.wait_for_url(re.compile(f"query={IT - 1}"))
    keys.press("PageDown")  # to a finding, and on to the next
    shown.until("root.dataset.finding")
    found = shown.data()["finding"]
    keys.press("PageDown")
    shown.until(f"root.dataset.finding && root.dataset.finding !== '{found}'")
    keys.press("PageUp")
    shown.wait(finding=found)


@ONE
def test_frozen_a_moving_pointer_changes_nothing(shown: Plain):
    shown.open("?projector=true")
    shown.page.mouse.move(*shown.cell(IT - 1, 2))
    shown.wait(cell=f"{IT - 1},2")
    shown.page.mouse.move(5, 715)
    shown.wait(cell="")
    shown.page.keyboard.press("f")
    expect(bar(shown.page, "freeze")).to_have_attribute("aria-pressed", "true")
    said = shown.facts()
    shown.page.mouse.move(*shown.cell(IT - 1, 2))
    shown.page.mouse.move(*shown.cell(IT + 1, 2))
    shown.page.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
    assert (shown.facts(), shown.data()["cell"], shown.data()["query"]) == (said, "", str(IT))
    assert not shown.root.locator(".tip").is_visible()
    shown.page.wait_for_url(re.compile("frozen=true"))
    shown.page.keyboard.press("f")
    expect(bar(shown.page, "freeze")).to_have_attribute("aria-pressed", "false")
    shown.page.mouse.move(*shown.cell(IT - 1, 2))
    shown.wait(cell=f"{IT - 1},2")


def test_a_spotlight_dims_every_row_but_the_chosen(shown: Plain):
    shown.open("?projector=true")
    assert shown.root.evaluate(ROW) == [0, 0]
    bar(shown.page, "spotlight").click()
    shown.wait(spotlight="true")
    other, chosen = shown.root.evaluate(ROW)
    assert other > 180 and chosen == 0
    shown.page.wait_for_url(re.compile("spotlight=true"))


@pytest.mark.thorough
def test_every_option_is_in_the_url_and_back_takes_it_back(screen: Screen):
    screen.open()
    screen.root.get_by_role("button", name="table", exact=True).click()
    screen.page.wait_for_url(re.compile("show=table"))
    screen.root.locator("table").wait_for()
    screen.root.get_by_role("button", name=re.compile(WORDS["options"])).click()
    screen.root.get_by_role("button", name=WORDS["log"], exact=True).click()
    screen.page.wait_for_url(re.compile("scale=log"))
    assert screen.data()["scale"] == "log"
    screen.page.go_back()
    screen.wait(scale="auto", show="table")
    screen.page.go_back()
    screen.wait(show="map")


@ONE
def test_a_part_of_a_map_is_in_the_link_until_it_is_all_there_again(shown: Plain, plain_another: AnotherPlain):
    text = "+".join(f"word{i}" for i in range(60))
    shown.open(f"?model=minilm&whole=true&text={text}")
    shown.root.locator(".matrix").press("+")
    shown.page.wait_for_url(re.compile("zoom="))
    part = shown.data()["area"]
    other = plain_another(reduced_motion="reduce").open(shown.page.url.removeprefix(f"{shown.address}/"))
    assert other.data()["area"] == part != "null"
    shown.root.locator(".matrix").press("0")
    shown.page.wait_for_url(lambda url: "zoom=" not in url)
    shown.root.locator(".matrix").press("+")
    shown.page.wait_for_url(re.compile("zoom="))
    shown.run_text("Another text of a few words.")
    shown.page.wait_for_url(lambda url: "zoom=" not in url)  # which is a part of the text before


@ONE
def test_the_options_open_and_close_by_keyboard(shown: Plain):
    shown.open()
    button = shown.root.get_by_role("button", name=re.compile(WORDS["options"]))
    shown.root.locator(".proofs > *").first.wait_for()  # the next layout leaves the picture the room that they leave it
    picture = box_of(shown.root.locator(".matrix"))
    button.focus()
    shown.page.keyboard.press("Enter")
    panel = shown.root.get_by_role("dialog", name=WORDS["options_label"])
    panel.wait_for()
    assert panel.evaluate("panel => panel.contains(panel.getRootNode().activeElement)")
    assert box_of(panel)["x"] > picture["x"] + picture["width"]  # never over the map that they change
    panel.get_by_role("button", name=WORDS["kinds"]["mean"][0], exact=True).click()
    shown.wait(kind="mean")
    assert box_of(shown.root.locator(".matrix")) == picture
    shown.page.keyboard.press("Escape")
    panel.wait_for(state="hidden")
    assert button.evaluate("button => button === button.getRootNode().activeElement")


@pytest.mark.thorough
def test_a_link_reproduces_the_screen_in_a_fresh_browser(screen: Screen, another: Another):
    screen.open(
        "?text=A+b%C3%A4r+%26+%3Cb%3Ea+cat%3C%2Fb%3E&layer=2&head=9&query=none&scale=row&hide=0&keep=50&metric=entropy&sort=true"
    )
    screen.page.context.grant_permissions(["clipboard-read", "clipboard-write"], origin=screen.address)
    screen.root.get_by_role("button", name=WORDS["copy_link"]).click()
    screen.root.get_by_text(WORDS["copied"]).first.wait_for()
    link = screen.page.evaluate("navigator.clipboard.readText()")
    assert parse_qs(urlsplit(link).query)["text"] == ["A bär & <b>a cat</b>"]
    other = another(reduced_motion="reduce").open(link.removeprefix(f"{screen.address}/"))
    here, there = screen.data(), other.data()
    for name in ("run", "layer", "head", "locked", "scale", "hide", "keep", "metric", "sort", "show", "kind"):
        assert here[name] == there[name], name
    assert (there["scale"], there["hide"], there["keep"], there["metric"], there["sort"]) == (
        "row",
        "[0]",
        "50",
        "entropy",
        "true",
    )
    assert other.tokens() == screen.tokens() and other.facts() == screen.facts()
    assert other.page.locator(".st-key-sentences").get_by_text("This link").count() == 0


@pytest.mark.thorough
def test_a_locked_key_is_in_the_url_and_comes_back(screen: Screen, another: Another):
    screen.open()
    screen.root.locator(".strip [data-i='2']").focus()
    screen.page.keyboard.press("k")
    screen.wait(pin="2", locked="")
    screen.page.wait_for_url(re.compile(r"[?&]key=2(&|$)"))
    assert asked(screen.page)["query"] == "none"
    size = screen.page.viewport_size
    assert size is not None
    other = another((size["width"], size["height"]), reduced_motion="reduce")
    other.open(screen.page.url.removeprefix(f"{screen.address}/"))
    other.wait(pin="2", locked="")
    assert other.facts() == screen.facts() and "looked at most by" in other.facts()
    screen.root.locator(".strip [data-i='5']").focus()
    screen.page.keyboard.press("Enter")
    screen.wait(pin="", locked="5")
    screen.page.wait_for_url(lambda url: "key=" not in url)
    screen.page.go_back()
    screen.wait(pin="2", locked="")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.thorough
def test_without_permission_the_link_can_be_copied_by_hand(own_screen: Screen, scheme: str):
    screen = own_screen
    screen.page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
    screen.page.add_init_script("Object.defineProperty(navigator, 'clipboard', { value: undefined })")
    screen.open()
    screen.root.get_by_role("button", name=WORDS["copy_link"]).click()
    field = screen.root.get_by_label(WORDS["copy_by_hand"])
    field.wait_for()
    link = field.input_value()
    assert parse_qs(urlsplit(link).query)["text"] == [session_words.EXAMPLE]
    assert field.evaluate("f => [f.selectionStart, f.selectionEnd, f.value.length]") == [0, len(link), len(link)]
    field.press("Escape")
    field.wait_for(state="hidden")


@pytest.mark.parametrize(("scheme", "other"), [("light", "dark"), ("dark", "light")])
@pytest.mark.thorough
def test_a_theme_in_the_link_wins_over_the_browser_for_the_whole_page(another: Another, scheme: str, other: str):
    screen = another(scheme=scheme, reduced_motion="reduce").open(f"?theme={other}")
    background = "getComputedStyle(document.querySelector('[data-testid=stApp]')).backgroundColor"
    grounds = {"light": "rgb(252, 252, 250)", "dark": "rgb(15, 18, 22)"}
    assert screen.data()["theme"] == other
    once(screen.page, f"{background} === '{grounds[other]}'")
    screen.root.get_by_role("button", name=re.compile(WORDS["options"])).click()
    screen.root.get_by_role("button", name=WORDS["theme_auto"], exact=True).click()
    screen.wait(theme=scheme)
    once(screen.page, f"{background} === '{grounds[scheme]}'")
    screen.page.wait_for_url(lambda url: "theme" not in url)


IN_VAIN = {
    "scale": "cubic",
    "kind": "<b>x</b>",
    "hide": "99",
    "heads": "9.9",
    "keep": "0",
    "zoom": "4,4,0,9",
    "words": "x" * 3000,
}


def test_every_option_that_does_not_exist_is_ignored_with_a_sentence(plain_another: AnotherPlain):
    screen = plain_another(reduced_motion="reduce").open(f"?{urlencode(IN_VAIN)}")
    notes = screen.page.locator(".st-key-sentences")
    for name, value in IN_VAIN.items():
        notes.get_by_text(f"{name} “{value[:20]}").wait_for()
    expect(notes.locator("p")).to_have_count(len(IN_VAIN))
    data = screen.data()
    assert (data["layer"], data["head"], data["scale"], data["kind"], data["hide"]) == ("3", "1", "auto", "head", "[]")


@pytest.mark.parametrize(("scheme", "model"), [("light", ""), ("dark", "&model=Brackets")])
@pytest.mark.thorough
def test_a_phone_projects_without_a_sideways_scroll(another: Another, scheme: str, model: str):
    screen = another((390, 844), scheme, reduced_motion="reduce").open(f"?projector=true{model}")
    assert screen.page.evaluate("document.querySelector('[data-testid=stMain]').scrollWidth") <= 390
    assert box_of(screen.root.locator(".big"))["y"] < 844 / 2  # also below the step of a training
    bar(screen.page, "exit").click()
    screen.wait(projector="false")
    assert screen.page.evaluate("document.querySelector('[data-testid=stMain]').scrollWidth") <= 390
    picture, strip, heads = (box_of(screen.root.locator(part)) for part in (".matrix", ".strip", ".fold"))
    assert strip["y"] < picture["y"] < heads["y"]


@pytest.mark.parametrize("asked", ["view=masks&text=The+cat+sat.", "view=shapes&of=gpt2"])
@pytest.mark.thorough
def test_a_link_of_a_campaign_opens_and_what_it_adds_is_no_part_of_the_link_that_is_copied(
    own_screen: Screen, asked: str
):
    """A name that is not ours is neither refused nor taken out of the visitor's address, and no room reads it."""
    screen, view = own_screen, asked.partition("&")[0]
    screen.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    strange = {"utm_source": "newsletter", "utm_campaign": "a&b", "gclid": "1"}
    screen.page.goto(f"{screen.address}/?{asked}&{urlencode(strange)}")
    screen.page.locator(".hl[data-painted]").wait_for()
    screen.idle()
    screen.page.wait_for_url(lambda url: "query=" in url or "batch=" in url)
    said = {name: values[0] for name, values in parse_qs(urlsplit(screen.page.url).query).items()}
    assert {name: said.get(name) for name in strange} == strange
    assert screen.page.locator(".st-key-sentences [data-testid=stText]").count() == 0, "nothing is said against it"
    screen.root.get_by_role("button", name=WORDS["copy_link"]).click()
    copied = screen.page.evaluate("navigator.clipboard.readText()")
    assert view in copied and asked.partition("&")[2] in copied
    assert "utm_" not in copied and "gclid" not in copied


@pytest.mark.parametrize("room", PLACES)
def test_every_room_has_the_same_bar_at_the_bottom_right_of_the_window(plain: Plain, room: str):
    plain.open(f"?view={room}&model=Storyteller&projector=true")
    page = plain.page
    found = page.get_by_role("toolbar")
    names = [kit_words.COMPONENT[name] for name in ("exit", "freeze", "spotlight")]
    assert found.get_by_role("button").all_inner_texts() == names
    at = box_of(found)
    assert 1280 - 40 < at["x"] + at["width"] <= 1280 and 720 - 24 < at["y"] + at["height"] <= 720
    assert not plain.root.locator(".foot, .acts").locator("visible=true").count()
    bar(page, "spotlight").click()
    page.wait_for_url("**spotlight=true**")
    dim = page.locator(".headlight-projection .dim")
    assert dim.is_visible() != (room == "explore"), "Explore dims its own rows"
    bar(page, "exit").click()
    page.wait_for_url(lambda url: "projector" not in url and "spotlight" not in url)
    expect(found).to_be_hidden()
    assert plain.root.locator(".acts").locator("visible=true").count()
