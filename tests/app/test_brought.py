"""Models that a person brings, on the screen: the classes of a classifier, an adapter beside its base, the steps of a training."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import parse_qsl, urlencode, urlsplit

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
from core.errors import CheckpointError, TextError
from core.read.comparison import answer_change
from tests.app.browsing import Screen, degrees, serving
from tests.app.test_accessibility import findings
from tests.app.test_whatif import facts, settled, side, swept

TEXT = "The old man was alone in his boat"
LONG = "<img src=x onerror=alert(1)> " + "and a name that is as long as some people make them " * 3
MOODS = ("calm", "glad", LONG, "sad")  # the third is the likeliest of this text


def plain(folder: Path, change: float = 0.0) -> Path:
    """MiniLM, whose queries are moved by so much."""
    there = checkpoints.locate(checkpoints.find("minilm"), None)[1]
    folder.mkdir(parents=True)
    for name in ("config.json", "tokenizer.json"):
        shutil.copy(there / name, folder)
    tensors = load_file(there / "model.safetensors")
    moved = {name: tensor * (1 + change) for name, tensor in tensors.items() if "self.query.weight" in name}
    save_file(tensors | moved, folder / "model.safetensors", {"format": "pt"})
    return folder


def adapter(folder: Path, base: str) -> Path:
    """A LoRA of the first layer's queries."""
    folder.mkdir()
    said = {"peft_type": "LORA", "base_model_name_or_path": f"someone/{base}", "r": 2, "lora_alpha": 8}
    (folder / "adapter_config.json").write_text(json.dumps(said))
    drawn, name = torch.Generator().manual_seed(5), "base_model.model.encoder.layer.0.attention.self.query"
    parts = {"lora_A": torch.randn(2, 384, generator=drawn), "lora_B": torch.randn(384, 2, generator=drawn) * 0.1}
    save_file(
        {f"{name}.{part}.weight": numbers for part, numbers in parts.items()}, folder / "adapter_model.safetensors"
    )
    return folder


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
    place = tmp_path_factory.mktemp("brought")
    plain(place / "base")
    for step, change in ((500, 0.5), (1000, 1.0), (1500, 2.0)):
        plain(place / "run" / f"checkpoint-{step}", change)
        state = {"log_history": [{"step": at, "loss": 1000 / at} for at in range(250, step + 1, 250)]}
        (place / "run" / f"checkpoint-{step}" / "trainer_state.json").write_text(json.dumps(state))
    (place / "run" / "checkpoint-2000").mkdir()  # begun, and nothing written yet
    (plain(place / "bare") / "tokenizer.json").unlink()
    return {
        "bare": place / "bare",
        "run": place / "run",
        "tuned": adapter(place / "tuned", "base"),
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
    edited = core.trace(run.loaded, TEXT, interventions=[core.edits.Ablate("encoder", 5, 7)]).classes()
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


# adapters and trainings


def test_the_base_of_an_adapter_is_offered_with_it(folders: dict[str, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    alone = models.read(str(folders["tuned"]), ())
    more, bases = models.bases_of(alone)
    assert bases == {"tuned": "base"} and more["base"].location == str(folders["tuned"].parent / "base")
    # It is offered once where the operator names it too, and under another name where a model is called like it.
    both = models.read(f"{folders['tuned']},{folders['tuned'].parent / 'base'}", ())
    assert models.bases_of(both) == ({}, {"tuned": "base"})
    taken = alone | {"base": checkpoints.ModelSpec(id="base", title="base", source="shipped", location="copy")}
    more, bases = models.bases_of(taken)
    assert bases == {"tuned": "tuned without its adapter"} and [*more] == ["tuned without its adapter"]
    assert models.bases_of(models.read(str(folders["moods"]), ())) == ({}, {})


def test_an_adapter_whose_base_is_not_here_has_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    assert checkpoints.base_of(checkpoints.find(adapter(tmp_path / "lost", "nowhere"))) is None
    (tmp_path / "lost" / "adapter_config.json").write_text("{")
    assert checkpoints.base_of(checkpoints.find(tmp_path / "lost")) is None


def test_checkpoints_of_a_trainer_are_steps_in_the_order_of_their_numbers(
    folders: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = models.read(str(folders["run"]), ())
    assert [point for point, _ in found["run"].points] == ["500", "1000", "1500"]  # and not 1000 first
    monkeypatch.setattr(models, "MODELS", found)
    for id, step in (("run@500", 500), ("run@1000", 1000), ("run", 1500)):
        loaded, alone = models.load(id), core.load(folders["run"] / f"checkpoint-{step}")
        mine, theirs = (each.model.get_parameter("encoder.blocks.2.attn.q.weight") for each in (loaded, alone))
        assert torch.equal(mine, theirs)
    assert models.load("run@500").spec.title == "run at step 500"
    for wrong in ("run@2000", "run@7", "run@../base", "run@1500/.."):
        with pytest.raises(CheckpointError, match=r"has no point .* It has 500, 1000, 1500"):
            models.load(wrong)


def test_a_folder_that_is_a_model_itself_stays_one_beside_its_training(
    folders: dict[str, Path], tmp_path: Path
) -> None:
    """Which of its steps the model in the folder is, its files do not say: it may be the best one."""
    place = plain(tmp_path / "kept")
    shutil.copytree(folders["run"] / "checkpoint-500", place / "checkpoint-500")
    found = models.read(str(place), ())
    assert {name: len(spec.points) for name, spec in found.items()} == {"kept": 0, "kept in training": 1}
    assert found["kept"].location == str(place)


def test_which_models_read_numbers_alone(folders: dict[str, Path], tmp_path: Path) -> None:
    found = models.read(",".join(map(str, folders.values())), ())
    assert {name for name, spec in found.items() if models.reads_numbers(spec)} == {"bare"}
    with pytest.raises(TextError, match="Type token numbers"):
        core.load(folders["bare"]).tokens("a text")
    shutil.copytree(folders["bare"], tmp_path / "kept")
    lone = checkpoints.find(adapter(tmp_path / "added", "kept"))
    assert checkpoints.reads_numbers(lone)  # its text would be read by its base's tokenizer
    assert not checkpoints.reads_numbers(checkpoints.find(folders["tuned"]))
    (tmp_path / "kept" / "qwen.tiktoken").touch()
    assert not checkpoints.reads_numbers(lone)


@pytest.fixture(scope="module")
def brought(folders: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a server that offers them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HEADLIGHT_MODELS", ",".join(map(str, folders.values())))
        with serving("app/main.py", tmp_path_factory.mktemp("brought") / "log") as address:
            yield address


@pytest.mark.thorough
@pytest.mark.parametrize("size", [(1280, 720), (390, 844)])
def test_the_classes_are_on_the_screen(
    browser: Browser, brought: str, folders: dict[str, Path], size: tuple[int, int]
) -> None:
    context = browser.new_context(viewport={"width": size[0], "height": size[1]}, reduced_motion="reduce")
    screen = Screen(context.new_page(), brought)
    said = {"view": "whatif", "model": "moods", "text": TEXT}
    screen.page.goto(f"{brought}/?{urlencode(said)}")
    settled(screen.page, rows="72")
    found = core.trace(core.load(folders["moods"]), TEXT).classes()
    root = screen.page.locator(".hl.whatif")
    expect(root.locator(".over")).to_have_text("The class of this text 4 classes, one of them is right")
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


def leave(screen: Screen) -> None:
    """End a visit in which nothing failed, on a page that no other test gets."""
    screen.leave()
    screen.page.context.close()


def arrived(browser: Browser, address: str, **said: str) -> Screen:
    """A new visitor in What if, where the numbers of all heads are there."""
    screen = Screen(browser.new_context(reduced_motion="reduce").new_page(), address)
    screen.page.goto(f"{address}/?{urlencode({'view': 'whatif', **said})}")
    settled(screen.page, rows="72")
    return screen


@pytest.mark.thorough
def test_an_adapter_is_compared_with_its_base_by_one_button(
    browser: Browser, brought: str, folders: dict[str, Path]
) -> None:
    screen = arrived(browser, brought, model="tuned", text=TEXT)
    page = screen.page
    page.get_by_role("button", name="Compare with its base").click()
    page.wait_for_url("**model=base*")
    settled(page, pick="", rows="72")
    asked = dict(parse_qsl(urlsplit(page.url).query))
    assert (asked["view"], asked["model"], asked["other"], asked["pick"]) == ("whatif", "base", "tuned", "off")
    a, b = (core.trace(core.load(place), TEXT) for place in (folders["tuned"].parent / "base", folders["tuned"]))
    ranked = core.compare(a, b).most_different(3)
    names = [f"L{head.layer} H{head.head}" for head in ranked]
    expect(page.locator(".hl.whatif .middle h2")).to_have_text(f"{names[0]} looks elsewhere there")
    page.get_by_role("button", name="as tables").click()
    table = page.locator(".hl.whatif .tables table").filter(has_text="weight that moved")
    rows = table.locator("tbody tr")
    heads = rows.evaluate_all("rows => rows.slice(0, 3).map((row) => row.cells[0].textContent)")
    assert heads == names
    expect(rows.first).to_contain_text(f"{100 * ranked[0].moved:.1f}")
    distance = answer_change(a, b).distance
    assert distance is not None
    expect(page.locator(".hl.whatif .fact")).to_contain_text(f"turns by {degrees(distance):.1f}°")
    leave(screen)


@pytest.mark.thorough
def test_a_model_without_a_tokenizer_says_what_to_type(browser: Browser, brought: str) -> None:
    screen = arrived(browser, brought, model="bare")
    page = screen.page
    box = page.get_by_role("textbox", name="Token numbers")
    expect(box).to_have_value("5 17 3")
    expect(box).to_have_attribute("placeholder", "Token numbers, separated by spaces: 5 17 3")
    expect(
        page.get_by_text("This model has no tokenizer: the text is token numbers, separated by spaces.")
    ).to_be_visible()
    box.fill("9 8 7 6")
    box.press("Enter")
    expect(page.locator(".hl.whatif .lines .tokens").first.locator(".token")).to_have_count(4)
    leave(screen)


@pytest.mark.thorough
def test_steps_of_a_trainer_are_on_the_slider_and_beside_each_other(
    browser: Browser, brought: str, folders: dict[str, Path]
) -> None:
    screen = arrived(browser, brought, model="run", text=TEXT, step="500", other="run@1000", pick="off")
    page = screen.page
    settled(page, pick="", rows="72")
    said = "Step 500 of 1,500: the last loss that its Trainer wrote down is 2.000."
    expect(page.get_by_text(said)).to_be_visible()
    a, b = (core.trace(core.load(folders["run"] / f"checkpoint-{step}"), TEXT) for step in (500, 1000))
    distance = answer_change(a, b).distance
    assert distance is not None
    expect(page.locator(".hl.whatif .fact")).to_contain_text(f"turns by {degrees(distance):.1f}°")
    leave(screen)


def masked(folder: Path, key: int, query: int) -> core.Trace:
    """The run of TEXT in which one token may not look at another."""
    loaded = core.load(folder)
    edit = core.edits.EditMask("encoder", queries=query, keys=key)
    return core.trace(loaded, TEXT, interventions=[edit])


@pytest.mark.thorough
@pytest.mark.parametrize("model", ["moods", "topics"])
def test_masks_have_the_classes_before_and_after(
    browser: Browser, brought: str, folders: dict[str, Path], model: str
) -> None:
    screen = Screen(browser.new_page(), brought)
    said = {"view": "masks", "model": model, "text": TEXT, "forbid": "3-2"}
    screen.page.goto(f"{brought}/?{urlencode(said)}")
    root = screen.page.locator(".hl.masks[data-fresh]")
    before, after = core.trace(core.load(folders[model]), TEXT).classes(), masked(folders[model], 2, 3).classes()
    assert before.probabilities is not None and after.probabilities is not None
    place = before.logits.index(max(before.logits))
    names, (a, b) = before.names, (before.probabilities[place], after.probabilities[place])
    head = "The class of this text" if model == "moods" else "The classes of this text, each by itself"
    expect(root.locator("h3").get_by_text(head, exact=True)).to_be_visible()
    row = root.locator(".guesses > div").filter(has=screen.page.get_by_text(names[place].strip(), exact=True))
    said = percent(b) if percent(a) == percent(b) else f"{percent(a).removesuffix(' %')} → {percent(b)}"
    expect(row.locator("s")).to_have_text(said)
    expect(root.locator(".fact")).to_contain_text("The class ")
    assert root.locator("img").count() == 0  # a name is data
    assert findings(screen) == []
    screen.page.close()


def percent(p: float) -> str:
    """As the page writes it."""
    close = p < 0.0995 or 0.98 < p < 0.9995
    return f"{100 * p:.{1 if close else 0}f} %"


@pytest.mark.thorough
def test_masks_have_the_number_of_a_regression(browser: Browser, brought: str, folders: dict[str, Path]) -> None:
    screen = Screen(browser.new_page(), brought)
    screen.page.goto(f"{brought}/?{urlencode({'view': 'masks', 'model': 'stars', 'text': TEXT, 'forbid': '3-2'})}")
    before, after = core.trace(core.load(folders["stars"]), TEXT).classes(), masked(folders["stars"], 2, 3).classes()
    (a,), (b,) = before.logits, after.logits
    expect(screen.page.locator(".hl.masks .fact")).to_contain_text(
        f"stars goes from {a:.3f} to {b:.3f}".replace("-", "−")
    )
    screen.page.close()


@pytest.mark.thorough
@pytest.mark.parametrize("model", ["moods", "topics", "stars"])
def test_step_ends_in_the_classes(browser: Browser, brought: str, folders: dict[str, Path], model: str) -> None:
    screen = Screen(browser.new_page(), brought)
    said = {"view": "step", "model": model, "text": TEXT, "at": "end", "show": "table"}
    screen.page.goto(f"{brought}/?{urlencode(said)}")
    root = screen.page.locator(".hl.step")
    found = core.trace(core.load(folders[model]), TEXT).classes()
    values = found.logits if found.probabilities is None else found.probabilities
    rows = root.locator("table.numbers tbody tr")
    expect(rows).to_have_count(len(found.names))
    order = sorted(range(len(values)), key=lambda i: -values[i])
    cells = rows.evaluate_all("rows => rows.map((row) => [...row.cells].map((cell) => cell.textContent))")
    for at, (name, *numbers) in zip(order, cells, strict=True):
        assert " ".join(name.split()) == " ".join(found.names[at].split())
        mine = [found.logits[at], *([] if found.probabilities is None else [found.probabilities[at]])]
        assert [float(number.replace("−", "-")) for number in numbers] == pytest.approx(mine, abs=6e-5)
    expect(root.locator(".big .vo").first).to_have_text(found.names[order[0]].strip())
    assert root.locator("img").count() == 0
    root.get_by_role("button", name="Picture", exact=True).click()
    expect(root.locator(".rowhit")).to_have_count(len(found.names))
    assert findings(screen) == []
    screen.page.close()


@pytest.mark.thorough
def test_a_regression_is_a_number_on_the_screen(browser: Browser, brought: str, folders: dict[str, Path]) -> None:
    screen = Screen(browser.new_page(), brought)
    screen.page.goto(f"{brought}/?{urlencode({'view': 'whatif', 'model': 'stars', 'text': TEXT})}")
    settled(screen.page, rows="72")
    number = core.trace(core.load(folders["stars"]), TEXT).classes().logits[0]
    expect(screen.page.locator(".hl.whatif .says").first).to_have_text(f"stars {number:.3f}".replace("-", "−"))
    expect(screen.page.locator(".hl.whatif .fact")).to_contain_text(f"stars goes from {number:.3f}".replace("-", "−"))
    screen.page.close()
