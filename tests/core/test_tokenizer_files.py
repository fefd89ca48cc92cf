"""A model's tokenizer as it is published, in each of its forms, and damaged ones: each reads right or is refused by a sentence."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import transformers as hf
from tokenizers import ByteLevelBPETokenizer, Tokenizer, models, pre_tokenizers

from core.checkpoints import load
from core.errors import CheckpointError
from core.model.text import tokenize, with_marks
from tests.core.folders import Config

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
    theirs: Any = hf.AutoTokenizer.from_pretrained(place)
    ours = load(place).tokenizer
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
    theirs: Any = hf.AutoTokenizer.from_pretrained(place)
    ours = load(place).tokenizer
    for text in (*TEXTS, "The cats naïve 日本 [MASK] x"):
        expected, tokens = theirs(text, return_offsets_mapping=True), tokenize(ours, text)
        assert list(tokens.ids) == expected["input_ids"]
        theirs_with_marks = with_marks(text, [tuple(span) for span in expected["offset_mapping"]])
        assert tokens.offsets == theirs_with_marks  # theirs leave out the accents that the model does not read


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


@pytest.mark.parametrize("name", ["gpt_neox parallel", "bert"])
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
