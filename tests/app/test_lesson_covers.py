"""Each step opens in its room, and what it asks for is nowhere to read before Look. Of the trainings test_train.py says the same."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

from app.rooms.lessons.steps import LESSONS
from tests.app.browsing import PATIENCE, once
from tests.app.pages import lend

APP = "app/main.py"
STEPS = {f"{i}.{k}": step for i, lesson in enumerate(LESSONS, 1) for k, step in enumerate(lesson.steps, 1)}
HERE = ("explore", "step", "masks", "positions", "generate", "whatif", "shapes", "memory", "compute")
# Of every step: what its room says once it is uncovered, and not before.
SAYS = {
    "1.1": "0.3172",
    "1.2": "67.7",
    "1.4": "2.30 bits",
    "1.5": "K.transpose(-2, -1) [2, 4, 3]",
    "1.6": "Masked scores: 5 queries by 5 keys",
    "1.7": "rows no longer sum to 1",
    "1.8": "renamed three times",
    "2.1": "68 %",
    "2.2": "0111",
    "2.3": "256 features",
    "2.4": "16 rows of 384 features",
    "2.5": "step 14 of 20",
    "2.6": "step 20 of 20",
    "2.7": "List the heads by this number",
    "3.1": "16 tokens",
    "3.2": "Layer 0",
    "3.3": "Weights: 16 queries by 16 keys",
    "3.4": "Layer 0",
    "3.5": "30.6 MiB (32.1 MB)",
    "3.6": "autograd keeps 52.5 MiB",
    "3.7": "512: 256.0 MiB",
    "3.8": "623 source tokens fit",
    "4.2": "83.8",
    "4.4": "step 15 of 20",
    "4.5": "66.6 % of a layer is its MLP",
    "4.6": "length 64.03",
    "5.1": "10.7 %",
    "5.2": "10.7 %",
    "5.6": "Read again now",
    "5.7": "2 · 12 layers",
    "5.8": "memory is the limit",
    "5.9": "O(nm)",
}
CHART = ".st-key-under_bar .js-plotly-plot .main-svg"
DRAWN = dict.fromkeys(HERE, ".hl[data-painted]") | {"memory": CHART, "compute": CHART}  # once a room is there
# What somebody reads, or a screen reader says: texts and names of all that is not hidden, also within components.
READ = """() => {
  const found = [];
  const walk = (node) => {
    if (node.nodeType === 3 && (node.parentElement ?? node.parentNode.host).checkVisibility({ visibilityProperty: true })) found.push(node.textContent);
    if (node.nodeType === 1 && !["STYLE", "SCRIPT"].includes(node.tagName)) {
      if (node.checkVisibility({ visibilityProperty: true }))
        for (const name of ["aria-label", "aria-description", "aria-valuetext", "title", "alt"]) found.push(node.getAttribute(name) ?? "");
      [...(node.shadowRoot?.childNodes ?? []), ...node.childNodes].forEach(walk);
    }
  };
  walk(document.querySelector(".st-key-lessons_view"));
  return found.join(" ").replace(/\\s+/g, " ");
}"""


@pytest.fixture(scope="module")
def page(browser: Browser) -> Iterator[Page]:
    with lend(browser, viewport={"width": 1280, "height": 720}, reduced_motion="reduce") as page:
        yield page


def test_every_covered_step_is_here_and_every_kind_of_answer() -> None:
    assert set(SAYS) == {name for name, step in STEPS.items() if step.room in HERE and step.cover}
    assert {step.room for step in STEPS.values()} == {*HERE, "train"}
    assert {STEPS[name].kind for name in SAYS} == {step.kind for step in STEPS.values()}


@pytest.mark.parametrize("name", SAYS)
def test_nothing_is_read_before_look(page: Page, address: str, name: str) -> None:
    page.goto(f"{address}/?view=lessons&lesson={name}")
    rail = page.locator(".hl.lessons")
    expect(rail).to_have_attribute("data-ready", "true", timeout=PATIENCE)
    drawn = page.locator(f".st-key-lessons_view :is({DRAWN[STEPS[name].room]})").first
    expect(drawn).to_be_attached(timeout=PATIENCE)
    assert "This link" not in page.locator(".st-key-lessons_view").inner_text(), "something was asked in vain"
    assert SAYS[name] not in page.evaluate(READ)
    rail.get_by_role("button", name="Look", exact=True).click()
    once(page, f"(says) => ({READ})().includes(says)", arg=SAYS[name], timeout=PATIENCE)
    expect(rail).to_have_attribute("data-seen", "true")
