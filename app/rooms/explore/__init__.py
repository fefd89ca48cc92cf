"""Explore: one sentence, every head of every layer, one of them large."""

from app.attention import params
from app.kit.room import Room
from app.rooms.explore import message, routes, view
from app.shell import words as shell_words

ROOM = Room(
    id="explore",
    title=shell_words.EXPLORE,
    group="look",
    line=shell_words.EXPLORE_LINE,
    show=view.show,
    old={"Explore": {}},
    params=params.PARAMS,
    message=message.message,
    routes=routes.ROUTES,
)
