"""Train's message: every task and twin, before anything is trained."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date

from app.export import about
from app.kit import params as kit_params
from app.kit.room import Message
from app.rooms.train import records
from app.rooms.train.component import PARAMS
from core.learn.watched_training import BATCH, LIVE, STEPS, VARIANTS, Spec
from core.plan import parameters


async def message(_: object, said: Mapping[str, str]) -> Message:
    """The message for what a link says. It is of no run of the visitor's."""
    values, notes = kit_params.read(PARAMS, None, said)
    return Message(header(), values, notes)


def header() -> dict[str, object]:
    """The facts of every task and twin that the browser needs before anything is trained."""
    tasks = {name: {"vocabulary": list(task.vocabulary), "n_ctx": task.n_ctx} for name, task in LIVE.items()}
    twins = {
        name: {"fixed": twin.from_step_0, "heads": Spec(twin=name).config.n_heads} for name, twin in VARIANTS.items()
    }
    return {
        "tasks": tasks,
        "twins": twins,
        "parameters": {name: parameters(Spec(name).config).total for name in LIVE},
        "steps": STEPS,
        "batch": BATCH,
        "finished": records.there(),
        "weighed": {
            task: [twin for twin in twins if records.weighs(Spec(task, twin))]
            for task, twins in records.there().items()
        },
        "version": about.version(),
        "date": date.today().isoformat(),
    }
