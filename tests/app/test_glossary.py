"""The glossary has every term that a control, a legend or a number on the screen is called by, under one name."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.attention import words as attention
from app.rooms.compute import words as compute
from app.rooms.generate import words as generate
from app.rooms.masks import words as masks
from app.rooms.memory import words as memory
from app.rooms.positions import words as positions
from app.rooms.train.recorded import words as training
from app.sizes import words as sizes

GLOSSARY = (Path(__file__).resolve().parents[2] / "docs/glossary.md").read_text(encoding="utf-8")
ROWS = [
    [cell.strip() for cell in line.strip("|").split("|")] for line in GLOSSARY.splitlines() if line.startswith("| ")
]
# Controls that are no terms of the field: what they do stands in their own help.
OWN = {"compare cards", "find the largest", "card", "by what they do", "by layer"}

SHOWN: dict[str, list[str]] = {
    "metrics": [name for name, _ in attention.COMPONENT["metrics"].values()],
    "ways to see heads": [name for name, _ in attention.COMPONENT["kinds"].values()],
    "kinds of attention": [name for name, *_ in attention.SITES.values()],
    "parts of memory": [name for name, _ in memory.COMPONENTS.values()],
    "sliders": [name for name, _ in sizes.LABELS.values()],
    "parts of the work": [compute.GROUPS[name] for name in ("o", "mlp", "embed", "head")],
    "measures of training": [*training.MEASURES.values()],
    "ways to choose the next word": [
        generate.COMPONENT[name]
        for name in ("greedy", "sample", "beam", "temperature", "top_k", "top_p", "min_p", "seed")
    ],
    "what a token was worth": [generate.COMPONENT[name] for name in ("surprise", "entropy")],
    "labs of Masks": [masks.COMPONENT["lab"][name] for name in ("padding", "leak")],
    "kinds of positions": [*positions.COMPONENT["kinds"].values()],
    "charts of compute": [compute.COMPUTE_PARTS[name] for name in ("roofline", "rnn")],
}


def terms() -> list[str]:
    """Our names, as they stand in the first column: bold or as code, one or more to a row."""
    found = []
    for ours, *_ in ROWS:
        found += [
            name.strip()
            for part in re.findall(r"\*\*(.+?)\*\*|`([^\[]+?)`", ours)
            for name in "".join(part).split(", ")
        ]
    return [term.lower() for term in found]


@pytest.mark.parametrize(("where", "name"), [(where, name) for where, names in SHOWN.items() for name in names])
def test_what_the_screen_calls_a_thing_is_in_the_glossary(where: str, name: str):
    known = {*terms(), *OWN}
    plain = name.lower()
    # "KV cache’s data type" is the data type of the KV cache, both of them terms
    parts = [part for part in re.split("’s? ", plain) if part]
    assert plain in known or all(part in known for part in parts), f"{where}: give “{name}” a row in docs/glossary.md"


def test_every_term_has_one_row():
    seen = terms()
    twice = {term for term in seen if seen.count(term) > 1}
    assert not twice


def sentences(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for part in value.values():
            yield from sentences(part)
    elif isinstance(value, list | tuple):
        for part in value:
            yield from sentences(part)


def test_no_word_of_others_is_used_for_a_thing_that_has_our_name():
    """The third column is what others say: two-word names and identifiers, which cannot mean anything else."""
    known = {*terms()}
    others = {
        word.strip().lower()
        for row in ROWS
        if len(row) > 2
        for word in re.sub(r"\(.*?\)", "", row[2]).split(",")
        if re.search(r"[\w-]+[ _][\w-]+", word.strip())
    } - known
    others -= {"attention_mask"}  # Masks tells the two conventions of libraries apart by their names
    modules = (attention, compute, generate, masks, memory, positions, training, sizes)
    shown = [
        text.lower()
        for module in modules
        for name, value in vars(module).items()
        if name.isupper()
        for text in sentences(value)
    ]
    used = {other for other in others for text in shown if re.search(rf"(?<!\w){re.escape(other)}(?!\w)", text)}
    assert others and not used
