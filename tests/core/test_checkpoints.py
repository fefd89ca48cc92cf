"""Folders as they are published: each loads right, by whatever name it is asked for."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers as hf
from torch import Tensor

from core.checkpoints import CATALOG, Loaded, find, load
from core.errors import CheckpointError
from core.model.attention import RMSNorm
from tests.core.folders import Config, Tensors, change_config, change_tensors, renamed
from tests.core.published import BART, BERT, GPT2, T5, VOCAB, Run, perturb, reference


def out(loaded: Loaded, run: Run) -> Tensor:
    with torch.inference_mode():
        return loaded.model(run.source, run.target)[0]


def agrees(loaded: Loaded, name: str) -> bool:
    run = reference(name).runs[0]
    return (out(loaded, run) - run.out).abs().max().item() <= 1e-5


def old_norms(name: str) -> str:
    return name.replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta")


def gpt2_buffers(tensors: Tensors) -> Tensors:
    bare = {name.removeprefix("transformer."): tensor for name, tensor in tensors.items()}
    return bare | {f"h.{i}.attn.bias": torch.ones(1, 1, 37, 37) for i in range(3)}


def neox_buffers(tensors: Tensors) -> Tensors:
    named = {name.replace("lm_head", "embed_out"): tensor for name, tensor in tensors.items()}
    for i in range(3):
        at = f"gpt_neox.layers.{i}.attention"
        named |= {f"{at}.bias": torch.ones(1, 1, 37, 37), f"{at}.masked_bias": torch.tensor(-1e9)}
        named |= {f"{at}.rotary_emb.inv_freq": torch.ones(2)}
    return named


def shared_tables(tensors: Tensors) -> Tensors:
    table = tensors["model.shared.weight"]
    more = {f"model.{stack}.embed_tokens.weight": table for stack in ("encoder", "decoder")}
    return {
        name.removeprefix("model."): tensor for name, tensor in (tensors | more | {"lm_head.weight": table}).items()
    }


PUBLISHED_NAMES: dict[str, tuple[str, Callable[[Tensors], Tensors], int]] = {
    "gpt2 of the Hub: no prefix, causal buffers": ("gpt2", gpt2_buffers, 3),
    "gpt2 with its tied head": ("gpt2", lambda t: t | {"lm_head.weight": t["transformer.wte.weight"]}, 0),
    "gpt2 with its head alone": ("gpt2", renamed(lambda n: n.replace("transformer.wte", "lm_head")), 0),
    "bert of the Hub: gamma and beta": ("bert", renamed(old_norms), 0),
    "bert with its decoder": (
        "bert",
        lambda t: (
            t
            | {
                "cls.predictions.decoder.weight": t["bert.embeddings.word_embeddings.weight"],
                "cls.predictions.decoder.bias": t["cls.predictions.bias"],
                "cls.seq_relationship.weight": torch.ones(2, 35),
                "bert.embeddings.position_ids": torch.arange(37)[None],
            }
        ),
        2,
    ),
    "bert without head, with prefix": ("bert without head", renamed(lambda n: f"bert.{n}"), 2),
    "distilbert without prefix": ("distilbert", renamed(lambda n: n.removeprefix("distilbert.")), 0),
    "llama without prefix": ("llama gqa", renamed(lambda n: n.removeprefix("model.")), 0),
    "llama with inv_freq": (
        "llama gqa",
        lambda t: t | {f"model.layers.{i}.self_attn.rotary_emb.inv_freq": torch.ones(5) for i in range(3)},
        3,
    ),
    "neox of the Hub: embed_out, buffers": ("gpt_neox parallel", neox_buffers, 9),
    "bart of the Hub: three tables, no prefix": ("bart", shared_tables, 0),
    "marian with its table of sinusoids": (
        "marian",
        lambda t: t | {f"model.{s}.embed_positions.weight": torch.ones(37, 42) for s in ("encoder", "decoder")},
        2,
    ),
    "t5 with tables in the stacks alone": (
        "t5 v1.0",
        lambda t: (
            {k: v for k, v in t.items() if k != "shared.weight"}
            | {f"{stack}.embed_tokens.weight": t["shared.weight"] for stack in ("encoder", "decoder")}
        ),
        0,
    ),
}


@pytest.mark.parametrize("case", PUBLISHED_NAMES)
def test_names_as_published(case: str, folder: Callable[[str], Path]) -> None:
    name, change, n_unused = PUBLISHED_NAMES[case]
    loaded = load(change_tensors(folder(name), change))
    assert agrees(loaded, name)
    assert len(loaded.unused) == n_unused


def test_a_head_that_differs_from_the_table_is_not_tied_whatever_the_config_says(folder: Callable[[str], Path]) -> None:
    head = torch.randn(VOCAB, 35)
    loaded = load(change_tensors(folder("gpt2"), lambda t: t | {"lm_head.weight": head}))
    assert loaded.config.tied is False
    assert loaded.model.head is not None and torch.equal(loaded.model.head.unembed.weight, head)


@pytest.mark.parametrize(
    ("model", "sizes"),
    [
        (hf.GPT2Model, GPT2 | {"tie_word_embeddings": False}),
        (hf.BertModel, BERT),
        (hf.RobertaForSequenceClassification, BERT | {"pad_token_id": 1}),
        (hf.GPT2ForSequenceClassification, GPT2 | {"pad_token_id": 2}),
        (hf.T5EncoderModel, T5),
    ],
)
def test_base_models_have_no_head(model: Any, sizes: Config, tmp_path: Path) -> None:
    theirs = model(model.config_class(**sizes, vocab_size=VOCAB, bos_token_id=2)).eval()
    perturb(theirs)
    theirs.save_pretrained(tmp_path)
    loaded = load(tmp_path)
    assert loaded.model.head is None and loaded.config.head == "none"
    ids = torch.randint(3, VOCAB, (1, 9))
    body = getattr(theirs, theirs.base_model_prefix, theirs)
    with torch.inference_mode():
        expected = (theirs if model is hf.T5EncoderModel else body)(ids).last_hidden_state
        assert (loaded.model(ids) - expected).abs().max() <= 1e-5


def test_a_base_model_whose_head_is_its_table_has_one(tmp_path: Path) -> None:
    """facebook/bart-base is saved as a BartModel, and its tied head is used by everybody."""
    theirs = hf.BartModel(hf.BartConfig(**BART, vocab_size=VOCAB)).eval()
    perturb(theirs)
    theirs.save_pretrained(tmp_path)
    loaded = load(tmp_path)
    whole = hf.BartForConditionalGeneration.from_pretrained(tmp_path).eval()
    ids, target = torch.randint(3, VOCAB, (1, 9)), torch.randint(3, VOCAB, (1, 5))
    with torch.inference_mode():
        expected = whole(ids, decoder_input_ids=target).logits
        assert (loaded.model(ids, target) - expected).abs().max() <= 1e-5


@pytest.mark.parametrize("size", ["6KB", "20KB"])
def test_shards(size: str, tmp_path: Path) -> None:
    reference("llama gqa").model.save_pretrained(tmp_path, max_shard_size=size)
    assert len(list(tmp_path.glob("*.safetensors"))) > 2
    assert agrees(load(tmp_path), "llama gqa")


@pytest.mark.parametrize("stored", [torch.bfloat16, torch.float16, torch.float64])
def test_files_of_other_precision(stored: torch.dtype, folder: Callable[[str], Path]) -> None:
    loaded = load(change_tensors(folder("llama gqa"), lambda t: {k: v.to(stored) for k, v in t.items()}))
    weights = {parameter.dtype for parameter in loaded.model.parameters()}
    assert weights == {torch.float32}
    run = reference("llama gqa").runs[0]
    assert (out(loaded, run) - run.out).abs().max() <= (1e-5 if stored == torch.float64 else 0.1)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float64])
@pytest.mark.parametrize("name", ["gemma3_text", "marian", "bert", "llama yarn", "t5 v1.0"])
def test_asked_for_another_precision(dtype: torch.dtype, name: str) -> None:
    loaded = load(reference(name).folder, dtype=dtype)
    norms = {id(module.weight) for module in loaded.model.modules() if isinstance(module, RMSNorm)}
    kinds = {(id(p) in norms, p.dtype) for p in loaded.model.parameters()}
    in_float32 = {(True, torch.promote_types(dtype, torch.float32))} if norms else set()  # of RMS norms, at least
    assert kinds == {(False, dtype)} | in_float32 and loaded.dtype == dtype
    run = reference(name).runs[0]
    assert (out(loaded, run).double() - run.out.double()).abs().max() <= (1e-4 if dtype == torch.float64 else 0.2)


def test_weights_are_held_once_and_nothing_is_left_on_meta() -> None:
    for name in ("gpt2", "marian", "t5 v1.0", "phi3", "gpt_neox parallel"):
        loaded = load(reference(name).folder)
        tensors = [*loaded.model.parameters(), *loaded.model.buffers()]
        assert not any(tensor.is_meta or tensor.requires_grad for tensor in tensors)
        spans = sorted((t.data_ptr(), t.data_ptr() + t.nbytes) for t in tensors)
        assert all(end <= start for (_, end), (start, _) in itertools.pairwise(spans)), name
        if loaded.config.tied:
            assert loaded.model.head is not None
            assert loaded.model.head.unembed.weight is loaded.model.stacks[-1].embed.token.weight
        assert loaded.spec.n_params == sum(parameter.numel() for parameter in loaded.model.parameters())


def test_symbolic_links_are_followed(tmp_path: Path) -> None:
    """The Hub's cache keeps every file as one."""
    for file in reference("gpt2").folder.iterdir():
        (tmp_path / file.name).symlink_to(file)
    assert agrees(load(tmp_path), "gpt2")


@pytest.mark.parametrize(
    ("name", "changes", "pad_id", "start_id"),
    [
        ("gpt2", {}, 2, None),
        ("gpt2", {"eos_token_id": None, "bos_token_id": None}, 0, None),
        ("llama gqa", {"pad_token_id": -1, "eos_token_id": [7, 8]}, 7, None),
        ("llama gqa", {"pad_token_id": 5}, 5, None),
        ("llama gqa", {"pad_token_id": VOCAB, "eos_token_id": "x"}, 0, None),
        ("bart", {}, 1, 2),
        ("bart", {"decoder_start_token_id": None}, 1, 2),
        ("marian", {"decoder_start_token_id": None}, 1, 1),
        ("t5 v1.0", {"decoder_start_token_id": None}, 0, 0),
    ],
)
def test_tokens_that_pad_and_that_start(
    name: str, changes: Config, pad_id: int, start_id: int | None, folder: Callable[[str], Path]
) -> None:
    place = change_config(folder(name), **changes)
    (place / "generation_config.json").unlink(missing_ok=True)
    loaded = load(place)
    assert (loaded.pad_id, loaded.start_id) == (pad_id, start_id)


def test_the_start_may_be_in_generation_config(folder: Callable[[str], Path]) -> None:
    place = change_config(folder("bart"), decoder_start_token_id=None)
    (place / "generation_config.json").write_text(json.dumps({"decoder_start_token_id": 9}))
    assert load(place).start_id == 9


# --- names ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name",
    ["nonesuch", "", "a/b/c", "../x", "x/..", "owner/na me", "/nowhere/at/all", "a\0b", "a" * 5000, "https://x/y"],
)
def test_names_that_are_none(name: str) -> None:
    with pytest.raises(CheckpointError, match=r"There is no model.*minilm"):
        find(name)


def test_names_are_found_without_reading(folder: Callable[[str], Path]) -> None:
    assert find("smollm2") is CATALOG[0] and find("minilm") is CATALOG[1]
    assert find("openai-community/gpt2").source == "hub"
    assert find(folder("gpt2")).source == "folder"
    assert len({spec.id for spec in CATALOG}) == len(CATALOG)


def test_a_folder_without_config(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match=r"no config\.json"):
        load(tmp_path)


def test_folders_have_no_revisions(folder: Callable[[str], Path]) -> None:
    with pytest.raises(CheckpointError, match="revision"):
        load(folder("gpt2"), revision="main")


@pytest.mark.parametrize(
    ("name", "location", "revision"),
    [
        ("gpt2", "openai-community/gpt2", None),
        ("gpt2@main", "openai-community/gpt2", "main"),
        ("owner/name@refs/pr/3", "owner/name", "refs/pr/3"),
        ("owner/name@0a1b2c", "owner/name", "0a1b2c"),
    ],
)
def test_short_names_and_revisions(name: str, location: str, revision: str | None) -> None:
    spec = find(name)
    assert (spec.id, spec.source, spec.location, spec.revision) == (name, "hub", location, revision)
    assert spec.title == location.split("/")[1]


@pytest.mark.parametrize("name", ["owner/name@", "owner/name@ main", "gpt2@a b", "gpt2@-x"])
def test_revisions_that_are_none(name: str) -> None:
    with pytest.raises(CheckpointError, match="must be a branch, a tag or a commit"):
        find(name)
