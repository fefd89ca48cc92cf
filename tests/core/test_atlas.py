"""The atlas: its numbers are the measures', its strongest rows are where the weights are, and it goes on where it was stopped."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from pyarrow import parquet

import core
from core.__main__ import main
from core.checkpoints import Loaded
from core.errors import HeadlightError
from core.patching import atlas
from core.read import measures
from core.read.head_roles import is_punctuation

TEXTS = [
    "The cat sat on the mat, and the cat sat on the dog.",
    "Rain fell all day; nobody came, and the street was empty.",
    "A very long sentence follows here, so that it has to be cut: " + "one two three four five six seven eight " * 30,
    "Yes.",
    "The cat sat on the mat, and the cat sat on the dog.",
]


@pytest.fixture(scope="module")
def minilm() -> Loaded:
    return core.load("minilm")


@pytest.fixture(scope="module")
def table(minilm: Loaded, tmp_path_factory: pytest.TempPathFactory) -> Any:
    return atlas.survey(minilm, TEXTS, tmp_path_factory.mktemp("atlas") / "atlas.parquet", most_tokens=48)


def test_every_number_is_the_measure_s(minilm: Loaded, table: Any) -> None:
    run = core.trace(minilm, TEXTS[0])
    rows = [row for row in table.to_pylist() if row["text"] == 0]
    assert len(rows) == sum(record.n_heads for record in run.attention) == 72
    for record in run.attention:
        pattern = record.pattern()
        _, tokens = run.tokens_of(record)
        special = [i for i, is_special in enumerate(tokens.special) if is_special]
        marks = [i for i, label in enumerate(tokens.labels) if is_punctuation(label) and i not in special]
        expected = {
            "previous": measures.previous_token(pattern),
            "next": measures.next_token(pattern),
            "self": measures.diagonal(pattern),
            "sink": measures.sink_share(pattern, special),
            "punctuation": measures.punctuation(pattern, marks),
            "induction": measures.induction(pattern, tokens.ids),
            "entropy": measures.entropy(pattern).mean(-1),
        }
        own = [row for row in rows if row["layer"] == record.layer]
        for name, values in expected.items():
            torch.testing.assert_close(torch.tensor([row[name] for row in own]), values, atol=1e-5, rtol=1e-5)
        places = torch.arange(len(tokens))
        away = (places[:, None] - places).abs()
        torch.testing.assert_close(
            torch.tensor([row["distance"] for row in own]), (pattern * away).sum(-1).mean(-1), atol=1e-4, rtol=1e-5
        )
        for head, row in enumerate(own):  # the rows that are named hold the largest weight of their kind
            at = row["previous_at"]
            assert pattern[head, at, at - 1] == pattern[head].diagonal(-1).max()
            assert row["entropy_at"] == measures.entropy(pattern)[head].argmax()


def test_what_a_text_has_not_is_null_and_no_zero(table: Any) -> None:
    short = [row for row in table.to_pylist() if row["text"] == 3]
    assert all(row["induction"] is None and row["induction_at"] is None for row in short)
    assert all(0 <= row["previous"] <= 1 for row in short)


def test_a_long_text_is_cut_between_tokens(minilm: Loaded) -> None:
    cut = atlas.shortened(minilm, TEXTS[2], 48)
    assert TEXTS[2].startswith(cut) and len(cut) < len(TEXTS[2])
    assert len(core.trace(minilm, cut).source) == 48
    assert atlas.shortened(minilm, TEXTS[0], 48) == TEXTS[0]
    assert len(core.trace(minilm, atlas.shortened(minilm, "word " * 3000, 10**6)).source) == minilm.config.n_ctx


def test_cross_attention_has_what_it_can_have(tmp_path: Path) -> None:
    translator = core.load("translator")
    rows = atlas.survey(translator, ["Ein Hund läuft über die Wiese."], tmp_path / "a.parquet").to_pylist()
    cross = [row for row in rows if row["site"] == "cross_attn"]
    assert cross and all(row["previous"] is None and row["distance"] is None for row in cross)
    assert all(row["entropy"] >= 0 and 0 <= row["sink"] <= 1 for row in cross)


def test_an_atlas_that_was_stopped_goes_on(
    minilm: Loaded, table: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(atlas, "PART", 2)
    real, ran, out = atlas.trace, [], tmp_path / "atlas.parquet"

    def stopped(loaded: Loaded, text: str) -> Any:
        if len(ran) == 3:
            raise KeyboardInterrupt
        ran.append(text)
        return real(loaded, text)

    monkeypatch.setattr(atlas, "trace", stopped)
    with pytest.raises(KeyboardInterrupt):
        atlas.survey(minilm, TEXTS, out, most_tokens=48)
    assert not out.exists() and len(list((tmp_path / "atlas.parquet.parts").glob("*.parquet"))) == 1
    with pytest.raises(HeadlightError, match="parts of another atlas"):
        atlas.survey(minilm, TEXTS[:4], out, most_tokens=48)
    told: list[tuple[int, int]] = []
    monkeypatch.setattr(atlas, "trace", lambda loaded, text: ran.append(text) or real(loaded, text))
    again = atlas.survey(minilm, TEXTS, out, most_tokens=48, progress=lambda done, of: told.append((done, of)))
    assert len(ran) == 3 + 3  # the two of the first part were not run again, the third was
    assert told == [(2, 5), (4, 5), (5, 5)]
    assert again.equals(table) and parquet.read_table(out).num_rows == table.num_rows
    assert [path.name for path in tmp_path.iterdir()] == ["atlas.parquet"]


def test_a_text_that_cannot_be_read_has_no_rows(minilm: Loaded, tmp_path: Path) -> None:
    found = atlas.survey(minilm, ["The cat.", "   ", "A dog."], tmp_path / "a.parquet")
    assert set(found.column("text").to_pylist()) == {0, 2}


def test_the_summary_says_how_a_head_stands_out_and_where(minilm: Loaded, table: Any) -> None:
    found = atlas.summary(table, TEXTS, lambda text: atlas.tokenized_text(minilm, text, 48))
    assert json.loads(json.dumps(found)) is not None and len(found["heads"]) == 72
    assert found["source"] == {"model": "minilm", "texts": found["source"]["texts"], "n_texts": 5, "most_tokens": 48}
    back = found["heads"]["encoder.attn.0.2"]  # known to look one back: see tests/core/test_minilm.py
    assert back["stands_out"] == "previous" and back["metrics"]["previous"]["mean"] > 0.9
    values = [row["previous"] for row in table.to_pylist() if (row["layer"], row["head"]) == (0, 2)]
    spread = back["metrics"]["previous"]
    assert spread["mean"] == pytest.approx(sum(values) / 5, abs=1e-4) and spread["texts"] == 5
    assert spread["quantiles"] == sorted(spread["quantiles"]) and spread["quantiles"][2] == pytest.approx(
        sorted(values)[2], abs=1e-4
    )
    best = max(values)
    text, at, value, start, stop = back["examples"][0]
    assert found["texts"][str(text)][start:stop] == core.trace(minilm, TEXTS[text]).source.labels[at]
    assert value == pytest.approx(best, abs=1e-4) and values[text] == best
    assert {int(i) for i in found["texts"]} == {
        example[0] for head in found["heads"].values() for example in head["examples"]
    }
    pattern = core.trace(minilm, atlas.shortened(minilm, TEXTS[text], 48)).attention.at(0).pattern(2)[0]
    assert pattern[at, at - 1] == pattern.diagonal(-1).max()


def test_the_command_writes_the_table_and_the_summary(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "t.txt").write_text("\n\n".join(TEXTS), encoding="utf-8")
    out, told = tmp_path / "atlas.parquet", tmp_path / "atlas.json"
    arguments = [
        "atlas",
        str(tmp_path / "t.txt"),
        "--out",
        str(out),
        "--json",
        str(told),
        "--first",
        "2",
        "--tokens",
        "24",
        "--model",
        "minilm",
    ]
    assert main(arguments) == 0
    assert parquet.read_table(out).num_rows == 144 and len(json.loads(told.read_text())["heads"]) == 72
    said = capsys.readouterr()
    assert "144 rows, 2 texts" in said.out
    assert f"\r[{30 * '-'}] 0 of 2 texts" in said.err and f"\r[{30 * '#'}] 2 of 2 texts\n" in said.err
    assert main(["atlas", str(tmp_path / "none.txt")]) == 2
    assert "none.txt" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("said", "sentence"),
    [
        (("--first", "0"), "--first is 0, but it is how many texts are run: 1 or more."),
        (("--first", "-1"), "--first is -1, but"),
        (("--tokens", "2"), "cut to 2 tokens, but MiniLM-L6 reads 2 of its own with each: take 3 or more."),
        (("--tokens", "-4"), "cut to -4 tokens, but"),
    ],
)
def test_a_number_that_leaves_nothing_to_run_is_refused(
    said: tuple[str, str], sentence: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "t.txt").write_text("\n\n".join(TEXTS), encoding="utf-8")
    out = tmp_path / "atlas.parquet"
    assert main(["atlas", str(tmp_path / "t.txt"), "--out", str(out), "--model", "minilm", *said]) == 2
    assert sentence in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["t.txt"]
