"""What the routes give for pictures of several heads, hidden keys and words is core's, and bad parameters get sentences."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch
from starlette.applications import Starlette
from starlette.testclient import TestClient

import core
from app.attention import picture as attention_picture
from app.session import service
from app.shell import routes
from app.transport import messages
from core.errors import HeadlightError
from core.model.rules import REASONS
from core.read import measures
from core.run.request import Request
from core.service import HIDDEN, MapTransform, word_groups
from core.service import maps as compute
from core.trace import Trace
from tests.app.served import ask as answered
from tests.app.served import drawn, local, serve

REQUEST = Request(service.DEFAULT_MODEL, ("Unbelievably, the cat sat on the mat.",))


@pytest.fixture(scope="module")
def trace() -> Trace:
    return local().engine.run(REQUEST)


@pytest.fixture(scope="module")
def client() -> Iterator[TestClient]:
    with TestClient(Starlette(routes=[*routes.ROUTES])) as client:
        yield client


def numbers(message: bytes) -> tuple[dict[str, Any], np.ndarray, np.ndarray]:
    header, body = messages.unpack(message)
    shape = (header["rows"], header["columns"])
    cells = shape[0] * shape[1]
    values = np.frombuffer(body, "<f4", cells).reshape(shape)
    return header, values, np.frombuffer(body, "u1", cells, cells * 4).reshape(shape)


def ask(client: TestClient, path: str, **params: Any):
    return client.get(f"/headlight/{path}", params={"run": REQUEST.key, "record": 2, "head": 3} | params)


def merged(rows: torch.Tensor, groups: list[range]) -> torch.Tensor:
    columns = torch.stack([rows[:, list(group)].sum(-1) for group in groups], dim=-1)
    return torch.stack([columns[list(group)].mean(0) for group in groups])


@pytest.mark.parametrize("kind", ["mean", "max", "rollout", "value"])
def test_a_tile_of_each_kind_is_core_s(client: TestClient, trace: Trace, kind: str):
    n = len(trace.source)
    members = [(trace.attention[1], 4), (trace.attention[5], 0)]
    expected = {
        "mean": lambda: measures.mean(members),
        "max": lambda: measures.maximum(members),
        "rollout": lambda: measures.rollout(trace.attention, 2),
        "value": lambda: measures.value_weighted(trace.attention[2], 3),
    }[kind]()
    answer = ask(client, "tile", kind=kind, members="1.4,5.0", q0=0, q1=n, k0=0, k1=n)
    header, values, codes = numbers(answer.content)
    assert values == pytest.approx(expected.numpy(), abs=1e-6)
    assert header["top"] == pytest.approx(expected.max().item(), abs=1e-6)
    assert header["exact"] and not codes.any()
    header, row, _ = numbers(ask(client, "row", kind=kind, members="1.4,5.0", query=4).content)
    assert row[0] == pytest.approx(expected[4].numpy(), abs=1e-6)
    assert (header["entropy"] is None) == (kind in ("max", "value"))


def test_hidden_keys_are_taken_out_and_what_is_left_is_said(client: TestClient, trace: Trace):
    n = len(trace.source)
    pattern = trace.attention[2].pattern(3)[0]
    kept = pattern.clone()
    kept[:, [0, 3]] = 0
    header, values, codes = numbers(ask(client, "tile", hide="3,0", q0=0, q1=n, k0=0, k1=n).content)
    assert values == pytest.approx((kept / kept.sum(-1, keepdim=True)).numpy(), abs=1e-6)
    assert header["left"] == pytest.approx(kept.sum(-1).tolist(), abs=1e-6)
    assert (codes[:, [0, 3]] == HIDDEN).all() and (np.delete(codes, [0, 3], axis=1) == 0).all()
    header, _, _ = numbers(ask(client, "row", hide="3,0", query=5).content)
    assert header["left"] == pytest.approx(kept[5].sum().item(), abs=1e-6)


def test_pieces_become_words(client: TestClient, trace: Trace):
    groups = word_groups(trace.source)
    assert max(map(len, groups)) > 1 and sum(map(len, groups)) == len(trace.source)
    n = len(groups)
    _, values, _ = numbers(ask(client, "tile", words="true", q0=0, q1=n, k0=0, k1=n).content)
    assert values == pytest.approx(merged(trace.attention[2].pattern(3)[0], groups).numpy(), abs=1e-6)
    assert values.sum(-1) == pytest.approx(np.ones(n), abs=1e-5)
    header = drawn(trace).header
    assert [label for _, _, label in header["words"]["source"]] == ["Unbelievably"]


@pytest.mark.parametrize("kind", ["head", "mean", "value"])
def test_a_column_is_core_s(client: TestClient, trace: Trace, kind: str):
    _, values, codes = numbers(ask(client, "column", kind=kind, key=4).content)
    expected = {
        "head": lambda: trace.attention[2].pattern(3)[0],
        "mean": lambda: measures.mean([(trace.attention[2], head) for head in range(12)]),
        "value": lambda: measures.value_weighted(trace.attention[2], 3),
    }[kind]()
    assert values.shape == (len(trace.source), 1)
    assert values[:, 0] == pytest.approx(expected[:, 4].numpy(), abs=1e-6)
    assert not codes.any()


def test_a_column_of_hidden_keys_and_words_is_that_of_the_tile(client: TestClient, trace: Trace):
    n = len(word_groups(trace.source))
    options = {"kind": "max", "hide": "0,3", "words": "true"}
    _, values, codes = numbers(ask(client, "column", key=1, **options).content)
    _, whole, why = numbers(ask(client, "tile", q0=0, q1=n, k0=0, k1=n, **options).content)
    assert values[:, 0] == pytest.approx(whole[:, 1], abs=1e-6) and (codes[:, 0] == why[:, 1]).all()


def test_a_column_that_would_take_too_long_is_refused(monkeypatch: pytest.MonkeyPatch, trace: Trace):
    monkeypatch.setattr(compute, "COLUMN_CELLS", 100)
    with pytest.raises(HeadlightError, match="would take"):
        compute.column(compute.Map(trace, MapTransform(2, 3)), 1)


def test_scores_are_core_s(client: TestClient, trace: Trace):
    header, body = messages.unpack(ask(client, "scores", query=4).content)
    n = header["columns"]
    assert np.frombuffer(body, "<f4", n) == pytest.approx(trace.attention[2].raw(3, 4)[0, 0].numpy())
    assert np.frombuffer(body, "<f4", n, n * 4) == pytest.approx(trace.attention[2].scores(3, 4)[0, 0].numpy())


def test_metrics_of_a_whole_run_are_core_s_measures(client: TestClient, trace: Trace):
    found = client.get("/headlight/metrics", params={"run": REQUEST.key, "site": "encoder"}).json()
    patterns = [record.pattern() for record in trace.attention]
    expected = {
        "entropy": [measures.entropy(p).mean(-1) for p in patterns],
        "distance": [measures.distance(p).mean(-1) for p in patterns],
        "sink": [measures.sink_share(p) for p in patterns],
        "previous": [measures.previous_token(p) for p in patterns],
        "induction": [measures.induction(p, trace.source.ids) for p in patterns],
        "diagonal": [measures.diagonal(p) for p in patterns],
    }
    assert found["rows"] == found["of"] == len(trace.source)
    for name, layers in expected.items():
        assert np.array(found[name]) == pytest.approx(torch.stack(layers).numpy(), abs=1e-5), name


@pytest.mark.parametrize(
    ("path", "params", "said"),
    [
        ("row", {"kind": "median"}, "kind must be one of head, mean, max, rollout, value; it is “median”."),
        ("row", {"members": "1.2,9.0", "kind": "mean"}, "members (9) must be from 0 to 5."),
        ("row", {"members": "1.12", "kind": "mean"}, "members (12) must be from 0 to 11."),
        ("row", {"members": "x"}, "members must be a whole number; it is “x”."),
        ("row", {"members": "1"}, "members must be a whole number; it is “”."),
        ("row", {"hide": "99"}, "hide (99) must be from 0 to"),
        ("row", {"hide": "1,<b>"}, "hide must be a whole number; it is “<b>”."),
        ("row", {"hide": ",".join(map(str, range(13)))}, "Every key would be hidden."),
        ("row", {"words": "yes"}, "words must be one of true, false; it is “yes”."),
        ("tile", {"words": "true", "q0": 0, "q1": 99}, "q1 (99) must be from 1 to"),
        ("scores", {"query": "-1"}, "query must be a whole number"),
        ("metrics", {"site": "cross"}, "site must be one of encoder; it is “cross”."),
    ],
)
def test_a_wrong_parameter_gets_a_sentence(client: TestClient, trace: Trace, path: str, params, said: str):
    if "hide" in params and params["hide"].count(",") == 12:
        params = {"hide": ",".join(map(str, range(len(trace.source))))}
    answer = ask(client, path, **({"query": 0} | params))
    assert (answer.status_code, answer.headers["content-type"].split(";")[0]) == (400, "text/plain")
    assert said in answer.text


def test_rollout_of_a_long_run_is_refused_with_core_s_sentence():
    config = core.ModelConfig(
        vocab_size=31, d_model=16, n_heads=2, d_ff=16, n_ctx=3000, position="rotary", n_decoder_layers=1
    )
    run = core.trace(core.build(config, seed=1), ids=[i % 31 for i in range(2100)])
    with pytest.raises(core.HeadlightError, match="2,100 tokens are too many"):
        measures.rollout(run.attention, 0)


def test_a_region_too_large_for_cells_keeps_the_largest_and_knows_the_sink():
    config = core.ModelConfig(
        vocab_size=31, d_model=16, n_heads=2, d_ff=16, n_ctx=300, position="rotary", n_decoder_layers=2
    )
    run = core.trace(core.build(config, seed=1), ids=[i % 31 for i in range(200)])
    (shared, facts), of = serve(run), MapTransform(1, 0, "mean", hidden=(0,))
    tile = answered(shared.tile(facts.key, of, (0, 200), (0, 200), 20))
    header, values, codes = numbers(attention_picture.tile_message(of, tile))
    kept = measures.mean([(run.attention[1], 0), (run.attention[1], 1)])
    assert header["most"] == int(kept[[int((i + 0.5) * 200 / 64) for i in range(64)]].mean(0).argmax())
    kept[:, 0] = 0
    kept = torch.nan_to_num(kept / kept.sum(-1, keepdim=True))
    pooled = torch.nn.functional.adaptive_max_pool2d(kept[None], 20)[0]
    assert values == pytest.approx(pooled.numpy(), abs=1e-6)
    assert "largest weight" in header["how"] and codes[0, 19] == REASONS.index("future")
