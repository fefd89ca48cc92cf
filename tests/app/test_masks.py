"""Masks: its choices and edits, its routes against core, the room in a browser, by pointer, keys, link and on a phone."""

from __future__ import annotations

import asyncio
import itertools
import random
import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import Browser, expect
from starlette.applications import Starlette
from starlette.testclient import TestClient

import core
from app.kit import params as kit_params
from app.rooms.masks import choices, message, routes, sheet, words
from app.session import service
from app.session import words as session_words
from app.transport import messages
from core.edits import DropCausalMask, EditMask, MaskAfterSoftmax, MaskFill, SetMask
from core.labs import masks
from core.model.rules import REASONS
from core.read import measures, next_token_loss
from core.run.request import Request
from core.service import Facts
from tests.app.browsing import box_of, eventually
from tests.app.lab import Lab, away, everywhere, printed, sized
from tests.app.plain import AnotherPlain

APP = "app/main.py"
KING = "The old king loved the golden bird, and the old"
CAT, DOG = "The cat sat on the mat because it was tired.", "The dog ran."
EXAMPLE = session_words.EXAMPLE
GERMAN = "Ein Hund rennt durch den Schnee."
PLACE = {"layer": "3", "head": "6", "query": "11"}


def ask(made: Any) -> Any:
    with ThreadPoolExecutor(1) as apart:  # a browser of other tests has an event loop in this thread
        return apart.submit(asyncio.run, made).result()


def opened(model: str, text: str) -> sheet.Opened:
    asked = service.service()
    key = ask(asked.submit(Request(model, (text,))))
    return ask(sheet.opened(asked, ask(asked.facts(key))))


@pytest.fixture(scope="module")
def king() -> sheet.Opened:
    return opened("storyteller", KING)


@pytest.fixture(scope="module")
def german() -> sheet.Opened:
    return opened("translator", GERMAN)


@pytest.fixture(scope="module")
def client() -> Iterator[TestClient]:
    with TestClient(Starlette(routes=routes.ROUTES)) as client:
        yield client


def values(shown: choices.Shown, **said: str) -> dict[str, str]:
    found, notes = kit_params.read(choices.PARAMS, shown, said)
    assert not notes
    return found


def answer(client: TestClient, path: str, **params: Any) -> tuple[dict[str, Any], bytes]:
    found = client.get(f"/headlight/masks/{path}", params=params)
    assert found.status_code == 200, found.text
    return messages.unpack(found.content)


# what is chosen


def test_a_run_opens_on_a_link_between_words_behind_which_the_model_writes(king: sheet.Opened, german: sheet.Opened):
    found = ask(service.service().opening_look(king.shown.facts.key))
    assert king.shown.openings == {"decoder": (found.layer, found.head, found.query)}
    assert king.look == choices.Look("decoder", found.layer, found.head, found.query, found.key)
    layer, head, query = german.shown.openings["cross"]
    run = core.trace(core.load("translator"), GERMAN, "A dog runs through the snow.")
    row = run.attention.at(layer, "cross_attn").pattern(head, query)[0, 0]
    assert row.max() > 0.9 and german.shown.openings["cross"] == (1, 5, 5)  # the → Schnee, as on Explore
    assert king.shown.site == "decoder" and german.look is not None and german.look.site == "cross"


def test_choices_become_edits_of_the_run(king: sheet.Opened, german: sheet.Opened):
    def edits(shown: choices.Shown, **said: str) -> tuple[Any, ...]:
        return choices.edits(values(shown, **said), shown.facts)

    assert edits(king.shown) == ()
    assert edits(king.shown, forbid="11-3") == (EditMask(cells=[(11, 3)]),)
    assert edits(king.shown, forbid="11-3", scope="one", **PLACE) == (EditMask(None, 3, cells=[(11, 3)], head=6),)
    assert edits(king.shown, mask="none", when="after") == (SetMask("none"), MaskAfterSoftmax())
    assert edits(king.shown, mask="window", window="5", fill="1e9") == (SetMask("window", 5), MaskFill(-1e9))
    both = edits(king.shown, forbid="5-0..2", allow="0-1")
    assert both == (EditMask(cells=[(5, range(3))]), EditMask(allowed=True, cells=[(0, 1)]))
    cross = edits(german.shown, site="cross", mask="causal", forbid="0-0")
    assert cross == (EditMask("decoder", cells=[(0, 0)], site="cross_attn"),), "cross-attention has no order to hide"
    assert edits(german.shown, site="encoder", mask="causal") == (SetMask("causal", stack="encoder"),)


def test_a_room_without_keys_leads_to_the_look_of_its_row(german: sheet.Opened, king: sheet.Opened):
    for shown in (german, king):
        look = shown.look
        assert look is not None
        found = values(message._shown(shown, {"key": ""}), key="")
        assert found["key"] == str(look.key) and (found["stop"], found["scope"]) == ("1", "one")
        assert values(message._shown(shown, {"key": "", "table": "on"}), key="", table="on")["stop"] == "1"
        beside = {"key": "", "encoder": "0.1", "decoder": "1.1", "show": "scores"}  # of the text before
        assert values(message._shown(shown, beside), **beside)["stop"] == "1"
        assert values(message._shown(shown, {"key": "", "mask": "none"}), key="", mask="none")["stop"] == "0"


def test_cells_of_a_link_that_the_text_does_not_have_are_left_out_and_said(king: sheet.Opened):
    assert values(king.shown, forbid="11-3,40-2,5-10..30")["forbid"] == "11-3,5-10..11"
    assert choices.left_out("11-3,40-2", king.shown) and not choices.left_out("11-3", king.shown)
    assert not choices.left_out(None, king.shown) and not choices.left_out("nonsense", king.shown)
    assert choices.written(choices.cells("11-3,5-0..4")) == "11-3,5-0..4"


def test_two_hundred_links_give_a_room_and_sentences_but_never_a_trace(king: sheet.Opened):
    rng = random.Random(5)
    pool = [
        "",
        "11-3",
        "paint",
        "leak",
        "x" * 5000,
        "-1",
        "1e309",
        "💥",
        "9" * 30,
        "0-0..99999",
        "1.2",
        "none",
        "nan",
        "3",
        "٣",
    ]
    for _ in range(200):
        said = {
            param.name: rng.choice([*pool, "".join(rng.choices("0123456789-.,~x ", k=9))]) for param in choices.PARAMS
        }
        found, notes = kit_params.read(choices.PARAMS, king.shown, said)
        assert all(note.startswith("This link asks for") for note in notes)
        choices.edits(found, king.shown.facts)
        assert kit_params.read(choices.PARAMS, king.shown, found)[0] == found, "what is shown can be linked to"


LONG = "the king and the queen saw a golden bird " * 12  # 108 tokens


def test_a_long_text_opens_by_row_and_no_map_is_worked_out():
    """It opens on the look of every room; the row that a link names is asked for, and its look is forbidden."""
    found = opened("storyteller", LONG)
    look = ask(service.service().opening_look(found.shown.facts.key))
    assert found.is_by_row and found.masked == {} and found.causal == {"decoder": True}
    assert found.look == choices.Look("decoder", look.layer, look.head, look.query, look.key)
    header, body = sheet.packed(found, values(found.shown), {}, LONG)
    assert len(body) == 0 and header["isByRow"] and header["sites"][0]["sent"] == []
    link = {"layer": "3", "head": "6", "query": "100"}
    shown = message._shown(ask(message._with_row(found, link)), link)
    row = core.trace(core.load("storyteller"), LONG).attention[3].pattern(6, 100)[0, 0]
    row[[0, 100]] = -1
    assert shown.look == choices.Look("decoder", 3, 6, 100, int(row.argmax())) and shown.is_shown
    for wrong in ({"site": "cross"}, {"layer": "99", "query": "100"}, {"query": "999"}):
        assert message._shown(ask(message._with_row(found, wrong)), wrong).look is not None


def test_a_text_whose_rows_alone_are_too_much_to_send_is_told_both_numbers(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sheet, "MOST_ROWS", choices.block_bytes(100))
    asked = service.service()
    facts = ask(asked.facts(ask(asked.submit(Request("storyteller", (LONG,))))))
    n, most = len(facts.source), choices.block_bytes(100)
    assert n > 100
    sentence = f"would take {choices.block_bytes(n) / 1e6:.1f} MB, and {most / 1e6:.1f} MB are the most"
    with pytest.raises(core.HeadlightError, match=re.escape(sentence)):
        ask(sheet.opened(asked, facts))
    beginning = sheet.beginning(facts, sheet.longest_shown())
    assert LONG.startswith(beginning)
    assert 90 < len(opened("storyteller", beginning).shown.facts.source) <= 100
    assert sheet.beginning(opened("storyteller", KING).shown.facts, 96) == ""


def test_rows_of_a_long_text_are_the_runs_own_also_under_another_mask(client: TestClient):
    """Of every block, with the mask that is hidden by hand in it; the browser's softmax of it is that of core."""
    facts = opened("storyteller", LONG).shown.facts
    said = {"forbid": "70-3", "layer": "3", "head": "6"}
    header, body = answer(client, "edited", run=facts.key, ids="0", **said)
    assert header["site"]["sent"] == [] and len(body) == 0 and header["outcome"]["loss"] > 0
    edits = choices.edits(values(opened("storyteller", LONG).shown, **said), facts)
    run = core.trace(core.load("storyteller"), LONG, interventions=edits)
    n = len(facts.source)
    for first in range(0, n, choices.STEP):
        rows, body = answer(client, "rows", run=header["key"], site="decoder", **{"from": first}, layer=3, head=6)
        count = rows["rows"]
        assert (rows["from"], count) == (first, min(choices.BLOCK, n - first))
        scores = np.frombuffer(body, "<f4", count * n, rows["scores"]).reshape(count, n)
        mask = np.frombuffer(body, "u1", count * n, rows["mask"]).reshape(count, n)
        own = run.attention[3].pattern(6)[0].numpy()[first : first + count]
        assert np.allclose(sheet.weights_of(scores, mask), own, atol=1e-6)
        assert (mask == REASONS.index("edited")).sum() == (first <= 70 < first + count)
    assert len(body) <= choices.block_bytes(n)


def test_a_model_without_a_mask_opens_where_explore_does_and_with_its_strongest_look_to_take_away(king: sheet.Opened):
    it = opened("minilm", EXAMPLE)
    assert it.shown.openings == {"encoder": (3, 1, 10)}
    assert it.look == it.look_of("encoder", 3, 1, 10) == choices.Look("encoder", 3, 1, 10, 2)
    assert king.look_of("decoder", 3, 6, 11) == choices.Look("decoder", 3, 6, 11, 3)
    assert king.look_of("decoder", 3, 6, 11, "4") == choices.Look("decoder", 3, 6, 11, 4), "the key that was chosen"
    assert king.look_of("decoder", 3, 6, 0) is None, "a first word has no other one to look at"
    cat = opened("minilm", CAT)
    (opening,) = ask(service.service().openings(cat.shown.facts.key))
    assert cat.shown.openings == {"encoder": (opening.layer, opening.head, opening.query)}
    assert cat.look is not None and (cat.look.query, cat.look.key) == (opening.query, opening.key)


def test_the_lines_of_the_box_and_of_the_room_make_a_batch():
    assert choices.sentences("one\n\n two ", "three\nfour\nfive") == ("one", "two", "three", "four")
    assert choices.sentences("one", "") == ("one",)


# routes


def test_what_the_browser_gets_gives_the_weights_of_core(king: sheet.Opened):
    header, body = sheet.packed(king, values(king.shown), {}, KING)
    (site,) = header["sites"]
    assert len(body) < 300_000 and site["sent"] == list(range(6))
    scores = np.frombuffer(body, "<f4", 6 * 8 * 144, site["offset"]).reshape(6, 8, 12, 12)
    mask = np.frombuffer(body, "u1", 144, site["masks"][0]).reshape(12, 12)
    own = core.trace(core.load("storyteller"), KING).attention[3].pattern(6)[0].numpy()
    assert np.allclose(sheet.weights_of(scores[3, 6], mask), own, atol=1e-6)
    assert own[11, 3] == pytest.approx(0.813, abs=1e-3)
    assert header["outcome"]["loss"] == pytest.approx(3.496, abs=1e-3)


@pytest.mark.parametrize(
    ("said", "chance", "total"),
    [({}, 0.382, 1), ({"scope": "one", **PLACE}, 0.464, 1), ({"when": "after"}, 0.340, 0.199)],
)
def test_a_mask_let_go_runs_for_real(
    client: TestClient, king: sheet.Opened, said: dict[str, str], chance: float, total: float
):
    (man, _, before), *_ = king.outcome.words
    assert before == pytest.approx(0.474, abs=1e-3)
    key = king.shown.facts.key
    header, body = answer(client, "edited", run=key, forbid="11-3", ids=str(man), **said)
    assert header["outcome"]["asked"] == pytest.approx([chance], abs=1e-3)
    scores = np.frombuffer(body, "<f4", 6 * 8 * 144, header["site"]["offset"]).reshape(6, 8, 12, 12)[3, 6, 11]
    edits = choices.edits(values(king.shown, forbid="11-3", **said), king.shown.facts)
    row = core.trace(core.load("storyteller"), KING, interventions=edits).attention[3].pattern(6, 11)[0, 0]
    assert row[3] == 0 and row.sum().item() == pytest.approx(total, abs=1e-3)
    shown = np.exp(scores - scores.max())
    shown[3 if total == 1 else slice(0)] = 0
    shown /= shown.sum()
    shown[3] = 0
    assert np.allclose(shown, row.numpy(), atol=1e-6), "the browser's softmax of these scores is the run's"


def test_an_encoder_turns_its_vector(client: TestClient):
    facts = opened("minilm", CAT).shown.facts
    header, _ = answer(client, "edited", run=facts.key, mask="window", window="2", layer="3", part="1")
    assert header["site"]["sent"] == [3]
    header, _ = answer(client, "edited", run=facts.key, mask="window", window="2")
    assert header["site"]["sent"] == list(range(6))
    assert 8 < header["degrees"] < 90 and header["outcome"]["words"] == []
    assert answer(client, "scores", run=facts.key, site="encoder", layer="2")[0]["site"]["sent"] == [2]


def test_padding_in_a_batch(client: TestClient):
    facts = opened("minilm", f"{CAT}\n{DOG}").shown.facts
    header, body = answer(client, "padding", run=facts.key, texts=f"{CAT}\n{DOG}")
    assert header["text"] == 1 and header["layer"] == 3 and sum(header["padding"][1]) == 7
    assert header["on_padding_free"][3][11] == pytest.approx(0.652, abs=1e-3)
    assert header["output"][0] < 1e-5 and header["degrees"] == pytest.approx([0, 34.9], abs=0.1)
    assert not any(share for layer in header["on_padding"] for share in layer)
    assert len(body) == 2 * 12 * 13 * 13 * 4
    left, _ = answer(client, "padding", run=facts.key, texts=f"{CAT}\n{DOG}\nBirds.", side="left", sentence="0")
    assert len(left["labels"]) == 3 and not any(left["padding"][0]) and left["padding"][2][0]


@pytest.mark.parametrize(
    ("path", "said", "sentence"),
    [
        ("padding", {"texts": "one sentence"}, words.SECOND),
        ("padding", {"texts": "a\nb", "sentence": "7"}, "must be from 0 to 1"),
        ("padding", {"texts": "x" * 3000}, "2000 characters"),
        ("padding", {"texts": f"{'word ' * 60}\nb"}, "Padding is drawn up to 32"),
        ("edited", {"forbid": "x"}, "cells of the map"),
        ("edited", {"layer": "99"}, "a whole number from 0 to 5"),
        ("edited", {"ids": "a"}, "token numbers"),
        ("edited", {"ids": "99999999"}, "no token"),
        ("scores", {"site": "pie", "layer": "0"}, "It has: decoder"),
        ("scores", {"site": "decoder", "layer": "9"}, "must be from 0 to 5"),
        ("rows", {"site": "pie", "layer": "0"}, "It has: decoder"),
        ("rows", {"site": "decoder", "layer": "0", "head": "8", "from": "0"}, "must be from 0 to 7"),
        ("rows", {"site": "decoder", "layer": "0", "head": "0", "from": "12"}, "must be from 0 to 11"),
    ],
)
def test_bad_input_gets_its_sentence(
    client: TestClient, king: sheet.Opened, path: str, said: dict[str, str], sentence: str
):
    found = client.get(f"/headlight/masks/{path}", params={"run": king.shown.facts.key, **said})
    assert found.status_code == 400 and sentence in found.text


def test_leakage_and_the_scale_are_worked_out(client: TestClient, king: sheet.Opened):
    key = king.shown.facts.key
    header, _ = answer(client, "leak", run=key, leaky="taught")
    assert np.mean(header["losses"]) == pytest.approx(3.496, abs=1e-3)
    assert np.mean(header["dropped"]) == pytest.approx(3.388, abs=1e-3)
    assert np.mean(header["without"]) == pytest.approx(0.257, abs=1e-2) and header["next_word"] > 0.999
    assert not header["isOther"]
    scale, _ = answer(client, "scale", run=key)
    assert (scale["own"][2], scale["without"][2]) == pytest.approx((1.15, 0.22), abs=0.005)
    assert all(abs(ratio - 1) < 0.05 for _, _, ratio, *_ in scale["spreads"])


@pytest.mark.thorough
def test_why_scores_are_divided_has_the_numbers_of_its_runs(client: TestClient):
    """Chances within 0.002, losses and bits within 0.01: the row, the next word, the mean over heads and the random test."""
    key = opened("smollm2", IOI).shown.facts.key
    scale, _ = answer(client, "scale", run=key)
    assert (scale["own"][2], scale["without"][2]) == pytest.approx((1.355, 0.245), abs=0.01)
    assert (scale["own"][0], scale["own"][1]) == pytest.approx((417.5, 6.523), rel=1e-3)
    outcome = scale["outcome"]
    assert outcome["asked"][0] == pytest.approx(0.0002, abs=2e-3) and outcome["loss"] == pytest.approx(6.92, abs=0.01)
    assert (outcome["words"][0][1].strip(), outcome["words"][0][2]) == ("the", pytest.approx(0.350, abs=2e-3))
    assert [word.strip() for _, word, _ in outcome["words"][:4]] == ["the", "donkey", "Easter", "John"]
    assert scale["before"][0] == pytest.approx(0.0216, abs=2e-3)
    spreads = {one[0]: one[1:] for one in scale["spreads"]}
    assert spreads[64] == pytest.approx([64.21, 1.0033, 0.8580, 0.2905], abs=0.01)
    assert spreads[512] == pytest.approx([516.06, 1.0079, 0.9516, 0.2903], abs=0.01)
    raw = core.trace(core.load("smollm2"), IOI).attention[23].scores(0, 13)[0, 0] * 8
    assert (raw[1] - raw[0]).item() == pytest.approx(16.57, abs=0.01)  # by which Mary is ahead of When
    assert raw.softmax(-1)[1].item() > 0.999


@pytest.mark.thorough
def test_leakage_is_never_empty_and_says_whose_it_is(
    client: TestClient, king: sheet.Opened, monkeypatch: pytest.MonkeyPatch
):
    """The mask of a decoder is taken away; where there is none, another model's, which is named."""
    monkeypatch.setattr(service, "DEFAULT_REQUEST", Request("smollm2", (words.LEAK_TEXTS[0],)))
    taken, _ = answer(client, "leak", run=king.shown.facts.key, leaky="taken")
    assert (taken["title"], taken["isOther"]) == ("Storyteller", False)
    assert np.mean(taken["losses"]) == pytest.approx(3.496, abs=1e-3)
    encoder = opened("minilm", words.LEAK_TEXTS[0]).shown.facts.key
    other, _ = answer(client, "leak", run=encoder, leaky="taken")
    assert (other["title"], other["isOther"], other["isOwnText"]) == ("SmolLM2-135M", True, True)
    assert (np.mean(other["losses"]), np.mean(other["without"])) == pytest.approx((4.218, 0.867), abs=0.01)
    assert (other["layer"], other["head"]) == (18, 7) and other["next_word"] == pytest.approx(0.948, abs=2e-3)
    assert other["written_without"].startswith(" Mary, John, John, John")
    losses = [answer(client, "leak_text", run=encoder, i=i)[0]["losses"] for i in (0, 3, 4)]
    assert np.array(losses) == pytest.approx(np.array([[4.218, 0.867], [3.692, 4.886], [5.576, 10.507]]), abs=0.01)
    taught, _ = answer(client, "leak", run=encoder, leaky="taught")
    assert (taught["title"], taught["isOther"], taught["text"]) == ("Storyteller", True, KING)
    wrong = client.get("/headlight/masks/leak_text", params={"run": encoder, "i": "9"})
    assert wrong.status_code == 400 and "from 0 to 6" in wrong.text


def test_three_kinds_of_attention_come_from_three_models_each_with_its_own_run(client: TestClient):
    key = opened("smollm2", "The dog runs").shown.facts.key
    shown = {
        "encoder": ("minilm", "MiniLM-L6"),
        "decoder": ("smollm2", "SmolLM2-135M"),
        "cross": ("translator", "Translator"),
    }
    for kind, (model, title) in shown.items():
        header, body = answer(client, "kind", run=key, kind=kind, sentence_of="example")
        layer, head, _ = header["place"]
        assert header["title"] == title and header["site"]["sent"] == [layer]
        site, n = header["site"], header["site"]["n_query"] * header["site"]["n_key"]
        scores = np.frombuffer(body, np.float32, n * site["heads"], site["offset"]).reshape(
            site["heads"], site["n_query"], -1
        )
        of = site["mask_of"][0]
        at = of[head if len(of) > 1 else 0]
        mask = None if at < 0 else np.frombuffer(body, np.uint8, n, site["masks"][at]).reshape(site["n_query"], -1)
        text = words.KINDS_GERMAN if kind == "cross" else words.KINDS_TEXT
        target = ask(service.service().facts(ask(service.service().submit(Request(model, (text,)))))).target
        run = core.trace(core.load(model), text, target.text if target else None)
        records = [one for one in run.attention if one.site == "cross_attn"] if kind == "cross" else run.attention
        truth = records[layer].pattern(head)[0].numpy()
        assert sheet.weights_of(scores[head], mask) == pytest.approx(truth, abs=1e-4)
    mine, _ = answer(client, "kind", run=key, kind="encoder", sentence_of="yours")
    assert [label.lower() for label in mine["labels"]["source"][1:-1]] == ["the", "dog", "runs"]
    wrong = client.get("/headlight/masks/kind", params={"run": key, "kind": "pie"})
    assert wrong.status_code == 400 and "encoder, decoder, cross" in wrong.text


def test_no_word_before_a_changed_one_notices_it_unless_the_mask_is_taken_away(client: TestClient, king: sheet.Opened):
    """A pair of texts is made of the visitor's own; the run of each is core's."""
    text = words.LEAK_TEXTS[0]
    key = opened("smollm2", text).shown.facts.key
    found, _ = answer(client, "leak_pair", run=key, leaky="taken")
    assert found["texts"] == [text, text.replace("drink", "gift")] and found["words"] == ["drink", "gift"]
    for words_, chances in zip(found["texts"], found["chances"], strict=True):
        ran = core.trace(core.load("smollm2"), words_)
        free = core.trace(core.load("smollm2"), words_, interventions=[DropCausalMask()])
        truth = [next_token_loss.given(run, [11]).probabilities.item() for run in (ran, free)]
        assert chances == pytest.approx(truth, abs=2e-3)
    assert found["before"] == 11 and found["noticed"][0] == 0 and found["most"][0] < 1e-4
    assert found["noticed"][1] >= 8 and found["most"][1] > 0.5
    mine, _ = answer(client, "leak_pair", run=key, leaky="taken", written="The sun is hot", instead="The sun is cold")
    assert mine["words"] == ["hot", "cold"] and mine["before"] == 2
    taught, _ = answer(client, "leak_pair", run=king.shown.facts.key, leaky="taught")
    assert taught["texts"][0] == KING and all(b > a for a, b in taught["chances"])
    for written, instead, said in (("A b", "C b", "different words"), ("A bird", "A bird", "No word is changed")):
        wrong = client.get(
            "/headlight/masks/leak_pair", params={"run": key, "written": written, "instead": instead, "leaky": "taken"}
        )
        assert wrong.status_code == 400 and said in wrong.text


def test_padding_of_a_writer_turns_its_next_word_where_nothing_masks_it(client: TestClient):
    """On the left; on the right a decoder never sees it."""
    texts = "When Mary and John went to the store, John gave a drink to\nThe capital of France is"
    key = opened("smollm2", texts.splitlines()[0]).shown.facts.key
    left, _ = answer(client, "padding", run=key, texts=texts, side="left")
    assert left["next_word"][0].strip() == "Paris" and left["leads"][0].strip() == "a"
    assert left["next_word"][1:] == pytest.approx([0.773, 0.773, 0.0005], abs=2e-3)
    assert np.mean(left["on_padding_free"]) == pytest.approx(0.860, abs=2e-3)
    right, _ = answer(client, "padding", run=key, texts=texts, side="right")
    assert right["next_word"][1:] == pytest.approx([0.773] * 3, abs=2e-3) and np.mean(right["on_padding_free"]) == 0


@pytest.mark.thorough
def test_the_code_of_a_file_gives_its_numbers(client: TestClient, king: sheet.Opened):
    key = king.shown.facts.key
    header, _ = answer(client, "edited", run=key, forbid="11-3", ids="0", **PLACE)
    said = printed(header["about"]["snippet"] + header["about"]["looks"].format(layer=3, head=6, query=11))
    assert "0.0000" in said and f"{header['outcome']['loss']:.4f}" in said
    assert printed(answer(client, "leak", run=key, leaky="taught")[0]["about"]["snippet"]).count("old") > 5
    assert "3.49" in printed(answer(client, "leak", run=key, leaky="taken")[0]["about"]["snippet"])
    assert "0.22" in printed(answer(client, "scale", run=key)[0]["about"]["snippet"])
    pair = opened("minilm", f"{CAT}\n{DOG}").shown.facts.key
    padded = printed(answer(client, "padding", run=pair, texts=f"{CAT}\n{DOG}")[0]["about"]["snippet"])
    assert "cosine=0.82" in padded


# the page


class Room(Lab):
    """A visitor's page on Masks."""

    ROOM = "masks"

    def fresh(self) -> None:
        """Until what is shown is of a run under the mask that is shown."""
        self.has("fresh", "true")

    def weight(self, key: int) -> float:
        row = self.root.locator(".row")
        keys = (row.get_attribute("data-keys") or "").split()
        return float((row.get_attribute("data-weights") or "").split()[keys.index(str(key))])


@pytest.fixture
def window(request: pytest.FixtureRequest) -> tuple[int, int]:
    return getattr(request, "param", (1280, 720))


@pytest.fixture
def room(plain_another: AnotherPlain, window: tuple[int, int]) -> Room:
    return Room(plain_another(window, reduced_motion="reduce"))


def percent(p: float) -> str:
    """As the room says a share."""
    return f"{100 * p:.0f} %" if 0.0995 <= p <= 0.98 else f"{100 * p:.1f} %"


def facts_of(model: str, text: str) -> Facts:
    return opened(model, text).shown.facts


def test_painting_by_pointer_by_keys_and_by_link(room: Room):
    """A cell painted is 0 at once, then the next word falls; keys do the same; the link brings all of it back."""
    room.open(model="Storyteller", text=KING, lab="paint", **PLACE)  # a link from before there was a walk
    room.says("No word sees what comes later. old2 gives 81 % to king. Next word man: 47 %.")
    own = core.trace(core.load("storyteller"), KING)
    assert room.weight(3) == pytest.approx(own.attention[3].pattern(6, 11)[0, 0, 3].item(), abs=1e-4)
    pad = room.root.locator(".brush")
    size = box_of(pad)["width"] / 12
    pad.hover(position={"x": 11.5 * size, "y": 3.5 * size})  # once it stands still
    expect(room.root.locator(".tip")).to_contain_text(f"may not look, {words.COMPONENT['reasons'][1]}.")
    pad.hover(position={"x": 3.5 * size, "y": 11.5 * size})
    room.page.mouse.down()
    room.says("No head may look from old2 to king.")
    assert room.weight(3) == 0
    room.page.mouse.up()
    room.fresh()
    room.says("Next word man: 47 → 38 %.")
    aside = room.root.locator("aside")
    assert float(aside.get_attribute("data-chance") or 0) == pytest.approx(0.382, abs=1e-3)
    room.link("forbid=11-3", "stop=0")
    room.press("after")
    room.says("the row of old2 adds up to 0.20.")
    room.fresh()
    room.press("before softmax")
    room.press("this head")
    room.says("In this head, old2 may not look at king.")
    room.says("Next word man: 47 → 46 %.")
    link = room.link("scope=one", "forbid=11-3")
    room.press("Reset")
    room.says("No word sees what comes later.")
    pad.focus()
    room.page.keyboard.press("ArrowLeft")
    room.page.keyboard.press("Space")
    room.says("may not look at")
    room.follow(link)
    room.says("In this head, old2 may not look at king.")
    room.fresh()
    assert room.weight(3) == 0
    assert room.axe() == []


def test_a_row_of_nothing_but_minus_1e9_is_uniform_in_the_sentence_the_row_and_the_map(room: Room):
    hidden = ",".join(f"11-{key}" for key in range(12))  # all that the last of the 12 tokens may look at
    zeros = []
    for fill, weight in (("inf", 0), ("1e9", 1 / 12)):
        room.open(model="Storyteller", text=KING, lab="paint", **PLACE | {"stop": "0"}, forbid=hidden, fill=fill)
        assert room.weight(3) == pytest.approx(weight, abs=1e-6)
        zeros.append(room.root.inner_text().split("\n").count("0"))
    assert zeros[0] - zeros[1] == 12  # the map after the mask
    room.says(percent(1 / 12))


@pytest.mark.parametrize("asked, keeps", [({}, False), (PLACE, True)], ids=["by rule", "by link"])
def test_after_the_softmax_a_row_is_selected_that_loses_weight(room: Room, asked: dict[str, str], keeps: bool):
    room.open(model="Storyteller", text=KING, lab="paint", when="after", **asked)
    weights = [float(weight) for weight in (room.root.locator(".row").get_attribute("data-weights") or "").split()]
    assert (sum(weights) > 0.999) == keeps


IOI = "When Mary and John went to the store, John gave a drink to"
WALK = [  # place, chance of Mary, loss of the sentence, and words of the fact
    ("23.0", 0.889, 4.218, "In this head, to2 may not look at Mary. Its 69 % is shared out"),
    ("23.0", 0.227, 4.218, "No head may look from to2 to Mary. Next word Mary: 92 → 23 %."),
    ("24.4", 0.971, 4.218, "The head that looks hardest at Mary: 81 %, first of 270. Forbid it, and Mary rises"),
    ("23.0", 0.750, 0.867, "Without the causal mask, each word sees the next one. Loss 4.22 → 0.87"),
    ("23.0", 0.0, 7.285, "Each word sees itself and 2 before it."),
    ("23.0", 0.0, 4.539, "and the first word."),
    ("23.0", 0.888, 4.179, "Masked after the softmax, the row of to2 adds up to 0.31."),
]


@pytest.mark.thorough
def test_the_walk_of_a_clicker_through_the_masks_and_on_into_the_labs(room: Room):
    room.open(model="SmolLM2-135M", text=IOI)
    aside = room.root.locator("aside")
    for i, (place, chance, loss, said) in enumerate(WALK, 1):
        room.has("stop", str(i))
        room.says(said)
        room.fresh()

        def agrees(chance: float = chance, loss: float = loss) -> None:
            assert float(aside.get_attribute("data-chance") or "nan") == pytest.approx(chance, abs=2e-3)
            assert float(aside.get_attribute("data-loss") or "nan") == pytest.approx(loss, abs=1e-2)

        eventually(room.page, agrees)
        assert f"{room.root.get_attribute('data-layer')}.{room.root.get_attribute('data-head')}" == place
        if i in (1, 2, 3, 7):
            assert room.root.locator(".row").get_attribute("data-forbidden") == "1", (
                "the forbidden key is never dropped"
            )
        if i == 2:  # Mary, head by head

            def climbed() -> tuple[list[str], list[str]]:
                said = aside.evaluate("(node) => ({ ...node.dataset })")  # both of one moment
                return said["steps"].split(), said["ladder"].split()

            def has_more(than: int) -> None:
                steps, chances = climbed()
                assert len(chances) > than or len(chances) == len(steps) > 0

            steps, chances = climbed()
            while not steps or len(chances) < len(steps):  # its runs come a few at a time
                eventually(room.page, partial(has_more, len(chances)))
                steps, chances = climbed()
            ladder = dict(zip(steps, chances, strict=True))
            for heads, truth in {"1": 0.971, "3": 0.869, "8": 0.826, "10": 0.548, "20": 0.270, "270": 0.227}.items():
                assert float(ladder[heads]) == pytest.approx(truth, abs=2e-3)
        room.page.keyboard.press("PageDown")
    room.has("lab", "padding")
    room.page.keyboard.press("PageUp")
    room.has("stop", "7")
    link = room.link("stop=7", "when=after")
    assert "forbid=1" not in link, "only what a hand has painted is in the link"


def test_an_encoder_has_a_walk_of_five_and_a_ruler_of_words(room: Room):
    room.open(model="MiniLM-L6", text=EXAMPLE)
    room.has("stop", "1")
    room.says("In this head, it may not look at animal. Its 68 % is shared out")
    aside = room.root.locator("aside")
    for stop, degrees in {"1": 0.61, "2": 3.16, "4": 49.0, "5": 28.1}.items():
        room.has("stop", stop)
        room.fresh()

        def agrees(degrees: float = degrees) -> None:
            assert float(aside.get_attribute("data-degrees") or "nan") == pytest.approx(degrees, abs=0.05)

        eventually(room.page, agrees)
        room.page.keyboard.press("PageDown")
    room.has("stop", "7")
    expect(aside.locator(".ruler")).to_contain_text("without “animal”")
    expect(aside.locator(".ruler .ours")).to_contain_text("this mask")
    assert "cosine" not in room.root.inner_text()
    room.page.keyboard.press("PageDown")
    room.has("lab", "padding")


def test_presets_the_table_and_files(room: Room, browser: Browser, tmp_path: Path):
    room.open(model="Storyteller", text=KING, lab="paint", **PLACE)
    room.root.get_by_role("button", name="window", exact=False).first.click()
    room.says("Each word sees itself and 2 before it.", "Loss 3.50 → 4.12.")
    room.press("+ first")
    room.link("first=on", "mask=window")
    room.root.get_by_role("button", name="none", exact=False).first.click()
    room.says("Without the causal mask, each word sees the next one. Loss 3.50 → 3.52")
    room.root.get_by_role("button", name="Table", exact=True).click()
    expect(room.root.locator(".tablebox tbody tr")).to_have_count(144)
    assert room.axe() == []
    lines = room.saved("CSV: cells").read_text("utf-8-sig").splitlines()
    assert (
        "hl.edits.SetMask('none')" in "\n".join(lines[:12]) and len([line for line in lines if line[0] == '"']) == 144
    )
    drawn = room.saved("SVG").read_text("utf-8")
    assert "Without the causal mask" in drawn and drawn.count("<rect") > 200
    assert room.saved("PNG 1×").read_bytes().startswith(b"\x89PNG")
    free = core.trace(core.load("storyteller"), KING, interventions=[SetMask("none")])
    with np.load(room.saved("NPZ")) as arrays:
        assert arrays["weights"] == pytest.approx(free.attention[3].pattern(6)[0].numpy(), abs=1e-6)
    with away(browser, room.saved("HTML"), tmp_path) as page:
        expect(page.locator(".fact")).to_contain_text("Loss 3.50 → 3.52")
    float(room.root.get_attribute("data-ms") or "x")  # the room says how long it took to draw


@pytest.mark.thorough
def test_the_other_labs_say_what_core_works_out(room: Room):
    room.open(model="Storyteller", text=KING, **PLACE)
    room.press("Leakage")
    room.says(
        "Taught without the mask, it copies: loss 3.50 → 0.26. Asked to write, there is nothing ahead to copy: old old old old …"
    )
    stage = room.root.locator(".stage")
    assert float(stage.get_attribute("data-next") or 0) > 0.999
    run = core.trace(core.load("storyteller"), KING)
    leaky = masks.leakage(run, masks.relearnt(run.loaded))
    mean = leaky.relearnt.mean().item()
    assert float(stage.get_attribute("data-without") or 0) == pytest.approx(mean, abs=1e-4)
    everywhere(room.root, lambda: room.says(f"it copies: loss {leaky.losses.mean().item():.2f} → {mean:.2f}."))
    two = room.root.locator(".texts.two")
    expect(two.locator("input")).to_have_count(2)  # both can be written
    expect(two.locator("input").first).to_have_value(KING)
    two.locator("input").last.fill(KING.replace("golden", "silver"))
    two.locator("input").last.press("Enter")
    expect(two).to_contain_text("silver")
    room.link("instead=The+old+king+loved+the+silver")
    room.press("The model’s own change")
    expect(two.locator("input").last).not_to_have_value(KING.replace("golden", "silver"))
    room.press("Table")
    tables = room.root.locator(".tablebox table")
    rows = tables.first.locator("tbody tr")
    expect(rows).to_have_count(len(leaky.losses))
    assert float(rows.last.locator("td").last.inner_text()) == pytest.approx(leaky.relearnt[-1].item(), abs=1e-3)
    cells = tables.last.locator("tbody tr")  # the one head, before and after
    expect(cells).to_have_count(12 * 12)
    shown = [float(text) for text in cells.nth(3 * 12 + 4).locator("td").all_inner_texts()[1:]]
    assert shown == pytest.approx([leaky.before[3, 4].item(), leaky.after[3, 4].item()], abs=1e-4)
    room.press("Why ÷ √d")
    room.says("bits of entropy instead of")
    record = run.attention[3]
    undivided = (record.scores(6, 11)[0, 0] * record.q.shape[-1] ** 0.5).softmax(-1)
    bits = measures.entropy(undivided[None]).item()
    everywhere(room.root, lambda: room.says(f"{bits:.2f} bits of entropy instead of"))
    expect(room.root.locator(".tablebox")).to_have_attribute(
        "aria-label", words.COMPONENT["scale_random"]
    )  # it stays open
    row = room.root.locator(".tablebox table").last.locator("tbody tr")
    expect(row).to_have_count(12)
    assert float(row.nth(3).locator("td").first.inner_text()) == pytest.approx(
        record.pattern(6)[0, 11, 3].item(), abs=1e-4
    )
    assert room.axe() == []
    # another row and another head, without a key
    room.root.get_by_role("combobox", name=words.COMPONENT["scale_row"]).select_option("10")
    room.says(f"{percent(record.pattern(6)[0, 10].max().item())}: ")
    room.press("Next head")
    room.has("head", "7")
    room.says(f"{percent(record.pattern(7)[0, 10].max().item())}: ")
    room.link("query=10", "head=7")
    assert float(stage.get_attribute("data-without") or 0) == pytest.approx(0.22, abs=0.005)
    room.press("Three kinds")
    room.says("An encoder sees both sides, a decoder only what came before, and a translator’s writer sees")
    parts = room.root.locator("[data-kind]")
    expect(parts).to_have_count(3)
    titles = [part.locator("h3").inner_text() for part in parts.all()]
    assert [title.rsplit(" layer")[0] for title in titles] == [
        "Encoder · MiniLM-L6",
        "Decoder · Storyteller",
        "Cross · Translator",
    ]
    room.press("Use my sentence")
    room.link("sentence_of=yours")
    n = len(run.source)
    expect(parts.nth(1)).to_have_attribute("data-free", str(n * (n + 1) // 2))
    room.root.get_by_role("button", name="Next head").nth(1).click()
    room.link("decoder=")
    room.press("Back to Storyteller")
    room.has("lab", "paint")
    room.press("Padding")
    room.says("Without the padding mask,")  # a second sentence is ready: no lab is empty
    room.page.wait_for_url(lambda url: "partner=" in url)


@pytest.mark.thorough
def test_padding_and_kinds_on_their_own_models(room: Room):
    room.open(model="MiniLM-L6", text=f"{CAT}\n{DOG}", lab="padding")
    room.says("The dog ran. is filled up with 7 tokens of padding.")
    expect(room.root.locator("aside")).to_contain_text("65 %")
    room.root.get_by_role("button", name="not masked").click()
    room.says("of the attention goes to padding.")
    everywhere(room.root, lambda: room.says("The vector of The dog ran. turns by 34.9°."))
    room.press("Table")
    expect(room.root.locator(".tablebox tbody tr")).to_have_count(13 * 13)
    assert room.axe() == []
    room.open(model="Translator", text=GERMAN, lab="kinds", cross="1.5", row="5")
    everywhere(room.root, lambda: room.says("the may see the whole source and gives 99.8 % to Schnee"))
    cells = [part.get_attribute("data-free") for part in room.root.locator("[data-kind]").all()]
    assert cells == ["64", "36", "64"]
    room.press("Table")
    expect(room.root.locator(".tablebox tbody tr")).to_have_count(3 * 64)
    assert room.axe() == []


def test_keys_mean_the_same_in_every_lab_and_reach_it_from_the_page(room: Room):
    """Arrows move the row and the head, Page keys the lab, "/" finds a head; a lab that the model lacks is passed over."""
    room.open(model="MiniLM-L6", text=CAT, lab="paint", layer="3", head="11", query="4")
    keys = room.page.keyboard
    keys.press("ArrowRight")
    room.has("layer", "4")
    room.has("head", "0")
    keys.press("ArrowDown")
    room.has("query", "5")
    keys.press("/")
    keys.type("2.7")
    keys.press("Enter")
    room.has("head", "7")
    room.has("layer", "2")
    room.press("Padding")
    room.says("The dog ran.")  # one sentence is no batch: the second is the room's own
    room.link("lab=padding", "partner=")
    keys.press("/")
    keys.type("3.11")
    # The keys are the page's again at once, not with the next frame, in which a browser takes the focus from what is hidden.
    sent = "field => (field.form.requestSubmit(), field.getRootNode().activeElement !== field)"
    assert room.root.locator(".finder input").evaluate(sent)
    expect(room.root.locator("aside .line b")).to_have_text("Layer 3 · Head 11")
    keys.press("PageDown")
    room.says("An encoder sees both sides")  # not Leakage, which only a decoder has
    keys.press("ArrowRight")
    room.link("decoder=")
    keys.press("PageDown")
    room.has("lab", "scale")
    keys.press("PageDown")
    room.has("lab", "scale")
    keys.press("PageUp")
    room.has("lab", "kinds")


@pytest.mark.parametrize("window", [(390, 844)], indirect=True)
def test_on_a_phone_one_map_is_before_or_after_and_cells_beyond_the_text_are_left_out(room: Room):
    room.open(model="Storyteller", text=KING, forbid="11-3,40-1", **PLACE)
    room.fresh()
    room.says("No head may look from old2 to king.")
    expect(room.page.locator(".st-key-sentences")).to_contain_text(words.LEFT_OUT)
    assert room.root.locator(".map:visible svg").count() == 1
    room.press("After")
    expect(room.root.locator(".map.after")).to_be_visible()
    expect(room.root.locator(".map.before")).to_be_hidden()
    width = room.page.evaluate("document.documentElement.scrollWidth")
    assert width <= 390
    small = room.root.locator(".seg button, .quiet, .preset").evaluate_all(
        "nodes => nodes.filter(node => node.offsetHeight && node.offsetHeight < 44).map(node => node.textContent)"
    )
    assert small == []


@pytest.mark.thorough
def test_a_lab_fits_its_window_and_its_headings_stand_apart(room: Room):
    """On a laptop and projected, all of a lab with its buttons; also where two words make narrow maps."""
    labs = {
        "paint": {},
        "padding": {"partner": DOG},
        "leak": {"model": "Storyteller", "text": KING},
        "kinds": {"model": "Translator", "text": GERMAN},
        "scale": {},
    }

    def fits(width: int, height: int) -> None:
        main = room.page.locator("[data-testid=stMain]")
        assert main.evaluate("({ scrollWidth, scrollHeight }) => [scrollWidth, scrollHeight]") == [width, height]
        shown = room.root.locator(".acts button:visible")
        assert shown.count() > 0
        for button in shown.all():
            box = box_of(button)
            assert box["y"] + box["height"] <= height and box["x"] + box["width"] <= width
        for note in room.root.locator(".note b").all():  # what a convention is called
            box = box_of(note)
            assert box["x"] + box["width"] <= width

    for lab, said in labs.items():
        for projected in ({}, {"projector": "true"}):
            room.open(lab=lab, **said, **projected)
            room.root.locator(".stage svg[role=img]").first.wait_for()
            for size in ((1920, 1080), (1280, 720)):
                sized(room.page, *size)
                eventually(room.page, lambda size=size: fits(*size))
    for lab in ("padding",):
        room.open(lab=lab, text="Hello", partner=DOG)
        titles = room.root.locator(".stage .two h3")
        expect(titles).to_have_count(2)
        boxes = [box_of(title) for title in titles.all()]
        assert all(one["x"] + one["width"] < two["x"] for one, two in itertools.pairwise(boxes))


@pytest.mark.thorough
def test_a_text_of_hundreds_of_tokens_is_shown_by_row(room: Room):
    """A tile around the row, weights over the whole text; a jump by number and by word, cells painted in the tile, a card over all of it."""
    text = "the king and the queen saw a golden bird " * 40  # 360 tokens
    run = core.trace(core.load("storyteller"), text)
    pattern = run.attention[3].pattern(6)[0]
    room.open(model="Storyteller", text=text, lab="paint", stop="0", scope="all", layer="3", head="6", query="200")
    row = room.root.locator(".row")

    def agrees(query: int) -> None:
        shown = [float(x) for x in (row.get_attribute("data-weights") or "").split()]
        assert shown == pytest.approx(pattern[query].tolist(), abs=2e-5)

    eventually(room.page, lambda: agrees(200))
    label = room.root.locator(".map.before svg").get_attribute("aria-label") or ""
    assert f"{len(run.source)} queries by {len(run.source)} keys" in label
    assert room.root.locator(".map.before svg rect").count() >= 24 * 24 // 2
    for _ in range(40):  # over the end of the rows that came first
        room.page.keyboard.press("ArrowDown")
    room.has("query", "240")
    eventually(room.page, lambda: agrees(240))
    field = room.root.get_by_placeholder(words.COMPONENT["jump"])
    field.fill("31")
    field.press("Enter")
    room.has("query", "31")
    eventually(room.page, lambda: agrees(31))
    for place in (labels_after(run, 31, "queen"), labels_after(run, labels_after(run, 31, "queen"), "queen")):
        field = room.root.get_by_placeholder(words.COMPONENT["jump"])
        field.fill("queen")
        field.press("Enter")
        room.has("query", str(place))
    field.fill("zebra")
    field.press("Enter")
    room.has("query", str(place))
    bars = room.root.locator(".chart rect.jump")
    assert 10 < bars.count() < 100, "losses of many words share a bar"
    bars.nth(bars.count() // 2).click()
    room.has("query", re.compile("^1[0-9][0-9]$"))
    field = room.root.get_by_placeholder(words.COMPONENT["jump"])
    field.fill("200")
    field.press("Enter")
    room.has("query", "200")
    pad = room.root.locator(".brush")
    size = box_of(pad)["width"] / 24  # as many as a laptop's window can name
    first = 8 * ((200 - 16) // 8)  # the row is in the middle of its tile, which moves by eight
    pad.click(position={"x": 2.5 * size, "y": (200 - first + 0.5) * size})
    room.link(f"forbid=200-{first + 2}")
    room.fresh()
    other = core.trace(run.loaded, text, interventions=[EditMask(cells=[(200, first + 2)])])
    pattern = other.attention[3].pattern(6)[0]
    eventually(room.page, lambda: agrees(200))
    chance = float(room.root.locator("aside").get_attribute("data-chance") or "nan")
    own = run.predictions(k=1).ids[0][0]
    assert chance == pytest.approx(next_token_loss.probabilities(other, [own])[0].item(), abs=2e-3)
    assert room.axe() == []
    room.root.get_by_role("button", name="Table", exact=True).click()
    expect(room.root.locator(".tablebox tbody tr")).to_have_count(len(run.source))
    room.press("Reset")
    room.root.get_by_role("button", name="window", exact=False).first.click()
    room.fresh()
    narrow = core.trace(run.loaded, text, interventions=[SetMask("window", 3)])
    pattern = narrow.attention[3].pattern(6)[0]
    eventually(room.page, lambda: agrees(200))
    loss = float(room.root.locator("aside").get_attribute("data-loss") or "nan")
    assert loss == pytest.approx(next_token_loss.given(narrow).losses.mean().item(), abs=1e-3)


def labels_after(run: core.Trace, at: int, word: str) -> int:
    return next(i for i in range(at + 1, len(run.source)) if run.source.labels[i].strip() == word)


@pytest.mark.thorough
def test_labs_that_draw_whole_maps_lead_to_the_beginning_of_a_long_text(room: Room):
    for lab, most in (("kinds", 96), ("scale", 96), ("padding", 32)):
        room.open(model="Storyteller", text=LONG, lab=lab)
        room.says("draws whole maps", f"up to {most} tokens")
        room.root.get_by_role("link", name=f"Take its beginning, up to {most} tokens").click()
        room.page.wait_for_url(lambda url, lab=lab: f"lab={lab}" in url and len(url) < 600)
        expect(room.root.locator(".stage :is(svg, canvas)").first).to_be_visible()
    room.open(model="Storyteller", text=LONG, stop="7", when="after")
    room.page.keyboard.press("PageDown")
    room.has("lab", "paint")  # a clicker meets no lab that has nothing to show


def test_the_row_of_a_long_text_is_its_heaviest_keys(room: Room):
    room.open(model="Storyteller", text="the king and the queen saw a golden bird " * 5 + "and the", lab="scale")
    bars = room.root.locator(".sides").first.locator(":scope > div")
    expect(bars).to_have_count(7)
    expect(bars.last).to_contain_text("others")
    own = [text.split("→")[0] for text in bars.locator("s").all_inner_texts()]
    shares = [float(re.sub(r"[^0-9.]", "", text)) for text in own]
    assert sum(shares) == pytest.approx(100, abs=1)


@pytest.mark.thorough
def test_a_long_text_is_a_tile_around_its_row_and_painted_all_the_same(room: Room):
    """Forty tokens: 32 by 32 of them around the row; another row brings its own, and a cell is painted by keys."""
    text = "the king and the queen saw a golden bird " * 5 + "and the"
    room.open(model="Storyteller", text=text, lab="paint")
    names = room.root.locator(".map.before svg text")
    expect(names.first).to_be_visible()
    pad = room.root.locator(".brush")
    pad.focus()
    for _ in range(9):
        room.page.keyboard.press("ArrowDown")
    room.has("query", "9")
    room.page.keyboard.press("Space")
    room.fresh()
    room.says("No head may look from")
    room.link("forbid=9-0")
    assert room.weight(0) == 0
    assert room.axe() == []
