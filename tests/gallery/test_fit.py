"""Memory's first part in a browser, with a page in Python's place: questions, the orange line, keys, a prediction, covers and files."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from playwright.sync_api import Browser, Locator, Page

from tests.app.axe import faults
from tests.app.browsing import PATIENCE, once
from tests.gallery import serve

# told: what Python hears; answer(changes) is the next header; cover is the module of kit/browser/cover.js
MOUNT = """async ([name, argument, changes]) => {
    const [{ default: Fit }, { pack }, { STYLE }, { QUESTIONS }, { cover }, { mount, NO_HOST }] = await Promise.all([
        "/app/rooms/memory/browser/fit.js", "/app/kit/browser/messages.js", "/app/rooms/memory/browser/constants.js",
        "/tests/gallery/data/memory.js", "/app/kit/browser/cover.js", "/app/kit/browser/mount.js",
    ].map((path) => import(path)));
    const host = document.createElement("div");
    document.querySelector("main").replaceChildren(host);
    const root = document.createElement("div");
    root.className = "hl fit";
    host.attachShadow({ mode: "open" }).append(root);
    let header = { key: "memory", ...QUESTIONS[name](argument), chosen: { values: {} }, ...changes };
    window.told = [];
    window.cover = cover;
    window.answer = (more) => {
        header = { ...header, ...more };
        const tell = (what, value) => what === "asks" && window.told.push(structuredClone(value));
        mount(root, Fit, pack(header, new Uint8Array()), { ...NO_HOST, tell });
    };
    window.answer({});
    await document.fonts.ready;
}"""
SETTLED = "document.querySelector('main > div').shadowRoot.querySelector('.hl').dataset.painted"


class Part:
    """The part on a page, and what it tells."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.root = page.locator(".hl.fit")

    def open(self, name: str, argument: Any = None, **changes: Any) -> None:
        self.page.evaluate(MOUNT, [name, argument, changes])
        once(self.page, SETTLED)

    @property
    def told(self) -> list[dict[str, Any]]:
        return self.page.evaluate("window.told")

    def hears(self, n: int) -> dict[str, Any]:
        """The newest of n questions, once there are so many."""
        once(self.page, f"window.told.length >= {n}")
        found = self.told
        assert len(found) == n
        return found[-1]

    def answer(self, **changes: Any) -> None:
        self.page.evaluate("(changes) => window.answer(changes)", changes)

    def find(self, selector: str, **more: Any) -> Locator:
        return self.root.locator(selector, **more)

    @property
    def said(self) -> str:
        """All that it says to whoever reads, hears or looks into the page; no points of a line."""
        return self.root.evaluate("""(root) => [...root.querySelectorAll("*")].flatMap((node) => [...node.attributes].filter(
            ({ name }) => !["points", "d", "style", "viewBox"].includes(name)).map(({ value }) => value)).join(" ") + root.textContent""")

    @property
    def heading(self) -> str:
        return self.find("h2").inner_text()

    def drag(self, *places: tuple[float, float]) -> None:
        """Press in the curve and move to each of the places, which are shares of it; the button stays down."""
        box = self.find(".curve svg").bounding_box()
        assert box
        for i, (x, y) in enumerate(places):
            self.page.mouse.move(box["x"] + x * box["width"], box["y"] + y * box["height"])
            if not i:
                self.page.mouse.down()


@pytest.fixture(scope="module")
def made(browser: Browser) -> Iterator[Callable[..., Part]]:
    """made(**how the page is) -> the part on a page of its own"""
    with ExitStack() as stack:
        address = stack.enter_context(serve.serving())

        def make(query: str = "", **options: Any) -> Part:
            size = {"width": 1280, "height": 720}
            options = {"viewport": size, "reduced_motion": "reduce", **options}
            context = browser.new_context(**options)
            stack.callback(context.close)
            page = context.new_page()
            page.set_default_timeout(PATIENCE)
            page.goto(f"{address}/?bare&story=tip{query}")
            once(page, "document.documentElement.dataset.ready")
            return Part(page)

        yield make


@pytest.fixture(scope="module")
def part(made: Callable[..., Part]) -> Part:
    return made()


def test_quick_presses_are_one_question_and_the_page_waits_for_its_answer(part: Part):
    part.open("fits")
    part.root.get_by_role("button", name="4", exact=True).first.click()
    assert part.hears(1) == {"id": 1, "set": {"bits": "4"}}
    assert part.root.get_by_role("button", name="4", exact=True).first.get_attribute("aria-pressed") == "true"
    part.root.get_by_role("button", name="Chats: more").click()
    assert part.hears(2) == {"id": 2, "set": {"bits": "4", "batch": "2"}}
    before = part.heading
    verdict = {"fits": True, "lead": "Fits:", "rest": [{"text": "twice"}], "plain": "Fits: twice"}
    part.answer(answered=1, verdict=verdict)
    assert part.heading == before
    part.answer(answered=2)
    once(
        part.page,
        f"{SETTLED} && {SETTLED.replace('dataset.painted', 'querySelector(`h2`).textContent')} === 'Fits: twice'",
    )
    # Python has left the bits as they were: what was pressed looks so no more
    assert part.root.get_by_role("button", name="16", exact=True).first.get_attribute("aria-pressed") == "true"
    part.root.get_by_role("button", name="Chats: more").click()
    assert part.hears(3) == {"id": 3, "set": {"batch": "2"}}


def test_what_was_refused_stays_in_its_field(part: Part):
    part.open("fits")
    field = part.root.get_by_label("Tokens", exact=True).and_(part.page.locator("input"))
    field.fill("many")
    field.press("Enter")
    assert part.hears(1) == {"id": 1, "set": {"source": "many"}}
    part.answer(answered=1)
    assert field.input_value() == "many"
    field.fill("1M")
    part.find("h2").click()  # leaving it asks, too
    assert part.hears(2)["set"] == {"source": "1M"}


def test_the_line_is_dragged_without_python_and_told_when_it_is_let_go(part: Part):
    part.open("much")
    assert part.heading.startswith("7.9 GiB too much:")
    part.drag((0.8, 0.6), (0.1, 0.6))
    assert part.heading.startswith("Fits:") and part.told == []
    handle = part.root.get_by_role("slider", name="Tokens")
    n = handle.get_attribute("aria-valuenow")
    assert n is not None and int(n) < 16730
    part.page.mouse.up()
    assert part.hears(1) == {"id": 1, "set": {"source": n}}
    part.page.keyboard.press("ArrowRight")
    part.page.keyboard.press("Shift+ArrowRight")
    told = part.hears(2)["set"]["source"]
    assert int(told) > int(n)


def test_keys(part: Part):
    part.open("much")
    for n, (key, asked) in enumerate(
        [
            ("f", {"bits": "4"}),
            ("+", {"batch": "5"}),
            ("-", {"batch": "4"}),
            ("PageDown", {"example": "train GPT-2"}),
            ("PageUp", {"example": "Llama 3, 32k"}),
            ("v", {"predict": "first"}),
        ],
        1,
    ):
        part.page.keyboard.press(key)
        assert part.hears(n)["set"].items() >= asked.items(), key


def test_a_prediction_is_made_before_anything_is_seen(part: Part):
    part.open("predicted")
    assert part.heading.startswith("Where does it stop fitting?")
    assert part.find(".curve polygon").count() == part.find(".curve polyline").count() == 0
    assert "142" not in part.said
    assert not part.root.get_by_role("button", name="The same as a table").is_visible()
    part.drag((0.1, 0.5), (0.4, 0.5))
    part.page.mouse.up()
    guess = part.root.get_by_role("slider", name="Your guess").get_attribute("aria-valuenow")
    assert part.told == []
    part.page.keyboard.press(" ")
    assert part.hears(1) == {"id": 1, "set": {"predict": "seen", "guess": guess}}
    part.open("predicted", 60000)
    assert "You said 60,000" in part.heading
    assert part.find(".curve polyline").count() == 1
    assert part.find(".front text", has_text="60,000").count() == 1


@pytest.mark.parametrize(
    ("covered", "gone"),
    [
        ("headline", ["Fits:", "66,900 tokens"]),
        ("bar", ["15.0 GiB", "19.3"]),
        ("number", ["66,900"]),
        ("curve", ["66,900"]),
    ],
)
def test_a_lesson_covers_what_it_asks_for(part: Part, covered: str, gone: list[str]):
    step = {"step": "3.7", "part": covered, "asks": "", "values": {}, "seen": False}
    part.open("fits", cover=step)
    for text in gone:
        assert text not in part.said, text
    part.page.evaluate("window.cover.look()")
    once(part.page, SETTLED.replace("painted", "fits"))
    for text in gone:
        assert text in part.said, text
    part.page.evaluate("window.cover.leave()")


def test_the_picture_leaves_the_page_with_its_question(part: Part):
    part.open("much")
    part.root.get_by_role("button", name="Export").click()
    with part.page.expect_download() as waiting:
        part.root.get_by_role("button", name="SVG", exact=True).click()
    tree = ElementTree.parse(waiting.value.path())
    texts = ["".join(node.itertext()) for node in tree.iter("{http://www.w3.org/2000/svg}text")]
    for text in ("RTX 4090: 23.3 GiB", "16,700", "32,768", "weights", "Llama 3.1 8B"):
        assert any(text in said for said in texts), text
    assert not part.find(".plain").is_visible()


def test_a_tab_is_projected_alone_and_escape_goes_back(made: Callable[..., Part]):
    part = made("&projector=true", viewport={"width": 1920, "height": 1080})
    part.open("much")
    assert not part.find(".side").is_visible() and not part.find(".sentence").is_visible()
    assert (
        part.find(".plain")
        .inner_text()
        .startswith("Llama 3.1 8B in 16 bit, 32,768 tokens × 4 chats, writing on RTX 4090")
    )
    part.page.keyboard.press("5")
    assert part.find(".side").is_visible() and not part.find(".figure").is_visible()
    part.page.keyboard.press("Escape")
    assert part.find(".figure").is_visible()
    assert part.told == []  # the tab was open
    part.page.keyboard.press("1")
    assert part.hears(1)["set"] == {"tab": "assumptions"}
    part.page.keyboard.press("?")
    assert [part.find(".keylist kbd").nth(i).inner_text() for i in range(6)] == list("123456")
    assert all(part.find(".keylist dd").all_inner_texts())


@pytest.mark.parametrize("name", ["here", "much", "training", "predicted"])
@pytest.mark.parametrize("query", ["", "&theme=dark"])
def test_axe_finds_nothing(made: Callable[..., Part], name: str, query: str):
    part = made(query)
    part.open(name)
    if name != "predicted":
        part.root.get_by_role("button", name="The same as a table").click()
    assert faults(part.page, "main") == []


def test_on_a_phone_whatever_is_pressed_is_as_large_as_a_finger(made: Callable[..., Part]):
    part = made(viewport={"width": 390, "height": 844}, has_touch=True)
    part.open("here")
    sizes = part.root.evaluate(
        """(root) => [...root.querySelectorAll("button, select, input")].map((one) => [one.textContent || one.ariaLabel || "",
            one.getBoundingClientRect()]).filter(([, { width }]) => width).map(([name, { width, height }]) => [name, width, height])"""
    )
    assert len(sizes) > 20
    assert not [size for size in sizes if size[2] < 44 or size[1] < 24]
    assert part.page.evaluate("document.documentElement.scrollWidth") <= 390
