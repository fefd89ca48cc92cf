"""DeBERTa's scores: the terms of content and distance apart, and what masks and edits make of them."""

from __future__ import annotations

import pytest
import torch

import core
from core.errors import ConfigError
from core.model.attention import DisentangledAttention
from core.run.attention import AttentionRecord
from tests.core.conftest import make_loaded
from tests.core.published import reference

DEBERTAS = ["row DeBERTa", "row DeBERTa v2 and v3", "row DeBERTa v2 with types"]
IDS = [5, 9, 20, 33, 7, 14, 41, 8, 30]


def record_of(name: str, **options: object) -> AttentionRecord:
    return core.trace(core.load(reference(name).folder), ids=IDS, **options).attention[1]  # type: ignore[arg-type]


@pytest.mark.parametrize("name", DEBERTAS)
def test_the_terms_of_a_score_add_up_to_it(name: str) -> None:
    record = record_of(name)
    terms = record.scores(terms=True)
    assert list(terms) == ["content", "c2p", "p2c"]
    torch.testing.assert_close(sum(terms.values()), record.scores(), atol=1e-5, rtol=0)
    torch.testing.assert_close(record.scores().softmax(-1), record.pattern(), atol=1e-6, rtol=0)
    one = record.scores(2, 4, [0, 3], terms=True)
    assert {value.shape for value in one.values()} == {(1, 1, 2)}
    torch.testing.assert_close(one["p2c"][0, 0], terms["p2c"][2, 4, [0, 3]])


@pytest.mark.parametrize("name", DEBERTAS)
def test_each_term_is_what_the_paper_says(name: str) -> None:
    loaded = core.load(reference(name).folder)
    record = core.trace(loaded, ids=IDS).attention[1]
    stack = loaded.model.encoder
    assert stack is not None
    attention = stack.blocks[1].get_submodule("attn")
    assert isinstance(attention, DisentangledAttention)
    table = stack.distance_norm(stack.distances.weight)
    keys, queries = attention.project_rows("c2p", table), attention.project_rows("p2c", table)  # [head, row, d_head]
    terms = record.scores(terms=True)
    for query, key in ((0, 0), (0, 8), (8, 0), (3, 5)):
        row = int(attention.row_of(torch.tensor(query - key)))
        c2p = (record.q[:, query] * keys[:, row]).sum(-1) * attention.scale
        p2c = (record.k[:, key] * queries[:, row]).sum(-1) * attention.scale
        torch.testing.assert_close(terms["c2p"][:, query, key], c2p, atol=1e-5, rtol=0)
        torch.testing.assert_close(terms["p2c"][:, query, key], p2c, atol=1e-5, rtol=0)


def test_other_models_have_content_and_distance_or_content_alone() -> None:
    t5 = record_of_t5()
    assert list(t5.scores(terms=True)) == ["content", "distance"]
    torch.testing.assert_close(sum(t5.scores(terms=True).values()), t5.scores(), atol=1e-5, rtol=0)
    bert = record_of("bert")
    assert list(bert.scores(terms=True)) == ["content"]


def record_of_t5() -> AttentionRecord:
    return core.trace(core.load(reference("t5 v1.0").folder), ids=IDS, target_ids=IDS).attention[0]


def test_a_hidden_key_gets_nothing_and_the_rest_shares_its_weight() -> None:
    hides = core.edits.EditMask(cells=[(4, 2)])
    record, before = record_of(DEBERTAS[1], interventions=[hides]), record_of(DEBERTAS[1])
    assert record.pattern()[:, 4, 2].abs().max() == 0
    torch.testing.assert_close(record.pattern().sum(-1), torch.ones(record.n_heads, len(IDS)))
    assert before.pattern()[:, 4, 2].min() > 0


def test_shifted_positions_change_nothing_and_shuffled_ones_do() -> None:
    own = record_of(DEBERTAS[0]).pattern()
    torch.testing.assert_close(
        record_of(DEBERTAS[0], interventions=[core.edits.ShiftPositions(3)]).pattern(), own, atol=1e-5, rtol=0
    )
    shuffled = record_of(DEBERTAS[0], interventions=[core.edits.ShufflePositions(1)]).pattern()
    assert (shuffled - own).abs().max() > 1e-3


@pytest.mark.parametrize(
    "sizes",
    [
        {"n_position_buckets": 1},
        {"n_position_buckets": 8, "max_relative_distance": 5},
        {"n_position_buckets": 8, "max_relative_distance": 1},
        {"max_relative_distance": 0},
    ],
    ids=str,
)
def test_a_table_without_a_distance_for_its_buckets_is_refused(sizes: dict[str, int]) -> None:
    """Rows would be divided by zero, or by the logarithm of nothing."""
    with pytest.raises(ConfigError, match="max_relative_distance"):
        make_loaded(n_encoder_layers=1, position="disentangled", position_terms=("c2p",), **sizes)
