"""Edits of a run: frozen, hashable descriptions of changes, their hooks, and their text form for links."""

from ..errors import InterventionError
from .edit import KINDS, Edit, Intervention, edit_text, from_text, hooks_of, to_text
from .fields import Site, StackName
from .kinds import (
    Ablate,
    AsPadding,
    DropCausalMask,
    DropPadding,
    DropPositions,
    EditMask,
    MaskAfterSoftmax,
    MaskFill,
    NoScale,
    ScaleHead,
    SetMask,
    SetPositions,
    ShiftPositions,
    ShufflePositions,
    SwapWords,
    Temperature,
    Window,
)

__all__ = [
    "KINDS",
    "Ablate",
    "AsPadding",
    "DropCausalMask",
    "DropPadding",
    "DropPositions",
    "Edit",
    "EditMask",
    "Intervention",
    "InterventionError",
    "MaskAfterSoftmax",
    "MaskFill",
    "NoScale",
    "ScaleHead",
    "SetMask",
    "SetPositions",
    "ShiftPositions",
    "ShufflePositions",
    "Site",
    "StackName",
    "SwapWords",
    "Temperature",
    "Window",
    "edit_text",
    "from_text",
    "hooks_of",
    "to_text",
]
