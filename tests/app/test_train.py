"""Train in a browser: a race grows before one's eyes, the curve is the slider, and what it says is core's."""

from __future__ import annotations

import json
from collections.abc import Iterator
from io import BytesIO
from urllib.request import urlopen
from zipfile import ZipFile

import pytest
from playwright.sync_api import Browser, Page, expect

from app.rooms.train import component, routes, words
from app.transport import messages
from core import live
from core.live import Frame, Point, Spec
from core.service import Looked, News
from core.service.trainer import FrameFacts
from core.tasks import problems

APP = "app/main.py"
PATIENCE = 240_000  # ms: 600 steps of two runs, beside other tests


@pytest.fixture(scope="module")
def page(browser: Browser, address: str) -> Iterator[Page]:
    """A visitor's page on which a race of ten steps' worth has begun; one run for all tests of this file."""
    context = browser.new_context(viewport={"width": 1280, "height": 900}, reduced_motion="reduce")
    page = context.new_page()
    errors: list[str] = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.goto(f"{address}/?view=train&twin=nomask&example=fade")
    page.locator(".train[data-painted]").wait_for()
    yield page
    assert errors == []
    context.close()


def data(page: Page) -> dict[str, str]:
    return json.loads(page.locator(".train").evaluate("root => JSON.stringify(root.dataset)"))


def test_a_race_runs_and_the_curve_goes_back_with_letters_and_heads(page: Page, address: str) -> None:
    expect(page.locator(".fact")).to_have_text(words.COMPONENT["before"])
    page.get_by_role("button", name=words.COMPONENT["train"], exact=True).click()
    page.locator('.train[data-state="running"]').wait_for()
    page.locator('.train[data-state="ended"][data-twinstate="ended"][data-looks="35"][data-twinlooks="35"]').wait_for(
        timeout=PATIENCE
    )
    found = data(page)
    assert (found["last"], found["twinlast"], found["at"]) == ("600", "600", "600")
    fact = page.locator(".fact").inner_text()
    assert "below 0.001" in fact and " 0 of 48" in fact
    assert page.locator(".tile").count() == 16
    curve = page.get_by_role("slider", name=words.COMPONENT["step"])
    curve.focus()
    page.keyboard.press("Home")
    page.locator('.train[data-at="0"]').wait_for()
    for _ in range(2):
        page.keyboard.press("Shift+ArrowRight")
    page.locator('.train[data-at="20"]').wait_for()
    expect(curve).to_have_attribute("aria-valuenow", "20")
    points = [x for _, x in zip(range(60), (x for x in live.run(Spec()) if isinstance(x, Point)), strict=False)]
    mean = sum(point.loss for point in points[15:20]) / 5
    expect(page.locator(".fact")).to_contain_text(f"Step 20: loss {mean:.2f}")
    expect(page).to_have_url(f"{address}/?view=train&twin=nomask&example=fade&at=20")
    frame = max(step for step in live.frame_steps(Spec()) if step <= 20)
    assert data(page)["frame"] == str(frame)


def test_its_model_is_a_file_and_its_table_has_every_frame(page: Page) -> None:
    page.get_by_role("button", name=words.COMPONENT["table"], exact=True).click()
    assert page.locator("tbody tr").count() == 70
    page.get_by_role("button", name=words.COMPONENT["table"], exact=True).click()
    with urlopen(str(page.locator("a.quiet").get_attribute("href"))) as answer:
        names = ZipFile(BytesIO(answer.read())).namelist()
    assert names == ["card.md", "config.json", "model.safetensors", "recipe.json", "tokenizer.json"]


def test_an_example_that_the_task_does_not_read_gets_a_sentence_and_loses_nothing(page: Page) -> None:
    box = page.get_by_label(words.COMPONENT["example"])
    box.fill("12")
    box.press("Enter")
    expect(page.get_by_role("alert")).to_contain_text("knows no '1'")
    assert data(page)["last"] == "600"
    box.fill("bead")
    box.press("Enter")
    expect(page.get_by_role("alert")).to_be_hidden()
    expect(page.locator(".write .cell.plain").first).to_have_text("b")


def test_a_phone_has_it_all_and_never_scrolls_sideways(browser: Browser, address: str) -> None:
    context = browser.new_context(viewport={"width": 390, "height": 844})
    page = context.new_page()
    page.goto(f"{address}/?view=train&task=sort&twin=nonsense&from=x")
    page.locator(".train[data-painted]").wait_for()
    expect(page.get_by_text("Possible here: none, heads1")).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    small = page.locator(".train .tasks button, .train .chip, .train .go").evaluate_all(
        "all => all.filter((one) => one.getBoundingClientRect().height < 43.5).map((one) => one.textContent)"
    )
    assert small == []
    context.close()


def test_news_travels_as_lines_and_a_loss_that_is_none_as_null() -> None:
    facts = FrameFacts(3, (1.0,), (0.5,), 12, (0.1, 0.2))
    said = json.loads(routes.line(News("running", points=(Point(3, float("nan"), 0.5),), frames=(facts,))))
    assert said["points"] == [[3, None, 0.5]] and said["frames"][0]["whole"] == 12


def test_a_look_travels_with_its_maps() -> None:
    spec = Spec(steps=1)
    frame = next(x for x in live.run(spec) if isinstance(x, Frame))
    seen = live.look(spec, frame, live.example(spec, "cab"))
    maps = seen.pattern.numpy()
    plain = Looked(0, maps, seen.p, seen.best, seen.own, seen.finds.numpy(), seen.ahead.numpy())
    header = routes.described(plain)
    assert header["shape"] == [2, 4, 8, 8]
    body = messages.quantised(maps, 255)
    assert abs(body.astype(float) / 255 - maps).max() <= 0.5 / 255 + 1e-6


@pytest.mark.parametrize("task", component.TASKS)
def test_every_task_opens_on_an_example_that_it_reads(task: str) -> None:
    typed = component.opening_example(task)
    assert live.example(Spec(task), typed).is_unseen
    assert problems(live.LIVE[task], 1, seed=1)
