"""`is_causal: false`: every published decoder reads both ways then, as transformers does, and nothing of it writes."""

from __future__ import annotations

import dataclasses
import json
import random
from functools import cache
from typing import Any

import pytest
import torch

import core
from core import ModelConfig
from core.checkpoints import Loaded
from core.edits import DropCausalMask, SetMask
from core.errors import CheckpointError, GenerationError, InterventionError, TextError
from core.model.rules import REASONS
from core.plan import Plan, plan
from core.read.next_token_loss import given
from core.run.chunks import can_chunk
from core.service.facts import facts_of
from core.write.beams import beam_search
from core.write.generate import generate
from core.write.writer import beginning, opening
from tests.core.conftest import make_loaded
from tests.core.published import GEMMA3, PUBLISHED, Published, Reference, made, reads_both_ways

LOGITS, PATTERNS = 1e-5, 1e-6


@cache
def decoders() -> dict[str, Published]:
    """Every tested model with a decoder, as a config with is_causal: false makes it."""
    return {
        name: dataclasses.replace(case, sizes=case.sizes | {"is_causal": False})
        for name, case in PUBLISHED.items()
        if not reads_both_ways(case.model.config_class(**case.sizes))
    }


@cache
def both_ways(name: str) -> tuple[Loaded, Reference]:
    theirs = made(decoders()[name])
    return core.load(theirs.folder), theirs


def run_of(loaded: Loaded, theirs: Any) -> core.Trace:
    target = None if theirs.target is None else theirs.target[0].tolist()
    return core.trace(loaded, ids=theirs.source[0].tolist(), target_ids=target)


@pytest.mark.thorough(but=8)
@pytest.mark.parametrize("name", decoders())
def test_every_decoder_reads_both_ways(name: str) -> None:
    loaded, reference = both_ways(name)
    for theirs in reference.runs:
        run = run_of(loaded, theirs)
        assert {f"{record.name}.hook_pattern" for record in run.attention} == theirs.patterns.keys()
        for record in run.attention:
            pattern = theirs.patterns[f"{record.name}.hook_pattern"]
            assert (record.pattern() - pattern).abs().max() <= PATTERNS, record.name
            queries, keys = torch.arange(record.n_query), torch.arange(record.n_key)
            # A cell has a reason where it has no weight, and the future is none.
            reasons = record.rule.mask.reasons(queries, keys)
            assert torch.equal(reasons != 0, (pattern == 0).all(0))
            assert set(reasons.unique().tolist()) <= {0, REASONS.index("outside the window")}
        with torch.inference_mode():
            logits = loaded.model(theirs.source, theirs.target)[0]
        assert (logits - theirs.out).abs().max() <= LOGITS


@pytest.mark.parametrize("seed", range(12))
def test_any_size_and_window(seed: int) -> None:
    """Random decoders with random windows, on layers that the file names or that its family chooses."""
    rng = random.Random(seed)
    name = rng.choice(["mistral", "qwen2 windowed above", "qwen3", "gemma2", "gemma3_text", "phi3 windowed"])
    case = PUBLISHED[name]
    sizes = case.sizes | {"is_causal": False, "sliding_window": rng.randint(1, 14)}
    if name == "gemma3_text" and rng.random() < 0.5:
        sizes |= {"use_bidirectional_attention": True, "is_causal": rng.random() < 0.5}
    if name.startswith("qwen"):
        sizes |= {"use_sliding_window": rng.random() < 0.7, "max_window_layers": rng.randint(0, 3)}
    theirs = made(dataclasses.replace(case, sizes=sizes))
    loaded = core.load(theirs.folder)
    assert loaded.config.kind == "encoder"
    for one in theirs.runs:
        run = run_of(loaded, one)
        for record in run.attention:
            assert (record.pattern() - one.patterns[f"{record.name}.hook_pattern"]).abs().max() <= PATTERNS, sizes


@pytest.mark.parametrize("name", ["llama gqa", "gpt2", "opt", "gpt_neox parallel", "bart", "t5 v1.0"])
def test_padding_is_the_one_thing_that_is_hidden(name: str) -> None:
    loaded, reference = both_ways(name)
    long, short = (run.source[0].tolist() for run in reference.runs)
    keep = [1] * len(short) + [0] * (len(long) - len(short))
    target = reference.runs[1].target
    more: dict[str, Any] = {} if target is None else {"target_ids": target[0].tolist()}
    alone, filled = (
        core.trace(loaded, ids=ids, keep=mask, **more)
        for ids, mask in ((short, None), (short + [0] * (len(long) - len(short)), keep))
    )
    for a, b in zip(alone.attention, filled.attention, strict=True):
        n_query, n_key = a.n_query, a.n_key
        assert (a.pattern() - b.pattern()[:, :n_query, :n_key]).abs().max() <= PATTERNS
        if b.n_key > n_key:
            assert b.why_masked(query=0, key=b.n_key - 1) == "padding"


def test_nothing_writes_that_reads_both_ways() -> None:
    for name in ("llama gqa", "bart"):
        loaded, _ = both_ways(name)
        assert not loaded.config.causal and not loaded.config.writes
        for write in (generate, beam_search):
            with pytest.raises(GenerationError, match="reads both ways and does not write"):
                write(loaded, ids=[5, 6, 7])
        with pytest.raises(GenerationError, match="reads both ways and does not write"):
            opening(loaded, "a")
        target: dict[str, Any] = {"target_ids": [2, 5, 6]} if name == "bart" else {}
        run = core.trace(loaded, ids=[5, 6, 7], **target)
        assert not facts_of(run, "key").writes
        with pytest.raises(GenerationError, match="reads both ways"):
            beginning(run, opens_target=True)
        with pytest.raises(TextError, match="does not write the next word"):
            given(run)
        assert not can_chunk(run.forward)
        with pytest.raises(InterventionError, match="no causal mask to drop"):
            core.trace(loaded, ids=[5, 6, 7], **target, interventions=[DropCausalMask()])


def test_its_screens_are_an_encoders() -> None:
    loaded, reference = both_ways("qwen3")
    run = run_of(loaded, reference.runs[0])
    facts = facts_of(run, "key")
    assert [site.id for site in facts.sites] == ["encoder"]
    assert facts.config.stacks == (("encoder", 3),)


def test_a_mask_can_still_be_put_on_it() -> None:
    loaded, _ = both_ways("llama gqa")
    causal = core.load(made(PUBLISHED["llama gqa"]).folder)
    edited = core.trace(loaded, ids=[5, 6, 7, 8], interventions=[SetMask("causal")])
    plain = core.trace(causal, ids=[5, 6, 7, 8])
    for a, b in zip(edited.attention, plain.attention, strict=True):
        assert (a.pattern() - b.pattern()).abs().max() <= PATTERNS
    assert edited.attention[0].why_masked(query=0, key=3) == "future"


def useful(found: Plan) -> int:
    return sum(operation.times * operation.useful_flops for operation in found.prefill)


def test_the_planner_counts_every_pair() -> None:
    sizes: dict[str, Any] = dict(vocab_size=31, d_model=24, n_heads=4, d_ff=32, n_decoder_layers=2)
    seeing, causal = (plan(ModelConfig(**sizes, causal=c), batch=2, source_len=16) for c in (False, True))
    sizes_of_encoder: dict[str, Any] = sizes | {"n_decoder_layers": 0, "n_encoder_layers": 2}
    encoder = plan(ModelConfig(**sizes_of_encoder), batch=2, source_len=16)
    assert seeing.flops == useful(seeing) == useful(encoder)
    assert useful(causal) < causal.flops == seeing.flops
    pair = ModelConfig(**sizes, n_encoder_layers=2, causal=False)
    both = plan(pair, batch=2, source_len=16, target_len=8)
    assert both.flops == useful(both)
    as_usual = plan(dataclasses.replace(pair, causal=True), batch=2, source_len=16, target_len=8)
    assert useful(as_usual) < useful(both)


def test_a_decoder_that_sees_everything_is_an_encoder() -> None:
    loaded = make_loaded(n_decoder_layers=2, causal=False)
    assert loaded.config.kind == "encoder" and loaded.model.decoder is None
    same = make_loaded(n_encoder_layers=2)
    ids = torch.tensor([[3, 4, 5, 6]])
    with torch.inference_mode():
        assert torch.equal(loaded.model(ids), same.model(ids))


def test_it_is_saved_and_read_again(tmp_path: Any) -> None:
    loaded, reference = both_ways("bart")
    core.save(loaded, tmp_path)
    again = core.load(tmp_path)
    assert not again.config.causal
    one = reference.runs[0]
    with torch.inference_mode():
        assert torch.equal(again.model(one.source, one.target), loaded.model(one.source, one.target))


def test_an_embedding_model_has_no_head() -> None:
    """The token table of a Gemma 3 that reads both ways, saved without a head, scores no words."""
    import transformers as hf

    reference = made(Published(hf.Gemma3TextModel, GEMMA3 | {"use_bidirectional_attention": True}))
    loaded = core.load(reference.folder)
    assert loaded.model.head is None
    with torch.inference_mode():
        assert (loaded.model(reference.runs[0].source)[0] - reference.runs[0].out).abs().max() <= LOGITS


@pytest.mark.parametrize("value", ["no", 0, [False]])
def test_a_word_that_is_no_truth_is_refused(value: object, folder: Any) -> None:
    place = folder("llama gqa")
    config = json.loads((place / "config.json").read_text())
    (place / "config.json").write_text(json.dumps(config | {"is_causal": value}))
    with pytest.raises(CheckpointError, match="is_causal"):
        core.load(place)


def test_null_is_what_it_is_to_transformers() -> None:
    def restate(config: dict[str, Any]) -> None:
        config["is_causal"] = None

    case = dataclasses.replace(PUBLISHED["llama gqa"], restate=restate)
    place = made(case).folder
    theirs = type(made(PUBLISHED["llama gqa"]).model).from_pretrained(place, attn_implementation="eager").eval()
    ids = list(range(5, 14))
    with torch.no_grad():
        maps = theirs(torch.tensor([ids]), output_attentions=True).attentions
    run = core.trace(core.load(place), ids=ids)
    for record, pattern in zip(run.attention, maps, strict=True):
        assert (record.pattern() - pattern[0]).abs().max() <= PATTERNS


def test_code_of_its_own_is_named(folder: Any) -> None:
    place = folder("llama gqa")
    config = json.loads((place / "config.json").read_text())
    classes = {"AutoModel": "modeling_two_way.TwoWay", "AutoTokenizer": ["tokens.Slow", None]}
    (place / "config.json").write_text(json.dumps(config | {"auto_map": classes}))
    loaded = core.load(place)
    (notice,) = loaded.notices
    assert "modeling_two_way.TwoWay" in notice and "auto_map" in notice and "not run" in notice
    assert notice in repr(loaded) and loaded.spec.notices == (notice,)
    assert core.load(folder("gpt2")).notices == ()
