"""Languages: nothing untranslated, nothing unused, everything filled in alike; and a visitor never hears another one's language."""

from __future__ import annotations

import re
import string
import threading
from functools import cache
from pathlib import Path

import pytest
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.routing import Route
from starlette.testclient import TestClient

from app import languages
from app.kit import numbers
from app.kit import words as kit_words
from app.languages.spoken import Spoken
from app.rooms.masks import words as masks_words
from app.session import words as session_words
from app.transport import modules
from core.errors import TextError
from scripts import translations

OTHERS = [code for code in languages.CODES if code != languages.ENGLISH]


@cache
def collected() -> translations.Found:
    return translations.collected()


@pytest.mark.parametrize("code", OTHERS)
def test_a_language_has_every_sentence_and_no_other(code: str) -> None:
    assert not translations.lacking(code, collected())
    known = languages.catalogue(code)
    assert set(known.texts) == {text for text in collected() if isinstance(text, str)}
    assert set(known.forms) == {text for text in collected() if not isinstance(text, str)}
    path = languages.FOLDER / f"{code}.po"
    assert path.read_text(encoding="utf-8") == translations.updated(code, collected())


def fields(text: str) -> set[str]:
    return {name for _, name, _, _ in string.Formatter().parse(text) if name is not None}


@pytest.mark.parametrize("code", OTHERS)
def test_what_is_filled_in_is_the_same(code: str) -> None:
    known = languages.catalogue(code)
    for english, other in known.texts.items():
        in_code = set(re.findall(r"\{\w*\}", english)) == set(re.findall(r"\{\w*\}", other))
        try:
            assert fields(english) == fields(other), (english, other)
        except ValueError:  # braces that the browser fills in, or code
            assert in_code, (english, other)
        ends = english[:1].isspace(), english[-1:].isspace()
        assert ends == (other[:1].isspace(), other[-1:].isspace()), (english, other)
    for (_, several), forms in known.forms.items():
        assert fields(several) == fields(forms[-1])
        assert len(forms) == len(languages.catalogue(code).forms[next(iter(known.forms))])


@pytest.mark.parametrize("code", OTHERS)
def test_a_translation_is_no_longer_than_a_screen_has_room_for(code: str) -> None:
    """Buttons and labels have the room of their English and half as much; a sentence may be longer, since it can wrap."""
    known = languages.catalogue(code).texts
    long = {
        english: other for english, other in known.items() if len(english) <= 12 and len(other) > 2 * len(english) + 8
    }
    assert not long


def test_words_are_in_the_language_that_is_spoken() -> None:
    assert kit_words.COMPONENT["close"] == "Close"
    with languages.speaking("de"):
        assert kit_words.COMPONENT["close"] == "Schließen"
        assert masks_words.TITLE == "Masken"
        assert (
            session_words.EXAMPLE == "The animal didn't cross the street because it was too tired."
        )  # a model reads it
    assert masks_words.TITLE == "Masks"


def test_two_threads_speak_two_languages() -> None:
    """As two visitors do: each script runs in a thread of its own."""
    heard: dict[str, set[str]] = {"en": set(), "de": set()}
    both = threading.Barrier(2)

    def visit(code: str) -> None:
        with languages.speaking(code):
            both.wait()
            for _ in range(300):
                heard[code].add(masks_words.TITLE)
                heard[code].add(modules.source("kit/browser/words.js")[:200])

    import app.kit.scripts as scripts

    scripts.add()
    threads = [threading.Thread(target=visit, args=(code,)) for code in heard]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {"Masks"} == {text for text in heard["en"] if len(text) < 20}
    assert {"Masken"} == {text for text in heard["de"] if len(text) < 20}
    assert all(len(texts) == 2 for texts in heard.values())
    assert not heard["en"] & heard["de"]


def test_modules_without_words_have_one_address_for_all_and_those_with_words_have_their_own() -> None:
    import app.kit.scripts as scripts

    scripts.add()

    def addresses(name: str) -> set[str]:
        found = set()
        for code in languages.KNOWN:
            with languages.speaking(code):
                found.add(modules.address(name))
        return found

    assert len(addresses("kit/browser/words.js")) == len(languages.KNOWN)
    assert len(addresses("kit/browser/stage.js")) == len(languages.KNOWN)
    assert len(addresses("kit/browser/messages.js")) == 1


@pytest.mark.parametrize(
    ("header", "code"),
    [
        ("", "en"),
        ("de", "de"),
        ("de-CH,de;q=0.9,en;q=0.8", "de"),
        ("en-GB,en;q=0.9,de;q=0.8", "en"),
        ("fr-FR,fr;q=0.9,de;q=0.5,en;q=0.3", "de"),
        ("fr", "en"),
        ("de;q=0,en", "en"),
        ("*", "en"),
        ("DE-de", "de"),
        ("de;q=nonsense, en;q=0.1", "en"),
        ("x" * 10_000, "en"),
    ],
)
def test_a_browser_is_answered_in_the_first_of_its_languages_that_there_is(header: str, code: str) -> None:
    assert languages.asked(header) == code


def test_an_address_decides_over_the_browser() -> None:
    app = Starlette(routes=[Route("/", lambda _: PlainTextResponse(languages.current()))])
    app.add_middleware(Spoken)
    with TestClient(app) as client:
        assert client.get("/", headers={"Accept-Language": "en"}).text == "en"
        assert client.get("/", headers={"Accept-Language": "de"}).text == "de"
        assert client.get("/?lang=de", headers={"Accept-Language": "en"}).text == "de"
        assert client.get("/?lang=en", headers={"Accept-Language": "de"}).text == "en"
        assert client.get("/?lang=xx", headers={"Accept-Language": "de"}).text == "de"
        assert client.get("/?lang=de&lang=en").text == "de"
        assert client.get("/?a=1&notlang=de").text == "en"
    assert languages.current() == languages.ENGLISH


def test_a_refusal_of_core_is_said_with_what_was_put_into_it() -> None:
    english = next(
        text for text in languages.catalogue("de").texts if text.startswith("{0}: the architecture {1} is not")
    )
    sentence = english.format("model.gguf", "mamba", "", "llama, qwen2")
    with languages.speaking("de"):
        found = languages.said(TextError(sentence))
    assert found != sentence
    assert "model.gguf" in found and "mamba" in found and "llama, qwen2" in found
    with languages.speaking("de"):
        assert languages.said("No sentence of ours: 1,024.") == "No sentence of ours: 1,024."
    assert languages.said(sentence) == sentence


def test_every_pattern_finds_its_own_sentence_and_not_another_ones_place() -> None:
    """Filled with words, each refusal gives its own translation with the same words in it."""
    known = languages.catalogue("de")
    with languages.speaking("de"):
        for english in known.texts:
            if not languages.PLACE.search(english):
                continue
            given = {place: f"w{place}x" for place in languages.PLACE.findall(english)}
            filled = (
                languages.PLACE.sub(lambda m, given=given: given[m[1]], english).replace("{{", "{").replace("}}", "}")
            )
            said = languages.said(filled)
            assert all(said.count(word) >= 1 for word in given.values()), (english, said)


def test_numbers_are_written_as_the_language_writes_them() -> None:
    assert numbers.whole(49_152) == "49,152" and numbers.fixed(1234.5, 2) == "1,234.50"
    with languages.speaking("de"):
        assert numbers.whole(49_152) == "49.152"
        assert numbers.fixed(1234.5, 2) == "1.234,50"
        assert numbers.size(5 << 20) == "5,0 MiB"
        assert numbers.share(0.685, 1) == "68,5 %"
        assert numbers.seconds(1.25) == "1,2 s"


def test_every_words_file_says_that_it_is_one() -> None:
    paths = [*Path("app").rglob("words.py"), *(Path(name) for name in translations.WORDS)]
    assert len(paths) > 20
    for path in paths:
        assert path.read_text(encoding="utf-8").rstrip().splitlines()[-1].startswith(("languages.of(__name__", ")")), (
            path
        )


def test_the_pseudo_language_marks_all_that_goes_through_the_words() -> None:
    with languages.speaking(languages.PSEUDO):
        assert kit_words.COMPONENT["close"] == "⟦Close·⟧"
        assert languages.translated("√d") == "√d"
        assert languages.said("Close") == "⟦Close·⟧"


def test_a_long_text_of_a_visitor_in_a_sentence_comes_back_whole() -> None:
    """However often the words of the sentence are in it, and a sentence that is none of ours is given back."""
    long = " in a and of {0}, : it is" * 2_000
    with languages.speaking("de"):
        said = languages.said(f"This model has no token for “{long}”. It reads a b and nothing else.")
        assert long in said and "kein Token" in said
        assert languages.said(long) == long
