"""The screens in another language: chosen by the browser, by the address and by the switch; and nothing that was written elsewhere."""

from __future__ import annotations

import json
import re
from pathlib import Path
from urllib.parse import parse_qs, urlsplit
from urllib.request import Request, urlopen

import pytest
from playwright.sync_api import Browser, Page, expect

from app.languages import PSEUDO
from app.shell.registry import ROOMS
from tests.app.browsing import PATIENCE, eventually, idle
from tests.app.script import said, visit

APP = "app/main.py"
MODEL, SMALL = "model=SmolLM2-135M", "model=MiniLM-L6"
# Of Streamlit's own, which it says in English to everybody, and of names that are the same in all languages
STREAMLIT = {
    "Skip to main content",
    "Main menu",
    "Choose an option",
    "Open",
    "Help",
    "Show/hide columns",
    "Download as CSV",
    "Search",
    "Fullscreen",
    "Close fullscreen",
    "expand_more",
    "Press Enter to apply",
    "Show password text",
}
NAMES = re.compile(
    r"(?:SmolLM2-135M|MiniLM-L6|Storyteller|Translator|Copy|Reverse|Sort|Addition|Induction|Brackets)\b.*"
    r"|\w*_\w*|[\w.]+\(.*|.*[=@\[\]{}].*|[-\d.,\s]*(?:bytes|[KMG]i?B|k?B|[kMG]?FLOP)\b.*|eager|efficient|flash|batch|pos|head|query|key|vocab"
    r"|.*\bbatch × .*"
)
# Every text and every name for a screen reader that no word of ours is near. The words that a model read and wrote are not meant.
ELSEWHERE = """() => {
  const read = new Set((document.querySelector("textarea")?.value ?? "").split(/[^\\p{L}]+/u));
  const found = new Set();
  const isWord = (text) => /\\p{L}{4,}/u.test(text) && !text.includes("⟦");
  const own = (text) => {
    const words = text.split(/[^\\p{L}]+/u).filter((word) => word.length > 3);
    return words.length <= 1 && words.every((word) => read.has(word) || !/\\s/.test(text.trim()));
  };
  const walk = (root) => {
    const all = document.createTreeWalker(root, NodeFilter.SHOW_TEXT | NodeFilter.SHOW_ELEMENT);
    for (let node = all.nextNode(); node; node = all.nextNode()) {
      if (node.nodeType === 1) {
        if (node.shadowRoot) walk(node.shadowRoot);
        for (const name of ["aria-label", "title", "placeholder", "alt"]) {
          const text = node.getAttribute(name);
          if (text && isWord(text) && !own(text)) found.add(text);
        }
        continue;
      }
      const text = node.textContent.trim();
      const parent = node.parentElement;
      if (!isWord(text) || own(text) || parent.closest("script, style, noscript, title, code, pre, textarea")) continue;
      let near = parent;
      for (let i = 0; i < 4 && near && !near.textContent.includes("⟦"); i += 1) near = near.parentElement;
      if (!near?.textContent.includes("⟦")) found.add(text);
    }
  };
  walk(document);
  return [...found];
}"""


# All that can be read, also inside of components
TEXT = """() => {
  const said = [];
  const walk = (root) => {
    for (const node of root.childNodes) {
      if (node.nodeType === 3) said.push(node.textContent);
      if (node.nodeType !== 1 || ["SCRIPT", "STYLE", "NOSCRIPT", "OPTION"].includes(node.tagName)) continue;
      if (node.shadowRoot) walk(node.shadowRoot);
      walk(node);
    }
  };
  walk(document.body);
  return said.join(" ");
}"""


def opened(browser: Browser, link: str, **options: str) -> Page:
    page = browser.new_page(viewport={"width": 1280, "height": 720}, **options)  # type: ignore[arg-type]
    page.goto(link)
    expect(page.locator(".bar nav")).to_be_visible(timeout=PATIENCE)
    return page


def bar(page: Page) -> str:
    return page.locator(".bar nav").first.inner_text()


@pytest.mark.thorough
@pytest.mark.parametrize("room", ROOMS)
def test_no_text_of_a_room_was_written_elsewhere(browser: Browser, address: str, room: str) -> None:
    page = opened(browser, f"{address}/?view={room}&{MODEL}&lang={PSEUDO}")
    idle(page)
    found: list[str] = page.evaluate(ELSEWHERE)
    page.close()
    assert not [text for text in found if text not in STREAMLIT and not NAMES.fullmatch(text)]


@pytest.mark.thorough
def test_the_browser_s_own_language_is_spoken(browser: Browser, address: str) -> None:
    """Also where a link asks for a language that is unknown, which is a sentence."""
    page = opened(browser, f"{address}/?{SMALL}", locale="de-AT")
    expect(page.locator(".bar nav")).to_contain_text("Masken")
    assert page.evaluate("document.documentElement.lang") == "de"
    idle(page)
    assert "lang" not in parse_qs(urlsplit(page.url).query)  # a link opens in the reader's language
    page.goto(f"{address}/?{SMALL}&lang=xx")
    expect(page.locator(".bar nav")).to_contain_text("Masken")
    expect(page.get_by_text("Dieser Link verlangt die Sprache „xx“")).to_be_visible(timeout=PATIENCE)
    page.close()


def test_a_language_that_nobody_has_translated_is_english(address: str) -> None:
    assert '<html lang="en"' in read(f"{address}/", **{"Accept-Language": "fr-FR"})


def test_the_switch_says_it_in_the_address_and_back_leads_to_the_other(browser: Browser, address: str) -> None:
    page = opened(browser, f"{address}/?view=masks&{SMALL}&text=The+cat+sat")
    assert "Masks" in bar(page)
    idle(page)
    page.get_by_label("Language").first.focus()
    page.keyboard.press("Shift")  # a hand of the visitor, without which nothing is a step of theirs
    page.get_by_label("Language").first.select_option("de")
    expect(page.locator(".bar nav")).to_contain_text("Masken")
    said = parse_qs(urlsplit(page.url).query)
    assert said["lang"] == ["de"] and said["text"] == ["The cat sat"] and said["view"] == ["masks"]
    idle(page)
    assert parse_qs(urlsplit(page.url).query)["lang"] == ["de"]  # scripts write the address, and it stays
    page.get_by_role("link", name="Positionen").first.click()
    eventually(page, lambda: expect_in(page, "view=positions", "lang=de"))
    page.get_by_label("Sprache").first.focus()
    page.keyboard.press("Shift")
    page.get_by_label("Sprache").first.select_option("en")
    expect(page.locator(".bar nav")).to_contain_text("Positions")
    page.go_back()
    expect(page.locator(".bar nav")).to_contain_text("Positionen")
    page.close()


@pytest.mark.thorough
def test_who_goes_back_before_anything_is_drawn_reads_the_language_of_the_address(
    browser: Browser, address: str
) -> None:
    page = opened(browser, f"{address}/?view=masks&{MODEL}&lang=de")
    idle(page)
    page.add_init_script("""
      if (location.search.includes("lang=en")) document.addEventListener("DOMContentLoaded", () => history.back());
    """)
    page.keyboard.press("Shift")
    page.evaluate("window.isFirst = true; window.headlight.settings.set('lang', 'en')")
    page.wait_for_function(
        "!window.isFirst && document.documentElement.lang === 'de' && location.search.includes('lang=de')"
    )
    expect(page.locator(".bar nav")).to_contain_text("Masken")
    page.close()


def expect_in(page: Page, *parts: str) -> None:
    assert all(part in page.url for part in parts), page.url


@pytest.mark.thorough
def test_two_visitors_at_once_each_have_their_own(browser: Browser, address: str) -> None:
    """No word of another visit is on the screen, in whatever order they come."""
    pages = {code: opened(browser, f"{address}/?view=shapes&{MODEL}&lang={code}") for code in ("de", PSEUDO, "en")}
    for page in pages.values():
        page.set_viewport_size({"width": 1600, "height": 720})
    for room in ("memory", "lessons", "compute", "train", "explore"):
        for page in pages.values():
            page.locator(f".bar nav a[data-room={room}]").click()
        for code, page in pages.items():
            idle(page)
            text: str = page.evaluate(TEXT)
            assert ("⟦" in text) == (code == PSEUDO), (room, code)
            assert ("Rechenzeit" in text) == (code == "de"), (room, code)
            assert ("Compute" in text) == (code != "de"), (room, code)
    for page in pages.values():
        page.close()


def test_a_refusal_of_core_and_a_sentence_about_a_link_are_in_the_language() -> None:
    text = said(visit("explore", model="copy", text="ABC123", lang="de"))
    assert "kein Token für „A“" in text
    assert "no token" not in text and "A tiny decoder" not in text
    text = said(visit("explore", model="minilm", text="hello", layer="99", lang="de"))
    assert "Dieser Link verlangt" in text and "eine ganze Zahl von 0 bis 5" in text


def read(address: str, **headers: str) -> str:
    with urlopen(Request(address, headers=headers)) as answer:
        return answer.read().decode()


def test_routes_and_pages_answer_in_the_language_of_who_asks(address: str) -> None:
    german = {"Accept-Language": "de"}
    assert '<html lang="de"' in read(f"{address}/", **german)
    assert '<html lang="en"' in read(f"{address}/")
    assert '<html lang="de"' in read(f"{address}/?lang=de")
    phone = read(f"{address}/r/", **german)
    assert 'lang="de"' in phone and phone != read(f"{address}/r/")
    page = read(f"{address}/headlight/export?format=page", **german)
    assert page != read(f"{address}/headlight/export?format=page")
    assert json.dumps("Schließen")[1:-1] in page


def test_the_chart_of_languages_is_of_the_folder() -> None:
    from app import languages

    assert set(languages.names()) == {"en", *(path.stem for path in Path("app/languages").glob("*.po"))}
