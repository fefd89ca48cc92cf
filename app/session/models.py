"""The models that visitors may choose: those of the catalog whose files are here, and those that the operator names in HEADLIGHT_MODELS."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from app.session import own_texts, settings, words
from core import checkpoints
from core.checkpoints import Loaded, ModelSpec
from core.checkpoints.local_models import Found
from core.errors import CheckpointError, HeadlightError
from core.learn import text_training, watched_training

FIRST = "smollm2"  # where the operator names none
IN_ITS_PLACE = "storyteller"  # ships with Headlight, so it is always there
OF_OLD_LINKS = "minilm"  # of links that carry a head and name no model: it opened first once

LONGEST_NAME = 100  # characters of the name of a model that another program has
MOST_OPENED = 100  # of such models; those opened first are left out then

log = logging.getLogger("headlight")
_opened: dict[str, ModelSpec] = {}  # by their ids; replaced whole, for other scripts read it meanwhile


def read(text: str, known: Iterable[ModelSpec]) -> dict[str, ModelSpec]:
    """The known models and those that `text` names, by the id that the URL has: a Hub id, or a folder's name.

    What is no model, has the name of another, or should have shipped and did not, is left out and logged for the
    operator. Nothing is loaded here.
    """
    found = {spec.id: spec for spec in known if _is_there(spec)}
    for name in filter(None, (part.strip() for part in text.split(","))):
        try:
            spec = checkpoints.find(name)
        except CheckpointError as error:
            log.warning("%s: %s", settings.MODELS, error)
            continue
        if spec.id in found and spec.source != "folder":  # of the catalog, or named twice
            continue
        public = Path(spec.location).resolve().name if spec.source == "folder" else spec.id
        if public in found or public in {spec.title for spec in found.values()}:
            log.warning("%s: there are two models called %s; the second is left out.", settings.MODELS, public)
            continue
        training = checkpoints.training_in(spec)
        if training is None or checkpoints.contains_model(spec):
            found[public] = _as_read(replace(spec, id=public, title=public))
        if training is not None:
            name = words.IN_TRAINING.format(title=public) if public in found else public
            found[name] = _as_read(replace(training, id=name, title=name))
    return found


def _as_read(spec: ModelSpec) -> ModelSpec:
    """The same, with token numbers to begin with, and a line that says so, where it has no tokenizer."""
    return replace(spec, example=words.NUMBERS, note=words.NUMBERS_NOTE) if checkpoints.reads_numbers(spec) else spec


def reads_numbers(spec: ModelSpec) -> bool:
    """Whether a model is known to read token numbers alone."""
    return spec.example == words.NUMBERS


def _is_there(spec: ModelSpec) -> bool:
    if spec.source != "shipped":
        return True
    try:
        checkpoints.locate(spec, None)
    except CheckpointError as error:
        log.warning("%s is not offered: %s", spec.id, error)
        return False
    return True


def bases_of(known: Mapping[str, ModelSpec]) -> tuple[dict[str, ModelSpec], dict[str, str]]:
    """The models that the adapters among these were made for and that are not among them yet, and {adapter's id: id of its base}."""
    more: dict[str, ModelSpec] = {}
    bases: dict[str, str] = {}
    for name, spec in known.items():
        if (base := checkpoints.base_of(spec)) is None:
            continue
        there = Path(base.location).resolve()
        folders = ((id, each) for id, each in {**known, **more}.items() if each.source == "folder")
        id = next((id for id, each in folders if Path(each.location).resolve() == there), None)
        if id is None:
            taken = {*known, *more, *(each.title for each in known.values())}
            id = (
                base.title
                if base.title not in taken and "@" not in base.title
                else words.WITHOUT_ADAPTER.format(title=name)
            )
            more[id] = _as_read(replace(base, id=id, title=id))
        bases[name] = id
    return more, bases


MODELS = read(os.environ.get(settings.MODELS, ""), checkpoints.CATALOG)
_MORE, BASES = bases_of(MODELS)  # an adapter's base is offered too, so that the two can be compared
MODELS |= _MORE
TITLES = {name: spec.title for name, spec in MODELS.items()}


def default_of(asked: str, known: Mapping[str, ModelSpec]) -> tuple[str, str]:
    """The id of the model that opens, and a sentence for visitors where it is not the one that should.

    One whose package is not installed is fetched from the Hub before the server answers: a page waits for no download.
    """
    name = asked.strip() or FIRST
    if name not in known:
        log.warning("%s: there is no model %r. It may be one of %s.", settings.DEFAULT, name[:80], ", ".join(known))
        name = FIRST
    try:
        checkpoints.locate(known[name], None)
    except CheckpointError as error:
        log.warning("%s opens in place of %s: %s", IN_ITS_PLACE, name, error)
        return IN_ITS_PLACE, words.DEFAULT_IS_MISSING.format(title=known[name].title, opened=known[IN_ITS_PLACE].title)
    return name, ""


DEFAULT, DEFAULT_IS_MISSING = default_of(os.environ.get(settings.DEFAULT, ""), MODELS)


def open_found(found: Found) -> str:
    """A model that another program of this machine has, chosen by a person: it is one of the models from now on, until this process
    ends. Returns its id, which links say; no link brings one here."""
    global _opened
    for id, spec in _opened.items():
        if spec.location == found.path:
            return id
    short = found.name.rpartition("/")[2] if found.name.count("/") > 1 else found.name  # a file, without its repository
    name = "".join(c if c.isprintable() and c != "@" else "-" for c in short)[-LONGEST_NAME:]
    taken = {*MODELS, *TITLES.values(), *_opened}
    names = (name, f"{name} ({found.program})", *(f"{name} ({found.program} {n})" for n in range(2, MOST_OPENED + 3)))
    id = next(each for each in names if each not in taken)
    spec = ModelSpec(id=id, title=id, source="folder", location=found.path)
    _opened = dict([*_opened.items()][1 - MOST_OPENED :]) | {id: spec}
    return id


def opened() -> dict[str, ModelSpec]:
    """The models of other programs that were opened, by their ids."""
    return _opened


def trained(name: str) -> ModelSpec | None:
    """A run of Train as a model, by its id or its title; None for anything else. Whether it is kept is known when it is loaded."""
    if (key := text_training.key_of(name)) is not None:
        return text_training.described(key)
    try:
        spec = watched_training.named(name)
    except HeadlightError:
        return None
    return None if spec is None else watched_training.described(spec)


def spec_of(model_id: str) -> ModelSpec:
    """One of MODELS, of those opened since or of the runs of Train, or a point along the training of one: "copy@00122".

    Raises CheckpointError for anything else.
    """
    if (spec := MODELS.get(model_id) or _opened.get(model_id)) is not None:
        return spec
    name, _, point = model_id.partition("@")
    base = MODELS.get(name) or trained(name)
    if base is None:
        raise CheckpointError(f"There is no model {model_id!r} here. Choose one of {', '.join(TITLES.values())}.")
    return checkpoints.at_point(base, point) if point else base


def load(model_id: str, **options: Any) -> Loaded:
    """One that spec_of() knows, and nothing else. Raises CheckpointError. Where a folder lies stays with the operator."""
    if (key := text_training.key_of(model_id)) is not None:
        options.pop("progress", None)
        return own_texts.opened(key, **options)
    spec = spec_of(model_id)
    if spec.source in ("package", "shipped"):
        return checkpoints.load(model_id, **options)
    try:
        loaded = checkpoints.load(spec.location, **options)
    except CheckpointError as error:
        raise CheckpointError(str(error).replace(spec.location, spec.title)) from error
    if spec.source == "folder":
        spec = replace(spec, location=spec.id)
    return replace(loaded, spec=replace(loaded.spec, id=spec.id, title=spec.title, location=spec.location))
