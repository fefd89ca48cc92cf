"""The page of a mixture of experts: its numbers are core's, its links and files, a phone, and models that have none."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import parse_qs, urlencode, urlsplit

import numpy as np
import pytest
from playwright.sync_api import Browser, Locator, expect

import core
from app.rooms.step import message
from app.rooms.step.params import pages_of
from app.rooms.step.steps import Step, steps_of
from app.transport import messages
from core.read.experts import routing
from core.read.layer_walk import terms, walk
from tests.app.browsing import Screen, serving
from tests.app.mixtures import mixture, unwalked_mixture
from tests.app.served import ask, serve
from tests.app.test_accessibility import findings

TEXT = "The wolf knocked at the door and said"
LONG = "The wolf knocked at the door and said, open the door. " * 70


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    place = tmp_path_factory.mktemp("mixtures")
    return {
        "few": mixture(place / "few", 8, 2, 4),
        "many": mixture(place / "many", 128, 8, 6),
        "full": unwalked_mixture(place / "full"),
    }


@pytest.fixture(scope="module")
def brought(folders: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a server that offers them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HEADLIGHT_MODELS", ",".join(map(str, folders.values())))
        with serving("app/main.py", tmp_path_factory.mktemp("experts") / "log") as address:
            yield address


@pytest.mark.parametrize(("model", "text"), [("few", TEXT), ("many", LONG)])
def test_they_travel_as_core_has_them(folders: dict[str, Path], model: str, text: str) -> None:
    run = core.trace(core.load(folders[model]), text)
    service, facts = serve(run)
    found = routing(run)
    header, body = messages.unpack(message.experts(ask(service.experts(facts.key, "decoder"))))
    outline = message.outline(facts)
    assert header["layers"] == list(found.layers) == outline["experts"]["decoder"]
    assert 1 not in header["layers"]  # whose MLP is one for all tokens
    for name, kind, expected in (
        ("weights", "<f4", found.weights),
        ("chosen", "<u2", found.chosen),
        ("load", "<f4", found.load),
    ):
        at, shape, _ = header["arrays"][name]
        assert np.array_equal(np.frombuffer(body, kind, int(np.prod(shape)), at).reshape(shape), expected.numpy()), name
    assert "experts" in pages_of(facts)


def test_a_model_without_experts_has_no_such_page() -> None:
    service, facts = serve(core.trace(core.load("minilm"), TEXT))
    assert "experts" not in pages_of(facts) and message.outline(facts)["experts"] == {}
    with pytest.raises(core.TextError, match="one MLP in each layer"):
        ask(service.experts(facts.key, "encoder"))


def opened(browser: Browser, address: str, size: tuple[int, int] = (1280, 720), **said: str) -> tuple[Screen, Locator]:
    context = browser.new_context(
        viewport={"width": size[0], "height": size[1]}, reduced_motion="reduce", accept_downloads=True
    )
    screen = Screen(context.new_page(), address)
    screen.page.goto(f"{address}/?{urlencode({'view': 'step', 'page': 'experts', **said})}")
    root = screen.page.locator(".hl.step")
    if "page" not in said:
        expect(root).to_have_attribute("data-experts", "8" if said["model"] == "few" else "128")
    screen.page.locator('[data-testid="stApp"][data-test-script-state="notRunning"]').wait_for()
    return screen, root


def left(screen: Screen) -> None:
    screen.leave()
    screen.page.context.close()


def test_the_experts_of_a_token_are_on_the_screen(browser: Browser, brought: str, folders: dict[str, Path]) -> None:
    found = routing(core.trace(core.load(folders["few"]), TEXT))
    screen, root = opened(browser, brought, model="few", text=TEXT, layer="2", query="3", show="table")
    at = found.layers.index(2)
    rows = root.locator("table.numbers").first.locator("tbody tr")
    expect(rows).to_have_count(len(found.tokens))
    for pos, row in enumerate(rows.all_inner_texts()):
        one, first, two, second = row.split("\t")[1:]
        assert [int(one), int(two)] == found.chosen[at, pos].tolist()
        assert [float(first), float(second)] == pytest.approx(found.weights[at, pos].tolist(), abs=6e-5)
    loads = root.locator("table.numbers").nth(1).locator("tbody tr").all_inner_texts()
    assert [float(row.split("\t")[1]) for row in loads] == pytest.approx(found.load[at].tolist(), abs=6e-5)
    (first, second), (a, b) = found.chosen[at, 3].tolist(), found.weights[at, 3].tolist()
    expect(root.locator(".big")).to_contain_text(f"expert {first} ({a:.2f}) and expert {second} ({b:.2f})")
    assert findings(screen) == []
    left(screen)


def test_the_walk_goes_through_the_experts(browser: Browser, brought: str, folders: dict[str, Path]) -> None:
    run = core.trace(core.load(folders["few"]), TEXT)
    found = walk(run, "decoder", 2, 3)
    service, facts = serve(run)
    sent = ask(service.walk(facts.key, "decoder", 2, 3))
    assert list(sent.chosen) == list(found.chosen) == routing(run).chosen[routing(run).layers.index(2), 3].tolist()
    for layer, names in ((1, {"gate", "up", "act", "down"}), (2, {"router", "mix"})):
        values = ask(service.walk(facts.key, "decoder", layer, 3)).values
        steps = [step for step in steps_of(facts, "decoder", layer) if isinstance(step, Step)]
        assert names <= {step.id for step in steps}
        assert all(step.value in values for step in steps if step.value.startswith(("attn.", "mlp.")))
    screen, root = opened(browser, brought, model="few", text=TEXT, layer="2", query="3", at="mix", page="run")
    numbers = terms(found, "mlp.out", int(found.values["mlp.out"].abs().argmax()))
    shown = root.locator(".from .t")
    expect(shown.first).to_contain_text(f"{numbers.value:.3f}".replace("-", "−"))
    expect(shown.nth(1)).to_contain_text(f"expert {found.chosen[0]} · {found.values['mlp.taken'][0]:.3f}")
    screen.page.locator(".rail [data-step=router]").click()
    expect(root.locator(".big")).to_contain_text(f"takes 2 of them: {found.chosen[0]}, {found.chosen[1]}")
    expect(root.locator(".from .note")).to_contain_text(f"Expert {found.chosen[0]} was taken")
    assert findings(screen) == []
    left(screen)


def test_arrows_a_click_and_the_box_choose_and_the_link_says_so(
    browser: Browser, brought: str, folders: dict[str, Path]
) -> None:
    found = routing(core.trace(core.load(folders["few"]), TEXT))
    screen, root = opened(browser, brought, model="few", text=TEXT, layer="0", query="3")
    assert findings(screen) == []
    root.locator(".pic").focus()
    screen.page.keyboard.press("ArrowDown")  # past the layer that has one MLP
    expect(root).to_have_attribute("data-layer", "2")
    screen.page.keyboard.press("ArrowRight")
    expect(root).to_have_attribute("data-query", "4")
    root.get_by_label("layer", exact=True).select_option("3")
    expect(root).to_have_attribute("data-layer", "3")
    expert = int(found.chosen[found.layers.index(3), 4, 0])
    expect(root.locator(".from .t").first).to_have_text(
        f"expert {expert}{found.weights[found.layers.index(3), 4, 0]:.3f}\u00a0"
    )
    root.locator(".toks .tok").nth(2).click()
    screen.page.wait_for_url("**query=2*")
    asked = parse_qs(urlsplit(screen.page.url).query)
    assert (asked["page"], asked["layer"], asked["query"]) == (["experts"], ["3"], ["2"])
    left(screen)


@pytest.mark.parametrize("size", [(1280, 720), (390, 844)])
def test_many_experts_of_a_long_text_have_their_place(
    browser: Browser, brought: str, folders: dict[str, Path], size: tuple[int, int]
) -> None:
    screen, root = opened(browser, brought, size, model="many", text=LONG, layer="4", query="700")
    expect(root.locator(".expertmap")).to_have_count(3)
    expect(root.locator(".expertmap canvas")).to_have_count(1)  # of 20 tokens by 128 experts; two have fewer cells
    assert screen.page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    found = routing(core.trace(core.load(folders["many"]), LONG))
    expert = int(found.chosen[found.layers.index(4), 700, 0])
    expect(root.locator(".from .t").first).to_contain_text(f"expert {expert}")
    left(screen)


def test_the_load_of_every_layer_is_a_file(
    browser: Browser, brought: str, folders: dict[str, Path], tmp_path: Path
) -> None:
    found = routing(core.trace(core.load(folders["few"]), TEXT))
    screen, root = opened(browser, brought, model="few", text=TEXT, layer="0", query="3")
    root.get_by_role("button", name="Export").click()
    with screen.page.expect_download() as saved:
        screen.page.get_by_role("button", name="Load of every expert").first.click()
    path = tmp_path / "load.csv"
    saved.value.save_as(path)
    lines = [line for line in path.read_text("utf-8-sig").splitlines() if line and not line.startswith("#")]
    rows = list(csv.DictReader(lines))
    assert len(rows) == len(found.layers) * 8
    assert [float(row["load"]) for row in rows] == pytest.approx(found.load.flatten().tolist(), abs=1e-6)
    left(screen)


def test_a_layer_without_a_walk_names_the_page(browser: Browser, brought: str) -> None:
    context = browser.new_context(viewport={"width": 1280, "height": 720}, reduced_motion="reduce")
    page = context.new_page()
    page.goto(f"{brought}/?{urlencode({'view': 'step', 'model': 'full', 'text': TEXT})}")
    expect(page.locator(".hl.step .big")).to_contain_text("is on the page “Experts”")
    page.get_by_role("button", name="Experts", exact=True).click()
    expect(page.locator(".hl.step")).to_have_attribute("data-experts", "4")
    context.close()
