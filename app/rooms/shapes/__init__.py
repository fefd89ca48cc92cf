"""Shapes: every tensor of the pass."""

from app.kit.room import Room
from app.rooms.shapes import choices, component, dropped, message, values, view, words

ROOM = Room(
    id="shapes",
    title=words.TITLE,
    group="count",
    line=words.LINE,
    show=view.show,
    old={"Shapes": {}},
    params=(*choices.PANEL.params, *component.PARAMS),
    message=message.message,
    of_run=message.is_of_run,
    routes=(*values.ROUTES, *dropped.ROUTES),
)
