"""The atlas on Explore: its numbers are those of the file, its examples open on the row that they name, and no other model has a button."""

from __future__ import annotations

import re
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import expect
from starlette.applications import Starlette
from starlette.testclient import TestClient

import core
from app.attention import corpus
from app.attention.routes import ROUTES
from app.attention.words import COMPONENT as WORDS
from app.session import service
from core.checkpoints import catalog
from core.patching import atlas
from core.read.head_roles import run_roles
from core.run.request import Request
from tests.app.browsing import box_of
from tests.app.plain import AnotherPlain, Plain
from tests.app.served import local
from tests.core.gguf.test_smollm2 import pytestmark as needs_smollm2

APP = "app/main.py"
REQUEST = Request(service.DEFAULT_MODEL, ("The cat sat on the mat.",))


@pytest.mark.parametrize(
    "model", ["minilm", "storyteller", pytest.param("smollm2", marks=(needs_smollm2, pytest.mark.thorough))]
)
def test_what_ships_is_of_this_model(model: str) -> None:
    """Every head has an entry, and the strongest examples are found again by running their texts."""
    known, loaded = catalog.atlas_of(model), core.load(model)
    assert known is not None and known["source"]["model"] == model and known["source"]["n_texts"] == 1000
    first = next(iter(known["texts"].values()))
    run = core.trace(loaded, first)
    names = {f"{r.stack}.{r.site}.{r.layer}.{head}" for r in run.attention for head in range(r.n_heads)}
    assert set(known["heads"]) == names
    for name in sorted(names)[:: len(names) // 6]:
        stack, site, layer, head = name.split(".")
        told = known["heads"][name]
        text, at, value, start, stop = told["examples"][0]
        found = core.trace(loaded, known["texts"][str(text)])
        record = found.attention.at(int(layer), site, stack)
        rows = atlas.rows_of(record, *found.tokens_of(record))[told["stands_out"]][int(head)]
        assert rows.nanmean().item() == pytest.approx(value, rel=2e-3)
        assert rows[at] == rows.nan_to_num(-1).max()
        assert found.source.offsets[at] == (start, stop)


def test_a_head_known_to_look_back_does_so_over_the_corpus() -> None:
    known = catalog.atlas_of("minilm")
    assert known is not None
    run = core.trace(core.load("minilm"), "The animal didn't cross the street because it was too tired.")
    assert run_roles(run)[0][2].name == "one back" and known["heads"]["encoder.attn.0.2"]["stands_out"] == "previous"


def test_the_route_tells_of_one_head_and_of_no_model_without_an_atlas() -> None:
    local().engine.run(REQUEST)
    copying = Request("copy", ("abcd=",))
    local().engine.run(copying)
    with TestClient(Starlette(routes=ROUTES)) as client:

        def ask(run: Request, **more: int) -> dict:
            return client.get("/headlight/atlas", params={"run": run.key, **more}).json()

        assert ask(REQUEST) == {"texts": 1000} and ask(copying) == {"texts": 0} == ask(copying, record=0, head=0)
        found, known = ask(REQUEST, record=0, head=2), corpus.of("minilm")
        assert known is not None
        told = known["heads"]["encoder.attn.0.2"]
        assert {metric["name"]: metric["mean"] for metric in found["metrics"]} == {
            name: metric["mean"] for name, metric in told["metrics"].items()
        }
        assert len(found["examples"]) == atlas.EXAMPLES
        for example in found["examples"]:
            whole = parse_qs(urlsplit(example["link"]).query)["text"][0]
            assert example["before"] + example["word"] + example["after"] in whole
        for wrong in ({"record": 99, "head": 0}, {"record": 0, "head": 12}):
            assert client.get("/headlight/atlas", params={"run": REQUEST.key, **wrong}).status_code == 400
    assert catalog.atlas_of("../core") is None


def test_the_button_opens_the_head_s_numbers_and_an_example_opens_its_row(plain: Plain) -> None:
    plain.open("?layer=0&head=2")
    button, panel = plain.root.locator("button.atlas"), plain.root.locator("div.menu.atlas")
    expect(button).to_have_text("over 1,000 texts")
    button.focus()
    plain.page.keyboard.press("Enter")
    expect(panel.get_by_role("row")).to_have_count(1 + len(atlas.METRICS))
    expect(panel).to_contain_text("attention to the previous token, 99.9 % on average")
    plain.page.keyboard.press("Escape")
    expect(panel).to_be_hidden()
    plain.page.keyboard.press("ArrowRight")
    button.click()
    expect(panel.get_by_role("heading").first).to_have_text(re.compile(r"Layer \d, head \d+, over 1,000 texts"))
    link = panel.get_by_role("link").first
    asked = parse_qs(urlsplit(link.get_attribute("href") or "").query)
    with plain.page.expect_popup() as example:
        link.click()
    told = parse_qs(urlsplit(example.value.url).query)
    assert (told["text"], told["query"]) == (asked["text"], asked["query"])


def test_on_a_phone_nothing_of_the_numbers_is_cut_off(plain_phone: Plain) -> None:
    phone = plain_phone.open("?layer=0&head=2")
    phone.root.locator("button.atlas").click()
    panel = phone.root.locator("div.menu.atlas")
    expect(panel.get_by_role("row")).to_have_count(1 + len(atlas.METRICS))
    assert panel.evaluate("panel => panel.scrollWidth - panel.clientWidth") == 0


def test_a_model_without_an_atlas_has_no_button(plain: Plain) -> None:
    with plain.page.expect_response(re.compile("/headlight/atlas")):
        plain.open("?model=Copy")
    expect(plain.root.locator("button.atlas")).to_be_hidden()


@pytest.mark.thorough
@needs_smollm2
def test_the_card_of_a_head_says_what_it_does_over_many_texts_with_examples(plain_another: AnotherPlain) -> None:
    screen = plain_another((1280, 1000)).open("?model=smollm2&layer=16&head=0")
    known = catalog.atlas_of("smollm2")
    assert known is not None
    told = known["heads"]["decoder.attn.16.0"]
    mean = told["metrics"][told["stands_out"]]["mean"]
    card = screen.root.locator(".headcard .corpus")
    expect(card.locator("button.atlas")).to_have_text("over 1,000 texts")
    expect(card).to_contain_text(f"{WORDS['atlas_of'][told['stands_out']]}, {100 * mean:.0f} % on average")
    links = card.get_by_role("link")
    expect(links).to_have_count(3)
    for i, (text, query, *_) in enumerate(told["examples"][:3]):
        asked = parse_qs(urlsplit(links.nth(i).get_attribute("href") or "").query)
        assert (asked["text"], asked["query"]) == ([known["texts"][str(text)]], [str(query)])
    assert card.evaluate("card => card.scrollWidth - card.clientWidth") == 0
    screen.root.get_by_role("button", name=WORDS["lows"]["looks"][0], exact=True).click()
    expect(screen.root.locator(".map > .head button.atlas")).to_be_visible()


@pytest.mark.thorough
@needs_smollm2
def test_in_a_small_window_the_card_takes_no_more_room_than_there_is(plain_another: AnotherPlain) -> None:
    screen = plain_another((1280, 720)).open("?model=smollm2")
    expect(screen.root.locator(".headcard .corpus button.atlas")).to_be_visible()
    expect(screen.root.locator(".headcard .corpus")).to_contain_text("on average")
    low, foot = (box_of(screen.root.locator(name)) for name in (".headcard", "footer"))
    assert low["y"] + low["height"] <= foot["y"] + 1
