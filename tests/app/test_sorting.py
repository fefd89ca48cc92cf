"""What if of a classifier: its classes are the answer on the screen and in the routes, and their names are data."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlencode

import pytest
import torch
from playwright.sync_api import Browser, expect
from safetensors.torch import load_file, save_file
from starlette.applications import Starlette
from starlette.testclient import TestClient

import core
from app.session import models
from app.shell import routes
from core import checkpoints
from tests.app.browsing import Screen, serving
from tests.app.test_accessibility import findings
from tests.app.test_whatif import facts, leave, settled, side, swept

TEXT = "The old man was alone in his boat"
LONG = "<img src=x onerror=alert(1)> " + "and a name that is as long as some people make them " * 3
MOODS = ("calm", "glad", LONG, "sad")  # the third is the likeliest of this text


def classifier(folder: Path, names: tuple[str, ...], **stated: object) -> Path:
    """MiniLM with a head of these classes, whose weights are drawn."""
    there = checkpoints.locate(checkpoints.find("minilm"), None)[1]
    folder.mkdir()
    config = json.loads((there / "config.json").read_text())
    config |= {"architectures": ["BertForSequenceClassification"], "id2label": dict(enumerate(names))} | stated
    (folder / "config.json").write_text(json.dumps(config))
    shutil.copy(there / "tokenizer.json", folder)
    tensors = load_file(there / "model.safetensors")
    drawn = torch.Generator().manual_seed(3)
    width = config["hidden_size"]
    tensors["classifier.weight"] = torch.randn(len(names), width, generator=drawn) * 0.4
    tensors["classifier.bias"] = torch.zeros(len(names))
    tensors["pooler.dense.weight"] = torch.randn(width, width, generator=drawn) * 0.05
    tensors["pooler.dense.bias"] = torch.zeros(width)
    save_file(tensors, folder / "model.safetensors", {"format": "pt"})
    return folder


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    place = tmp_path_factory.mktemp("classifiers")
    return {
        "moods": classifier(place / "moods", MOODS),
        "topics": classifier(place / "topics", ("sport", "law"), problem_type="multi_label_classification"),
        "tones": classifier(place / "tones", ("up", "down")),
        "stars": classifier(place / "stars", ("stars",)),
    }


@pytest.fixture
def client(folders: dict[str, Path], monkeypatch: pytest.MonkeyPatch) -> Iterator[TestClient]:
    for name, spec in models.read(",".join(map(str, folders.values())), ()).items():
        monkeypatch.setitem(models.MODELS, name, spec)
    facts.cache_clear()
    with TestClient(Starlette(routes=routes.ROUTES), raise_server_exceptions=True) as client:
        yield client


def test_a_sweep_and_its_pick_have_the_classes(client: TestClient, folders: dict[str, Path]) -> None:
    run = core.trace(core.load(folders["moods"]), TEXT)
    chances = run.classes().probabilities
    assert chances is not None
    here = facts("moods", TEXT)
    parts, about = swept(client, here)
    (answer,) = parts[0]["watched"]
    assert parts[0]["labels"][str(answer)] == run.classes().likeliest and "distance" not in parts[0]
    assert parts[0]["probability_before"][0] == pytest.approx(max(chances), abs=1e-6)
    assert "found.after.probability" in about["snippet"] and "before" in about["table"][2]
    found = side(client, here, sweep="heads", site="encoder", layer="5", head="7")
    edited = core.trace(run.loaded, TEXT, interventions=[core.Ablate("encoder", 5, 7)]).classes()
    assert edited.probabilities is not None
    assert {word[1]: (word[2], word[3]) for word in found["words"]} == {
        name: (pytest.approx(p, abs=1e-6), pytest.approx(q, abs=1e-6))
        for name, p, q in zip(MOODS, chances, edited.probabilities, strict=True)
    }
    assert found["likeliest"][1][1] == edited.likeliest and found["distance"] is None


def test_with_other_changes_the_answer_is_still_that_of_the_run_above(client: TestClient) -> None:
    here = facts("moods", TEXT)
    (plain,), edits = {tuple(part["watched"]) for part in swept(client, here)[0]}, "temperature_4"
    changed = side(client, here, edits=edits, pick="off")
    assert changed["likeliest"][1][0] != plain[0]  # or the test could not fail
    parts, _ = swept(client, here, edits=edits)
    assert {tuple(part["watched"]) for part in parts} == {plain}


def test_of_two_classifiers_with_other_classes_no_probability_is_held_against_another(client: TestClient) -> None:
    found = side(client, facts("tones", TEXT), other="moods", pick="off")
    assert not found["shared"] and found["kl"] is None
    assert [word[1] for word in found["words"] if word[3] is None] in (["up", "down"], ["down", "up"])
    assert {word[1] for word in found["words"] if word[2] is None} == {*MOODS}
    # One sorts into one class, the other gives each a probability of its own: vectors are all that they have in common.
    other = side(client, facts("topics", TEXT), other="moods", pick="off")
    assert other["words"] == [] and other["distance"] == pytest.approx(0, abs=1e-6)


def test_a_regression_gives_its_number(client: TestClient, folders: dict[str, Path]) -> None:
    run = core.trace(core.load(folders["stars"]), TEXT)
    found = side(client, facts("stars", TEXT), sweep="heads", site="encoder", layer="5", head="2")
    ((_, label, before, after),) = found["words"]
    assert (label, before) == ("stars", pytest.approx(run.classes().logits[0], abs=1e-5)) and after != before
    assert found["distance"] > 0 and "distance" in swept(client, facts("stars", TEXT))[0][0]


@pytest.fixture(scope="module")
def sorting(folders: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a server that offers them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HEADLIGHT_MODELS", ",".join(map(str, folders.values())))
        with serving("app/main.py", tmp_path_factory.mktemp("sorting") / "log") as address:
            yield address


@pytest.mark.parametrize("size", [(1280, 720), (390, 844)])
def test_the_classes_are_on_the_screen(
    browser: Browser, sorting: str, folders: dict[str, Path], size: tuple[int, int]
) -> None:
    context = browser.new_context(viewport={"width": size[0], "height": size[1]}, reduced_motion="reduce")
    screen = Screen(context.new_page(), sorting)
    said = {"view": "whatif", "model": "moods", "text": TEXT}
    screen.page.goto(f"{sorting}/?{urlencode(said)}")
    settled(screen.page, rows="72")
    found = core.trace(core.load(folders["moods"]), TEXT).classes()
    root = screen.page.locator(".hl.whatif")
    expect(root.locator(".over")).to_have_text("What the model decides 4 classes, one of them is right")
    expect(root.locator(".bars .bar")).to_have_count(4)
    assert found.probabilities is not None and found.likeliest is not None
    assert found.likeliest == LONG
    expect(root.locator(".says b").first).to_have_text(LONG.strip())
    for name in MOODS:
        expect(root.locator(".bars .label").get_by_text(name.strip(), exact=True)).to_have_count(1)
    assert root.locator("img").count() == 0  # a name is data
    assert screen.page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert findings(screen) == []
    leave(screen)


def test_a_regression_is_a_number_on_the_screen(browser: Browser, sorting: str, folders: dict[str, Path]) -> None:
    screen = Screen(browser.new_page(), sorting)
    screen.page.goto(f"{sorting}/?{urlencode({'view': 'whatif', 'model': 'stars', 'text': TEXT})}")
    settled(screen.page, rows="72")
    number = core.trace(core.load(folders["stars"]), TEXT).classes().logits[0]
    expect(screen.page.locator(".hl.whatif .says").first).to_have_text(f"stars {number:.3f}".replace("-", "−"))
    expect(screen.page.locator(".hl.whatif .fact")).to_contain_text(f"stars goes from {number:.3f}".replace("-", "−"))
    screen.page.close()
