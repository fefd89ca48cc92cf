"""What each room may cost on its way to a browser that has never been here, in bytes and requests."""

from __future__ import annotations

from http.client import HTTPConnection
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, Page, Request

from app.shell import registry
from tests.app.browsing import PATIENCE, eventually, go_to, once
from tests.app.every_room import DRAWN

APP = "app/main.py"
# By room: kB and requests of our own files and answers on a first visit, and the same on the way there from Explore.
# Streamlit's files and Plotly's are not counted. Two in a hundred more than was measured, and a request. Every room brings the stage
# and the picture layer, which Explore brings for all, and every room with heads the chooser of one (7 kB). The makers of PDF and of films
# come when they are asked for; their buttons and sentences are 2 kB. Languages and texts from
# the right are 3 kB of each room.
BUDGET = {
    "explore": (
        (281, 94),
        (0, 0),
    ),  # 30 kB of it what it opens on, its findings, and the map of all heads, 4 the strip of the model
    "step": (
        (375, 83),
        (292, 50),
    ),  # 8 kB of it the experts and the classes, 11 the end of the pass and the strip, 12 what moves, 6 skylines and chips
    "masks": (
        (193, 69),
        (106, 32),
    ),  # 4 kB of it the rows of long texts, 4 two texts and three models beside each other
    "positions": ((201, 67), (123, 32)),
    "generate": (
        (293, 63),
        (209, 25),
    ),  # 25 kB of it the words that may follow each token of the sentence, 100 those that may follow the 26 that it writes, 9 the heads that wrote them
    "whatif": (
        (192, 72),
        (101, 33),
    ),  # on a model that writes: 14 kB of it the map of all parts, 10 the strip, 10 paths and tests, 5 sets of pairs
    "train": ((230, 48), (157, 16)),  # 102 kB of it the finished run that it opens on, with a frame every 5 steps
    "shapes": ((112, 48), (37, 15)),
    "memory": ((100, 45), (38, 16)),
    "compute": ((73, 34), (8, 5)),
    "lessons": (
        (318, 104),
        (177, 66),
    ),  # it opens on a step about Explore: that room, and 3 kB the replies to wrong answers, 1 the recap
}
TITLES = {room.id: room.title for room in registry.rooms()}


class Traffic:
    """What a page has asked for."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.finished: list[Request] = []
        # Cut off is what Chromium calls a stream, now and then, that a page has read to its end
        self.cut: list[Request] = []
        self.underway: set[Request] = set()
        page.on("request", lambda request: self.underway.add(request))
        page.on("requestfailed", lambda request: self._has_ended(request, self.cut))
        page.on("requestfinished", lambda request: self._has_ended(request, self.finished))

    def _has_ended(self, request: Request, where: list[Request]) -> None:
        self.underway.discard(request)
        if "/headlight/" in urlsplit(request.url).path:
            where.append(request)

    def forget(self) -> None:
        self.finished.clear()
        self.cut.clear()

    def taken(self) -> tuple[float, int]:
        """kB and requests of our own files and answers."""
        sizes = [request.sizes()["responseBodySize"] for request in self.finished] + [*map(_asked_again, self.cut)]
        return sum(sizes) / 1000, len(sizes)

    def settled(self) -> None:
        """Something of a room is drawn, its script has ended, and nothing is on its way, nor asked for when that has come."""
        self.page.locator(".hl:visible, [data-testid=stPlotlyChart]:visible").first.wait_for(timeout=PATIENCE)
        self.page.locator('[data-testid="stApp"][data-test-script-state="notRunning"]').wait_for()
        self.page.wait_for_load_state("networkidle")  # which a page is once: of what comes later it says nothing
        eventually(self.page, self._rests)

    def _rests(self) -> None:
        assert not self.underway
        once(self.page, "new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(true))))")
        assert not self.underway


def _asked_again(request: Request) -> int:
    """Bytes of an answer that Chromium does not count: the same is asked of the server once more."""
    address = urlsplit(request.url)
    assert address.hostname is not None
    line = HTTPConnection(address.hostname, address.port, timeout=PATIENCE / 1000)
    line.request("GET", f"{address.path}?{address.query}", headers={"Accept-Encoding": "gzip"})
    answer = line.getresponse()
    body = answer.read()
    line.close()
    assert answer.status == 200, request.url
    return len(body)


def test_every_room_has_a_budget():
    assert BUDGET.keys() == TITLES.keys()


@pytest.mark.thorough
@pytest.mark.parametrize(
    "room", [room if room == "explore" else pytest.param(room, marks=pytest.mark.thorough) for room in TITLES]
)
def test_a_room_stays_within_its_budget(browser: Browser, address: str, room: str):
    for way, (most_bytes, most_requests) in zip(("visit", "bar"), BUDGET[room], strict=True):
        if way == "bar" and room == "explore":
            continue
        context = browser.new_context(viewport={"width": 1280, "height": 720}, reduced_motion="reduce")
        page = context.new_page()
        traffic = Traffic(page)
        model = "storyteller" if room in ("generate", "whatif") else "minilm"  # one that can write
        page.goto(f"{address}/?view={room if way == 'visit' else 'explore'}&model={model}")
        traffic.settled()
        if way == "bar":
            traffic.forget()
            go_to(page, TITLES[room])
            page.wait_for_url(lambda url: f"view={room}" in url)
            # Explore's picture; a room's own may be there in its place already
            page.locator("[class='hl'][data-run][data-painted]").wait_for(state="hidden")
            page.locator(".hl.lessons" if room == "lessons" else DRAWN[room]).first.wait_for()
            traffic.settled()
        size, n = traffic.taken()
        context.close()
        assert size <= most_bytes and n <= most_requests, f"{room} by {way}: {size:.0f} kB in {n} requests"
