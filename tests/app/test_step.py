"""Step through: what travels to the browser is core's, whatever a link says there is a room, and the small numbers are the lesson's."""

from __future__ import annotations

import random
from functools import cache
from typing import Any

import numpy as np
import pytest

import core
from app.kit import params as kit_params
from app.rooms.step import message
from app.rooms.step.params import PARAMS, opening
from app.rooms.step.routes import ROUTES
from app.rooms.step.small import small_message
from app.transport import messages
from core import small
from core.service import Facts, LocalService
from core.walk import walk
from tests.app.served import ask, serve

ANIMAL = "The animal didn't cross the street because it was too tired."
WOLF = 'The wolf knocked at the door and said, "Open the'


@cache
def run_of(model: str, text: str) -> core.Trace:
    return core.trace(core.load(model), text)


@cache
def served(model: str, text: str) -> tuple[LocalService, Facts]:
    return serve(run_of(model, text))


def message_of(
    model: str, text: str, stack: str, layer: int, query: int, head: int = 0
) -> tuple[dict[str, Any], bytes]:
    service, run = served(model, text)
    found = ask(service.walk(run.key, stack, layer, query))
    body = message.packed(run, found, ask(service.additions(run.key, stack)), head)
    return messages.unpack(body)


def array(header: dict[str, Any], body: bytes, name: str) -> np.ndarray:
    at, shape, kind = header["arrays"][name]
    return np.frombuffer(body, {"f4": "<f4", "f2": "<f2", "u1": "u1"}[kind], int(np.prod(shape)), at).reshape(shape)


# what travels


def test_a_walk_travels_as_core_has_it_and_is_small() -> None:
    header, body = message_of("minilm", ANIMAL, "encoder", 3, 10)
    found = walk(run_of("minilm", ANIMAL), "encoder", 3, 10)
    assert len(body) < 300_000
    for step, values in found.values.items():
        if step != "attn.k":  # which is the same as the keys that the query meets
            assert np.array_equal(array(header, body, step), values.numpy()), step
    assert np.array_equal(array(header, body, "attn.keys"), found.values["attn.k"].numpy())
    before = found.before_norm["attn.norm"].double()
    columns = array(header, body, "attn.norm.columns")
    assert np.allclose(columns[:, 36], [before[:, 36].mean(), before[:, 36].std(correction=0)], atol=1e-6)
    assert np.array_equal(array(header, body, "attn.norm.before"), found.before_norm["attn.norm"].numpy())
    assert array(header, body, "attn.lengths")[1] == pytest.approx(2.63, abs=6e-3)
    rows = array(header, body, "added")
    assert rows.shape == (12, 16) and rows[6, 10] == pytest.approx(6.24, abs=6e-3)


def test_of_a_long_text_the_keys_of_one_head_travel() -> None:
    text = "the quick brown fox jumps over the lazy dog " * 45
    header, body = message_of("minilm", text, "encoder", 2, 300, head=7)
    found = walk(run_of("minilm", text), "encoder", 2, 300)
    (site,) = header["sites"]
    assert site["head"] == 7 and len(body) < 600_000
    assert np.array_equal(array(header, body, "attn.v")[0], found.values["attn.v"][7].numpy())
    assert np.array_equal(array(header, body, "attn.weights")[0], found.values["attn.weights"][7].numpy())
    norm = header["norms"]["mlp.norm"]
    own = array(header, body, "mlp.norm.before")[300 - norm["first"]]
    assert np.array_equal(own, found.before_norm["mlp.norm"][300].numpy())


def test_it_opens_at_what_the_first_example_shows() -> None:
    _, minilm = served("minilm", ANIMAL)
    place = opening(minilm)
    assert (place.layer, place.head, place.query) == (3, 1, 10)
    _, story = served("storyteller", WOLF)
    assert opening(story).query == len(story.source) - 1  # what the next word follows from
    assert [route.path for route in ROUTES] == [
        f"/headlight/step/{name}" for name in ("walk", "terms", "guesses", "small")
    ]


@pytest.mark.parametrize("model", ["minilm", "storyteller", ""])
def test_any_link_gives_a_room(model: str) -> None:
    """Two hundred random links: every value that is shown can be asked for again, and each that is not has its sentence."""
    run = served(model, {"minilm": ANIMAL, "storyteller": WOLF}[model])[1] if model else None
    draw = random.Random(7)
    said = [
        "",
        "0",
        "1",
        "-1",
        "99999999999",
        "z",
        "softmax",
        "2.10",
        "1e9",
        "nan",
        "inf",
        "3,4",
        "0,1,2,3",
        "🦊",
        "own",
        "batch",
        "٣",
        "1.5",
        "..",
        "²",
    ]
    said += ["temperature_2_encoder_L3_self", "mask_encoder_L9", "x" * 5000, "one", "table", "decoder", "\x00", "<b>"]
    for _ in range(200):
        link = {param.name: draw.choice(said) for param in PARAMS if draw.random() < 0.6}
        values, notes = kit_params.read(PARAMS, run, link)
        again, none = kit_params.read(PARAMS, run, values)
        assert (again, none) == (values, [])
        assert all(note.startswith("This link asks for") for note in notes)
        for name, text in link.items():
            assert text == values[name] or any(f"for {name} " in note for note in notes) or text.strip(), (name, text)


def test_small_numbers_travel_as_core_has_them() -> None:
    found, _ = messages.unpack(small_message())
    one = small.one_head()
    assert np.allclose(found["one"]["weights"][0], [0.3479, 0.3258, 0.3263], atol=5e-5)
    assert np.allclose(found["one"]["output"][0], [0.3172, 0.0995, 0.3417, 0.4694], atol=5e-5)
    assert np.array_equal(np.float32(found["one"]["x"]), one.x.numpy())
    assert found["batch"]["wrong_by"] == pytest.approx(4.62, abs=5e-3) and "size" in found["batch"]["error"]
    assert found["reshape"]["qkv"][0][2][5] == pytest.approx(0.5029, abs=5e-5)
    assert found["reshape"]["strides"] == [96, 4, 24, 1]
