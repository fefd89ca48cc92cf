"""Tokens that generation_config.json forbids and forces, against transformers' own processors: before every softmax."""

from __future__ import annotations

import itertools
import json
import random
import warnings
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers as hf
from torch import Tensor

import core
from core.checkpoints import Loaded
from core.checkpoints.family import SourceConfig
from core.checkpoints.metadata import NOT_APPLIED, generation_values, next_token_rule
from core.errors import CheckpointError, GenerationError
from core.model.outputs import NextTokenRule
from core.read.comparison import answer_change
from core.read.next_token_loss import given, probabilities
from core.run.request import Prompt
from core.write.beams import beam_search
from core.write.generate import Sampling, generate, stream
from core.write.writer import TEMPERATURES, Writer, lens
from tests.core.conftest import make_loaded
from tests.core.published import VOCAB, reference

WRITERS = ("gpt2", "llama gqa", "marian", "bart", "t5 v1.0")
N = 7  # tokens that are written
Values = dict[str, Any]


def of_eight(rng: random.Random) -> int:
    """Few different ones, so that rules meet each other and the text."""
    return rng.choice([5, 9, 17, 23, 31, 40, 47, 52])


def some(rng: random.Random, most: int) -> list[int]:
    return [of_eight(rng) for _ in range(rng.randint(1, most))]


def random_values(rng: random.Random) -> Values:
    """A generation_config.json; nothing is forced and suppressed at once, which leaves published code without a choice."""
    makers = {
        "bad_words_ids": lambda: [some(rng, 3) for _ in range(rng.randint(1, 5))],
        "suppress_tokens": lambda: rng.sample(range(20, 40), rng.randint(1, 12)),
        "begin_suppress_tokens": lambda: rng.sample(range(20, 53), rng.randint(1, 12)),
        "forced_bos_token_id": lambda: rng.randint(3, 19),
        "forced_eos_token_id": lambda: rng.choice([2, [2], [2, 6]]),
        "min_length": lambda: rng.randint(1, 14),
        "min_new_tokens": lambda: rng.randint(1, 6),
        "no_repeat_ngram_size": lambda: rng.randint(1, 3),
        "eos_token_id": lambda: rng.choice([2, [2], [2, *rng.sample(range(3, 53), 8)]]),
    }
    return {"eos_token_id": 2} | {key: make() for key, make in makers.items() if rng.random() < 0.45}


def placed(folder: Path, values: Values) -> Path:
    """The folder with these values beside the start and the padding that it had."""
    path = folder / "generation_config.json"
    known = json.loads(path.read_text())
    kept = {key: known[key] for key in ("decoder_start_token_id", "pad_token_id", "bos_token_id") if key in known}
    path.write_text(json.dumps({"pad_token_id": 0} | kept | values))
    return folder


def theirs_of(folder: Path, name: str) -> hf.PreTrainedModel:
    return type(reference(name).model).from_pretrained(folder, attn_implementation="eager").eval()


def written_by(model: Any, ids: list[int], n: int = N, **how: Any) -> Any:
    """transformers' generate(), with the scores that its processors left of each step."""
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")
        return model.generate(
            torch.tensor([ids]),
            attention_mask=torch.ones(1, len(ids), dtype=torch.long),
            max_new_tokens=n,
            num_beams=1,
            output_scores=True,
            return_dict_in_generate=True,
            **({"do_sample": False} | how),
        )


def prompt_of(rng: random.Random, name: str) -> list[int]:
    return [of_eight(rng) for _ in range(rng.choice([1, 2, 5, 9]))]


@pytest.mark.thorough(but=10)
@pytest.mark.parametrize("name", WRITERS)
@pytest.mark.parametrize("seed", range(8))
def test_every_step_is_what_transformers_leaves(name: str, seed: int, folder: Any) -> None:
    rng = random.Random(f"{name}{seed}")
    place = placed(folder(name), values := random_values(rng))
    ids, model, loaded = prompt_of(rng, name), theirs_of(place, name), core.load(place)
    theirs = written_by(model, ids)
    ours = list(stream(loaded, ids=ids, max_tokens=N))
    written = theirs.sequences[0, -len(theirs.scores) :].tolist()
    assert [step.chosen[0].id for step in ours if step.chosen[0] is not None] == written, values
    for step, scores in zip(ours, theirs.scores, strict=True):
        assert torch.equal(step.logits.isneginf(), scores.isneginf()), values
        assert (step.logits.softmax(-1) - scores.softmax(-1)).abs().max() <= 1e-5, values
    assert list(loaded.notices) == []


@pytest.mark.parametrize("name", ["llama gqa", "marian"])
@pytest.mark.parametrize("seed", range(4))
def test_what_is_drawn_is_drawn_from_what_is_left(name: str, seed: int, folder: Any) -> None:
    """Each of our draws, read back by transformers' processors: its share is theirs, and none is forbidden."""
    rng = random.Random(seed)
    place = placed(folder(name), random_values(rng))
    ids, loaded = prompt_of(rng, name), core.load(place)
    model = theirs_of(place, name)
    for step in stream(loaded, ids=ids, max_tokens=N, temperature=1.3, seed=seed, show=VOCAB):
        chosen = step.chosen[0]
        assert chosen is not None and chosen.prob > 0
        assert sum(p for _, p in chosen.top) == pytest.approx(1, abs=1e-5)
        assert all(not step.logits[0, i].isneginf() for i, _ in chosen.top)
    greedy = written_by(model, ids, do_sample=True, temperature=1.3, top_k=0, top_p=1.0)
    assert greedy.sequences.shape[1] > 0  # the same file is one that transformers samples from


def processed(model: Any, values: Values, text: list[int], n_prompt: int, logits: Tensor) -> Tensor:
    """Scores [vocab] as transformers' list of processors leaves them after this text."""
    known = {"max_length": n_prompt + N, "decoder_start_token_id": 1, "pad_token_id": 0}
    if "min_new_tokens" in values:  # generate() lets it take the place of the other
        known["min_length"] = values["min_new_tokens"] + n_prompt
    config = hf.GenerationConfig(**(values | known))
    model._prepare_special_tokens(config, False, device=torch.device("cpu"))
    found = model._get_logits_processor(
        config, input_ids_seq_length=n_prompt, encoder_input_ids=torch.zeros(1, 1).long()
    )
    return found(torch.tensor([text]), logits[None].clone())[0]


@pytest.mark.thorough(but=2)
@pytest.mark.parametrize("seed", range(6))
def test_beams_are_the_best_of_all_texts(seed: int, folder: Any) -> None:
    """Every text of three tokens, scored after transformers' processors and a softmax over what they leave."""
    rng = random.Random(seed)
    values = random_values(rng) | {"suppress_tokens": list(range(8, 53))}
    values = {key: value for key, value in values.items() if not key.startswith("forced")}
    values["eos_token_id"] = 2
    if "bad_words_ids" in values:
        values["bad_words_ids"] = [[3], [4, 5], [6, 7]]
    place = placed(folder("marian"), values)
    loaded, model = core.load(place), theirs_of(place, "marian")
    ids, start, n = [9, 17, 23], loaded.start_id, 3
    assert start is not None
    scored: dict[tuple[int, ...], float] = {}

    def grow(text: tuple[int, ...], log_prob: float) -> None:
        if len(text) == n or (text and text[-1] == 2):
            scored[text] = log_prob
            return
        with torch.inference_mode():
            logits = loaded.model(torch.tensor([ids]), torch.tensor([[start, *text]]))[0, -1].float()
        left = processed(model, values, [start, *text], 1, logits).log_softmax(-1)
        for token in left.isfinite().nonzero()[:, 0].tolist():
            grow((*text, token), log_prob + left[token].item())

    grow((), 0.0)
    assert sum(np.exp(p) for p in scored.values()) == pytest.approx(1, abs=1e-5)
    best = sorted(scored, key=lambda text: -scored[text])
    (found,) = beam_search(loaded, ids=ids, n_beams=200, max_tokens=n, length_penalty=0.0)
    assert [beam.ids for beam in found[:20]] == best[:20]
    for beam in found[:20]:
        assert beam.log_prob == pytest.approx(scored[beam.ids], abs=1e-4)


@pytest.mark.thorough(but=5)
@pytest.mark.parametrize("name", WRITERS)
@pytest.mark.parametrize("seed", range(3))
def test_columns_writer_and_predictions_say_the_same(name: str, seed: int, folder: Any) -> None:
    """The path that the screen takes: opening a text, writing on, and what every run says comes next."""
    rng = random.Random(f"{seed}{name}")
    values = {key: value for key, value in random_values(rng).items() if key != "forced_eos_token_id"}
    place = placed(folder(name), values)
    loaded, ids = core.load(place), prompt_of(rng, name)
    start = [] if loaded.start_id is None else [loaded.start_id]
    run = core.trace(loaded, ids=ids, target_ids=start or None)
    prompt = Prompt(run.sources, run.targets)
    writer = Writer(loaded, prompt)
    reading = writer.open().readings[-1]
    how = Sampling(1.3, seed=seed)
    for step in stream(loaded, ids=ids, target_ids=start or None, max_tokens=N, temperature=1.3, seed=seed):
        assert reading is not None and step.chosen[0] is not None
        left = step.logits[0]
        assert set(reading.ids.tolist()) == set((~left.isneginf()).nonzero()[:, 0].tolist())
        assert np.abs(reading.probs() - left.softmax(-1)[reading.ids.tolist()].numpy()).max() <= 1e-5
        target = [*start, *writer.path] if start else None
        read = core.trace(loaded, ids=ids if start else [*ids, *writer.path], target_ids=target)
        if start or not writer.path:  # of a decoder, a run is all prompt
            (predicted,) = read.predictions(k=VOCAB).ids
            assert set(predicted) == set(reading.ids.tolist())
            assert read.logit_lens(k=VOCAB)[-1].predictions.ids == (predicted,)
            shares = probabilities(read, range(VOCAB))
            assert (shares - left.softmax(-1)).abs().max() <= 1e-5
        taken, reading = writer.write(how)
        assert taken.id == step.chosen[0].id and taken.prob == pytest.approx(step.chosen[0].prob, abs=1e-5)
        if writer.is_over:
            break
    rows = lens(loaded, prompt, writer.path[:1], len(prompt.last_read[0]) - 1, writer.path[0])
    assert all(p > 0 for row in rows for p in row.probs)


def test_marians_padding_is_not_written(folder: Any) -> None:
    """The padding of an opus-mt, whose score is the highest of all, takes no share of any probability."""
    place = folder("marian")
    from safetensors.torch import load_file, save_file

    tensors = load_file(place / "model.safetensors")
    tensors["final_logits_bias"][0, 1] += 6
    save_file(tensors, place / "model.safetensors", {"format": "pt"})
    placed(place, {"bad_words_ids": [[1]], "eos_token_id": 2, "forced_eos_token_id": 2})
    loaded, ids = core.load(place), [5, 6, 7, 8, 2]
    theirs = written_by(theirs_of(place, "marian"), ids)
    (ours,) = generate(loaded, ids=ids, max_tokens=N)
    assert list(ours.ids) == theirs.sequences[0, 1:].tolist() and 1 not in ours.ids and ours.ids[-1] == 2
    assert ours.ending == "end"
    run = core.trace(loaded, ids=ids, target_ids=[1, 9])
    found = run.predictions([0, 1], k=VOCAB)
    assert all(1 not in row for row in found.ids)
    for row in found.probs:
        assert sum(row) == pytest.approx(1, abs=1e-5)
    raw = run.activation("head.hook_logits")  # scores are the model's own
    assert int(raw[1].argmax()) == 1
    assert run.logit_attribution(1).token != 1
    assert run.ablate_heads(1).token != 1
    (beams,) = beam_search(loaded, ids=ids, max_tokens=4, n_beams=5)
    assert all(1 not in beam.ids for beam in beams)


def test_a_given_text_may_hold_what_may_not_be_written() -> None:
    loaded = ruled(NextTokenRule(never=(7,), no_repeat=2), n_decoder_layers=2)
    free = ruled(NextTokenRule(), n_decoder_layers=2)
    ids = [5, 7, 9, 5, 7]
    losses, raw = given(core.trace(loaded, ids=ids)), given(core.trace(free, ids=ids))
    assert losses.losses.isfinite().all()
    assert (losses.losses <= raw.losses + 1e-6).all()  # fewer others share the whole
    assert torch.allclose((-losses.losses).exp(), losses.probabilities)
    writer = Writer(loaded, Prompt(core.trace(loaded, ids=ids).sources))
    assert np.isfinite(writer.open().losses).all()


def test_each_text_of_a_batch_has_its_own() -> None:
    """Padding is no token of a text: lengths and repetitions are those of the text alone."""
    rule = NextTokenRule(fewest=8, no_repeat=2, never_after=((5, 6),), end_ids=(2,))
    loaded = ruled(rule, n_decoder_layers=2)
    texts = [[5, 6, 5], [9, 8, 7, 5, 6, 9, 8], [11]]
    together = generate(loaded, ids=texts, max_tokens=9)
    alone = [generate(loaded, ids=text, max_tokens=9)[0] for text in texts]
    assert [one.ids for one in together] == [one.ids for one in alone]
    for text, one in zip(texts, together, strict=True):
        whole = [*text, *one.ids]
        pairs = list(itertools.pairwise(whole))
        new = pairs[len(text) - 1 :]
        assert len(set(new)) == len(new) and not set(new) & set(pairs[: len(text) - 1])
        assert 2 not in whole[:8]


@pytest.mark.parametrize("cached", [True, False])
def test_nothing_may_follow(cached: bool) -> None:
    """A text that has used up every word is over with a sentence, not with a number that is none."""
    loaded = ruled(NextTokenRule(no_repeat=1), n_decoder_layers=1, vocab_size=6)
    steps = stream(loaded, ids=[0, 1], max_tokens=9, cached=cached)
    assert len([next(steps) for _ in range(4)]) == 4
    with pytest.raises(GenerationError, match="forbids every token"):
        next(steps)
    (beams,) = beam_search(loaded, ids=[0, 1], n_beams=30, max_tokens=4)
    assert all(np.isfinite(beam.log_prob) and len(set(beam.ids)) == 4 for beam in beams)
    with pytest.raises(GenerationError, match="forbids every token"):
        core.trace(loaded, ids=[0, 1, 2, 3, 4, 5]).predictions()


def test_edits_are_compared_over_what_may_follow() -> None:
    loaded = ruled(NextTokenRule(never=(3, 4)), n_decoder_layers=2)
    run = core.trace(loaded, ids=[5, 6, 7])
    effects = run.ablate_heads(token=6)
    assert all(effect.kl is not None and np.isfinite(effect.kl) and effect.kl >= -1e-6 for effect in effects.heads)
    assert effects.probability == pytest.approx(float(probabilities(run, [6])[0]), abs=1e-6)
    answer = answer_change(run, core.trace(loaded, ids=[5, 6, 8]))
    assert not {3, 4} & {word.id for word in answer.words}
    assert answer.kl is not None and np.isfinite(answer.kl)


def test_rules_are_saved_and_read_again(folder: Any, tmp_path: Path) -> None:
    for seed in range(20):
        rng = random.Random(seed)
        loaded = core.load(placed(folder("t5 v1.0"), random_values(rng)))
        place = tmp_path / str(seed)
        core.save(loaded, place)
        again = core.load(place)
        assert again.next_tokens == loaded.next_tokens or loaded.next_tokens.is_free
        assert again.end_ids == loaded.end_ids and again.pad_id == loaded.pad_id and again.has_pad == loaded.has_pad


def test_older_repositories_say_it_in_config_json(folder: Any) -> None:
    place = folder("bart")
    (place / "generation_config.json").unlink()
    config = json.loads((place / "config.json").read_text())
    config |= {"forced_bos_token_id": 0, "no_repeat_ngram_size": 3, "min_length": 5, "bad_words_ids": [[1]]}
    (place / "config.json").write_text(json.dumps(config))
    rule = core.load(place).next_tokens
    assert (rule.first, rule.no_repeat, rule.fewest, rule.never) == (0, 3, 5, (1,))


def test_several_ends(folder: Any) -> None:
    """Any of them ends a text, and those of the file about writing are meant."""
    place = placed(folder("llama gqa"), {"eos_token_id": list(range(3, 40))})
    loaded = core.load(place)
    assert loaded.end_ids == tuple(range(3, 40))
    theirs = written_by(theirs_of(place, "llama gqa"), [41, 42, 43], n=20)
    (ours,) = generate(loaded, ids=[41, 42, 43], max_tokens=20)
    assert list(ours.ids) == theirs.sequences[0, 3:].tolist()


@pytest.mark.parametrize("key", NOT_APPLIED)
def test_what_is_not_done_is_said(key: str, folder: Any) -> None:
    value = {
        "sequence_bias": [[[5], 1.0]],
        "exponential_decay_length_penalty": [3, 1.1],
        "forced_decoder_ids": [[1, 5]],
    }
    loaded = core.load(placed(folder("marian"), {key: value.get(key, 2)}))
    (notice,) = loaded.notices
    assert key in notice and "not applied" in notice


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"bad_words_ids": [5]}, "bad_words_ids is .*list of lists"),
        ({"bad_words_ids": [[]]}, "bad_words_ids"),
        ({"bad_words_ids": [["a"]]}, "whole numbers"),
        ({"suppress_tokens": ["a"]}, "suppress_tokens"),
        ({"suppress_tokens": [-1]}, "suppress_tokens"),
        ({"forced_bos_token_id": [5, 6]}, "must be one token"),
        ({"min_length": 1.5}, "min_length"),
        ({"suppress_tokens": list(range(VOCAB))}, "forbids every token"),
    ],
)
def test_what_makes_no_rule_is_refused(values: Values, words: str, folder: Any) -> None:
    with pytest.raises(CheckpointError, match=words):
        core.load(placed(folder("gpt2"), values))


def test_an_encoder_has_no_rule(folder: Any) -> None:
    place = folder("bert")
    (place / "generation_config.json").write_text(json.dumps({"suppress_tokens": [5]}))
    loaded = core.load(place)
    assert loaded.next_tokens.is_free
    assert 5 in core.trace(loaded, ids=[5, 6]).predictions([0], k=VOCAB).ids[0]


def test_beyond_the_vocabulary_is_nothing() -> None:
    config = make_loaded(n_decoder_layers=1).config
    values = {"bad_words_ids": [[999], [5, 999], [5, 6]], "suppress_tokens": [7, 999], "forced_bos_token_id": 999}
    rule, _ = next_token_rule(SourceConfig(values), config, ())
    assert rule == NextTokenRule(never=(7,), never_after=((5, 6),))
    assert generation_values(rule) == {"bad_words_ids": [[5, 6]], "suppress_tokens": [7]}


def test_temperatures_of_a_forced_token() -> None:
    loaded = ruled(NextTokenRule(first=9), n_decoder_layers=1)
    reading = Writer(loaded, Prompt(core.trace(loaded, ids=[5]).sources)).open().readings[-1]
    assert reading.ids.tolist() == [9]
    assert all(reading.probs(t).tolist() == [1.0] for t in TEMPERATURES)


def ruled(rule: NextTokenRule, **config: Any) -> Loaded:
    return replace(make_loaded(**config), next_tokens=rule)


def test_following_agrees_with_a_plain_reading() -> None:
    """All lengths of a text at once, as one by one."""

    def cases() -> Iterator[tuple[NextTokenRule, list[int]]]:
        for seed in range(60):
            rng = random.Random(seed)
            runs = tuple(tuple(some(rng, 3)) for _ in range(3))
            yield (
                NextTokenRule(never_after=tuple(r for r in runs if len(r) > 1), no_repeat=rng.randint(0, 4)),
                [of_eight(rng) for _ in range(30)],
            )

    for rule, text in cases():
        lengths = [n for n in range(1, len(text) + 1) if n % 3]
        together = rule.following(text, lengths, 1)
        assert together == [rule.following(text[:n], [n], 1)[0] for n in lengths]
        for n, what in zip(lengths, together, strict=True):
            size = rule.no_repeat
            before = [tuple(text[i : i + size]) for i in range(n - size + 1)] if size else []
            plain = {run[-1] for run in before if size and run[:-1] == tuple(text[n - size + 1 : n]) and n >= size}
            plain |= {run[-1] for run in rule.never_after if text[:n][-(len(run) - 1) :] == list(run[:-1])}
            assert what.banned == plain
