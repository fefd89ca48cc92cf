"""What if: which head, which look, which change this answer depends on."""

from app.kit.room import Room
from app.rooms.whatif import changes, evidence_routes, message, routes, sets, view, words

ROOM = Room(
    id=changes.ROOM,
    title=words.TITLE,
    group="try",
    line=words.LINE,
    show=view.show,
    params=changes.PARAMS,
    run=changes.run_of,
    message=message.message,
    routes=[*routes.ROUTES, *evidence_routes.ROUTES, *sets.ROUTES],
)
