"""Generate: its numbers are core's, words come as they are written and can be stopped, and a link brings back every choice."""

from __future__ import annotations

import csv
import json
import math
import re
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from typing import Any
from urllib.parse import parse_qs, quote_plus, urlsplit

import numpy as np
import pytest
from playwright.sync_api import Error, Expect, Locator, Page, Route
from starlette.applications import Starlette
from starlette.testclient import TestClient

import core
from app.kit import params as kit_params
from app.rooms.generate import choices, export, routes, words
from app.session import models as session_models
from app.session import service
from app.transport import messages
from core.checkpoints import Loaded
from core.run.request import Request
from core.service import MAX_WRITTEN, Facts, PreparedText
from core.write import writer
from core.write.writer import label
from tests.app.axe import faults
from tests.app.browsing import PATIENCE, Screen, idle, once
from tests.app.plain import Plain

APP = "app/main.py"
expect = Expect()
expect.set_options(timeout=PATIENCE)
STORY, FOREST = "Once upon a time there was a", "Im Wald steht ein braunes Pferd neben einem Baum."
KING, WHO, LAST = 641, 415, 7  # LAST: the position of the text's last token
SAID = words.COMPONENT
Given = tuple[str, Request, Facts]


@cache
def storyteller() -> Loaded:
    return core.load("storyteller")


@cache
def run_of(model: str, text: str) -> Given:
    request = Request(model, (text,))
    calls, asked = service.calls(), service.service()
    key = calls.result(asked.submit(request))
    return key, request, calls.result(asked.facts(key))


# what links and routes say


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        (
            {"how": "sample", "t": "0.70", "k": "40", "p": "0.9", "minp": "0.05", "seed": "7"},
            ("sample", "0.7", "40", "0.9", "0.05", "7"),
        ),
        ({"t": "0.74", "how": "greedy"}, ("greedy", "0.7", "0", "1", "0", "3")),
        ({}, ("sample", "0.8", "0", "1", "0", "3")),
    ],
)
def test_a_link_says_how_words_are_chosen(said: dict[str, str], shown: tuple[str, ...]) -> None:
    values, notes = kit_params.read(choices.PARAMS, run_of("storyteller", STORY)[2], said)
    assert tuple(values[name] for name in ("how", "t", "k", "p", "minp", "seed")) == shown and not notes


NONSENSE = {
    "how": "best",
    "t": "nan",
    "k": "-1",
    "p": "9",
    "minp": "2",
    "n": "513",
    "show": "9",
    "page": "9",
    "predict": "maybe",
    "seed": "1e9",
    "beams": "1",
    "path": "641.x",
    "other": "_",
    "f": "9999999",
    "layer": "6",
    "head": "²",
    "cache": "maybe",
}


@pytest.mark.parametrize("name", NONSENSE)
def test_what_a_link_asks_in_vain_gets_a_sentence(name: str) -> None:
    facts = run_of("storyteller", STORY)[2]
    values, notes = kit_params.read(choices.PARAMS, facts, {name: NONSENSE[name]})
    assert values == kit_params.opening(choices.PARAMS, facts)
    assert len(notes) == 1 and name in notes[0]
    for path in ("6144", "1" * 400, ".".join(["1"] * (MAX_WRITTEN + 1))):
        assert kit_params.read(choices.PARAMS, facts, {"path": path})[0]["path"] == ""


def asked(what: str, **params: Any) -> Any:
    return TestClient(Starlette(routes=routes.ROUTES)).get(f"/headlight/generate/{what}", params=params)


def framed(body: bytes) -> Iterator[tuple[dict[str, Any], bytes]]:
    at = 0
    while at < len(body):
        end = at + 4 + int.from_bytes(body[at : at + 4], "little")
        yield messages.unpack(body[at + 4 : end])
        at = end


def test_words_travel_with_the_numbers_of_core() -> None:
    key = run_of("storyteller", STORY)[0]
    (begun, body), *written = framed(asked("write", run=key, path=f"{KING}", n=3, layer=1, head=2).content)
    opening = writer.opening(storyteller(), STORY, path=[KING])
    assert begun["losses"] == pytest.approx(opening.losses.tolist(), abs=1e-5)
    for told, reading in zip(begun["readings"], opening.readings, strict=True):
        ids, logits, rest, rows = told["at"]
        n, keys = told["listed"], told["keys"]
        assert np.frombuffer(body, "<i4", n, ids).tolist() == reading.ids.tolist()
        np.testing.assert_array_equal(np.frombuffer(body, "<f4", n, logits), reading.logits)
        np.testing.assert_array_equal(np.frombuffer(body, "<f4", 30, rest), reading.rest)
        weights = np.frombuffer(body, "<u2", told["rows"] * keys, rows).reshape(reading.rows.shape) / 65535
        np.testing.assert_allclose(weights, reading.rows, atol=1e-5)
    assert begun["bytes"] == {"token": 12_288, "mha": 12_288, "mqa": 1_536, "memory": 0}
    (expected,) = core.generate(storyteller(), f"{STORY} king", max_tokens=3)
    assert [header["taken"][0] for header, _ in written] == list(expected.ids)
    on = [header for header, _ in framed(asked("write", run=key, path=KING, n=3, opened=1).content)]
    for header, (other, _) in zip(on, written, strict=True):  # and nothing of what is open
        assert header["taken"] == pytest.approx(other["taken"], abs=1e-5)
    rows = asked("lens", run=key, path=KING, position=LAST + 1, token=WHO).json()
    assert [row["rank"] for row in rows] == [5925, 64, 42, 12, 5, 3, 1] and rows[-1]["labels"][0] == "who"
    told = asked("wrote", run=key, path=KING).json()
    assert told[-1]["position"] == LAST and told[-1]["token"] == KING and told[-1]["heads"][0]["adds"] > 0
    columns = asked("layers", run=key, path=f"{KING}.{WHO}", first=LAST, last=LAST + 1).json()
    assert columns["columns"][1]["ranks"] == [5925, 64, 42, 12, 5, 3, 1] and columns["labels"][str(WHO)] == "who"
    *_, (last, _) = framed(asked("beams", run=key, beams=3, n=8).content)
    assert last["finished"][0][1] == pytest.approx(-12.267, abs=1e-3)


@pytest.mark.parametrize(("model", "text"), [("storyteller", STORY), ("translator", FOREST)])
def test_what_was_written_is_a_text_that_reads_the_same(model: str, text: str) -> None:
    key, _, facts = run_of(model, text)
    _, *headers = framed(asked("write", run=key, n=6).content)
    path = [header["taken"][0] for header, _ in headers]
    said = asked("text", run=key, path=".".join(map(str, path))).json()
    (name, written), *_ = said.items()
    assert name == ("text" if facts.target is None else "target") and len(said) == 1
    run = core.trace(core.load(model), *([text, written] if name == "target" else [written]))
    read = run.source if run.target is None else run.target
    begins = LAST + 1 if name == "text" else 1
    assert list(read.ids[begins : begins + 6]) == path
    assert asked("text", run=key).json() == {}


@pytest.mark.parametrize(
    ("what", "params", "status", "says"),
    [
        ("write", {"path": "x"}, 400, "points between"),
        ("write", {"n": "-1"}, 400, "n"),
        ("write", {"t": "0"}, 400, "0.1 to 3"),
        ("write", {"how": "best"}, 400, "sample, greedy, beam"),
        ("write", {"head": "99"}, 400, "head"),
        ("write", {"run": "unknown"}, 404, ""),
        ("beams", {"beams": "99"}, 400, "beams"),
        ("lens", {"position": "99"}, 400, "99"),
        ("layers", {"first": "1", "last": "99"}, 400, "1 to 64"),
        ("layers", {"first": "7", "last": "8"}, 400, "position"),
        ("wrote", {"path": "x"}, 400, "points between"),
        ("text", {"path": "x"}, 400, "points between"),
        ("text", {"path": "6143.9999"}, 400, "6143"),
        ("cost", {"n": "9" * 99}, 400, "n"),
    ],
)
def test_what_a_route_cannot_answer_gets_a_sentence(what: str, params: dict[str, str], status: int, says: str) -> None:
    answer = asked(what, **{"run": run_of("storyteller", STORY)[0], **params})
    assert answer.status_code == status and says in answer.text and "Traceback" not in answer.text


def test_what_is_refused_while_words_come_is_said_behind_them(monkeypatch: pytest.MonkeyPatch) -> None:
    key, begun = run_of("storyteller", STORY)[0], service.service().write

    async def interrupted(*arguments: Any, **named: Any) -> Any:
        async for answer in begun(*arguments, **named):
            yield answer
            if not isinstance(answer, PreparedText):
                raise core.errors.ServerBusy("65 sentences are waiting already. Try again in a few seconds.")

    monkeypatch.setattr(service.service(), "write", interrupted)
    kinds = [(header["kind"], header.get("sentence", "")) for header, _ in framed(asked("write", run=key, n=5).content)]
    assert [kind for kind, _ in kinds] == ["begun", "written", "refused"]
    assert "waiting" in kinds[-1][1]


def test_an_encoder_is_refused_by_the_route_as_well() -> None:
    answer = asked("write", run=run_of("minilm", "A cat sat.")[0])
    assert answer.status_code == 400 and "encoder" in answer.text


@pytest.mark.parametrize(("model", "text"), [("storyteller", STORY), ("translator", FOREST)])
def test_the_code_of_a_file_gives_its_numbers(model: str, text: str, capsys: pytest.CaptureFixture[str]) -> None:
    key, request, facts = run_of(model, text)
    (begun, _), *written = framed(asked("write", run=key, n=2).content)
    path = [header["taken"][0] for header, _ in written]
    code = export.snippet(facts, request).replace(export.PATH, ", ".join(map(str, path)))
    names: dict[str, Any] = {}
    exec(compile(code, "snippet", "exec"), names)
    columns = names["opening"].readings
    assert len(columns) == len(begun["prompt"]) + 2
    assert columns[-1].taken is None and columns[-2].taken.id == path[-1]
    assert columns[-2].taken.prob == pytest.approx(written[-1][0]["taken"][1], abs=1e-5)
    assert len(capsys.readouterr().out.splitlines()) >= len(columns)


# in a browser


def room(page: Page) -> Locator:
    return page.locator(".hl.generate")


def see(screen: Screen, **params: str) -> Locator:
    """The room by its link, once its columns and all that belongs to them are drawn. Nothing is written at once unless n says so."""
    said = {"view": "generate", "n": "0", "how": "greedy", **params}
    query = "&".join(f"{name}={value.replace(' ', '+')}" for name, value in said.items())
    screen.arrive(f"?{query}")
    found = room(screen.page)
    expect(found).to_have_attribute("data-lens", "ready")
    return found


def shares(found: Locator, which: str) -> list[float]:
    """The numbers of the open column, in percent: the model's `own`, or as `set`."""
    texts = found.locator(f"svg text.{which}").all_text_contents()
    return [float(re.sub("[<>]", "", text)) for text in texts if re.search(r"\d", text)]


def near(found: list[float], expected: list[float]) -> bool:
    """As they are rounded on the screen: one decimal below 10 and above 98.5, else none."""
    return found == [pytest.approx(x, abs=0.051 if x < 9.95 or x > 98.5 else 0.51) for x in expected]


def test_what_is_on_the_screen_is_core_s(plain: Plain) -> None:
    page, found = plain.page, see(plain, model="Storyteller", text=STORY, path=f"{KING}.{WHO}", f=str(LAST + 1))
    opening = writer.opening(storyteller(), STORY, path=[KING, WHO])
    column = opening.readings[LAST + 1]
    told = asked("wrote", run=run_of("storyteller", STORY)[0], path=f"{KING}.{WHO}").json()[-1]
    fact = found.locator(".fact .big")
    expect(fact).to_contain_text("After king the likeliest word came, who: 55 %, 0.9 bits of surprise.")
    most = told["looks"][0]
    assert found.locator("svg text.candidate").all_text_contents()[:10] == [
        label(storyteller(), int(i)) for i in column.ids[:10]
    ]
    assert near(shares(found, "own")[:8], [100 * p for p in column.probs()[:8].tolist()])
    chips = found.locator(".chip")
    head = told["heads"][0]
    expect(chips.first).to_contain_text(f"L{head['most']['layer']} H{head['most']['head']}")
    expect(chips.first).to_contain_text(f"{head['adds']:+.2f}".replace("-", "−"))
    # the arc is that of the look that adds most; a chip shows its head's
    sink = int(found.evaluate("root => root.dataset.look.split('.')[2]"))
    assert sink == next(look["key"] for look in told["looks"] if look["key"] == sink) and most["adds"] > 0
    chips.nth(1).click()
    other = told["heads"][1]["most"]
    expect(found).to_have_attribute("data-look", re.compile(rf"{other['layer']}\.{other['head']}\.\d+"))
    page.wait_for_url(lambda url: f"layer={other['layer']}" in url and f"head={other['head']}" in url)
    chips.nth(1).click()
    expect(found.locator(".looking .quiet").first).to_have_attribute("aria-pressed", "true")
    assert faults(page) == []

    # how to read it, and the same as a table, below a full screen
    guide = found.get_by_role("button", name=SAID["guide"], exact=True)
    guide.click()
    expect(found.locator(".guide")).to_be_in_viewport()
    guide.click()
    table = found.get_by_role("button", name=SAID["table"], exact=True)
    table.click()
    expect(found.locator(".numbers caption").first).to_be_in_viewport()
    line = found.locator(".numbers").first.locator("tr").nth(1 + LAST)
    cells = line.locator("th, td").all_text_contents()
    assert cells[:3] == [str(LAST), "a", "king"] and float(cells[3]) == pytest.approx(0.08991, abs=2e-4)
    assert float(cells[5]) == pytest.approx(-math.log2(0.08991), abs=0.01)

    # settings reshape what is drawn; the surprise stays the model's own
    found.locator("input[type=range]").first.fill("0.7")
    found.locator(".list select").nth(1).select_option("0.9")
    expect(fact).to_contain_text("With these settings: 92 %, of 3 words.")
    assert near(shares(found, "set"), [92.2, 4.7, 3.1])
    page.wait_for_url(lambda url: "show=set" in url)
    expect(found.locator(".drawn-from")).to_have_text("3 of 6,144 words can be drawn")
    found.locator(".list select").nth(2).select_option("0.05")
    expect(fact).to_contain_text(re.compile(r"With these settings: 95 %, of 2 words\."))
    found.locator(".list select").nth(2).select_option("0")
    assert line.locator("th, td").nth(3).text_content() == cells[3]
    table.click()

    # every layer at every word
    found.locator(".pages button", has_text=SAID["layers_page"]).click()
    expect(found).to_have_attribute("data-page", "layers")
    expect(found).to_have_attribute("data-lens", "ready")
    expect(fact).to_contain_text("who first leads after layer 5 of 0 to 5")
    assert found.locator(".lens .rank").all_text_contents() == ["5,925", "64", "42", "12", "5", "3", "1"]
    assert faults(page) == []
    found.locator(".pages button", has_text=SAID["columns"]).click()

    # another word, by key: the other line stays below, and this one is written as far
    found.locator(".figure").focus()
    page.keyboard.press("Home")
    expect(found).to_have_attribute("data-focus", str(LAST))
    page.keyboard.press("ArrowRight")
    page.keyboard.press("3")
    third = int(column.ids[2])
    expect(found).to_have_attribute("data-path", f"{KING}.{third}")
    expect(found).to_have_attribute("data-complete", "true")
    expect(fact).to_contain_text("What if it had said")
    expect(found.locator("svg .line-words")).to_have_text(["who"])
    page.wait_for_url(lambda url: f"path={KING}.{third}" in url and f"other={KING}.{WHO}" in url)
    found.locator("svg rect.line").click()
    expect(found).to_have_attribute("data-path", f"{KING}.{WHO}")
    found.locator(".figure").focus()
    page.keyboard.press("ArrowLeft")
    expect(found).to_have_attribute("data-focus", str(LAST))
    page.keyboard.press("End")
    expect(found).to_have_attribute("data-focus", str(LAST + 2))
    found.locator("svg rect.drop").click()
    expect(found.locator("svg .line-words")).to_have_count(0)

    # the given text, unfolded
    found.locator("svg rect[data-fold]").click()
    expect(found.locator("svg rect[data-fold]")).to_have_attribute("data-fold", "out")
    page.keyboard.press("Home")
    expect(found).to_have_attribute("data-focus", "0")

    # a link says all of it
    found.get_by_role("button", name="Copy link", exact=True).click()
    link = parse_qs(urlsplit(found.get_attribute("data-link") or "").query)
    wanted = {"view": "generate", "how": "sample", "t": "0.7", "p": "0.9", "path": f"{KING}.{WHO}", "text": STORY}
    assert {name: link[name][0] for name in wanted} == wanted

    # beams
    found.locator(".seg button", has_text=SAID["beam"]).first.click()
    expect(found).to_have_attribute("data-steps", "8")
    expect(found).to_have_attribute("data-columns", str(LAST + 9))  # those of the best text are read as well
    expect(found).to_have_attribute("data-complete", "true")
    expect(found.locator("svg")).to_contain_text("−12.27")

    # what is read again without a cache, measured here
    found.locator(".pages button", has_text=SAID["cache"]).click()
    found.get_by_role("button", name=SAID["without"], exact=True).click()
    expect(found.locator(".cache .kv").first).to_contain_text("Read again now: all")
    found.get_by_role("button", name=SAID["time"], exact=True).click()
    expect(found).to_have_attribute("data-cost", "ready")
    expect(found.locator(".foot .ok")).to_contain_text(SAID["same"])

    # projected
    page.evaluate("headlight.settings.set('projector', 'true')")
    expect(found).to_have_attribute("data-projector", "true")
    expect(found.locator(".fact .big")).to_be_visible()
    assert faults(page) == [] and page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    page.evaluate("headlight.settings.set('projector', null)")


@pytest.mark.thorough
def test_the_room_opens_on_words_that_it_draws_and_rests_on_the_boldest(plain: Plain) -> None:
    page = plain.page
    plain.arrive(f"?view=generate&model=Storyteller&text={quote_plus(STORY)}")
    found = room(page)
    (drawn,) = core.generate(storyteller(), STORY, max_tokens=26, temperature=0.8, seed=3)
    expect(found).to_have_attribute("data-path", ".".join(map(str, drawn.ids)))
    opening = writer.opening(storyteller(), STORY, path=drawn.ids)
    bold = [
        (math.log(reading.probs()[0]) - math.log(reading.taken.prob), reading.position)
        for reading in opening.readings
        if reading.taken is not None and reading.position >= LAST
    ]
    expect(found).to_have_attribute("data-focus", str(max(bold)[1]))
    expect(found.locator(".fact .big")).to_contain_text("The draw took")
    # all of it is on the screen
    figure = found.locator(".figure svg").bounding_box()
    assert figure is not None and figure["y"] + figure["height"] <= 720
    expect(found.locator(".foot")).to_be_in_viewport()

    # decide first: nothing that comes is on the screen, and Page Down shows it
    page.keyboard.press("f")
    expect(found.locator(".fact .big")).to_contain_text("Decide first.")
    expect(found.locator("svg text.candidate")).to_have_count(0)
    expect(found.locator(".chip")).to_have_count(0)
    names, position = found.locator("svg tspan").all_text_contents(), max(bold)[1]
    assert "?" in names and label(storyteller(), drawn.ids[position - LAST]) not in names  # nor over its column
    found.locator("rect.show").click()
    expect(found.locator("svg text.candidate").first).to_be_visible()
    page.keyboard.press("f")
    page.keyboard.press("f")
    expect(found.locator("svg text.candidate")).to_have_count(0)
    page.keyboard.press("PageDown")
    expect(found.locator("svg text.candidate").first).to_be_visible()
    page.keyboard.press("f")

    # another draw: the line stays below
    found.get_by_role("button", name=SAID["again"], exact=True).click()
    page.wait_for_url(lambda url: "seed=4" in url and f"other={'.'.join(map(str, drawn.ids))}" in url)
    (next_,) = core.generate(storyteller(), STORY, max_tokens=26, temperature=0.8, seed=4)
    expect(found).to_have_attribute("data-path", ".".join(map(str, next_.ids)))
    expect(found.locator("svg .line-words")).to_have_count(1)


@pytest.mark.parametrize("model", ["smollm2", "storyteller"])
def test_a_cache_is_compared_with_numbers_of_kv_heads_that_the_model_could_have(plain: Plain, model: str) -> None:
    config = core.load(model).model.config
    found = see(plain, model=session_models.TITLES[model], text=STORY, page="cache")
    others = {int(n) for n in re.findall(r"With (\d+) KV head", found.locator(".cache").inner_text())}
    assert others and config.n_kv_heads not in others
    assert all(config.n_heads % n == 0 for n in others), others


@pytest.mark.thorough
def test_greedy_that_repeats_itself_says_so_and_offers_to_draw(plain: Plain) -> None:
    found = see(plain, model="Storyteller", text=STORY, n="64")
    (greedy,) = core.generate(storyteller(), STORY, max_tokens=64)
    expect(found).to_have_attribute("data-path", ".".join(map(str, greedy.ids)))
    expect(found.locator(".notice")).to_contain_text("Greedy repeats itself")
    found.get_by_role("button", name=SAID["draw_instead"], exact=True).click()
    plain.page.wait_for_url(lambda url: "how=sample" in url)
    expect(found.locator(".notice")).to_be_hidden()


def test_greedy_that_repeats_itself_opens_on_the_strongest_look_into_the_first_copy(plain: Plain) -> None:
    found = see(plain, model="Storyteller", text=STORY, n="64")
    (greedy,) = core.generate(storyteller(), STORY, max_tokens=64)
    expect(found).to_have_attribute("data-path", ".".join(map(str, greedy.ids)))
    ids, n = list(greedy.ids), len(greedy.ids)
    runs = [
        (next((k for k in range(second - first) if second + k >= n or ids[first + k] != ids[second + k]), second - first), first, second)
        for second in range(1, n)
        for first in range(second)
    ]  # fmt: skip
    length, first, second = max(runs, key=lambda run: (run[0], -run[2], run[1]))
    assert length >= 6
    told = asked("wrote", run=run_of("storyteller", STORY)[0], path=".".join(map(str, ids))).json()
    own = LAST + 1  # tokens of the text
    sink = 0
    strongest = {
        word["position"]: next(look for look in word["looks"] if look["key"] != sink)
        for word in told
        if own + second <= word["position"] + 1 < own + second + length
    }
    into = {
        at: look["adds"] for at, look in strongest.items() if own + first <= look["key"] < own + first + length
    }  # fmt: skip
    rests = max(into, key=lambda at: into[at]) if into else own + second
    expect(found).to_have_attribute("data-focus", str(rests))
    expect(found.locator(".fact .big")).to_contain_text("It repeats itself:")
    expect(found.locator(".fact .big")).to_contain_text(f"{length} tokens")


@pytest.mark.thorough
def test_a_beam_search_is_compared_with_greedy_and_its_other_lines_are_below(plain: Plain) -> None:
    found = see(plain, model="Storyteller", text=STORY, how="beam", beams="3", n="8")
    *_, (last, _) = framed(asked("beams", run=run_of("storyteller", STORY)[0], beams=3, n=8).content)
    best, *others = [(ids, log_prob) for ids, log_prob, *_ in last["finished"]]
    expect(found).to_have_attribute("data-path", ".".join(map(str, best[0])))
    opening = writer.opening(storyteller(), STORY, path=core.generate(storyteller(), STORY, max_tokens=8)[0].ids)
    greedy = sum(math.log(column.taken.prob) for column in opening.readings if column.position >= LAST and column.taken)
    fact = found.locator(".fact .big")
    expect(fact).to_contain_text(f"The best it found has log p {best[1]:.2f}".replace("-", "−"))
    expect(fact).to_contain_text(f"greedy’s 8 tokens have {greedy:.2f}".replace("-", "−"))
    expect(found.locator("svg .line-words")).to_have_count(len(others))
    for rank, (_, log_prob) in enumerate(others, 2):
        expect(found.locator(".figure svg")).to_contain_text(f"{rank} · log p {log_prob:.2f}".replace("-", "−"))
    found.locator("svg rect.line").first.click()
    expect(found).not_to_have_attribute("data-path", ".".join(map(str, best[0])))
    expect(found.locator("svg .line-words")).to_have_count(len(others))


@pytest.mark.thorough
def test_beams_that_come_before_the_text_are_compared_with_greedy_all_the_same(screen: Screen) -> None:
    """However late a server says what follows the text."""
    found = see(screen, model="Storyteller", text=STORY, how="beam", beams="3", n="8")
    expect(found.locator(".fact .big")).to_contain_text("greedy’s 8 tokens")  # then the room rests where the lines part
    focus = found.get_attribute("data-focus")
    page, held = screen.page, list[Route]()
    page.route(lambda url: "generate/write" in url and "how=beam" in url, lambda route: held.append(route))
    try:
        page.goto(f"{screen.address}/?view=generate&model=Storyteller&text={quote_plus(STORY)}&how=beam&beams=3&n=8")
        ended = "performance.getEntriesByType('resource').some(({ name, responseEnd }) => name.includes('beams') && responseEnd)"
        once(page, ended)
        idle(page)
        for route in held:
            with suppress(Error):  # the page may have let go of it
                route.continue_()
        page.unroute_all()
        expect(room(page).locator(".fact .big")).to_contain_text("The best it found has log p")
        expect(room(page)).to_have_attribute("data-focus", focus or "")  # where the lines part
    finally:
        page.unroute_all()


# The button is pressed again behind so many columns: in the page, since by the time that a test hears of them all may be written.
STOPS = """(root, most) => void new MutationObserver((_, watch) => {
    if (Number(root.dataset.columns) <= most) return;
    watch.disconnect();
    root.querySelector(".go").click();
}).observe(root, { attributes: true, attributeFilter: ["data-columns"] })"""


def test_words_come_one_by_one_and_stop(plain: Plain) -> None:
    page, found = plain.page, see(plain, model="Storyteller", text=STORY)
    before = int(found.get_attribute("data-columns") or 0)
    found.evaluate(STOPS, before + 1)
    found.locator(".go").click()
    plain.until(f"Number(root.dataset.columns) > {before + 1}")
    # Drawn together with the path: that nothing is written any more is said a frame before the last words are on the plain.
    expect(found.locator(".go")).to_have_attribute("aria-pressed", "false")
    path = (found.get_attribute("data-path") or "").split(".")
    assert 2 <= len(path) < 256
    (whole,) = core.generate(storyteller(), STORY, max_tokens=len(path))
    assert path == [str(i) for i in whole.ids]
    page.wait_for_url(lambda url: f"path={'.'.join(path)}" in url)
    expect(found).to_have_attribute("data-path", ".".join(path))
    plain.open(f"?{urlsplit(page.url).query}")
    expect(found).to_have_attribute("data-path", ".".join(path))
    expect(found).to_have_attribute("data-complete", "true")
    found.get_by_role("button", name=SAID["begin_again"], exact=True).click()
    expect(found).to_have_attribute("data-path", "")

    # words behind one text do not go on from another
    found.locator("svg rect.word").nth(1).click()  # the first is that of the line that was left
    expect(found).not_to_have_attribute("data-path", "")
    page.wait_for_url(re.compile(r"[?&]path=\d+(&|$)"))  # the room has told of it
    key = found.get_attribute("data-run") or ""
    plain.run_text("The queen had a")
    expect(found).not_to_have_attribute("data-run", key)
    (other,) = core.generate(storyteller(), "The queen had a", max_tokens=26)
    expect(found).to_have_attribute("data-path", ".".join(map(str, other.ids)))
    expect(found.locator("svg")).to_contain_text("5 tokens")


def test_keys_are_the_room_s_where_nothing_has_the_focus(plain: Plain) -> None:
    page, found = plain.page, see(plain, model="Storyteller", text=STORY, path=f"{KING}.{WHO}")
    page.evaluate("document.activeElement?.blur()")
    page.keyboard.press("ArrowLeft")
    expect(found).to_have_attribute("data-focus", str(LAST + 1))
    page.keyboard.press("Home")
    expect(found).to_have_attribute("data-focus", str(LAST))
    page.keyboard.press("PageDown")  # as a clicker's
    expect(found).to_have_attribute("data-focus", str(LAST + 1))
    page.keyboard.press("/")
    page.keyboard.type("1.5")
    page.keyboard.press("Enter")
    head = found.locator(".looking .head-button")
    expect(head).to_have_text("Layer 1 · Head 5")
    expect(found).to_have_attribute("data-complete", "true")
    slider = found.locator("input[type=range]").first
    slider.focus()
    page.keyboard.press("Home")  # what has the focus keeps its keys
    expect(slider).to_have_value("0.1")
    expect(found).to_have_attribute("data-focus", str(LAST + 1))
    found.locator(".go").focus()
    page.keyboard.press("ArrowLeft")
    expect(found).to_have_attribute("data-focus", str(LAST))
    page.evaluate("document.activeElement?.blur()")
    found.locator(".seg button", has_text=SAID["greedy"]).click()
    page.evaluate("document.activeElement?.blur()")
    page.keyboard.press("End")
    page.keyboard.press("ArrowRight")  # behind the last column one word is written
    expect(found).to_have_attribute("data-columns", str(LAST + 4))
    found.evaluate(STOPS, LAST + 5)
    page.keyboard.press("Space")
    plain.until(f"Number(root.dataset.columns) > {LAST + 5}")


@pytest.mark.thorough
def test_what_was_written_goes_along_into_other_rooms(screen: Screen) -> None:
    page, found = screen.page, see(screen, model="Storyteller", text=STORY)
    onward = found.get_by_label(SAID["open_in"], exact=True)
    expect(onward).to_be_hidden()  # nothing was written
    found = see(screen, model="Storyteller", text=STORY, path=f"{KING}.{WHO}", how="sample")
    onward.select_option("explore")
    explored = page.locator(".hl[data-painted]:not(.generate)")
    explored.wait_for()
    assert parse_qs(urlsplit(page.url).query)["text"] == [f"{STORY} king who"]
    page.go_back()
    expect(room(page)).to_have_attribute("data-path", f"{KING}.{WHO}")
    room(page).get_by_label(SAID["open_in"], exact=True).select_option("whatif")
    page.locator(".hl.whatif[data-settled='true']").wait_for()
    assert page.get_by_role("textbox", name="Sentence").first.input_value() == f"{STORY} king who"


def test_the_translator_writes_with_its_alignment_and_its_files_say_so(plain: Plain) -> None:
    page, found = plain.page, see(plain, model="Translator", text=FOREST, layer="1", head="5")
    found.locator(".go").click()
    expect(found.locator(".said")).to_contain_text("The text is over")
    expect(found).to_have_attribute("data-lens", "ready")
    found.locator(".strip.own span", has_text="the").first.click()
    expect(found.locator(".fact .big")).to_contain_text(
        "After the the likeliest word came, forest: 49 %, 1.0 bits of surprise."
    )
    assert near(shares(found, "own")[:2], [49.35, 43.03])
    weights = (
        found.locator(".strip")
        .first.locator("span")
        .evaluate_all("spans => spans.map(span => [span.textContent, getComputedStyle(span).backgroundColor])")
    )
    shades = {name: sum(map(int, re.findall(r"\d+", colour)[:3])) for name, colour in weights}
    assert min(shades, key=lambda name: shades[name]) == "Wald"
    expect(found).to_have_attribute("data-lens", "ready")
    found.get_by_role("button", name="Export", exact=True).click()
    with page.expect_download() as download:
        found.get_by_role("button", name=f"CSV: {SAID['csv_words']}").click()
    text = download.value.path().read_text(encoding="utf-8-sig")
    about = [line[2:] for line in text.splitlines() if line.startswith("#")]
    table = list(csv.DictReader(line for line in text.splitlines() if not line.startswith("#")))
    assert "Translator" in about[0] and "writer.opening" in "".join(about)
    forest = [row for row in table if row["word"] == "forest" and row["reads"] == "the"]
    assert float(forest[0]["probability"]) == pytest.approx(0.4935, abs=1e-3) and forest[0]["taken"] == "1"
    with page.expect_download() as download:
        found.get_by_role("button", name=f"JSON: {SAID['json_tree']}").click()
    tree = json.loads(download.value.path().read_text(encoding="utf-8"))
    assert "Translator" in tree["about"][0] and tree["next"][0]["taken"] and 0 < tree["next"][0]["probability"] <= 1
    with page.expect_download() as download:
        found.get_by_role("button", name="SVG", exact=True).click()
    drawing = download.value.path().read_text(encoding="utf-8")
    assert "forest" in drawing and "generate-hatch" in drawing and "writer.opening" in drawing


def test_a_spoiled_link_gives_the_room_and_a_sentence_for_each(plain: Plain) -> None:
    nonsense = {
        name: said for name, said in NONSENSE.items() if name != "n"
    }  # whose words would make the sentences old
    found = see(plain, model="Storyteller", text=STORY, **nonsense)
    for name in nonsense:
        expect(plain.page.locator(".st-key-sentences")).to_contain_text(f"for {name} ")
    expect(found).to_have_attribute("data-page", "columns")


@pytest.mark.thorough
def test_an_encoder_gets_a_sentence_and_one_click_to_a_model_that_writes(screen: Screen) -> None:
    page = screen.page
    page.goto(f"{screen.address}/?view=generate&model=MiniLM-L6&text=A+cat+sat.")
    page.get_by_text(words.CANNOT_WRITE.format(title="MiniLM-L6")).wait_for()
    page.get_by_role("button", name=words.TAKE_WRITER.format(title="Storyteller")).click()
    expect(room(page)).to_have_attribute("data-lens", "ready")


def test_a_phone_shows_the_columns_first_and_the_words_below_them(plain_phone: Plain) -> None:
    found = see(plain_phone, model="Storyteller", text=STORY)
    bars, figure = (found.locator(name).bounding_box() for name in (".bars", ".figure"))
    assert bars is not None and figure is not None and figure["y"] < bars["y"] < 844
    assert found.locator(".figure").evaluate("box => box.scrollWidth <= box.clientWidth")
    assert plain_phone.page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    small = found.locator(".controls button, .controls select, .bar, .chip, footer button").evaluate_all(
        "all => all.filter(one => one.offsetParent && one.getBoundingClientRect().height < 43.5).map(one => one.outerHTML)"
    )
    assert not small
    found.locator(".bar").nth(1).click()
    expect(found).to_have_attribute("data-path", str(KING))
    assert faults(plain_phone.page) == []
