"""A visit to Explore: a sentence is typed and its link followed, a link asks for what does not exist, and all of it on a phone."""

from __future__ import annotations

import re
from urllib.parse import parse_qs, urlencode, urlsplit

from playwright.sync_api import WebSocket

import core
from app.attention import words
from app.shell import words as shell_words
from tests.app.browsing import Another, Screen, box_of

APP = "app/main.py"
MARKUP = "<img src=x onerror=alert(1)>"
SETTLED = 500  # ms in which a page that sends its choices later would have done so
PHONE = {"width": 390, "height": 844}
WORDS = words.COMPONENT
# Elements that are wider than the window and do not scroll inside a box
TOO_WIDE = """root => [...root.querySelectorAll("*")].filter((node) => {
  if (node.closest(".unseen, .tip[hidden]") || !node.getClientRects().length) return false;
  for (let box = node.parentElement; box && box !== root; box = box.parentElement) {
    if (getComputedStyle(box).overflowX !== "visible") return false;
  }
  const { left, right } = node.getBoundingClientRect();
  return left < -1 || right > innerWidth + 1;
}).map((node) => `${node.tagName} ${node.className}`)"""


def test_a_typed_sentence_and_its_link_are_shown_as_text(screen: Screen, another: Another) -> None:
    screen.record().open()
    screen.run_text(f"{MARKUP} it")
    tokens = list(core.trace(core.load("minilm"), f"{MARKUP} it").source.labels)
    screen.page.wait_for_url(re.compile("text="))
    assert parse_qs(urlsplit(screen.page.url).query)["text"] == [f"{MARKUP} it"]

    other = another().record()
    other.open(screen.page.url.removeprefix(f"{screen.address}/"))
    assert other.page.get_by_role("textbox", name=shell_words.TEXT, exact=True).input_value() == f"{MARKUP} it"
    for visit in (screen, other):
        assert visit.tokens() == tokens
        visit.page.mouse.move(*visit.cell(1, 2))
        visit.wait(cell="1,2")
        visit.root.get_by_role("button", name=WORDS["table"], exact=True).click()
        visit.root.locator("table tbody tr").first.wait_for()
        assert set(visit.root.locator("td.k").all_text_contents()) == set(tokens)
        is_text(visit)


def is_text(visit: Screen) -> None:
    """No markup of a visitor has become an element, and none of its addresses was requested."""
    assert visit.page.locator("img[src='x'], .hl img, .hl script, .st-key-sentences img").count() == 0
    assert not [url for url in visit.requests if urlsplit(url).path.endswith("/x")]
    assert (visit.foreign, visit.errors, visit.dialogs) == ([], [], [])


def test_a_selection_sends_no_message_and_runs_no_script(screen: Screen) -> None:
    frames: list[str] = []

    def listen(socket: WebSocket) -> None:
        socket.on("framesent", lambda _: frames.append("to the server"))
        socket.on("framereceived", lambda _: frames.append("from the server"))

    screen.page.once("websocket", listen)
    screen.open("?layer=2&head=3")
    assert {"to the server", "from the server"} <= set(frames)
    frames.clear()
    screen.root.locator(".overview").focus()
    screen.page.keyboard.press("ArrowRight")
    screen.wait(head="4")
    screen.page.wait_for_url(re.compile("head=4"))
    screen.page.go_back()
    screen.wait(head="3")
    screen.page.wait_for_timeout(SETTLED)
    assert frames == []
    screen.run_text("A dog.")
    assert {"to the server", "from the server"} <= set(frames), "the next sentence does both"


def test_a_link_that_asks_for_what_does_not_exist_opens_with_a_sentence_for_each(screen: Screen) -> None:
    asked = ("view", "model", "layer", "head", "query", "site")
    screen.record().open(f"?{urlencode(dict.fromkeys((*asked, 'target', 'text'), MARKUP))}")
    screen.root.locator(".strip [data-i]").first.wait_for()
    sentences = screen.sentences()
    assert f"a view called “{MARKUP}”" in sentences and f"a model called “{MARKUP}”" in sentences
    assert [name for name in asked[2:] if f"“{MARKUP}”" not in sentences] == []
    assert sentences.count(MARKUP) >= len(asked)
    is_text(screen)


def test_a_phone_shows_the_sentence_the_strip_and_the_map_and_a_tap_locks_a_token(another: Another) -> None:
    phone = another((PHONE["width"], PHONE["height"]), has_touch=True, reduced_motion="reduce")
    phone.open("?metric=maps")
    parts = [box_of(phone.root.locator(part).first) for part in (".big", ".strip", ".matrix", ".fold summary")]
    tops = [part["y"] for part in parts]
    assert tops == sorted(tops)
    ends = [part["y"] + part["height"] for part in parts[:3]]
    assert ends[0] <= tops[1] and ends[1] <= tops[2]
    assert (tops[2] + ends[2]) / 2 <= PHONE["height"]  # the sentence, the words and most of the map need no scrolling
    small = "all => all.filter((one) => one.offsetParent && one.getBoundingClientRect().height < 44).map((one) => one.textContent)"
    controls = phone.root.locator("button, select, summary, .strip [data-i]")
    assert controls.evaluate_all(small) == []  # a finger hits them
    assert phone.root.evaluate(TOO_WIDE) == []
    for page in ("document.documentElement", "document.querySelector('[data-testid=stMain]')"):
        assert phone.page.evaluate(f"{page}.scrollWidth") <= PHONE["width"]

    phone.root.locator(".strip [data-i='13']").tap()
    phone.wait(locked="13")
    assert phone.facts().startswith("tired gives")
    overview = phone.root.locator(".overview")
    assert not overview.is_visible()
    phone.root.locator(".fold summary").press("Enter")
    overview.wait_for()
    overview.focus()
    phone.page.keyboard.press("ArrowDown")
    phone.wait(layer="4")
    assert phone.root.evaluate(TOO_WIDE) == []
    phone.page.set_viewport_size({"width": 1280, "height": 720})
    phone.until("!root.classList.contains('narrow')")
    strip, heads = box_of(phone.root.locator(".strip")), box_of(overview)
    assert strip["y"] < heads["y"] and phone.root.locator("section .overview").is_visible()
