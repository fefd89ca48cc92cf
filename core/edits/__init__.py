"""Edits of a run: frozen, hashable descriptions of changes, their hooks, and their text form for links."""

from ..errors import InterventionError
from .edit import KINDS, Edit, Intervention, hooks_of
from .fields import Site, StackName
from .head_edits import Ablate, NoScale, ScaleHead, Temperature
from .masks import AsPadding, DropCausalMask, DropPadding, EditMask, MaskAfterSoftmax, MaskFill, SetMask, Window
from .positions import DropPositions, SetPositions, ShiftPositions, ShufflePositions
from .text import edit_text, from_text, to_text
from .words import SwapWords

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
