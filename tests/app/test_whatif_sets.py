"""Sets of pairs in What if: read from lines or a template, the sixteen pairs of names, refusals with a line, the screen and its file."""

from __future__ import annotations

import csv
import io
import json
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import numpy as np
import pytest
from playwright.sync_api import expect
from starlette.applications import Starlette
from starlette.testclient import TestClient

from app.rooms.whatif import words
from app.shell import routes
from app.transport import messages
from tests.app.plain import AnotherPlain
from tests.app.test_accessibility import findings
from tests.app.test_whatif import DOROTHY, PHONE, STORY, UNCLE, facts, printed, settled, visit
from tests.core.gguf.test_smollm2 import pytestmark as needs_smollm2

APP = "app/main.py"
SAID = words.COMPONENT
NAMES = {
    "template": SAID["set_example_first"],
    "other": SAID["set_example_second"],
    "asks": SAID["set_example_asks"],
    "words": SAID["set_example_words"],
    "both": "on",
}
LINES = f"{DOROTHY},{UNCLE}\n\n{UNCLE},{DOROTHY},Henry,Em\nOnce upon a,Once before a"


@pytest.fixture(scope="module")
def client() -> Iterator[TestClient]:
    with TestClient(Starlette(routes=routes.ROUTES), raise_server_exceptions=True) as client:
        yield client


def asked(client: TestClient, body: Any, model: str = "storyteller", text: str = DOROTHY) -> Any:
    return client.post(f"/headlight/whatif/set?run={facts(model, text).key}", content=json.dumps(body))


def read(content: bytes) -> tuple[list[list[str]], list[dict[str, Any]], dict[str, Any]]:
    """The pairs, each of those that have run with its shares of heads, and what the files say."""
    found, rest = [], content
    while rest:
        (length,) = struct.unpack_from("<I", rest)
        found.append(messages.unpack(rest[4 : 4 + length]))
        rest = rest[4 + length :]
    rows = []
    for header, body in found[1:-1]:
        heads = np.frombuffer(body, "<f4", header["each"] * header["layers"], header["heads_at"])
        own, there = header["leads"]
        rows.append(header | {"shares": heads.reshape(header["layers"], -1) / (there - own)})
    return found[0][0]["pairs"], rows, found[-1][0]


def table(text: str) -> list[dict[str, str]]:
    lines = [line for line in csv.reader(io.StringIO(text.lstrip("\ufeff"))) if line and not line[0].startswith("#")]
    return [dict(zip(lines[0], line, strict=True)) for line in lines[1:]]


def test_lines_run_one_after_the_other_and_are_in_the_file(
    client: TestClient, capsys: pytest.CaptureFixture[str]
) -> None:
    answer = asked(client, {"lines": LINES})
    assert answer.status_code == 200 and answer.headers["cache-control"] == "no-store"
    pairs, rows, about = read(answer.content)
    assert pairs[:2] == [[DOROTHY, UNCLE], [UNCLE, DOROTHY]] and [row["pair"] for row in rows] == [0, 1, 2]
    assert rows[1]["words"] == ["Henry", "Em"]
    assert asked(client, {"lines": LINES}).content == answer.content, "a set that is known is the same"
    _, name, text = about["table"]
    found = table(text)
    assert name == "headlight-whatif-set" and len(found) == 48 + 6
    shares = np.array([row["shares"][0, 5] for row in rows])
    (row,) = [row for row in found if (row["part"], row["layer"], row["head"]) == ("head", "0", "5")]
    assert float(row["mean"]) == pytest.approx(shares.mean(), abs=1e-4)
    assert float(row["spread"]) == pytest.approx(shares.std(ddof=1), abs=1e-4)
    assert float(row["pair 2"]) == pytest.approx(shares[1], abs=1e-4) and row["pairs"] == "3"
    out = [line.split() for line in printed(about["snippet"], capsys).splitlines()]
    assert len(out) == 48
    for layer, head, mean, _ in out:
        expected = np.mean([row["shares"][int(layer), int(head)] for row in rows])
        assert float(mean) == pytest.approx(float(expected), abs=1e-3)


@pytest.mark.parametrize(
    "body, says",
    [
        ({"lines": ""}, "no pair of sentences"),
        ({"lines": f"{DOROTHY},{UNCLE}\nOne"}, "Line 2 has 1 column"),
        ({"lines": f"{DOROTHY},{UNCLE}\n\nI saw Aunt,I saw Aunt Em"}, "Line 3: "),
        ({"lines": "\n".join(["Once upon,Once before"] * 65)}, "65 pairs, and a set has 64 at most"),
        ({"template": "no slot", "words": "a, b"}, "two slots"),
        ({"template": "{A} is", "words": "a, b\n\na, b, c"}, "Line 3 of the words has 3"),
        ({"template": "{A} is", "other": "{B} is", "words": "Aunt, Aunt Em"}, "Line 1: "),
        ({"lines": 3}, "cannot be read"),
        (["lines"], "cannot be read"),
        ({"lines": "a" * 70_000}, "64,000 is the most"),
    ],
)
def test_a_set_that_cannot_run_says_where(client: TestClient, body: Any, says: str) -> None:
    answer = asked(client, body)
    assert answer.status_code == 400 and says in answer.text and len(answer.text) < 400


@pytest.mark.parametrize("body", ["[" * 25_000, '{"a":' * 20_000, '{"lines": ' + "9" * 5000 + "}"])
def test_json_that_python_cannot_read_gets_the_sentence_too(client: TestClient, body: str) -> None:
    key = facts("storyteller", DOROTHY).key
    answer = client.post(f"/headlight/whatif/set?run={key}", content=body)
    assert answer.status_code == 400 and "cannot be read" in answer.text


def test_a_set_needs_a_model_that_writes(client: TestClient) -> None:
    assert "language models that write" in asked(client, {"lines": LINES}, "minilm", "It was late.").text
    assert client.post("/headlight/whatif/set?run=gone", content="{}").status_code == 404
    assert asked(client, {"lines": ""}).status_code == 400


@needs_smollm2
@pytest.mark.thorough
def test_the_sixteen_pairs_of_names(client: TestClient) -> None:
    pairs, rows, about = read(asked(client, NAMES, "smollm2", "The capital of France is").content)
    assert (
        len(pairs) == len(rows) == 16 and rows[0]["words"] == ["Mary", "John"] and rows[1]["words"] == ["John", "Mary"]
    )
    assert rows[0]["leads"] == pytest.approx([6.120, -5.485], abs=0.01)
    expected = {(23, 3): (0.46, 0.10), (20, 0): (0.30, 0.13), (29, 1): (0.28, 0.02), (29, 0): (-0.23, 0.03), (24, 4): (-0.20, 0.13)}  # fmt: skip
    for (layer, head), (mean, spread) in expected.items():
        shares = np.array([row["shares"][layer, head] for row in rows])
        assert (shares.mean(), shares.std(ddof=1)) == pytest.approx((mean, spread), abs=0.005)
        assert abs(np.sign(shares).sum()) == 16
    assert len(table(about["table"][2])) == 300


# the screen


def test_a_set_on_the_screen(plain_another: AnotherPlain) -> None:
    screen = visit(plain_another, (1280, 720), **STORY, against=UNCLE)
    page, root = screen.page, screen.page.locator(".hl.whatif")
    root.get_by_role("button", name="more than one sentence").click()
    box = root.locator(".set")
    # a line that cannot run is named, and the set stays to be mended
    field = box.get_by_label(SAID["set_lines_label"])
    field.fill(f"{DOROTHY},{UNCLE}\nI saw Aunt,I saw Aunt Em")
    box.get_by_role("button", name="Run the set").click()
    expect(box.locator(".problem")).to_contain_text("Line 2: ")
    expect(field).to_be_visible()
    field.fill(LINES)
    box.get_by_role("button", name="Run the set").click()
    root.and_(page.locator('[data-set="3"]')).wait_for()
    expect(box.locator(".problem")).to_be_hidden()
    expect(box.locator(".legend b")).to_have_text("all 3 pairs")
    assert "Dorothy+ran+home+over+the+prairie+to+Uncle+Henry+and+Aunt%2C" not in page.url and "Once" not in page.url
    fact = box.locator(".fact")
    expect(fact).to_contain_text("On average L")
    first = box.locator(".strongest .one").first
    expect(first.locator(".value")).to_contain_text(" of 3")
    box.locator(".strongest .one").nth(2).click()
    name = box.locator(".strongest .one > b").nth(2).text_content() or ""
    expect(fact).to_contain_text(name)
    expect(box.locator("h2", has_text="in each pair")).to_have_text(f"{name} in each pair")
    each = box.locator(".eachpair .one")
    expect(each).to_have_count(3)
    link = each.nth(1).get_attribute("href") or ""
    assert urlencode({"text": UNCLE}) in link and urlencode({"against": DOROTHY}) in link
    page.evaluate("document.activeElement?.blur()")
    page.keyboard.press("PageUp")
    expect(fact).not_to_contain_text(f"average {name} ")
    main = page.locator("[data-testid=stMain]")
    assert main.evaluate("(main) => main.scrollHeight - main.clientHeight") == 0
    assert findings(screen) == []
    root.get_by_role("button", name="Export").click()
    menu = page.get_by_role("dialog", name="Export")
    with page.expect_download() as waiting:
        menu.get_by_role("button", name="CSV: set of pairs").click()
    assert "part,layer,head,mean,spread,same_sign,pairs,pair 1" in Path(waiting.value.path()).read_text("utf-8")
    page.keyboard.press("Escape")
    with page.context.expect_page() as opened:
        each.nth(1).click()
    other = opened.value
    settled(other, sweep="parts")
    expect(other.locator(".hl.whatif").get_by_label("Another sentence")).to_have_value(DOROTHY)
    other.close()
    box.get_by_role("button", name="Back to one").click()
    settled(page, sweep="parts", swept="true")
    expect(root.locator(".lines")).to_be_visible()


def test_a_set_stops_when_it_is_told_to(plain_another: AnotherPlain) -> None:
    screen = visit(plain_another, PHONE, **STORY, against=UNCLE)
    page, root = screen.page, screen.page.locator(".hl.whatif")
    root.get_by_role("button", name="more than one sentence").click()
    box = root.locator(".set")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    box.get_by_label(SAID["set_lines_label"]).fill("\n".join([f"{DOROTHY},{UNCLE}"] * 64))
    box.get_by_role("button", name="Run the set").click()
    expect(box.locator(".legend b")).to_contain_text(" of 64 pairs")
    box.get_by_role("button", name="Stop").click()
    expect(box.locator(".legend b")).to_contain_text("stopped after")
    root.and_(page.locator('[data-set="going"]')).wait_for(state="detached")
    expect(box.get_by_role("button", name="Stop")).to_be_hidden()
    box.locator("summary").click()
    expect(box.get_by_role("button", name="Run the set")).to_be_visible()
    small = root.evaluate(
        "root => [...root.querySelectorAll('button, select, input, summary')].filter(e => e.offsetParent && e.type !== 'checkbox' && e.getBoundingClientRect().height < 43.5).map(e => e.textContent || e.type)"
    )
    assert small == [] and findings(screen) == []
