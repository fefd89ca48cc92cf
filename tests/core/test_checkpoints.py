"""Files as they are published, and as nobody should publish them: each loads right or is refused by a sentence."""

from __future__ import annotations

import itertools
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers as hf
from safetensors.torch import load_file, save_file
from tokenizers import ByteLevelBPETokenizer, Tokenizer, models, pre_tokenizers
from torch import Tensor

from core.checkpoints import CATALOG, Loaded, find, load
from core.checkpoints.files import INDEX, SINGLE
from core.errors import CheckpointError
from core.text import tokenize
from tests.core.published import BART, BERT, GPT2, T5, VOCAB, Run, perturb, reference

Tensors = dict[str, Tensor]
Config = dict[str, Any]


@pytest.fixture
def folder(tmp_path: Path) -> Callable[[str], Path]:
    """A copy of a published model's folder, to be spoiled."""

    def copy(name: str) -> Path:
        return Path(shutil.copytree(reference(name).folder, tmp_path / "model", dirs_exist_ok=True))

    return copy


def change_config(folder: Path, **changes: Any) -> Path:
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | changes))
    return folder


def change_tensors(folder: Path, change: Callable[[Tensors], Tensors]) -> Path:
    save_file({k: v.contiguous().clone() for k, v in change(load_file(folder / SINGLE)).items()}, folder / SINGLE)
    return folder


def renamed(rename: Callable[[str], str]) -> Callable[[Tensors], Tensors]:
    return lambda tensors: {rename(name): tensor for name, tensor in tensors.items()}


def without(*parts: str) -> Callable[[Tensors], Tensors]:
    return lambda tensors: {k: v for k, v in tensors.items() if not any(part in k for part in parts)}


def plus(**more: Tensor) -> Callable[[Tensors], Tensors]:
    return lambda tensors: tensors | {name.replace("__", "."): tensor for name, tensor in more.items()}


def out(loaded: Loaded, run: Run) -> Tensor:
    with torch.inference_mode():
        return loaded.model(run.source, run.target)[0]


def agrees(loaded: Loaded, name: str) -> bool:
    run = reference(name).runs[0]
    return (out(loaded, run) - run.out).abs().max().item() <= 1e-5


# --- as they are published -----------------------------------------------------------------------------------------


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
    assert {parameter.dtype for parameter in loaded.model.parameters()} == {dtype} and loaded.dtype == dtype
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


# --- tokenizers ----------------------------------------------------------------------------------------------------

TEXTS = ("The cat sat on the mat.", "  two  spaces naïve 🎉🎉 \n日本 x", "I'm </s> ok", "NAÏVE É e\u0301 [MASK] x")


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("gpt2", {}),
        ("gpt2", {"add_prefix_space": True}),
        ("roberta", {}),
        ("bart", {}),
        ("opt", {"tokenizer_class": "GPT2Tokenizer", "bos_token": "</s>", "eos_token": "</s>", "add_bos_token": True}),
    ],
)
def test_merges_files(name: str, settings: Config, folder: Callable[[str], Path]) -> None:
    """vocab.json and merges.txt give what transformers' own tokenizer of the family gives."""
    place = folder(name)
    special = ["<|endoftext|>"] if name == "gpt2" else ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
    trained = ByteLevelBPETokenizer()
    trained.train_from_iterator(
        ["The cat sat on the mat, naïve 🎉 日本."] * 9, 330, special_tokens=special, show_progress=False
    )
    trained.save_model(str(place))
    (place / "tokenizer_config.json").write_text(json.dumps(settings))
    theirs, ours = hf.AutoTokenizer.from_pretrained(place), load(place).tokenizer
    for text in TEXTS:
        expected, tokens = theirs(text, return_offsets_mapping=True), tokenize(ours, text)
        assert list(tokens.ids) == expected["input_ids"]
        assert list(tokens.offsets) == [tuple(span) for span in expected["offset_mapping"]]


@pytest.mark.parametrize(
    "settings", [{}, {"do_lower_case": False}, {"strip_accents": False}, {"tokenize_chinese_chars": False}]
)
def test_vocab_txt(settings: Config, folder: Callable[[str], Path]) -> None:
    place = folder("bert")
    words = [
        "[PAD]",
        "[UNK]",
        "[CLS]",
        "[SEP]",
        "[MASK]",
        "the",
        "cat",
        "##s",
        "The",
        "nai",
        "##ve",
        "e",
        "x",
        "日",
        "naï",
    ]
    (place / "vocab.txt").write_text("\n".join(words) + "\n")
    (place / "tokenizer_config.json").write_text(json.dumps(settings | {"tokenizer_class": "BertTokenizer"}))
    theirs, ours = hf.AutoTokenizer.from_pretrained(place), load(place).tokenizer
    for text in (*TEXTS, "The cats naïve 日本 [MASK] x"):
        expected, tokens = theirs(text, return_offsets_mapping=True), tokenize(ours, text)
        assert list(tokens.ids) == expected["input_ids"]
        assert list(tokens.offsets) == [tuple(span) for span in expected["offset_mapping"]]


def test_special_tokens_may_be_objects(folder: Callable[[str], Path]) -> None:
    place = folder("bert")
    (place / "vocab.txt").write_text("<pad>\n[UNK]\n<cls>\n<sep>\ncat")
    settings = {"cls_token": {"content": "<cls>", "lstrip": False}, "sep_token": {"content": "<sep>"}}
    (place / "tokenizer_config.json").write_text(json.dumps(settings))
    assert tokenize(load(place).tokenizer, "cat").strings == ("<cls>", "cat", "<sep>")


def test_truncation_and_padding_of_the_file_are_switched_off(folder: Callable[[str], Path]) -> None:
    place = folder("gpt2")
    tokenizer = Tokenizer(models.WordLevel({"cat": 0, "[PAD]": 1}, unk_token="cat"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.enable_truncation(4)
    tokenizer.enable_padding(length=9, pad_id=1)
    tokenizer.save(str(place / "tokenizer.json"))
    assert len(tokenize(load(place).tokenizer, "cat " * 20)) == 20


@pytest.mark.parametrize("name", ["t5 v1.0", "marian", "llama gqa"])
def test_no_tokenizer_that_we_read_is_no_error(name: str, folder: Callable[[str], Path]) -> None:
    place = folder(name)
    (place / "spiece.model").write_bytes(b"\n\x0b")
    (place / "vocab.json").write_text(json.dumps({"a": 0}))
    assert load(place).tokenizer is None


@pytest.mark.parametrize(
    "content", ["", "{", "[]", "null", '{"version": "1.0"}', '{"model": {"type": "Pickle"}}', "\x00\xff"]
)
def test_a_damaged_tokenizer_is_refused(content: str, folder: Callable[[str], Path]) -> None:
    place = folder("gpt2")
    (place / "tokenizer.json").write_text(content, encoding="latin-1")
    with pytest.raises(CheckpointError, match=r"tokenizer\.json"):
        load(place)


@pytest.mark.parametrize(
    ("name", "files", "says"),
    [
        ("bert", {"vocab.txt": "cat\ndog"}, r"vocab\.txt has no \[UNK\]"),
        (
            "bert",
            {"vocab.txt": "[UNK]\n[CLS]\n[SEP]", "tokenizer_config.json": '{"do_lower_case": "yes"}'},
            "do_lower_case",
        ),
        ("gpt2", {"vocab.json": "{", "merges.txt": ""}, r"vocab\.json"),
        ("gpt2", {"vocab.json": '{"a": 0}', "merges.txt": "a b c d\nq"}, "merges"),
        ("roberta", {"vocab.json": '{"a": 0}', "merges.txt": ""}, "has no </s>"),
    ],
)
def test_damaged_vocabularies_are_refused(
    name: str, files: dict[str, str], says: str, folder: Callable[[str], Path]
) -> None:
    place = folder(name)
    for file, content in files.items():
        (place / file).write_text(content)
    with pytest.raises(CheckpointError, match=says):
        load(place)


# --- refused by name -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "changes", "says"),
    [
        ("llama gqa", {"model_type": "mixtral"}, "'mixtral' is not supported.*experts.*llama"),
        ("llama gqa", {"model_type": "qwen3_moe"}, "'qwen3_moe' is not supported.*experts"),
        ("llama gqa", {"model_type": "gemma3"}, "gemma3_text"),
        ("llama gqa", {"model_type": "mamba"}, "'mamba' is not supported.*bert.*t5"),
        ("llama gqa", {"model_type": None}, "no model_type"),
        ("llama gqa", {"model_type": ["llama"]}, "not supported"),
        ("llama gqa", {"model_type": "../../etc/passwd"}, "not supported"),
        ("llama gqa", {"hidden_act": "relu2"}, "hidden_act='relu2' is not supported.*silu"),
        ("llama gqa", {"rope_parameters": {"rope_type": "longrope", "factor": 2.0}}, "'longrope'.*yarn"),
        ("llama gqa", {"rope_scaling": {"type": "mrope"}}, "'mrope'"),
        ("llama gqa", {"rope_parameters": {"rope_type": "linear"}}, "no factor"),
        ("llama gqa", {"rope_parameters": {"rope_type": "linear", "factor": 0.5}}, "at least 1"),
        ("llama gqa", {"rope_parameters": {"rope_type": "default", "rope_theta": 0.0}}, "rope_theta"),
        ("llama gqa", {"rope_parameters": "yarn"}, "rope_parameters.*braces"),
        ("llama gqa", {"quantization_config": {"bits": 4}}, "quantized"),
        ("phi3", {"rope_scaling": {"type": "yarn", "factor": 2.0}}, "'yarn'.*default"),
        ("gemma2", {"attn_logit_softcapping": 50.0}, "attn_logit_softcapping=50.0 is not supported.*null"),
        ("gemma2", {"final_logit_softcapping": 30.0}, "final_logit_softcapping"),
        ("gemma3_text", {"use_bidirectional_attention": True}, "use_bidirectional_attention=True.*false"),
        ("gemma3_text", {"layer_types": ["full_attention"] * 2}, "2 layers.*3"),
        ("gemma3_text", {"layer_types": ["chunked_attention"] * 3}, "chunked_attention"),
        ("bert", {"is_decoder": True}, "is_decoder=True"),
        ("bert", {"position_embedding_type": "relative_key"}, "relative_key.*absolute"),
        ("gpt2", {"scale_attn_by_inverse_layer_idx": True}, "scale_attn_by_inverse_layer_idx"),
        ("opt", {"do_layer_norm_before": False}, "do_layer_norm_before"),
        ("opt", {"word_embed_proj_dim": 16}, "word_embed_proj_dim is 16.*35"),
        ("bart", {"decoder_attention_heads": 7}, r"different numbers of heads \(5 and 7\)"),
        ("marian", {"share_encoder_decoder_embeddings": False}, "share_encoder_decoder_embeddings"),
        ("t5 v1.0", {"feed_forward_proj": "gated-mish"}, "gated-mish"),
    ],
)
def test_what_we_do_not_compute_is_refused_by_name(
    name: str, changes: Config, says: str, folder: Callable[[str], Path]
) -> None:
    with pytest.raises(CheckpointError, match=f"(?s){says}"):
        load(change_config(folder(name), **changes))


# --- damaged and hostile -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "not valid JSON"),
        (b"{", "not valid JSON"),
        (b"[1]", "must hold an object"),
        (b'"llama"', "must hold an object"),
        (b"\xff\xfe{}", "not valid JSON"),
        (b'{"a": 1, "a": 2}', "'a' is there twice"),
        (b"[" * 100_000, "not valid JSON"),
        (b'{"model_type": "gpt2", "n_embd": ' + b"9" * 5000 + b"}", "not valid JSON"),
        (b'{"model_type": "gpt2"}', "has no vocab_size"),
    ],
)
def test_config_that_is_none(content: bytes, says: str, folder: Callable[[str], Path]) -> None:
    place = folder("gpt2")
    (place / "config.json").write_bytes(content)
    with pytest.raises(CheckpointError, match=rf"config\.json.*{says}"):
        load(place)


@pytest.mark.parametrize(
    "value", [float("nan"), float("inf"), -1, 0, 1.5, "35", True, [35], {}, 10**9, 2**31, 10**40, None]
)
@pytest.mark.parametrize(
    "key", ["n_embd", "n_head", "n_layer", "vocab_size", "n_positions", "n_inner", "layer_norm_epsilon"]
)
def test_config_numbers_that_cannot_be(key: str, value: Any, folder: Callable[[str], Path]) -> None:
    """Wrong types, and sizes that would take all memory: refused before a tensor is made."""
    defaults = {"n_inner": (None, 0), "layer_norm_epsilon": (None, 1.5, 10**9, 2**31)}
    place = change_config(folder("gpt2"), **{key: value})
    if value in defaults.get(key, ()) and not isinstance(value, bool):
        if key == "layer_norm_epsilon":
            assert load(place).config.norm_eps == (1e-5 if value is None else value)
        else:
            with pytest.raises(CheckpointError, match=r"\[35, 140\]"):  # four times as wide as the model, by default
                load(place)
        return
    with pytest.raises(CheckpointError, match=r"config\.json|hold no tensor"):
        load(place)


@pytest.mark.parametrize("name", ["bert", "gemma3_text", "gpt_neox parallel", "marian", "t5 v1.0"])
def test_no_config_value_gets_past_as_another_error(name: str, folder: Callable[[str], Path]) -> None:
    """Every key of a real config, replaced by what does not belong there, loads or is refused by a sentence."""
    place = folder(name)
    config = json.loads((place / "config.json").read_text())
    n_refused = 0
    for key in config:
        for value in (float("nan"), 10**40, "x", [], 0):
            (place / "config.json").write_text(json.dumps(config | {key: value}))
            try:
                load(place)
            except CheckpointError as error:
                n_refused += 1
                assert str(place) not in str(error)
    assert n_refused > 20


def test_sizes_that_lie_cost_nothing(folder: Callable[[str], Path]) -> None:
    lies: Config = {"n_layer": 10**8, "vocab_size": 10**9, "n_embd": 10**9, "n_positions": 10**9}
    stated = (reference("gpt2").folder / "config.json").read_text()
    for key, value in lies.items():
        with pytest.raises(CheckpointError):
            load(change_config(folder("gpt2"), **(json.loads(stated) | {key: value})))
    with pytest.raises(CheckpointError, match="sinusoidal"):
        load(change_config(folder("marian"), max_position_embeddings=10**9))


def truncated(place: Path) -> None:
    data = (place / SINGLE).read_bytes()
    (place / SINGLE).write_bytes(data[:-100])


def lying_length(place: Path) -> None:
    data = (place / SINGLE).read_bytes()
    (place / SINGLE).write_bytes((2**60).to_bytes(8, "little") + data[8:])


def edit_header(change: Callable[[Config], None]) -> Callable[[Path], None]:
    def spoil(place: Path) -> None:
        data = (place / SINGLE).read_bytes()
        n = int.from_bytes(data[:8], "little")
        header = json.loads(data[8 : 8 + n])
        change(header)
        new = json.dumps(header).encode()
        (place / SINGLE).write_bytes(len(new).to_bytes(8, "little") + new + data[8 + n :])

    return spoil


def overlap(header: Config) -> None:
    header["transformer.h.0.attn.c_attn.weight"]["data_offsets"] = header["transformer.h.1.attn.c_attn.weight"][
        "data_offsets"
    ]


def huge_shape(header: Config) -> None:
    header["transformer.wte.weight"]["shape"] = [2**40, 2**40]


def negative_shape(header: Config) -> None:
    header["transformer.wte.weight"]["shape"] = [-53, -35]


def odd_dtype(header: Config) -> None:
    header["transformer.wte.weight"]["dtype"] = "PICKLE"


@pytest.mark.parametrize(
    "spoil",
    [
        truncated,
        lying_length,
        edit_header(overlap),
        edit_header(huge_shape),
        edit_header(negative_shape),
        edit_header(odd_dtype),
        lambda place: (place / SINGLE).write_bytes(b""),
        lambda place: (place / SINGLE).write_bytes(b"\x80\x04cos\nsystem\n(S'x'\ntR."),
        lambda place: (place / SINGLE).write_bytes((9).to_bytes(8, "little") + b"not json!"),
    ],
)
def test_damaged_weight_files(spoil: Callable[[Path], None], folder: Callable[[str], Path]) -> None:
    place = folder("gpt2")
    spoil(place)
    with pytest.raises(CheckpointError, match=r"model\.safetensors is not a whole safetensors file"):
        load(place)


@pytest.mark.parametrize(
    ("name", "change", "says"),
    [
        ("gpt2", without("h.1.ln_2.bias"), r"no tensor h\.1\.ln_2\.bias.*decoder\.blocks\.1\.mlp_norm\.bias"),
        ("gpt2", without("wte"), r"no tensor wte\.weight"),
        ("llama gqa", without("lm_head"), r"no tensor lm_head\.weight"),
        ("bert", without("cls."), "no tensor cls"),
        ("t5 v1.0", without("decoder.block.0.layer.0.SelfAttention.rel"), "relative_attention_bias"),
        ("gpt2", plus(transformer__wpe__weight=torch.ones(38, 35)), r"wpe\.weight is \[38, 35\].*\[37, 35\]"),
        ("gpt2", plus(transformer__h__0__attn__c_attn__weight=torch.ones(105, 35)), r"\[105, 35\].*\[35, 105\]"),
        ("gpt2", plus(transformer__ln_f__bias=torch.full((35,), torch.nan)), r"ln_f\.bias.*not finite"),
        ("gpt2", plus(transformer__ln_f__bias=torch.full((35,), -torch.inf)), r"ln_f\.bias.*not finite"),
        ("gpt2", plus(transformer__ln_f__bias=torch.ones(35, dtype=torch.int8)), "stored as I8"),
        ("gpt2", plus(wpe__weight=torch.ones(37, 35)), r"both transformer\.wpe\.weight and wpe\.weight"),
        ("bart", plus(encoder__embed_tokens__weight=torch.ones(VOCAB, 35)), "must be the same tensor"),
        ("llama gqa", plus(model__layers__2__self_attn__q_proj__weight=torch.ones(60, 41)), r"\[60, 41\].*\[60, 42\]"),
    ],
)
def test_tensors_that_do_not_belong(
    name: str, change: Callable[[Tensors], Tensors], says: str, folder: Callable[[str], Path]
) -> None:
    with pytest.raises(CheckpointError, match=says):
        load(change_tensors(folder(name), change))


def test_another_familys_config_is_noticed(folder: Callable[[str], Path]) -> None:
    place = folder("gpt2")
    shutil.copy(reference("opt").folder / "config.json", place / "config.json")
    with pytest.raises(CheckpointError, match=r"hold no tensor decoder\.embed_tokens\.weight"):
        load(place)


def test_numbers_too_large_for_half_precision(folder: Callable[[str], Path]) -> None:
    place = change_tensors(folder("gpt2"), plus(transformer__ln_f__bias=torch.full((35,), 1e6)))
    assert load(place).dtype == torch.float32
    with pytest.raises(CheckpointError, match="too large for float16"):
        load(place, dtype=torch.float16)


@pytest.fixture
def shards(tmp_path: Path) -> tuple[Path, Config]:
    reference("gpt2").model.save_pretrained(tmp_path, max_shard_size="20KB")
    return tmp_path, json.loads((tmp_path / INDEX).read_text())


@pytest.mark.parametrize(
    "name",
    [
        "../../etc/passwd",
        "/etc/passwd",
        "..",
        "a/b.safetensors",
        "a\\b.safetensors",
        "pytorch_model.bin",
        "x\0.safetensors",
        "",
        "-\n.safetensors",
    ],
)
def test_an_index_that_points_elsewhere(name: str, shards: tuple[Path, Config]) -> None:
    place, index = shards
    index["weight_map"]["transformer.wte.weight"] = name
    (place / INDEX).write_text(json.dumps(index))
    with pytest.raises(CheckpointError, match=r"must be a \.safetensors file in the same folder"):
        load(place)


def test_damaged_indexes(shards: tuple[Path, Config]) -> None:
    place, index = shards
    names = sorted(set(index["weight_map"].values()))
    wte = "transformer.wte.weight"
    elsewhere = next(name for name in names if name != index["weight_map"][wte])
    cases: list[tuple[Any, str]] = [
        ({}, "no weight_map"),
        ({"weight_map": []}, "no weight_map"),
        ({"weight_map": {"a": 3}}, "no weight_map"),
        ({"weight_map": {"a": "missing.safetensors"}}, "missing.safetensors, which is not there"),
        ({"weight_map": index["weight_map"] | {wte: elsewhere}}, f"{wte} is in {elsewhere}, but it is not"),
        ({"weight_map": index["weight_map"] | {"ghost": names[0]}}, "ghost"),
    ]
    for content, says in cases:
        (place / INDEX).write_text(json.dumps(content))
        with pytest.raises(CheckpointError, match=says):
            load(place)


def test_a_tensor_in_two_shards(shards: tuple[Path, Config]) -> None:
    place, index = shards
    other = next(name for name in index["weight_map"].values() if name != index["weight_map"]["transformer.wte.weight"])
    save_file(load_file(place / other) | {"transformer.wte.weight": torch.ones(VOCAB, 35)}, place / other)
    with pytest.raises(CheckpointError, match=r"wte\.weight is both in"):
        load(place)


def test_pickles_are_not_opened(folder: Callable[[str], Path]) -> None:
    place = folder("gpt2")
    (place / SINGLE).rename(place / "pytorch_model.bin")
    with pytest.raises(CheckpointError, match=r"pytorch_model\.bin, a Python pickle.*safe_serialization"):
        load(place)


def test_other_formats_are_named(folder: Callable[[str], Path]) -> None:
    place = folder("gpt2")
    (place / SINGLE).rename(place / "model.gguf")
    with pytest.raises(CheckpointError, match=r"no model\.safetensors.*model\.gguf"):
        load(place)


# --- names ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name",
    ["nonesuch", "", "a/b/c", "../x", "x/..", "owner/na me", "/nowhere/at/all", "a\0b", "a" * 5000, "https://x/y"],
)
def test_names_that_are_none(name: str) -> None:
    with pytest.raises(CheckpointError, match=r"There is no model.*minilm"):
        find(name)


def test_names_are_found_without_reading(folder: Callable[[str], Path]) -> None:
    assert find("minilm") is CATALOG[0]
    assert find("openai-community/gpt2").source == "hub"
    assert find(folder("gpt2")).source == "folder"
    assert len({spec.id for spec in CATALOG}) == len(CATALOG)


def test_a_folder_without_config(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match=r"no config\.json"):
        load(tmp_path)


def test_folders_have_no_revisions(folder: Callable[[str], Path]) -> None:
    with pytest.raises(CheckpointError, match="revision"):
        load(folder("gpt2"), revision="main")
