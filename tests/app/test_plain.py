"""A room on a plain page: one mount for several tests, nothing of one test in the next, and the same room in both kinds of place."""

from __future__ import annotations

import pytest
from playwright.sync_api import Browser, expect

from app.kit import words as kit_words
from app.rooms.positions import words
from tests.app import plain as plain_page
from tests.app.plain import Plain, opened

APP = "tests/app/gallery.py"
ORDER = "?view=positions&model=minilm&lab=order&order=words&swap=2-7"
SAME = "window.was === document.querySelector('#place').firstChild"
HOLDS_FOCUS = """root => {
    const now = root.getRootNode().activeElement;
    return root.contains(now) && now !== root ? now.textContent : "";
}"""

step = opened("?view=step&at=mask")


def test_a_room_is_opened_once_for_tests_that_only_look(step: Plain) -> None:
    assert step.page.evaluate("Boolean(window.was = document.querySelector('#place').firstChild)")


def test_it_stays_for_the_next_and_is_opened_again_after_one_that_does_something(step: Plain) -> None:
    assert step.page.evaluate(SAME)
    step.root.locator(".station[data-step='softmax']").click()
    step.wait(at="softmax")


def test_it_is_as_its_link_says_then(step: Plain) -> None:
    step.wait(at="mask")
    assert not step.page.evaluate(SAME)


def test_what_a_test_does_to_the_page_ends_with_it(plain: Plain) -> None:
    plain.open("?view=step&at=mask&projector=true&theme=dark")
    assert (plain.data()["projector"], plain.data()["theme"]) == ("true", "dark")
    plain.page.set_viewport_size({"width": 700, "height": 500})
    plain.page.evaluate("localStorage.setItem('left', 'behind')")


def test_the_next_finds_the_page_as_it_was(plain: Plain) -> None:
    plain.open("?view=step&at=mask")
    plain.wait(projector="false", theme="light")
    assert plain.page.viewport_size == {"width": 1280, "height": 720}
    assert plain.page.evaluate("localStorage.length") == 0


def test_another_room_is_shown_without_loading_the_page_and_back_shows_the_one_before(plain: Plain) -> None:
    plain.open("?view=step&at=mask")
    plain.page.evaluate("window.stays = true")
    plain.root.locator(".station[data-step='softmax']").click()
    plain.page.wait_for_url("**at=softmax**")
    plain.page.go_back()
    plain.wait(at="mask")
    plain.open("?view=positions")
    expect(plain.page.locator(".hl")).to_have_count(1)
    assert plain.page.evaluate("window.stays")


def test_more_models_are_there_where_the_module_asks_for_them(plain: Plain) -> None:
    plain.open("?view=explore&model=Grouped&text=One+two+three.")
    assert plain.tokens()[1:4] == ["One", "two", "three"]


def test_a_link_that_leads_nowhere_says_why(plain: Plain) -> None:
    plain.page.evaluate("plain.open('?view=explore&model=nope&text=hi')")
    assert "no model" in plain.sentences()


def test_another_text_keeps_a_head_that_is_pinned(plain: Plain) -> None:
    plain.open("?view=explore&text=The+animal+slept.&layer=2&head=5&query=2")
    plain.root.get_by_role("button", name=kit_words.COMPONENT["pin"], exact=True).click()
    plain.page.wait_for_url("**pinned=true**")
    plain.run_text("So the animal slept.")
    plain.wait(layer="2", head="5", locked="3")
    assert plain.tokens()[3] == "animal"
    plain.root.get_by_role("button", name=kit_words.COMPONENT["pinned"], exact=True).click()
    plain.page.wait_for_url(lambda url: "pinned" not in url)
    plain.run_text("The animal didn't cross the street.")
    assert (plain.data()["layer"], plain.data()["head"]) != ("2", "5"), "it opens on its own finding"


@pytest.mark.parametrize("in_document", [False, True], ids=["shadow", "document"])
def test_the_focus_stays_where_a_redraw_replaces_what_has_it(plain: Plain, in_document: bool) -> None:
    plain.open(ORDER, in_document)
    root = plain.root
    root.locator("[data-word='6']").click()
    plain.page.wait_for_url("**query=6**")
    assert root.evaluate(HOLDS_FOCUS).startswith("cross")
    shuffle = root.get_by_role("button", name=words.COMPONENT["shuffle"])
    shuffle.focus()
    plain.page.keyboard.press("Enter")
    plain.page.wait_for_url("**seed=1**")
    expect(root).to_have_attribute("data-pending", "false")
    assert root.evaluate(HOLDS_FOCUS) == words.COMPONENT["shuffle"]


@pytest.mark.parametrize("in_document", [False, True], ids=["shadow", "document"])
def test_a_drawing_s_own_colours_are_those_of_its_words(plain: Plain, in_document: bool) -> None:
    plain.open(ORDER, in_document)
    wrong = """root => [...root.querySelectorAll("svg text[fill]")].filter((text) => {
        const own = document.createElement("i").style;
        own.color = text.getAttribute("fill");
        return own.color && getComputedStyle(text).fill !== own.color && !text.getAttribute("class");
    }).length"""
    assert plain.root.evaluate(wrong) == 0


def test_an_error_of_the_page_fails_the_test_and_the_page_is_not_used_again(
    browser: Browser, plain_address: str
) -> None:
    window = {"viewport": {"width": 640, "height": 480}}
    with (
        pytest.raises(AssertionError, match="it broke"),
        plain_page.visiting(browser, plain_address, **window) as broken,
    ):
        broken.page.evaluate("setTimeout(() => { throw new Error('it broke'); })")
        broken.page.wait_for_timeout(50)
    with plain_page.visiting(browser, plain_address, **window) as other:
        assert other is not broken
