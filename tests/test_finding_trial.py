"""The trial of the opening look: its page agrees with its texts, its test can say "dull", and the rule holds on a few of them."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import core
from core.checkpoints import Loaded
from core.read.head_roles import spaced_words
from scripts import finding_trial as trial
from tests.core.gguf.test_smollm2 import pytestmark as needs_smollm2
from tests.core.gguf.test_smollm2 import smollm2

PAGE = (Path(__file__).parents[1] / "docs" / "findings.md").read_text(encoding="utf-8")
CELLS = re.compile(r"(?<!\\) \| ")
TITLES = {name: core.checkpoints.find(name).title for name in (*trial.WITH_WORDS, *trial.TINY)}
PARTS = [(name, part) for name in TITLES for part in trial.inputs(name)]
MOST_DULL = 0.1  # of the texts that are not short


def rows_on_the_page(title: str) -> list[list[str]]:
    """The cells of a table of docs/findings.md, without its heading."""
    part = PAGE.split(f"\n## {title}\n")[1].split("\n## ")[0]
    lines = [line for line in part.splitlines() if line.startswith("|")]
    return [CELLS.split(line.removeprefix("| ").removesuffix(" |")) for line in lines[2:]]


@pytest.mark.parametrize(("name", "part"), PARTS)
def test_the_page_has_every_text_and_counts_its_own_rows(name: str, part: str) -> None:
    asked = [(kind, text) for kind, some in trial.inputs(name)[part].items() for text in some]
    found = rows_on_the_page(f"{TITLES[name]}, {part}")
    for (kind, text), row in zip(asked, found, strict=True):
        assert len(row) == 4 and f"{row[0]} → ".startswith(f"{trial.text_cell(kind, text)} → ")
    verdicts = [row[3] for row in found if row[3] != "short"]
    dull = sum(verdict.startswith("**dull**: ") for verdict in verdicts)
    assert dull + verdicts.count("interesting") == len(verdicts)
    (said,) = [row for row in rows_on_the_page("Shares") if row[0] == f"{TITLES[name]}, {part}"]
    assert said[1] == str(len(asked)) and said[2].startswith(f"{dull} of {len(verdicts)} (")
    assert part == "fresh" or dull <= MOST_DULL * len(verdicts)  # of the fresh ones the page says what it was


def test_the_new_texts_are_a_hundred_of_many_kinds_and_none_was_there_before() -> None:
    known = trial.texts()
    new = [text for some in known["new"].values() for text in some]
    others = [text for by_kind in known["set on"].values() for some in by_kind.values() for text in some]
    others += [text for some in known["fresh"].values() for text in some]
    assert len(new) == len(set(new)) == 100 and len(known["new"]) >= 15
    assert not {*new} & {*others}
    unseen = [text for some in known["unseen"].values() for text in some]
    assert len(unseen) == len(set(unseen)) >= 50 and len(known["unseen"]) >= 15
    assert not {*unseen} & {*others, *new}


# Kind of the new texts, and which of them
SMOLLM2 = (("prose", 2), ("dialogue", 0), ("SQL", 3), ("German", 4), ("Chinese", 0), ("numbers", 2))


@needs_smollm2
@pytest.mark.parametrize(("kind", "i"), SMOLLM2)
def test_smollm2_opens_as_the_page_says(kind: str, i: int) -> None:
    opened, said = both("smollm2", smollm2(), kind, trial.texts()["new"][kind][i])
    assert opened == said


@pytest.mark.parametrize(("name", "kind", "i"), [("minilm", "question", 2), ("storyteller", "question", 2)])
def test_other_models_open_as_the_page_says(name: str, kind: str, i: int) -> None:
    opened, said = both(name, core.load(name), kind, trial.texts()["new"][kind][i])
    assert opened == said


def both(name: str, loaded: Loaded, kind: str, text: str) -> tuple[list[str], list[str]]:
    """The head and the verdict of a text as it opens, and as the page has them; it is not to be dull."""
    row = trial.judged(core.trace(loaded, text), kind)
    (said,) = [cells for cells in rows_on_the_page(f"{TITLES[name]}, new") if cells[0] == trial.text_cell(kind, text)]
    return [f"{row.found.layer}.{row.found.head}", row.dull or "interesting"], [said[1], "interesting"]


@pytest.mark.parametrize("text", ["Umbrella", "Red wine"])
def test_one_word_or_two_open_an_encoder_on_something_that_was_typed(text: str) -> None:
    run = core.trace(core.load("minilm"), text)
    assert not run.source.special[core.opening_finding(run).key] and trial.is_short(run)


def test_every_reason_to_be_dull_is_given() -> None:
    run = core.trace(core.load("storyteller"), "The old king sat by the window, and Tremblethorn looked at him")
    labels = run.source.labels
    record = run.attention.at(0)
    found = replace(core.opening_finding(run), kind="stands out", layer=0, head=0, weight=0.5, addition=0.0)
    at = {label: i for i, label in enumerate(labels)}
    piece = next(i for i in range(at[","] + 2, at["looked"]) if len(labels[i]) < 3)
    last = len(labels) - 1

    def reason(query: int, key: int, **changes: Any) -> str:
        return trial.dull(run, replace(found, query=query, key=key, **changes))

    assert reason(last, at["king"]) == ""
    assert reason(last, at["king"], kind="largest push") == "no look to tell of"
    assert reason(last, last) == "at itself"
    assert reason(last, 0) == "where attention rests"
    assert reason(last, at[","]) == "at punctuation"
    assert reason(last, at["the"]) == "at a function word"
    assert reason(at["looked"] - 1, piece) == "inside one word"
    assert reason(last, piece) == "at a scrap of a word"
    assert reason(last, at["king"], kind="writes", word=",") == "writes no word"
    assert reason(last, at["king"], weight=0.05) == "hardly a look"
    assert reason(at["king"], at["old"]) == "one back"
    strong = reason(at["king"], at["old"], addition=0.5)
    assert strong == ("one back" if record.pattern(0)[0].diagonal(-1)[1:].mean() >= trial.POSITIONAL else "")


@needs_smollm2
def test_the_parts_of_a_character_are_of_one_word_and_each_character_of_chinese_is_one() -> None:
    tokens = smollm2().tokens("我们 👍 go, they're")
    words = spaced_words(tokens)
    labels = tokens.labels
    characters = {label[0]: {words[i] for i, other in enumerate(labels) if other[0] == label[0]} for label in labels}
    assert len(characters["👍"]) == len(characters["我"]) == len(characters["们"]) == 1
    assert len({*characters["👍"], *characters["我"], *characters["们"], *characters["g"]}) == 4
    assert words[labels.index("they")] == words[labels.index("'re")] == words[-1]
