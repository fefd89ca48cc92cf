"""Every caption is used, and every caption that is used exists, with the parts it is given."""

from __future__ import annotations

import re
import string
from pathlib import Path

import pytest

from app import words
from app.components.explore.explore import CONSTANTS, MODULES

APP = Path(words.__file__).parent
SCRIPTS = "\n".join(source for name, source in MODULES.items() if name != "constants.js")
PYTHON = "\n".join(path.read_text(encoding="utf-8") for path in APP.rglob("*.py") if path.name != "words.py")


def test_the_components_use_every_word_they_are_given_and_no_other():
    used = set(re.findall(r"\bwords\.(?!py\b)(\w+)", SCRIPTS)) | {"source", "target"}  # these two by their side's name
    assert used == set(CONSTANTS["WORDS"])


@pytest.mark.parametrize("name", [name for name in vars(words) if name.isupper() and name != "COMPONENT"])
def test_the_pages_use_every_word(name: str):
    assert re.search(rf"\bwords\.{name}\b", PYTHON)


def test_words_are_sentences_without_decoration():
    texts = [text for text in vars(words).values() if isinstance(text, str)]
    texts += [text for text in words.COMPONENT.values() if isinstance(text, str)]
    for text in texts:
        assert not re.search(r"[\U0001f300-\U0001faff]", text), text
        assert list(string.Formatter().parse(text)), text  # braces are balanced
