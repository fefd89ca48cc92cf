"""The scripts that train what ships and measure it, a few steps of each from end to end."""

from __future__ import annotations

import gzip
import json
import random
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from core import load, trace
from core.errors import HeadlightError
from core.labs.masks import CARD, relearnt
from core.learn.tasks import TASKS
from core.learn.training import STATE
from scripts import cards, evaluate, shipping, train_leak, train_storyteller, train_tasks, train_translator
from scripts.alignment import captions, place
from scripts.corpora import books, pairs
from scripts.curves import read_curve
from scripts.ngram import kneser_ney, probabilities, unigram
from scripts.train_tasks import PLANS, main, run, save_points

WORDS = [
    "the",
    "little",
    "king",
    "said",
    "that",
    "his",
    "golden",
    "bird",
    "had",
    "flown",
    "over",
    "seven",
    "hills",
    "into",
    "a",
    "deep",
    "dark",
    "forest",
]


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Fewer problems in a batch, and the threads as they were."""
    monkeypatch.setattr(train_tasks, "BATCH", 4)
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Models and batches small enough for a test; everything else as it ships."""
    for script in (train_storyteller, train_translator):
        monkeypatch.setattr(script, "SHAPE", script.SHAPE | {"d_model": 32, "n_heads": 2, "d_ff": 64})
    monkeypatch.setattr(train_storyteller, "ROWS", 2)
    monkeypatch.setattr(train_storyteller, "DRILL_ROWS", 1)
    monkeypatch.setattr(train_translator, "PAIRS", 4)
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The two corpora in small: the names and the form of the real ones, and words drawn at random."""
    folder, rng = tmp_path_factory.mktemp("data"), random.Random(0)

    def sentence(n: int) -> str:
        return " ".join(rng.choices(WORDS, k=n)).capitalize() + "."

    lines = []
    for title in ("Snow White", "Rapunzel", *train_storyteller.HELD_OUT):
        lines += [f"# {title} (Project Gutenberg 1)", *(sentence(rng.randint(5, 40)) for _ in range(40))]
    write_gz(folder / "storybooks.txt.gz", lines)
    for split, n in (("train", 40), ("val", 4), ("test_2016_flickr", 4)):
        english = [sentence(rng.randint(3, 12)) for _ in range(n)]
        write_gz(folder / f"multi30k.{split}.en.gz", english)
        write_gz(folder / f"multi30k.{split}.de.gz", [" ".join(reversed(line.split())) for line in english])
    return folder


def write_gz(path: Path, lines: list[str]) -> None:
    path.write_bytes(gzip.compress("\n".join([*lines, ""]).encode()))


@pytest.mark.usefixtures("few")
@pytest.mark.parametrize("name", PLANS)
def test_a_few_steps_of_every_task_model(name: str, tmp_path: Path) -> None:
    assert main([name, "--steps", "3", "--out", str(tmp_path)]) == 0
    folder, plan = tmp_path / name, PLANS[name]
    loaded = load(folder)
    assert loaded.config == plan.config()
    assert loaded.spec.n_params <= 300_000
    assert (
        len(
            trace(loaded, "([=" if plan.task == "brackets" else "12+34=" if plan.task == "addition" else "ab").attention
        )
        > 0
    )
    assert [*read_curve(folder)] == [1, 2, 3]
    points = sorted(path.name for path in (folder / "steps").glob("*"))
    assert points == (["00000", "00001", "00002"] if plan.points else [])
    assert not (folder / "training").exists()
    facts = json.loads((folder / "recipe.json").read_text())
    assert facts["phases"][0]["steps"] == 3
    assert facts["seconds"] >= 0


@pytest.mark.usefixtures("few")
def test_a_stopped_run_ends_as_an_unbroken_one(tmp_path: Path) -> None:
    plan = PLANS["reverse"]
    whole = list(run(plan, tmp_path / "whole", steps=6, save_every=2))
    for done in run(plan, tmp_path / "parts", steps=6, save_every=2):
        if done.step == 4:
            break
    assert (tmp_path / "parts" / "reverse" / "training" / STATE).is_file()
    assert [done.step for done in run(plan, tmp_path / "parts", steps=6, save_every=2)] == [3, 4, 5, 6]
    assert len(whole) == 6
    files = {path.relative_to(tmp_path / "whole") for path in (tmp_path / "whole").rglob("*") if path.is_file()}
    assert {path.relative_to(tmp_path / "parts") for path in (tmp_path / "parts").rglob("*") if path.is_file()} == files
    for file in files:
        if file.suffix == ".safetensors":
            assert (tmp_path / "whole" / file).read_bytes() == (tmp_path / "parts" / file).read_bytes()
    one, other = (read_curve(tmp_path / way / "reverse") for way in ("whole", "parts"))
    assert [replace(done, seconds=0) for done in one.values()] == [replace(done, seconds=0) for done in other.values()]


def test_points_are_twelve_and_early() -> None:
    for plan in PLANS.values():
        points = save_points(plan.steps)
        assert len(points) == 12
        assert (points[0], points[-1]) == (0, plan.steps)
        assert sum(point <= plan.steps // 4 for point in points) >= 6
    assert save_points(1) == [0, 1]


def test_an_unknown_name_is_refused(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["cpoy", "--out", str(tmp_path)]) == 2
    assert "There is no task model 'cpoy'. Choose from copy, reverse" in capsys.readouterr().err
    assert main(["--list"]) == 0
    assert "copy-heads-16" in capsys.readouterr().out
    assert not list(tmp_path.iterdir())


@pytest.mark.usefixtures("few")
def test_a_task_model_is_measured_and_has_its_card(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sort", "--steps", "2", "--out", str(tmp_path)]) == 0
    assert evaluate.main(["sort", "--models", str(tmp_path), "--part", "5"]) == 0
    assert "whole answers exactly right, greedy" in capsys.readouterr().out
    assert not (tmp_path / "sort" / "card.md").exists()  # a slice is no card
    result = evaluate.measure("sort", tmp_path, tmp_path, part=5)
    card = cards.card("sort", tmp_path / "sort", result)
    assert f"{load(tmp_path / 'sort').spec.n_params:,} parameters" in card
    assert "2 steps of" in card
    assert all(str(row) in card for row in result.rows)
    shares = result.heads["looks at what comes next"]
    assert shares.shape == (2, 4)
    assert bool(((shares >= 0) & (shares <= 1)).all())


@pytest.mark.thorough
@pytest.mark.usefixtures("small")
def test_a_few_steps_of_the_storyteller(data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["--data", str(data), "--out", str(tmp_path), "--steps", "3"]
    assert shipping.main(train_storyteller.prepare, "", arguments) == 0
    folder = tmp_path / "storyteller"
    loaded = load(folder)
    assert loaded.config.kind == "decoder"
    assert trace(loaded, "The king").source.strings[0] == "<s>"
    assert [*read_curve(folder)] == [*range(1, 13)]  # four phases
    assert not (folder / "training").exists()

    whole = evaluate.measure("storyteller", tmp_path, data)
    value = {row.name: row.value for row in whole.rows}
    assert 1 < value["perplexity per token, 5-gram, Kneser–Ney"] < value["perplexity per token, unigram"]
    assert value["bits per byte"] > 0
    assert all(shares.min() >= 0 and shares.max() <= 1 for shares in whole.heads.values())
    card = cards.card("storyteller", folder, whole)
    assert "Project Gutenberg" in card
    assert all(str(row) in card for row in whole.rows)

    capsys.readouterr()
    assert shipping.main(train_storyteller.prepare, "", arguments) == 0
    assert "trained already" in capsys.readouterr().out


@pytest.mark.thorough
@pytest.mark.usefixtures("small")
def test_a_few_steps_of_the_translator(data: Path, tmp_path: Path) -> None:
    arguments = ["--data", str(data), "--out", str(tmp_path), "--steps", "3"]
    assert shipping.main(train_translator.prepare, "", arguments) == 0
    loaded = load(tmp_path / "translator")
    run_ = trace(loaded, "The king", target="king The")
    assert run_.target is not None
    assert (run_.source.strings[-1], run_.target.strings[0]) == ("</s>", "<s>")
    result = evaluate.measure("translator", tmp_path, data)
    names = [row.name for row in result.rows]
    assert names[:2] == ["BLEU, greedy", "BLEU, beam 4"]
    assert any(name.startswith("% of content words aligned, layer") for name in names)
    assert "Multi30k" in cards.card("translator", tmp_path / "translator", result)


@pytest.mark.usefixtures("small")
def test_training_reads_nothing_that_is_held_out(data: Path) -> None:
    seen = train_storyteller.prepare(data)
    held = set(books(data)[train_storyteller.HELD_OUT[0]])
    read = [line for title, text in books(data).items() if title not in train_storyteller.HELD_OUT for line in text]
    windows = train_storyteller.Windows(seen.tokenizer, {"read": read}, window=64)
    text = "".join(seen.tokenizer.decode(row.tolist()) for step in range(1, 40, 2) for row in windows.batch(step).ids)
    assert not [line for line in held if line in text]


@pytest.mark.usefixtures("small")
def test_a_repeated_row_counts_only_what_can_be_foretold(data: Path) -> None:
    for phase in train_storyteller.prepare(data).phases:
        batch = phase.batches(0, 0)
        ids, counts = batch.ids[0].tolist(), batch.counts[0].tolist()
        period = counts.index(True) - 2  # the token behind the first that came back
        assert 3 <= period <= (train_storyteller.WINDOW - 1) // 2
        assert all(counts[period + 2 :])
        assert all(ids[i] == ids[i - period] for i, counted in enumerate(counts) if counted)
        assert batch.counts[-1].all()  # stories count from their first token on


@pytest.mark.usefixtures("small")
def test_the_drill_draws_from_ever_more_of_the_vocabulary(data: Path) -> None:
    _, drill, *_ = train_storyteller.prepare(data).phases
    first, least = train_storyteller.FIRST_MERGE, train_storyteller.POOL
    early, late = (drill.batches(step, 0).ids[0, 1:] for step in (0, train_storyteller.DRILL_STEPS - 1))
    assert first <= early.min() and early.max() < first + least
    assert first <= late.min() and late.max() >= first + least


@pytest.mark.usefixtures("small")
def test_every_pair_comes_once_in_an_epoch(data: Path) -> None:
    corpus = pairs(data, "train")
    batches = train_translator.Batches(train_translator.prepare(data).tokenizer, corpus)
    rows = [tuple(row.tolist()) for step in range(batches.n) for row in batches.batch(step).ids]
    assert len(rows) == len(corpus) == 40
    first = batches.shuffled(random.Random(0))
    assert sorted(i for group in first for i in group) == list(range(40))
    batch = batches.batch(3)
    assert batch.source is not None and batch.source_keep is not None
    assert bool((batch.source[~batch.source_keep] == 0).all())
    assert bool((batch.ids[:, 0] == 1).all())


def test_a_few_steps_of_the_layer_that_leaks(data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["--data", str(data), "--out", str(tmp_path / "leak"), "--steps", "2"]
    assert train_leak.main(arguments) == 0
    again = relearnt(load("storyteller"), tmp_path / "leak")
    assert again.model.decoder is not None
    card = (tmp_path / "leak" / CARD).read_text("utf-8")
    assert "2 steps of 12 windows" in card and "| with the mask | 3.496 |" in card
    assert train_leak.main(arguments) == 0
    assert "--again" in capsys.readouterr().out
    assert train_leak.main(["--data", str(tmp_path), "--out", str(tmp_path)]) == 2
    assert "storybooks.txt.gz" in capsys.readouterr().err


def test_missing_data_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for prepare, file in (
        (train_storyteller.prepare, "storybooks.txt.gz"),
        (train_translator.prepare, "multi30k.train.de.gz"),
    ):
        assert shipping.main(prepare, "", ["--data", str(tmp_path), "--out", str(tmp_path)]) == 2
        said = capsys.readouterr().err
        assert file in said
        assert "--data" in said
    (tmp_path / "storybooks.txt.gz").write_bytes(b"not gzip")
    with pytest.raises(HeadlightError, match=r"storybooks\.txt\.gz cannot be read"):
        books(tmp_path)
    write_gz(tmp_path / "multi30k.val.de.gz", ["Eins"])
    write_gz(tmp_path / "multi30k.val.en.gz", ["One", "Two"])
    with pytest.raises(HeadlightError, match="1 German lines and 2 English"):
        pairs(tmp_path, "val")


def test_kneser_ney_is_a_distribution_and_knows_what_it_has_seen() -> None:
    rng = np.random.default_rng(0)
    seen = np.tile(rng.integers(0, 7, 50), 8)
    orders = kneser_ney(seen, 7, 3)
    for context in rng.integers(0, 7, (20, 2)):
        each = [probabilities(orders, np.array([*context, token]), 7)[0] for token in range(7)]
        assert sum(each) == pytest.approx(1)
        assert min(each) > 0
    assert probabilities(orders, seen, 7).mean() > unigram(seen, seen, 7).mean() * 2
    with pytest.raises(ValueError, match="63 bits"):
        kneser_ney(seen, 10_000, 5)


def test_hand_made_alignments_name_real_words() -> None:
    found = list(captions())
    assert len(found) == 20
    for caption in found:
        assert len(caption.links) >= 4
        for (start, stop), others in caption.links.items():
            assert caption.english[start:stop].isalpha()
            assert all(caption.german[a:b].isalpha() for a, b in others)
    with pytest.raises(ValueError, match="2 times"):
        place("a dog and a cat", "a")


def test_every_plan_has_a_task_and_a_card() -> None:
    for name, plan in PLANS.items():
        assert plan.task in TASKS
        assert plan.note in cards.task_about(name).note
