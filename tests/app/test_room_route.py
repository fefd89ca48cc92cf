"""The route of a room's message: any link gives the room that it leads to, and one that leads nowhere a sentence."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from urllib.parse import urlencode

import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient

from app.shell import registry, routes
from app.transport import messages

ANIMAL = "The animal didn't cross the street because it was too tired."
OF_MODEL = {"generate": "storyteller"}
ON_STAGE = [room for room in registry.rooms() if room.message is not None]


@pytest.fixture(scope="module")
def client() -> Iterator[TestClient]:
    with TestClient(Starlette(routes=routes.ROUTES)) as client:
        yield client


def link(room: str, **said: str) -> str:
    run = {"model": OF_MODEL.get(room, "minilm"), "text": ANIMAL}
    return f"/headlight/room/{room}?{urlencode({**run, **said})}"


def header(client: TestClient, room: str, **said: str) -> dict[str, Any]:
    answer = client.get(link(room, **said))
    assert answer.status_code == 200, answer.text
    return messages.unpack(answer.content)[0]


def said_again(chosen: dict[str, Any]) -> dict[str, str]:
    """The texts of a link for values that are shown."""
    return {name: text for name, text in chosen["values"].items() if text or name not in chosen["address"]["silent"]}


def test_every_room_on_a_stage_has_a_message_and_no_other() -> None:
    found = {room.id for room in ON_STAGE}
    assert found == {"explore", "step", "masks", "positions", "generate", "whatif", "train", "shapes"}


@pytest.mark.thorough(but=4)
@pytest.mark.parametrize("room", ON_STAGE, ids=lambda room: room.id)
def test_a_link_without_the_room_s_own_opens_it_and_what_it_shows_leads_there_again(client: TestClient, room) -> None:
    first = header(client, room.id)
    values = first["chosen"]["values"]
    assert values and values.keys() <= {param.name for param in room.params}
    assert first["cover"] is None and first["notes"] == []
    again = header(client, room.id, **said_again(first["chosen"]))
    assert (again["chosen"]["values"], again["notes"]) == (values, [])
    assert again["chosen"]["address"]["rule"] == []


def test_a_message_is_what_the_link_says_with_a_sentence_for_what_is_not_there(client: TestClient) -> None:
    found = header(client, "explore", layer="2", head="99", query="3", rule="query")
    chosen = found["chosen"]
    assert {name: chosen["values"][name] for name in ("layer", "query")} == {"layer": "2", "query": "3"}
    assert len(found["notes"]) == 1 and "head “99”" in found["notes"][0]
    rule = chosen["address"]["rule"]
    assert "query" in rule and "layer" not in rule
    assert chosen["of"] == found["key"] and "key" in chosen["address"]["silent"]


def test_a_place_that_was_chosen_on_another_run_is_looked_for_in_this_one(client: TestClient) -> None:
    was = header(client, "explore")["key"]
    place = {"layer": "4", "head": "3", "query": "2", "rule": "", "was": was, "pinned": "true"}  # "animal"
    other = "So the animal didn't cross the road."
    found = header(client, "explore", **place, text=other)
    values = found["chosen"]["values"]
    assert (values["layer"], values["head"], values["query"]) == ("4", "3", "3")
    ruled = header(client, "explore", **{**place, "rule": "layer,head,query"}, text=other)
    opened = header(client, "explore", text=other)
    pinned = {"pinned": "true"}
    assert ruled["chosen"]["values"] == opened["chosen"]["values"] | pinned
    unknown = header(client, "explore", **{**place, "was": "0" * 64}, text=other)
    assert unknown["chosen"]["values"] == opened["chosen"]["values"], "no one knows which words it meant"
    free = header(client, "explore", **{**place, "pinned": ""}, text=other)
    assert free["chosen"]["values"] == opened["chosen"]["values"], "a head that is not pinned gives way"


def test_the_edits_of_step_are_those_of_the_run_that_it_shows(client: TestClient) -> None:
    plain, edited = header(client, "step"), header(client, "step", edits="mask_encoder_L3_h1_qx10_kx2")
    assert edited["notes"] == [] or "edits" in edited["notes"][0]
    assert plain["link"] == edited["link"]


@pytest.mark.parametrize(
    ("room", "said", "status", "sentence"),
    [
        ("memory", {}, 404, "No room of this name"),
        ("../proof", {}, 404, ""),
        ("nothing", {}, 404, "No room of this name"),
        ("explore", {"model": "nope"}, 400, "there is no model 'nope'"),
        ("explore", {"model": "x" * 5000}, 400, "there is no model"),
        ("explore", {"text": ""}, 400, "names no text"),
        ("explore", {"with": "rubbish"}, 400, "There is no edit “rubbish”"),
        ("explore", {"step": "12"}, 400, "has no step '12'"),
        ("explore", {"text": "a " * 900}, 400, "This text is"),
        ("generate", {"model": "minilm"}, 400, "writes no next word"),
        ("shapes", {"of": "pasted"}, 400, "config.json"),
        ("shapes", {"of": "typed", "typed_heads": "7", "typed_width": "512"}, 400, ""),
    ],
)
def test_a_link_that_leads_nowhere_gets_a_sentence(
    client: TestClient, room: str, said: dict[str, str], status: int, sentence: str
) -> None:
    answer = client.get(link(room, **said))
    assert answer.status_code == status and sentence in answer.text
    assert "Traceback" not in answer.text and len(answer.text) < 600


def test_a_link_without_a_text_names_none(client: TestClient) -> None:
    for room in ("explore", "step", "shapes"):
        answer = client.get(f"/headlight/room/{room}?layer=2")
        assert answer.status_code == 400 and "names no text" in answer.text
    assert client.get("/headlight/room/train?task=copy").status_code == 200
    assert client.get("/headlight/room/shapes?of=lesson-encoder").status_code == 200


@pytest.mark.parametrize("room", ON_STAGE, ids=lambda room: room.id)
def test_hostile_values_are_followed_or_named(client: TestClient, room) -> None:
    for text in ("\x00", "9" * 400, "<script>", "٣", "-1", "🦊", "x" * 300, "1e999", "../.."):
        own = [param for param in room.params if param.name not in ("of", "config")]
        found = header(client, room.id, **{param.name: text for param in own})
        values = found["chosen"]["values"]
        assert all(len(note) < 600 for note in found["notes"])
        assert header(client, room.id, **said_again(found["chosen"]))["chosen"]["values"] == values


def test_a_message_is_made_anew_for_a_run_may_be_gone(client: TestClient) -> None:
    answer = client.get(link("explore"))
    assert (
        answer.headers["cache-control"] == "no-store" and answer.headers["content-type"] == "application/octet-stream"
    )
