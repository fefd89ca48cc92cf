"""Tokens added to a vocabulary that has no tokenizer.json: the numbers of transformers, however the files state them."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import transformers as hf
from tokenizers import ByteLevelBPETokenizer, Tokenizer

from core.checkpoints import load
from core.checkpoints.tokenizer_files import ROLES, renumbered
from core.checkpoints.tokenizers import read_tokenizer
from core.errors import CheckpointError
from core.model.text import tokenize

PIECES = (
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
    "<s>",
    "</s>",
)
WORDS = ("the cat", "The Cats", " sat", "naïve", "É", "x", "  ", "<s>", "</s>", "[MASK]", "\n", "日本", "theX", ".")
CONTENTS = (
    "<|user|>",
    "<User>",
    "cat",
    "The",
    "NAÏVE",
    "ca",
    "two words",
    " led",
    "trailed ",
    "ÉÉ",
    "[SEP]",
    "</s>",
    "e",
    "日",
)
KINDS = ("bert", "distilbert", "gpt2", "opt", "roberta", "bart")
STYLES = ("numbered in the settings", "numbered apart", "special alone", "all at once")

Json = dict[str, Any]


def vocabulary(place: Path, kind: str) -> int:
    """The vocabulary of a family, as small as can be; how many pieces it has."""
    place.mkdir(parents=True, exist_ok=True)
    (place / "config.json").write_text(json.dumps({"model_type": kind}))
    if kind in ("bert", "distilbert"):
        (place / "vocab.txt").write_text("\n".join(PIECES) + "\n")
        return len(PIECES)
    special = ["<|endoftext|>"] if kind == "gpt2" else ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
    trained = ByteLevelBPETokenizer()
    texts = ["The cat sat on the mat, naïve 🎉 日本."] * 9
    trained.train_from_iterator(texts, 300, special_tokens=special, show_progress=False)
    trained.save_model(str(place))
    return trained.get_vocab_size()


def write(place: Path, **files: Any) -> None:
    for name, content in files.items():
        (place / f"{name}.json").write_text(json.dumps(content))


def random_token(draw: random.Random, content: str) -> Json:
    flags = ("lstrip", "rstrip", "single_word", "normalized", "special")
    return {"content": content, **{flag: draw.random() < 0.4 for flag in flags}}


def random_files(draw: random.Random, kind: str, style: str, size: int) -> dict[str, Json]:
    """Files that state random tokens in one of the ways in which folders do."""
    contents = draw.sample(CONTENTS, draw.randint(1, 6))
    numbers = draw.sample(range(size, size + 9), len(contents)) if draw.random() < 0.5 else range(size, size + 9)
    settings: Json = {}
    if kind == "opt":
        settings = {
            "bos_token": "</s>",
            "eos_token": "</s>",
            "unk_token": "</s>",
            "pad_token": "<pad>",
            "add_bos_token": True,
        }
    if kind in ("bert", "distilbert"):
        settings["do_lower_case"] = draw.random() < 0.5
    if kind in ("gpt2", "opt") and draw.random() < 0.3:
        settings |= {"add_bos_token": True, "add_eos_token": draw.random() < 0.5}
    files = {"tokenizer_config": settings}
    if style in ("numbered in the settings", "all at once"):
        decoder = {str(n): random_token(draw, c) for n, c in zip(numbers, contents, strict=False)}
        settings["added_tokens_decoder"] = decoder
    if style in ("numbered apart", "all at once"):
        files["added_tokens"] = dict(zip(contents, numbers, strict=False))
    if style in ("special alone", "numbered apart", "all at once"):
        named: Json = {}
        needed = "unk" if kind in ("bert", "distilbert") else ""  # of a piece that the vocabulary has
        for role in draw.sample([role for role in ROLES if role != needed], 2):
            named[f"{role}_token"] = draw.choice(
                [*(text for text in contents if " " not in text), "<new>", "[New]"]
            )  # in a pattern of transformers a space parts
        if draw.random() < 0.5:
            named = {key: without_special(random_token(draw, text)) for key, text in named.items()}
        place = draw.choice((files.setdefault("special_tokens_map", {}), settings))
        if place is settings:
            named = {
                key: value | {"__type": "AddedToken"} if isinstance(value, dict) else value
                for key, value in named.items()
            }
        place.update(named)
        if draw.random() < 0.7:
            listed = draw.sample((*CONTENTS, "<more>"), 3)
            draw.choice((files["special_tokens_map"], settings))[
                draw.choice(("additional", "extra")) + "_special_tokens"
            ] = listed
        if draw.random() < 0.3:
            settings["image_token"] = "<Image>"
    return files


def without_special(token: Json) -> Json:
    return {key: value for key, value in token.items() if key != "special"}


def random_text(draw: random.Random) -> str:
    parts = draw.choices((*WORDS, *CONTENTS, "<new>", "[new]", "<more>", "<Image>", "<IMAGE>"), k=draw.randint(3, 12))
    text = "".join(part + draw.choice(("", " ", "  ")) for part in parts)
    return text if draw.random() < 0.7 else text.lower()


@pytest.mark.thorough(but=8)
@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("kind", KINDS)
def test_random_tokens_get_the_numbers_of_transformers(kind: str, style: str, tmp_path: Path) -> None:
    n_compared = 0
    for seed in range(25):
        draw = random.Random(f"{kind} {style} {seed}")
        place = tmp_path / str(seed)
        files = random_files(draw, kind, style, vocabulary(place, kind))
        write(place, **files)
        theirs: Any = hf.AutoTokenizer.from_pretrained(place)
        ours = read_tokenizer(place, kind)
        assert ours is not None
        assert ours.get_vocab() == theirs.get_vocab(), files
        for _ in range(12):
            text = random_text(draw)
            expected = theirs(text, return_offsets_mapping=True)
            found = ours.encode(text)
            assert found.ids == expected["input_ids"], (text, files)
            assert found.offsets == [tuple(span) for span in expected["offset_mapping"]], (text, files)
            n_compared += len(set(found.ids[1:-1]) & set(ours.get_added_tokens_decoder()))
    assert n_compared > 100  # added tokens that were met in a text


@pytest.mark.parametrize(
    ("kind", "files"),
    [
        ("gpt2", {"added_tokens": {"<|user|>": 290}}),
        ("gpt2", {"tokenizer_config": {"added_tokens_decoder": {"290": {"content": "<|user|>", "special": True}}}}),
        ("gpt2", {"special_tokens_map": {"additional_special_tokens": ["<|user|>"]}}),
        ("gpt2", {"special_tokens_map": {"additional_special_tokens": [{"content": "<|user|>", "lstrip": False}]}}),
        ("gpt2", {"tokenizer_config": {"user_token": "<|user|>"}}),
        ("bert", {"added_tokens": {"<|user|>": 15}}),
    ],
)
def test_an_added_token_is_one_token(kind: str, files: dict[str, Any], tmp_path: Path) -> None:
    vocabulary(tmp_path, kind)
    write(tmp_path, **files)
    tokens = tokenize(read_tokenizer(tmp_path, kind), "the <|user|> cat")
    assert tokens.strings.count("<|user|>") == 1 and "[UNK]" not in tokens.strings


def test_a_loaded_model_reads_them(folder: Callable[[str], Path]) -> None:
    place = folder("bert")  # its vocabulary has 53 rows
    (place / "vocab.txt").write_text("\n".join(PIECES) + "\n")
    write(place, added_tokens={"<|user|>": 15})
    assert tokenize(load(place).tokenizer, "the <|user|> cat").ids == (2, 5, 15, 6, 3)


def test_a_gap_in_the_numbers_is_closed_and_said(tmp_path: Path) -> None:
    """The tokenizers library gives the next free number, as it does for transformers; the file's own is another."""
    size = vocabulary(tmp_path, "gpt2")
    write(tmp_path, added_tokens={"<b>": size + 500, "<a>": size})
    tokenizer = read_tokenizer(tmp_path, "gpt2")
    assert tokenizer is not None
    assert (tokenizer.token_to_id("<a>"), tokenizer.token_to_id("<b>")) == (size, size + 1)
    assert renumbered(tmp_path, tokenizer) == {"<b>": (size + 500, size + 1)}


def test_a_tokenizer_json_is_all_there_is_to_know(tmp_path: Path) -> None:
    vocabulary(tmp_path, "gpt2")
    tokenizer = read_tokenizer(tmp_path, "gpt2")
    assert tokenizer is not None
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    write(tmp_path, added_tokens={"<|user|>": 290}, tokenizer_config={"added_tokens_decoder": "nonsense"})
    again = read_tokenizer(tmp_path, "gpt2")
    assert isinstance(again, Tokenizer) and again.token_to_id("<|user|>") is None


@pytest.mark.parametrize(
    ("file", "content", "says"),
    [
        ("added_tokens", ["<a>"], r"added_tokens\.json must hold an object"),
        ("added_tokens", {"<a>": "x"}, r"added_tokens\.json numbers a token 'x'"),
        ("added_tokens", {"<a>": -1}, "whole number"),
        ("added_tokens", {"<a>": 2**70}, "whole number"),
        ("added_tokens", {"<a>": None}, "whole number"),
        ("added_tokens", {"<a>": True}, "whole number"),
        ("tokenizer_config", {"added_tokens_decoder": ["<a>"]}, "added_tokens_decoder is .* object in braces"),
        ("tokenizer_config", {"added_tokens_decoder": {"x": {"content": "<a>"}}}, "numbers a token 'x'"),
        ("tokenizer_config", {"added_tokens_decoder": {"300": "<a>"}}, "'300' is '<a>'"),
        ("tokenizer_config", {"added_tokens_decoder": {"300": {}}}, "has no content"),
        ("tokenizer_config", {"added_tokens_decoder": {"300": {"content": 5}}}, "content is 5"),
        ("tokenizer_config", {"added_tokens_decoder": {"300": {"content": "<a>", "lstrip": "no"}}}, "lstrip is 'no'"),
        ("tokenizer_config", {"bos_token": 5}, "bos_token is 5"),
        ("tokenizer_config", {"split_special_tokens": "no"}, "split_special_tokens"),
        ("tokenizer_config", {"add_bos_token": True, "bos_token": "a:b:c"}, r"vocab\.json .*|a:b:c"),
        ("special_tokens_map", {"additional_special_tokens": "<a>"}, "must be a list of tokens"),
        ("special_tokens_map", {"additional_special_tokens": [5]}, "list of tokens"),
        ("special_tokens_map", {"pad_token": {"content": None}}, "has no content"),
    ],
)
def test_damaged_files_are_refused(file: str, content: Any, says: str, tmp_path: Path) -> None:
    vocabulary(tmp_path, "gpt2")
    write(tmp_path, **{file: content})
    with pytest.raises(CheckpointError, match=says):
        read_tokenizer(tmp_path, "gpt2")
