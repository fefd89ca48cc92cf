"""The first minutes of a visit: examples that hold what they promise, how to read the picture, and what is there while one waits."""

from __future__ import annotations

import re
from collections.abc import Iterator
from urllib.request import urlopen

import pytest
import torch
from playwright.sync_api import Browser

import core
from app.attention import words
from app.session import words as session_words
from app.session.examples import EXAMPLES, Example
from app.shell import words as shell_words
from core.checkpoints import Loaded
from core.read import measures
from tests.app.browsing import Screen, box_of, eventually, once
from tests.app.pages import lend
from tests.app.plain import AnotherPlain

APP = "tests/app/slow.py"
WORDS = words.COMPONENT


# the examples, measured


@pytest.fixture(scope="module")
def model() -> Loaded:
    return core.load("minilm")


def shown(model: Loaded, title: str) -> tuple[torch.Tensor, list[str], int]:
    """The map of an example's head, its labels and the token that it locks."""
    example = next(example for example in EXAMPLES["minilm"] if example.title.startswith(title))
    run = core.trace(model, example.text)
    labels = list(run.source.labels)
    return run.attention[example.layer].pattern()[example.head], labels, labels.index(str(example.token))


@pytest.mark.parametrize(
    ("title", "looked_at", "weight"),
    [("A pronoun", "animal", 0.6), ("A verb", "keys", 0.6), ("The cat sat", "mat", 0.65)],
)
def test_one_word_finds_the_other(model: Loaded, title: str, looked_at: str, weight: float):
    pattern, labels, query = shown(model, title)
    assert labels[int(pattern[query].argmax())] == looked_at
    assert pattern[query].max() > weight
    # and it is a link of these two words: other queries do not look there as well
    key = int(pattern[query].argmax())
    others = [q for q in range(len(labels)) if q != query]
    assert pattern[others, key].mean() < weight / 2


def test_the_token_before_and_the_token_after(model: Loaded):
    assert measures.previous_token(shown(model, "The token before")[0]) > 0.99
    pattern, _, query = shown(model, "The token after")
    assert measures.next_token(pattern) > 0.7
    assert pattern[query].argmax() == query + 1


def test_punctuation_gets_the_largest_share(model: Loaded):
    pattern, labels, query = shown(model, "Punctuation")
    signs = [i for i, label in enumerate(labels) if label in ",."]
    assert measures.mean_received(pattern)[signs].sum() > 0.4
    assert int(pattern[query].argmax()) in signs


def test_repeats_look_at_their_copies(model: Loaded):
    pattern, labels, query = shown(model, "The same token")
    names = [label.lower() for label in labels]
    copies = [[k for k, name in enumerate(names) if name == names[q] and k != q] for q in range(len(names))]
    shares = [pattern[q, keys].sum() for q, keys in enumerate(copies) if keys]
    assert len(shares) >= 10 and torch.stack(shares).mean() > 0.7
    assert int(pattern[query].argmax()) in copies[query]


def test_the_resting_place_gets_nearly_all(model: Loaded):
    pattern, labels, _ = shown(model, "A resting place")
    assert labels[0] == "[CLS]" and measures.sink_share(pattern) > 0.85


# on the screen


WIDE = pytest.param((1280, 720, "light"), id="wide")
PHONE = pytest.param((390, 844, "dark"), id="phone", marks=pytest.mark.thorough)


@pytest.fixture(params=[WIDE, PHONE])
def screen(request, browser: Browser, address: str) -> Iterator[Screen]:
    width, height, scheme = request.param
    size = {"width": width, "height": height}
    with lend(browser, viewport=size, color_scheme=scheme, reduced_motion="reduce") as page:
        screen = Screen(page, address)
        yield screen
        screen.leave()


@pytest.fixture
def visitor(browser: Browser, address: str) -> Iterator[Screen]:
    with lend(browser, viewport={"width": 1280, "height": 720}, reduced_motion="reduce") as page:
        screen = Screen(page, address)
        yield screen
        screen.leave()


FIRST, *OTHERS = EXAMPLES["minilm"]


@pytest.mark.thorough
@pytest.mark.parametrize(
    "example",
    [FIRST, *(pytest.param(example, marks=pytest.mark.thorough) for example in OTHERS)],
    ids=lambda example: example.title,
)
def test_an_example_opens_at_its_head_and_word(visitor: Screen, example: Example):
    screen = visitor.open("?layer=5&head=7&query=1&kind=mean&hide=0")
    screen.page.get_by_role("button", name=shell_words.EXAMPLES).click()
    screen.page.get_by_role("menuitem", name=example.title).click()
    screen.wait(layer=str(example.layer), head=str(example.head), kind="head", hide="[]")
    screen.idle()
    assert screen.page.get_by_role("textbox", name="Sentence", exact=True).input_value() == example.text
    assert screen.tokens()[int(screen.data()["locked"])] == example.token
    once(
        screen.page, "document.querySelector('[data-testid=stMain]').scrollHeight <= 720"
    )  # what stands above may go last


@pytest.mark.thorough
def test_an_example_that_is_taken_again_goes_back_to_its_head(screen: Screen):
    example = EXAMPLES["minilm"][0]
    screen.open("?head=7")
    for _ in range(2):
        screen.page.get_by_role("button", name=shell_words.EXAMPLES).click()
        screen.page.get_by_role("menuitem", name=example.title).click()
        screen.wait(layer=str(example.layer), head=str(example.head))
        assert screen.tokens()[int(screen.data()["locked"])] == example.token
        if screen.root.locator(".fold:not([open])").is_visible():
            screen.root.locator(".fold summary").click()
        screen.root.locator(".overview").focus()
        screen.page.keyboard.press("ArrowRight")
        screen.wait(head=str(example.head + 1))
        screen.page.wait_for_url(re.compile(f"head={example.head + 1}"))


@pytest.mark.parametrize(("window", "scheme"), [((1280, 720), "light"), ((390, 844), "dark")], ids=["wide", "phone"])
def test_how_to_read_it_is_one_hover_or_one_click_away(
    plain_another: AnotherPlain, window: tuple[int, int], scheme: str
):
    screen = plain_another(window, scheme, reduced_motion="reduce")
    screen.open()
    button, card = screen.root.get_by_role("button", name=WORDS["guide"]), screen.root.locator(".card")
    more = {"light": "Darker", "dark": "Brighter"}
    assert not card.is_visible()
    button.hover()
    card.wait_for()
    assert WORDS["guide_of"]["map"].format(more=more[screen.data()["theme"]]) in card.inner_text()
    heads = "guide_heads_touch" if "narrow" in (screen.root.get_attribute("class") or "") else "guide_heads"
    assert WORDS[heads] in card.inner_text()
    box, size = card.bounding_box(), screen.page.viewport_size
    assert box and size and box["x"] >= 0 and box["x"] + box["width"] <= size["width"]
    button.click()
    screen.page.mouse.move(5, 5)
    button.blur()
    assert card.is_visible()  # kept by the click
    screen.page.emulate_media(color_scheme="dark")
    screen.wait(theme="dark")
    for show in ("table", "lines"):
        screen.root.get_by_role("button", name=show, exact=True).click()
        screen.wait(show=show)
        assert WORDS["guide_of"][show] in card.inner_text()
    screen.root.get_by_role("button", name=WORDS["guide"]).click()
    card.wait_for(state="hidden")


@pytest.mark.thorough
def test_a_long_run_keeps_the_picture_and_can_be_cancelled_and_started_again(screen: Screen):
    screen.open()
    before = screen.data()["run"]
    screen.root.locator(".proofs > *").first.wait_for()  # they come behind the picture, and take a line on a phone
    top = box_of(screen.root)
    screen.type("Time goes slowly here.")
    cancel = screen.page.get_by_role("button", name=shell_words.CANCEL)
    cancel.wait_for()
    screen.page.get_by_text(shell_words.LAYERS.format(title="MiniLM-L6", done=2, total=6)).wait_for()
    screen.page.get_by_role("progressbar").wait_for(state="attached")
    assert screen.data()["run"] == before and len(screen.tokens()) == 16
    assert box_of(screen.root) == top  # nothing jumps because something takes long
    dimmed = "parseFloat(getComputedStyle(document.querySelector('.st-key-explore_stage')).opacity) < 0.9"
    once(screen.page, dimmed)
    cancel.click()
    screen.page.locator(".st-key-sentences").get_by_text(session_words.STOPPED).wait_for()
    cancel.wait_for(state="detached")
    once(screen.page, f"!({dimmed})")
    assert screen.data()["run"] == before
    assert screen.page.get_by_role("textbox", name="Sentence", exact=True).input_value() == "Time goes slowly here."
    if screen.root.locator(".fold").is_visible():
        screen.root.locator(".fold summary").click()
    screen.root.locator(".overview").focus()
    screen.page.keyboard.press("ArrowDown")  # a visitor who goes on with the old picture does not start it again
    screen.page.wait_for_url(re.compile("layer=|head="))
    screen.idle()
    assert cancel.count() == 0
    screen.page.get_by_role("button", name=shell_words.RUN_AGAIN).click()
    cancel.wait_for()
    cancel.click()
    cancel.wait_for(state="detached")
    screen.run_text("It works again.")
    assert screen.tokens()[1:3] == ["It", "works"]


def check(holds: bool) -> None:
    assert holds


@pytest.mark.thorough
def test_who_goes_on_with_the_picture_before_stays_at_that_head_in_the_new_one(screen: Screen):
    sent: list[str] = []
    screen.page.on("websocket", lambda socket: socket.on("framesent", lambda _: sent.append("frame")))
    screen.open()
    before, size = screen.data(), screen.page.viewport_size
    screen.type(f"The cat sat there for a while at {size and size['width']}.")  # a text that no other screen has run
    screen.page.get_by_role("button", name=shell_words.CANCEL).wait_for()
    if screen.root.locator(".fold").is_visible():
        screen.root.locator(".fold summary").click()
    screen.root.locator(".overview").focus()
    so_far = len(sent)
    screen.page.keyboard.press("ArrowDown")
    screen.until(f"`${{root.dataset.layer}} ${{root.dataset.head}}` !== '{before['layer']} {before['head']}'")
    chosen = screen.data()
    assert chosen["run"] == before["run"]
    eventually(screen.page, lambda: check(len(sent) > so_far))  # the server hears of it before the run ends
    urlopen(f"{screen.address}/go-on").close()
    screen.until(f"root.dataset.run !== '{before['run']}'")
    assert screen.tokens()[1:4] == ["The", "cat", "sat"]
    assert [screen.data()[name] for name in ("layer", "head")] == [chosen["layer"], chosen["head"]]
    moved = next(name for name in ("layer", "head") if chosen[name] != before[name])
    screen.page.wait_for_url(re.compile(f"{moved}={chosen[moved]}"))
    screen.page.get_by_role("button", name=shell_words.CANCEL).wait_for(state="detached")
    assert screen.errors == []


@pytest.mark.thorough
def test_another_sentence_while_one_runs_is_the_one_that_counts(screen: Screen):
    screen.open()
    screen.type("Time goes slowly here.")
    screen.page.get_by_role("button", name=shell_words.CANCEL).wait_for()
    screen.run_text("Never mind.")
    assert screen.tokens()[1:3] == ["Never", "mind"]
    screen.page.get_by_role("button", name=shell_words.CANCEL).wait_for(state="detached")


@pytest.mark.thorough
def test_a_model_on_its_way_says_its_bytes_and_keeps_nobody_else_waiting(
    screen: Screen, browser: Browser, address: str
):
    screen.open()
    before = screen.data()["run"]
    name = "Distant" if screen.page.viewport_size == {"width": 1280, "height": 720} else "Remote"
    screen.page.get_by_label(shell_words.MODEL).click()
    screen.page.get_by_role("option", name=name).click()
    screen.page.get_by_text(re.compile(rf"Loading {name}: .* of 85.8 MiB")).wait_for()
    other = Screen(browser.new_context(viewport={"width": 1280, "height": 720}).new_page(), address).open()
    other.run_text(f"A bystander of {name}.")
    assert screen.page.get_by_role("button", name=shell_words.CANCEL).is_visible()  # it still is on its way
    assert screen.data()["run"] == before
    other.run_text(f"Let {name} arrive.")
    other.page.context.close()
    screen.until(f"root.dataset.run !== '{before}'")
    screen.page.get_by_role("button", name=shell_words.CANCEL).wait_for(state="detached")
    screen.page.wait_for_url(re.compile(f"model={name}"))
