"""Walks through every room, its labs and tabs: look at every control, press it, and press it while answers are delayed (walking.py)."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import parse_qsl, urlencode, urlsplit

import pytest
from playwright.sync_api import Page, expect

from app.shell import registry
from tests.app import walking
from tests.app.browsing import PATIENCE, Screen
from tests.app.lab import sized
from tests.app.plain import Plain

APP = "app/main.py"
MODELS = ("smollm2", "minilm", "translator")
SIZES = {"1280": (1280, 720), "1920 projected": (1920, 1080), "390": (390, 844)}
PLACES = [room.id for room in registry.rooms() if room.message is not None]
APART = [room.id for room in registry.rooms() if room.message is None]  # these need the application around them
PARTS = ("lab", "page", "show", "part")  # parameters of an address that the tabs of a room set
# Needs the class, which the plain page has not; tests/app/test_classroom_screen.py presses it.
ELSEWHERE = ("Share this screen",)
MOST = 90  # controls of one part that are pressed


def place_of(url: str) -> tuple[tuple[str, str], ...]:
    said = dict(parse_qsl(urlsplit(url).query))
    return tuple((name, said[name]) for name in PARTS if name in said)


def open_link(screen: Screen, link: str, is_kept: bool = False) -> None:
    """Open a link and wait until it is drawn. With `is_kept`, a page that is untouched since then is left as it is."""
    if isinstance(screen, Plain):
        screen.opened(link) if is_kept else screen.open(link)
        return
    screen.page.goto(f"{screen.address}/{link}")
    for room in screen.page.locator(".hl").all():
        expect(room).to_have_attribute("data-painted", "1", timeout=PATIENCE)
    screen.idle()


def parts(screen: Screen, room: str, model: str) -> Iterator[str]:
    """Links to a room and to each of its labs and tabs, which are found by pressing the tabs."""
    first = f"?{urlencode({'view': room, 'model': model})}"
    open_link(screen, first)
    seen = {place_of(screen.page.url)}
    yield first
    for control in walking.listed(screen.page):
        if not control["isSegment"] or not walking.is_to_act(control):
            continue
        open_link(screen, first, is_kept=True)
        walking.begin(screen.page)
        try:
            walking.press(screen.page, control)
        except walking.Gone:
            continue
        screen.page.wait_for_timeout(60 if isinstance(screen, Plain) else 1000)
        where = place_of(screen.page.url)
        if where not in seen:
            seen.add(where)
            yield f"?{urlsplit(screen.page.url).query}"


def project(page: Page, is_projected: bool) -> None:
    page.evaluate("on => headlight.settings.set('projector', on ? 'true' : null)", is_projected)


def unseen(screen: Screen, room: str, model: str, size: str) -> dict[str, list[str]]:
    """Faults of what is seen, by link."""
    wrong = {}
    for link in parts(screen, room, model):
        open_link(screen, link)
        project(screen.page, "projected" in size)
        sized(screen.page, *SIZES[size])
        screen.page.wait_for_timeout(200)
        walking.rested(screen.page)
        if found := walking.look(screen.page):
            wrong[link] = found
        project(screen.page, False)
        sized(screen.page, *SIZES["1280"])
    return wrong


def unmoved(screen: Screen, room: str, model: str) -> list[str]:
    """Controls whose press does nothing, and panels that open wrongly."""
    wrong = []
    pressed: set[str] = set()
    for link in [*parts(screen, room, model)]:
        open_link(screen, link)
        walking.rested(screen.page)
        for control in walking.listed(screen.page)[:MOST]:
            if control["id"] in pressed or not walking.is_to_act(control):
                continue
            pressed.add(control["id"])
            open_link(screen, link, is_kept=True)
            if (fault := walking.dead(screen.page, control)) and not any(name in fault for name in ELSEWHERE):
                wrong.append(f"{link} {fault}")
            elif panel := walking.open_panels(screen.page):
                wrong += [f"{control['told']} → {one}" for one in panel]
            screen.page.keyboard.press("Escape")
    return wrong


@pytest.mark.thorough(but=2)
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("room", PLACES)
def test_every_control_is_seen_and_reached(plain: Plain, room: str, model: str, size: str) -> None:
    assert unseen(plain, room, model, size) == {}


@pytest.mark.thorough
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("room", APART)
def test_every_control_of_the_application_is_seen_and_reached(screen: Screen, room: str, size: str) -> None:
    assert unseen(screen, room, MODELS[0], size) == {}


@pytest.mark.thorough(but=1)
@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("room", PLACES)
def test_every_control_does_something(plain: Plain, room: str, model: str) -> None:
    assert unmoved(plain, room, model) == []


@pytest.mark.thorough
@pytest.mark.parametrize("room", APART)
def test_every_control_of_the_application_does_something(screen: Screen, room: str) -> None:
    assert unmoved(screen, room, MODELS[0]) == []


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
