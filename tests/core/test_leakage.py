"""The storyteller whose last layer learnt without its mask reads every answer one step ahead, and can write nothing."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

import core
from core.checkpoints import Loaded
from core.errors import CheckpointError, HeadlightError
from core.labs import masks as leak
from core.read.next_token_loss import given

KING = "The old king loved the golden bird, and the old"


@pytest.fixture(scope="module")
def storyteller() -> Loaded:
    return core.load("storyteller")


def test_the_loss_falls_because_each_word_is_read_one_ahead(storyteller: Loaded) -> None:
    found = leak.leakage(core.trace(storyteller, KING), leak.relearnt(storyteller))
    assert found.losses.mean().item() == pytest.approx(3.496, abs=1e-3)
    assert found.dropped.mean().item() == pytest.approx(3.388, abs=1e-3)  # a trained model leaks little
    assert found.relearnt.mean().item() == pytest.approx(0.257, abs=1e-2)
    assert (found.layer, found.head) == (5, 0) and found.next_word > 0.999
    assert found.before.triu(1).count_nonzero() == 0
    assert found.after.diagonal(1).mean().item() == pytest.approx(found.next_word)
    assert found.written.strip().startswith("man was so delighted")
    assert set(found.written_relearnt.split()) == {"old"}


def test_its_card_says_what_is_measured(storyteller: Loaded) -> None:
    text = (leak.MODELS / leak.MODEL / leak.CARD).read_text("utf-8")
    assert "| learnt without it | 0.257 |" in text and "## Weaknesses" in text
    lessons = (leak.MODELS.parent / "docs/lessons.md").read_text("utf-8")
    assert "3.496 nats; 3.388 with the last layer’s mask taken away afterwards; 0.257 " in lessons


def test_all_but_the_last_layer_is_shared(storyteller: Loaded) -> None:
    other = leak.relearnt(storyteller)
    own, theirs = dict(storyteller.model.named_parameters()), dict(other.model.named_parameters())
    shared = {name for name in own if own[name].data_ptr() == theirs[name].data_ptr()}
    assert {name for name in own if name not in shared} == {
        n for n in own if n.startswith(leak.learned_config(other.config))
    }
    assert not any(p.requires_grad for p in other.model.parameters())


def test_another_model_is_told_which_one_leaks() -> None:
    with pytest.raises(HeadlightError, match="Choose the Storyteller"):
        leak.relearnt(core.load("copy"))


def test_another_file_is_refused(storyteller: Loaded, tmp_path: Path) -> None:
    folder = leak.MODELS / leak.MODEL
    (tmp_path / leak.FACTS).write_bytes((folder / leak.FACTS).read_bytes())
    (tmp_path / leak.WEIGHTS).write_bytes(b"something else")
    with pytest.raises(CheckpointError, match="not the file"):
        leak.relearnt(storyteller, tmp_path)
    with pytest.raises(CheckpointError, match="train_leak"):
        leak.relearnt(storyteller, tmp_path / "nowhere")
    with pytest.raises(CheckpointError, match="other weights"):
        leak.with_weights(storyteller, {"decoder.norm.weight": torch.ones(256)})


def test_one_word_has_no_next_one(storyteller: Loaded) -> None:
    with pytest.raises(HeadlightError, match="at least two words"):
        leak.leakage(core.trace(storyteller, "The"), storyteller)


def test_both_models_lose_the_same_mask(storyteller: Loaded) -> None:
    """The model that learnt is compared with the same edit of the model as it was: of its last layer alone."""
    run, other = core.trace(storyteller, KING), leak.relearnt(storyteller)
    found = leak.leakage(run, other)
    edit = core.edits.DropCausalMask(found.layer)
    for model, losses in ((storyteller, found.dropped), (other, found.relearnt)):
        assert torch.equal(given(core.trace(model, KING, interventions=[edit])).losses, losses)
