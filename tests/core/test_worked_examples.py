"""The small examples against the lessons' own code, and against what PyTorch itself says and does."""

from __future__ import annotations

from itertools import pairwise

import pytest
import torch
from torch import nn

import core
from core.labs import worked_examples
from core.model.positions import sinusoid_table
from core.read import measures


def test_one_head_is_what_the_lessons_code_gives() -> None:
    head = worked_examples.one_head()
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(42)
        x = torch.randn(3, 4)
        q, k, v = (nn.Linear(4, 4, bias=False)(x) for _ in range(3))
    weights = (q @ k.T / 2).softmax(-1)
    assert torch.equal(head.x, x)
    assert torch.allclose(head.weights, weights, atol=1e-6) and torch.allclose(head.output, weights @ v, atol=1e-6)
    assert head.weights[0].tolist() == pytest.approx([0.3479, 0.3258, 0.3263], abs=5e-5)
    assert head.output[0].tolist() == pytest.approx([0.3172, 0.0995, 0.3417, 0.4694], abs=5e-5)
    # the first output is the sum that is written out on the page
    assert torch.allclose(sum(head.weights[0, i] * head.v[i] for i in range(3)), head.output[0], atol=1e-6)  # type: ignore[arg-type]
    assert torch.allclose(head.raw[0, 1], (head.q[0] * head.k[1]).sum(), atol=1e-6)
    assert head.weights.sum(-1).tolist() == pytest.approx([1, 1, 1])


def test_a_dragged_number_changes_what_follows_and_nothing_else() -> None:
    before = worked_examples.one_head()
    x = before.x.clone()
    x[2, 1] = 3
    after = worked_examples.one_head(x)
    assert torch.equal(after.w_q, before.w_q) and torch.equal(after.q[:2], before.q[:2])
    assert not torch.allclose(after.q[2], before.q[2]) and not torch.allclose(after.output[0], before.output[0])
    with pytest.raises(ValueError, match="tokens, 4"):
        worked_examples.one_head(torch.zeros(3, 5))


def test_a_batch_is_not_turned_round_by_its_t() -> None:
    found = worked_examples.batch()
    assert found.scores.shape == (2, 3, 3)
    assert torch.allclose(found.scores[1], found.q[1] @ found.k[1].T, atol=1e-6)
    assert found.q[0, 0].tolist() == pytest.approx([-0.693186, 0.303446, -0.003045, -0.435157], abs=1e-5)
    assert "must match the size of tensor b (4)" in found.error
    assert found.wrong_by == pytest.approx(4.62, abs=5e-3)
    k = torch.randn(4, 3, 2)
    assert torch.equal(worked_examples.reverse_axes(k)[1, 2, 3], k[3, 2, 1])


def test_a_number_followed_through_the_reshape() -> None:
    found = worked_examples.reshape()
    assert found.qkv.shape == (2, 4, 24) and found.merged.shape == (2, 4, 8)
    assert found.qkv[0, 2, 5].item() == pytest.approx(0.5029, abs=5e-5)
    way = worked_examples.follow((2, 4, 24), 2, (0, 2, 5), parts=3)
    assert [(p.step, p.shape, p.index, p.memory) for p in way] == [
        ("projection", (2, 4, 24), (0, 2, 5), 53),
        ("split", (2, 4, 8), (0, 2, 5), 53),
        ("view", (2, 4, 2, 4), (0, 2, 1, 1), 53),
        ("transpose", (2, 2, 4, 4), (0, 1, 2, 1), 53),
        ("transpose back", (2, 4, 2, 4), (0, 2, 1, 1), 53),
        ("contiguous", (2, 4, 2, 4), (0, 2, 1, 1), 21),
        ("view", (2, 4, 8), (0, 2, 5), 21),
    ]
    assert way[3].strides == found.heads[0].stride() == (96, 4, 24, 1)
    assert found.heads[0][way[3].index] == found.qkv[0, 2, 5]
    assert "use .reshape" in found.error.lower()
    values = worked_examples.follow((2, 4, 24), 2, (1, 3, 23), parts=3)
    assert found.heads[2][values[3].index] == found.qkv[1, 3, 23]


def test_a_number_of_a_model_followed_into_its_head() -> None:
    way = worked_examples.follow((1, 16, 384), 12, (0, 10, 37))
    assert [(p.step, p.index, p.memory) for p in way[:3]] == [
        ("projection", (0, 10, 37), 3877),
        ("view", (0, 10, 1, 5), 3877),
        ("transpose", (0, 1, 10, 5), 3877),
    ]
    with pytest.raises(IndexError, match="384 is outside"):
        worked_examples.follow((1, 16, 384), 12, (0, 10, 384))
    with pytest.raises(ValueError, match="not 1 × 7 heads"):
        worked_examples.follow((1, 16, 384), 7, (0, 10, 37))


def test_swapping_two_tokens_swaps_their_rows() -> None:
    head = worked_examples.one_head()
    assert not torch.allclose(head.output[0], head.output[2], atol=1e-2)
    for first, second in ((0, 2), (1, 2), (0, 1)):
        order = list(range(3))
        order[first], order[second] = order[second], order[first]
        assert (worked_examples.one_head(head.x[order]).output - head.output[order]).abs().max() < 1e-6


def test_without_the_division_a_trained_model_has_little_choice_left() -> None:
    text = "The old king loved the golden bird, and the old"

    def mean_entropy(*edits: core.edits.NoScale) -> float:
        run = core.trace(core.load("storyteller"), text, interventions=edits)
        # the first row of a decoder has one key and no choice
        return torch.stack([measures.entropy(record.pattern())[:, 1:] for record in run.attention]).mean().item()

    assert mean_entropy() == pytest.approx(1.15, abs=5e-3)
    assert mean_entropy(core.edits.NoScale()) == pytest.approx(0.22, abs=5e-3)


def test_digits_jump_and_waves_do_not() -> None:
    digits = worked_examples.binary_digits(16)
    assert digits[[0, 1, 2, 5, 15]].tolist() == [[0, 0, 0, 0], [1, 0, 0, 0], [0, 1, 0, 0], [1, 0, 1, 0], [1, 1, 1, 1]]
    flips = (digits[1:] != digits[:-1]).sum(-1)
    assert flips.tolist() == [1, 2, 1, 3, 1, 2, 1, 4, 1, 2, 1, 3, 1, 2, 1]
    table = sinusoid_table(64, 256, "interleaved")
    steps = (table[1:] - table[:-1]).norm(dim=-1)
    assert steps.tolist() == pytest.approx([2.671] * 63, abs=1e-3)


def test_a_gradient_fades_on_its_way_back_through_an_rnn() -> None:
    """F16: as autograd has it, with a cell whose weights are drawn alike."""
    width, steps = 64, 20
    left = worked_examples.rnn_gradient_norms(width, steps)
    assert len(left) == steps + 1 and left[0] == 1
    assert all(after < before for before, after in pairwise(left)), "each step takes some of it"
    assert left[-1] == pytest.approx(1.3e-7, rel=0.05)
    generator = torch.Generator().manual_seed(worked_examples.SEED)
    w, u = (worked_examples.linear(width, width, generator) for _ in range(2))
    tokens = torch.randn(steps, width, generator=generator)
    last = torch.randn(width, generator=generator)
    first = torch.zeros(width, requires_grad=True)
    state = first
    for token in tokens:
        state = torch.tanh(w @ token + u @ state)
    (found,) = torch.autograd.grad(state, first, last)
    assert left[-1] == pytest.approx(float(found.norm() / last.norm()), rel=1e-4)


def test_a_gradient_reaches_the_first_layer_but_where_there_is_neither_norm_nor_residual_connection() -> None:
    for norm in ("pre", "post", "none"):
        for residual in (True, False):
            stack = worked_examples.through_depth(norm, residual)
            kept = stack.gradient[0] / stack.gradient[-1]
            assert len(stack.gradient) == len(stack.alike) == 13
            if (norm, residual) == ("none", False):
                assert kept < 1e-10 and all(a < b for a, b in pairwise(stack.gradient))
            else:
                assert 0.1 < kept < 30, (norm, residual)
            # without the residual connection the words point one way from the middle on
            assert stack.alike[0] < 0.1 and (stack.alike[6] > 0.999) == (not residual), (norm, residual)


def test_a_fresh_word_is_about_one_long() -> None:
    for d_model in (64, 512, 4096):
        assert worked_examples.random_token(d_model) == pytest.approx(1, abs=0.05)
