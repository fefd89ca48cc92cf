"""Positions: the numbers of its labs are core's, links bring back what they say, and the screen says what the numbers say."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterator, Mapping

import numpy as np
import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient

import core
from app.kit import params as kit_params
from app.rooms.positions import choices, export, message, routes, words
from app.rooms.positions.component import ENTRY
from app.session import models, service
from app.transport import messages, modules
from core.service import Facts
from tests.app.served import ask, local

APP = "app/main.py"
ANIMAL = "The animal didn't cross the street because it was too tired."
KING = "The old king loved the golden bird, and the old"
GERMAN = "Ein Hund rennt durch den Schnee."
TEXTS = {"minilm": ANIMAL, "storyteller": KING, "translator": GERMAN}
WORDS = words.COMPONENT


def facts_of(name: str, text: str | None = None) -> Facts:
    shared = service.service()
    return ask(shared.facts(ask(shared.submit(core.Request(name, (text or TEXTS[name],))))))


def values_of(run: Facts, **said: str) -> dict[str, str]:
    values, notes = kit_params.read(choices.PARAMS, run, said)
    assert not notes
    return values


@pytest.fixture(scope="module")
def client() -> Iterator[TestClient]:
    with TestClient(Starlette(routes=routes.ROUTES)) as client:
        yield client


# ------------------------------------------------------------------ links


@pytest.mark.parametrize("name", TEXTS)
def test_two_hundred_random_links_give_a_room(name: str) -> None:
    run, draw = facts_of(name), random.Random(7)
    pieces = [
        "",
        "0",
        "1",
        "2-8",
        "3-3",
        "9" * 40,
        "-1",
        "none",
        "words",
        "drop",
        "0-3.5.4",
        "15-0",
        "1.0.2-15",
        "é<b>",
        "0,4",
        "4,,",
        "nan",
    ]
    pieces += [word for param in choices.PARAMS for word in (param.name, "order")] + [
        "order",
        "two",
        "clock",
        "binary",
        "alibi",
        "cross",
    ]
    for _ in range(200):
        said = {
            param.name: draw.choice(pieces)
            for param in draw.sample(choices.PARAMS, draw.randrange(1, len(choices.PARAMS)))
        }
        values, notes = kit_params.read(choices.PARAMS, run, said)
        again, none = kit_params.read(choices.PARAMS, run, values)
        assert (again, none) == (values, []), "what the room writes, it reads"
        assert all(len(note) < 400 and "Traceback" not in note for note in notes)
        places = choices.places_of(run, values)
        assert sorted(places) == list(range(len(places)))
        for edit in choices.edits_of(run, values, places):
            assert core.interventions.from_text(core.interventions.to_text([edit])) == (edit,)
    json.dumps(message.header(run) | export.edited(run), allow_nan=False)


def test_what_a_link_says_of_an_order() -> None:
    run = facts_of("minilm")
    opening = values_of(run)
    assert (opening["lab"], opening["order"], opening["kind"], opening["query"]) == ("order", "drop", "learned", "10")
    assert choices.edits_of(run, opening, choices.places_of(run, opening)) == (core.DropPositions(),)
    swapped = choices.places_of(run, values_of(run, order="words", swap="8-2"))
    assert swapped == (0, 1, 8, 3, 4, 5, 6, 7, 2, *range(9, 16))
    assert choices.places_of(run, values_of(run, order="words", places="0-1.8.3-7.2.9-15")) == swapped
    assert choices.edits_of(run, values_of(run, order="words"), range(16)) == ()
    assert choices.places_of(run, values_of(run, order="trained", swap="2-8")) == tuple(range(16))
    shuffled = choices.places_of(run, values_of(run, order="words", seed="5"))
    assert sorted(shuffled) == list(range(16)) and shuffled[0] == 0 and shuffled[15] == 15
    # of a decoder and of a pair, whose stack has to be named
    pair = facts_of("translator")
    assert choices.edits_of(pair, values_of(pair, stack="decoder"), ()) == (core.DropPositions("decoder"),)


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        ("places", "0-3", "every place from 0 to 15 once"),
        ("places", "0.0.2-15", "every place from 0 to 15 once"),
        ("swap", "0-3", "1-14"),
        ("swap", "3-99", "1-14"),
        ("layer", "6", "0 to 5"),
        ("i", "512", "0 to 511"),
        ("features", "0,384", "0 to 383"),
        ("features", ",".join(map(str, range(7))), "one to six"),
        ("m", "41", "0 to 40"),
        ("kind", "pie", "learned, sinusoidal"),
        ("lab", "clocks", "order, two, clock, binary"),
    ],
)
def test_what_is_asked_in_vain_gets_a_sentence_with_what_is_allowed(name: str, text: str, says: str) -> None:
    run = facts_of("minilm")
    values, notes = kit_params.read(choices.PARAMS, run, {name: text})
    assert values == values_of(run) and len(notes) == 1
    assert name in notes[0] and says in notes[0]


def test_a_model_for_every_kind_that_ships() -> None:
    for kind, name in message.HOMES.items():
        assert facts_of(name).config.position == kind
        assert message.homes()[kind][0] == models.TITLES[name]


# ------------------------------------------------------------------ routes


def got(client: TestClient, path: str, run: Facts, **params: object):
    return client.get(f"/headlight/positions/{path}", params={"run": run.key} | {k: str(v) for k, v in params.items()})


def changed(client: TestClient, run: Facts, **params: object) -> tuple[dict, bytes]:
    answer = got(client, "order", run, **params)
    assert answer.status_code == 200, answer.text
    return messages.unpack(answer.content)


def test_an_order_is_a_run_of_its_own(client: TestClient) -> None:
    run = facts_of("minilm")
    header, body = changed(client, run, order="words", swap="2-8", site="encoder")
    edited = core.trace(core.load("minilm"), ANIMAL, interventions=[core.SetPositions(header["places"])])
    trained = local().engine.run(core.Request("minilm", (ANIMAL,)))
    now = np.frombuffer(body, "<u2", header["cells"], header["weights_now_at"]).reshape(6, 12, 16, 16) / 65535
    for record in edited.attention:
        assert np.abs(now[record.layer] - record.pattern().numpy()).max() < 1e-5
    assert now[3, 1, 10, [2, 8]] == pytest.approx([0.255, 0.52], abs=5e-3)
    moved = np.frombuffer(body, "<f4", 72, header["moved_at"]).reshape(6, 12)
    for layer in (0, 3):
        by_core = core.measures.moved(trained.attention[layer].pattern(), edited.attention[layer].pattern())
        assert moved[layer] == pytest.approx(by_core.numpy(), abs=1e-6)
    assert "SetPositions((range(0, 2), 8, " in header["edit"] or "SetPositions((0, 1, 8, 3" in header["edit"]
    assert len(body) < 300_000


def test_of_a_long_text_the_maps_are_fetched_one_by_one(client: TestClient) -> None:
    run = facts_of("minilm", ANIMAL * 4)
    header, _ = changed(client, run, order="words", seed=3, site="encoder")
    assert header["weights_at"] is None and header["other"] != run.key and len(header["places"]) == len(run.source)


def test_the_proof_and_the_shift(client: TestClient) -> None:
    run, king = facts_of("minilm"), facts_of("storyteller")
    proof = got(client, "proof", run, places="0-1.8.3-7.2.9-15").json()
    assert proof["without"] < 1e-5 and proof["same"] < 1e-5 and proof["trained"] > 0.9
    shift = got(client, "shift", king).json()
    assert shift["by"] == 100 and shift["scores"] < 1e-4 and shift["weights"] < 1e-5


@pytest.mark.parametrize(
    ("path", "params", "says"),
    [
        ("proof", {}, "Places are whole numbers"),
        ("proof", {"places": "0.0"}, "no order of 16 tokens"),
        ("proof", {"places": "x"}, "Places are whole numbers"),
        ("rows", {"stack": "encoder", "first": 512, "rows": 1}, "rows 0 to 511"),
        ("rows", {"stack": "decoder", "first": 0, "rows": 1}, "has no decoder"),
        ("rows", {"stack": "encoder", "first": "a", "rows": 1}, "first"),
        ("clock", {"record": 0, "head": 0, "query": 1, "key": 0}, "turns no queries"),
        ("order", {"order": "words", "places": "0"}, "every place from 0 to 15 once"),
        ("order", {"site": "cross"}, "encoder"),
    ],
)
def test_routes_refuse_with_a_sentence(client: TestClient, path: str, params: Mapping, says: str) -> None:
    answer = got(client, path, facts_of("minilm"), **params)
    assert answer.status_code == 400 and says in answer.text and len(answer.text) < 400


@pytest.mark.parametrize("path", ["order", "proof", "shift", "known", "rows", "clock"])
def test_a_run_that_nobody_knows_is_not_found(client: TestClient, path: str) -> None:
    params = {"run": "0" * 64, "first": 0, "rows": 1, "record": 0, "head": 0, "query": 0, "key": 0}
    assert client.get(f"/headlight/positions/{path}", params=params).status_code == 404


def test_rows_travel_as_they_are(client: TestClient) -> None:
    run = facts_of("minilm")
    header, body = messages.unpack(got(client, "rows", run, stack="encoder", first=0, rows=64).content)
    rows = np.frombuffer(body, "<f4").reshape(header["rows"], header["columns"])
    table = core.load("minilm").model.get_parameter("encoder.embed.position.weight").detach().numpy()
    assert (rows == table[:64]).all() and len(body) < 300_000
    known = got(client, "known", run).json()
    assert known["stacks"][0]["too_long"].startswith(
        "This text is 602 tokens long, and MiniLM-L6 has positions for 512."
    )
    assert known["rules"]["slopes"][0] == 0.5 and known["rules"]["slopes"][-1] == 1 / 256


# ------------------------------------------------------------------ words


def test_the_browser_uses_every_word_that_it_is_given_and_no_other() -> None:
    mine = [name for name in modules.closure(ENTRY) if name.startswith("rooms/positions/")]
    used = {
        word
        for name in mine
        for word in re.findall(r"\bwords\.(?!js\b)(\w+)", modules.source(name))
        if not name.endswith("constants.js")
    }
    assert used == set(WORDS)
