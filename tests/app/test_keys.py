"""Every key that a room hears is told in its list of keys, which "?" and a button open."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.sync_api import expect

from app.kit import words as kit_words
from app.rooms.masks import words as masks
from app.rooms.positions import words as positions
from app.rooms.step import words as step
from tests.app.browsing import PATIENCE
from tests.app.lab import Lab
from tests.app.plain import Plain

APP = "app/main.py"
ROOMS = {"masks": masks, "step": step, "positions": positions}
HEARD = re.compile(r"^  keys = \{\n(.*?)^  \};", re.DOTALL | re.MULTILINE)
KEY = re.compile(r"^    (?:\"(.+?)\"|(\w+)):", re.MULTILINE)


def heard(room: str) -> set[str]:
    """The keys that the room's own code acts on."""
    found: set[str] = set()
    for path in Path(f"app/rooms/{room}/browser").glob("*.js"):
        for block in HEARD.findall(path.read_text("utf-8")):
            found |= {quoted or plain for quoted, plain in KEY.findall(block)}
    return found


def test_keys_are_found_in_the_code():
    assert heard("masks") == {"s", "b"} and " " in heard("step")


@pytest.mark.thorough(but=1)
@pytest.mark.parametrize("room", ROOMS)
def test_every_key_of_a_room_is_in_its_list(plain: Plain, room: str):
    told = ROOMS[room].COMPONENT["keys_told"]
    assert heard(room) <= told.keys() and {"arrows", "pages"} <= told.keys()
    page = type("Room", (Lab,), {"ROOM": room})(plain)
    page.open(model="Storyteller")
    listed = page.root.locator(".keylist")
    expect(listed).to_be_hidden()
    page.page.keyboard.press("?")
    expect(listed).to_be_visible(timeout=PATIENCE)
    named = kit_words.COMPONENT["keys_named"]
    own = {named.get(key, key.upper() if len(key) == 1 else key) for key in told}
    keys = listed.locator("kbd").all_inner_texts()
    own |= {"/", "H", "P", "F", "S", "Esc", "?"}
    assert own == set(keys) and len(keys) == len(set(keys))
    says = listed.locator("dd").all_inner_texts()
    assert len(says) == len(keys) and all(text.strip() for text in says)
    page.page.keyboard.press("Escape")
    expect(listed).to_be_hidden()
    page.press(kit_words.COMPONENT["keys"])
    expect(listed).to_be_visible()
    assert page.axe() == []


def test_b_compares_before_and_after_in_masks(plain: Plain):
    page = type("Room", (Lab,), {"ROOM": "masks"})(plain)
    page.open(model="Storyteller")
    page.has("stop", "1")
    page.page.keyboard.press("b")
    assert "whose=model" in page.link("whose=model")
    page.page.keyboard.press("b")
    assert "stop=1" in page.link("whose=yours")
