"""Positions: the numbers of its labs are core's, links bring back what they say, and the screen says what the numbers say."""

from __future__ import annotations

import csv
import json
import random
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import numpy as np
import pytest
from playwright.sync_api import Browser, Page, expect
from starlette.applications import Starlette
from starlette.testclient import TestClient

import core
import core.labs.positions
from app.kit import params as kit_params
from app.rooms.positions import choices, export, message, routes, words
from app.rooms.positions.component import ENTRY
from app.session import models, service
from app.transport import messages, modules
from core.labs.positions import context_extensions, end_loss, token_vs_position, with_rope_scaling
from core.run.request import Request
from core.service import Facts
from tests.app.browsing import PATIENCE, Screen, box_of, eventually
from tests.app.lab import Lab, away, everywhere, printed, sized
from tests.app.plain import Plain
from tests.app.served import ask, local

APP = "app/main.py"
ANIMAL = "The animal didn't cross the street because it was too tired."
KING = "The old king loved the golden bird, and the old"
GERMAN = "Ein Hund rennt durch den Schnee."
TEXTS = {"minilm": ANIMAL, "storyteller": KING, "translator": GERMAN}
WORDS = words.COMPONENT


def facts_of(name: str, text: str | None = None) -> Facts:
    shared = service.service()
    return ask(shared.facts(ask(shared.submit(Request(name, (text or TEXTS[name],))))))


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
            assert core.edits.from_text(core.edits.to_text([edit])) == (edit,)
    json.dumps(message.header(run) | export.edited(run), allow_nan=False)


def test_what_a_link_says_of_an_order() -> None:
    run = facts_of("minilm")
    opening = values_of(run)
    assert (opening["lab"], opening["order"], opening["kind"], opening["query"]) == ("swap", "drop", "learned", "10")
    assert choices.edits_of(run, opening, choices.places_of(run, opening)) == (core.edits.DropPositions(),)
    swapped = choices.places_of(run, values_of(run, order="words", swap="8-2"))
    assert swapped == (0, 1, 8, 3, 4, 5, 6, 7, 2, *range(9, 16))
    assert choices.places_of(run, values_of(run, order="words", places="0-1.8.3-7.2.9-15")) == swapped
    assert choices.edits_of(run, values_of(run, order="words"), range(16)) == ()
    assert choices.places_of(run, values_of(run, order="trained", swap="2-8")) == tuple(range(16))
    shuffled = choices.places_of(run, values_of(run, order="words", seed="5"))
    assert sorted(shuffled) == list(range(16)) and shuffled[0] == 0 and shuffled[15] == 15
    # of a decoder and of a pair, whose stack has to be named
    pair = facts_of("translator")
    assert choices.edits_of(pair, values_of(pair, stack="decoder"), ()) == (core.edits.DropPositions("decoder"),)


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
        ("lab", "watches", "swap, clocks, beyond, kinds, order, two, clock, binary"),
        ("find", "all", "word, place, drop, free, fast"),
        ("factor", "3", "4, 1, 2, 8, 16"),
        ("gap", "5", "1024, 0, 16"),
        ("d", "65537", "0 to 65536"),
        ("cond", "none", "trained, drop, free"),
    ],
)
def test_what_is_asked_in_vain_gets_a_sentence_with_what_is_allowed(name: str, text: str, says: str) -> None:
    run = facts_of("minilm")
    values, notes = kit_params.read(choices.PARAMS, run, {name: text})
    opening = values_of(run) | ({"lab": "order"} if name in choices.OF_ORDER else {})
    assert values == opening and len(notes) == 1
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
    edited = core.trace(core.load("minilm"), ANIMAL, interventions=[core.edits.SetPositions(header["places"])])
    trained = local().engine.run(Request("minilm", (ANIMAL,)))
    now = np.frombuffer(body, "<u2", header["cells"], header["weights_now_at"]).reshape(6, 12, 16, 16) / 65535
    for record in edited.attention:
        assert np.abs(now[record.layer] - record.pattern().numpy()).max() < 1e-5
    assert now[3, 1, 10, [2, 8]] == pytest.approx([0.255, 0.52], abs=5e-3)
    moved = np.frombuffer(body, "<f4", 72, header["moved_at"]).reshape(6, 12)
    for layer in (0, 3):
        by_core = core.measures.total_variation(trained.attention[layer].pattern(), edited.attention[layer].pattern())
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
        ("proof", {"places": "0.0"}, "not an order of 16 tokens"),
        ("proof", {"places": "x"}, "Places are whole numbers"),
        ("rows", {"stack": "encoder", "first": 512, "rows": 1}, "rows 0 to 511"),
        ("rows", {"stack": "decoder", "first": 0, "rows": 1}, "has no decoder"),
        ("rows", {"stack": "encoder", "first": "a", "rows": 1}, "first"),
        ("clock", {"record": 0, "head": 0, "query": 1, "key": 0}, "does not rotate queries"),
        ("order", {"order": "words", "places": "0"}, "every place from 0 to 15 once"),
        ("order", {"site": "cross"}, "encoder"),
        ("swap", {"swap": "0-3"}, "two words, such as 1-14"),
        ("swap", {"swap": "3-3"}, "two words, such as 1-14"),
        ("swapped", {"other": "", "record": 0, "head": 12, "query": 1, "a": 2, "b": 8}, "head"),
        ("swapped", {"other": "", "record": 0, "head": 0, "query": 16, "a": 2, "b": 8}, "query"),
        ("swapped", {"other": "", "record": 0, "head": 0, "query": 1, "a": 2, "b": 16}, "query"),
    ],
)
def test_routes_refuse_with_a_sentence(client: TestClient, path: str, params: Mapping, says: str) -> None:
    answer = got(client, path, facts_of("minilm"), **params)
    assert answer.status_code == 400 and says in answer.text and len(answer.text) < 400


def test_two_words_that_change_places_are_core_s(client: TestClient) -> None:
    run = facts_of("storyteller")
    answer = got(client, "swap", run, swap="2-6", cond="trained")
    header, body = messages.unpack(answer.content)
    before = local().engine.run(Request("storyteller", (run.source.text,)))
    after = core.trace(before.loaded, run.source.text, interventions=[core.edits.SwapWords(2, 6)])
    found = token_vs_position(before, after, range(6), 2, 6)
    for name, values in (("along", found.along), ("still", found.still)):
        sent = np.frombuffer(body, "<f4", 48, header[f"{name}_at"]).reshape(6, 8)
        assert sent == pytest.approx(values.numpy(), abs=1e-6)
    back = np.frombuffer(body, "<f4", 96, header["back_at"]).reshape(2, 6, 8)
    assert back == pytest.approx(found.one_back.numpy(), abs=1e-6)
    assert header["pair"] == [2, 6] and header["before"] == run.key != header["after"]
    assert header["apart"] == pytest.approx(found.apart.max().item(), abs=1e-6)
    best = after.predictions(k=1)
    said = {label: now for label, _, now in header["words"]}
    assert max(said.values()) == pytest.approx(best.probs[0][0], abs=1e-6)
    # one head's maps, and what the mask lets it see
    head = {"record": 2, "head": 3, "query": 9, "a": 2, "b": 6}
    maps, numbers = messages.unpack(got(client, "swapped", run, other=header["after"], **head).content)
    n = len(maps["places"])
    assert maps["places"] == list(range(len(run.source)))
    for name, some in (("before", before), ("after", after)):
        sent = np.frombuffer(numbers, "<f4", n * n, maps[f"{name}_at"]).reshape(n, n)
        assert sent == pytest.approx(some.attention[2].pattern(3)[0].numpy(), abs=1e-6)
    allowed = np.frombuffer(numbers, "u1", n * n, maps["allowed_at"]).reshape(n, n)
    assert (allowed == np.tri(n)).all()
    # without positions and without what tells order, every map moves along
    free, _ = messages.unpack(got(client, "swap", run, swap="2-6", cond="free").content)
    masked, _ = messages.unpack(got(client, "swap", run, swap="2-6", cond="drop").content)
    assert free["apart"] < 1e-5 < 0.01 < masked["after_both"]
    # the words are the text's own where none are named
    assert messages.unpack(got(client, "swap", run).content)[0]["pair"] == header["pairs"][0]
    one = got(client, "swap", facts_of("storyteller", "king"))
    assert one.status_code == 400 and "no two words" in one.text


@pytest.mark.parametrize("path", ["order", "swap", "swapped", "proof", "shift", "known", "rows", "clock"])
def test_a_run_that_nobody_knows_is_not_found(client: TestClient, path: str) -> None:
    params = {"run": "0" * 64, "first": 0, "rows": 1, "record": 0, "head": 0, "query": 0, "key": 0, "a": 0, "b": 1}
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


# ------------------------------------------------------------------ the page


class Room(Lab):
    """A visitor's page on Positions."""

    ROOM = "positions"

    def map(self, at: int) -> float:
        """What the locked row of a map gives to the key that gets the most."""
        found = self.root.locator(f"[data-map='{at}']")
        expect(found).to_have_attribute("data-value", re.compile("[0-9]"), timeout=PATIENCE)
        return float(found.get_attribute("data-value") or "nan")

    def lab(self, name: str) -> None:
        if name in ("order", "two", "clock", "binary"):
            self.root.get_by_role("combobox", name=WORDS["more_labs"]).select_option(name)
        else:
            self.root.locator(".labs").get_by_role("button").nth(list(choices.FINDINGS).index(name)).click()
        self.has("lab", name)

    def csv(self, name: str) -> tuple[str, list[list[str]]]:
        """A table of the files menu: the code above it, and its rows."""
        lines = self.saved(f"CSV: {name}").read_text("utf-8-sig").splitlines()
        about = [line[2:] for line in lines if line.startswith("#")]
        return "\n".join(about[1:]), list(csv.reader(line for line in lines if not line.startswith("#")))


@pytest.fixture
def window(request: pytest.FixtureRequest) -> tuple[int, int]:
    return getattr(request, "param", (1280, 720))


@pytest.fixture
def room(plain_another: Callable[..., Plain], window: tuple[int, int]) -> Room:
    return Room(plain_another(window, reduced_motion="reduce"))


def test_positions_taken_away_words_dragged_and_a_link_that_brings_it_back(
    room: Room, browser: Browser, tmp_path: Path
) -> None:
    room.open(order="drop")  # a link of the first edition, which opened there
    room.has("lab", "order")
    room.says(
        "Without positions a sentence is a bag of words. The previous-token head (layer 0, head 2) falls from "
        ">99.9 % to 11 %: it can no longer tell which word is previous.",
        "it → animal (layer 3, head 1) falls from 68 % to 3.6 %.",
    )
    everywhere(room.root, lambda: room.says("it → animal (layer 3, head 1) falls from 68 % to 3.6 %."))
    assert room.number("moved") == pytest.approx(0.901, abs=1e-3)
    assert room.number("without") < 1e-5 and room.number("with") > 0.99
    assert room.axe() == []
    room.root.locator(".grid svg rect").nth(1 * 6 + 3).click()  # heads downward, layers to the right
    room.has("head", "3.1")
    trained = local().engine.run(Request("minilm", (ANIMAL,)))
    assert room.map(0) == pytest.approx(trained.attention[3].row(1, 10).max().item(), abs=1e-4)
    # animal is dragged onto street: until the run has answered, no sentence stands there
    room.has("pending", "false")
    before = room.root.locator(".fact").inner_text()
    animal, street = (room.root.locator(f"[data-word='{word}']") for word in (2, 8))
    animal.hover()
    room.page.mouse.down()
    street.hover()
    expect(street).to_have_class(re.compile("over"))
    with room.late("positions/order"):
        room.page.mouse.up()
        expect(room.root.locator(".slot.moved")).to_have_count(2)
        room.has("pending", "true")
        assert room.root.locator(".fact").inner_text() == "…" != before  # nothing old under the new question
    room.says(
        "You swapped animal and street. it → animal (layer 3, head 1) falls from 68 % to 2", "and street gets 52 %"
    )
    room.says("The previous-token head keeps >99.9 %: it follows position, not meaning.")
    room.has("pending", "false")
    assert room.map(1) == pytest.approx(0.52, abs=5e-3)
    expect(room.root.locator(".slot.moved")).to_have_count(2)
    link = room.link("swap=2-8", "order=words", "layer=3", "head=1")
    # by keys: the word at place 3 goes on by one, and the head below is shown
    room.root.locator("[data-slot='3']").focus()
    room.page.keyboard.press("Alt+ArrowRight")
    room.says("The words are in another order")
    expect(room.root.locator("[data-slot='4']")).to_have_attribute("data-word", "3")
    room.root.locator(".grid").focus()
    room.page.keyboard.press("ArrowDown")
    room.has("head", "3.2")
    room.press(WORDS["shuffle"])
    room.link("seed=1")
    room.has("pending", "false")
    room.follow(link)
    room.says("You swapped animal and street.")
    room.has("head", "3.1")
    code, rows = room.csv("How much each head changes")
    assert rows[0][:3] == ["layer", "head", "moved"] and len(rows) == 73
    moved = {(int(layer), int(head)): float(value) for layer, head, value, *_ in rows[1:]}
    said = printed(code)
    assert f"{moved[3, 1]:.4f}" in said and f"{moved[0, 2]:.4f}" in said, "the code gives the numbers of the file"
    drawn = room.saved("SVG").read_text("utf-8")
    assert "You swapped animal and street" in drawn and "animal" in drawn and drawn.count("<rect") > 80
    assert room.saved("PNG 1×").read_bytes().startswith(b"\x89PNG")
    with np.load(room.saved("NPZ")) as arrays:
        assert any(
            sorted(arrays[name].tolist()) == pytest.approx(sorted(moved.values()))
            for name in arrays.files
            if arrays[name].shape == (72,) and arrays[name].dtype.kind == "f"
        )
    with away(browser, room.saved("HTML"), tmp_path) as page:
        expect(page.locator(".fact")).to_contain_text(
            "You swapped animal and street. it → animal (layer 3, head 1) falls from 68 % to"
        )


def test_a_choice_is_in_the_address_back_takes_it_back_and_the_link_leads_there(screen: Screen) -> None:
    """Through the application, whose script writes the address."""
    room = Room(screen).open(lab="order", order="words", swap="2-8")
    room.says("You swapped animal and street.")
    room.press(WORDS["shuffle"])
    link = room.link("seed=1")
    screen.idle()
    room.page.go_back()
    room.says("You swapped animal and street.")
    room.page.goto(link)
    room.says("The words are in another order")
    assert "swap=2-8" not in link


@pytest.mark.thorough
def test_two_words_swapped_by_list_drag_keys_and_link(room: Room, browser: Browser, tmp_path: Path) -> None:
    room.open(lab="swap", model="Storyteller", text=KING)
    room.has("pending", "false")
    run = local().engine.run(Request("storyteller", (KING,)))
    first, second = map(int, (room.root.get_attribute("data-pair") or "").split("-"))
    after = core.trace(run.loaded, KING, interventions=[core.edits.SwapWords(first, second)])
    found = token_vs_position(run, after, range(6), first, second)
    layer, head = divmod(int(found.word.argmax()), 8)
    room.has("head", f"{layer}.{head}")
    assert room.number("along") == pytest.approx(found.along[layer, head].item(), abs=1e-6)
    names = [run.source.labels[i] for i in (first, second)]
    room.says(f"Swap {names[0]}", names[1], f"ead {head} of layer {layer} follows the word")
    everywhere(room.root, lambda: room.says(f"Swap {names[0]}"))
    assert room.axe() == []
    # the findings, by the keys of a clicker: then the lab after
    for finding in ("place", "drop", "free"):
        room.page.keyboard.press("PageDown")
        room.has("finding", finding)
    room.says("Without positions and without the mask, the map moves along exactly")
    assert room.number("apart") < 1e-5
    room.link("cond=free", f"swap={first}-{second}")
    expect(room.root.locator(".swapmaps")).to_have_attribute("data-sign", "=")
    room.page.keyboard.press("PageUp")
    room.says("Only the mask still tells early from late")
    room.page.keyboard.press("PageUp")
    room.has("finding", "place")
    room.says("follows the place")
    link = room.link("cond=trained", "layer=", "query=")
    # another word from the list, then one dragged onto another by its name
    before = room.root.get_attribute("data-pair")
    room.root.get_by_role("combobox", name=WORDS["swap_first"]).select_option("2")
    room.root.get_by_role("combobox", name=WORDS["swap_second"]).select_option("7")
    room.has("pair", "2-7")
    room.link("swap=2-7")  # a step of its own: what is chosen within a moment is told as one
    # both boxes before either choice is drawn
    room.root.evaluate(
        "(root, chosen) => Object.entries(chosen).forEach(([label, word]) => {"
        " const box = root.querySelector(`select[aria-label='${label}']`);"
        " box.value = word; box.dispatchEvent(new Event('change')) })",
        {WORDS["swap_first"]: "5", WORDS["swap_second"]: "9"},
    )
    room.has("pair", "5-9")
    room.link("swap=5-9")
    room.root.get_by_role("combobox", name=WORDS["swap_first"]).select_option("2")
    room.has("pair", "2-9")
    room.root.get_by_role("combobox", name=WORDS["swap_second"]).select_option("7")
    room.has("pair", "2-7")
    room.link("swap=2-7")
    room.page.wait_for_timeout(300)  # choices within 200 ms are one step of the browser's history
    canvas = box_of(room.root.locator(".swapmaps canvas"))
    cells = room.root.evaluate("root => { const box = root.querySelector('.swapmaps'); return box.dataset.cells }")
    x, y, cell = map(float, str(cells).split())
    mouse = room.page.mouse
    mouse.move(canvas["x"] + x - 20, canvas["y"] + y + 3.5 * cell)
    mouse.down()
    mouse.move(canvas["x"] + x - 20, canvas["y"] + y + 8.5 * cell, steps=3)
    with room.late("positions/swap"):
        mouse.up()
        room.has("pending", "true")
    room.has("pair", "3-8")
    room.link("swap=3-8")
    room.page.go_back()
    room.has("pair", "2-7")
    # a link brings it back, and its files say the same
    room.follow(link)
    room.has("pair", str(before))
    room.has("finding", "place")
    code, rows = room.csv(WORDS["table_swap"])
    assert len(rows) == 49
    where = next(row for row in rows[1:] if row[:2] == [str(layer), str(head)])
    assert float(where[2]) == pytest.approx(found.along[layer, head].item(), abs=1e-6)
    at = divmod(int((-found.word).argmax()), 8)
    assert f"{found.along[at].item():.4f}" in printed(code), "the code gives the numbers of the file"
    assert "follows the place" in room.saved("SVG").read_text("utf-8")
    with away(browser, room.saved("HTML"), tmp_path) as page:
        expect(page.locator(".fact")).to_contain_text("follows the place")


def test_words_glide_once_their_maps_are_there(plain_another: Callable[..., Plain]) -> None:
    """With motion: nothing is drawn of maps that have not come, and the sentence is of the maps that it stands over."""
    room = Room(plain_another()).open(lab="swap", model="Storyteller", text=KING)
    page = room.page
    room.has("pending", "false")
    room.says("follows the word")
    with room.late("positions/swapped"):
        page.get_by_role("combobox", name=WORDS["swap_first"]).select_option("3")
        room.has("pair", re.compile(r"^3-"))
        expect(room.root.locator(".fact")).not_to_contain_text("%")
    expect(room.root.locator(".fact")).to_contain_text("%", timeout=PATIENCE)


@pytest.mark.thorough
def test_the_models_own_positions_and_nothing_that_it_does_not_have(room: Room) -> None:
    room.open(lab="two", places="0-3")
    expect(room.page.locator(".st-key-sentences")).to_contain_text("every place from 0 to 15 once")
    room.says("Rows 20 and 26 have cosine 0.67; 20 and 23 are nearer and less alike, 0.47: it learnt waves of its own.")
    table = core.load("minilm").model.get_parameter("encoder.embed.position.weight").detach()
    alike = core.labs.positions.cosine_to(table, 20)
    everywhere(room.root, lambda: room.says(f"Rows 20 and 26 have cosine {alike[26].item():.2f}"))
    assert room.number("cosine") == pytest.approx(alike[26].item(), abs=1e-6)
    assert room.number("closest") == pytest.approx(core.labs.positions.closest_rows(table)[2], abs=1e-6)
    expect(room.root.locator(".end")).to_contain_text(
        "This text is 602 tokens long, and MiniLM-L6 has positions for 512."
    )
    expect(room.root.locator(".trade td.own").first).to_contain_text("512 × 384 = 196,608")
    room.root.locator(".tables > summary").click()
    tables = room.root.locator(".tables table")
    expect(tables.first.locator("tr").nth(27).locator("td").first).to_have_text(f"{alike[26].item():.4f}")
    assert room.axe() == []
    room.root.locator("[role=slider][data-drag=j]").focus()
    room.page.keyboard.press("ArrowRight")
    room.says("Rows 20 and 27 have cosine")
    assert room.number("cosine") == pytest.approx(alike[27].item(), abs=1e-6)
    box = room.root.locator(".more input")
    box.fill("100")
    box.press("Enter")
    room.link("features=0", "20", "100")
    code, rows = room.csv("Cosines and features")
    assert rows[0][2:] == [f"feature {feature}" for feature in (0, 4, 10, 20, 100)]
    assert [float(x) for x in rows[8][2:]] == pytest.approx(table[7, [0, 4, 10, 20, 100]].tolist(), abs=1e-6)
    assert f"{alike[27].item():.4f}" in printed(code)
    for kind in ("sinusoidal", "rotary"):
        room.press(WORDS["kinds"][kind])
        room.says("MiniLM-L6 has learned positions")
        box = room.root.locator(".elsewhere")  # which of both kinds say the rest
        expect(box).to_contain_text("MiniLM-L6 has no such positions")
        expect(box).to_contain_text(f"A model that is {WORDS['kinds'][kind].lower()} shows them")
        assert room.root.locator(".lab canvas, .lab svg path").count() == 0, "nothing is drawn that it does not have"
    room.press(WORDS["kinds"]["alibi"])
    room.says("at a slope of its own: 1/2 to 1/256 with 8 heads")
    expect(room.root.locator(".kinds")).to_contain_text(WORDS["rule_alone"])
    room.press(WORDS["kinds"]["relative"])
    room.says("beyond 128 all are alike")
    room.lab("clock")
    expect(room.root.locator(".elsewhere a")).to_contain_text("Show Storyteller")
    room.lab("binary")
    room.says("Position 7 in binary is 0111", "One step on, 4 digits flip")
    assert room.number("step") == pytest.approx(2.671, abs=5e-4)
    # They stay open. Those of the lab before go a moment later, and until then there are several.
    expect(tables.locator("caption")).to_have_text([WORDS["labs"]["binary"]])
    everywhere(room.root, lambda: room.says("Position 7 in binary is 0111", "4 digits flip"))
    room.root.locator("[role=slider][data-drag=t]").focus()
    room.page.keyboard.press("ArrowRight")
    room.says("Position 8 in binary is 1000", "One step on, 1 digit flips")
    code, rows = room.csv(WORDS["labs"]["binary"])
    flips = [int(row[6]) for row in rows[1:16]]
    assert flips == [1, 2, 1, 3, 1, 2, 1, 4, 1, 2, 1, 3, 1, 2, 1]
    said = printed(code)
    assert str(flips) in said and "2.6712" in said


@pytest.mark.thorough
def test_clocks_and_a_decoders_order(room: Room) -> None:
    room.open(lab="clock", model="Storyteller", text=KING)
    room.says("only the distance counts: at distance 1 the score is 7.23, wherever the two words are")
    king = local().engine.run(Request("storyteller", (KING,)))
    assert room.number("score") == pytest.approx(king.attention[1].scores(0, 11, 10).item(), abs=1e-4)
    assert room.number("shift") < 1e-4
    score = f"{king.attention[1].scores(0, 11, 10).item():.2f}"
    everywhere(room.root, lambda: room.says(f"at distance 1 the score is {score}"))
    room.press(WORDS["move_both"])
    room.says("Both words moved on by 20, and every hand turned.", "so is the score: 7.232")
    room.link("m=31", "n=30")
    room.root.locator("[role=slider][data-drag=m]").focus()
    room.page.keyboard.press("ArrowRight")
    room.says("at distance 2 the score is")
    code, rows = room.csv(WORDS["score_by"])
    scores = {int(row[0]): float(row[1]) for row in rows[1:]}
    assert max(range(31), key=lambda at: scores[at]) == 1 and room.number("score") == pytest.approx(scores[2], abs=1e-6)
    assert f"{scores[2]:.4f}"[:5] in printed(code)
    room.lab("order")
    room.says("Without positions only the mask still tells early from late.")
    expect(room.root.locator(".proof")).to_contain_text(WORDS["proof_causal"][:40])
    room.lab("two")
    room.says("Rotary positions add nothing to the words")
    expect(room.root.locator(".elsewhere")).to_contain_text(WORDS["rotary_none"][:40])  # it is fetched
    assert room.root.locator(".lab canvas").count() == 0
    room.open(lab="two", model="Translator", text=GERMAN)
    room.says(
        "Sines and cosines make distance visible: rows 20 and 26 have cosine",
        "and so has any other pair 6 apart, such as 8 and 14",
    )
    room.lab("order")
    room.press(WORDS["sites"]["cross"])
    room.has("pending", "false")
    expect(room.root.locator(".by")).to_contain_text(WORDS["by_distance_cross"])


@pytest.mark.thorough
def test_a_projected_lab_fits_with_its_buttons(room: Room) -> None:
    def fits(name: str) -> None:
        room.has("lab", name)
        room.has("pending", "false")
        for size in ((1920, 1080), (1280, 720)):
            sized(room.page, *size)
            eventually(room.page, lambda size=size: within(*size))

    def within(width: int, height: int) -> None:
        main = room.page.locator("[data-testid=stMain]")
        assert main.evaluate("({ scrollWidth, scrollHeight }) => [scrollWidth, scrollHeight]") == [width, height]
        for button in room.root.locator(".acts button:visible").all():
            box = box_of(button)
            assert 0 <= box["x"] <= width - box["width"] and 0 <= box["y"] <= height - box["height"]
        acts = box_of(room.root.locator(".acts"))
        for tool in room.root.locator(".labtools button:visible").all():  # none of them lies below the files
            box = box_of(tool)
            assert box["x"] + box["width"] <= acts["x"] or box["y"] >= acts["y"] + acts["height"] - 1

    room.open(projector="true", lab="order")
    room.says("falls from >99.9 % to 11 %", "it → animal (layer 3, head 1) falls from 68 % to 3.6 %.")
    fits("order")
    room.open(projector="true")
    room.says("follows the word")
    fits("swap")
    for lab in ("two", "binary"):
        room.open(projector="true", lab=lab)
        fits(lab)
    room.root.locator(".acts").get_by_role("button", name="Export").click()
    assert box_of(room.root.get_by_role("dialog"))["y"] > 0  # it opens downwards, where there is room
    room.open(projector="true", lab="clock", model="Storyteller", text=KING)
    room.says("only the distance counts: at distance 1 the score is 7.23")
    fits("clock")
    room.open(projector="true", lab="two", model="Storyteller", text=KING)
    fits("two")


def test_keys_mean_the_same_in_every_lab_and_reach_it_from_the_page(room: Room) -> None:
    """Arrows move the head, the rows, the position; Page keys the lab; "/" finds a head where the lab shows one."""
    keys = room.page.keyboard
    room.open(lab="order", layer="3", head="11")
    room.has("pending", "false")
    keys.press("ArrowDown")
    room.has("head", "3.0")
    keys.press("ArrowRight")
    room.has("head", "4.0")
    keys.press("/")
    keys.type("2.7")
    keys.press("Enter")
    room.has("head", "2.7")
    room.lab("swap")
    room.has("pending", "false")
    room.has("finding", "word")
    keys.press("ArrowRight")
    room.has("finding", "")
    expect(room.root.locator(".count")).to_have_text(WORDS["by_hand"])
    for finding in ("word", "place", "drop"):  # the steps of that lab
        keys.press("PageDown")
        room.has("finding", finding)
    room.open(lab="two")
    room.says("Rows 20 and 26 have cosine 0.67")
    expect(room.root).not_to_have_attribute("data-head", re.compile(""))
    keys.press("/")
    expect(room.root.locator(".finder")).to_be_hidden()
    keys.press("ArrowRight")
    room.says("Rows 20 and 27 have cosine")
    keys.press("ArrowUp")
    room.says("Rows 19 and 27 have cosine")
    keys.press("PageUp")  # to the last finding of the lab that it is beside
    room.has("finding", "none")
    room.open(lab="binary")
    room.says("Position 7 in binary is 0111")
    keys.press("ArrowRight")
    room.says("Position 8 in binary is 1000")
    keys.press("PageDown")  # over the end, to the first
    room.has("finding", "word")
    room.open(lab="clock", model="Storyteller", text=KING)
    room.says("at distance 1 the score is 7.23")
    keys.press("ArrowRight")
    room.has("distance", "2")
    keys.press("ArrowDown")
    room.has("distance", "3")


def test_the_numbers_beside_a_long_texts_map_stand_below_its_title(room: Room) -> None:
    room.open(lab="order", text="one two three four five six seven eight nine ten " * 6)
    room.has("pending", "false")
    for at in range(2):
        part = room.root.locator(".map").nth(at)
        title = box_of(part.locator("h2"))
        assert title["y"] + title["height"] <= box_of(part.locator("svg text.kt").first)["y"] + 2


@pytest.mark.parametrize("window", [(390, 844)], indirect=True)
def test_on_a_phone_everything_stands_below_each_other_and_can_be_hit(room: Room) -> None:
    room.open(lab="order")
    room.has("pending", "false")
    # what is drawn last of each lab: two of them fetch it
    last = {"order": ".proof .numbers", "two": ".trade", "clock": ".elsewhere a", "binary": ".waves"}
    for lab in ("order", "two", "clock", "binary"):
        if lab != "order":
            room.lab(lab)
        room.root.locator(last[lab]).wait_for()
        assert room.page.evaluate("document.documentElement.scrollWidth") <= 390, lab
        small = room.root.locator("button, select, summary, .slot").evaluate_all(
            "nodes => nodes.filter(node => node.offsetHeight && (node.offsetHeight < 43.5 || node.offsetWidth < 43.5)).map(node => node.textContent)"
        )
        assert small == [], lab


# ------------------------------------------------------------------ findings


SIXTEEN = [finding for found in choices.FINDINGS.values() for finding in found]


def test_a_link_that_names_no_lab() -> None:
    """One of the first edition, which says something of an order, opens Order; one that names a finding opens its lab."""
    run = facts_of("minilm")
    assert len(SIXTEEN) == 16
    for said, lab in (
        ({}, "swap"),
        ({"layer": "3", "head": "1"}, "swap"),
        ({"order": "drop"}, "order"),
        ({"order": "words", "swap": "2-8"}, "order"),
        ({"seed": "5"}, "order"),
        ({"places": "0-15"}, "order"),
        ({"find": "gap"}, "beyond"),
        ({"find": "alibi", "order": "drop"}, "kinds"),
        ({"lab": "two", "find": "word"}, "two"),
    ):
        assert values_of(run, **said)["lab"] == lab, said
    assert choices.cond_of(values_of(run, find="drop")) == "drop" and choices.cond_of(values_of(run)) == "trained"


def test_clocks_longer_texts_and_other_kinds_are_core_s(client: TestClient) -> None:
    king = facts_of("storyteller")
    dials = got(client, "dials", king).json()
    pair = ask(service.service().pairs_to_swap(king.key, "target" if king.target else "source"))[0]
    run = local().engine.run(Request("storyteller", (king.source.text,)))
    after = core.trace(run.loaded, king.source.text, interventions=[core.edits.SwapWords(*pair)])
    by = token_vs_position(run, after, range(6), *pair).word
    for name, values in (("slow", by), ("fast", -by)):
        found = dials[name]
        assert (found["layer"], found["head"]) == divmod(int(values.argmax()), 8) and found["key"] in pair
    stretched = got(client, "stretches", king, factor=4).json()
    ours = {one.rule: one for one in context_extensions(run.config, 4)}
    assert stretched["n_ctx"] == 256 and list(stretched["rules"]) == list(ours)
    for rule, one in ours.items():
        assert stretched["rules"][rule]["frequencies"] == pytest.approx(one.frequencies.tolist())
    ids = run.loaded.tokens(routes.ALICE).ids[:256]
    found = got(client, "loss", king, rule="linear", factor=2).json()
    assert (found["last"], found["of"]) == (64, 256)
    assert found["loss"] == pytest.approx(end_loss(with_rope_scaling(run.loaded, "linear", 2), ids), abs=1e-4)
    gap = got(client, "gap", king, rule="none", factor=1).json()
    assert gap["gaps"] == list(choices.GAPS) and run.source.labels[gap["after"]].strip() == ","
    assert gap["chances"][0] == pytest.approx(run.predictions([len(run.source) - 1], k=1).probs[0][0], abs=1e-5)
    known = got(client, "known", facts_of("translator", GERMAN)).json()
    assert (known["beside"]["added"], known["beside"]["beside"]) == (5_530_624, 11_048_192)
    assert known["stacks"][0]["closest"][:2] == [66, 67] and known["stacks"][0]["closest"][2] == pytest.approx(
        2.6712, abs=1e-4
    )
    wide = known["rules"]["wide"]
    assert len(wide) == 257 and max(wide) == 31 and wide[128 - 91] == wide[0] != wide[128 - 90]
    # a model with other positions borrows one that has them
    guest = got(client, "guest", facts_of("minilm"), kind="sinusoidal").json()
    assert guest["position"] == "sinusoidal" and guest["model"] == models.TITLES["translator"]
    assert got(client, "guest", king, kind="rotary").json()["key"] == king.key


@pytest.mark.parametrize(
    ("path", "params", "says"),
    [
        ("guest", {"kind": "pie"}, "No model is offered here whose positions are pie"),
        ("stretches", {"factor": 3}, "by a factor of 1, 2, 4, 8, 16"),
        ("stretches", {"factor": 4}, "Only rotary positions can be slowed"),
        ("loss", {"rule": "pi", "factor": 4}, "It is one of none, linear"),
        ("loss", {"rule": "none", "factor": 4}, "does not write on"),
        ("gap", {"rule": "none", "factor": 4}, "does not write on"),
    ],
)
def test_routes_of_the_findings_refuse_with_a_sentence(
    client: TestClient, path: str, params: Mapping, says: str
) -> None:
    answer = got(client, path, facts_of("minilm"), **params)
    assert answer.status_code == 400 and says in answer.text and len(answer.text) < 400


@pytest.mark.thorough
def test_sixteen_findings_by_the_keys_of_a_clicker(room: Room) -> None:
    """Each with a sentence and a picture, over the end to the first again, and back."""
    room.open(model="Storyteller", text=KING)
    room.has("pending", "false")
    room.has("finding", "word")
    told: set[str] = set()
    for i, finding in enumerate(SIXTEEN):
        room.has("finding", finding)
        expect(room.root.locator(".count")).to_contain_text(f"{i + 1} of 16")
        expect(room.root.locator(".fact")).not_to_have_text("", timeout=PATIENCE)
        expect(room.root.locator(".lab :is(canvas, svg)").first).to_be_visible(timeout=PATIENCE)
        told.add(room.root.locator(".fact").inner_text())
        room.page.keyboard.press("PageDown")
    room.has("finding", "word")
    assert len(told) == 16
    room.page.keyboard.press("PageUp")
    room.has("finding", "none")
    room.link("lab=kinds", "find=none")


@pytest.mark.thorough(but=3)
@pytest.mark.parametrize("finding", ["fast", "turns", "cost", "gap", "sin", "lrn", "t5", "none"])
def test_no_lab_is_empty_on_a_model_that_lacks_it(room: Room, finding: str) -> None:
    room.open(model="MiniLM-L6", text=ANIMAL, find=finding)
    room.has("finding", finding)
    expect(room.root.locator(".fact")).not_to_have_text("", timeout=PATIENCE)
    expect(room.root.locator(".lab :is(canvas, svg)").first).to_be_visible(timeout=PATIENCE)
    guest = room.root.locator(".why a")
    if finding in ("lrn", "t5"):
        expect(guest).to_have_count(0)
    else:
        expect(guest).to_have_attribute("href", re.compile(rf"find={finding}"))


def test_the_distance_of_a_clock_by_slider_keys_drag_and_link(room: Room) -> None:
    room.open(find="fast", model="Storyteller", text=KING)
    own = int(room.number("distance"))
    run = local().engine.run(Request("storyteller", (KING,)))
    clock = got_clock(room)
    assert room.number("score") == pytest.approx(run.attention[clock[0]].scores(*clock[1:]).item(), abs=1e-3)
    expect(room.root.locator(".foot .ok")).to_contain_text("pairs add up to the run’s score")
    assert room.axe() == []
    room.page.keyboard.press("ArrowRight")
    room.has("distance", str(own + 1))
    slider = room.root.get_by_role("slider", name=WORDS["apart"]).last
    slider.fill("40")
    room.has("distance", "40")
    room.says("40 apart they would score")
    room.link("d=40", "find=fast", "lab=clocks")
    line = box_of(room.root.locator("[data-drag=d]"))
    room.page.mouse.move(line["x"] + line["width"] / 2, line["y"] + 60)
    room.page.mouse.down()
    room.page.mouse.move(line["x"] + line["width"] / 2 - 90, line["y"] + 60, steps=4)
    room.page.mouse.up()

    def is_nearer() -> None:
        assert room.number("distance") < 40

    eventually(room.page, is_nearer)
    score = room.number("score")
    room.press("both moved on by 100")
    room.says("Move both words on by 100 places: every hand turns")
    assert room.number("score") == pytest.approx(score, abs=1e-9)
    code, rows = room.csv(WORDS["table_clocks"])
    assert len(rows) == 1 + run.config.d_head // 2
    assert sum(float(row[-1]) for row in rows[1:]) == pytest.approx(score, abs=1e-5)
    assert f"{score:.3f}"[:4] in printed(code)
    # another head by hand keeps the rest of what is on the screen
    room.open(find="slow", model="Storyteller", text=KING)
    head = room.root.get_attribute("data-head")
    room.page.keyboard.press("/")
    room.page.keyboard.type("2.7")
    room.page.keyboard.press("Enter")
    room.has("head", "2.7")
    room.has("finding", "")
    assert head != "2.7"
    room.page.keyboard.press("PageDown")
    room.has("finding", "fast")


def got_clock(room: Room) -> tuple[int, int, int, int]:
    """Record, head, query and key of the clock on the screen."""
    layer, head = map(int, (room.root.get_attribute("data-head") or "").split("."))
    query, key = (
        int(room.root.get_by_role("combobox", name=WORDS[name], exact=True).input_value()) for name in ("query", "key")
    )
    return layer, head, query, key


@pytest.mark.thorough(but=2)
@pytest.mark.parametrize("window", [(390, 844)], indirect=True)
@pytest.mark.parametrize("finding", ["word", "fast", "turns", "rules", "gap", "sin", "lrn", "alibi", "none"])
def test_findings_on_a_phone(room: Room, finding: str) -> None:
    room.open(find=finding, model="Storyteller", text=KING)
    room.has("finding", finding)
    expect(room.root.locator(".lab :is(canvas, svg)").first).to_be_visible(timeout=PATIENCE)
    room.has("pending", "false")
    assert room.page.evaluate("document.documentElement.scrollWidth") <= 390
    small = room.root.locator("button, select, summary").evaluate_all(
        "nodes => nodes.filter(node => node.offsetHeight && (node.offsetHeight < 43.5 || node.offsetWidth < 43.5)).map(node => node.textContent)"
    )
    assert small == []


@pytest.mark.thorough
def test_findings_projected_fit(room: Room) -> None:
    for finding in SIXTEEN[1::2]:
        room.open(find=finding, model="Storyteller", text=KING, projector="true")
        room.has("finding", finding)
        room.has("pending", "false")
        eventually(room.page, lambda: assert_fits(room.page))


def assert_fits(page: Page) -> None:
    main = page.locator("[data-testid=stMain]")
    assert main.evaluate("({ scrollWidth, scrollHeight }) => [scrollWidth, scrollHeight]") == [1280, 720]
