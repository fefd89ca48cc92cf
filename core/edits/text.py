"""Edits as text for links, and back: `ablate_decoder_L0_H5~mask_forbid_L3_H6_11x3.11x10~temperature_2`.

Edits are joined by ~. An edit is its word and the values that differ from the defaults, joined by _. Only A-Z a-z 0-9 - . _ and ~
occur, which need no escapes in a URL (RFC 3986, section 2.3).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import MISSING, fields

from ..errors import InterventionError
from .edit import KINDS, Edit, Intervention, kinds_of
from .fields import short

MOST_CHARACTERS = (
    4_000  # of the edits in a link, which leaves room for the rest of the URL within the limits of servers and browsers
)
MOST_EDITS = 500


def to_text(interventions: Iterable[Intervention]) -> str:
    """Edits as text for from_text(). Raises InterventionError for interventions other than edits, and if the text is too long."""
    parts = [edit_text(edit) for edit in interventions]
    text = "~".join(parts)
    if len(text) > MOST_CHARACTERS or len(parts) > MOST_EDITS:
        raise InterventionError(
            f"These {len(parts):,} edits take {len(text):,} characters; a link holds {MOST_EDITS} edits of {MOST_CHARACTERS:,} "
            "characters together. Edit whole keys, whole queries or regions instead of single cells."
        )
    return text


def from_text(text: str) -> tuple[Edit, ...]:
    """The edits of a text by to_text() or by hand. Raises only InterventionError, with the reason."""
    if len(text) > MOST_CHARACTERS:
        raise InterventionError(f"The edits take {len(text):,} characters, and {MOST_CHARACTERS:,} is the most.")
    parts = text.split("~") if text else []
    if len(parts) > MOST_EDITS:
        raise InterventionError(f"These are {len(parts):,} edits, and {MOST_EDITS} is the most.")
    return tuple(map(_read_edit, parts))


def edit_text(edit: Intervention) -> str:
    """One edit as text of any length. Raises InterventionError for interventions other than edits."""
    if not isinstance(edit, Edit) or KINDS.get(edit.word) is not type(edit):
        known = ", ".join(kind.__name__ for kind in KINDS.values())
        raise InterventionError(f"{type(edit).__name__} cannot be written as text. These can: {known}.")
    tokens = [edit.word]
    for field in fields(edit):
        value = getattr(edit, field.name)
        if value != field.default:
            tokens.append(kinds_of(type(edit))[field.name].text_of(value))
    return "_".join(tokens)


def _read_edit(part: str) -> Edit:
    word, *tokens = part.split("_")
    edit = KINDS.get(word)
    if edit is None:
        raise InterventionError(f"There is no edit “{short(word)}”. There are: {', '.join(KINDS)}.")
    kinds = kinds_of(edit)
    values = {}
    for token in tokens:
        matches = ((name, value) for name, kind in kinds.items() if (value := kind.read(token)) is not None)
        name, value = next(matches, (None, None))
        if name is None:
            raise InterventionError(f"“{short(token)}” says nothing of {word}. {_usage(edit)}")
        if name in values:
            raise InterventionError(f"“{short(part)}” says twice what its {name} is. Leave one out.")
        values[name] = value
    missing = [field.name for field in fields(edit) if field.default is MISSING and field.name not in values]
    if missing:
        raise InterventionError(f"“{short(part)}” does not say its {' and '.join(missing)}. {_usage(edit)}")
    return edit(**values)


def _usage(edit: type[Edit]) -> str:
    """The format of an edit, in words."""
    known = [f"{name} as {kind.form}" for name, kind in kinds_of(edit).items()]
    return f"It takes {', '.join(known)}, joined by _."
