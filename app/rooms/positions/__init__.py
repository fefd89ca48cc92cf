"""Positions: where order comes in, and which heads notice when it goes."""

from app.kit.room import Room
from app.rooms.positions import choices, message, routes, view, words

ROOM = Room(
    id="positions",
    title=words.TITLE,
    group="try",
    line=words.LINE,
    show=view.show,
    params=choices.PARAMS,
    run=routes.run_of,
    message=message.message,
    routes=routes.ROUTES,
)
