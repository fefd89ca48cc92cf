"""The page of a mixture of experts: its numbers are core's, its links and files, a phone, and models that have none."""

from __future__ import annotations

import csv
from collections.abc import Callable
from functools import cache
from pathlib import Path
from urllib.parse import parse_qs, urlencode, urlsplit

import numpy as np
import pytest
from playwright.sync_api import Locator, expect

import core
from app.rooms.step import message
from app.rooms.step.params import pages_of
from app.rooms.step.steps import Step, steps_of
from app.session import models
from app.transport import messages
from core.read.layer_walk import routing, terms, walk
from tests.app.axe import faults
from tests.app.mixtures import mixture, unwalked_mixture
from tests.app.plain import Plain
from tests.app.served import ask, serve

TEXT = "The wolf knocked at the door and said"
LONG = "The wolf knocked at the door and said, open the door. " * 70


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    place = tmp_path_factory.mktemp("mixtures")
    return {
        "few-experts": mixture(place / "few-experts", 8, 2, 4),
        "many-experts": mixture(place / "many-experts", 128, 8, 6),
        "full-experts": unwalked_mixture(place / "full-experts"),
    }


@pytest.fixture(scope="module")
def run_of(folders: dict[str, Path]) -> Callable[[str, str], core.Trace]:
    return cache(lambda model, text: core.trace(core.load(folders[model]), text))


@pytest.fixture
def brought(folders: dict[str, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    """They are among the models that a visitor may choose."""
    for name, spec in models.read(",".join(map(str, folders.values())), []).items():
        monkeypatch.setitem(models.MODELS, name, spec)
        monkeypatch.setitem(models.TITLES, name, spec.title)


@pytest.mark.thorough
@pytest.mark.parametrize(("model", "text"), [("few-experts", TEXT), ("many-experts", LONG)])
def test_they_travel_as_core_has_them(run_of: Callable[[str, str], core.Trace], model: str, text: str) -> None:
    run = run_of(model, text)
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
        assert np.array_equal(np.frombuffer(body, kind, int(np.prod(shape)), at).reshape(shape), expected), name
    assert "experts" in pages_of(facts)


def test_a_model_without_experts_has_no_such_page() -> None:
    service, facts = serve(core.trace(core.load("minilm"), TEXT))
    assert "experts" not in pages_of(facts) and message.outline(facts)["experts"] == {}
    with pytest.raises(core.errors.TextError, match="one MLP in each layer"):
        ask(service.experts(facts.key, "encoder"))


def opened(plain: Plain, **said: str) -> Locator:
    plain.open(f"?{urlencode({'view': 'step', 'page': 'experts', **said})}")
    if "page" not in said:
        expect(plain.root).to_have_attribute("data-experts", "8" if said["model"] == "few-experts" else "128")
    return plain.root


def test_the_experts_of_a_token_are_on_the_screen(
    plain: Plain, brought: None, run_of: Callable[[str, str], core.Trace]
) -> None:
    found = routing(run_of("few-experts", TEXT))
    root = opened(plain, model="few-experts", text=TEXT, layer="2", query="3", show="table")
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


def test_the_walk_goes_through_the_experts(
    plain: Plain, brought: None, run_of: Callable[[str, str], core.Trace]
) -> None:
    run = run_of("few-experts", TEXT)
    found = walk(run, "decoder", 2, 3)
    service, facts = serve(run)
    sent = ask(service.walk(facts.key, "decoder", 2, 3))
    assert list(sent.chosen) == list(found.chosen) == routing(run).chosen[routing(run).layers.index(2), 3].tolist()
    for layer, names in ((1, {"gate", "up", "act", "down"}), (2, {"router", "mix"})):
        values = ask(service.walk(facts.key, "decoder", layer, 3)).values
        steps = [step for step in steps_of(facts, "decoder", layer) if isinstance(step, Step)]
        assert names <= {step.id for step in steps}
        assert all(step.value in values for step in steps if step.value.startswith(("attn.", "mlp.")))
    root = opened(plain, model="few-experts", text=TEXT, layer="2", query="3", at="mix", page="run")
    numbers = terms(found, "mlp.out", int(found.values["mlp.out"].abs().argmax()))
    shown = root.locator(".from .t")
    expect(shown.first).to_contain_text(f"{numbers.value:.3f}".replace("-", "−"))
    expect(shown.nth(1)).to_contain_text(f"expert {found.chosen[0]} · {found.values['mlp.taken'][0]:.3f}")
    plain.page.locator(".station[data-step=router]").click()
    expect(root.locator(".big")).to_contain_text(f"takes 2 of them: {found.chosen[0]}, {found.chosen[1]}")
    expect(root.locator(".from .note")).to_contain_text(f"Expert {found.chosen[0]} was taken")


def test_arrows_a_click_and_the_box_choose_and_the_link_says_so(
    plain: Plain, brought: None, run_of: Callable[[str, str], core.Trace]
) -> None:
    found = routing(run_of("few-experts", TEXT))
    root = opened(plain, model="few-experts", text=TEXT, layer="0", query="3")
    root.locator(".pic").focus()
    plain.page.keyboard.press("ArrowDown")  # past the layer that has one MLP
    expect(root).to_have_attribute("data-layer", "2")
    plain.page.keyboard.press("ArrowRight")
    expect(root).to_have_attribute("data-query", "4")
    root.get_by_label("layer", exact=True).select_option("3")
    expect(root).to_have_attribute("data-layer", "3")
    expert = int(found.chosen[found.layers.index(3), 4, 0])
    expect(root.locator(".from .t").first).to_have_text(
        f"expert {expert}{found.weights[found.layers.index(3), 4, 0]:.3f}\u00a0"
    )
    root.locator(".toks .tok").nth(2).click()
    plain.page.wait_for_url("**query=2*")
    asked = parse_qs(urlsplit(plain.page.url).query)
    assert (asked["page"], asked["layer"], asked["query"]) == (["experts"], ["3"], ["2"])


@pytest.mark.thorough
@pytest.mark.parametrize("size", [(1280, 720), pytest.param((390, 844), marks=pytest.mark.thorough)])
def test_many_experts_of_a_long_text_have_their_place(
    plain: Plain, brought: None, run_of: Callable[[str, str], core.Trace], size: tuple[int, int]
) -> None:
    plain.page.set_viewport_size({"width": size[0], "height": size[1]})
    root = opened(plain, model="many-experts", text=LONG, layer="4", query="700")
    expect(root.locator(".expertmap")).to_have_count(3)
    expect(root.locator(".expertmap canvas")).to_have_count(1)  # of 20 tokens by 128 experts; two have fewer cells
    assert plain.page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    found = routing(run_of("many-experts", LONG))
    expert = int(found.chosen[found.layers.index(4), 700, 0])
    expect(root.locator(".from .t").first).to_contain_text(f"expert {expert}")


def test_the_load_of_every_layer_is_a_file(
    plain: Plain, brought: None, run_of: Callable[[str, str], core.Trace], tmp_path: Path
) -> None:
    found = routing(run_of("few-experts", TEXT))
    root = opened(plain, model="few-experts", text=TEXT, layer="0", query="3")
    root.get_by_role("button", name="Export").click()
    with plain.page.expect_download() as saved:
        plain.page.get_by_role("button", name="Load of every expert").first.click()
    path = tmp_path / "load.csv"
    saved.value.save_as(path)
    lines = [line for line in path.read_text("utf-8-sig").splitlines() if line and not line.startswith("#")]
    rows = list(csv.DictReader(lines))
    assert len(rows) == len(found.layers) * 8
    assert [float(row["load"]) for row in rows] == pytest.approx(found.load.flatten().tolist(), abs=1e-6)


def test_a_layer_without_a_walk_names_the_page(plain: Plain, brought: None) -> None:
    root = opened(plain, model="full-experts", text=TEXT, page="run")
    expect(root.locator(".big")).to_contain_text("is on the page “Experts”")
    root.get_by_role("button", name="Experts", exact=True).click()
    expect(root).to_have_attribute("data-experts", "4")


AXE = [
    {"layer": "2", "query": "3", "show": "table"},
    pytest.param({"layer": "0", "query": "3"}, marks=pytest.mark.thorough),
    pytest.param({"layer": "2", "query": "3", "at": "mix", "page": "run"}, marks=pytest.mark.thorough),
]


@pytest.mark.parametrize("said", AXE)
def test_axe_finds_nothing(plain: Plain, brought: None, said: dict[str, str]) -> None:
    opened(plain, model="few-experts", text=TEXT, **said)
    assert faults(plain.page) == []
