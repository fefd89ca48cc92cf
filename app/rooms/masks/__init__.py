"""Masks: who may look at whom, painted by hand, in padding, in leakage, in three kinds of attention; and why scores are divided."""

from app.kit.room import Room
from app.rooms.masks import component, message, routes, view, words

ROOM = Room(
    id="masks",
    title=words.TITLE,
    group="try",
    line=words.LINE,
    show=view.show,
    params=component.PARAMS,
    run=message.run_of,
    message=message.message,
    routes=routes.ROUTES,
)
