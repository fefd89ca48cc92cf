"""The models on offer as a list to choose from: form, size, and the use of each, from what is known without its weights."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from app import languages
from app.session import models, words
from core import checkpoints
from core.checkpoints import ModelSpec
from core.checkpoints.files import read_json
from core.checkpoints.from_config import describe
from core.errors import HeadlightError
from core.plan import parameters

KEPT = 2000  # models that are not looked into a second time
SIZES = {"small": (0, 10e6), "middle": (10e6, 1e9), "large": (1e9, float("inf"))}  # numbers of a model
CLASSIFIER = "classifier"

_lock = threading.Lock()
_known: dict[tuple[str, float], tuple[str, int, str]] = {}


@dataclass(frozen=True)
class Listed:
    """One model of the list. `form` is encoder, decoder, encoder-decoder or classifier; "" and 0 where the files that say so are not here."""

    id: str
    title: str
    form: str
    n_params: int
    use: str  # what one can do with it, a sentence

    def matches(self, text: str, form: str, size: str) -> bool:
        """Whether its name or use has all words of a text, and it is of a form and of one of SIZES ("" stands for any)."""
        said = f"{self.title} {self.use} {words.FORMS.get(self.form, '')}".lower()
        low, high = SIZES.get(size, (-1, float("inf")))
        return (
            all(word in said for word in text.lower().split())
            and form in ("", self.form)
            and (not size or (self.n_params > 0 and low <= self.n_params < high))
        )


def listed(titles: Iterable[str]) -> tuple[Listed, ...]:
    """The models of these ids, in their order."""
    return tuple(_listed(models.spec_of(id)) for id in titles)


def _listed(spec: ModelSpec) -> Listed:
    place = Path(spec.location)
    try:
        changed = place.stat().st_mtime if spec.source == "folder" else 0.0
    except OSError:
        changed = 0.0
    key = (f"{spec.source} {spec.location}", changed)
    with _lock:
        known = _known.get(key)
    if known is None:
        known = _looked(spec)
        if known[0]:  # files that cannot be read now may be there the next time
            _remember(key, known)
    form, n_params, use = known
    return Listed(spec.id, spec.title, form, spec.n_params or n_params, languages.said(spec.note) or use)


def _remember(key: tuple[str, float], known: tuple[str, int, str]) -> None:
    with _lock:
        _known[key] = known
        while len(_known) > KEPT:
            del _known[next(iter(_known))]


def _looked(spec: ModelSpec) -> tuple[str, int, str]:
    """Form, numbers and use, by its config.json or its header alone. Nothing is downloaded for it."""
    place = Path(spec.location)
    if (base := checkpoints.base_of(spec)) is not None:
        form, n_params, use = _looked(base)
        return form, n_params, words.USE_ADAPTER.format(base=base.title, use=use).strip()
    if spec.points and spec.source == "folder":
        place = place / spec.points[-1][0] if (place / spec.points[-1][0]).is_dir() else place
    try:
        if spec.source == "hub":
            folder = checkpoints.cached(spec.location)
            if folder is None:
                return "", 0, words.USE_UNKNOWN
            place = folder
        config = describe(spec.id if spec.source not in ("hub", "folder") else place).config
        sorts = place.is_dir() and any(name.endswith("ForSequenceClassification") for name in _architectures(place))
    except (HeadlightError, OSError):
        return "", 0, words.USE_UNREAD
    form = CLASSIFIER if sorts else config.kind
    chats = (place / "chat_template.jinja").is_file() if place.is_dir() else False
    return form, parameters(config).total, words.USE_CHAT if chats and form == "decoder" else words.USES[form]


def _architectures(folder: Path) -> list[str]:
    said = read_json(folder / "config.json").get("architectures") if (folder / "config.json").is_file() else None
    return [name for name in said if isinstance(name, str)] if isinstance(said, list) else []
