"""Walks through every room, its labs and tabs: look at every control, press it, and press it while answers are delayed (walking.py)."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import parse_qsl, urlencode, urlsplit

import pytest
from playwright.sync_api import Page

from app.shell import registry
from tests.app import walking
from tests.app.lab import sized
from tests.app.plain import Plain

MODELS = ("smollm2", "minilm", "translator")
SIZES = {"1280": (1280, 720), "1920 projected": (1920, 1080), "390": (390, 844)}
PLACES = [room.id for room in registry.rooms() if room.message is not None]
PARTS = ("lab", "page", "show", "part")  # parameters of an address that the tabs of a room set
# Needs the class, which the plain page has not; tests/app/test_classroom_screen.py presses it.
ELSEWHERE = ("Share this screen",)
MOST = 90  # controls of one part that are pressed


def place_of(url: str) -> tuple[tuple[str, str], ...]:
    said = dict(parse_qsl(urlsplit(url).query))
    return tuple((name, said[name]) for name in PARTS if name in said)


def parts(plain: Plain, room: str, model: str) -> Iterator[str]:
    """Links to a room and to each of its labs and tabs, which are found by pressing the tabs."""
    first = f"?{urlencode({'view': room, 'model': model})}"
    plain.open(first)
    seen = {place_of(plain.page.url)}
    yield first
    for control in walking.listed(plain.page):
        if not control["isSegment"] or not walking.is_to_act(control):
            continue
        plain.opened(first)
        walking.begin(plain.page)
        try:
            walking.press(plain.page, control)
        except walking.Gone:
            continue
        plain.page.wait_for_timeout(60)
        where = place_of(plain.page.url)
        if where not in seen:
            seen.add(where)
            yield f"?{urlsplit(plain.page.url).query}"


def project(page: Page, is_projected: bool) -> None:
    page.evaluate("on => headlight.settings.set('projector', on ? 'true' : null)", is_projected)


@pytest.mark.thorough(but=4)
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("room", PLACES)
def test_every_control_is_seen_and_reached(plain: Plain, room: str, model: str, size: str) -> None:
    wrong = {}
    for link in parts(plain, room, model):
        plain.open(link)
        project(plain.page, "projected" in size)
        sized(plain.page, *SIZES[size])
        plain.page.wait_for_timeout(200)
        walking.rested(plain.page)
        if found := walking.look(plain.page):
            wrong[link] = found
        project(plain.page, False)
        sized(plain.page, *SIZES["1280"])
    assert not wrong, "\n".join(f"{link}\n  " + "\n  ".join(found) for link, found in wrong.items())


@pytest.mark.thorough(but=1)
@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("room", PLACES)
def test_every_control_does_something(plain: Plain, room: str, model: str) -> None:
    wrong = []
    pressed: set[str] = set()
    for link in [*parts(plain, room, model)]:
        plain.open(link)
        walking.rested(plain.page)
        for control in walking.listed(plain.page)[:MOST]:
            if control["id"] in pressed or not walking.is_to_act(control):
                continue
            pressed.add(control["id"])
            plain.opened(link)
            if (fault := walking.dead(plain.page, control)) and not any(name in fault for name in ELSEWHERE):
                wrong.append(f"{link} {fault}")
            elif panel := walking.open_panels(plain.page):
                wrong += [f"{control['told']} → {one}" for one in panel]
            plain.page.keyboard.press("Escape")
    assert not wrong, "\n".join(wrong)


@pytest.mark.thorough(but=1)
@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("room", PLACES)
def test_no_number_of_the_question_before_stands_while_an_answer_is_late(plain: Plain, room: str, model: str) -> None:
    wrong = []
    pressed: set[str] = set()
    for link in [*parts(plain, room, model)]:
        plain.open(link)
        walking.rested(plain.page)
        for control in walking.listed(plain.page)[:MOST]:
            if control["id"] in pressed or not walking.is_to_act(control):
                continue
            pressed.add(control["id"])
            plain.opened(link)
            wrong += walking.old_numbers(plain.page, control)
    assert not wrong, "\n".join(wrong)
