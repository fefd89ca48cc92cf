"""Rules that positions count by, and padding that comes with its ids: against transformers, with random ids, pads and masks."""

from __future__ import annotations

import random
import warnings
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
import transformers as hf

import core
from core import ModelConfig
from core.edits import AsPadding, SetPositions, ShufflePositions
from core.errors import ConfigError, GenerationError, TextError
from core.run.request import padded
from core.run.trace import trace_batch
from core.service.facts import facts_of
from core.write.beams import beam_search
from core.write.generate import generate, stream
from tests.core.conftest import make_loaded
from tests.core.published import BERT, VOCAB, Published, made, reference

PATTERNS = 1e-6
PLACED = ("bert", "distilbert", "gpt2", "llama gqa", "mistral", "gemma3_text", "gpt_neox parallel", "opt", "roberta")
PAIRS = ("bart", "marian", "t5 v1.0")


def random_mask(rng: random.Random, n: int) -> list[int]:
    """Whichever tokens it hides, the first is real: from there published code counts places."""
    return [1] + [int(rng.random() < 0.7) for _ in range(n - 1)]


def random_ids(rng: random.Random, n: int, pad: int | None) -> list[int]:
    return [pad if pad is not None and rng.random() < 0.3 else rng.randint(3, VOCAB - 1) for _ in range(n)]


def theirs(model: Any, ids: list[int], mask: list[int] | None, **more: Any) -> Any:
    with torch.no_grad():
        keep = None if mask is None else torch.tensor([mask])
        return model(torch.tensor([ids]), attention_mask=keep, output_attentions=True, use_cache=False, **more)


def apart(run: core.Trace, maps: Any, rows: list[int], stack: str = "", site: str = "attn") -> float:
    """The largest difference of any weight of these queries."""
    mine = [r for r in run.attention if r.site == site and stack in ("", r.stack)]
    pairs = zip(mine, maps, strict=True)
    return max((record.pattern()[:, rows] - pattern[0][:, rows]).abs().max().item() for record, pattern in pairs)


@pytest.mark.thorough(but=12)
@pytest.mark.parametrize("name", PLACED)
@pytest.mark.parametrize("seed", range(5))
def test_any_mask_and_any_ids(name: str, seed: int) -> None:
    rng = random.Random(f"{name}{seed}")
    model, loaded = reference(name).model, core.load(reference(name).folder)
    ids = random_ids(rng, rng.randint(2, 20), pad=model.config.pad_token_id)
    for mask in (None, random_mask(rng, len(ids))):
        rows = [i for i in range(len(ids)) if mask is None or mask[i]]
        run = core.trace(loaded, ids=ids, keep=mask)
        assert apart(run, theirs(model, ids, mask).attentions, rows) <= PATTERNS, (ids, mask)


@pytest.mark.parametrize("name", PAIRS)
@pytest.mark.parametrize("seed", range(5))
def test_any_mask_on_both_sides(name: str, seed: int) -> None:
    rng = random.Random(f"{name}{seed}")
    model, loaded = reference(name).model, core.load(reference(name).folder)
    ids, target = (random_ids(rng, rng.randint(2, 14), pad=1) for _ in range(2))
    keep, target_keep = random_mask(rng, len(ids)), random_mask(rng, len(target))
    run = core.trace(loaded, ids=ids, keep=keep, target_ids=target, target_keep=target_keep)
    more = {"decoder_input_ids": torch.tensor([target]), "decoder_attention_mask": torch.tensor([target_keep])}
    out = theirs(model, ids, keep, **more)
    rows, target_rows = ([i for i, real in enumerate(mask) if real] for mask in (keep, target_keep))
    assert apart(run, out.encoder_attentions, rows, "encoder") <= PATTERNS
    assert apart(run, out.decoder_attentions, target_rows, "decoder") <= PATTERNS
    assert apart(run, out.cross_attentions, target_rows, site="cross_attn") <= PATTERNS
    hidden = next((i for i, real in enumerate(keep) if not real), None)
    if hidden is not None:
        assert run.attention[0].why_masked(query=0, key=hidden) == "padding"


@pytest.mark.parametrize("seed", range(8))
def test_roberta_counts_what_is_not_padding(seed: int) -> None:
    """With any number for its padding, which decides where its table begins; hidden by a mask or not."""
    rng = random.Random(seed)
    pad = rng.choice([0, 1, 4, 7])
    case = Published(hf.RobertaForMaskedLM, BERT | {"pad_token_id": pad, "max_position_embeddings": 37 + pad})
    found = made(case)
    loaded = core.load(found.folder)
    assert loaded.pad_id == pad and loaded.has_pad
    ids = random_ids(rng, 16, pad)
    mask = rng.choice([None, random_mask(rng, 16)])
    run = core.trace(loaded, ids=ids, keep=mask)
    model: Any = found.model
    expected = model.roberta.embeddings.create_position_ids_from_input_ids(torch.tensor([ids]), pad)[0]
    places = run.position_records[0].places
    assert torch.equal(places + pad + 1, expected)
    table = run.position_records[0].table()
    assert table is not None
    assert torch.equal(table, model.roberta.embeddings.position_embeddings.weight[expected])
    rows = [i for i in range(16) if mask is None or mask[i]]
    out = theirs(found.model, ids, mask)
    assert apart(run, out.attentions, rows) <= PATTERNS
    with torch.inference_mode():
        keep = None if mask is None else torch.tensor([mask], dtype=torch.bool)
        assert (loaded.model(torch.tensor([ids]), keep=keep)[0] - out.logits[0])[rows].abs().max() <= 1e-5


def test_the_report_of_a_pad_inside() -> None:
    """transformers#1761: what stands after a <pad> moves up."""
    loaded = core.load(reference("roberta").folder)
    run = core.trace(loaded, ids=[0, 5, 6, 1, 7, 8, 9, 2])
    assert run.position_records[0].places.tolist() == [0, 1, 2, -1, 3, 4, 5, 6]
    assert run.warnings == ()  # it is inside, and attended to there as well


def test_texts_of_a_batch_are_what_they_are_alone() -> None:
    """Whatever positions count, on either side, and with padding inside of one text."""
    for name in ("roberta", "opt", "bert"):
        loaded = core.load(reference(name).folder)
        texts = [[5, 6, 1, 7, 8, 9, 2], [0, 11, 12]]
        tokens = [core.trace(loaded, ids=text, keep=k).source for text, k in zip(texts, (None, [1, 1, 0]), strict=True)]
        alone = [core.trace_tokens(loaded, (one,), None, ()) for one in tokens]
        together = trace_batch(loaded, tokens)
        for side in ("left", "right"):
            batch = core.trace_tokens(loaded, padded(loaded, tokens, side), None, ())
            for i, one in enumerate(alone):
                n = len(one.source)
                at = slice(-n, None) if side == "left" else slice(0, n)
                for a, b, c in zip(one.attention, batch.text(i).attention, together[i].attention, strict=True):
                    assert (a.pattern() - b.pattern()[:, at, at]).abs().max() <= PATTERNS
                    assert (a.pattern() - c.pattern()).abs().max() <= PATTERNS
                    every = torch.arange(n)
                    assert torch.equal(a.rule.mask.reasons(every, every), c.rule.mask.reasons(every, every))


def test_rows_that_branch_off_keep_their_positions() -> None:
    """Sweeps run the later layers alone, and know the ids all the same."""
    loaded = core.load(reference("roberta").folder)
    run = core.trace(loaded, ids=[0, 5, 6, 1, 7, 8, 9, 2])
    swept = run.ablate_heads(position=4)
    for effect in swept.heads[:: len(swept.heads) // 3]:
        edit = core.edits.Ablate("encoder", effect.layer, effect.head)
        again = core.trace(loaded, ids=run.source.ids, interventions=[edit])
        logits = [one.activation("head.hook_logits", [4])[0, swept.token] for one in (run, again)]
        assert effect.logit == pytest.approx((logits[1] - logits[0]).item(), abs=1e-5)


def test_edits_move_what_is_counted() -> None:
    loaded = core.load(reference("roberta").folder)
    ids = [0, 5, 1, 7, 2, 1]
    run = core.trace(loaded, ids=ids, interventions=[SetPositions((3, 2, 1, 0))])
    assert run.position_records[0].places.tolist() == [3, 2, -1, 1, 0, -1]
    run = core.trace(loaded, ids=ids, interventions=[ShufflePositions(1)])
    assert sorted(run.position_records[0].places.tolist()) == [-1, -1, 0, 1, 2, 3]


# ids that come padded


@pytest.mark.parametrize("name", ["bert", "roberta", "gpt2", "opt", "llama gqa", "t5 v1.0"])
@pytest.mark.parametrize("side", ["left", "right"])
def test_a_mask_makes_padding_of_ids(name: str, side: str) -> None:
    """It is the text alone, and on the right what AsPadding makes of it."""
    loaded = core.load(reference(name).folder)
    text, pads = [9, 5, 6, 7, 4], [loaded.pad_id] * 3
    ids, keep = (pads + text, [0] * 3 + [1] * 5) if side == "left" else (text + pads, [1] * 5 + [0] * 3)
    at = slice(3, 8) if side == "left" else slice(0, 5)
    target: dict[str, Any] = {"target_ids": [0, 8]} if loaded.config.kind == "encoder-decoder" else {}
    alone, run = core.trace(loaded, ids=text, **target), core.trace(loaded, ids=ids, keep=keep, **target)
    hidden = AsPadding(tuple(i for i, k in enumerate(keep) if not k), "encoder" if target else None)
    edited = core.trace(loaded, ids=ids, interventions=[hidden], **target)
    assert run.source.padding == tuple(not k for k in keep)
    for a, b, c in zip(alone.attention, run.attention, edited.attention, strict=True):
        queries = at if b.n_query == 8 else slice(None)
        keys = at if b.n_key == 8 else slice(None)
        assert (a.pattern() - b.pattern()[:, queries, keys]).abs().max() <= PATTERNS
        if side == "right":
            assert (b.pattern() - c.pattern())[:, queries].abs().max() <= PATTERNS
    for mask in (torch.tensor(keep), np.array(keep), [bool(k) for k in keep], torch.tensor(keep).bool()):
        again = core.trace(loaded, ids=ids, keep=mask, **target)
        assert torch.equal(again.attention[-1].pattern(), run.attention[-1].pattern())


def test_without_a_mask_it_is_said() -> None:
    bert, t5 = (core.load(reference(name).folder) for name in ("bert", "t5 v1.0"))
    run = core.trace(bert, ids=[9, 5, 6, 7, 2, 0, 0, 0])
    (notice,) = run.warnings
    assert "3 of the text's 8 tokens" in notice and "keep=[...]" in notice
    assert notice in repr(run)
    (said,) = facts_of(run, "key").notices  # on a screen there is no argument to give
    assert said.startswith(notice.partition(" Give ")[0]) and "keep" not in said and said.endswith("without them.")
    assert core.trace(bert, ids=[9, 5, 6, 7, 2, 0, 0, 0], keep=[1] * 5 + [0] * 3).warnings == ()
    assert core.trace(bert, ids=[9, 5, 0, 7, 2]).warnings == ()
    # A target begins with the padding's number, which is no padding there.
    assert core.trace(t5, ids=[9, 5, 6], target_ids=[0, 8]).warnings == ()
    (notice,) = core.trace(t5, ids=[9, 5, 6], target_ids=[0, 8, 0, 0]).warnings
    assert "2 of the target's 4 tokens" in notice and "target_keep=[...]" in notice
    (one,) = generate(t5, ids=[9, 5, 0, 0], max_tokens=2)
    assert "2 of the source's 4 tokens" in one.notices[0]
    # Where no file says which token is padding, no number is taken for one.
    assert core.trace(make_loaded(n_encoder_layers=1), ids=[5, 0, 0]).warnings == ()


def test_an_end_that_is_also_the_padding() -> None:
    """GPT-2 ends and is padded with one token: one of it is an end, more are padding."""
    gpt2 = replace(core.load(reference("gpt2").folder), pad_id=2, has_pad=True, end_ids=(2,))
    assert core.trace(gpt2, ids=[5, 6, 2]).warnings == ()
    assert core.trace(gpt2, ids=[2, 5, 6]).warnings == ()
    assert "3 of" in core.trace(gpt2, ids=[5, 6, 2, 2, 2]).warnings[0]


@pytest.mark.thorough(but=3)
@pytest.mark.parametrize("name", ["gpt2", "opt", "llama gqa", "mistral", "bart", "t5 v1.0"])
@pytest.mark.parametrize("side", ["left", "right"])
def test_writing_goes_on_where_a_padded_text_ends(name: str, side: str) -> None:
    loaded = core.load(reference(name).folder)
    texts = [[9, 5, 6, 7], [11, 12]]
    pads = [[loaded.pad_id] * (5 - len(text)) for text in texts]
    ids = [p + t if side == "left" else t + p for t, p in zip(texts, pads, strict=True)]
    keep = [
        [0] * len(p) + [1] * len(t) if side == "left" else [1] * len(t) + [0] * len(p)
        for t, p in zip(texts, pads, strict=True)
    ]
    alone = [generate(loaded, ids=text, max_tokens=6)[0] for text in texts]
    masks = (keep, torch.tensor(keep), np.array(keep))
    for mask in masks:
        assert [one.ids for one in generate(loaded, ids=ids, keep=mask, max_tokens=6)] == [one.ids for one in alone]
    assert generate(loaded, ids=ids[1], keep=keep[1], max_tokens=6)[0].ids == alone[1].ids
    (beams,) = beam_search(loaded, ids=ids[1], keep=keep[1], max_tokens=4)
    assert [beam.ids for beam in beams] == [beam.ids for beam in beam_search(loaded, ids=texts[1], max_tokens=4)[0]]
    assert all(one.notices == () for one in generate(loaded, ids=ids, keep=keep, max_tokens=1))
    if (side == "left") == (loaded.config.kind == "decoder"):  # where published code counts as a text alone does
        model: Any = reference(name).model
        with torch.no_grad(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            out = model.generate(
                torch.tensor(ids), attention_mask=torch.tensor(keep), max_new_tokens=6, do_sample=False, num_beams=1
            )
        for i, one in enumerate(alone):
            assert out[i, -6:].tolist()[: len(one.ids)] == list(one.ids) or len(one.ids) < 6


def test_a_padded_target_goes_on_where_it_ends() -> None:
    loaded = core.load(reference("bart").folder)
    plain = generate(loaded, ids=[5, 6, 7], target_ids=[2, 9, 8], max_tokens=5)
    for ids, keep in (([2, 9, 8, 1, 1], [1, 1, 1, 0, 0]), ([1, 1, 2, 9, 8], [0, 0, 1, 1, 1])):
        assert generate(loaded, ids=[5, 6, 7], target_ids=ids, target_keep=keep, max_tokens=5)[0].ids == plain[0].ids


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"keep": [1, 1]}, "2 marks, and there are 3 tokens"),
        ({"keep": [1, 1, 2]}, "each mark is 1 .* or 0"),
        ({"keep": [1, "a", 0]}, "each mark is 1 .* or 0"),
        ({"keep": [0, 0, 0]}, "hides every token"),
        ({"keep": [[1, 1, 1]]}, "more than one row"),
        ({"keep": torch.ones(1, 3)}, "more than one row"),
        ({"target_keep": [1]}, "takes one text"),
    ],
)
def test_masks_that_do_not_fit(arguments: dict[str, Any], words: str) -> None:
    loaded = make_loaded(n_decoder_layers=1)
    with pytest.raises(TextError, match=words):
        core.trace(loaded, ids=[5, 6, 7], **arguments)
    with pytest.raises(TextError, match=words):
        generate(loaded, ids=[5, 6, 7], **arguments)


def test_a_mask_belongs_to_numbers() -> None:
    pair = make_loaded(n_encoder_layers=1, n_decoder_layers=1)
    with pytest.raises(TextError, match=r"keep= together with ids="):
        core.trace(pair, "a text", keep=[1, 1])
    with pytest.raises(TextError, match=r"target_keep= together with target_ids="):
        core.trace(pair, ids=[5, 6], target="a", target_keep=[1])
    with pytest.raises(TextError, match="2 rows, and there are 1 texts"):
        next(stream(pair, ids=[[5, 6]], keep=[[1, 1], [1, 1]]))
    with pytest.raises(GenerationError, match="encoder"):
        generate(make_loaded(n_encoder_layers=1), ids=[5, 6], keep=[1, 1])


def test_counts_that_cannot_be() -> None:
    sizes: dict[str, Any] = dict(vocab_size=9, d_model=8, n_heads=2, d_ff=8)
    wrongs: list[dict[str, Any]] = [
        {"position_counts": "not_padding", "n_encoder_layers": 1},
        {"position_counts": "not_padding", "n_decoder_layers": 1, "position_offset": 2},
        {"position_counts": "seen", "n_decoder_layers": 1, "position": "rotary", "position_offset": 2},
        {"position_counts": "words", "n_decoder_layers": 1},
    ]
    for wrong in wrongs:
        with pytest.raises(ConfigError, match="position_counts"):
            ModelConfig(**sizes, **wrong)
