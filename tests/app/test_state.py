"""Where a picture opens, what a link may ask for, what the browser may report, and what becomes of an error."""

from __future__ import annotations

import re

import pytest
from streamlit.testing.v1 import AppTest

import core
from app.attention import in_progress
from app.attention import params as attention_params
from app.attention import place as attention_place
from app.attention.place import Place
from app.session import service, words
from core.errors import TextError
from core.run.request import Request
from core.service import engine

HEADER = {
    "key": "k1",
    "model": "Pair",
    "model_id": "pair",
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


def test_a_text_of_one_s_own_opens_by_rule():
    assert attention_place.opening_place(OPENED) == Place("encoder", 0, 3, 1)
    link = {"site": "encoder", "layer": "1", "head": "0", "query": "2"}
    assert attention_place.requested_place(OPENED, link) == (Place("encoder", 1, 0, 2), [])


def test_a_head_that_was_chosen_stays_and_begins_at_a_row_of_its_own():
    before = Place("encoder", 0, 2, 1)
    asked: list[tuple[int, int]] = []

    def begin(record: int, head: int) -> int:
        asked.append((record, head))
        return 4

    assert attention_place.carried_place(OPENED, before, "dog", begin) == Place("encoder", 0, 2, 4)
    assert attention_place.carried_place(OPENED, before, "cat", begin) == Place("encoder", 0, 2, 1)
    assert asked == [(0, 2)]


def test_a_model_with_examples_opens_at_the_head_that_its_first_one_shows():
    header = HEADER | {"model_id": "translator"}
    assert attention_place.opening_place(header) == Place(
        "cross", 1, 3, 1
    )  # its layer 1, head 5 of four; "the" is not there
    header = header | {"tokens": HEADER["tokens"] | {"target": ["<s>", "a", "the"]}}
    assert attention_place.opening_place(header).query == 2


def test_a_link_is_followed():
    asked = {"site": "cross", "layer": "0", "head": "3", "query": "2"}
    assert attention_place.requested_place(HEADER, asked) == (Place("cross", 0, 3, 2), [])
    assert attention_place.requested_place(HEADER, Place("cross", 0, 3, None).params()) == (
        Place("cross", 0, 3, None),
        [],
    )


@pytest.mark.parametrize(
    ("asked", "place", "said"),
    [
        (
            {"layer": "7"},
            OPENING,
            "layer 7, which Pair does not have on this sentence: 1 is shown. There, layer goes from 0 to 1.",
        ),
        ({"head": "4"}, OPENING, "head 4"),
        ({"query": "5"}, OPENING, "query 5"),
        ({"query": "-1"}, OPENING, "query “-1”, which is not a whole number: 3 is shown."),
        ({"layer": "1e3"}, OPENING, "not a whole number"),
        ({"layer": "9" * 4000}, OPENING, "not a whole number"),
        (
            {"site": "<img>"},
            OPENING,
            "a kind of attention called “<img>”, which Pair does not have. It has: encoder, cross.",
        ),
        ({"site": "cross", "query": "4"}, Place("cross", 1, 1, 2), "query 4"),
    ],
)
def test_what_a_link_asks_in_vain_gets_a_sentence_and_the_rest_is_followed(asked, place, said):
    found, notes = attention_place.requested_place(HEADER, asked)
    assert found == place
    assert len(notes) == 1 and said in notes[0]


@pytest.mark.parametrize(
    "told",
    [
        None,
        "text",
        {"key": "k0", "site": "encoder", "layer": 0, "head": 0, "query": None},
        {"key": "k1", "site": "decoder", "layer": 0, "head": 0, "query": None},
        {"key": "k1", "site": "encoder", "layer": 2, "head": 0, "query": None},
        {"key": "k1", "site": "encoder", "layer": 0, "head": -1, "query": None},
        {"key": "k1", "site": "encoder", "layer": "0", "head": 0, "query": None},
        {"key": "k1", "site": "encoder", "layer": 0.5, "head": 0, "query": None},
        {"key": "k1", "site": "encoder", "layer": float("nan"), "head": 0, "query": None},
        {"key": "k1", "site": "encoder", "layer": 0, "head": 0, "query": 5},
    ],
)
def test_a_report_that_does_not_fit_the_picture_is_ignored(told):
    assert attention_place.reported_place(HEADER, told) is None


def test_a_report_that_fits_is_believed():
    told = {"key": "k1", "site": "cross", "layer": 1, "head": 2.0, "query": 0}
    assert attention_place.reported_place(HEADER, told) == Place("cross", 1, 2, 0)


def test_a_new_sentence_keeps_the_head_and_the_word():
    before = Place("encoder", 0, 2, 1)
    assert attention_place.label_of(HEADER, before) == "cat"
    header = HEADER | {"tokens": {"source": ["My", "old", "cat", "saw", "it"], "target": None}}
    assert attention_place.carried_place(header, before, "cat") == Place("encoder", 0, 2, 2)
    assert attention_place.carried_place(header, before, "dog") == Place("encoder", 0, 2, 4)
    assert attention_place.carried_place(header, Place("encoder", 0, 2, None), None).query is None


def test_a_smaller_model_shows_what_it_has():
    before = Place("decoder", 11, 9, 0)
    assert attention_place.carried_place(HEADER, before, "The") == Place("encoder", 1, 3, 0)


def script() -> None:
    """The answer to a request, as the view sees it, in a script of its own."""
    import streamlit as st

    from app.attention.in_progress import picture_of
    from app.session import answer as session_answer
    from app.session.service import DEFAULT_MODEL
    from core.run.request import Request

    request = Request(DEFAULT_MODEL, (st.session_state.get("said", ""),))
    answer = session_answer.answer(request, picture_of)
    while answer.waiting is not None:  # the model may take its time to load
        answer = session_answer.answer(request, picture_of)
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

    def broken(loaded: core.Loaded, job, *more):
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

    from app.attention.in_progress import picture_of
    from app.session import answer as session_answer
    from core.run.request import Request

    for text in ("abc=", "xyz"):
        answer = session_answer.answer(Request("copy", (text,)), picture_of)
        while answer.waiting is not None:
            answer = session_answer.answer(Request("copy", (text,)), picture_of)
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
    assert in_progress.picture_of(service.DEFAULT_REQUEST) is in_progress.picture_of(service.DEFAULT_REQUEST)
    with pytest.raises(TextError):
        in_progress.picture_of(Request(service.DEFAULT_MODEL, ("",)))


# the options beside the place

CHOSEN = {
    "show": "table",
    "scale": "log",
    "bounds": [0.01, 0.3],
    "kind": "max",
    "members": [[0, 2], [1, 0]],
    "hide": [0, 4],
    "words": True,
    "keep": 50,
    "metric": "sink",
    "sort": True,
    "spotlight": True,
    "frozen": True,
    "pin": 3,
    "widths": "equal",
    "whole": True,
    "area": [0, 3, 1, 4],
}


def test_options_go_to_the_url_and_come_back_and_defaults_stay_out_of_it():
    assert attention_params.option_params(attention_params.default_options()) == {}
    assert CHOSEN.keys() == attention_params.OPTIONS.keys() and all(
        CHOSEN[name] != o.default for name, o in attention_params.OPTIONS.items()
    )
    params = attention_params.option_params(CHOSEN)
    assert (
        params["heads"] == "0.2,1.0"
        and params["bounds"] == "0.01,0.3"
        and params["hide"] == "0,4"
        and params["sort"] == "true"
    )
    assert attention_params.requested_options(HEADER, "encoder", params) == (CHOSEN, [])
    assert attention_params.reported_options(HEADER, "encoder", params) == CHOSEN


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
        ("key", "5"),
        ("key", "-1"),
        ("keep", "0"),
        ("keep", "101"),
        ("keep", "8e1"),
        ("words", "yes"),
        ("words", "x" * 5000),
    ],
)
def test_an_option_that_cannot_be_followed_is_left_out_with_a_sentence(name, text):
    options, notes = attention_params.requested_options(HEADER, "encoder", {name: text, "metric": "sink"})
    assert options == attention_params.default_options() | {"metric": "sink"}
    assert len(notes) == 1 and f"asks for {name} “{text[:10]}" in notes[0] and len(notes[0]) < 250
    assert attention_params.reported_options(HEADER, "encoder", {name: text}) is None


@pytest.mark.parametrize("told", [None, [], {"keep": 50}, {1: "50"}])
def test_options_that_are_not_texts_are_not_believed(told):
    assert attention_params.reported_options(HEADER, "encoder", told) is None


def test_hidden_tokens_stay_hidden_where_a_new_sentence_has_them():
    header = HEADER | {"tokens": {"source": ["The", "dog", "."], "target": None}}
    header["sites"] = [HEADER["sites"][0] | {"n_query": 3, "n_key": 3, "heads": 2}]
    before = attention_params.default_options() | {"hide": [0, 1, 4], "members": [[0, 2], [1, 1]], "keep": 50}
    after = attention_params.carried_options(HEADER, before, OPENING, header, Place("encoder", 0, 0, None))
    assert after["hide"] == [0, 2]  # "The" from the front, "." from the end; "cat" is gone
    assert after["members"] == [[1, 1]] and after["keep"] == 50
    other = header | {"model_id": "another"}
    assert (
        attention_params.carried_options(HEADER, before, OPENING, other, Place("encoder", 0, 0, None))["members"] == []
    )
