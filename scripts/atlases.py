"""The atlases that ship: what every head of a model does over a thousand paragraphs of storybooks, in models/<id>/atlas.json.

    python -m scripts.atlases [--data FOLDER] [minilm storyteller]

The paragraphs are spread evenly over all books. A table under way lies in the temporary folder and goes on where it was stopped.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from functools import partial
from pathlib import Path

from core.checkpoints import load
from core.sweep import atlas
from scripts import corpora

MODELS = ("minilm", "storyteller")
TEXTS = 1000
SHORTEST = 80  # characters of a paragraph: a line of dialogue says little about a head


def paragraphs(folder: Path, n: int = TEXTS) -> list[str]:
    """So many paragraphs, spread evenly over all books."""
    every = [text for book in corpora.books(folder).values() for text in book if len(text) >= SHORTEST]
    return [every[i * len(every) // n] for i in range(min(n, len(every)))]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", default=MODELS)
    parser.add_argument("--data", type=Path, default=corpora.DATA)
    asked = parser.parse_args()
    texts = paragraphs(asked.data)
    for name in asked.models:
        begun, loaded = time.monotonic(), load(name)
        table = atlas.survey(
            loaded,
            texts,
            Path(tempfile.gettempdir()) / f"{name}-atlas.parquet",
            progress=lambda done, total: print(f"\r{done:,} of {total:,}", end="", file=sys.stderr, flush=True),
        )
        found = atlas.summary(table, texts, partial(atlas.as_read, loaded))
        out = corpora.ROOT / "models" / name / "atlas.json"
        out.parent.mkdir(exist_ok=True)
        out.write_text(json.dumps(found, ensure_ascii=False, separators=(",", ":")) + "\n", encoding="utf-8")
        print(f"\n{name}: {len(texts):,} texts in {time.monotonic() - begun:.0f} s, {out.stat().st_size / 1e3:.0f} kB")


if __name__ == "__main__":
    main()
