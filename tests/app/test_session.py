"""Whole visits: without a mouse, with markup for a sentence, on a phone; and nothing ever asked of another host."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser

from app.attention import words
from app.kit import words as kit_words
from app.session import words as session_words
from app.shell import words as shell_words
from tests.app.browsing import Screen, box_of
from tests.app.pages import lend
from tests.app.test_visit import MARKUP, PHONE, TOO_WIDE, WORDS

pytestmark = pytest.mark.thorough

APP = "tests/app/gallery.py"

# What has the focus, inside the component too, and whether anything shows it: a ring around it, or its box's border. A frame later:
# what a room draws for the focus, such as the name of a row that it shows now, is there.
FOCUSED = """(primary) => new Promise((done) => requestAnimationFrame(done)).then(() => {
  let at = document.activeElement;
  while (at?.shadowRoot?.activeElement) at = at.shadowRoot.activeElement;
  const style = getComputedStyle(at);
  let marked = style.outlineStyle !== "none" || style.boxShadow !== "none";
  for (let box = at, up = 0; box && up < 5; box = box.parentElement, up++) {
    marked ||= getComputedStyle(box).borderTopColor === primary;
  }
  return {
    name: at.getAttribute("aria-label") ?? (at.innerText ?? at.textContent).trim(), // as it is seen
    what: at.getAttribute("role") ?? at.tagName.toLowerCase(),
    shown: at.getClientRects().length > 0,
    marked,
  };
})"""
PRIMARY = "rgb(15, 118, 110)"  # of .streamlit/config.toml, on a light page


@pytest.fixture
def phone(browser: Browser, address: str) -> Iterator[Screen]:
    with lend(browser, viewport=PHONE, has_touch=True, reduced_motion="reduce") as page:
        screen = Screen(page, address)
        yield screen
        screen.leave()


class Keyboard:
    """A visitor who has nothing else."""

    def __init__(self, screen: Screen) -> None:
        self.screen, self.keys = screen, screen.page.keyboard

    def press(self, *names: str) -> None:
        for name in names:
            self.keys.press(name)

    def focused(self) -> dict[str, Any]:
        return self.screen.page.evaluate(FOCUSED, PRIMARY)

    def is_marked(self) -> bool:
        for _ in range(20):  # a border takes a moment to change its colour
            if self.focused()["marked"]:
                return True
            self.screen.page.wait_for_timeout(50)
        return False

    def tour(self) -> list[tuple[str, str]]:
        """(role, name) of every stop that Tab makes, once around the page."""
        stops: list[tuple[str, str]] = []
        for _ in range(150):
            self.press("Tab")
            at = self.focused()
            stop = (at["what"], at["name"])
            if stop in stops[:1]:  # around once
                return stops
            if stop[0] == "body":  # between the last stop and the first
                continue
            assert at["shown"], f"{stop} has the focus and cannot be seen"
            assert stop[0] == "main" or self.is_marked(), f"nothing shows that {stop} has the focus"
            stops.append(stop)
        raise AssertionError(f"Tab never comes round: {stops[-20:]}")

    def go(self, name: str) -> None:
        """Tab until what has the focus is called that."""
        for _ in range(150):
            at = self.focused()
            if at["name"] == name or (at["what"] == "summary" and at["name"].endswith(name)):  # after its icon's name
                return
            self.press("Tab")
        raise AssertionError(f"Tab never reaches {name!r}")


@pytest.fixture
def keyboard(screen: Screen) -> Keyboard:
    return Keyboard(screen)


def test_tab_reaches_everything(screen: Screen, keyboard: Keyboard):
    screen.open()
    screen.until("root.querySelectorAll('.proofs .holds').length === 2")
    stops = keyboard.tour()
    names = [name for _, name in stops]
    for name in (
        shell_words.EXPLORE,
        shell_words.TEXT,
        shell_words.MODEL,
        "it",  # the strip, at the locked token
        WORDS["heads_label"],
        WORDS["map_label"],
        WORDS["map"],
        WORDS["lines_tab"],
        WORDS["table"],
        WORDS["options"],
        WORDS["guide"],
        WORDS["copy_link"],
        WORDS["export"],
        WORDS["project"],
    ):
        assert name in names, f"{name!r} is not among {names}"
    assert any(words.RUN_SHAPES in name for name in names)
    assert sum(role == "option" for role, _ in stops) == 1  # one stop for the strip; arrows move inside it


def test_tab_reaches_every_option_and_escape_leads_back(screen: Screen, keyboard: Keyboard):
    screen.open()
    for opener, inside in (
        (WORDS["options"], [WORDS[name] for name in ("scale_auto", "linear", "log", "per_row")]),
        (WORDS["export"], [WORDS["export_snippet"], WORDS["export_alt"]]),
    ):
        keyboard.go(opener)
        keyboard.press("Enter")
        names = [name for _, name in keyboard.tour()]
        assert [name for name in inside if name not in names] == []
        keyboard.go(inside[-1])
        keyboard.press("Escape")
        assert keyboard.focused()["name"] == opener


@pytest.mark.parametrize(
    ("query", "opener"),
    [
        ("", None),
        ("?model=pair&target=das+Tier&site=cross", None),
        ("", WORDS["options"]),
        ("", WORDS["export"]),
        ("?projector=true", None),
    ],
    ids=["opening", "pair", "options", "export", "projector"],
)
def test_every_control_of_the_component_is_a_stop(screen: Screen, keyboard: Keyboard, query: str, opener: str | None):
    """Buttons, lists and fields that a mouse can use, and that Tab would pass by, are none for many people."""
    screen.open(query)
    if opener is not None:
        keyboard.go(opener)
        keyboard.press("Enter")
    stops = keyboard.tour()
    controls = screen.root.evaluate(
        """root => [...root.querySelectorAll("button, select, input, textarea, summary, a[href], [role=application]")]
          .filter((node) => node.getClientRects().length && !node.disabled)
          .map((node) => node.getAttribute("aria-label") ?? node.textContent.trim())"""
    )
    assert len(controls) > 3
    assert [name for name in controls if name not in [name for _, name in stops]] == []


def test_a_whole_session_without_a_mouse(screen: Screen, keyboard: Keyboard):
    screen.open()
    # the introduction, read and put away
    keyboard.go(WORDS["guide"])
    screen.root.locator(".card").wait_for()
    keyboard.press("Escape")
    # a sentence of one's own
    keyboard.go(shell_words.TEXT)
    before = screen.data()["run"]
    keyboard.press("Control+a")
    screen.page.keyboard.type("The cat sat on the mat because it was warm.")
    keyboard.press("Enter")
    screen.until(f"root.dataset.run !== '{before}'")
    assert screen.tokens()[1:4] == ["The", "cat", "sat"]
    # another model
    keyboard.go(shell_words.MODEL)
    screen.page.keyboard.type("Grouped")
    screen.page.get_by_role("option", name="Grouped").wait_for()
    keyboard.press("Enter")
    screen.wait(site="decoder")
    screen.page.wait_for_url(re.compile("model=Grouped"))
    # a token, beside the one that the picture opened on
    labels, locked = screen.tokens(), int(screen.data()["locked"])
    to = locked + 1
    keyboard.go(labels[locked])
    keyboard.press("ArrowRight")
    screen.until(f"root.dataset.query === '{to}'")
    keyboard.press("Enter")
    screen.wait(locked=str(to))
    assert screen.facts().lstrip("“").startswith(labels[to])
    # a head
    screen.until("root.dataset.alike")
    before = screen.data()["alike"]
    keyboard.go(WORDS["heads_label"])
    layer, head = (int(screen.data()[name]) for name in ("layer", "head"))
    up, right = ("ArrowUp", -1) if layer else ("ArrowDown", 1), ("ArrowRight", 1) if head < 7 else ("ArrowLeft", -1)
    keyboard.press(up[0])
    screen.wait(layer=str(layer + up[1]), head=str(head))
    screen.until(f"root.dataset.alike !== '{before}'")  # they come a moment after the head: those of this one,
    before = screen.data()["alike"]
    keyboard.press(right[0])
    screen.wait(layer=str(layer + up[1]), head=str(head + right[1]))
    # one with a similar map
    screen.until(f"root.dataset.alike !== '{before}'")  # and not to be taken for those of the next
    alike = screen.root.locator(".alike button").first.get_attribute("aria-label") or ""
    keyboard.go(alike)
    keyboard.press("Enter")
    layer, head = re.findall(r"\d+", alike)[:2]
    screen.wait(layer=layer, head=head)
    screen.until(
        f"!root.dataset.alike.startsWith('{layer}.{head}:')"
    )  # they are others now, and the focus is still there
    assert keyboard.focused()["name"].startswith("Layer ")
    # a cell, its row locked and released
    keyboard.go(WORDS["map_label"])
    keyboard.press("ArrowRight")
    screen.until(f"root.dataset.cell.startsWith('{to},')")
    keyboard.press("ArrowDown", "ArrowLeft")
    screen.until(f"root.dataset.cell.startsWith('{to + 1},')")
    keyboard.press("Enter")
    screen.wait(locked=str(to + 1))
    keyboard.press("Escape")
    screen.wait(locked="", query="")
    # its scale
    keyboard.go(WORDS["options"])
    keyboard.press("Enter")
    keyboard.go(WORDS["per_row"])
    keyboard.press("Enter")
    screen.wait(scale="row")
    keyboard.press("Escape")
    # for a projector and back
    keyboard.go(WORDS["project"])
    keyboard.press("Enter")
    screen.wait(projector="true")
    keyboard.press("ArrowRight", "Escape")
    screen.wait(projector="false")
    # the same as a table
    keyboard.go(WORDS["table"])
    keyboard.press("Space")
    screen.root.locator("table tbody tr").first.wait_for()
    keyboard.go(screen.root.locator("caption").inner_text())
    # the shapes of the run, and into them
    keyboard.go(screen.shapes().get_attribute("aria-label") or "")
    keyboard.press("Enter")
    table = screen.page.locator("[data-testid=stDataFrame]")
    table.wait_for()
    for _ in range(12):
        keyboard.press("Tab")
        if table.evaluate("table => table.contains(document.activeElement)"):
            break
    assert table.evaluate("table => table.contains(document.activeElement)")


def test_what_the_keyboard_did_is_said(screen: Screen, keyboard: Keyboard):
    screen.open("?metric=maps")
    keyboard.go(WORDS["heads_label"])
    keyboard.press("ArrowDown")
    screen.until("root.querySelector('.unseen[role=status]').textContent.startsWith('Layer 4 · Head 1')")
    keyboard.go(WORDS["map_label"])
    keyboard.press("ArrowRight", "ArrowDown")
    screen.until("root.querySelector('.unseen[role=status]').textContent.includes('was gives')")
    assert screen.facts() in (screen.root.locator(".unseen[role=status]").text_content() or "")


def test_a_visit_asks_nothing_of_another_host(screen: Screen):
    """Everything there is to open is opened; whatever the page asks for, sockets too, it asks of the server it came from."""
    screen.record().open("?metric=maps")
    screen.page.mouse.move(*screen.cell(3, 4))
    screen.run_text("See https://example.org/logo.png and //example.org too.")
    screen.root.get_by_role("button", name=WORDS["options"]).click()
    # By the page itself, each that is there when its turn comes: what one opens or closes moves the others along.
    screen.root.evaluate(
        """(root, elsewhere) => {
            for (const button of root.querySelectorAll("button")) {
                if (elsewhere.includes(button.textContent) || button.classList.contains("ran")) continue; // lies over the rest
                if (button.isConnected && button.checkVisibility()) button.click();
            }
        }""",
        [WORDS["project"], kit_words.COMPONENT["share_screen"]],
    )
    screen.page.keyboard.press("Escape")
    screen.page.get_by_label(shell_words.MODEL).click()
    screen.page.get_by_role("option", name="Pair").click()
    screen.page.get_by_role("textbox", name=shell_words.TARGET, exact=True).wait_for()
    screen.type("   ")
    screen.page.locator(".st-key-sentences").get_by_text(session_words.LAST_PICTURE).wait_for()
    screen.type("And once more.")
    screen.shapes().click()
    screen.page.locator("[data-testid=stDataFrame]").wait_for()
    screen.page.keyboard.press("Escape")
    screen.page.get_by_test_id("stMainMenuButton").click()
    screen.page.reload()
    screen.painted()
    assert len(screen.requests) > 20
    assert {urlsplit(url).netloc for url in screen.requests if url.startswith("http")} == {
        urlsplit(screen.address).netloc
    }
    assert screen.foreign == []
    screen.page.goto("about:blank")  # where no policy of ours forbids it
    screen.page.evaluate("fetch('https://example.org/logo.png').catch(() => 0)")
    assert screen.foreign.pop() == "https://example.org/logo.png"  # and what does ask is found


LONG = " ".join(f"the quick brown fox jumps over a lazy dog and word{i}" for i in range(30))


@pytest.mark.parametrize(
    "query",
    [
        "",
        f"?text={LONG.replace(' ', '+')}",
        "?model=many&layer=40&head=20",
        "?model=grouped&query=9",
        "?model=pair&target=das+Tier&site=cross",
        f"?text={'a' * 90}",
        f"?model=pair&site=cross&target={MARKUP.replace(' ', '%20')}",
    ],
    ids=["opening", "long", "many heads", "masked", "pair", "one long word", "markup"],
)
def test_a_phone_shows_strip_and_map_and_never_scrolls_sideways(phone: Screen, query: str):
    phone.open(query)
    for part in (".strip", ".matrix"):
        box = box_of(phone.root.locator(part).first)
        assert box["width"] > 200 and box["height"] > 20
        assert box["x"] >= 0 and box["x"] + box["width"] <= PHONE["width"]
    assert phone.root.evaluate(TOO_WIDE) == []
    for page in ("document.documentElement", "document.querySelector('[data-testid=stMain]')"):
        assert phone.page.evaluate(f"{page}.scrollWidth") <= PHONE["width"]


def test_a_phone_s_table_fits(phone: Screen):
    phone.open()
    phone.root.get_by_role("button", name=WORDS["table"], exact=True).click()
    phone.root.locator("table tbody tr").first.wait_for()
    assert phone.root.evaluate(TOO_WIDE) == []
