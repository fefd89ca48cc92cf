"""Lessons: steps that ask before they show, each in the room that it is about."""

from app.kit.params import Param
from app.kit.room import Room
from app.rooms.lessons import opening, view, words

ROOM = Room(
    id="lessons",
    title=words.TITLE,
    group="learn",
    line=words.LINE,
    show=view.show,
    old=("Lessons",),
    params=tuple(Param(name, "", lambda text, _: text, "") for name in opening.OWN),
    steps=len(opening.steps()),
    holds_rooms=True,
)
