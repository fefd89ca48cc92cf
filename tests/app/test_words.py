"""Every caption is used, and every caption that is used exists, with the parts it is given."""

from __future__ import annotations

import json
import re
import string
from importlib import import_module
from pathlib import Path

import pytest

from app.classroom.component import FOLLOW, TEACH
from app.kit import words as kit_words
from app.rooms.explore.component import OFFLINE
from app.transport import modules

APP = Path(__file__).resolve().parents[2] / "app"
PYTHON = "\n".join(path.read_text(encoding="utf-8") for path in APP.rglob("*.py") if path.name != "words.py")
MODULES_OF_WORDS = {
    module: import_module(module)
    for module in sorted(".".join(path.relative_to(APP.parent).with_suffix("").parts) for path in APP.rglob("words.py"))
}


@pytest.mark.parametrize(
    ("entries", "constants"),
    [
        (
            (
                "kit/browser/stage.js",
                "kit/browser/chooser.js",
                "kit/browser/csv.js",
                "kit/browser/head_measures.js",
                "kit/browser/sink.js",
                "kit/browser/model_strip.js",
                "kit/browser/headline.js",
                "kit/browser/share.js",
                "kit/browser/cover.js",
                "kit/browser/offline.js",
                "kit/browser/table.js",
                "kit/browser/turns.js",
                "kit/browser/writers/film.js",
            ),
            "kit/browser/words.js",
        ),
        ((OFFLINE,), "attention/browser/constants.js"),
        ((FOLLOW, TEACH), "classroom/browser/constants.js"),
    ],
)
def test_the_browser_uses_every_word_that_it_is_given_and_no_other(entries: tuple[str, ...], constants: str):
    given = set(json.loads(re.findall(r"^export const WORDS = (.*);$", modules.source(constants), re.MULTILINE)[0]))
    names = {name for entry in entries for name in modules.closure(entry)}
    readers = [name for name in names if constants in modules.imports(name)]
    used = {word for name in readers for word in re.findall(r"\bwords\.(?!py\b|js\b)(\w+)", modules.source(name))}
    if constants.startswith("kit"):
        used |= set(kit_words.PROJECTED)  # which projection.js gets from the page
    if constants.startswith("attention"):
        used |= {"source", "target"}  # these two by their side's name
        given -= set(kit_words.COMPONENT) - used  # which come with it
    assert used == given


@pytest.mark.parametrize("module", MODULES_OF_WORDS)
def test_the_pages_use_every_word(module: str):
    names = [name for name in vars(MODULES_OF_WORDS[module]) if name.isupper()]
    assert names
    own = Path(str(MODULES_OF_WORDS[module].__file__)).read_text(
        encoding="utf-8"
    )  # where a word may be part of another
    assert not [n for n in names if not re.search(rf"words\.{n}\b", PYTHON) and len(re.findall(rf"\b{n}\b", own)) < 2]


@pytest.mark.parametrize("module", MODULES_OF_WORDS)
def test_words_are_sentences_without_decoration(module: str):
    words = vars(MODULES_OF_WORDS[module])
    texts = [text for text in words.values() if isinstance(text, str)]
    texts += [text for text in words.get("COMPONENT", {}).values() if isinstance(text, str)]
    for text in texts:
        assert not re.search(r"[\U0001f300-\U0001faff]", text), text
        assert list(string.Formatter().parse(text)), text  # braces are balanced
