"""The models that visitors may choose: the catalog's, and those that the operator names in HEADLIGHT_MODELS."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

from core import checkpoints
from core.checkpoints import Loaded, ModelSpec
from core.errors import CheckpointError

VARIABLE = "HEADLIGHT_MODELS"  # Hub ids and folders, separated by commas

log = logging.getLogger("headlight")


def read(text: str, known: Iterable[ModelSpec]) -> dict[str, ModelSpec]:
    """The known models and those that `text` names, by the id that the URL has: a Hub id, or a folder's name.

    What is no model, or has the name of another, is left out and logged for the operator. Nothing is loaded here.
    """
    found = {spec.id: spec for spec in known}
    for name in filter(None, (part.strip() for part in text.split(","))):
        try:
            spec = checkpoints.find(name)
        except CheckpointError as error:
            log.warning("%s: %s", VARIABLE, error)
            continue
        if spec.id in found and spec.source != "folder":  # of the catalog, or named twice
            continue
        public = Path(spec.location).resolve().name if spec.source == "folder" else spec.id
        if public in found or public in {spec.title for spec in found.values()}:
            log.warning("%s: there are two models called %s; the second is left out.", VARIABLE, public)
            continue
        found[public] = replace(spec, id=public, title=public)
    return found


MODELS = read(os.environ.get(VARIABLE, ""), checkpoints.CATALOG)
TITLES = {name: spec.title for name, spec in MODELS.items()}


def load(model_id: str, **options: Any) -> Loaded:
    """One of MODELS, and nothing else. Raises CheckpointError. Where a folder lies stays with the operator."""
    spec = MODELS.get(model_id)
    if spec is None:
        raise CheckpointError(f"There is no model {model_id!r} here. Choose one of {', '.join(TITLES.values())}.")
    if spec.source == "package":
        return checkpoints.load(model_id, **options)
    try:
        loaded = checkpoints.load(spec.location, **options)
    except CheckpointError as error:
        raise CheckpointError(str(error).replace(spec.location, spec.title)) from error
    if spec.source == "folder":
        spec = replace(spec, location=spec.id)
    return replace(loaded, spec=replace(loaded.spec, id=spec.id, title=spec.title, location=spec.location))
