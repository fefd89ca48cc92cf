"""A config.json that was pasted into Shapes comes back by its link, and a link that says anything else is refused in words."""

from __future__ import annotations

import base64
import json
import random
import re
import zlib
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect
from starlette.applications import Starlette
from starlette.testclient import TestClient
from transformers import AutoConfig

from app.kit import params
from app.rooms.shapes import dropped
from app.rooms.shapes import words as shapes_words
from app.sizes import pasted, words
from core.checkpoints.families import FAMILIES
from core.errors import HeadlightError
from tests.app import script
from tests.app.browsing import Screen, once
from tests.app.pages import lend

APP = "app/main.py"
SMALL = {"model_type": "gpt2", "n_embd": 96, "n_layer": 5, "n_head": 6, "vocab_size": 100, "n_positions": 256}
OTHER = SMALL | {"n_embd": 64, "n_head": 4}
LABELS = {"id2label": {str(i): f"label {i}" for i in range(500)}}  # what makes such files long, and decides nothing
# What transformers' own defaults have: ESM with a table of positions, groups of experts, no number of them for each
# token, and heads that do not divide the width.
REFUSED_AS_PUBLISHED = {"esm", "deepseek_v2", "deepseek_v3", "glm4_moe"}


def linked(values: bytes) -> str:
    packer = zlib.compressobj(9, zlib.DEFLATED, -zlib.MAX_WBITS)
    return base64.urlsafe_b64encode(packer.compress(values) + packer.flush()).decode().rstrip("=")


# round trips


@pytest.mark.thorough(but=22)
@pytest.mark.parametrize("name", sorted(FAMILIES.keys() - REFUSED_AS_PUBLISHED))
def test_every_family_comes_back_by_its_link(name: str):
    values = AutoConfig.for_model(name).to_dict()
    said = pasted.to_link(json.dumps(values | LABELS))
    assert pasted.config_of(pasted.from_link(said)) == pasted.config_of(json.dumps(values))
    assert len(said) < 600
    assert pasted.to_link(pasted.from_link(said)) == said  # opened and copied again, it is the same link


def test_a_link_has_what_decides_and_nothing_else():
    text = json.dumps(SMALL | {"transformers_version": "9", "n_inner": None, "activation_function": "gelu_new"})
    assert json.loads(pasted.from_link(pasted.to_link(text))).keys() == {*SMALL, "n_inner", "activation_function"}


def test_a_config_too_long_for_a_link_is_said_to_be():
    draw = random.Random(0)
    names = [f"{draw.getrandbits(80):x}" for _ in range(400)]  # random, so that they cannot be packed
    text = json.dumps(SMALL | {"architectures": names})
    pasted.config_of(text)  # it is a model all the same
    with pytest.raises(
        HeadlightError, match=rf"too long for a link \([\d,]+ characters; a link has room for {params.MOST:,}\)"
    ):
        pasted.to_link(text)


# damaged texts

WHOLE = json.dumps(SMALL, indent=2)
DAMAGED = {
    "cut off in a value": (WHOLE[: WHOLE.index("256")], "1 bracket is still open"),
    "cut off in a word": (WHOLE[: WHOLE.index("gpt2") + 2], "1 bracket is still open"),
    "cut off in a list": ('{"model_type": "gpt2", "architectures": ["GPT2"', "2 brackets are still open"),
    "its beginning is missing": (WHOLE[WHOLE.index("96") :], "more text follows: “,"),
    "two files": (WHOLE + WHOLE, "more text follows: “{"),
    "the page of the Hub": ("<!doctype html>\n<html><body>" + WHOLE, "web page"),
    "a Python dict": (str(SMALL), "Python dict (line 1, column 2)"),
    "Python's words": (WHOLE.replace("96", "None"), "Python dict (line 3, column 13)"),
    "a comma too many": (WHOLE.replace("\n}", ",\n}"), "not JSON: line"),
    "a comma too few": (WHOLE.replace("96,", "96"), "not JSON: line 4"),
    "a remark": (WHOLE.replace("96,", "96, // as in the paper"), "not JSON: line 3"),
    "a key twice": (WHOLE.replace("\n}", ',\n  "n_head": 8\n}'), "“n_head” is there twice, with 6 and with 8"),
    "no number": (WHOLE.replace("96", "NaN"), "“n_embd” is NaN"),
    "an endless number": (WHOLE.replace("96", "-Infinity"), "“n_embd” is -Infinity"),
    "a number too large": (WHOLE.replace("96", "1e999"), "“n_embd” is Infinity"),
    "thousands of digits": (WHOLE.replace("96", "9" * 5000), "too long"),
    "nested": ('{"a": ' + "[" * 40_000 + "]" * 40_000 + "}", "nested too deep"),
    "a list of configs": (f"[{WHOLE}]", "which is an object"),
    "a word": ("gpt2", "not JSON: line 1"),
}


@pytest.mark.parametrize("name", DAMAGED)
def test_a_damaged_text_says_how_it_is_damaged(name: str):
    text, said = DAMAGED[name]
    with pytest.raises(HeadlightError) as refusal:
        pasted.config_of(text)
    assert said in str(refusal.value) and len(str(refusal.value)) < 300


def test_what_only_looks_damaged_is_read():
    whole = pasted.config_of(WHOLE)
    for text in (f"\ufeff{WHOLE}", f"\n\n {WHOLE}\n", WHOLE.replace("\n}", ',\n  "n_head": 6\n}')):
        assert pasted.config_of(text) == whole
    assert pasted.config_of(json.dumps(SMALL | {"_name": 'a "{[{" of "x'})) == whole


def test_every_text_that_is_cut_off_says_so():
    for end in range(1, len(WHOLE)):
        with pytest.raises(HeadlightError, match=r"1 bracket is still open|not JSON"):
            pasted.config_of(WHOLE[:end])


# bad values

BAD = {
    "letters of no link": "<script>",
    "no deflate": "AAAA",
    "half of a link": pasted.to_link(json.dumps(SMALL))[:40],
    "one letter more": pasted.to_link(json.dumps(SMALL)) + "A",
    "padding": pasted.to_link(json.dumps(SMALL)) + "==",
    "a list": linked(b"[1]"),
    "no JSON": linked(b"model_type"),
    "no text": linked(b"\xff\xfe\x00"),
    "nested": linked(b'{"a":' + b"[" * 50_000 + b"]" * 50_000 + b"}"),
    "digits": linked(b'{"n_embd":' + b"9" * 50_000 + b"}"),
    "much out of little": linked(b'{"a":"' + b" " * 1_000_000 + b'"}'),
    "other letters": "٣٣٣٣",
    "too long": "A" * (params.MOST + 1),
}


@pytest.mark.parametrize("name", BAD)
def test_a_link_that_will_not_do_is_refused_in_words(name: str):
    values, notes = params.read((pasted.CONFIG,), None, {"config": BAD[name]})
    assert values == {"config": ""}
    assert len(notes) == 1 and words.CONFIG_IN_LINK in notes[0] and len(notes[0]) < 300


def test_no_value_of_a_link_raises_anything_else():
    draw = random.Random(13)
    good = [pasted.to_link(json.dumps(values)) for values in (SMALL, OTHER)]
    odd = [None, True, -1, 0, 1e400, 2**70, "", "x" * 300, [], [[]], {}, {"a": {}}, "\ud800", "__import__('os')"]
    asked = [said[: draw.randrange(len(said))] for said in good for _ in range(200)]
    for said in good * 400:
        i = draw.randrange(len(said))
        asked.append(said[:i] + draw.choice("AZaz09-_=%+/ ") + said[i + 1 :])
    for key in SMALL:
        asked += [linked(json.dumps(SMALL | {key: value, "architectures": value}).encode()) for value in odd]
    asked += [linked(draw.randbytes(draw.randrange(60))) for _ in range(200)]
    read = 0
    for said in asked:
        values, _ = params.read((pasted.CONFIG,), None, {"config": said})
        if not values["config"]:
            continue
        read += 1
        try:
            pasted.to_link(pasted.from_link(values["config"]))
        except HeadlightError as refusal:
            assert str(refusal)
    assert 50 < read < len(asked)


@pytest.fixture(scope="module")
def client() -> Iterator[TestClient]:
    with TestClient(Starlette(routes=dropped.ROUTES)) as client:
        yield client


# the whole page, without a browser


def test_a_pasted_config_is_drawn_said_by_the_link_and_replaced_by_the_next_one():
    app = script.visit("shapes", of="pasted", config=pasted.to_link(json.dumps(SMALL | LABELS)))
    assert script.message(app, "shapes_stage")["heads"] == 6 and script.message(app, "shapes_stage")["layers"] == {
        "decoder": 5
    }
    assert json.loads(script.box(app, words.PASTE).value) == SMALL
    script.box(app, words.PASTE).set_value(json.dumps(OTHER)).run()
    assert script.message(app, "shapes_stage")["heads"] == 4
    assert script.message(app, "shapes_stage")["link"]["config"] == pasted.to_link(json.dumps(OTHER))
    script.box(app, words.PASTE).set_value("<b>no</b>").run()
    assert (
        words.PASTE_PAGE in script.said(app) and script.message(app, "shapes_stage")["heads"] == 4
    )  # the last diagram stays


def test_a_config_that_a_link_breaks_is_a_sentence_and_the_box_is_still_there():
    app = script.visit("shapes", of="pasted", config="<b>no</b>", text="One two.")
    assert "This link asks for config “<b>no</b>”." in script.said(app) and words.PASTE_FIRST in script.said(app)
    script.box(app, words.PASTE).set_value(json.dumps(SMALL)).run()
    assert script.message(app, "shapes_stage")["heads"] == 6


# in a browser


@pytest.fixture
def screen(browser: Browser, address: str) -> Iterator[Screen]:
    with lend(browser, viewport={"width": 1280, "height": 720}, reduced_motion="reduce") as page:
        screen = Screen(page, address)
        yield screen
        screen.leave()


def paste(screen: Screen, values: object) -> None:
    box = screen.page.get_by_role("textbox", name=words.PASTE)
    box.fill(json.dumps(values))
    box.press("Control+Enter")


def in_the_address(screen: Screen, values: object) -> None:
    once(screen.page, "said => new URLSearchParams(location.search).get('config') === said", arg=pasted.to_link(json.dumps(values)))  # fmt: skip


@pytest.mark.thorough
def test_a_pasted_config_is_in_the_link_and_a_step_of_back(screen: Screen):
    screen.page.goto(f"{screen.address}/?view=shapes&of=pasted&config={pasted.to_link(json.dumps(SMALL | LABELS))}")
    screen.wait(shape="1,6,128,128")
    screen.page.get_by_role("button", name=shapes_words.FIELDS).click()
    box = screen.page.get_by_role("textbox", name=words.PASTE)
    expect(box).to_have_value(json.dumps(SMALL, indent=2))
    screen.idle()
    paste(screen, OTHER)
    screen.wait(shape="1,4,128,128")
    in_the_address(screen, OTHER)
    screen.idle()
    screen.page.go_back()
    screen.wait(shape="1,6,128,128")
    in_the_address(screen, SMALL)


@pytest.mark.thorough
def test_a_broken_link_says_so_and_the_box_is_still_there(screen: Screen):
    screen.page.goto(f"{screen.address}/?view=shapes&of=pasted&config=%3Cb%3Eno%3C%2Fb%3E&text=One+two.")
    expect(screen.page.get_by_text("This link asks for config “<b>no</b>”.")).to_be_visible()
    expect(screen.page.get_by_text(words.PASTE_FIRST)).to_be_visible()
    screen.page.get_by_role("button", name=shapes_words.FIELDS).click()
    screen.idle()
    paste(screen, SMALL)
    screen.wait(shape="1,6,128,128")
    in_the_address(screen, SMALL)


@pytest.mark.thorough
def test_a_pasted_config_outlives_a_visit_to_another_model(screen: Screen):
    screen.page.goto(f"{screen.address}/?view=shapes&of=pasted&config={pasted.to_link(json.dumps(SMALL))}")
    screen.wait(shape="1,6,128,128")
    for model, shape in (("BERT tiny", "1,2,128,128"), (words.PASTED, "1,6,128,128")):
        screen.idle()
        screen.page.get_by_label(shapes_words.OF).click()
        screen.page.get_by_role("option", name=model).click()
        screen.wait(shape=shape)
        expect(screen.page).to_have_url(re.compile(r"config=" if model == words.PASTED else r"^[^#]*\?(?!.*config=)"))


# dropped onto the page


def drop(page: Page, name: str, body: str) -> None:
    """Drop a file of this text onto the page."""
    page.evaluate(
        """([name, body]) => {
            const data = new DataTransfer();
            data.items.add(new File([body], name));
            const target = document.querySelector("[data-testid=stMain]");
            for (const type of ["dragover", "drop"])
                target.dispatchEvent(new DragEvent(type, {dataTransfer: data, bubbles: true, cancelable: true}));
        }""",
        [name, body],
    )


def test_a_config_that_is_dropped_opens_where_the_visitor_is(screen: Screen):
    page = screen.page
    page.goto(f"{screen.address}/?view=explore&model=MiniLM-L6&text=One+two.&theme=dark")
    screen.idle()
    drop(page, "config.json", "\ufeff" + json.dumps(SMALL | LABELS))
    page.wait_for_url(lambda url: f"config={pasted.to_link(json.dumps(SMALL))}" in url)
    screen.wait(shape="1,6,128,128")
    assert "theme=dark" in page.url and "view=shapes" in page.url
    page.goto(f"{screen.address}/?view=memory&model=MiniLM-L6&text=One+two.")
    page.locator(".planner[data-painted][data-view=memory]").wait_for()
    screen.idle()
    drop(page, "config.json", json.dumps(OTHER))
    page.wait_for_url(lambda url: "view=memory" in url and f"config={pasted.to_link(json.dumps(OTHER))}" in url)
    page.locator(".planner[data-painted][data-view=memory]").wait_for()
    # a file that will not do is a sentence, and the page stays as it is
    screen.idle()
    before = page.url
    for body, sentence in (
        ('{"model_type": "gpt2",', "The text ends before the file does"),
        ("[1, 2]", words.PASTE_NO_OBJECT),
        (json.dumps({"model_type": "mamba"}), "mamba"),
        ("x" * 450_000, "This file has 450 kB"),
    ):
        drop(page, "config.json", body)
        expect(page.get_by_role("alert").filter(has_text=sentence)).to_be_visible()
        page.keyboard.press("Escape")
        expect(page.locator("#headlight-dropped")).to_have_count(0)
    assert page.url == before


def test_what_is_sent_as_a_config_is_bounded_and_data(client: TestClient):
    def sent(body: bytes) -> Any:
        return client.post("/headlight/shapes/config", content=body)

    good = sent(json.dumps(SMALL | LABELS).encode())
    assert good.json() == {"config": pasted.to_link(json.dumps(SMALL))} and good.headers["cache-control"] == "no-store"
    assert sent(b"\xff\xfe\x00" * 9).status_code == 400 and "no text" in sent(b"\xff\xfe\x00" * 9).text
    assert sent(b" " * (dropped.MOST_BYTES + 1)).status_code == 413
    assert sent(b" " * (pasted.MOST_TEXT + 1)).text == words.PASTE_TOO_LONG.format(n=pasted.MOST_TEXT + 1)
    assert sent(b"<script>alert(1)</script>").text == words.PASTE_PAGE
    assert client.get("/headlight/shapes/config").status_code == 405
    draw = random.Random(3)
    for _ in range(300):  # never another status, and never a trace
        body = bytearray(json.dumps(SMALL).encode())
        for _ in range(draw.randrange(1, 6)):
            body[draw.randrange(len(body))] = draw.randrange(256)
        found = sent(bytes(body))
        assert found.status_code in (200, 400) and "Traceback" not in found.text
