"""Train: a small model learns before one's eyes, beside a twin with one thing changed."""

from app.kit.room import Room
from app.rooms.train import component, message, own_text, records, routes, view, words
from app.rooms.train.recorded import view as recorded
from app.session import past_trainings

past_trainings.register("train", records.news)

ROOM = Room(
    id="train",
    title=words.TITLE,
    group="try",
    line=words.LINE,
    show=view.show,
    params=(*component.PARAMS, *recorded.PANEL.params),
    old={said: {"recorded": "on"} for said in ("Training", "training")},
    message=message.message,
    of_run=lambda _: False,
    routes=[*routes.ROUTES, *own_text.ROUTES],
)
