"""Explore's message: the picture of a run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from app.attention import message as attention_message
from app.kit.room import Message, Run
from app.rooms.explore import tables


async def message(run: Run, said: Mapping[str, str]) -> Message:
    """The message for what a link says, with a sentence where the run came to numbers that are not finite."""
    found = await attention_message.message(run, said)
    return replace(found, notes=[*tables.non_finite(run.facts), *found.notes])
