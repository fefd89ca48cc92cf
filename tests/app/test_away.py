"""What leaves Step through, Masks and Positions: arrays, the page that works offline, and code that gives the same numbers again."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import Browser, expect

from app.kit import words as kit_words
from app.rooms.positions import words as positions_words
from app.rooms.step import words as step_words
from tests.app.browsing import Screen
from tests.app.lab import Lab
from tests.app.plain import Plain
from tests.app.test_export import opened

KING = "The old king loved the golden bird, and the old"
READY = {"step": ("painted", "1"), "masks": ("fresh", "true"), "positions": ("pending", "false")}  # with all numbers
SAYS = {"step": ".big", "masks": ".fact", "positions": ".fact"}


class Step(Lab):
    ROOM = "step"


class Masks(Lab):
    ROOM = "masks"


class Positions(Lab):
    ROOM = "positions"


def arrays(path: Path) -> dict[str, np.ndarray]:
    with np.load(path, allow_pickle=False) as found:
        return dict(found)


def of_step(names: dict[str, Any], found: dict[str, np.ndarray]) -> None:
    assert names["numbers"].numpy() == pytest.approx(found["weight"], abs=1e-6)
    assert found["token"][2] == "animal" and found["weight"].sum() == pytest.approx(1, abs=1e-6)


def of_masks(names: dict[str, Any], found: dict[str, np.ndarray]) -> None:
    weights = names["record"].pattern(6)[0].numpy()
    assert weights == pytest.approx(found["weights"], abs=1e-6) and found["weights"][11, 3] == 0
    scores = names["record"].scores(6)[0].numpy()
    assert scores == pytest.approx(found["scores"], abs=1e-4) and found["masked"][0, 1] and not found["masked"][1, 0]
    assert list(found["keys"][1:4]) == ["The", "old", "king"]


def of_positions(names: dict[str, Any], found: dict[str, np.ndarray]) -> None:
    run, now = names["run"], names["now"]
    moved = {
        (int(a), int(b)): c for a, b, c in zip(*(found[f"moved.{x}"] for x in ("layer", "head", "moved")), strict=True)
    }
    for layer in range(6):
        true = names["measures"].moved(run.attention[layer].pattern(), now.attention[layer].pattern())
        assert true.numpy() == pytest.approx([moved[layer, head] for head in range(12)], abs=1e-5)


ROOMS = [
    (Step, {"at": "softmax"}, of_step, "ArrowRight", "Each value × its weight"),
    (Masks, {"model": "Storyteller", "text": KING, "layer": "3", "head": "6", "query": "11", "forbid": "11-3"}, of_masks, "b", "No word sees what comes later"),
    (Positions, {"order": "words", "swap": "2-8", "layer": "3", "head": "1"}, of_positions, "ArrowRight", "You swapped animal and street"),
]  # fmt: skip


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("kind", "said", "agree", "key", "then"),
    [pytest.param(*room, marks=() if room[0] is Step else pytest.mark.thorough) for room in ROOMS],
    ids=lambda one: getattr(one, "ROOM", ""),
)
def test_arrays_the_code_that_makes_them_and_the_page_that_works_offline(
    browser: Browser,
    plain: Plain,
    tmp_path: Path,
    kind: type[Lab],
    said: dict[str, str],
    agree: Any,
    key: str,
    then: str,
) -> None:
    room = kind(plain)
    room.open(**said)
    room.has(*READY[room.ROOM])
    sentence = room.root.locator(SAYS[room.ROOM])
    found = arrays(room.saved("NPZ"))
    shown = sentence.inner_text()
    assert str(found["alt"]).startswith(shown.strip()[:40])
    names: dict[str, Any] = {}
    exec(compile(str(found["snippet"]), "snippet", "exec"), names)
    agree(names, found)
    if kind is Step:
        drawn = room.saved("SVG").read_text("utf-8")
        assert "68 %" in drawn and "animal" in drawn
        assert room.saved("PNG 1×").read_bytes().startswith(b"\x89PNG")
        lines = room.saved(f"CSV: {step_words.COMPONENT['csv']}").read_text("utf-8-sig").splitlines()
        columns, *rows = csv.reader(line for line in lines if line[0] != "#")
        weights = [float(row[columns.index("weight")]) for row in rows]
        assert weights == pytest.approx(found["weight"], abs=1e-6)
    data = room.saved("HTML").read_bytes()
    assert len(data) < 3_000_000
    page, faults = opened(browser, tmp_path / f"{kind.ROOM}.html", data)
    away = kind(Screen(page, "file://"))
    away.root.and_(page.locator("[data-painted]")).wait_for()
    expect(away.root.locator(SAYS[room.ROOM])).to_have_text(shown)
    assert "hl.trace" in (page.locator("#snippet").text_content() or "")
    (away.root.locator(".grid") if kind is Positions else page.locator("body")).press(key)
    expect(away.root.locator(SAYS[room.ROOM])).to_contain_text(then)
    away.press("Export")
    menu = away.root.get_by_role("dialog")
    expect(menu.get_by_role("button", name="NPZ")).to_be_visible()
    expect(menu.get_by_role("button", name="HTML")).to_have_count(0)  # it is one already
    page.keyboard.press("Escape")
    if kind is Positions:  # what the page has no answer for, it says
        away.press(positions_words.COMPONENT["shuffle"])
        expect(away.root.locator(".refused")).to_have_text(kit_words.COMPONENT["offline_missing"])
    assert faults == []
    page.context.close()
