"""Generate: a text as a path through everything that it might have been."""

from app.kit.room import Room
from app.rooms.generate import choices, message, routes, view
from app.rooms.generate import words as generate_words

ROOM = Room(
    id="generate",
    title=generate_words.TITLE,
    group="try",
    line=generate_words.LINE,
    show=view.show,
    params=choices.PARAMS,
    run=routes.run_of,
    message=message.message,
    routes=routes.ROUTES,
)
