"""Strips wrappers and prefixes from tensor names, so that they match the names of their family."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from ..errors import CheckpointError
from .files import Stored

WRAPPERS = {  # part of a tensor's name -> the wrapper that inserted it
    "_orig_mod": "torch.compile",
    "module": "DataParallel",
    "_fsdp_wrapped_module": "FSDP",
    "_checkpoint_wrapped_module": "activation checkpointing",
    "_forward_module": "Lightning",
}
# Prefixes of a text backbone, or of a model wrapped by PEFT.
BEFORE = ("model.language_model.", "language_model.", "model.text_model.", "base_model.model.", "transformer.")


def strip_wrappers(name: str, wraps: Iterable[str] = WRAPPERS) -> str:
    """A tensor's name without the parts inserted by wrappers."""
    return ".".join(part for part in name.split(".") if part not in wraps)


def strip_prefix(prefix: str, tables: Sequence[str], tensors: Mapping[str, Stored]) -> dict[str, Stored]:
    """The tensors without wrappers, without a prefix in BEFORE, and without the family's own `prefix`.

    `tables` are the family's names of the token table, which show whether another prefix comes first. Raises CheckpointError if two
    tensors end up with the same name.
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
