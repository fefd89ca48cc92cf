"""The strip of the whole model has the numbers of the run, and a layer that is clicked there is shown."""

from __future__ import annotations

import json
import re

import pytest
from playwright.sync_api import expect
from starlette.applications import Starlette
from starlette.testclient import TestClient

import core
from app.attention import picture
from app.session.examples import MARY
from app.shell import routes
from core.read.key_steps import residual_profile
from core.run.request import Request
from tests.app.browsing import box_of
from tests.app.plain import Plain
from tests.app.served import local
from tests.core.gguf.test_smollm2 import pytestmark as needs_smollm2
from tests.core.gguf.test_smollm2 import smollm2

APP = "app/main.py"
LAYERS = 30


@needs_smollm2
def test_its_message_has_the_run_s_numbers_in_five_digits() -> None:
    run = core.trace(smollm2(), MARY)
    found, said = residual_profile(run, "decoder"), picture.strip_message(residual_profile(run, "decoder", None))
    assert json.loads(json.dumps(said)) == {**said, "next": list(said["next"])}
    assert said["stream"] == pytest.approx(found.stream.tolist(), rel=1e-4) and len(said["stream"]) == LAYERS + 1
    for part in said["parts"]:
        assert found.adds is not None
        assert part["lengths"] == pytest.approx(found.lengths[part["name"]].tolist(), rel=1e-4)
        assert part["adds"] == pytest.approx(found.adds[part["name"]].tolist(), rel=1e-4)
    assert said["next"][0] == "Mary" and said["wires"] is None
    assert len(json.dumps(said)) < 2_500


@needs_smollm2
def test_layers_are_chosen_by_a_click_and_by_keys(plain: Plain) -> None:
    plain.open("?view=step&model=smollm2&layer=23&head=0&at=softmax")
    root, page = plain.root, plain.page
    whole = root.locator(".model-strip")
    expect(whole).to_have_attribute("aria-label", "All layers at to₂")
    expect(whole).to_have_attribute("aria-valuenow", "23")
    expect(whole).to_have_attribute("aria-valuetext", "Layer 23: the stream is 337 long before it, 408 after it. It adds attention 183, MLP 88.3. To the score of Mary: attention +4.06, MLP +0.41.")  # fmt: skip
    expect(whole).to_contain_text("Mary 92 %")
    box = box_of(whole)
    number = box_of(whole.locator("text", has_text="29").last)
    page.mouse.move(number["x"] + number["width"] / 2, box["y"] + box["height"] / 2)
    expect(root.locator(".tip:not([hidden])")).to_contain_text("Layer 29: the stream is 778 long before it")
    page.mouse.down()
    page.mouse.up()
    plain.wait(layer="29", head="0", at="softmax")
    page.wait_for_url("**layer=29**")
    whole.focus()
    page.keyboard.press("ArrowLeft")
    plain.wait(layer="28")
    expect(whole).to_have_attribute("aria-valuenow", "28")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    plain.wait(at="words")
    expect(whole).to_have_attribute("aria-valuenow", str(LAYERS))
    page.mouse.click(box["x"] + 4, box["y"] + box["height"] / 2)
    plain.wait(at="embed", layer="0")
    expect(whole).to_have_attribute("aria-valuetext", "The embedding: 2.86 long. Click for how it is made.")


def test_an_encoder_and_a_decoder_are_two_strips_with_wires(plain: Plain) -> None:
    plain.open(
        "?view=step&model=translator&text=Ein+Hund+rennt+durch+den+Schnee.&target=A&stack=decoder&layer=1&query=1"
    )
    whole = plain.root.locator(".model-strip")
    expect(whole).to_contain_text("encoder at Hund")  # at which all layers together look most
    for share in ("86 %", "81 %", "89 %"):
        expect(whole).to_contain_text(f"{share} on Hund")
    expect(whole).to_contain_text("dog 93 %")
    upper = box_of(whole.locator("text", has_text="encoder at"))
    layer = box_of(whole.locator("text", has_text="2").first)
    plain.page.mouse.click(layer["x"] + layer["width"] / 2, upper["y"] + 10)
    plain.wait(stack="encoder", layer="2")


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("stack=middle", "stack"),
        ("stack=decoder&query=99", "query"),
        ("stack=decoder&query=-1", "query"),
    ],
)
def test_a_route_that_is_asked_for_what_is_not_there_says_what_is(query: str, said: str) -> None:
    run = Request("translator", ("Ein Hund",)).key
    local().engine.run(Request("translator", ("Ein Hund",)))
    with TestClient(Starlette(routes=[*routes.ROUTES])) as client:
        answer = client.get(f"/headlight/strip?run={run}&{query}")
    assert answer.status_code == 400 and said in answer.text


@needs_smollm2
@pytest.mark.parametrize("room", ["explore", "masks", pytest.param("whatif", marks=pytest.mark.thorough)])
def test_every_room_with_heads_has_it_in_one_line_and_keeps_the_head(room: str, plain: Plain) -> None:
    pick = "&sweep=heads&pick=on&at=13" if room == "whatif" else ""
    plain.open(f"?view={room}&model=smollm2&layer=23&head=4&query=13{pick}")
    page, whole = plain.page, plain.root.locator(".model-strip")
    expect(whole).to_contain_text("Mary 92 %")
    expect(whole).to_have_attribute("aria-label", "All layers at to₂")
    expect(whole).to_have_attribute("aria-valuenow", "23")
    expect(whole).to_have_attribute("aria-valuemin", "0")
    expect(whole).to_have_attribute("aria-valuemax", str(LAYERS - 1))
    box = box_of(whole)
    assert box["height"] <= 36
    number = box_of(whole.locator("text", has_text="29").last)
    page.mouse.move(number["x"] + number["width"] / 2, box["y"] + box["height"] / 2)
    expect(plain.root.locator(".tip:not([hidden])")).to_contain_text("Layer 29: the stream is 778 long before it")
    page.mouse.down()
    page.mouse.up()
    expect(whole).to_have_attribute("aria-valuenow", "29")
    page.wait_for_url("**layer=29**")
    assert "head=4" in page.url
    whole.focus()
    page.keyboard.press("ArrowRight")  # the last one stays
    page.keyboard.press("ArrowLeft")
    expect(whole).to_have_attribute("aria-valuenow", "28")
    page.wait_for_url("**layer=28**")
    assert "head=4" in page.url
    page.mouse.click(box["x"] + box["width"] - 10, box["y"] + box["height"] / 2)  # the next word is no layer
    expect(whole).to_have_attribute("aria-valuenow", "28")
    main = page.locator("[data-testid=stMain]")
    assert main.evaluate("(main) => main.scrollHeight - main.clientHeight") == 0
    page.keyboard.press("Escape")
    page.set_viewport_size({"width": 390, "height": 844})
    expect(whole).to_be_hidden()


@needs_smollm2
def test_in_explore_it_follows_the_word_and_leaves_a_guess_to_the_visitor(plain: Plain) -> None:
    plain.open("?view=explore&model=smollm2&layer=23&head=0&query=13")
    whole = plain.root.locator(".model-strip")
    expect(whole).to_contain_text("Mary 92 %")
    plain.root.locator(".strip [data-i='10']").click()
    expect(whole).to_contain_text("stream at gave")
    expect(whole).not_to_contain_text("Mary 92 %")
    expect(whole).to_have_attribute("aria-valuenow", "23")
    plain.root.get_by_role("button", name="predict first").click()
    expect(whole).to_be_hidden()


def test_in_one_line_too_an_encoder_and_a_decoder_are_two(plain: Plain) -> None:
    plain.open("?view=explore&model=translator&text=Ein+Hund+rennt+durch+den+Schnee.&target=A&site=cross&layer=1&head=5&query=1")  # fmt: skip
    whole = plain.root.locator(".model-strip")
    expect(whole).to_contain_text("encoder at Hund")
    expect(whole).to_contain_text("decoder at A")
    expect(whole).to_have_attribute("aria-valuetext", re.compile("Its cross-attention gives Hund 81 %"))
    assert box_of(whole)["height"] <= 36
    read, written = (box_of(whole.locator("text", has_text=name)) for name in ("encoder at", "decoder at"))
    assert read["y"] == written["y"]
    layer = box_of(whole.locator("text", has_text="2").first)
    assert read["x"] < layer["x"] < written["x"]
    plain.page.mouse.click(layer["x"] + 3, layer["y"] + 5)
    plain.wait(site="encoder", layer="2", head="5")
    expect(whole).to_have_attribute("aria-valuenow", "2")
