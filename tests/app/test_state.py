"""Where a picture opens, what a link may ask for, what the browser may report, and what becomes of an error."""

from __future__ import annotations

import re
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from app.attention import in_progress
from app.attention import params as attention_params
from app.attention import place as attention_place
from app.attention.place import Place
from app.kit import params as kit_params
from app.session import service, words
from core.checkpoints import Loaded
from core.errors import TextError
from core.run.request import Request
from core.service import engine

HEADER = {
    "key": "k1",
    "model": "Pair",
    "model_id": "pair",
    "writes": False,
    "tokens": {"source": ["The", "cat", "saw", "it", "."], "target": ["<s>", "die", "Katze"]},
    "sites": [
        {"id": "encoder", "records": [0, 1], "heads": 4, "query": "source", "key": "source", "n_query": 5, "n_key": 5},
        {"id": "cross", "records": [3, 5], "heads": 4, "query": "target", "key": "source", "n_query": 3, "n_key": 5},
    ],
}
OPENING = Place("encoder", 1, 1, 3)


def test_a_picture_opens_at_the_chosen_head_as_far_as_it_exists_and_at_it():
    assert attention_place.opening_place(HEADER) == OPENING


def test_without_it_the_last_word_but_one_is_chosen():
    header = HEADER | {"tokens": {"source": ["a", "b", "c", "d", "e"], "target": None}}
    assert attention_place.opening_place(header).query == 3


def test_a_full_stop_is_nothing_to_open_on():
    header = HEADER | {"tokens": {"source": ["[CLS]", "a", "word", ".", "[SEP]"], "target": None}}
    assert attention_place.opening_place(header).query == 2


OPENED = HEADER | {"openings": {"encoder": [0, 3, 1, 2], "cross": [1, 2, 0, 4]}}


def shown(header: dict[str, Any], said: dict[str, str], begin: Any = None) -> tuple[dict[str, str], list[str]]:
    """The values that a picture shows for a link, and the sentences about the rest."""
    return kit_params.read(attention_params.PARAMS, attention_params.Shown(header, said, begin), said)


def place(values: dict[str, str]) -> Place:
    return attention_params.place_of(values)


def test_a_text_of_one_s_own_opens_by_rule():
    assert attention_place.opening_place(OPENED) == Place("encoder", 0, 3, 1)
    values, notes = shown(OPENED, {"site": "encoder", "layer": "1", "head": "0", "query": "2"})
    assert (place(values), notes) == (Place("encoder", 1, 0, 2), [])


def test_a_head_that_was_chosen_begins_at_a_row_of_its_own():
    asked: list[tuple[int, int]] = []

    def begin(record: int, head: int) -> int:
        asked.append((record, head))
        return 4

    assert place(shown(OPENED, {"layer": "0", "head": "2"}, begin)[0]) == Place("encoder", 0, 2, 4)
    assert place(shown(OPENED, {"layer": "0", "head": "2", "query": "1"}, begin)[0]) == Place("encoder", 0, 2, 1)
    assert place(shown(OPENED, {"layer": "0", "head": "3"}, begin)[0]) == Place("encoder", 0, 3, 1), "as it opens"
    assert set(asked) == {(0, 2)}


def test_a_model_with_examples_opens_at_the_head_that_its_first_one_shows():
    header = HEADER | {"model_id": "translator"}
    assert attention_place.opening_place(header) == Place(
        "cross", 1, 3, 1
    )  # its layer 1, head 5 of four; "the" is not there
    header = header | {"tokens": HEADER["tokens"] | {"target": ["<s>", "a", "the"]}}
    assert attention_place.opening_place(header).query == 2


def test_a_link_is_followed():
    values, notes = shown(HEADER, {"site": "cross", "layer": "0", "head": "3", "query": "2"})
    assert (place(values), notes) == (Place("cross", 0, 3, 2), [])
    values, notes = shown(HEADER, Place("cross", 0, 3, None).params())
    assert (place(values), notes) == (Place("cross", 0, 3, None), [])


def test_of_two_locked_tokens_a_link_means_the_key():
    values, notes = shown(HEADER, {"query": "2", "key": "1"})
    assert (values["query"], values["key"], notes) == ("none", "1", [])


@pytest.mark.parametrize(
    ("asked", "there", "said"),
    [
        ({"layer": "7"}, OPENING, "layer “7”. Possible here: a whole number from 0 to 1. Shown instead: 1."),
        ({"head": "4"}, OPENING, "head “4”. Possible here: a whole number from 0 to 3"),
        ({"query": "5"}, OPENING, "query “5”"),
        ({"query": "-1"}, OPENING, "query “-1”. Possible here: a whole number from 0 to 4. Shown instead: 3."),
        ({"layer": "1e3"}, OPENING, "a whole number"),
        ({"layer": "9" * 5000}, OPENING, "a whole number"),
        ({"site": "<img>"}, OPENING, "site “<img>”. Possible here: encoder, cross. Shown instead: encoder."),
        ({"site": "cross", "query": "4"}, Place("cross", 1, 1, 2), "query “4”"),
    ],
)
def test_what_a_link_asks_in_vain_gets_a_sentence_and_the_rest_is_followed(asked, there, said):
    values, notes = shown(HEADER, asked)
    assert place(values) == there
    assert len(notes) == 1 and said in notes[0] and len(notes[0]) < 250


def script() -> None:
    """The answer to a request, as the view sees it, in a script of its own."""
    import streamlit as st

    from app.attention.in_progress import made_of
    from app.session import answer as session_answer
    from app.session.service import DEFAULT_MODEL
    from core.run.request import Request

    request = Request(DEFAULT_MODEL, (st.session_state.get("said", ""),))
    answer = session_answer.answer(request, made_of)
    while answer.waiting is not None:  # the model may take its time to load
        answer = session_answer.answer(request, made_of)
    st.text(answer.sentence or "fine")
    st.text("none" if answer.request is None else answer.request.texts[0])


def run(app: AppTest, text: str) -> list[str]:
    app.session_state["said"] = text
    app.run()
    assert not app.exception
    return [element.value for element in app.text]


def test_a_refusal_is_a_sentence_and_the_last_good_picture_stays():
    app = AppTest.from_function(script, default_timeout=30)
    sentence, shown = run(app, "")
    assert shown == "none" and "empty" in sentence
    assert run(app, "A cat.") == ["fine", "A cat."]
    sentence, shown = run(app, "word " * 600)
    assert shown == "A cat." and "512" in sentence and sentence.endswith(words.LAST_PICTURE)
    assert run(app, "Two cats.") == ["fine", "Two cats."]


def test_a_bug_is_a_sentence_too_and_its_traceback_goes_to_the_log(monkeypatch, caplog):
    app = AppTest.from_function(script, default_timeout=30)
    run(app, "A cat.")
    real = engine.run_request

    def broken(loaded: Loaded, job, *more):
        if job.request.texts == ("A dog.",):
            raise RuntimeError("secret detail")
        return real(loaded, job, *more)

    monkeypatch.setattr("core.service.engine.run_request", broken)
    sentence, shown = run(app, "A dog.")
    assert shown == "A cat." and sentence.startswith(words.BROKEN) and "secret" not in sentence
    assert "secret detail" in caplog.text


def reading() -> None:
    """Two requests: what the first leaves, and what is said of the second, which the model has no tokens for."""
    import streamlit as st

    from app.attention.in_progress import made_of
    from app.session import answer as session_answer
    from core.run.request import Request

    for text in ("abc=", "xyz"):
        answer = session_answer.answer(Request("copy", (text,)), made_of)
        while answer.waiting is not None:
            answer = session_answer.answer(Request("copy", (text,)), made_of)
    st.text(f"{answer.unreadable} {answer.request and answer.request.texts[0]} {answer.sentence}")


def test_a_text_that_the_model_has_no_tokens_for_is_told_from_other_refusals():
    app = AppTest.from_function(reading, default_timeout=30).run()
    assert not app.exception
    assert re.match(r"True abc= This model has no token for “x”. It reads a b .* = and", app.text[0].value)


def failing() -> None:
    from app.shell import errors

    assert errors.on_script_error(RuntimeError("secret detail"))


def test_a_script_that_fails_says_so_plainly_and_logs_why(caplog):
    app = AppTest.from_function(failing, default_timeout=30).run()
    assert [element.value for element in app.warning] == [words.BROKEN]
    assert not app.exception
    assert "secret detail" in caplog.text


def test_pictures_are_made_once_a_request():
    first, again = (service.awaited(in_progress.made_of(service.DEFAULT_REQUEST)) for _ in range(2))
    assert first is again
    with pytest.raises(TextError):
        service.awaited(in_progress.made_of(Request(service.DEFAULT_MODEL, ("",))))


# the options beside the place

CHOSEN = {
    "by": "far",
    "candidate": "2",
    "low": "maps",
    "predict": "true",
    "show": "table",
    "scale": "log",
    "bounds": "0.01,0.3",
    "kind": "max",
    "heads": "0.2,1.0",
    "hide": "0,4",
    "words": "true",
    "keep": "50",
    "metric": "sink",
    "sort": "true",
    "key": "3",
    "columns": "equal",
    "whole": "true",
    "zoom": "0,3,1,4",
}


def test_every_option_is_read_as_it_is_written():
    opening = kit_params.opening(attention_params.OPTIONS, None)
    assert CHOSEN.keys() == opening.keys() and all(CHOSEN[name] != text for name, text in opening.items())
    values, notes = shown(HEADER, CHOSEN)
    assert {name: values[name] for name in CHOSEN} == CHOSEN and notes == []
    assert shown(HEADER, {"heads": "1.0,0.2,1.0", "hide": "4,0,4"})[0]["heads"] == "0.2,1.0", "in one order, once"


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("show", "chart"),
        ("scale", ""),
        ("scale", "LOG"),
        ("bounds", "0.3,0.01"),
        ("bounds", "0.1,0.1"),
        ("bounds", "-1,1"),
        ("bounds", "0,nan"),
        ("bounds", "0,1e9"),
        ("bounds", "0,1,2"),
        ("kind", "<b>"),
        ("heads", "2.0"),
        ("heads", "0.4"),
        ("heads", "0"),
        ("heads", "0.1.2"),
        ("heads", "-1.0"),
        ("hide", "5"),
        ("hide", "0,1,2,3,4"),
        ("hide", "1,,2"),
        ("hide", "²"),
        ("keep", "0"),
        ("keep", "101"),
        ("keep", "8e1"),
        ("words", "yes"),
        ("words", "x" * 5000),
        ("zoom", "3,0,1,4"),
    ],
)
def test_an_option_that_cannot_be_followed_opens_as_it_does_with_a_sentence(name, text):
    values, notes = shown(HEADER, {name: text, "metric": "sink"})
    assert values == shown(HEADER, {"metric": "sink"})[0]
    assert len(notes) == 1 and f"asks for {name} “{text[:10]}" in notes[0] and len(notes[0]) < 280


@pytest.mark.parametrize("key", ["5", "-1"])
def test_a_key_that_is_not_there_locks_nothing(key):
    values, notes = shown(HEADER, {"key": key})
    assert values["key"] == "" and len(notes) == 1
