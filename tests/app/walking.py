"""Walks through the room on a page: look at every control, press every control, and press it while answers are delayed.

The walks know no room. They read the controls, and the effect of each press, from the page, so a new room needs no code here.
"""

from __future__ import annotations

import io
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from PIL import Image, ImageChops, ImageDraw
from playwright.sync_api import ElementHandle, Error, Page, Route

SCRIPT = Path(__file__).with_name("walking.js").read_text(encoding="utf-8")
CHANGED = 24  # pixels that must differ for a visitor to notice
LONGEST = 3000  # ms in which a press must have a visible effect
TYPED = "abcdef"  # typed into text fields


@dataclass(frozen=True)
class State:
    """Everything a visitor can perceive of a page: address, text and pixels."""

    url: str
    said: str
    picture: bytes

    @classmethod
    def of(cls, page: Page) -> State:
        return cls(page.url, page.evaluate("walk.said()"), page.screenshot(animations="disabled", caret="hide"))


def begin(page: Page) -> None:
    """Put the functions of walking.js into the page."""
    page.evaluate(SCRIPT)


def look(page: Page) -> list[str]:
    """Faults in the layout of controls and texts."""
    begin(page)
    found: list[str] = page.evaluate("[...walk.panels(), ...walk.overlaps(), ...walk.cut(), ...walk.unreached()]")
    return sorted(set(found))


def open_panels(page: Page) -> list[str]:
    """Faults of the open panels."""
    try:
        begin(page)
        return page.evaluate("walk.panels()")
    except Error as error:
        if "navigation" in str(error):  # a link to another page was pressed
            return []
        raise


def listed(page: Page) -> list[dict[str, Any]]:
    """The visible controls, with their names and states."""
    begin(page)
    return page.evaluate("walk.listed()")


def is_to_act(control: dict[str, Any]) -> bool:
    """Whether a press must have an effect. Disabled controls and the current choice of a group need none."""
    if control["isOff"] or (control["isOn"] and (control["isSegment"] or control["kind"] == "a")):
        return False
    if control["kind"] == "select":
        return len(control["options"]) > 1
    return control["role"] != "application"  # an application has its own keys, which the room lists


class Gone(Exception):
    """A control that is no longer on the page."""


def press(page: Page, control: dict[str, Any], tries: int = 3) -> None:
    """Operate a control. Raises Gone if it is no longer on the page, and Error if it cannot be reached.

    A control that is rebuilt during the press is looked up again.
    """
    try:
        _press(page, control)
    except Error as error:
        if "not attached" not in str(error) or tries == 1:
            raise
        press(page, control, tries - 1)


def _press(page: Page, control: dict[str, Any]) -> None:
    found = page.evaluate_handle("id => walk.found(id)", control["id"]).as_element()
    if found is None:
        raise Gone(control["told"])
    found.evaluate("at => at.scrollIntoView({ block: 'nearest', inline: 'nearest' })")
    kind = control["kind"]
    if kind == "select":
        other = next(value for value in control["options"] if value != control["value"])
        found.select_option(other, timeout=2000)
    elif kind == "range" or control["role"] == "slider":
        found.focus()
        _slide(page, found, control)
    elif kind in ("text", "number", "search", "textarea"):
        found.focus()
        page.keyboard.press("ControlOrMeta+a")
        page.keyboard.type(("4" if control["value"] == "3" else "3") if kind == "number" else TYPED)
        page.keyboard.press("Enter")
    else:  # click the centre of its first line, even if something covers it, as a visitor would
        box = found.evaluate("at => JSON.parse(JSON.stringify(at.getClientRects()[0] ?? null))")
        if box is None:
            raise Gone(control["told"])
        left, top, width, height = (box[name] for name in ("left", "top", "width", "height"))
        page.mouse.click(left + width / 2, top + height / 2)


def _slide(page: Page, found: ElementHandle, control: dict[str, Any]) -> None:
    before = page.evaluate("walk.said()"), page.url
    for key in ("ArrowRight", "ArrowLeft", "ArrowUp", "ArrowDown"):
        page.keyboard.press(key)
        page.wait_for_timeout(120)
        if (page.evaluate("walk.said()"), page.url) != before:
            return


def shows(page: Page, before: State, control: dict[str, Any]) -> bool:
    """Whether the page changes visibly outside the control within LONGEST."""
    waited = 0
    while waited <= LONGEST:
        if page.url != before.url:
            return True
        begin(page)
        if page.evaluate("walk.said()") != before.said or _differs(page, before.picture):
            return True
        page.wait_for_timeout(150)
        waited += 300
    return False


def _differs(page: Page, before: bytes) -> bool:
    now = page.screenshot(animations="disabled", caret="hide")
    if now == before:
        return False
    one, other = (Image.open(io.BytesIO(png)).convert("L") for png in (before, now))
    if one.size != other.size:
        return True
    apart = ImageChops.difference(one, other).point(lambda value: 255 if value > 12 else 0)
    if (box := _pressed(page)) is not None:
        ImageDraw.Draw(apart).rectangle(box, fill=0)
    return sum(apart.histogram()[1:]) >= CHANGED


def _pressed(page: Page) -> tuple[float, float, float, float] | None:
    """The box of the focused control, whose focus ring and pressed colour are no effect."""
    box = page.evaluate(
        """() => {
          let at = document.activeElement;
          while (at?.shadowRoot?.activeElement) at = at.shadowRoot.activeElement;
          if (!at || at === document.body) return null;
          const { left, top, right, bottom } = at.getBoundingClientRect();
          return (right - left) * (bottom - top) < 40000 ? [left - 6, top - 6, right + 6, bottom + 6] : null;
        }"""
    )
    return tuple(box) if box else None


def dead(page: Page, control: dict[str, Any]) -> str:
    """The fault of a control when pressed, or "" if the press had an effect."""
    page.mouse.move(0, 0)
    begin(page)
    before = State.of(page)
    now = next((one for one in listed(page) if one["id"] == control["id"]), None)
    if now is None or not is_to_act(now):  # a late answer has changed it
        return ""
    try:
        with _downloads(page) as files:
            press(page, control)
            if shows(page, before, control) or files:
                return ""
    except Gone:  # a late answer has removed it
        return ""
    except Error as error:
        if "navigation" in str(error):  # a link to another page
            return ""
        return f"{control['told']}: {str(error).splitlines()[0]}"
    return f"{control['told']}: nothing happens"


class _downloads:
    """Collects the downloads that start in the block."""

    def __init__(self, page: Page) -> None:
        self.page, self.files = page, list[Any]()

    def __enter__(self) -> list[Any]:
        self.page.on("download", self.take)
        return self.files

    def take(self, file: object) -> None:
        self.files.append(file)

    def __exit__(self, *_: object) -> None:
        self.page.remove_listener("download", self.take)


class _Held:
    """Delays all requests of the page in the block until `let_go` is called."""

    def __init__(self, page: Page) -> None:
        self.page, self.routes, self._lets_go = page, list[Route](), False

    def __enter__(self) -> _Held:
        self.page.route("**/headlight/**", self._hear)
        return self

    def _hear(self, route: Route) -> None:
        is_held = route.request.resource_type == "fetch" and not self._lets_go
        self.routes.append(route) if is_held else route.continue_()

    def let_go(self) -> None:
        self._lets_go = True
        for route in self.routes:
            route.continue_()

    def __exit__(self, *_: object) -> None:
        self.page.unroute("**/headlight/**", self._hear)


def rested(page: Page) -> dict[str, str]:
    """The numbers of the page, once they have stopped changing."""
    begin(page)
    before: dict[str, str] = {}
    for _ in range(LONGEST // 300):
        page.wait_for_timeout(300)
        now: dict[str, str] = page.evaluate("walk.numbers()")
        if now == before:
            break
        before = now
    return before


def old_numbers(page: Page, control: dict[str, Any]) -> list[str]:
    """Numbers of the previous question that are still shown after a press, while its answers are delayed."""
    page.mouse.move(0, 0)
    begin(page)
    before = page.evaluate("walk.numbers()")
    with _Held(page) as held:
        try:
            press(page, control)
        except (Gone, Error):
            return []  # reported by `dead`
        page.wait_for_timeout(300)
        meanwhile = page.evaluate("window.walk?.numbers() ?? null")
        asked = bool(held.routes)
        held.let_go()
        if not asked or meanwhile is None:  # `walk` is gone from a page that a link led to
            return []
        try:
            after = rested(page)
        except Error as error:
            if any(text in str(error) for text in ("navigation", "walk is not defined")):
                return []
            raise
    return [
        f"{control['told']}: “{text}” is still shown before “{after[where]}”"
        for where, text in meanwhile.items()
        if before.get(where) == text and not after.get(where, text).startswith(text)  # a sentence may be added
    ]
