"""Edits of a run: said in words, carried by links, refused with a sentence, and taken back with one button."""

from __future__ import annotations

import pytest
from playwright.sync_api import Browser, expect

import core
from app.kit import edits
from app.kit import words as kit_words
from app.shell import request, words
from core.edits import KINDS, from_text
from core.run.request import Request
from core.write.generate import with_continuation
from tests.app.browsing import Screen, go_to
from tests.core.test_intervention_text import EXAMPLES

APP = "app/main.py"


@pytest.mark.parametrize("edit", EXAMPLES, ids=list(EXAMPLES.values()))
def test_every_edit_has_words(edit: core.edits.Edit) -> None:
    said = edits.said(edit)
    assert "{" not in said and "None" not in said and len(said) < 80
    assert kit_words.EDITS.keys() == KINDS.keys()


def test_the_place_of_an_edit_is_named() -> None:
    (one, cross, loud, every) = from_text(
        "ablate_decoder_L0_H5~ablate_decoder_L1_H2_cross_mean~scale_-0.5_encoder_L11_H2~setmask_none"
    )
    assert edits.said(one) == "head 5 of layer 0 of the decoder is silenced"
    assert edits.said(cross) == "head 2 of layer 1 of the decoder (cross-attention) gives its mean over the text"
    assert edits.said(loud) == "the output of head 2 of layer 11 of the encoder is multiplied by -0.5"
    assert edits.said(every) == "every head sees everything"


def test_many_edits_fit_in_a_line() -> None:
    many = from_text("~".join(f"ablate_encoder_L0_H{head}" for head in range(12)))
    said = edits.listed(many)
    assert said.count(";") == kit_words.MOST_EDITS and said.endswith("and 8 more")


def test_a_link_with_edits_runs_them_in_every_room_until_they_are_taken_back(browser: Browser, address: str) -> None:
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    screen = Screen(page, address).open("?with=ablate_encoder_L0_H0&layer=0&head=0")
    said = words.EDITED.format(edits="head 0 of layer 0 of the encoder is silenced")
    expect(page.get_by_text(said)).to_be_visible()
    changed = screen.data()["run"]
    page.wait_for_url("**with=ablate_encoder_L0_H0**")
    go_to(page, "Shapes")
    expect(page.get_by_text(said)).to_be_hidden()
    page.locator(f".hl.shapes[data-painted][data-run='{changed}']").wait_for()
    page.wait_for_url("**with=ablate_encoder_L0_H0**")
    go_to(page, "Explore")
    expect(page.locator(".hl.shapes")).to_have_count(0)  # which is of this run as well
    screen.wait(run=changed)
    expect(page.get_by_text(said)).to_be_visible()
    page.get_by_role("button", name=words.UNEDIT).click()
    expect(page.get_by_text(said)).to_be_hidden()
    screen.until(f"root.dataset.run !== '{changed}' && !root.dataset.underway")
    page.wait_for_url(lambda url: "with=" not in url)
    assert not screen.errors
    page.close()


@pytest.mark.thorough
def test_the_model_goes_on_with_a_text_as_it_is_edited(browser: Browser, address: str) -> None:
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    screen = Screen(page, address).open("?model=copy&text=dabbi%3D&with=ablate_decoder_L1_H1")
    page.get_by_role("button", name=words.WRITE_ON).click()
    box = page.get_by_role("textbox", name=words.TEXT, exact=True)
    expect(box).not_to_have_value("dabbi=")
    screen.idle()
    page.wait_for_url("**with=ablate_decoder_L1_H1**")
    asked = Request(
        "copy", ("dabbi=",), interventions=(core.edits.Ablate("decoder", 1, 1),), write=request.WRITTEN_AT_ONCE
    )
    assert box.input_value() == with_continuation(core.load("copy"), asked)[0][0]
    page.close()


@pytest.mark.thorough
@pytest.mark.parametrize("asked", ["ablate_encoder_L99_H0", pytest.param("scale_1e999", marks=pytest.mark.thorough)])
def test_edits_that_cannot_be_get_a_sentence(browser: Browser, address: str, asked: str) -> None:
    """Those that this model has no place for are refused with the way back beside it; what nobody can read is left out."""
    page = browser.new_page()
    page.goto(f"{address}/?with={asked}")
    sentences = page.locator(".st-key-sentences")
    expect(sentences).to_contain_text("encoder layers 0 to 5" if "L99" in asked else words.UNKNOWN_EDITS[:40])
    if "L99" in asked:
        page.get_by_role("button", name=words.UNEDIT).click()
    page.locator(".hl[data-painted]").wait_for()
    page.close()
