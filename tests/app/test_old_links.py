"""Links that were written before app/ had rooms: each opens the screen that it always opened."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from urllib.parse import parse_qsl

import pytest
from playwright.sync_api import Browser, expect
from streamlit.testing.v1 import AppTest

from tests.app import script
from tests.app.browsing import PATIENCE, Screen, eventually

APP = "app/main.py"
ANIMAL = "The animal didn't cross the street because it was too tired."

# link -> what the picture of Explore says of itself, and the sentences in the boxes
EXPLORE: dict[str, tuple[dict[str, str], list[str]]] = {
    "": ({"site": "encoder", "layer": "3", "head": "1", "query": "10", "show": "map", "scale": "auto"}, [ANIMAL]),
    "view=Explore&text=The+cat+sat+on+the+mat.": ({"show": "map", "tokens": "9"}, ["The cat sat on the mat."]),
    "view=Explore&layer=0&head=2&query=5": ({"layer": "0", "head": "2", "query": "5"}, [ANIMAL]),
    "layer=2&head=7&query=none&scale=log": ({"layer": "2", "head": "7", "query": "", "scale": "log"}, [ANIMAL]),
    "text=A+cat+sat+on+a+mat+and+a+cat+sat+on+a+mat.&layer=2&head=11&query=14&show=lines": (
        {"layer": "2", "head": "11", "query": "14", "show": "lines"},
        ["A cat sat on a mat and a cat sat on a mat."],
    ),
    "show=table&layer=1&head=8&query=3": ({"layer": "1", "head": "8", "query": "3", "show": "table"}, [ANIMAL]),
    "kind=mean&heads=3.1,3.2&query=4": ({"kind": "mean", "members": "[[3,1],[3,2]]", "query": "4"}, [ANIMAL]),
    "kind=rollout&layer=4&query=4": ({"kind": "rollout", "layer": "4", "query": "4"}, [ANIMAL]),
    "kind=value&layer=3&head=1": ({"kind": "value", "layer": "3", "head": "1"}, [ANIMAL]),
    "hide=0,15&scale=row": ({"hide": "[0,15]", "scale": "row"}, [ANIMAL]),
    "key=4&layer=3&head=1&query=none": ({"query": "", "pin": "4"}, [ANIMAL]),
    "words=true&text=Tokenizers+split+unbelievable+words.": (
        {"words": "true", "tokens": "9"},
        ["Tokenizers split unbelievable words."],
    ),
    "metric=entropy&sort=true": ({"metric": "entropy", "sort": "true"}, [ANIMAL]),
    "metric=previous&projector=true": ({"metric": "previous", "projector": "true"}, []),
    "theme=dark&layer=5&head=11": ({"theme": "dark", "layer": "5", "head": "11"}, [ANIMAL]),
    "model=Storyteller&text=Once+upon+a+time+there+was+a+king.": (
        {"site": "decoder", "tokens": "10"},
        ["Once upon a time there was a king."],
    ),
    "model=Translator&text=Ein+Hund+rennt+durch+den+Schnee.&site=cross&layer=1&head=5": (
        {"site": "cross", "layer": "1", "head": "5"},
        ["Ein Hund rennt durch den Schnee.", ""],
    ),
    "model=Translator&text=Ein+Hund+rennt.&target=A+dog+runs.&site=decoder&layer=0&head=0": (
        {"site": "decoder", "layer": "0", "head": "0"},
        ["Ein Hund rennt.", "A dog runs."],
    ),
    "model=Copy&step=122": ({"site": "decoder", "layer": "1", "head": "1"}, ["iklippan=iklippan"]),
    "model=minilm&layer=3&head=4": ({"site": "encoder", "layer": "3", "head": "4"}, [ANIMAL]),
    "model=Nobody&text=A+short+text.": ({"site": "encoder", "tokens": "6"}, ["A short text."]),
    "view=Nowhere": ({"layer": "3", "head": "1"}, [ANIMAL]),
}

SHAPES = {
    "view=Shapes&text=The+cat+sat+on+the+mat.": ({"tensor": "encoder.attn.weights", "as": "diagram"}, "9 tokens"),
    "view=Shapes&of=gpt2&length=100&batch=2": ({"tensor": "decoder.attn.weights"}, "100 tokens × 2 texts"),
    "view=Shapes&of=GPT-2+small&length=100&tensor=decoder.attn.scores": (
        {"tensor": "decoder.attn.scores"},
        "GPT-2 small",
    ),
    "view=Shapes&of=lesson-encoder&length=128&as=table": ({"as": "table"}, "128 tokens"),
}

# link -> a number or name that the sentence above the chart says
PLANNED = {
    "view=Memory&plan_model=A+textbook+encoder": "932.6 MiB",
    "view=Memory&plan_model=GPT-2+medium&plan_batch=4&plan_source=1024": "19.6 GiB",
    "view=Memory&memory_part=KV+cache&plan_model=gpt2-xl&plan_phase=run": "600.0 KiB",
    "view=Memory&memory_part=Longer+texts&plan_model=lesson-encoder&plan_attention=flash&plan_dtype=bfloat16": "728.7 MiB",
    "view=Compute&compute_part=Roofline&compute_step=one+token": "A100 80 GB",
    "view=Compute&compute_part=Known+models": "25 known models",
    "view=Training": "step 467",
    "view=Training&training_part=Where+the+norm+stands&training_measure=loss": "Post-LN",
}


# without a browser


def test_there_are_more_than_thirty() -> None:
    assert len({*EXPLORE, *SHAPES, *PLANNED}) > 30


def opened(link: str) -> AppTest:
    app = script.follow(dict(parse_qsl(link)))
    unknown = {"model=Nobody", "view=Nowhere"} & {*link.split("&")}
    assert script.said(app).count("This link asks for") == len(unknown)
    return app


def selects(app: AppTest, component: str, link: str, shown: Mapping[str, str]) -> None:
    """The selection has every value of the link, and every expected one."""
    found = script.selection(app, component)
    asked = dict(parse_qsl(link))
    named = {name: text for name, text in shown.items() if name not in ("query", "hide")}
    wanted = {name: text for name, text in (named | asked).items() if name in found}
    assert {name: found[name] for name in wanted} == wanted


@pytest.mark.thorough(but=6)
@pytest.mark.parametrize("link", EXPLORE)
def test_explore_opens_with_the_selection_of_the_link(link: str) -> None:
    shown, sentences = EXPLORE[link]
    app = opened(link)
    selects(app, "explore_stage", link, shown)
    tokens = script.message(app, "explore_stage")["tokens"]["source"]
    assert str(len(tokens)) == shown.get("tokens", str(len(tokens)))
    assert not sentences or [area.value for area in app.text_area] == sentences


@pytest.mark.parametrize("link", SHAPES)
def test_shapes_opens_with_the_selection_of_the_link(link: str) -> None:
    shown, title = SHAPES[link]
    app = opened(link)
    selects(app, "shapes_stage", link, {name: text for name, text in shown.items() if f"{name}=" in link})
    header = script.message(app, "shapes_stage")
    lengths = f"{header['lengths'][0]} tokens"
    assert title in (header["title"].split(" · ")[0], lengths, f"{lengths} × {header['batch']} texts")


@pytest.mark.thorough(but=3)
@pytest.mark.parametrize("link", PLANNED)
def test_memory_compute_and_training_say_the_numbers_of_the_link(link: str) -> None:
    assert PLANNED[link] in script.headline(opened(link))


# in a browser


@pytest.fixture(scope="module")
def visitor(browser: Browser, address: str) -> Iterator[Screen]:
    """One visitor who follows link after link; each is a visit of its own, since it loads the page."""
    context = browser.new_context(viewport={"width": 1280, "height": 720}, reduced_motion="reduce")
    screen = Screen(context.new_page(), address)
    yield screen
    assert (screen.foreign, screen.errors, screen.dialogs) == ([], [], [])
    context.close()


def boxes(screen: Screen) -> list[str]:
    """What stands in the boxes of the sentence and the target that can be seen."""
    return screen.page.locator(".st-key-request textarea").evaluate_all(
        "all => all.filter(box => box.checkVisibility({ visibilityProperty: true })).map(box => box.value)"
    )


def assert_boxes(screen: Screen, sentences: list[str]) -> None:
    assert boxes(screen) == sentences


@pytest.mark.thorough
@pytest.mark.parametrize("link", EXPLORE)
def test_explore(visitor: Screen, link: str) -> None:
    shown, sentences = EXPLORE[link]
    visitor.open(f"?{link}")
    visitor.wait(**shown)
    # Streamlit fills its boxes in a frame of their own, which may be after that of the picture.
    eventually(visitor.page, lambda: assert_boxes(visitor, sentences))


@pytest.mark.thorough
@pytest.mark.parametrize("link", SHAPES)
def test_shapes(visitor: Screen, link: str) -> None:
    shown, title = SHAPES[link]
    visitor.page.goto(f"{visitor.address}/?{link}")
    attributes = "".join(f'[data-{name}="{value}"]' for name, value in shown.items())
    diagram = visitor.page.locator(f".hl.shapes{attributes}")
    diagram.wait_for()
    expect(diagram).to_contain_text(title, timeout=PATIENCE)


@pytest.mark.thorough
@pytest.mark.parametrize("link", PLANNED)
def test_sizes_and_training(visitor: Screen, link: str) -> None:
    visitor.page.goto(f"{visitor.address}/?{link}")
    expect(visitor.page.locator(".hl.planner h2")).to_contain_text(PLANNED[link], timeout=PATIENCE)
