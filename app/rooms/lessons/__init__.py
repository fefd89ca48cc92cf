"""Lessons: steps that ask before they show, each in the room that it is about."""

from app.kit import held, progress
from app.kit.params import Param
from app.kit.room import Room
from app.rooms.lessons import opening, routes, view, words

held.register("lessons")
progress.register("lessons", len(opening.steps()))

ROOM = Room(
    id="lessons",
    title=words.TITLE,
    group="learn",
    line=words.LINE,
    show=view.show,
    old={"Lessons": {}},
    params=tuple(Param(name, "", lambda text, _: text, "") for name in opening.OWN),
    routes=routes.ROUTES,
)
