"""What travels to the browser is what core says: whole traces, tiles, rows, reasons."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

import core
from app.attention import picture as attention_picture
from app.attention import transform
from app.transport import messages
from core.edits import EditMask
from core.model.rules import REASONS
from core.read import measures
from core.run.attention import AttentionRecord
from core.service import MapTransform
from core.service.maps import reasons
from core.trace import Trace
from tests.app.served import ask, drawn, serve

SMALL: dict[str, Any] = {
    "vocab_size": 31,
    "d_model": 22,
    "n_heads": 4,
    "d_head": 8,
    "d_ff": 29,
    "n_ctx": 3000,
    "position": "rotary",
}


def run(n: int = 13, target: int = 0, interventions: Sequence[Any] = (), **config: Any) -> Trace:
    """A run of a small random model on n tokens."""
    loaded = core.build(core.ModelConfig(**(SMALL | config)), seed=1)
    ids = [i % 31 for i in range(n)]
    target_ids = list(range(target)) or None
    return core.trace(loaded, ids=ids, target_ids=target_ids, interventions=interventions)


def heads_message(run: Trace) -> bytes:
    service, facts = serve(run)
    return attention_picture.heads_message(facts, ask(service.heads(facts.key)))


def row_message(run: Trace, head: int, query: int) -> bytes:
    (service, facts), of = serve(run), MapTransform(0, head)
    return attention_picture.row_message(of, ask(service.row(facts.key, of, query)))


def first_of(run: Trace, record: int, head: int, query: int) -> tuple[list[Any], bytes]:
    service, facts = serve(run)
    return ask(transform.first(service, facts, record, head, query))


def section(body: bytes, offset: int, kind: str, shape: tuple[int, ...]) -> np.ndarray:
    return np.frombuffer(body, kind, int(np.prod(shape)), offset).reshape(shape)


def test_a_message_comes_back_as_it_went_and_its_numbers_are_aligned():
    header = {"text": "<b>ünï\u2028", "n": [1, 2]}
    message = messages.pack(header, b"\1\2\3\4")
    assert messages.unpack(message) == (header, b"\1\2\3\4")
    assert (len(message) - 4) % 4 == 0


def test_a_weight_that_is_no_number_travels_as_0():
    assert messages.quantised(np.array([np.nan, 0.5, 1], np.float32)).tolist() == [0, 32768, 65535]


def test_every_weight_of_a_small_run_is_within_half_a_step():
    trace = run(n_encoder_layers=2)
    picture = drawn(trace)
    site = picture.header["sites"][0]
    sent = section(picture.body, site["weights_at"], "<u2", (2, 4, 13, 13)) / 65535
    true = torch.stack([record.pattern() for record in trace.attention]).numpy()
    assert picture.header["whole"]
    assert np.abs(sent - true).max() <= 0.5 / 65535 + 1e-9
    bits = section(picture.body, site["entropy_at"], "<f4", (2, 4, 13))
    assert bits == pytest.approx(-(true * np.log2(true)).sum(-1), abs=1e-4)


def test_sites_of_an_encoder_decoder_name_their_tokens_and_layers():
    header = drawn(run(13, 5, n_encoder_layers=2, n_decoder_layers=3)).header
    found = {s["id"]: (len(s["records"]), s["query"], s["key"], s["n_query"], s["n_key"]) for s in header["sites"]}
    assert found == {
        "encoder": (2, "source", "source", 13, 13),
        "decoder": (3, "target", "target", 5, 5),
        "cross": (3, "target", "source", 5, 13),
    }
    assert [len(header["tokens"][side]) for side in ("source", "target")] == [13, 5]


def test_the_tokens_of_a_decoder_alone_are_the_source():
    header = drawn(run(n_decoder_layers=1)).header
    assert header["tokens"]["target"] is None
    assert header["sites"][0]["query"] == "source"


def test_parts_of_a_character_do_not_touch_as_pieces_of_a_word_do():
    tokens = core.trace(core.load("storyteller"), "I ate pizza \N{SLICE OF PIZZA}!").source
    assert "\N{SLICE OF PIZZA} 2/4" in tokens.labels
    assert [tokens.labels[i] for i in attention_picture.joins(tokens)] == ["iz", "z", "a"]


EDITS = (
    EditMask("decoder", 0, queries=2, keys=5, allowed=True, head=1),
    EditMask("decoder", 0, queries=5, keys=2, allowed=False, head=1),
    EditMask("decoder", 0, queries=7, keys=7, allowed=False),
)


@pytest.mark.parametrize(
    ("config", "interventions"),
    [
        ({"n_encoder_layers": 1}, ()),
        ({"n_decoder_layers": 1}, ()),
        ({"n_decoder_layers": 2, "window": 4, "windowed_layers": (1,)}, ()),
        ({"n_encoder_layers": 1, "window": 3}, ()),
        ({"n_decoder_layers": 1, "window": 6}, EDITS),
    ],
)
def test_reasons_are_those_that_core_gives_cell_by_cell(config, interventions):
    for record in run(interventions=interventions, **config).attention:
        for head in range(record.n_heads):
            codes = reasons(record, range(13), range(13), head)
            words = [[record.why_masked(q, k, head) or "" for k in range(13)] for q in range(13)]
            assert [[REASONS[code] for code in row] for row in codes] == words


def test_reasons_of_padding_are_core_s_too():
    record = run(n_decoder_layers=1).attention[0]
    keep = torch.ones(1, 13, dtype=torch.bool)
    keep[0, 9:] = False
    rule = replace(record.batch_rule, mask=replace(record.batch_rule.mask, keep=keep))
    padded = replace(record, batch_rule=rule)
    codes = reasons(padded, range(13), range(13), 0)
    words = [[padded.why_masked(q, k) or "" for k in range(13)] for q in range(13)]
    assert [[REASONS[code] for code in row] for row in codes] == words


def test_a_mask_travels_once_and_none_where_nothing_is_hidden():
    picture = drawn(run(n_decoder_layers=4, window=4, windowed_layers=(1, 3)))
    site = picture.header["sites"][0]
    assert site["mask_of"] == [[0], [1], [0], [1]]
    assert section(picture.body, site["masks_at"][0], "u1", (13, 13))[0, 12] == REASONS.index("future")
    assert drawn(run(n_encoder_layers=2)).header["sites"][0]["mask_of"] == [[-1], [-1]]


def test_heads_with_masks_of_their_own_get_them():
    site = drawn(run(n_decoder_layers=1, interventions=EDITS)).header["sites"][0]
    (heads,) = site["mask_of"]
    assert len(heads) == 4
    assert heads[1] != heads[0] == heads[2] == heads[3]


def test_a_large_run_sends_thumbnails_of_every_head_and_no_weights():
    trace = run(450, n_decoder_layers=1)
    picture = drawn(trace)
    site = picture.header["sites"][0]
    assert not picture.header["whole"]
    assert "weights_at" not in site
    assert len(picture.body) == 4 * 32 * 32
    sent = section(picture.body, site["thumbnails_at"], "u1", (1, 4, 32, 32)) / 255
    assert sent[0] ** 2 == pytest.approx(trace.attention[0].thumbnail(32).values.numpy(), abs=1 / 255)


def test_the_weights_of_a_run_of_middling_size_follow_its_small_pictures():
    trace = run(200, n_decoder_layers=1)
    picture = drawn(trace)
    assert (picture.header["whole"], picture.header["follows"]) == (False, True)
    assert len(picture.body) == 4 * 32 * 32
    header, body = messages.unpack(heads_message(trace))
    (site,) = header["sites"]
    sent = section(body, site["weights_at"], "<u2", (1, 4, 200, 200)) / 65535
    assert np.abs(sent[0] - trace.attention[0].pattern().numpy()).max() <= 0.5 / 65535 + 1e-9
    assert section(body, site["masks_at"][0], "u1", (200, 200))[0, 199] == REASONS.index("future")
    assert header["ids"]["source"] == list(trace.source.ids)


def test_the_first_picture_of_144_heads_and_128_tokens_is_small():
    trace = run(128, n_decoder_layers=12, n_heads=12, d_model=24, d_head=2)
    picture = drawn(trace)
    _, first = first_of(trace, 3, 1, 100)
    assert not picture.header["whole"]
    assert len(messages.pack(picture.header, picture.body + first)) < 300_000


def test_the_head_that_is_opened_comes_as_its_routes_would_give_it():
    trace = run(150, n_decoder_layers=2)
    index, body = first_of(trace, 1, 3, 90)
    found = {path: (params, body[at : at + size]) for path, params, at, size in index}
    service, facts = serve(trace)
    of = MapTransform(1, 3)
    tile = ask(service.tile(facts.key, of, (0, 150), (0, 150)))
    row = ask(service.row(facts.key, of, 90))
    assert found["tile"][0] == {"record": 1, "head": 3, "q0": 0, "q1": 150, "k0": 0, "k1": 150}
    assert found["tile"][1] == attention_picture.tile_message(of, tile)
    assert found["row"] == ({"record": 1, "head": 3, "query": 90}, attention_picture.row_message(of, row))
    assert first_of(run(250, n_decoder_layers=1), 0, 0, 5) == ([], b"")


def test_norms_are_core_s():
    trace = run(n_encoder_layers=2)
    service, facts = serve(trace)
    _, body = messages.unpack(attention_picture.norms_message(ask(service.norms(facts.key, "encoder"))))
    true = torch.stack([record.value_norms() for record in trace.attention]).numpy()
    assert section(body, 0, "<f4", (2, 4, 13)) == pytest.approx(true)


def numbers(message: bytes) -> tuple[dict, np.ndarray, np.ndarray]:
    header, body = messages.unpack(message)
    shape = (header["rows"], header["columns"])
    cells = shape[0] * shape[1]
    return header, section(body, 0, "<u2", shape), section(body, -(-cells * 2 // 4) * 4, "u1", shape)


@pytest.fixture(scope="module")
def long_run() -> Trace:
    return run(1300, n_decoder_layers=1)


@pytest.fixture(scope="module")
def long(long_run: Trace) -> AttentionRecord:
    return long_run.attention[0]


def tile_message(run: Trace, head: int, rows: tuple[int, int], columns: tuple[int, int], cells: int = 512) -> bytes:
    (service, facts), of = serve(run), MapTransform(0, head)
    return attention_picture.tile_message(of, ask(service.tile(facts.key, of, rows, columns, cells)))


def test_a_tile_is_every_weight_where_it_fits(long: AttentionRecord, long_run: Trace):
    header, weights, codes = numbers(tile_message(long_run, 2, rows=(600, 683), columns=(575, 690)))
    assert header == {"rows": 83, "columns": 115, "exact": True, "how": ""}
    true = long.pattern(2, slice(600, 683), slice(575, 690))[0].numpy()
    assert np.abs(weights / 65535 - true).max() <= 0.5 / 65535 + 1e-9
    assert (codes == reasons(long, range(600, 683), range(575, 690), 2)).all()
    assert (weights[codes > 0] == 0).all()


def test_a_larger_region_keeps_the_largest_weight_and_says_so(long: AttentionRecord, long_run: Trace):
    header, weights, codes = numbers(tile_message(long_run, 1, rows=(0, 900), columns=(0, 900), cells=60))
    assert (header["rows"], header["columns"], header["exact"]) == (60, 60, False)
    assert "largest" in header["how"]
    true = torch.nn.functional.adaptive_max_pool2d(long.pattern(1, slice(0, 900), slice(0, 900)), 60)[0].numpy()
    assert np.abs(weights / 65535 - true).max() <= 0.5 / 65535 + 1e-9
    assert codes[0, 59] == REASONS.index("future")
    assert codes[59, 0] == 0


def test_a_very_long_region_is_sampled_and_says_how_many_rows(long: AttentionRecord, long_run: Trace):
    header, weights, _ = numbers(tile_message(long_run, 1, rows=(0, 1300), columns=(0, 1300), cells=50))
    assert "50 of 1,300" in header["how"]
    middle = long.pattern(1, [13])[0, 0]  # the first of fifty patches of 26 rows
    assert weights[0].max() / 65535 == pytest.approx(middle.max().item(), abs=1e-5)


def test_a_row_carries_every_key_and_the_exact_entropy(long: AttentionRecord, long_run: Trace):
    header, body = messages.unpack(row_message(long_run, 3, 800))
    weights, codes = section(body, 0, "<u2", (1300,)), section(body, 2600, "u1", (1300,))
    true = long.row(3, 800)
    assert np.abs(weights / 65535 - true.numpy()).max() <= 0.5 / 65535 + 1e-9
    assert (codes[:801] == 0).all() and (codes[801:] == REASONS.index("future")).all()
    seen = true[:801].double()
    assert header["entropy"] == pytest.approx(float(-(seen * seen.log2()).sum()), abs=1e-3)


def test_entropy_is_zero_for_one_key_and_log2_n_for_n_equal_ones():
    rows = torch.tensor([[1.0, 0, 0, 0], [0.25] * 4, [0, 0, 0, 0]])
    assert measures.entropy(rows).tolist() == pytest.approx([0, 2, 0])
