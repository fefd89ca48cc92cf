"""One visitor's page on Memory or Compute, as its tests read it."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlencode

import pandas as pd
from playwright.sync_api import Browser, Download, Locator, Page

from tests.app.browsing import Screen, once
from tests.app.pages import lend

PATIENCE = 60_000  # ms: these pages draw charts on a server that works for others as well


class Planner(Screen):
    """A page whose sentence stands in the planner component and whose chart is Plotly's."""

    def __init__(self, page: Page, address: str) -> None:
        super().__init__(page, address)
        page.set_default_timeout(PATIENCE)

    def see(self, view: str, chart: bool = True, /, **params: str) -> Planner:
        """Open a view by its link, on the textbook encoder; ready when its sentence stands and, with `chart`, its picture."""
        if view.lower() in ("memory", "compute"):
            params = {"plan_model": "lesson-encoder"} | params
            if view.lower() == "memory":
                params = {"memory_part": "Where it goes"} | params
            view = view.lower()  # with a capital it is a link of 0.1, which counts eager attention
        self.page.goto(f"{self.address}/?{urlencode({'view': view, **params})}")
        self.painted()
        if chart:
            self.page.locator(".js-plotly-plot .main-svg").first.wait_for()
        self.idle()
        return self

    @property
    def root(self) -> Locator:
        return self.page.locator(".hl.planner")

    @property
    def headline(self) -> str:
        return self.root.locator("h2").inner_text()

    def says(self, sentence: str) -> None:
        """Wait until the sentence above the chart is this."""
        self.root.locator("h2", has_text=re.compile(f"^{re.escape(sentence)}$")).wait_for()

    def text(self, said: str | re.Pattern[str]) -> Locator:
        found = self.page.get_by_text(said).first
        found.wait_for()
        return found

    def slider(self, name: str) -> Locator:
        return self.page.locator(f"[class*=st-key-box_plan_{name}_] input[type=range]")

    def move(self, name: str, by: int) -> None:
        """Move a slider by so many places, with the keyboard, which lets go at every one."""
        for _ in range(abs(by)):
            self.slider(name).press("ArrowRight" if by > 0 else "ArrowLeft")

    def choose(self, key: str, option: str) -> None:
        """Choose from a select box."""
        self.page.locator(f"[class*=st-key-box_{key}_]").get_by_role("combobox").click()
        self.page.keyboard.type(option)  # of a long list only a part is in the page
        wanted = self.page.get_by_role("option", name=option, exact=True)
        wanted.click()
        wanted.wait_for(state="hidden")  # a list that closes takes the focus back to its box

    def part(self, title: str) -> None:
        self.page.get_by_role("radiogroup").get_by_text(title, exact=True).first.click()

    def traces(self) -> list[dict]:
        """What Plotly draws: of every trace its name, x and y."""
        drawn = "document.querySelector('.js-plotly-plot')?.data"  # none for a moment while one takes another's place
        script = f"() => JSON.stringify({drawn}?.map(t => ({{name: t.name, x: [...t.x], y: [...t.y]}}))) ?? false"
        return json.loads(once(self.page, script))

    def menu(self) -> Locator:
        """The menu of files, opened."""
        menu = self.page.get_by_role("dialog", name="Export")
        if not menu.is_visible():
            self.page.get_by_role("button", name="Export", exact=True).click()
        menu.wait_for()
        return menu

    def save(self, button: str) -> Download:
        with self.page.expect_download() as waiting:
            self.menu().get_by_role("button", name=button, exact=True).click()
        return waiting.value

    def table(self, button: str) -> tuple[pd.DataFrame, str]:
        """A CSV of the menu as a table, and the lines above it."""
        text = Path(self.save(button).path()).read_text(encoding="utf-8-sig")
        about = "\n".join(
            line.removeprefix("#").removeprefix(" ").rstrip() for line in text.splitlines() if line.startswith("#")
        )
        return pd.read_csv(io.StringIO(text), comment="#"), about


@contextmanager
def visiting(
    browser: Browser, address: str, scheme: str = "light", size: tuple[int, int] = (1280, 720)
) -> Iterator[Planner]:
    """A visitor in whose page nothing fails and who asks no other host for anything."""
    viewport = {"width": size[0], "height": size[1]}
    with lend(browser, viewport=viewport, color_scheme=scheme, reduced_motion="reduce") as page:
        screen = Planner(page, address)
        yield screen
        screen.leave()
