"""Rotary rules are those of the run: what the family's own code never reads is refused, and nothing that is kept is of another
rule, or of other weights."""

from __future__ import annotations

import copy
import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pytest
import torch
import transformers as hf

import core
from core.checkpoints import Loaded
from core.errors import CheckpointError
from core.model.config import RotaryScaling
from core.model.positions import rotary_frequencies
from core.model.transformer import MAX_CACHED_FREQUENCIES, Transformer
from core.run.request import Request
from tests.core.conftest import make_loaded
from tests.core.published import GEMMA3, LLAMA, NO_HEAD_DIM, PARTIAL, Published, made
from tests.core.serving import REQUEST, ask, service
from tests.core.test_engine import word_tokenizer

RULES = (
    None,
    RotaryScaling(kind="linear", factor=4.0),
    RotaryScaling(kind="linear", factor=2.0),
    RotaryScaling(kind="yarn", factor=4.0, n_ctx_original=16),
    RotaryScaling(kind="llama3", factor=8.0, n_ctx_original=16),
    RotaryScaling(kind="dynamic", factor=3.0, n_ctx_original=8),
)
IDS = list(range(3, 15))


# a share of each head


@pytest.mark.thorough(but=3)
@pytest.mark.parametrize("where", ["top", "rope_parameters", "rope_scaling"])
@pytest.mark.parametrize(
    "model",
    [hf.LlamaForCausalLM, hf.MistralForCausalLM, hf.Qwen2ForCausalLM, hf.Qwen3ForCausalLM, hf.Gemma2ForCausalLM],
)
def test_a_share_that_published_code_never_reads(model: Any, where: str) -> None:
    sizes = NO_HEAD_DIM if model is hf.Qwen2ForCausalLM else LLAMA
    more = {"final_logit_softcapping": None, "attn_logit_softcapping": None} if model is hf.Gemma2ForCausalLM else {}

    def restate(share: float) -> Any:
        def change(config: dict[str, Any]) -> None:
            config.pop("rope_parameters", None)
            stated = {"rope_type": "default", "rope_theta": 100.0}
            if where == "top":
                config |= {"partial_rotary_factor": share, "rope_theta": 100.0}
            else:
                config[where] = stated | {"partial_rotary_factor": share}

        return change

    sizes = sizes | more | {"rope_parameters": {"rope_type": "default", "rope_theta": 100.0}}
    with pytest.raises(
        CheckpointError, match=r"partial_rotary_factor is 0\.5, but the published code .* never reads it"
    ):
        core.load(made(Published(model, sizes, restate=restate(0.5))).folder)
    found = made(Published(model, sizes, restate=restate(1.0)))
    run = core.trace(core.load(found.folder), ids=found.runs[0].source[0].tolist())
    for record in run.attention:
        assert (record.pattern() - found.runs[0].patterns[f"{record.name}.hook_pattern"]).abs().max() <= 1e-6


def test_a_share_of_the_layers_with_a_window(folder: Any) -> None:
    place = made(Published(hf.Gemma3ForCausalLM, GEMMA3)).folder
    config = json.loads((place / "config.json").read_text())
    config["rope_parameters"]["sliding_attention"]["partial_rotary_factor"] = 0.5
    (place / "config.json").write_text(json.dumps(config))
    with pytest.raises(CheckpointError, match="partial_rotary_factor"):
        core.load(place)


def test_families_that_read_a_share() -> None:
    for model, sizes in ((hf.Phi3ForCausalLM, NO_HEAD_DIM | PARTIAL),):
        found = made(Published(model, sizes))
        loaded = core.load(found.folder)
        assert loaded.config.rotary_fraction == 0.6
        run = core.trace(loaded, ids=found.runs[0].source[0].tolist())
        for record in run.attention:
            assert (record.pattern() - found.runs[0].patterns[f"{record.name}.hook_pattern"]).abs().max() <= 1e-6


# frequencies that are kept


def under(loaded: Loaded, **rule: Any) -> Loaded:
    """The same weights by another rule: stacks that share their parameters, and whatever else a copy shares."""
    model = copy.copy(loaded.model)
    model._modules = dict(model._modules)
    model.config = config = replace(loaded.config, **rule)
    for name in ("encoder", "decoder"):
        if (stack := getattr(loaded.model, name)) is not None:
            stack = copy.copy(stack)
            stack.config = config
            model._modules[name] = stack
    return replace(loaded, model=model, config=config)


def by_itself(loaded: Loaded, **rule: Any) -> Loaded:
    """Those weights in a model of its own, which nothing was run on before."""
    model = Transformer(replace(loaded.config, **rule)).eval()
    model.load_state_dict(loaded.model.state_dict())
    return replace(loaded, model=model, config=model.config)


def maps(loaded: Loaded) -> torch.Tensor:
    with torch.inference_mode():
        return torch.cat([record.pattern() for record in core.trace(loaded, ids=IDS).attention])


CASES: list[dict[str, Any]] = [{"rotary_scaling": scaling} for scaling in RULES]
CASES += [{"rotary_base": 50.0}, {"rotary_fraction": 0.5}, {"rotary_base_windowed": 7.0}]


def turned(**more: Any) -> Loaded:
    turns = {"position": "rotary", "d_head": 8, "rotary_base": 100.0, "rotary_base_windowed": 30.0}
    return make_loaded(**turns, n_ctx=64, window=5, windowed_layers=(1,), **more)


def test_two_rules_in_a_row() -> None:
    """Whatever was run before, on a stack that shares its memory with this one, the maps are those of a fresh model."""
    loaded = turned(n_decoder_layers=3)
    first = {i: maps(by_itself(loaded, **rule)) for i, rule in enumerate(CASES)}
    for order in (range(len(CASES)), reversed(range(len(CASES)))):
        for i in order:
            assert torch.equal(maps(under(loaded, **CASES[i])), first[i]), CASES[i]
    different = {tuple(found.flatten().tolist()) for found in first.values()}
    assert len(different) == len(CASES)  # so that each would be noticed


def test_a_rule_put_in_another_s_place() -> None:
    """The stack itself is given another rule, and then its own again."""
    loaded = turned(n_decoder_layers=2)
    stack = loaded.model.decoder
    assert stack is not None
    own = maps(loaded)
    stack.config = replace(loaded.config, rotary_scaling=RULES[1])
    assert torch.equal(maps(loaded), maps(by_itself(loaded, rotary_scaling=RULES[1])))
    stack.config = loaded.config
    assert torch.equal(maps(loaded), own)


def test_two_threads_with_a_rule_each() -> None:
    loaded = turned(n_decoder_layers=2)
    expected = [maps(by_itself(loaded, **rule)) for rule in CASES]
    ours = [under(loaded, **rule) for rule in CASES]
    assert len({id(one.model.decoder.frequency_cache) for one in ours if one.model.decoder is not None}) == 1
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(maps, ours * 8))
    for i, one in enumerate(found):
        assert torch.equal(one, expected[i % len(CASES)])


def test_what_is_kept_is_bounded() -> None:
    loaded = turned(n_decoder_layers=2)
    stack = loaded.model.decoder
    assert stack is not None
    found = torch.zeros(0)
    for factor in range(1, 3 * MAX_CACHED_FREQUENCIES):
        stack.config = replace(loaded.config, rotary_scaling=RotaryScaling(kind="linear", factor=float(factor)))
        found, _ = stack.frequencies(9, False, torch.device("cpu"))
        assert torch.equal(found, rotary_frequencies(stack.config, 9)[0])
        assert len(stack.frequency_cache) <= MAX_CACHED_FREQUENCIES
    assert stack.frequencies(9, False, torch.device("cpu"))[0] is found  # not made again


def test_a_text_that_grows_has_angles_of_its_own() -> None:
    loaded = turned(n_decoder_layers=2, rotary_scaling=RULES[-1])
    stack = loaded.model.decoder
    assert stack is not None
    for n in (5, 20, 8, 30, 20, 5):
        found, _ = stack.frequencies(n, False, torch.device("cpu"))
        assert torch.equal(found, rotary_frequencies(stack.config, n)[0])


# answers that are kept


def test_answers_are_of_the_weights_that_are_there() -> None:
    """A model that was let go and whose files have changed since answers by what they hold now, under the same address."""
    seeds = iter((1, 2))

    def load(name: str, **_: Any) -> Loaded:
        seed = next(seeds) if name == "one" else 9
        return replace(make_loaded(seed=seed, n_decoder_layers=2), tokenizer=word_tokenizer())

    shared = service(load, max_models=1, max_model_bytes=1)
    other = Request("other", ("the cat sat",))

    async def answers() -> list[Any]:
        key = await shared.submit(REQUEST)
        found: list[Any] = [
            await shared.predictions(key),
            await shared.guesses(key, 2),
            await shared.measures(key, "decoder"),
        ]
        return [found[0].probs, found[1], found[2]]

    def fresh(seed: int) -> list[Any]:
        apart = service(
            lambda *_, **__: replace(make_loaded(seed=seed, n_decoder_layers=2), tokenizer=word_tokenizer())
        )
        key = REQUEST.key

        async def asked() -> list[Any]:
            await apart.submit(REQUEST)
            return [
                (await apart.predictions(key)).probs,
                await apart.guesses(key, 2),
                await apart.measures(key, "decoder"),
            ]

        return ask(asked())

    assert repr(ask(answers())) == repr(fresh(1))
    shared.engine.run(other)  # takes the place of the first
    assert shared.engine.loaded_model("one") is None
    assert repr(ask(answers())) == repr(fresh(2))
    assert shared.engine.weight_versions(("predictions", REQUEST.key, 5)) == (1,)
