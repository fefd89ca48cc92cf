"""The texts of a corpus: prose, and one column of a table, whatever its kind."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet

from core import HeadlightError
from core.__main__ import main
from core.patching.atlas import texts_of

ROWS = [
    {"id": "1", "text": "Ein Satz, mit Komma", "label": "a"},
    {"id": "2", "text": 'He said "yes";\nthen left.', "label": "b"},
    {"id": "3", "text": "", "label": "a"},
    {"id": "4", "text": "你好 שלום", "label": "=1+1"},
]
TEXTS = ["Ein Satz, mit Komma", 'He said "yes"; then left.', "你好 שלום"]


def test_paragraphs_are_read_from_files_and_folders(tmp_path: Path) -> None:
    (tmp_path / "b.txt").write_text("one\n\n# a heading\ntwo\nmore of two\n\n\n", encoding="utf-8")
    (tmp_path / "a.txt").write_text("# a heading\nfirst\nsecond\n", encoding="utf-8")
    assert texts_of(tmp_path) == ["first", "second", "one", "two more of two"]
    (tmp_path / "empty.txt").write_text("# nothing\n", encoding="utf-8")
    with pytest.raises(HeadlightError, match=r"no text in empty\.txt"):
        texts_of(tmp_path / "empty.txt")
    (tmp_path / "latin.txt").write_bytes("Füße".encode("latin-1"))
    with pytest.raises(HeadlightError, match=r"latin\.txt is no UTF-8 text"):
        texts_of(tmp_path / "latin.txt")


def written(folder: Path, name: str) -> Path:
    file = folder / name
    kind = file.suffix
    if kind == ".parquet":
        parquet.write_table(pa.Table.from_pylist(ROWS), file, row_group_size=2)
    elif kind in (".jsonl", ".ndjson"):
        file.write_text("\n".join(json.dumps(row, ensure_ascii=False) for row in ROWS) + "\n", encoding="utf-8")
    elif kind == ".json":
        file.write_text(json.dumps(ROWS), encoding="utf-8")
    else:
        separator = "\t" if kind == ".tsv" else ";" if "semicolon" in name else ","
        with file.open("w", encoding="utf-8-sig" if "excel" in name else "utf-8", newline="") as out:
            table = csv.DictWriter(out, ["id", "text", "label"], delimiter=separator)
            table.writeheader()
            table.writerows(ROWS)
    return file


NAMES = ("a.csv", "excel.csv", "semicolon.csv", "a.tsv", "a.jsonl", "a.ndjson", "a.json", "a.parquet")


@pytest.mark.parametrize("name", NAMES)
def test_one_column_of_a_table(name: str, tmp_path: Path) -> None:
    file = written(tmp_path, name)
    assert texts_of(file, "text") == TEXTS
    assert texts_of(file, "text", most=2) == TEXTS[:2]
    with pytest.raises(HeadlightError) as refused:
        texts_of(file)
    assert str(refused.value) == (
        f"{name} is a table with the columns id, text, label. Say which one has the texts, such as --column text."
    )
    with pytest.raises(
        HeadlightError, match=r"has no column texts\. Is text meant\? It has the columns id, text, label\."
    ):
        texts_of(file, "texts")


def test_a_folder_of_tables(tmp_path: Path) -> None:
    for name in ("1.csv", "2.jsonl", "3.parquet"):
        written(tmp_path, name)
    (tmp_path / "notes.txt").write_text("no table", encoding="utf-8")
    assert texts_of(tmp_path, "text") == TEXTS * 3
    assert texts_of(tmp_path) == ["no table"]
    (tmp_path / "notes.txt").unlink()
    with pytest.raises(HeadlightError, match=r"1\.csv is a table with the columns id, text, label\."):
        texts_of(tmp_path)


def test_a_table_of_one_column_needs_no_name(tmp_path: Path) -> None:
    (tmp_path / "one.csv").write_text("story\nOnce\n\nTwice\n", encoding="utf-8")
    assert texts_of(tmp_path / "one.csv") == ["Once", "Twice"]


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        (
            "a.jsonl",
            '{"text": "x"}\n{"text": \n',
            r"Line 2 of a\.jsonl is no JSON: .* JSON Lines have one object a line\.",
        ),
        ("a.jsonl", '{"text": "x"}\n[1]\n', r"Line 2 of a\.jsonl is no JSON object"),
        ("a.json", "[1, 2", r"a\.json is no JSON: "),
        ("a.json", "[1, 2]", r"Entry 1 of a\.json is no JSON object"),
        ("a.jsonl", '{"text": "x"}\n{"text": 5}\n', r"has no text in row 2, but a number\. Choose a column of texts: "),
        ("a.jsonl", '{"text": {"a": 1}}', r"has no text in row 1, but an object\."),
        ("a.csv", 'text\n"never closed\n', r"a\.csv is no CSV that can be read: .* in line 2\."),
        ("a.csv", "text\n\n", r"no text in a\.csv, column text\."),
        ("a.csv", "", r"a\.csv has no column text\. It has no columns\."),
        ("a.parquet", "PAR1 nothing", r"a\.parquet is no Parquet file that can be read\."),
        ("a.txt", "prose", r"a\.txt is read as prose, which has no column text\. Leave out --column"),
    ],
)
def test_a_file_that_cannot_be_read_gets_a_sentence(name: str, content: str, said: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(content, encoding="utf-8")
    with pytest.raises(HeadlightError, match=said):
        texts_of(tmp_path / name, "text")


def test_many_columns_are_not_all_listed(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(",".join(f"c{i}" for i in range(200)) + "\n", encoding="utf-8")
    with pytest.raises(
        HeadlightError, match=r"c10, c11 and 188 more\. Say which one has the texts, such as --column c0\."
    ):
        texts_of(tmp_path / "a.csv")


def test_the_command_takes_the_column(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "atlas.parquet"
    file = written(tmp_path, "a.csv")
    assert main(["atlas", str(file), "--model", "copy", "--out", str(out)]) == 2
    assert "Say which one has the texts, such as --column text." in capsys.readouterr().err
    assert main(["atlas", str(file), "--column", "label", "--first", "2", "--model", "copy", "--out", str(out)]) == 0
    assert "2 texts" in capsys.readouterr().out and parquet.read_table(out)["text"].to_pylist()[-1] == 1
