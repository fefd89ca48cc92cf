"""A visitor's own text: what is refused, what is measured, and that a run which was stopped continues as if it never had been."""

from __future__ import annotations

import math
from io import BytesIO
from itertools import islice
from pathlib import Path
from zipfile import ZipFile

import pytest
import torch

from core.checkpoints import load
from core.errors import HeadlightError
from core.learn import text_training
from core.learn.text_training import LEAST, MOST, Text, TextFrame, TextPoint, baselines, text_run

ALICE = (Path(__file__).parent / "alice.txt").read_text("utf-8")
STORY = (ALICE * (1 + 6_000 // len(ALICE)))[:6_000]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("too short", rf"too few to learn from\. {LEAST:,} at least"),
        ("a" * (MOST + 1), r"1\.0 MB; 1 MB is the most"),
        ("".join(map(chr, range(0x4E00, 0x4E00 + 300))) * 10, r"300 different signs; 256 are the most"),
    ],
)
def test_a_text_that_cannot_be_learnt_is_refused(text: str, said: str) -> None:
    with pytest.raises(HeadlightError, match=said):
        Text(text)


def test_many_signs_are_learnt_as_pieces_and_memory_is_predicted(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "".join(map(chr, range(0x4E00, 0x4E00 + 300))) * 10
    assert Text(text, "pieces").n_tokens <= text_training.PIECES
    few, many = (text_training.bytes_needed(Text(STORY, unit)) for unit in ("letters", "pieces"))
    assert 10e6 < few < many < 200e6
    monkeypatch.setattr(text_training, "MAX_BYTES", few - 1)
    with pytest.raises(HeadlightError, match=r"takes \d+ MB, and \d+ MB is the most"):
        Text(STORY)


@pytest.mark.parametrize("unit", ["letters", "pieces"])
def test_a_text_is_read_back_and_its_last_tenth_is_kept(unit: text_training.Unit) -> None:
    of = Text(STORY, unit)
    assert of.read(of.ids(STORY[:500])) == STORY[:500]
    assert of.learnt + of.kept == STORY and len(of.kept) == len(STORY) // 10
    found = baselines(of)
    assert found.blind == math.log(of.n_tokens) > found.counts > found.pairs > 0


def test_the_model_has_the_size_that_is_said() -> None:
    signs = "".join(chr(33 + i) for i in range(77)) * 30
    model = text_training.build(Text(signs).config, 0).model
    assert sum(p.numel() for p in model.parameters()) == 231_264


def test_pairs_are_counted_as_by_hand() -> None:
    of = Text("ab" * 1_500)
    assert baselines(of).pairs < 0.001 and baselines(of).counts == pytest.approx(math.log(2), abs=0.01)


def parts(made: list[TextPoint | TextFrame]) -> tuple[list[TextPoint], list[TextFrame]]:
    return [x for x in made if isinstance(x, TextPoint)], [x for x in made if isinstance(x, TextFrame)]


@pytest.mark.thorough
def test_it_learns_and_goes_on_where_it_was_stopped() -> None:
    of = Text(STORY)
    points, frames = parts(list(text_run(of, seconds=1e9, steps=24)))
    assert [x.step for x in points] == list(range(1, 25)) and [x.step for x in frames] == [0, 10, 20, 24]
    assert frames[0].loss > math.log(of.n_tokens) - 0.1 > frames[-1].loss
    assert [bool(x.sample) for x in frames] == [True, False, True, True]
    stopped = list(islice(text_run(of, seconds=1e9, steps=24), 12))  # a frame, ten points, a frame
    last = stopped[-1]
    assert isinstance(last, TextFrame) and last.step == 10
    rest, more = parts(list(text_run(of, seconds=1e9, steps=24, start=last.weights)))
    assert [x.loss for x in rest] == [x.loss for x in points[10:]], "bit for bit"
    assert more[-1].sample == frames[-1].sample
    model = text_training.restored(of, more[-1].weights)
    assert text_training.write(of, model) == more[-1].sample


def test_time_ends_a_run_with_a_frame() -> None:
    made = list(text_run(Text(STORY), seconds=0, steps=24))
    assert [type(x).__name__ for x in made] == ["TextFrame", "TextPoint", "TextFrame"]
    last = made[-1]
    assert isinstance(last, TextFrame) and last.step == 1


def test_heads_are_measured_where_they_look(monkeypatch: pytest.MonkeyPatch) -> None:
    """A pattern that is on one place alone measures 1 there, and 0 elsewhere."""
    of = Text(STORY)
    measured = text_training._Evaluation(of)

    def patterns(offset: int):
        def made(model, ids):
            n = ids.shape[1]
            one = torch.diag(torch.ones(n - offset), -offset).expand(len(ids), 2, 4, n, n)
            return one, torch.zeros(*ids.shape, 96)

        return made

    model = text_training.build(of.config, 0).model
    optimiser = text_training.make_optimiser(model, text_training.Recipe(steps=1))
    for offset, wanted in ((1, (1, 0)), (text_training.REPEATED - 1, (0, 1))):
        monkeypatch.setattr(text_training, "_patterns", patterns(offset))
        frame = measured.frame(model, optimiser, 0, 0.0, writes=False)
        assert (frame.back[1][2], frame.repeat[0][3]) == pytest.approx(wanted)


@pytest.mark.thorough(but=1)
@pytest.mark.parametrize("unit", ["letters", "pieces"])
def test_its_model_is_a_folder_that_is_read_again(unit: text_training.Unit, tmp_path: Path) -> None:
    of = Text(STORY, unit)
    last = list(text_run(of, seconds=1e9, steps=3))[-1]
    assert isinstance(last, TextFrame)
    with ZipFile(BytesIO(text_training.archive(of, last.weights, last.loss))) as file:
        file.extractall(tmp_path)
        assert STORY[:40] not in file.read("card.md").decode() + file.read("recipe.json").decode()
    made = text_training.opened(of, last.weights, "abcdefgh2345")
    wanted = text_training.restored(of, last.weights)
    text = STORY[:40]
    ids = torch.tensor([of.ids(text)])
    for loaded in (load(tmp_path), made):
        assert loaded.tokenizer is not None and loaded.tokenizer.encode(text).ids == ids[0].tolist()
        assert loaded.tokenizer.decode(ids[0].tolist()) == text
        assert torch.equal(loaded.model.last_residual(ids), wanted.last_residual(ids))
    assert text_training.key_of(made.spec.id) == text_training.key_of(made.spec.title) == "abcdefgh2345"
    assert text_training.key_of("trained-copy-none-0") is None
