"""The two corpora that models are trained on, read from a folder that is not part of this repository.

    storybooks.txt.gz                       a heading such as "# Heidi (Project Gutenberg 1448)", then a paragraph a line
    multi30k.train.de.gz, multi30k.train.en.gz   a sentence a line, its translation on the same line of the other file;
                                            val and test_2016_flickr likewise

The books are in the public domain (gutenberg.org). Multi30k is Elliott et al. 2016, arXiv:1605.00459, task 1 of
github.com/multi30k/dataset.
"""

from __future__ import annotations

import gzip
import os
from pathlib import Path

from core.errors import HeadlightError

ROOT = Path(__file__).resolve().parents[1]
DATA = Path(os.environ.get("HEADLIGHT_DATA", ROOT / "data"))

Pairs = list[tuple[str, str]]


def books(folder: Path) -> dict[str, list[str]]:
    """The paragraphs of every book, by its title."""
    found: dict[str, list[str]] = {}
    paragraphs: list[str] = []
    for line in lines(folder / "storybooks.txt.gz"):
        if line.startswith("# "):
            paragraphs = found.setdefault(line.removeprefix("# ").split(" (Project Gutenberg")[0], [])
        elif line:
            paragraphs.append(line)
    return found


def pairs(folder: Path, split: str) -> Pairs:
    """(German, English) of a split of Multi30k: train, val or test_2016_flickr."""
    german, english = (lines(folder / f"multi30k.{split}.{language}.gz") for language in ("de", "en"))
    if len(german) != len(english):
        raise HeadlightError(
            f"multi30k.{split} has {len(german)} German lines and {len(english)} English ones; they must match."
        )
    return list(zip(german, english, strict=True))


def lines(path: Path) -> list[str]:
    """Raises HeadlightError, naming the file, where it is not there or is no gzip file."""
    try:
        text = gzip.decompress(path.read_bytes()).decode("utf-8")
    except FileNotFoundError:
        raise HeadlightError(
            f"{path.name} is not in {path.parent}. Put it there, or name its folder with --data or HEADLIGHT_DATA; "
            "scripts/corpora.py says what it holds."
        ) from None
    except (OSError, EOFError, UnicodeDecodeError) as error:
        raise HeadlightError(f"{path.name} cannot be read as gzip-compressed UTF-8 text ({error}).") from error
    return [line.strip() for line in text.splitlines()]
