"""Anybody can use the screen: axe finds nothing in any of its states, and whatever is drawn can be told apart."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Literal

import pytest
from playwright.sync_api import Browser, ViewportSize, expect

from app.attention import words
from app.kit import theme
from app.session import words as session_words
from app.shell import words as shell_words
from tests.app.axe import faults
from tests.app.browsing import Screen
from tests.app.pages import lend
from tests.app.test_theme import contrast

APP = "tests/app/gallery.py"
TEXT, GRAPHICS = 4.5, 3.0  # WCAG 2.2: 1.4.3 at level AA, and 1.4.11
WINDOW, PHONE = (1280, 720), (390, 844)
SCHEMES: tuple[Literal["light", "dark"], ...] = ("light", "dark")
NAMELESS = "root => root.append(document.createElement('button'))"


def lock(screen: Screen) -> None:
    screen.root.locator(".strip [data-i='13']").click()
    screen.wait(locked="13")


def release(screen: Screen) -> None:
    screen.root.locator(".matrix").press("Escape")
    screen.wait(locked="", query="")


def point(screen: Screen) -> None:
    screen.root.locator(".matrix").press("ArrowRight")
    screen.root.locator(".tip:not([hidden])").wait_for()


def table(screen: Screen) -> None:
    screen.root.get_by_role("button", name=words.COMPONENT["table"], exact=True).click()
    screen.root.locator("table tbody tr").first.wait_for()


def refuse(screen: Screen) -> None:
    screen.type("word " * 600)
    screen.page.locator(".st-key-sentences").get_by_text(session_words.LAST_PICTURE).wait_for()


def shapes(screen: Screen) -> None:
    screen.shapes().click()
    screen.page.locator("[data-testid=stDataFrame]").wait_for()


def lines(screen: Screen) -> None:
    screen.root.get_by_role("button", name=words.COMPONENT["lines_tab"], exact=True).click()
    screen.wait(show="lines")


def options(screen: Screen) -> None:
    screen.root.get_by_role("button", name=words.COMPONENT["options"], exact=True).click()
    screen.root.get_by_role("dialog", name=words.COMPONENT["options_label"]).wait_for()


def exports(screen: Screen) -> None:
    screen.root.get_by_role("button", name=words.COMPONENT["export"], exact=True).click()
    screen.root.get_by_role("dialog").wait_for()


# what stands on the screen -> (the link it starts from, what a visitor does there)
STATES: dict[str, tuple[str, Callable[[Screen], None] | None]] = {
    "opening": ("", None),
    "a token locked": ("", lock),
    "nothing locked": ("?query=none", release),
    "a cell pointed at": ("", point),
    "the table": ("", table),
    "a sentence that could not run": ("", refuse),
    "a link that asks for too much": ("?layer=99&model=nothing", None),
    "the shapes": ("", shapes),
    "lines between tokens": ("", lines),
    "the options": ("", options),
    "the exports": ("", exports),
    "a projector": ("?projector=true", None),
    "a metric instead of pictures": ("?metric=entropy", None),
    "masked cells and shared key heads": ("?model=grouped&query=9", None),
    "the table of a masked row": ("?model=grouped&query=9", table),
    "a source and a target": ("?model=pair&target=das+Tier&site=cross", None),
}


def findings(screen: Screen) -> list[str]:
    """Whatever axe finds on the page of a visitor, once no old answer is faded any more."""
    expect(screen.page.locator(".hl[data-waiting], .hl .late")).to_have_count(0)
    return faults(screen.page)


@pytest.mark.thorough
@pytest.mark.parametrize("state", STATES)
def test_axe_finds_nothing(browser: Browser, address: str, state: str):
    """In a window and on a phone, light and dark."""
    query, act = STATES[state]
    with lend(browser, viewport=window(WINDOW), reduced_motion="reduce") as page:
        screen = Screen(page, address).open(query)
        if act is not None:
            act(screen)
        found: dict[str, list[str]] = {}
        for size, scheme in product((WINDOW, PHONE), SCHEMES):
            page.set_viewport_size(window(size))
            screen.until(f"root.classList.contains('narrow') === {str(size == PHONE).lower()}")
            page.emulate_media(color_scheme=scheme)
            screen.wait(theme=scheme)
            screen.idle()
            found[f"{size}, {scheme}"] = findings(screen)
        assert not any(found.values()), found


def window(size: tuple[int, int]) -> ViewportSize:
    return {"width": size[0], "height": size[1]}


@pytest.mark.thorough
def test_axe_looks_inside_the_component(browser: Browser, address: str):
    """A pass that never entered the component would find nothing wrong with it."""
    with lend(browser, viewport=window(WINDOW)) as page:
        screen = Screen(page, address).open()
        screen.root.evaluate(NAMELESS)
        assert [line.split()[0] for line in findings(screen)] == ["button-name"]


@pytest.mark.thorough
def test_the_page_reads_as_a_page(browser: Browser, address: str):
    """Headings, the summary and the tokens, as a screen reader meets them."""
    context = browser.new_context(viewport={"width": 1280, "height": 720})
    screen = Screen(context.new_page(), address).open()
    page = screen.page.locator("body").aria_snapshot()
    for line in (
        "- main:",
        f'heading "{shell_words.TITLE}" [level=1]',
        f'textbox "{shell_words.TEXT}"',
        f'combobox "{shell_words.MODEL}"',
        f'listbox "{words.COMPONENT["strip_label"]}"',
        'option "it" [selected]',
        f'application "{words.COMPONENT["heads_label"]}"',
        f'application "{words.COMPONENT["map_label"]}"',
        f'button "{words.COMPONENT["map"]}" [pressed]',
    ):
        assert line in page
    assert page.index("[level=1]") < page.index("[level=2]")
    context.close()


# What axe cannot see: it reads text, and not what is drawn on a canvas.

GROUNDS = ("background", "panel")


@pytest.mark.parametrize("name", SCHEMES)
@pytest.mark.parametrize("colour", ["query", "key", "proof", "mute"])
@pytest.mark.parametrize("ground", GROUNDS)
def test_outlines_lines_and_dots_stand_out_from_the_page(
    name: str, colour: Literal["query", "key", "proof", "mute"], ground: Literal["background", "panel"]
):
    palette = theme.PALETTES[name]
    assert contrast(palette[colour], palette[ground]) >= GRAPHICS


@pytest.mark.parametrize("name", SCHEMES)
def test_bars_stand_out_from_the_page(name: str):
    palette = theme.PALETTES[name]
    assert contrast(palette["ramp"][3], palette["background"]) >= GRAPHICS


@pytest.mark.parametrize("name", SCHEMES)
def test_masked_words_can_be_read_through_their_hatching(name: str):
    palette = theme.PALETTES[name]
    assert contrast(palette["mute"], palette["line"]) >= TEXT


@pytest.mark.parametrize("name", SCHEMES)
def test_a_masked_cell_is_no_faint_zero(name: str):
    """Less than 3 : 1, because half of a causal map is masked and the other half is the picture; words say it as well."""
    palette = theme.PALETTES[name]
    assert contrast(palette["hatch"], palette["ramp"][0]) >= 1.5
    assert contrast(palette["hatch"], palette["background"]) >= 1.5


@pytest.mark.parametrize("name", SCHEMES)
def test_query_and_key_are_told_apart_by_more_than_their_colour(name: str):
    """Rows against columns, arrows in words: the colours are never the only sign, and they differ from the text's."""
    palette = theme.PALETTES[name]
    assert {"↓", "→"} <= set(words.COMPONENT["axes"])
    assert len({palette[colour] for colour in ("ink", "mute", "query", "key", "proof")}) == 5


@pytest.mark.parametrize("name", SCHEMES)
def test_what_was_never_materialised_can_still_be_read(name: str):
    assert contrast(theme.PALETTES[name]["mute"], theme.PALETTES[name]["background"]) >= TEXT
