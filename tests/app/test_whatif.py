"""What if: the numbers of the mock's text on the screen and in the routes equal core's; links, refusals, keys, a phone, files."""

from __future__ import annotations

import csv
import io
import json
import random
import re
import struct
from collections.abc import Iterator
from concurrent.futures import CancelledError, Future
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import numpy as np
import pytest
import torch
from playwright.sync_api import Page, Route, expect
from starlette.applications import Starlette
from starlette.testclient import TestClient

import core
from app.kit import params as kit_params
from app.rooms.whatif import ahead, changes, export
from app.session import answer, resolving, service
from app.session import screen as session_screen
from app.session.models import MODELS
from app.shell import routes
from app.transport import messages, visitors
from core.edits import Ablate, EditMask, to_text
from core.read import comparison
from core.read.comparison import answer_change
from core.run.request import Request
from core.service import AblateHeads, Facts
from tests.app.lab import everywhere
from tests.app.plain import AnotherPlain, Plain
from tests.app.served import ask
from tests.app.test_accessibility import findings

APP = "app/main.py"
DOROTHY = "Dorothy ran home over the prairie to Uncle Henry and Aunt"
UNCLE = "Dorothy ran home over the prairie to Uncle Henry and Uncle"
WIDE, PHONE = (1280, 720), (390, 844)
STORY = {"model": "Storyteller", "text": DOROTHY}


# routes


@cache
def facts(model: str = "storyteller", text: str = DOROTHY) -> Facts:
    ask = service.calls()
    return ask.result(service.service().facts(ask.result(service.service().submit(Request(model, (text,))))))


@pytest.fixture(scope="module")
def client() -> Iterator[TestClient]:
    with TestClient(Starlette(routes=routes.ROUTES), raise_server_exceptions=True) as client:
        yield client


def swept(client: TestClient, run: Facts, **said: str) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """The parts of a sweep, and what comes last."""
    answer = client.get("/headlight/whatif/sweep", params={"run": run.key, **said})
    assert answer.status_code == 200, answer.text
    found, rest = [], answer.content
    while rest:
        (length,) = struct.unpack_from("<I", rest)
        found.append(messages.unpack(rest[4 : 4 + length])[0])
        rest = rest[4 + length :]
    return found[:-1], found[-1]


def rows(parts: list[dict[str, Any]]) -> dict[tuple[Any, ...], float]:
    return {
        tuple(row): part["distance"][i] if "distance" in part else part["probability"][i][0]
        for part in parts
        for i, row in enumerate(part["rows"])
    }


def side(client: TestClient, run: Facts, **said: str) -> dict[str, Any]:
    answer = client.get("/headlight/whatif/side", params={"run": run.key, **said})
    assert answer.status_code == 200, answer.text
    return messages.unpack(answer.content)[0]


def printed(code: str, capsys: pytest.CaptureFixture[str]) -> str:
    capsys.readouterr()
    exec(code, {})
    return capsys.readouterr().out


def test_the_mocks_heads_and_the_code_that_gives_them(client: TestClient, capsys: pytest.CaptureFixture[str]) -> None:
    parts, about = swept(client, facts())
    found = rows(parts)
    assert len(found) == 48 and found["decoder", 0, 5] == pytest.approx(0.0284, abs=5e-5)
    assert parts[0]["labels"][str(parts[0]["watched"][0])] == "Em"
    assert parts[0]["probability_before"][0] == pytest.approx(0.894, abs=5e-4)
    assert sum(abs(p - parts[0]["probability_before"][0]) < 0.03 for p in found.values()) == 43
    out = printed(about["snippet"], capsys).splitlines()
    assert len(out) == 48
    for line, after in zip(out, found.values(), strict=True):
        assert float(line.split()[-1]) == pytest.approx(after - parts[0]["probability_before"][0], abs=1e-5)
    assert "decoder,0,attn,5,Em,0.89" in about["table"][2] and DOROTHY in about["caption"]


def test_a_sweep_is_begun_before_it_is_asked_for_and_runs_once(
    client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = facts("minilm", "It was late.")
    who = visitors.accounts("", "testclient")
    monkeypatch.setattr(answer, "accounts", lambda: who)
    monkeypatch.setattr(ahead.st, "session_state", {})
    values, _ = kit_params.read(changes.PARAMS, run, {})
    begun, sweep = [], ahead._sweep
    monkeypatch.setattr(ahead, "_sweep", lambda name, asked: begun.append(name) or sweep(name, asked))
    ahead.begin(values, run)
    ahead.begin(values, run)  # the same run once more on the screen
    assert begun == [(who, run.key)]
    assert len(rows(swept(client, run)[0])) == 72 and not ahead._begun, "the browser has come for it"

    # One that nobody comes for ends.
    monkeypatch.setattr(ahead, "PATIENCE", 0.0)
    ahead._begun[who, run.key] = Future()
    going = service.calls().begin(ahead._sweep((who, run.key), AblateHeads("mean")))
    with pytest.raises(CancelledError):
        going.result(20)
    assert ahead.take(who, run.key) is None


def test_the_mocks_looks(client: TestClient, capsys: pytest.CaptureFixture[str]) -> None:
    parts, about = swept(client, facts(), sweep="looks")
    found = rows(parts)
    assert len(found) == 104 and parts[0]["single"] == [0]
    assert found[13, 13] == pytest.approx(0.0067, abs=5e-5) and found[13, 9] == pytest.approx(0.386, abs=5e-4)
    one, about = swept(client, facts(), sweep="looks", only="one", layer="0", head="5")
    assert rows(one)[13, 13] == pytest.approx(0.0376, abs=5e-5)
    assert "layer=0, head=5" in about["snippet"] and len(printed(about["snippet"], capsys).splitlines()) == 104


def test_the_changed_run_is_the_one_of_the_row(client: TestClient, capsys: pytest.CaptureFixture[str]) -> None:
    found = side(client, facts(), layer="0", head="5")
    assert found["words"][0][1] == "Em" and found["words"][0][3] == pytest.approx(0.0284, abs=5e-5)
    assert found["likeliest"][1][1] == "ial" and found["likeliest"][1][3] == pytest.approx(0.0512, abs=5e-5)
    assert found["kl"] / 0.693147 == pytest.approx(4.25, abs=5e-3) and found["elsewhere"] == 38
    assert found["pick"] == "ablate_decoder_L0_H5" and found["maps"][0]["before"]["shape"] == [14, 14]
    assert "Em" in printed(found["snippet"], capsys)
    warm = side(client, facts(), edits="temperature_4", pick="off")
    assert warm["likeliest"][1][1] == "Oz" and warm["likeliest"][1][3] == pytest.approx(0.061, abs=5e-4)
    assert warm["entropy"] == pytest.approx([1.25, 2.58], abs=5e-3) and warm["pick"] is None
    assert warm["edits"] == [["temperature_4", "an attention temperature of 4"]]


@pytest.mark.thorough
def test_of_a_long_text_the_looks_of_one_query_are_cut(client: TestClient) -> None:
    run = facts("storyteller", " and then ".join([DOROTHY] * 4))
    assert changes.is_long(run) and not changes.is_long(facts())
    parts, _ = swept(client, run, sweep="looks", query="7")
    assert parts[0]["only"] == 7 and set(rows(parts)) == {(7, key) for key in range(8)}
    assert swept(client, run, sweep="looks")[0][0]["only"] == len(run.source) - 1
    assert side(client, run, sweep="looks", query="7", key="2")["maps"]


def test_a_place_asked_about_is_no_matter_to_a_model_without_a_head(client: TestClient) -> None:
    run = facts("minilm", "The animal didn't cross the street because it was too tired.")
    assert swept(client, run, at="3")[0][0]["position"] is None
    assert side(client, run, at="3", layer="5", head="11")["distance"] > 0.07


def test_an_encoder_turns_its_vectors(client: TestClient) -> None:
    run = facts("minilm", "The animal didn't cross the street because it was too tired.")
    parts, _ = swept(client, run)
    found = rows(parts)
    assert found["encoder", 5, 11] == pytest.approx(0.079, abs=5e-4)
    assert found["encoder", 3, 1] == pytest.approx(0.002, abs=5e-4)
    changed = side(client, run, layer="5", head="11")
    assert changed["distance"] == pytest.approx(found["encoder", 5, 11], abs=1e-5)
    assert changed["turned"][run.source.labels.index("it")] == pytest.approx(0.106, abs=5e-4)
    assert changed["moved"] == [] and changed["maps"][0]["layer"] == 5 and changed["maps"][0]["head"] == 11


def test_another_sentence_and_another_model(client: TestClient, capsys: pytest.CaptureFixture[str]) -> None:
    other = side(client, facts(), against=UNCLE, pick="off")
    assert other["comparable"] and other["changed"] == [13] and other["source"][13] == "Uncle"
    parts, about = swept(client, facts(), sweep="patch", against=UNCLE)
    found = rows(parts)
    assert len(found) == 48 and len(parts[0]["watched"]) == 2
    assert min(found, key=lambda row: found[row]) == ("decoder", 0, 5)
    assert len(printed(about["snippet"], capsys).splitlines()) == 48
    longer = side(client, facts(), against=f"{DOROTHY} Em", pick="off")
    assert not longer["comparable"] and longer["changed"] == [14] and longer["shared"]
    copy = side(client, facts(), other="copy", against="iklippan=iklippan", pick="off")
    assert not copy["shared"] and copy["kl"] is None and copy["model"] == "Copy"


def test_a_link_stands_beside_with_all_that_it_says(client: TestClient, capsys: pytest.CaptureFixture[str]) -> None:
    silent = Ablate("decoder", 0, 5)
    beside = session_screen.Screen("explore", Request("storyteller", (UNCLE,), interventions=(silent,)), {"layer": "3"})
    address = f"https://school.test/?{urlencode(beside.said())}"
    found = side(client, facts(), against=address, pick="off")
    assert found["comparable"] and found["changed"] == [13] and found["source"][13] == "Uncle"
    loaded = core.load("storyteller")
    a, b = core.trace(loaded, DOROTHY), core.trace(loaded, UNCLE, interventions=[silent])
    change = comparison.answer_change(a, b)
    assert found["words"] == [
        [word.id, word.label, pytest.approx(word.before), pytest.approx(word.after)] for word in change.words
    ]
    assert found["kl"] == pytest.approx(change.kl)
    assert printed(found["snippet"], capsys)
    also = side(client, facts(), against=address, edits="temperature_2", pick="off")
    assert also["words"] != found["words"]  # what is changed here is changed beside as well
    plain = urlencode(session_screen.link(Request("storyteller", (DOROTHY,))))
    same = side(client, facts(), against=f"?{plain}", pick="off")
    assert same["kl"] == pytest.approx(0, abs=1e-6) and same["changed"] == []


@pytest.mark.thorough(but=3)
@pytest.mark.parametrize(
    "there, edits",
    [
        ({"view": "masks", "mask": "window", "window": "2"}, (core.edits.SetMask("window", 2),)),
        ({"view": "masks", "forbid": "13-9,5-0..2"}, (core.edits.EditMask(cells=((13, range(9, 10)), (5, range(3)))),)),
        ({"view": "masks", "lab": "scale", "scale": "off"}, (core.edits.NoScale(),)),
        ({"view": "masks", "lab": "padding", "mask": "none"}, ()),
        ({"view": "positions", "order": "drop"}, (core.edits.DropPositions(),)),
        (
            {"view": "positions", "order": "words", "swap": "3-7"},
            (core.edits.SetPositions((0, 1, 2, 7, 4, 5, 6, 3, *range(8, 14))),),
        ),
        ({"view": "step", "edits": "temperature_2"}, (core.edits.Temperature(2),)),
        ({"view": "generate", "t": "0.5"}, ()),
    ],
)
def test_what_is_chosen_in_the_room_of_a_link_comes_along(
    client: TestClient, there: dict[str, str], edits: tuple[Any, ...]
) -> None:
    address = f"?{urlencode({'model': 'Storyteller', 'text': DOROTHY, **there})}"
    found = side(client, facts(), against=address, pick="off")
    loaded = core.load("storyteller")
    change = answer_change(core.trace(loaded, DOROTHY), core.trace(loaded, DOROTHY, interventions=edits))
    assert found["kl"] == pytest.approx(change.kl, rel=1e-3, abs=1e-6) and (found["kl"] > 1e-3) == bool(edits)
    assert found["there"].get("with", "") == to_text(edits)


def test_words_that_were_written_come_along_with_a_link(client: TestClient) -> None:
    loaded = core.load("storyteller")
    em = core.trace(loaded, DOROTHY).predictions(k=1).ids[0][0]
    address = f"?{urlencode({'view': 'generate', 'model': 'Storyteller', 'text': DOROTHY, 'path': str(em)})}"
    found = side(client, facts(), against=address, pick="off")
    b = core.trace(loaded, f"{DOROTHY} Em")
    assert b.source.ids[-1] == em and found["source"] == list(b.source.labels) and found["linked"]
    assert found["there"]["text"] == f"{DOROTHY} Em"
    change = answer_change(core.trace(loaded, DOROTHY), b)
    assert found["kl"] == pytest.approx(change.kl, rel=1e-3)


def test_both_sides_have_their_own_edits_and_can_be_swapped(client: TestClient) -> None:
    silent, warm = Ablate("decoder", 0, 5), core.edits.Temperature(2)
    loaded, own = core.load("storyteller"), "ablate_decoder_L0_H5"
    ask, asked = service.calls(), service.service()
    run = ask.result(asked.facts(ask.result(asked.submit(Request("storyteller", (DOROTHY,), interventions=(silent,))))))
    a, plain = core.trace(loaded, DOROTHY, interventions=[silent]), core.trace(loaded, DOROTHY)

    def check(found: dict[str, Any], a: core.Trace, b: core.Trace) -> None:
        change = answer_change(a, b)
        assert found["kl"] == pytest.approx(change.kl, rel=1e-3, abs=1e-6)
        assert [word[0] for word in found["words"]] == [word.id for word in change.words]

    # a link stands for itself: the plain run of the same text has none of these edits
    here = f"?{urlencode(session_screen.link(Request('storyteller', (DOROTHY,))))}"
    found = side(client, run, **{"with": own}, against=here, pick="off")
    check(found, a, plain)
    assert found["linked"] and found["kl"] > 0.1 and "with" not in found["there"]
    # another sentence differs by its words alone
    typed = side(client, run, **{"with": own}, against=UNCLE, pick="off")
    check(typed, a, core.trace(loaded, UNCLE, interventions=[silent]))
    assert not typed["linked"] and typed["there"]["with"] == own
    # what is changed here goes into the link of the other side; read as side a, with the first as side b, the same two runs come
    forth = side(client, facts(), edits="temperature_2", layer="0", head="5")
    assert forth["there"] == {"model": "Storyteller", "text": DOROTHY, "with": f"temperature_2~{own}"}
    request = session_screen.from_link(f"?{urlencode(forth['there'])}").request
    assert request.interventions == (warm, silent)
    there = ask.result(asked.facts(ask.result(asked.submit(request))))
    back = side(client, there, **{"with": forth["there"]["with"]}, against=here, pick="off")
    check(back, core.trace(loaded, DOROTHY, interventions=request.interventions), plain)
    assert [word[:2] for word in back["likeliest"]] == [word[:2] for word in reversed(forth["likeliest"])]


def test_a_link_to_this_room_has_the_changes_that_are_kept_there() -> None:
    address = f"?{urlencode({'view': 'whatif', 'text': UNCLE, 'with': 'noscale', 'edits': 'temperature_2'})}"
    elsewhere = address.replace("whatif", "explore")
    here, there = [ask(resolving.resolve(session_screen.from_link(one))).interventions for one in (address, elsewhere)]
    assert here == (core.edits.NoScale(), core.edits.Temperature(2)) and there == (core.edits.NoScale(),)
    opening = kit_params.opening(changes.PARAMS, facts())
    values, notes = kit_params.read(changes.PARAMS, facts(), {"against": address.replace("temperature_2", "x_1")})
    assert values["against"] == "" and "whose model is here" in notes[0]
    silent = (Ablate("decoder", 0, 5),)
    assert changes.beside(opening | {"other": "copy"}, facts(), silent) == Request("copy", (DOROTHY,), None, silent)


def test_a_step_of_training_is_held_against_the_others_and_the_end() -> None:
    (first, *_), (last, _) = [point for point, _ in MODELS["copy"].points], MODELS["copy"].points[-1]
    whole = changes.steps(Request("copy", ("abc=abc",)))
    assert whole[0] == (f"copy@{first}", f"{int(first):,}") and "copy" not in dict(whole)
    early = dict(changes.steps(Request(f"copy@{first}", ("abc=abc",))))
    assert f"copy@{first}" not in early and early["copy"] == f"{int(last):,}" and len(early) == len(whole)
    assert set(early) < set(changes.model_ids()) and changes.steps(Request("minilm", ("A cat.",))) == []


@pytest.mark.parametrize(
    "path, said, sentence",
    [
        ("sweep", {"sweep": "patch"}, "Type another sentence"),
        ("sweep", {"sweep": "patch", "against": f"{DOROTHY} Em"}, "14 and 15 tokens"),
        ("sweep", {"layer": "6"}, "0 to 5"),
        ("sweep", {"edits": "nonsense_1"}, "edits as Headlight writes them"),
        ("sweep", {"edits": "ablate_encoder_L0_H0"}, "no encoder"),
        ("side", {"other": "no-such-model"}, "a model that is offered"),
        ("side", {"against": "?model=Nobody&text=A+cat"}, "a link to a screen of Headlight whose model is here"),
        ("side", {"edits": "positions_0-3"}, "positions are given"),
        ("side", {"with": "nonsense_1"}, "edits of the run on the screen cannot be read"),
    ],
)
def test_what_cannot_be_done_gets_its_sentence(
    client: TestClient, path: str, said: dict[str, str], sentence: str
) -> None:
    answer = client.get(f"/headlight/whatif/{path}", params={"run": facts().key, **said})
    assert answer.status_code == 400 and sentence in answer.text and len(answer.text) < 500
    assert client.get(f"/headlight/whatif/{path}", params={"run": "gone"}).status_code == 404


def test_fuzzed_links_are_read_and_never_fail(client: TestClient) -> None:
    chance, run = random.Random(3), facts()
    names = [param.name for param in changes.PARAMS]
    texts = [
        "",
        "0",
        "5",
        "99",
        "-1",
        "one",
        "off",
        "patch",
        "looks",
        "temperature_2",
        "~~",
        "decoder.0.5",
        "x.y.z",
        "é" * 3000,
        "cross",
        "{a}",
        "copy@",
    ]
    for _ in range(200):
        said = {chance.choice(names): chance.choice(texts) for _ in range(4)}
        values, _ = kit_params.read(changes.PARAMS, run, said)
        assert kit_params.read(changes.PARAMS, run, values) == (values, [])
        changes.picked(values, run)
        changes.asked(values, run, "key")
    for _ in range(6):
        said = {chance.choice(names): chance.choice(texts[:12]) for _ in range(3)}
        assert client.get("/headlight/whatif/side", params={"run": run.key, **said}).status_code in (200, 400)


def test_the_pick_is_an_edit_of_core() -> None:
    said = kit_params.opening(changes.PARAMS, facts())
    assert changes.picked(said | {"layer": "0", "head": "5", "by": "mean"}, facts()) == (
        Ablate("decoder", 0, 5, to="mean"),
    )
    look = said | {"sweep": "looks", "query": "3", "key": "1"}
    assert changes.picked(look, facts()) == (EditMask("decoder", None, 3, 1),)
    one = look | {"only": "one", "layer": "2", "head": "1"}
    assert changes.picked(one, facts()) == (EditMask("decoder", 2, 3, 1, head=1),)
    assert changes.picked(said, facts()) == changes.picked(look | {"pick": "off"}, facts()) == ()


def test_a_sweep_with_other_changes_in_place(client: TestClient) -> None:
    edits = (core.edits.NoScale(), Ablate("decoder", 0, 6))
    parts, about = swept(client, facts(), edits="noscale~ablate_decoder_L0_H6")
    run = core.trace(core.load("storyteller"), DOROTHY, interventions=edits)
    em = int(parts[0]["watched"][0])
    assert parts[0]["labels"][str(em)] == "Em", (
        "the answer of the run without changes stays the one that is asked about"
    )
    whole = core.sweep_heads(run, token=em)
    assert whole.after.probability is not None and whole.before.probability is not None
    assert parts[0]["probability_before"][0] == pytest.approx(float(whole.before.probability[0, 0]), abs=1e-5)
    assert list(rows(parts).values()) == pytest.approx(whole.after.probability[:, 0].tolist(), abs=1e-4)
    plain = rows(swept(client, facts())[0])
    assert max(abs(plain[row] - p) for row, p in rows(parts).items()) > 0.1
    assert "NoScale" in about["snippet"] and "no 1/√d" not in about["table"][2].splitlines()[-1]
    both = side(client, facts(), edits="noscale", layer="0", head="6")
    alone = answer_change(core.trace(core.load("storyteller"), DOROTHY), run)
    assert both["likeliest"][1][3] == pytest.approx(alone.likeliest[1].after, abs=1e-4)  # type: ignore[index]


def test_the_files_hold_what_core_says(client: TestClient) -> None:
    answer = client.get("/headlight/whatif/npz", params={"run": facts().key, "layer": "0", "head": "5"})
    assert answer.status_code == 200 and "headlight-whatif.npz" in answer.headers["content-disposition"]
    found = np.load(io.BytesIO(answer.content), allow_pickle=False)
    loaded = core.load("storyteller")
    a, b = core.trace(loaded, DOROTHY), core.trace(loaded, DOROTHY, interventions=[Ablate("decoder", 0, 5)])
    for side_name, run in (("before", a), ("after", b)):
        weights = torch.stack([record.pattern() for record in run.attention])
        np.testing.assert_allclose(found[f"{side_name}_decoder"], weights, atol=1e-5)
    assert DOROTHY in str(found["caption"]) and found["tokens_after"].tolist() == list(facts().source.labels)
    assert dict(zip(found["words"], found["after_words"], strict=True))["Em"] == pytest.approx(0.0284, abs=5e-5)
    _, about = swept(client, facts())
    _, name, text = about["table"]
    lines = [line for line in csv.reader(io.StringIO(text.lstrip("\ufeff"))) if line and not line[0].startswith("#")]
    table = [dict(zip(lines[0], line, strict=True)) for line in lines[1:]]
    assert name == "headlight-whatif-heads" and len(table) == 48
    assert float(table[5]["after"]) == pytest.approx(0.0284, abs=5e-5) and table[5]["head"] == "5"
    tables = side(client, facts(), layer="0", head="5")["tables"]
    assert [name for _, name, _ in tables] == ["headlight-whatif-words", "headlight-whatif-moved"]
    assert "Em,0.89" in tables[0][2] and "decoder.blocks.1.attn" in tables[1][2]


def test_a_query_that_explore_let_go_is_no_query() -> None:
    values, notes = kit_params.read(changes.PARAMS, facts(), {"query": "none", "layer": "2"})
    assert (values["query"], values["layer"], notes) == ("", "2", [])


def test_words_are_aligned_one_by_one() -> None:
    a, b = ["a", "b", "c", "d"], ["a", "x", "c", "e", "d"]
    assert export.columns(a, b) == [(0, 0), (1, 1), (2, 2), (None, 3), (3, 4)]
    assert export.columns(["a", "b"], ["b"]) == [(0, None), (1, 0)]
    assert export.unmatched(["a", "b", "c", "d"], ["a", "x", "c", "e", "d"]) == [1, 3]
    assert export.unmatched([], ["a"]) == [0] and export.unmatched(["a"], ["a"]) == []


# the screen


def visit(plain_another: AnotherPlain, size: tuple[int, int], /, **said: str) -> Plain:
    """A visitor's page on the room, once the sweep and the changed run are on it."""
    screen = plain_another(size=size, reduced_motion="reduce")
    screen.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    screen.open(f"?{urlencode({'view': 'whatif', **said})}")
    settled(screen.page)
    return screen


def settled(page: Page, **attributes: str) -> None:
    """Until the sweep and the changed run are here, and the root says what is asked for."""
    said = "".join(f'[data-{name}="{value}"]' for name, value in ({"settled": "true"} | attributes).items())
    page.locator(f".hl.whatif{said}").wait_for()


def test_a_word_keeps_the_focus_when_the_other_sentence_comes_beside_it(plain_another: AnotherPlain) -> None:
    """Each word is made again then, in a column of its own."""
    screen = visit(plain_another, WIDE, **STORY, against=UNCLE)
    page, held = screen.page, list[Route]()
    settled(page)
    page.route("**/headlight/whatif/side?*", lambda route: held.append(route))
    screen.page.evaluate("plain.open(location.href)")
    word = page.locator(".hl.whatif button.token").nth(2)
    said = word.inner_text()
    word.focus()
    expect(page.locator(".hl.whatif .aligned")).to_have_count(0)
    for route in held:
        route.continue_()
    page.unroute_all()
    expect(page.locator(".hl.whatif .aligned")).to_have_count(1)
    settled(page)
    focused = page.locator(".hl.whatif .aligned button.token:focus")
    expect(focused).to_have_count(1)
    assert focused.inner_text() == said


@pytest.mark.thorough
def test_the_screen_says_what_core_says(plain_another: AnotherPlain) -> None:
    screen = visit(plain_another, WIDE, **STORY)
    page, root = screen.page, screen.page.locator(".hl.whatif")
    settled(page, pick="decoder.0.5", swept="true", sweep="parts")
    fact = root.locator(".fact:visible")
    expect(fact).to_contain_text("Without L0 H5, Em falls from 89 % to 2.8 %")
    # a head that is kept silent changes the whole run, which is then beside the plain one
    root.get_by_role("button", name="Keep", exact=True).click()
    settled(page, pick="", rows="48", swept="true", sweep="heads")
    page.wait_for_url(lambda url: "edits=ablate_decoder_L0_H5" in url and "pick=off" in url)
    expect(fact).to_have_text(
        "With layer 0 head 5 silent, Em falls from 89 % to 2.8 %. The likeliest is now ial, 5.1 %."
    )
    expect(root.locator(".few")).to_contain_text("heads change it by less than 2.5 points.")
    expect(root.locator(".said")).to_contain_text("4.25 bits (KL). 38 heads look elsewhere")
    expect(root.locator(".says").first).to_have_text("Em 89 %")
    data = json.loads(root.evaluate("root => JSON.stringify(root.dataset)"))
    assert float(data["answer"]) == pytest.approx(0.0284, abs=5e-5)
    # the difference is whole on a laptop's screen: what lies over its last row is no footer
    low, high = (root.locator(what).first.bounding_box() for what in (".maps figure:nth-of-type(3) svg", "footer"))
    assert low and high and low["y"] + low["height"] <= high["y"]
    # what is asked for below a full screen comes into sight
    how = root.get_by_role("button", name="How to read this")
    how.click()
    expect(how).to_have_attribute("aria-expanded", "true")
    expect(root.locator(".how")).to_be_in_viewport()
    how.click()
    # back to the parts, with the change in place, and without it
    root.get_by_role("button", name="each part in turn").click()
    settled(page, sweep="parts", swept="true")
    expect(root.locator(".chips button")).to_have_count(1)
    page.evaluate("document.activeElement?.blur()")
    page.keyboard.press("u")
    settled(page, pick="", sweep="parts", swept="true")
    expect(fact).to_have_text("Nothing is changed. Em is the likeliest, 89 %.")
    # looks: keys where nothing has the focus, undo
    root.get_by_role("button", name="cut a look").click()
    settled(page, sweep="looks", pick="13.13", rows="104", swept="true")
    expect(fact).to_contain_text("If Aunt may not look at itself, Em falls from 89 % to 0.7 %.")
    run = core.trace(core.load("storyteller"), DOROTHY)
    found = core.sweep_edges(run)
    assert found.after.probability is not None and found.before.probability is not None
    change = float(found.after.probability[-1, 0] - found.before.probability[0, 0])
    data = json.loads(root.evaluate("root => JSON.stringify(root.dataset)"))
    assert float(data["change"]) == pytest.approx(change, abs=1e-5)
    assert float(data["batch"]) < 1e-4
    page.keyboard.press("ArrowLeft")
    settled(page, pick="13.12")
    page.keyboard.press("u")
    settled(page, pick="")
    expect(fact).to_have_text("Nothing is changed. Em is the likeliest, 89 %.")
    # a switch, and a change that is kept beside it
    root.get_by_role("button", name="no 1/√d").click()
    expect(fact).to_contain_text("With no 1/√d, Em falls from 89 % to 75 %.")
    expect(root.get_by_role("button", name="no 1/√d")).to_have_attribute("aria-pressed", "true")
    page.wait_for_url(lambda url: "edits=noscale" in url)
    root.get_by_role("button", name="as tables").click()
    expect(root.locator("table caption").first).to_have_text("Every change")
    settled(page, pick="")
    assert findings(screen) == []
    # files
    root.get_by_role("button", name="Export").click()
    menu = page.get_by_role("dialog", name="Export")
    for name in ("PNG 1×", "SVG"):
        with page.expect_download() as waiting:
            menu.get_by_role("button", name=name, exact=True).click()
        assert waiting.value.suggested_filename.startswith("headlight-whatif")
    with page.expect_download() as waiting:
        menu.get_by_role("button", name=re.compile("CSV: sweep")).click()
    assert waiting.value.suggested_filename == "headlight-whatif-looks.csv"
    assert "query,key,word,before,after" in Path(waiting.value.path()).read_text("utf-8")
    page.keyboard.press("Escape")
    with page.expect_download() as waiting:
        root.get_by_role("link", name="NPZ").click()
    assert "after_decoder" in np.load(waiting.value.path()).files

    def check() -> None:
        expect(fact).to_be_visible()
        assert findings(screen) == [] and page.evaluate("document.documentElement.scrollWidth <= innerWidth")

    everywhere(root, check)


def test_a_link_brings_back_the_state_and_a_wrong_one_a_sentence(plain_another: AnotherPlain) -> None:
    screen = visit(
        plain_another,
        WIDE,
        **STORY,
        sweep="patch",
        against=UNCLE,
        layer="0",
        head="5",
        head_="x",
        at="99",
        edits="é",
    )
    settled(screen.page, sweep="parts", pick="decoder.0.5")
    root = screen.page.locator(".hl.whatif")
    pairs = root.locator(".aligned .column").evaluate_all(
        "all => all.map(one => [...one.children].map(x => x.textContent))"
    )
    assert len(pairs) == 16 and pairs[-2] == ["Aunt", "Uncle"] and all(x == y for x, y in pairs[1:-2])
    assert root.locator(".aligned .column").evaluate_all(
        "all => all.slice(1, -1).every(one => one.children[0].getBoundingClientRect().left === one.children[1].getBoundingClientRect().left)"
    ), "each word stands over its counterpart"
    expect(root.locator(".board .fact")).to_contain_text(
        "Take only L0 H5 from the other sentence, and Em falls from 89 % to 27 %"
    )
    # the other sentence is another run and no change of this one
    expect(root.locator(".aligned .name")).to_have_text(["as it is", "the other"])
    expect(root.locator(".board figcaption").nth(1)).to_contain_text("the other")
    shares = root.locator(".board .bar .value").all_text_contents()
    assert len(shares) == 6 and all(re.fullmatch(r"[<\d.]+ → [<\d.]+\s%", share) for share in shares), shares
    sentences = screen.page.locator(".st-key-sentences")
    expect(sentences).to_contain_text("at “99”")
    expect(sentences).to_contain_text("edits “é”")
    root.get_by_role("button", name="Copy link").click()
    link = screen.page.locator(".hl.whatif[data-link]").get_attribute("data-link") or ""
    assert "sweep=parts" in link and "head=5" in link and "against=Dorothy" in link


def test_a_translators_other_sentence_is_a_source_and_its_words_are_marked_there(plain_another: AnotherPlain) -> None:
    screen = visit(
        plain_another,
        WIDE,
        model="Translator",
        text="Der Hund läuft durch den Wald.",
        against="Die Katze läuft durch den Wald.",
        pick="off",
        moved="cross.1.5",
    )
    root = screen.page.locator(".hl.whatif")
    expect(root.locator(".lines .name")).to_have_text(["source", "other source", "as it is", "the other"])
    expect(root.locator(".lines .other")).to_have_text(["Die", "Katze"])
    expect(root.locator(".lines .asked")).to_have_text([".", "."])
    # the source is shaded by what the asked token looks at; where a head reads the target, the target is
    ground = "all => all.map(one => one.style.background !== '')"
    shaded = root.locator(".lines .token").evaluate_all(ground)
    sources = 2 * len(core.trace(core.load("translator"), "Der Hund läuft durch den Wald.").source)
    assert all(shaded[:sources]) and not any(shaded[sources:])


def test_a_long_text_has_a_strip_of_looks_and_a_model_that_cannot_read_it_says_so(plain_another: AnotherPlain) -> None:
    screen = visit(plain_another, WIDE, **(STORY | {"text": " ".join([DOROTHY] * 4)}), sweep="looks")
    root = screen.page.locator(".hl.whatif")
    cell = root.locator(".grid rect").first.bounding_box()
    assert cell and cell["height"] >= 20, "one query's looks are no hairline"
    scale = root.locator(".columns > .right .mute", has_text="outlined")
    expect(scale).to_be_visible()
    root.get_by_role("button", name="Undo").click()
    settled(screen.page, pick="")
    root.locator("label.other", has_text="another model").locator("select").select_option("copy")
    expect(root.locator(".problem")).to_contain_text("This model has no token for")


@pytest.mark.thorough
def test_an_encoder_on_a_phone(plain_another: AnotherPlain) -> None:
    screen = visit(plain_another, PHONE)
    root = screen.page.locator(".hl.whatif")
    settled(screen.page, pick="encoder.5.11", rows="72")
    expect(root.locator(".fact")).to_contain_text("Silence layer 5 head 11 and the sentence’s vector turns by 22.9°.")
    expect(root.locator(".fact")).to_contain_text("That is more than leaving out “cross” (18.7°).")
    assert screen.page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    small = root.evaluate(
        "root => [...root.querySelectorAll('button, select, input')].filter(e => e.offsetParent && e.getBoundingClientRect().height < 43.5).map(e => e.textContent || e.type)"
    )
    assert small == [] and findings(screen) == []
    expect(root.get_by_role("button", name="no causal mask")).to_be_disabled()
    root.get_by_role("button", name="weaker").click()
    settled(screen.page, pick="encoder.5.7")
