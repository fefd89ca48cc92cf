"""The loop: it learns, it goes on to the very same weights, and it follows the recipe to the digit."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from core import ModelConfig, build
from core.checkpoints import Loaded
from core.errors import CheckpointError, ConfigError
from core.learn.tasks import TASKS, sample
from core.learn.training import (
    STATE,
    Batch,
    Recipe,
    TrainStep,
    dropout_hooks,
    eta,
    evaluate,
    learning_rate,
    make_optimiser,
    predicted,
    progress,
    train,
    train_bpe,
)
from core.model.transformer import Transformer

COPY = TASKS["copy"]
CONFIG = ModelConfig(
    vocab_size=len(COPY.vocabulary), d_model=24, n_heads=2, d_ff=48, n_ctx=COPY.n_ctx, n_decoder_layers=1
)
RECIPE = Recipe(steps=8, warmup=2, dropout=0.1, label_smoothing=0.1, seed=3)


def batches(step: int) -> Batch:
    return Batch(*sample(COPY, 16, seed=step))


def translations(step: int) -> Batch:
    generator = torch.Generator().manual_seed(step)
    source = torch.randint(3, 20, (8, 6), generator=generator)
    keep = torch.arange(6) < torch.randint(2, 7, (8, 1), generator=generator)
    return Batch(source.flip(1), torch.ones(8, 6, dtype=torch.bool), source, keep)


def trained(
    recipe: Recipe = RECIPE, config: ModelConfig = CONFIG, **arguments: Any
) -> tuple[Transformer, list[TrainStep]]:
    model = build(config, 0).model
    return model, list(train(model, arguments.pop("batches", batches), recipe, **arguments))


def assert_same_weights(one: Transformer, other: Transformer) -> None:
    theirs = other.state_dict()
    assert all(torch.equal(value, theirs[name]) for name, value in one.state_dict().items())


def test_it_learns() -> None:
    model, steps = trained(Recipe(steps=60, learning_rate=3e-3, warmup=5))
    assert [step.step for step in steps] == list(range(1, 61))
    assert steps[-1].loss < 0.8 * steps[0].loss
    loss, accuracy = evaluate(model, [Batch(*sample(COPY, 200, seed=0, held_out=True))])
    assert loss < 0.9 * math.log(20)
    assert accuracy > 0.1
    assert not any(p.requires_grad for p in model.parameters())


def test_an_encoder_decoder_learns() -> None:
    config = replace(CONFIG, n_encoder_layers=1)
    _, steps = trained(Recipe(steps=40, learning_rate=3e-3, warmup=5), config, batches=translations)
    assert steps[-1].loss < 0.95 * steps[0].loss


def test_a_seed_gives_the_same_weights_and_leaves_chance_alone() -> None:
    before = torch.get_rng_state()
    one, _ = trained()
    assert torch.equal(torch.get_rng_state(), before)
    torch.rand(5)
    other, _ = trained()
    assert_same_weights(one, other)
    different, _ = trained(replace(RECIPE, seed=4))  # of the dropout
    assert not torch.equal(different.state_dict()["head.unembed.weight"], one.state_dict()["head.unembed.weight"])


@pytest.mark.parametrize("n_encoder_layers", [0, 1])
def test_a_run_goes_on_to_the_very_same_weights(tmp_path: Path, n_encoder_layers: int) -> None:
    config = replace(CONFIG, n_encoder_layers=n_encoder_layers)
    data = translations if n_encoder_layers else batches
    whole, steps = trained(config=config, batches=data)
    stopped = build(config, 0).model
    for done in train(stopped, data, RECIPE, folder=tmp_path, save_every=3):
        if done.step == 5:  # two steps behind the state that was saved
            break
    again = build(config, 99).model  # its own weights do not matter
    rest = list(train(again, data, RECIPE, folder=tmp_path, save_every=3))
    assert [step.step for step in rest] == [4, 5, 6, 7, 8]
    assert [(s.loss, s.accuracy) for s in rest] == [(s.loss, s.accuracy) for s in steps[3:]]
    assert_same_weights(again, whole)
    assert {path.name for path in tmp_path.iterdir()} == {STATE, "training-00000008.safetensors"}
    assert list(train(build(config, 1).model, data, RECIPE, folder=tmp_path)) == []


def test_a_state_of_something_else_is_refused(tmp_path: Path) -> None:
    trained(folder=tmp_path)
    with pytest.raises(CheckpointError, match="another recipe"):
        trained(replace(RECIPE, learning_rate=1e-4), folder=tmp_path)
    with pytest.raises(CheckpointError, match="another model"):
        trained(config=replace(CONFIG, d_ff=50), folder=tmp_path)
    (tmp_path / "training-00000008.safetensors").write_bytes(b"half")
    with pytest.raises(CheckpointError, match="cannot be read"):
        trained(folder=tmp_path)
    state = json.loads((tmp_path / STATE).read_text())
    (tmp_path / STATE).write_text(json.dumps({k: v for k, v in state.items() if k != "step"}))
    with pytest.raises(CheckpointError, match="cannot be read"):
        trained(folder=tmp_path)


def test_the_rate_rises_and_falls() -> None:
    recipe = Recipe(steps=110, warmup=10, learning_rate=2.0, final_share=0.1)
    rates = [learning_rate(step, recipe) for step in range(111)]
    assert rates[0] == pytest.approx(0.2)
    assert rates[9] == rates[10] == pytest.approx(2.0)
    assert rates[60] == pytest.approx(2.0 * (0.1 + 0.9 / 2))
    assert rates[110] == pytest.approx(0.2)
    assert rates[10:] == sorted(rates[10:], reverse=True)


def test_only_what_multiplies_decays() -> None:
    model = build(CONFIG, 0).model
    decayed, other = make_optimiser(model, Recipe(steps=1, weight_decay=0.3)).param_groups
    assert (decayed["weight_decay"], other["weight_decay"]) == (0.3, 0.0)
    assert {p.ndim for p in decayed["params"]} == {2}
    assert {p.ndim for p in other["params"]} == {1}
    assert len(decayed["params"]) + len(other["params"]) == len(list(model.parameters()))


def test_gradients_are_clipped(monkeypatch: pytest.MonkeyPatch) -> None:
    lengths: list[float] = []
    step = torch.optim.AdamW.step

    def watched(self: torch.optim.AdamW, *args: Any) -> None:
        grads = [p.grad.norm() for group in self.param_groups for p in group["params"]]
        lengths.append(torch.stack(grads).norm().item())
        step(self, *args)

    monkeypatch.setattr(torch.optim.AdamW, "step", watched)
    trained(Recipe(steps=2, clip=0.01))
    assert lengths == pytest.approx([0.01, 0.01], rel=1e-3)


def test_only_the_counted_tokens_are_learnt() -> None:
    model = build(CONFIG, 0).model
    ids = torch.tensor([[1, 4, 5, 19, 4, 5, 2, 0]])
    counts = torch.tensor([[False, False, False, False, True, True, True, False]])
    logits, targets = predicted(model, Batch(ids, counts))
    assert targets.tolist() == [4, 5, 2]
    torch.testing.assert_close(logits, model(ids[:, :-1])[0, 3:6])


def test_dropout_is_of_the_run_and_not_of_the_model() -> None:
    model = build(CONFIG, 0).model
    (drop, *_) = dropout_hooks(model, replace(RECIPE, dropout=0.25), torch.device("cpu"), 0).values()
    dropped = drop(torch.ones(100, 100))
    assert dropped.unique().tolist() == pytest.approx([0, 4 / 3])
    assert (dropped == 0).float().mean().item() == pytest.approx(0.25, abs=0.02)
    names = dropout_hooks(model, RECIPE, torch.device("cpu"), 0)
    assert set(names) == {
        "decoder.embed.hook_embed",
        "decoder.blocks.0.hook_attn_out",
        "decoder.blocks.0.hook_mlp_out",
    }
    assert dropout_hooks(model, Recipe(steps=1), torch.device("cpu"), 0) == {}


def test_progress_tells_what_is_left() -> None:
    done = TrainStep(300, 0.4123, 0.861, 9.8e-4, 65.0)
    recipe = Recipe(steps=2000)
    assert eta(done, recipe.steps) == pytest.approx(65 / 300 * 1700)
    assert (
        progress(done, recipe.steps) == "step 300/2,000  loss 0.412  accuracy 86.1%  lr 9.8e-04  1:05 spent, 6:08 to go"
    )


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"steps": 0}, r"steps \(0\) must be at least 1"),
        ({"warmup": -1}, r"warmup \(-1\) at least 0"),
        ({"learning_rate": 0.0}, r"learning_rate \(0.0\)"),
        ({"clip": 0.0}, r"clip \(0.0\) must be above 0"),
        ({"dropout": 1.0}, r"dropout \(1.0\) must be from 0 to below 1"),
        ({"final_share": 1.5}, r"final_share \(1.5\) must be from 0 to 1"),
    ],
)
def test_a_recipe_that_cannot_be(change: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ConfigError, match=sentence):
        replace(Recipe(steps=1), **change)


def test_models_that_cannot_be_taught(tiny: Callable[..., Loaded]) -> None:
    for config in ({"n_encoder_layers": 1}, {"head": "none"}):
        with pytest.raises(ConfigError, match="needs decoder layers and a head"):
            train(tiny(seed=9, **config).model, batches, RECIPE)


def test_bpe_reads_any_bytes() -> None:
    tokenizer = train_bpe(["the cat sat on the mat"] * 20, 300)
    assert [tokenizer.token_to_id(t) for t in ("<pad>", "<s>", "</s>")] == [0, 1, 2]
    assert tokenizer.get_vocab_size() <= 300
    for text in ("the cat", "naïve 🎉 日本\n\tq", " the"):
        assert tokenizer.decode(tokenizer.encode(text).ids) == text
    assert len(tokenizer.encode(" the").ids) == 1
    with pytest.raises(ConfigError, match=r"vocab_size \(258\) must be at least 259"):
        train_bpe(["x"], 258)
