"""A visitor walks through the real app: after each move screen, address and a fresh browser at that address say the same.

They type, choose models and examples, go from room to room, choose in them, change the run in What if, take a lesson, go back and
forward, and reload. WALK=300 walks further, and WALK_SEED=7 the same way again.
"""

from __future__ import annotations

import json
import os
import random
from collections.abc import Callable
from urllib.parse import parse_qsl, urlsplit

import pytest
from playwright.sync_api import Browser, Locator, Page

from app.rooms.whatif import words as whatif_words
from app.session.examples import EXAMPLES, Example
from app.session.models import TITLES
from app.shell import words
from tests.app.browsing import PATIENCE, Screen, bar_hears, idle, once

APP = "app/main.py"
MOVES = int(os.environ.get("WALK", "128"))
SEED = int(os.environ.get("WALK_SEED", "7"))  # the same way each time; WALK_SEED=$RANDOM looks for new ones
TEXTS = (
    "Birds sing at dawn because they are happy.",
    "The dog chased the cat because it was angry.",
    "Mary gave the book to John.",
)
MODELS = {"minilm": (6, 12), "storyteller": (6, 8)}  # that read all of TEXTS, with their layers and heads
ROOMS = ("explore", "step", "masks", "positions", "whatif", "shapes", "memory", "compute")
SIZED = ("memory", "compute")  # whose sliders and parts are Streamlit's
IN_LESSON = ("step", "seen", "said", "right")  # what the rail says
# Of what a room says of itself: what is chosen in it, and not how large it is or how long it took
SAYS = (
    "run",
    "site",
    "layer",
    "head",
    "query",
    "locked",
    "pin",
    "show",
    "scale",
    "kind",
    "hide",
    "words",
    "lab",
    "at",
    "stack",
)
SAYS += ("sweep", "pick", "moved", "page", "members", "cell", "show", "tensor", "as", "break", "chart")
SLIDERS = "[class*=st-key-box_plan_] input[type=range]"
MODEL = "[class*=st-key-box_model_] input"
KEEPS = (whatif_words.COMPONENT["keep"], whatif_words.COMPONENT["undo"])
# That fit wherever they are: of sizes that do not, a page keeps the picture before them, which a fresh browser never had.
FREE = ("batch", "layers", "d_ff", "vocab")
QUIET = 450  # ms: choices that follow each other more closely than 200 are one step


READY = """({ dataset }) => !dataset.underway && (dataset.pending ?? 'false') === 'false' && (dataset.settled ?? 'true') === 'true'
    && (dataset.ready ?? 'true') === 'true'"""


def parts(page: Page) -> list[Locator]:
    """The parts of the page: a room, and in a lesson the rail before it."""
    return page.locator(".hl[data-painted]").all()


def settled(page: Page) -> None:
    """Until all that was done is drawn, told, and written into the address."""
    idle(page)
    page.wait_for_timeout(QUIET)
    idle(page)
    for _ in range(PATIENCE // 100):
        if (found := parts(page)) and all(part.evaluate(READY) for part in found):
            break
        page.wait_for_timeout(100)
    idle(page)


def screen_of(page: Page) -> dict[str, str]:
    """The screen: its room, text and model where it asks for them, and the choices in it."""
    found = {}
    for part in parts(page):
        said = json.loads(part.evaluate("root => JSON.stringify(root.dataset)"))
        is_rail = "lessons" in (part.get_attribute("class") or "").split()
        found |= {f"lesson {name}": said[name] for name in IN_LESSON} if is_rail else pick(said, SAYS)
    for name, box in {"text": sentence(page), "model": page.locator(MODEL).first}.items():
        if box.count():
            found[name] = box.input_value()
    found |= {f"slider {slider.get_attribute('aria-label')}": said_by(slider) for slider in page.locator(SLIDERS).all()}
    for headline in page.locator(".hl.planner h2").all():
        found["headline"] = headline.inner_text()
    found["room"] = page.locator("nav a[aria-current]").first.get_attribute("data-room") or ""
    return found


def said_by(slider: Locator) -> str:
    return slider.get_attribute("aria-valuetext") or ""


def pick(said: dict[str, str], names: tuple[str, ...]) -> dict[str, str]:
    """Its facts; an empty text is the same as none."""
    return {name: said[name] for name in names if said.get(name)}


def sentence(page: Page) -> Locator:
    return page.get_by_role("textbox", name="Sentence", exact=True)


def address_of(page: Page) -> dict[str, str]:
    return dict(parse_qsl(urlsplit(page.evaluate("location.href")).query, keep_blank_values=True))


Move = Callable[[], None]


class Walk:
    def __init__(self, screen: Screen, fresh: Page) -> None:
        self.page, self.fresh = screen.page, fresh
        self.random = random.Random(SEED)
        self.moves: list[str] = []
        settled(self.page)
        self.history, self.place = [address_of(self.page)], 0

    @property
    def room(self) -> str:
        return address_of(self.page)["view"]

    def step(self) -> None:
        name, move = self.random.choice(self.lesson_moves() if self.room == "lessons" else self.moves_here())
        self.moves.append(f"{self.room}: {name}")
        move()
        self.page.mouse.move(1, 1)  # what lies under a pointer that rests is on the screen, and in no address
        settled(self.page)
        if name not in ("back", "forward", "reload"):
            self.moved()
        self.check()

    def moves_here(self) -> list[tuple[str, Move]]:
        moves: list[tuple[str, Move]] = []
        if sentence(self.page).is_visible():
            moves += [(f"type {text[:12]}", lambda text=text: self.type(text)) for text in TEXTS]
        moves += [(f"enter {room}", lambda room=room: self.enter(room)) for room in ROOMS if room != self.room]
        moves += [("choose", self.choose)] * 6 + [("back", self.back)] * 3 + [("forward", self.forward)]
        moves += [("reload", self.reload), ("lessons", lambda: self.enter("lessons"))]
        if self.page.locator(MODEL).first.is_visible():
            moves += [
                (f"model {title}", lambda title=title: self.model(title)) for title in map(TITLES.__getitem__, MODELS)
            ]
        if self.page.get_by_role("button", name=words.EXAMPLES).is_visible():
            moves += [(f"example {one.title[:16]}", lambda one=one: self.example(one)) for one in self.examples()[:2]]
        if self.room == "whatif":
            moves += [("edit", self.edit)] * 6
        return moves

    def lesson_moves(self) -> list[tuple[str, Move]]:
        """A visitor looks, goes on, and leaves again."""
        moves: list[tuple[str, Move]] = [("on", lambda: self.turn("PageDown"))] * 4
        moves += [("step back", lambda: self.turn("PageUp")), ("say", self.say), ("say", self.say)]
        moves += [("back", self.back)] * 2 + [("forward", self.forward), ("reload", self.reload)]
        return moves + [(f"enter {room}", lambda room=room: self.enter(room)) for room in ROOMS]

    def examples(self) -> list[Example]:
        """Of the model on the screen, in an order of chance."""
        title = address_of(self.page).get("model", "")
        of = next((name for name, known in TITLES.items() if known == title), "minilm")
        return self.random.sample(EXAMPLES[of], len(EXAMPLES[of]))

    def type(self, text: str) -> None:
        box = sentence(self.page)
        box.fill(text)
        box.press("Enter")
        run = self.page.locator(".hl[data-painted]").first
        run.wait_for()

    def model(self, title: str) -> None:
        box = self.page.locator(MODEL).first
        box.click()
        box.fill(title)  # of a long list only those in sight are there
        self.page.get_by_role("option", name=title, exact=True).click()

    def example(self, one: Example) -> None:
        self.page.get_by_role("button", name=words.EXAMPLES).click()
        self.page.get_by_role("menuitem", name=one.title).click()

    def edit(self) -> None:
        """Something is changed in the run, kept, or taken back."""
        root = self.page.locator(".hl.whatif")
        names = (*(said for said, _ in whatif_words.COMPONENT["toggles"].values()), *KEEPS)
        there = [one for name in names if (one := root.get_by_role("button", name=name, exact=True)).count()]
        there = [one for one in there if one.is_visible() and one.is_enabled()]
        self.random.choice(there).click()

    def turn(self, key: str) -> None:
        self.page.locator("h1").first.evaluate("() => document.activeElement?.blur()")
        self.page.keyboard.press(key)

    def say(self) -> None:
        """An answer, where the step is open and has buttons for it."""
        answers = self.page.locator(".hl.lessons .place button:visible").all()
        if answers:
            self.random.choice(answers).click()

    def enter(self, room: str) -> None:
        bar_hears(self.page)
        self.page.locator(f"nav a[data-room={room}]:visible").first.click()
        self.page.locator(f".hl.{room}[data-painted], .hl[data-painted]").first.wait_for()
        once(self.page, f"new URLSearchParams(location.search).get('view') === '{room}'")

    def choose(self) -> None:
        """Something in the room, by the mouse or the keys."""
        page, pick = self.page, self.random.choice
        if self.room == "explore":
            screen = Screen.__new__(Screen)
            screen.page = page
            if self.random.random() < 0.5:
                of = next(name for name, title in TITLES.items() if title == address_of(page)["model"])
                layers, heads = MODELS[of]
                page.mouse.click(*screen.head(self.random.randrange(layers), self.random.randrange(heads)))
            else:
                n = int(screen.data()["tokens"])
                page.mouse.click(*screen.cell(self.random.randrange(n), self.random.randrange(n)))
            page.mouse.move(1, 1)
        elif self.room == "masks":
            page.locator(".hl .steps button").nth(pick((0, 1))).click()
        elif self.room == "positions":
            page.locator(".hl .labs button").nth(pick((0, 1))).click()
        elif self.room in SIZED:
            parts = page.locator(f"[class*=st-key-box_{self.room}_part_] [role=radio]:visible").all()
            if parts and self.random.random() < 0.4:
                pick(parts).click()
            else:
                slider = page.locator(f"[class*=st-key-box_plan_{pick(FREE)}_] input[type=range]")
                slider.press(pick(("ArrowLeft", "ArrowRight")))
        elif self.room == "shapes" and self.random.random() < 0.6:
            pick(page.locator(".hl.shapes :is(.row, .seg button):visible").all()).click()
        else:
            page.locator("h1").first.evaluate("() => document.activeElement?.blur()")
            page.keyboard.press(pick(("ArrowDown", "ArrowRight", "ArrowUp", "ArrowLeft")))

    def back(self) -> None:
        if self.place:
            self.place -= 1
            self.page.go_back()
            self.arrives()

    def forward(self) -> None:
        if self.place + 1 < len(self.history):
            self.place += 1
            self.page.go_forward()
            self.arrives()

    def arrives(self) -> None:
        settled(self.page)
        now, wanted = address_of(self.page), self.history[self.place]
        assert now == wanted, f"{self.said()}: back or forward is one move: {unlike(now, wanted)}"

    def reload(self) -> None:
        before = screen_of(self.page)
        self.page.reload()
        self.page.locator(".hl[data-painted]:visible").first.wait_for()
        settled(self.page)
        assert screen_of(self.page) == before, f"{self.said()}: {unlike(screen_of(self.page), before)}"

    def moved(self) -> None:
        now = address_of(self.page)
        if now != self.history[self.place]:
            del self.history[self.place + 1 :]
            self.history.append(now)
            self.place += 1

    def check(self) -> None:
        screen, address = screen_of(self.page), address_of(self.page)
        for name in {"text", "model"} & screen.keys():
            assert address[name] == screen[name], (
                f"{self.said()}: {name} {address[name]!r}, on the screen {screen[name]!r}"
            )
        assert address["view"] == screen["room"], self.said()
        self.fresh.goto(self.page.evaluate("location.href"))
        self.fresh.locator(".hl[data-painted]:visible").first.wait_for()
        settled(self.fresh)
        there, said = screen_of(self.fresh), address_of(self.fresh)
        assert there == screen, f"{self.said()}: a fresh browser shows {unlike(there, screen)}"
        assert said == address, f"{self.said()}: its address says {unlike(said, address)}"

    def said(self) -> str:
        return f"WALK_SEED={SEED}, after {len(self.moves)} moves: {'; '.join(self.moves[-8:])}"


def unlike(now: dict[str, str], wanted: dict[str, str]) -> str:
    return ", ".join(
        f"{name} {now.get(name)!r} and not {wanted.get(name)!r}"
        for name in sorted(now.keys() | wanted.keys())
        if now.get(name) != wanted.get(name)
    )


@pytest.mark.thorough
@pytest.mark.timeout(120 + 12 * MOVES)
def test_screen_address_and_a_fresh_browser_say_the_same_after_every_move(screen: Screen, browser: Browser):
    screen.open()
    fresh = browser.new_context(viewport=screen.page.viewport_size).new_page()
    fresh.set_default_timeout(PATIENCE)
    walk = Walk(screen, fresh)
    try:
        for _ in range(MOVES):
            walk.step()
        assert walk.moves
    finally:
        print(f"{walk.said()} at {address_of(walk.page)}")
        fresh.context.close()
