"""The atlases that ship: what every head of a model does over a thousand paragraphs of storybooks, in models/<id>/atlas.json.gz.

    python -m scripts.atlases [--data FOLDER] [minilm storyteller smollm2]

The paragraphs are spread evenly over all books. A table under way lies in the temporary folder and goes on where it was stopped.
"""

from __future__ import annotations

import argparse
import gzip
import json
import sys
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import Any

from core.checkpoints import load
from core.checkpoints.catalog import ATLAS
from core.patching import atlas
from scripts import corpora

MODELS = ("minilm", "storyteller", "smollm2")
EXAMPLES = {"smollm2": 3}  # of each head, where a model has so many heads: what ships has a bound
TEXTS = 1000
SHORTEST = 80  # characters of a paragraph: a line of dialogue says little about a head


def paragraphs(folder: Path, n: int = TEXTS) -> list[str]:
    """So many paragraphs, spread evenly over all books."""
    every = [text for book in corpora.books(folder).values() for text in book if len(text) >= SHORTEST]
    return [every[i * len(every) // n] for i in range(min(n, len(every)))]


def shortened(found: dict[str, Any], n: int) -> dict[str, Any]:
    """The same with n examples of each head, and without the texts that none of them is of."""
    heads = {name: told | {"examples": told["examples"][:n]} for name, told in found["heads"].items()}
    used = {str(text) for told in heads.values() for text, *_ in told["examples"]}
    return found | {"heads": heads, "texts": {at: text for at, text in found["texts"].items() if at in used}}


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
        found = atlas.summary(table, texts, partial(atlas.tokenized_text, loaded))
        out = corpora.ROOT / "models" / name / ATLAS
        out.parent.mkdir(exist_ok=True)
        if name in EXAMPLES:
            found = shortened(found, EXAMPLES[name])
        said = (json.dumps(found, ensure_ascii=False, separators=(",", ":")) + "\n").encode()
        out.write_bytes(gzip.compress(said, 9, mtime=0))
        print(f"\n{name}: {len(texts):,} texts in {time.monotonic() - begun:.0f} s, {out.stat().st_size / 1e3:.0f} kB")


if __name__ == "__main__":
    main()
