"""Step through: one token through one layer, every number of it."""

from app.kit.room import Room
from app.rooms.step import message, params, routes, view
from app.rooms.step import words as step_words

ROOM = Room(
    id="step",
    title=step_words.TITLE,
    group="look",
    line=step_words.LINE,
    show=view.show,
    params=params.PARAMS,
    run=view.run_of,
    message=message.message,
    routes=routes.ROUTES,
)
