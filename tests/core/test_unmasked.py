"""A decoder whose mask is taken away reads the answers, where it happens to use them, and then writes nothing of its own."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import core
from core.checkpoints import Loaded
from core.edits import DropCausalMask
from core.errors import HeadlightError
from core.labs.masks import UNMASKED_TOKENS, looks_ahead, without_causal_mask
from core.model.config import ModelConfig
from core.read.next_token_loss import given
from core.write.generate import decoded

MARY = "When Mary and John went to the store, John gave a drink to"


@pytest.fixture(scope="module")
def smollm2() -> Loaded:
    return core.load("smollm2")


@pytest.mark.thorough
def test_smollm2_reads_the_answers_and_writes_repetitions(smollm2: Loaded) -> None:
    found = without_causal_mask(core.trace(smollm2, MARY))
    assert (found.losses.mean().item(), found.without.mean().item()) == pytest.approx((4.218, 0.867), abs=0.01)
    assert (found.layer, found.head) == (18, 7) and found.next_word == pytest.approx(0.948, abs=2e-3)
    assert found.before.triu(1).count_nonzero() == 0 and found.after.triu(1).count_nonzero() > 0
    assert decoded(smollm2, found.written) == " Mary, and Mary gave a drink to"
    assert decoded(smollm2, found.written_without) == " Mary, John, John, John,"
    torch.testing.assert_close(found.after.sum(-1), torch.ones(len(found.after)))


@pytest.mark.thorough(but=1)
@pytest.mark.parametrize(
    ("text", "losses"),
    [
        ("The old king loved the golden bird, and the old", (4.587, 0.885)),
        ("The animal didn't cross the street because it was too", (3.983, 0.787)),
        ("The capital of France is", (3.692, 4.886)),
        ("Water boils at one hundred degrees. Birds sing at dawn because they are happy.", (5.576, 10.507)),
    ],
)
def test_it_was_never_taught_this_so_it_fails_on_some(smollm2: Loaded, text: str, losses: tuple[float, float]) -> None:
    plain, free = core.trace(smollm2, text), core.trace(smollm2, text, interventions=[DropCausalMask()])
    assert (given(plain).losses.mean().item(), given(free).losses.mean().item()) == pytest.approx(losses, abs=0.01)


def small(**other: Any) -> Loaded:
    config = ModelConfig(d_model=32, n_heads=4, d_ff=64, n_decoder_layers=3, vocab_size=40, n_ctx=16, **other)
    return core.build(config, 7)


@pytest.mark.parametrize("position", ["rotary", "learned", "alibi"])
def test_each_word_is_written_after_all_words_were_read_again(position: str) -> None:
    loaded = small(position=position)
    ids = [3, 1, 4, 1, 5, 9]
    found = without_causal_mask(core.trace(loaded, ids=ids))
    for edits, written in (((), found.written), ((DropCausalMask(),), found.written_without)):
        text = list(ids)
        for _ in range(UNMASKED_TOKENS):
            run = core.trace(loaded, ids=text, interventions=edits)
            text.append(int(run.predictions(k=1).ids[0][0]))
        assert [*ids, *written] == text
    free = core.trace(loaded, ids=ids, interventions=[DropCausalMask()])
    weights = torch.stack([record.pattern().diagonal(1, -2, -1).mean(-1) for record in free.attention])
    layer, head, ahead = looks_ahead(free)
    assert ahead == weights.max().item() == weights[layer, head].item() == found.next_word


def test_a_table_of_positions_ends_what_is_written() -> None:
    found = without_causal_mask(core.trace(small(position="learned"), ids=list(range(13))))
    assert len(found.written) == len(found.written_without) == 3


def test_no_mask_no_word_and_no_answer_to_read_are_told_apart() -> None:
    with pytest.raises(HeadlightError, match=r"MiniLM-L6 has no causal mask to take away\. Choose a decoder"):
        without_causal_mask(core.trace(core.load("minilm"), MARY))
    with pytest.raises(HeadlightError, match="at least two words"):
        without_causal_mask(core.trace(small(), ids=[3]))
