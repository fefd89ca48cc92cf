"""Registers the browser's part of Train, and what can be chosen there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from app.kit import scripts, stage, theme
from app.kit.params import Param, one_of, whole
from app.rooms.train import words
from app.rooms.train.records import opening_example
from app.transport import modules
from core.learn.watched_training import LIVE, MAX_STEPS, STEPS

BROWSER = Path(__file__).parent / "browser"
ENTRY = "rooms/train/browser/train.js"
TASKS = ("induction", *(name for name in LIVE if name != "induction"))
TWINS = tuple(words.COMPONENT["twins"])
MOST_SEED = 1_000_000
MOST_EXAMPLE = 40  # characters
MOST_ROWS = 64  # of a map


def _example(text: str, _: Any) -> str:
    """Anything short: what the task does not read gets its own sentence where it is looked at."""
    if not text or len(text) > MOST_EXAMPLE:
        raise ValueError
    return text


PARAMS = (
    one_of("task", *TASKS),
    one_of("twin", *TWINS),
    whole("from", "0", lambda _: STEPS),
    whole("seed", "0", lambda _: MOST_SEED + 1),
    whole("at", str(STEPS), lambda _: MAX_STEPS + 1),
    Param("example", "", _example, lambda _: words.EXAMPLE_ALLOWED.format(most=MOST_EXAMPLE)),
    Param("table", "off", one_of("table", "off", "on").read, "off, on"),
    Param("recorded", "off", one_of("recorded", "off", "on").read, "off, on"),
    whole("layer", "", lambda _: 2, empty=True),
    whole("head", "", lambda _: 16, empty=True),
    one_of("by", "finds", "back"),
    whole("row", "", lambda _: MOST_ROWS, empty=True),
    Param("own", "off", one_of("own", "off", "on").read, "off, on"),
    Param("predict", "off", one_of("predict", "off", "on").read, "off, on"),
)

modules.add("rooms/train/browser", BROWSER)
modules.add_constants(
    "rooms/train/browser/constants.js",
    WORDS=lambda: words.COMPONENT,
    PALETTES=theme.PALETTES,
    EXAMPLES={task: opening_example(task) for task in LIVE},
    STYLE=scripts.style(BROWSER / "train.css"),
)
RACE = one_of("race", "off", "on", "paused")  # whether the runs on the screen were begun: a link begins none
STAGE = stage.stage("train", PARAMS, ENTRY, is_followed=True, told=(RACE,), of_run=False)
