"""Edits in words: what each kind of intervention does to a run, as a person would say it."""

from __future__ import annotations

from collections.abc import Iterable

from app.kit import numbers, words
from core import edits as kinds
from core.edits import Edit


def said(edit: Edit) -> str:
    """One edit: "head 5 of layer 0 is silenced"."""
    sentence = words.EDITS[edit.word]
    if isinstance(edit, kinds.Ablate):
        sentence = words.EDIT_MEAN if edit.to == "mean" else sentence
    elif isinstance(edit, kinds.EditMask):
        sentence = words.EDIT_ALLOWED if edit.allowed else sentence
    elif isinstance(edit, kinds.SetMask):
        sentence = words.EDIT_MASKS[edit.kind]
    own = {
        name: getattr(edit, name)
        for name in ("factor", "value", "size", "seed", "by", "first", "second")
        if hasattr(edit, name)
    }
    return sentence.format(
        where=_where(edit), **{name: numbers.plain(value) for name, value in own.items() if value is not None}
    )


def listed(edits: Iterable[Edit]) -> str:
    """Several, for one line; beyond the first few only how many more there are."""
    sentences = [said(edit) for edit in edits]
    more = len(sentences) - words.MOST_EDITS
    shown = "; ".join(dict.fromkeys(sentences[: words.MOST_EDITS]))
    return shown + (words.EDITS_MORE.format(n=more) if more > 0 else "")


def _where(edit: Edit) -> str:
    """Its head, layer, stack and kind of attention; "every head" where an edit is of all."""
    head, layer = getattr(edit, "head", None), getattr(edit, "layer", None)
    stack, site = getattr(edit, "stack", None), getattr(edit, "site", None)
    parts = [words.EDIT_HEAD.format(head=head) if head is not None else words.EDIT_EVERY_HEAD]
    if layer is not None:
        parts.append(words.EDIT_LAYER.format(layer=layer))
    if stack is not None:
        parts.append(words.EDIT_STACK.format(stack=stack))
    if site == "cross_attn":
        parts.append(words.EDIT_CROSS)
    return " ".join(parts)
