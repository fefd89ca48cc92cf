"""Train in a browser: a race grows before one's eyes, the curve is the slider, and what it says is core's."""

from __future__ import annotations

import csv
import gzip
import json
import re
from collections.abc import Callable, Iterator
from io import BytesIO
from itertools import islice
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit
from urllib.request import urlopen
from zipfile import ZipFile

import numpy as np
import pytest
from playwright.sync_api import Browser, Page, Route, expect

from app.attention import words as attention_words
from app.kit import words as kit_words
from app.rooms.train import component, records, routes, words
from app.rooms.train.recorded import view as recorded_view
from app.rooms.train.recorded import words as recorded_words
from app.shell import words as shell_words
from app.transport import messages
from core.checkpoints import load
from core.learn import recorded_runs, watched_training
from core.learn.tasks import problems
from core.learn.watched_training import Frame, Point, Spec
from core.service import FrameFacts, LookFacts, TrainingUpdate
from core.service.training import PROCESS_DIED
from core.trace import trace
from tests.app.axe import faults
from tests.app.browsing import idle
from tests.app.plain import AnotherPlain
from tests.app.rail import rail, read, ready
from tests.thorough import part

APP = "app/main.py"
PATIENCE = 60_000  # ms for the next news of a run, beside other tests
pytestmark = pytest.mark.timeout(900)  # a training gives way to everything else on the machine


@pytest.fixture(scope="module")
def page(browser: Browser, plain_address: str) -> Iterator[Page]:
    """A visitor's page that opens on a race which is kept; one page for all tests of this file."""
    context = browser.new_context(viewport={"width": 1280, "height": 900}, reduced_motion="reduce")
    page = context.new_page()
    errors: list[str] = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.goto(f"{plain_address}/?view=train&task=copy&twin=nomask")
    page.locator('.train[data-painted][data-kept="2"]').wait_for()
    yield page
    assert errors == []
    context.close()


def data(page: Page) -> dict[str, str]:
    return json.loads(page.locator(".train").evaluate("root => JSON.stringify(root.dataset)"))


def until(page: Page, **least: int) -> None:
    """Until a race has come so far: however long that takes, something comes every now and then."""
    while True:
        now = data(page)
        if all(int(now[name]) >= n for name, n in least.items()):
            return
        seen = "".join(f'[data-{name}="{now[name]}"]' for name in least)
        page.locator(f".train:not({seen})").wait_for(timeout=PATIENCE)


def press(page: Page, name: str) -> None:
    page.get_by_role("button", name=words.COMPONENT[name], exact=True).click()


def look_at(page: Page, example: str) -> None:
    box = page.get_by_label(words.COMPONENT["example"])
    box.fill(example)
    box.press("Enter")


def pause(page: Page) -> None:
    press(page, "pause")
    page.locator('.train[data-state="paused"][data-twinstate="paused"]').wait_for()


def race(page: Page) -> None:
    """Beyond step 20, with all that there is to see of that; then both runs wait."""
    until(page, last=30, twinlast=30, looks=6, twinlooks=6)
    pause(page)


@pytest.fixture
def raced(page: Page) -> Page:
    """The page with a race that waits where it is; of a test that stands alone it is run here."""
    if data(page)["twinstate"] != "paused":
        look_at(page, "fade")
        press(page, "train")
        race(page)
    return page


def test_a_race_that_is_kept_says_what_it_came_to_and_its_table_has_every_frame(page: Page) -> None:
    """C6 and E5: what a race that runs here comes to, core/test_races.py says."""
    fact = page.locator(".fact")
    expect(fact).to_contain_text("<0.001")
    expect(fact).to_contain_text(" 0 of 48")
    ahead = re.search(r"one place ahead, layer \d head \d with (\d+) %", fact.inner_text())
    assert ahead and int(ahead[1]) > 50
    expect(page.locator(".tile")).to_have_count(16)
    press(page, "table")
    expect(page.locator("tbody tr")).to_have_count(70)
    assert page.get_by_role("columnheader").all_inner_texts() == words.COMPONENT["table_columns"]
    assert page.locator("tbody tr").first.locator("th, td").count() == len(words.COMPONENT["table_columns"])
    assert faults(page) == []
    press(page, "table")
    expect(page.get_by_role("region", name=words.COMPONENT["table"])).to_be_hidden()


@pytest.mark.thorough
def test_its_files_have_the_numbers_and_its_code_gives_them_again(
    page: Page, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    steps = watched_training.run
    monkeypatch.setattr(watched_training, "run", lambda spec: islice(steps(spec), 24))  # the first of them will do
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    opener = page.get_by_role("button", name="Export", exact=True)

    def saved(name: str) -> bytes:
        with page.expect_download() as waiting:
            page.get_by_role("dialog").get_by_role("button", name=name, exact=True).click()
        return waiting.value.path().read_bytes()

    opener.click()
    assert saved("PNG 1×").startswith(b"\x89PNG")
    drawn = saved("SVG").decode()
    assert "no mask" in drawn and "<path" in drawn and "seed 0" in drawn
    lines = saved(f"CSV: {words.COMPONENT['table']}").decode("utf-8-sig").splitlines()
    every = saved(f"CSV: {words.COMPONENT['every_step']}").decode("utf-8-sig")
    with np.load(BytesIO(saved("NPZ"))) as arrays:
        frames = {name: arrays[name] for name in words.COMPONENT["table_columns"]}
        assert len(arrays[f"steps.{words.COMPONENT['point_columns'][2]}"]) == 1200
    page.get_by_role("dialog").get_by_role("button", name=kit_words.COMPONENT["export_snippet"], exact=True).click()
    expect(page.get_by_role("dialog").get_by_role("status")).to_have_text(kit_words.COMPONENT["export_copied"])
    page.keyboard.press("Escape")
    head, *rows = csv.reader(line for line in lines if line[0] != "#")
    of_run = words.COMPONENT["table_columns"]
    heads = [
        words.COMPONENT[f"line_{kind}"].format(l=layer, h=head)
        for kind in ("finds", "back", "ahead")
        for layer in range(2)
        for head in range(4)
    ]
    assert head == [*of_run, *heads] and len(rows) == len(frames[head[1]]) == 70
    said = [messages.unpack(records.read(Spec("copy", twin)))[0]["frames"] for twin in ("none", "nomask")]
    kept = [[x for kind in ("finds", "back", "ahead") for row in one[kind] for x in row] for run in said for one in run]
    assert np.allclose(np.array([row[len(of_run) :] for row in rows], float), kept, atol=1e-6)
    _, *points = csv.reader(line for line in every.splitlines() if line[0] != "#")
    assert [int(row[1]) for row in points] == [*range(1, 601), *range(1, 601)]
    code = page.evaluate("navigator.clipboard.readText()")
    assert code.strip().splitlines() == [line[2:] for line in lines if line[0] == "#"][1:]
    names: dict[str, Any] = {}
    exec(compile(code, "snippet", "exec"), names)
    assert capsys.readouterr().out
    for run, of in (("plain", rows[:35]), ("twin", rows[35:])):
        first = {point.step: point.loss for point in names[run]}
        found = {int(row[1]): float(row[2]) for row in of if int(row[1]) in first}
        assert len(found) > 1 and all(loss == pytest.approx(first[step], rel=1e-3) for step, loss in found.items())


def test_a_kept_race_reads_another_example_and_is_a_model(page: Page) -> None:
    """At its last step, whose weights are there: no run is begun for it."""
    page.locator('.train[data-kept="2"]').wait_for()
    look_at(page, "bead")
    expect(page.locator(".map").first).to_contain_text("bead=")
    expect(page.locator(".tile")).to_have_count(16)
    expect(page.locator(".fact")).to_contain_text("0 of 48")
    expect(page.locator(".kept")).to_contain_text(words.COMPONENT["finished_other"])
    with urlopen(str(page.get_by_role("link", name=words.COMPONENT["download"]).get_attribute("href"))) as answer:
        assert ZipFile(BytesIO(answer.read())).namelist()[0] == "card.md"
    explore = page.get_by_role("link", name="Explore: no mask")
    expect(explore).to_have_attribute("href", re.compile(r"(?=.*step=600)(?=.*nocausal)(?=.*text=bead%3Dbead)"))
    expect(page.locator(".foot .facts")).to_contain_text("102,848 parameters")
    look_at(page, "12")
    expect(page.get_by_role("alert")).to_contain_text("knows no '1'")
    look_at(page, "bead")
    expect(page.get_by_role("alert")).to_be_hidden()
    curve = page.get_by_role("slider", name=words.COMPONENT["step"])
    curve.focus()
    page.keyboard.press("ArrowLeft")
    expect(explore).to_be_hidden()  # of the steps on the way there are no weights
    expect(page.locator(".tile")).to_have_count(0)
    page.keyboard.press("End")
    expect(explore).to_be_visible()
    assert data(page)["state"] == "none"


def test_the_room_opens_alive_and_stops_where_it_is_told_to(plain_another: AnotherPlain) -> None:
    """The kept run is played once, and nothing is trained for it. Where nothing shall move, it is at its end at once."""
    for motion in ("reduce", "no-preference"):
        screen = plain_another(size=(1280, 720), reduced_motion=motion)
        page = screen.page
        screen.arrive("?view=train")
        if motion == "reduce":
            page.locator('.train[data-kept="1"][data-at="600"]').wait_for()
        else:
            page.locator('.train[data-kept="1"]:not([data-at="0"], [data-at="600"])').wait_for()
            press(page, "stop_playing")
            page.get_by_role("button", name=words.COMPONENT["play"], exact=True).wait_for()
            at = int(data(page)["at"])
            page.evaluate(
                "new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))).then(() => true)"
            )
            assert int(data(page)["at"]) == at < 600
            press(page, "play")
            page.locator('.train[data-at="600"]').wait_for()
        expect(page.locator(".fact")).to_contain_text("48 of 48 unseen problems written whole")
        assert data(page)["state"] == "none"
        assert page.evaluate("document.documentElement.scrollHeight") <= 720


def test_moments_are_steps_of_the_run_with_their_heads(plain_another: AnotherPlain) -> None:
    screen = plain_another(size=(1280, 720), reduced_motion="reduce")
    page = screen.page
    screen.arrive("?view=train")
    page.locator('.train[data-kept="1"][data-at="600"]').wait_for()
    message, _ = messages.unpack(gzip.decompress(records.opened(Spec("induction"))))
    found = message["moments"]
    chips = page.locator(".moments .chip")
    expect(chips).to_have_text([words.COMPONENT["moment"][one["kind"]] for one in found])
    for i, one in enumerate(found):
        page.keyboard.press("PageDown")
        expect(page.locator(".train")).to_have_attribute("data-at", str(one["step"]))
        expect(chips.nth(i)).to_have_attribute("aria-pressed", "true")
        if one["layer"] >= 0:
            name = f"Layer {one['layer']}, head {one['head']}:"
            expect(page.get_by_role("button", name=name)).to_have_attribute("aria-pressed", "true")
    turns = next(one for one in found if one["kind"] == "finds")
    chips.nth(found.index(turns)).click()
    expect(page.locator(".fact")).to_contain_text(
        f"Step {turns['step']}: head {turns['head']} of layer {turns['layer']}"
    )
    written = page.locator(".map").inner_text()
    assert "not " in written, "wrong letters stay to be seen"


def test_a_race_is_told_by_its_seeds(plain_another: AnotherPlain) -> None:
    """A lead is one of all seeds over all seeds; without seeds nothing is said of it."""
    screen = plain_another(size=(1280, 720), reduced_motion="reduce")
    page = screen.page
    fact = page.locator(".fact")
    screen.arrive("?view=train&twin=heads1&at=330")
    page.locator('.train[data-kept="2"]').wait_for()
    message, _ = messages.unpack(gzip.decompress(records.opened(Spec("induction", "heads1"))))
    lead = next(one for one in message["leads"] if one["first"] <= 330 <= one["last"])
    expect(fact).to_contain_text(f"All three seeds of as it is are ahead, since step {lead['first']}.")
    screen.arrive("?view=train&twin=heads1&at=100")
    expect(fact).to_contain_text(words.COMPONENT["seeds_level"])
    screen.arrive("?view=train&task=copy&twin=heads1&at=100")
    expect(fact).to_contain_text("Unseen symbols right:")
    assert "ahead" not in fact.inner_text() and "lead" not in fact.inner_text()


def test_who_predicts_sees_nothing_before(plain_another: AnotherPlain) -> None:
    screen = plain_another(size=(1280, 720), reduced_motion="reduce")
    page = screen.page
    screen.arrive("?view=train&predict=on")
    page.locator('.train[data-kept="1"]').wait_for()
    expect(page.locator(".fact")).to_have_text(words.COMPONENT["predict_ask"])
    expect(page.locator(".tile")).to_have_count(0)
    assert page.locator(".curve path").count() == 0 and not page.locator(".moments").is_visible()
    curve = page.get_by_role("slider", name=words.COMPONENT["step"])
    box = curve.bounding_box()
    assert box is not None
    page.mouse.click(box["x"] + box["width"] * 0.3, box["y"] + box["height"] / 2)
    expect(page.locator(".fact")).to_contain_text(
        re.compile(r"You said step \d+; it was step \d+, \d+ steps (later|earlier)")
    )
    expect(page.locator(".tile")).to_have_count(8)


@pytest.mark.thorough
def test_a_visitors_own_text_is_learnt_stopped_and_gone_on_with(browser: Browser, address: str) -> None:
    context = browser.new_context(viewport={"width": 1280, "height": 720}, reduced_motion="reduce")
    page = context.new_page()
    page.goto(f"{address}/?view=train&own=on")
    box = page.get_by_role("textbox", name=words.COMPONENT["own_placeholder"])
    box.fill("too short")
    press(page, "own_learn")
    expect(page.locator(".own-text .refused")).to_contain_text("too few to learn from")
    box.fill("The small cat sat on the mat and looked at the moon. " * 60)
    press(page, "own_learn")
    expect(page.locator(".own-text .sample")).to_have_count(1, timeout=PATIENCE)
    press(page, "cancel")
    expect(page.locator(".own-text .fact")).to_contain_text("What was learnt stays", timeout=PATIENCE)
    assert "moon" not in page.url
    press(page, "go_on")
    page.get_by_role("button", name=words.COMPONENT["cancel"], exact=True).wait_for()
    press(page, "cancel")
    other = browser.new_context().new_page()
    other.goto(f"{address}/?view=train&own=on")
    expect(other.locator(".own-text .fact")).to_have_text(words.COMPONENT["own_ask"])
    other.context.close()
    page.get_by_role("button", name=words.COMPONENT["own_another"], exact=True).click()
    expect(box).to_be_visible()
    context.close()


@pytest.mark.thorough
def test_the_model_of_a_text_opens_for_its_visitor_alone_and_its_files_are_its_own(
    browser: Browser, address: str, tmp_path: Path
) -> None:
    context = browser.new_context(viewport={"width": 1280, "height": 720}, reduced_motion="reduce")
    page = context.new_page()
    page.goto(f"{address}/?view=train&own=on")
    box = page.get_by_role("textbox", name=words.COMPONENT["own_placeholder"])
    text = "The small cat sat on the mat and looked at the moon. " * 60
    box.fill(text)
    press(page, "own_learn")
    expect(page.locator(".own-text .sample")).to_have_count(2, timeout=PATIENCE)  # of step 20
    download, explore = (page.get_by_role("link", name=words.COMPONENT[name]) for name in ("download", "open"))
    expect(download).to_be_hidden()
    press(page, "cancel")
    expect(page.locator(".own-text .fact")).to_contain_text("What was learnt stays", timeout=PATIENCE)
    with page.expect_download() as waiting:
        download.click()
    with ZipFile(waiting.value.path()) as file:
        assert file.namelist() == ["card.md", "config.json", "model.safetensors", "recipe.json", "tokenizer.json"]
        file.extractall(tmp_path)
    loaded = load(tmp_path)
    page.get_by_role("button", name="Export", exact=True).click()
    menu = page.get_by_role("dialog")
    with page.expect_download() as waiting:
        menu.get_by_role("button", name=f"CSV: {words.COMPONENT['table']}", exact=True).click()
    lines = waiting.value.path().read_text("utf-8-sig")
    head, first, *_ = csv.reader(line for line in lines.splitlines() if line[0] != "#")
    assert head[:3] == words.COMPONENT["own_columns"] and len(head) == 3 + 2 * 8 + 1 and float(first[2]) > 2
    assert words.COMPONENT["own_file_title"] in lines and "Induction" not in lines
    with page.expect_download() as waiting:
        menu.get_by_role("button", name="SVG", exact=True).click()
    drawn = waiting.value.path().read_text("utf-8")
    assert "untrained" in drawn and "after a repeat" in drawn and words.COMPONENT["own_another"] not in drawn
    page.keyboard.press("Escape")
    link = str(explore.get_attribute("href"))
    explore.click()
    shown = page.locator(".st-key-explore_stage .hl[data-painted]")
    shown.wait_for(timeout=PATIENCE)
    idle(page)
    typed = parse_qs(urlsplit(link).query)["text"][0]
    expect(page.get_by_role("textbox", name="Sentence", exact=True)).to_have_value(typed, timeout=PATIENCE)
    seen = trace(loaded, typed)
    spot = [int(shown.get_attribute(f"data-{name}") or 0) for name in ("layer", "head", "query")]
    share = float(seen.attention[spot[0]].pattern()[spot[1], spot[2]].max())
    shown.get_by_role("button", name=attention_words.COMPONENT["lows"]["looks"][0], exact=True).click()
    expect(shown.locator(".bars:not(.writes)").first).to_contain_text(f"{100 * share:.1f}")
    other = browser.new_context().new_page()
    other.goto(f"{address}/{link}")
    expect(other.get_by_text(shell_words.NO_TEXT_MODEL.split("{")[0].strip(), exact=False)).to_be_visible(
        timeout=PATIENCE
    )
    other.context.close()
    page.goto(f"{address}/?view=train&own=on")
    page.locator(".own-text .sample").first.wait_for()
    with page.expect_response(re.compile("text/forget")):
        press(page, "own_another")
    expect(box).to_be_visible()
    page.goto(f"{address}/{link}")
    expect(page.get_by_text(shell_words.NO_TEXT_MODEL.split("{")[0].strip(), exact=False)).to_be_visible(
        timeout=PATIENCE
    )
    context.close()


@pytest.mark.thorough
def test_a_race_runs_and_the_curve_goes_back_with_letters_and_heads(page: Page, address: str) -> None:
    look_at(page, "fade")
    buttons = page.locator(":is(.ways, .races) button").element_handles()
    press(page, "train")
    page.locator('.train[data-state="running"]').wait_for()
    pause(page)
    press(page, "go_on")
    race(page)
    # They are the same all along: no news took one away from under a click.
    assert all(button.evaluate("node => node.isConnected") for button in buttons)
    curve = page.get_by_role("slider", name=words.COMPONENT["step"])
    curve.focus()
    page.keyboard.press("Home")
    page.locator('.train[data-at="0"]').wait_for()
    for _ in range(4):
        page.keyboard.press("ArrowRight")
    page.locator('.train[data-at="20"]').wait_for()
    expect(curve).to_have_attribute("aria-valuenow", "20")
    points = [
        x for _, x in zip(range(60), (x for x in watched_training.run(Spec()) if isinstance(x, Point)), strict=False)
    ]
    mean = sum(point.loss for point in points[15:20]) / 5
    expect(page.locator(".fact")).to_contain_text(f"Step 20: loss {mean:.2f}")
    expect(page.locator(".tile")).to_have_count(16)
    page.wait_for_url(
        lambda url: {"twin=nomask", "example=fade", "at=20", "task=copy"} <= {*url.partition("?")[2].split("&")}
    )
    frame = max(step for step in watched_training.frame_steps(Spec()) if step <= 20)
    assert data(page)["frame"] == str(frame)


@pytest.mark.thorough
def test_its_model_is_a_file(raced: Page) -> None:
    link = raced.get_by_role("link", name=words.COMPONENT["download"])
    with urlopen(str(link.get_attribute("href"))) as answer:
        names = ZipFile(BytesIO(answer.read())).namelist()
    assert names == ["card.md", "config.json", "model.safetensors", "recipe.json", "tokenizer.json"]


@pytest.mark.thorough
def test_a_head_that_is_held_down_is_not_drawn_anew(raced: Page) -> None:
    page = raced
    page.locator(".tile").first.hover()
    page.mouse.down()
    tile = page.locator(".tile").first.element_handle()
    page.set_viewport_size({"width": 800, "height": 900})  # all is drawn in the width that there is
    for _ in range(3):
        page.evaluate("new Promise(requestAnimationFrame).then(() => true)")
    assert tile.evaluate("node => node.isConnected")
    page.mouse.up()
    tile.wait_for_element_state("hidden", timeout=PATIENCE)  # gone, once it is let go
    page.set_viewport_size({"width": 1280, "height": 900})


@pytest.mark.thorough
def test_an_example_that_the_task_does_not_read_gets_a_sentence_and_loses_nothing(raced: Page) -> None:
    page, last = raced, data(raced)["last"]
    look_at(page, "12")
    expect(page.get_by_role("alert")).to_contain_text("knows no '1'")
    assert data(page)["last"] == last
    look_at(page, "bead")
    expect(page.get_by_role("alert")).to_be_hidden()
    expect(page.locator(".map").first).to_contain_text("bead=")


NUMBER = re.compile(r"\d+\.\d+|\d+ %|\d+ of 48")  # that a race comes to


@pytest.mark.thorough
def test_a_lesson_about_a_race_that_is_paused_answers_what_it_has_come_to(page: Page, address: str) -> None:
    """And no number that its room shows was in the page before Look. What the other races are asked: test_lesson_steps.py."""
    page.goto(f"{address}/?view=lessons&lesson=4.3")
    ready(page, "4.3")
    page.locator('.train[data-kept="2"]').wait_for()
    press(page, "train")
    until(page, last=50, twinlast=50)
    pause(page)
    found, room, covered = rail(page), page.locator(".st-key-lessons_view"), "Unseen symbols right:"
    found.get_by_role("button", name="The run as it is").click()
    before = read(page) + str(room.aria_snapshot())
    assert covered not in before + page.locator("body").inner_text()
    found.get_by_role("button", name="Look", exact=True).click()
    fact = page.locator(".train .fact")
    expect(fact).to_contain_text(covered)
    numbers = NUMBER.findall(fact.inner_text())
    assert numbers and not [number for number in numbers if number in before]
    expect(found).to_have_attribute("data-right", "true")
    expect(found.locator(".answer")).to_contain_text("2.18 as it is and 2.69 with the change.")
    page.get_by_role("button", name=words.COMPONENT["go_on"], exact=True).wait_for()  # the lesson has not ended it


@pytest.mark.thorough
def test_a_run_goes_on_from_a_step_with_one_thing_changed(page: Page, address: str) -> None:
    page.goto(f"{address}/?view=train&twin=none&seed=1")
    page.locator(".train[data-painted]").wait_for()
    fork = page.locator(".train .fork")
    expect(fork).to_be_hidden()
    page.get_by_role("button", name=words.COMPONENT["train"], exact=True).click()
    expect(page.locator(".train")).to_have_attribute("data-last", re.compile(r"^[1-9]"))
    page.get_by_role("button", name=words.COMPONENT["pause"], exact=True).click()
    page.locator('.train[data-state="paused"]').wait_for()
    at = data(page)["last"]
    expect(fork).to_contain_text(f"Continue from step {at} with one thing changed")
    expect(fork.get_by_role("button", name="2 heads")).to_have_count(0)  # it would need a new start
    fork.get_by_role("button", name="no mask", exact=True).click()
    expect(page.locator(".train")).to_have_attribute("data-twinlast", re.compile(r"^[1-9]"), timeout=PATIENCE)
    expect(page.locator(".fact")).to_contain_text(f"no mask from step {at}")
    assert (data(page)["state"], data(page)["last"]) == ("paused", at), "the way so far stays"
    expect(page).to_have_url(re.compile(rf"[?&]from={at}(&|$)"))


@pytest.mark.thorough
def test_a_run_opens_in_explore_at_its_step(page: Page, address: str) -> None:
    page.goto(f"{address}/?view=train&task=copy&twin=nomask&example=fade&at=20")
    page.locator(".train[data-painted]").wait_for()
    press(page, "train")
    until(page, last=11, twinlast=11)
    curve = page.get_by_role("slider", name=words.COMPONENT["step"])
    curve.focus()
    page.keyboard.press("Home")
    for _ in range(2):
        page.keyboard.press("ArrowRight")
    page.locator('.train[data-at="10"]').wait_for()
    step = max(step for step in watched_training.frame_steps(Spec()) if step <= 10)
    page.get_by_role("link", name="Explore: no mask").click()
    explore = page.locator('.st-key-explore_stage .hl[data-painted][data-underway=""]')
    explore.wait_for()
    expect(page.get_by_role("textbox", name="Sentence", exact=True)).to_have_value("fade=fade")
    expect(page.get_by_text("This run is changed: the decoder sees the future.")).to_be_visible()
    frame = next(x for x in watched_training.run(Spec("copy", "nomask")) if isinstance(x, Frame) and x.step == step)
    # The picture is there before the address bar says so.
    expect(page).to_have_url(re.compile(rf"(?=.*nocausal)(?=.*step={step}\b)"))
    idle(page)
    seen = watched_training.evaluate_example(Spec("copy", "nomask"), frame, watched_training.example(Spec(), "fade"))
    spot = [int(explore.get_attribute(f"data-{name}") or 0) for name in ("layer", "head", "query")]
    share = float(seen.pattern[spot[0], spot[1], spot[2]].max())
    explore.get_by_role("button", name=attention_words.COMPONENT["lows"]["looks"][0], exact=True).click()
    expect(explore.locator(".bars:not(.writes)").first).to_contain_text(f"{100 * share:.1f}")
    page.go_back()
    page.locator('.train[data-painted][data-task="copy"]').wait_for()


@pytest.mark.thorough
def test_the_recorded_curves_are_train_s_and_lead_back(page: Page, address: str) -> None:
    page.goto(f"{address}/?view=Training")
    expect(page.get_by_role("heading", name=re.compile("99 % of tokens right"))).to_be_visible()
    page.wait_for_url(lambda url: "view=train" in url and "recorded=on" in url)
    page.get_by_role("button", name=recorded_words.LIVE).click()
    page.locator(".train[data-painted]").wait_for()
    expect(page.get_by_role("heading", name=re.compile("99 % of tokens right"))).to_have_count(0)
    page.get_by_role("button", name=words.COMPONENT["recorded"]).click()
    expect(page.get_by_role("heading", name=re.compile("99 % of tokens right"))).to_be_visible()


def test_who_learns_at_the_same_step_is_named_together() -> None:
    said = recorded_view.sentence({"Post-LN": 237, "Pre-LN": 237})
    assert said == "99 % of tokens right: Post-LN and Pre-LN at the same step, 237."
    said = recorded_view.sentence({"one": 5, "two": 5, "four": 9, "eight": 9})
    assert said == "99 % of tokens right: one and two first, at step 5; four and eight last, at step 9."


def test_a_run_that_is_refused_that_is_lost_and_that_ends_say_so(page: Page, plain_address: str) -> None:
    """What is lost and when one is refused: core/test_trainer.py."""
    full = "20 trainings wait already, and that is the most. Try again in a minute."
    begun = TrainingUpdate("running", points=tuple(watched_training.Point(step, 2.5, 0.5) for step in (1, 2)))
    died = routes.line(begun) + routes.line(TrainingUpdate("failed", why=PROCESS_DIED))
    ended = routes.line(begun) + routes.line(TrainingUpdate("ended", points=(watched_training.Point(3, 2.4, 0.5),)))
    queued = routes.line(TrainingUpdate("waiting", place=2, seconds=21.0))
    answers: list[Callable[[Route], None]] = [
        lambda route: route.fulfill(status=503, body=full),
        lambda route: route.fulfill(body=died, content_type="application/x-ndjson"),
        lambda route: route.fulfill(body=ended, content_type="application/x-ndjson"),
    ]
    page.route("**/headlight/train/run?*", lambda route: answers.pop(0)(route))
    page.goto(f"{plain_address}/?view=train&task=copy&twin=none")
    page.locator('.train[data-painted][data-kept="1"]').wait_for()
    expect(page.locator(".kept")).to_have_text(words.COMPONENT["finished"])
    message, _ = messages.unpack(records.read(Spec()))
    loss = sum(loss for _, loss, _ in message["points"][-5:]) / 5
    expect(page.locator(".fact")).to_contain_text(f"loss {loss:.4f}")
    assert (page.locator(".tile").count(), data(page)["state"], data(page)["last"]) == (8, "none", "0")
    page.get_by_role("button", name=words.COMPONENT["train"], exact=True).click()
    expect(page.locator(".fact")).to_have_text(full)
    expect(page.locator(".kept")).to_be_hidden()
    page.get_by_role("button", name=words.COMPONENT["train_again"], exact=True).click()
    expect(page.locator(".fact")).to_have_text(words.COMPONENT["failed"].format(why=PROCESS_DIED))
    expect(page.locator(".train")).to_have_attribute("data-last", "2")  # what there was stays
    page.get_by_role("button", name=words.COMPONENT["train_again"], exact=True).click()
    page.locator('.train[data-state="ended"][data-last="3"]').wait_for()
    page.unroute_all()
    # A stream that goes on, which no answer of a route can be: who waits is told how long, and may give it up.
    page.evaluate(
        """(line) => {
          const own = window.fetch;
          window.fetch = (address, how) => !String(address).includes("/train/run") ? own(address, how)
            : Promise.resolve(new Response(new ReadableStream({ start: (out) => out.enqueue(new TextEncoder().encode(line)) })));
        }""",
        queued.decode(),
    )
    page.get_by_role("button", name=words.COMPONENT["train_again"], exact=True).click()
    expect(page.locator(".fact")).to_have_text("2 runs are before yours: about 21 s.")
    page.get_by_role("button", name=words.COMPONENT["cancel"], exact=True).click()
    page.locator('.train[data-kept="1"][data-state="none"]').wait_for()
    page.reload()


@pytest.mark.thorough
def test_a_phone_has_it_all_and_never_scrolls_sideways(plain_another: AnotherPlain) -> None:
    screen = plain_another(size=(390, 844))
    page = screen.page
    screen.arrive("?view=train&task=sort&twin=nonsense&from=x")
    page.locator('.train[data-painted][data-kept="1"]').wait_for()
    expect(page.get_by_text("Possible here: none, heads1")).to_be_visible()
    screen.idle()
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    controls = page.locator(".train .tasks, .train .example")
    assert not any(one.is_visible() for one in controls.all()), "what a run shows comes first"
    more = page.get_by_role("button", name=words.COMPONENT["more"], exact=True)
    expect(more).to_have_attribute("aria-expanded", "false")
    more.click()
    expect(more).to_have_attribute("aria-expanded", "true")
    expect(page.get_by_label(words.COMPONENT["example"])).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    small = page.locator(
        ".train .tasks, .train .ways button, .train .chip:visible, .train .play, .train .go, .train .more"
    ).evaluate_all(
        "all => all.filter((one) => one.getBoundingClientRect().height < 43.5).map((one) => one.textContent)"
    )
    assert small == []


def test_a_clicker_goes_from_moment_to_moment_and_from_twin_to_twin(plain_another: AnotherPlain) -> None:
    """And begins no training."""
    screen = plain_another(size=(1024, 768), reduced_motion="reduce")
    page = screen.page
    screen.arrive("?view=train&projector=true")
    train = page.locator(".train.projector[data-painted]")
    page.locator('.train.projector[data-kept="1"]').wait_for()
    page.keyboard.press("PageDown")
    expect(train).to_have_attribute("data-at", "0")
    page.keyboard.press("PageDown")
    expect(train).not_to_have_attribute("data-at", "0")
    page.keyboard.press("PageUp")
    expect(train).to_have_attribute("data-at", "0")
    screen.arrive("?view=train&twin=heads1&projector=true")
    page.locator('.train.projector[data-kept="2"]').wait_for()
    page.keyboard.press("PageDown")
    expect(train).not_to_have_attribute("data-twin", "heads1")
    page.keyboard.press("PageUp")
    expect(train).to_have_attribute("data-twin", "heads1")
    assert data(page)["state"] == "none"


def test_keys_move_the_step_the_head_and_the_twin_and_begin_no_training(plain_another: AnotherPlain) -> None:
    """From the page's body, which has the focus where nothing was pressed."""
    screen = plain_another(size=(1024, 768), reduced_motion="reduce")
    page = screen.page
    screen.arrive("?view=train")
    page.locator('.train[data-painted][data-kept="1"][data-at="600"]').wait_for()
    train = page.locator(".train")
    for key, at in (("ArrowLeft", "595"), ("Home", "0"), ("ArrowRight", "5"), ("End", "600")):
        page.keyboard.press(key)
        expect(train).to_have_attribute("data-at", at)
    page.keyboard.press("/")
    page.keyboard.type("1.3")
    page.keyboard.press("Enter")
    expect(page.get_by_role("button", name="Layer 1, head 3")).to_have_attribute("aria-pressed", "true")
    page.evaluate("document.activeElement?.blur()")
    page.keyboard.press("Space")
    page.locator('.train[data-at="600"]').wait_for()
    assert data(page)["state"] == "none"


def test_news_travels_as_lines_and_a_loss_that_is_none_as_null() -> None:
    facts = FrameFacts(3, (1.0,), (0.5,), 12, (0.1, 0.2))
    said = json.loads(routes.line(TrainingUpdate("running", points=(Point(3, float("nan"), 0.5),), frames=(facts,))))
    assert said["points"] == [[3, None, 0.5]] and said["frames"][0]["whole"] == 12


def test_a_look_travels_with_its_maps() -> None:
    spec = Spec(steps=1)
    frame = next(x for x in watched_training.run(spec) if isinstance(x, Frame))
    seen = watched_training.evaluate_example(spec, frame, watched_training.example(spec, "cab"))
    maps = seen.pattern.numpy()
    plain = LookFacts(0, maps, seen.p, seen.best, seen.own, seen.finds.numpy(), seen.ahead.numpy())
    header = records.look_text(plain)
    assert header["shape"] == [2, 4, 8, 8]
    body = messages.quantised(maps, 255)
    assert abs(body.astype(float) / 255 - maps).max() <= 0.5 / 255 + 1e-6


# runs that are kept

KEPT = [Spec(task, twin) for task, twins in sorted(records.there().items()) for twin in twins]


def of_spec(spec: Spec) -> str:
    return f"{spec.task}-{spec.twin}"


def test_every_task_is_kept_and_its_twins_with_their_seeds() -> None:
    assert {*KEPT} == {*records.wanted()} >= {Spec(task) for task in component.TASKS}
    files = [records.path_of(other) for spec in KEPT for other in (spec, *records.others(spec))]
    assert sum(path.stat().st_size for path in files) < 2_500_000
    for twin in records.RACES:
        assert len(records.seeds_of(Spec(records.TASK, twin))) == len(records.SEEDS) == 3


WEIGHED = [spec for spec in KEPT if records.weighs(spec)]


@pytest.mark.parametrize("spec", part(WEIGHED, share=4), ids=of_spec)
def test_of_a_kept_run_the_last_frame_is_a_model(spec: Spec) -> None:
    """It says what the kept run says of its end, and looks at the task's example as that does."""
    ended = recorded_runs.read(recorded_runs.ENDS, spec)
    assert ended is not None
    points, (frame,) = ended
    header, body = messages.unpack(records.read(spec))
    last, look = header["frames"][-1], header["looks"][-1]
    assert (points[-1].loss, frame.step, frame.whole) == (header["points"][-1][1], last["step"], last["whole"])
    seen = watched_training.evaluate_example(
        spec, frame, watched_training.example(spec, records.opening_example(spec.task))
    )
    assert seen.own == look["own"] and np.allclose(seen.p, look["p"], atol=0.02)
    maps = np.frombuffer(body, "u1")[-seen.pattern.numel() :] if not seen.pattern.numel() % 4 else None
    assert maps is None or abs(maps / 255 - seen.pattern.numpy().ravel()).max() < 0.02


@pytest.mark.thorough(but=2)
@pytest.mark.parametrize("spec", part(KEPT, share=4), ids=of_spec)
def test_a_kept_run_is_the_one_that_its_description_gives(spec: Spec) -> None:
    """Whole in its parts; and its first steps, which any processor comes to, are those of this code."""
    header, body = messages.unpack(records.read(spec))
    points, steps = header["points"], [step for step, _, _ in header["points"]]
    assert steps == [*range(1, len(steps) + 1)] and (len(steps) == watched_training.STEPS or points[-1][1] is None)
    every = records.every(spec)
    at = [*range(0, 601, every)] if every else watched_training.frame_steps(spec)
    at = [step for step in at if step <= len(steps)]
    apart = records.LOOKS_OF_TWIN if every == records.EVERY_TWIN else 1
    assert [frame["step"] for frame in header["frames"]] == at
    assert [look["step"] for look in header["looks"]] == [step for step in at if step % apart == 0]
    assert "".join(header["tokens"][1:]).startswith(records.opening_example(spec.task))
    assert len(body) == sum(-(-int(np.prod(look["shape"])) // 4) * 4 for look in header["looks"])

    begun = list(islice(watched_training.run(spec, every=every), 5))
    own = [x for x in begun if isinstance(x, Point)]
    frames = [x for x in begun if isinstance(x, Frame)]
    mine, maps = messages.unpack(records.made(spec, own, frames))
    for name, numbers in (("frames", ("given", "own", "whole")), ("looks", ("p", "finds", "ahead"))):
        for here, kept in zip(mine[name], header[name], strict=False):
            for number in numbers:
                assert np.allclose(here[number], kept[number], atol=0.02)
    assert [loss for _, loss, _ in mine["points"]] == pytest.approx([p[1] for p in points[: len(own)]], rel=1e-3)
    same = np.frombuffer(maps, "u1").astype(int) - np.frombuffer(body[: len(maps)], "u1")
    assert abs(same).max() <= (5 if every else 2)  # of 255; of 63 where there are many maps


@pytest.mark.parametrize("task", component.TASKS)
def test_every_task_opens_on_an_example_that_it_reads(task: str) -> None:
    typed = records.opening_example(task)
    assert watched_training.example(Spec(task), typed).is_unseen
    assert problems(watched_training.LIVE[task], 1, seed=1)
