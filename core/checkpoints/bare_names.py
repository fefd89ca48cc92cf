"""Tensors under the names that their family gives them, whatever the model was saved inside of."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from ..errors import CheckpointError
from .files import Stored

WRAPPERS = {  # a part of the names of a model that was saved inside of something -> the thing that it was in
    "_orig_mod": "torch.compile",
    "module": "DataParallel",
    "_fsdp_wrapped_module": "FSDP",
    "_checkpoint_wrapped_module": "activation checkpointing",
    "_forward_module": "Lightning",
}
# What comes before the names of a text half, or of a model inside of PEFT's.
BEFORE = ("model.language_model.", "language_model.", "model.text_model.", "base_model.model.", "transformer.")


def strip_wrappers(name: str, wraps: Iterable[str] = WRAPPERS) -> str:
    """A tensor's name without the parts of what the model was wrapped in."""
    return ".".join(part for part in name.split(".") if part not in wraps)


def bare(prefix: str, tables: Sequence[str], tensors: Mapping[str, Stored]) -> dict[str, Stored]:
    """The tensors by the names that a family gives them: without what wraps them, and without `prefix`, the family's own.

    `tables` are the names that a family has for the token table, which show whether there is anything else before its names.
    Raises CheckpointError where two tensors would have one name.
    """
    named = _renamed(tensors, strip_wrappers)
    before = next((b for b in BEFORE if _tables(named, b, prefix, tables)), "")
    if before and not _tables(named, "", prefix, tables):
        named = _renamed(named, lambda name: name.removeprefix(before))
    return _renamed(named, lambda name: name.removeprefix(prefix))


def _tables(named: Mapping[str, Stored], before: str, prefix: str, tables: Sequence[str]) -> bool:
    return any(f"{before}{own}{table}" in named for table in tables for own in (prefix, ""))


def _renamed(tensors: Mapping[str, Stored], rename: Callable[[str], str]) -> dict[str, Stored]:
    found: dict[str, Stored] = {}
    for name, stored in tensors.items():
        short = rename(name)
        if short in found:
            raise CheckpointError(
                f"{stored.file} holds both {found[short].name} and {stored.name}; only one can be meant as {short}."
            )
        found[short] = stored
    return found
