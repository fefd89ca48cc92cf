"""Vocabularies in GGUF files: the ids of a few hundred texts in many scripts against transformers, and an algorithm of our own."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import transformers as hf
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, trainers

import core
from core.checkpoints import load
from core.checkpoints.gguf import Header
from core.checkpoints.gguf.tokenizer import RULES, tokenizer_of
from core.errors import CheckpointError, TextError
from tests.core.gguf.written import arrays_of, bert, config_of, llama, llama_values, write
from tests.core.published import reference

SENTENCES = (
    "The animal didn't cross the street because it was too tired; they'll see, WE'RE sure, I'D say.",
    "Der Käfer läuft über die große Straße, 1234567 Mal schneller als 3,14159 km/h!",
    "L'été, où es-tu ? « Ça ne fait rien », dit-il à 20h30.",
    "Быстрая коричневая лиса прыгает через ленивую собаку.",
    "Η γρήγορη καφέ αλεπού πηδάει πάνω από το σκυλί.",
    "素早い茶色の狐はのろまな犬を飛び越える。カタカナとひらがな。",
    "敏捷的棕色狐狸跳过了懒狗。共12345只,第三名。",
    "빠른 갈색 여우가 게으른 개를 뛰어넘는다.",
    "الثعلب البني السريع يقفز فوق الكلب الكسول ١٢٣.",
    "השועל החום המהיר קופץ מעל הכלב העצלן.",
    "तेज़ भूरी लोमड़ी आलसी कुत्ते के ऊपर कूदती है। १२३",
    "สุนัขจิ้งจอกสีน้ำตาลกระโดดข้ามสุนัขขี้เกียจ",
    "def f(x):\n\treturn x**2  # ok\n\n\nclass A(B):\r\n    pass\n",
    "https://example.org/a_b-c?d=e&f=%20 foo@bar.com",
    "🎉🎉 naïve café — “quotes” … ½ ² ① 👩‍👩‍👧 \u200b end",
    "   leading,   inner   and trailing   ",
    "HelloWorldHTTPServer snake_case_name CONSTANT_2 camelCase42X",
    "$1,234.56 + 7% = #1! (a)[b]{c} <d> /e/ \\f ~g `h` ^i |j",
)


@cache
def texts() -> tuple[str, ...]:
    """All of them, pairs of them, and pieces from the middle of them."""
    pairs = [
        f"{one[:37]}{joint}{two[3:29]}"
        for (one, two), joint in zip(itertools.permutations(SENTENCES, 2), itertools.cycle(("", " ", "\n", "  ", "9")))
    ]
    cuts = [sentence[i : i + 11] for sentence in SENTENCES for i in range(0, len(sentence) - 11, 13)]
    return (*SENTENCES, *pairs, *cuts)


@cache
def byte_pieces() -> tuple[list[str], list[str]]:
    """Tokens and merges that were learnt from whole texts, so that every place where a pre-tokenizer cuts is felt."""
    learnt = Tokenizer(models.BPE())
    learnt.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    trainer = trainers.BpeTrainer(
        vocab_size=1200, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False
    )
    learnt.train_from_iterator(texts(), trainer)
    vocab = learnt.get_vocab()
    merges = json.loads(learnt.to_str())["model"]["merges"]
    return sorted(vocab, key=vocab.__getitem__), [" ".join(merge) for merge in merges]


def with_tokens(path: Path, tokens: list[str], types: list[int], **said: Any) -> Path:
    """A small Llama with a vocabulary."""
    folder = reference("llama gqa").folder
    config = config_of(folder)
    arrays = arrays_of(folder, "llama", config)
    for name in ("token_embd.weight", "output.weight"):
        arrays[name] = arrays[name].repeat(len(tokens) // len(arrays[name]) + 1, 1)[: len(tokens)]
    values = llama_values(config) | {"tokenizer.ggml.tokens": tokens, "tokenizer.ggml.token_type": types}
    values |= {f"tokenizer.ggml.{key}": value for key, value in said.items()}
    return write(path, "llama", values, arrays)


def ids_of(tokenizer: Any, every: Iterable[str]) -> list[list[int]]:
    return [each.ids if hasattr(each, "ids") else each for each in map(tokenizer.encode, every)]


@pytest.fixture(autouse=True)
def no_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADLIGHT_CACHE", "off")


@pytest.mark.thorough(but=3)
@pytest.mark.parametrize("pre", ["gpt-2", "llama-bpe", "qwen2", "tekken", "gpt-4o", "dbrx", "falcon3"])
def test_byte_level_ids_are_those_of_transformers(pre: str, tmp_path: Path) -> None:
    tokens, merges = byte_pieces()
    tokens = [*tokens, "<|start|>", "<tool>"]
    types = [1] * (len(tokens) - 2) + [3, 4]
    said = {"model": "gpt2", "pre": pre, "merges": merges, "bos_token_id": len(tokens) - 2, "add_bos_token": False}
    file = with_tokens(tmp_path / "model.gguf", tokens, types, **said)
    loaded = load(file)
    assert loaded.tokenizer is not None and loaded.no_tokenizer == ""
    every = [*texts(), "<|start|>Hi <tool>there 12<|start|>"]
    theirs: Any = hf.AutoTokenizer.from_pretrained(tmp_path, gguf_file="model.gguf")
    assert ids_of(loaded.tokenizer, every) == [theirs(text, add_special_tokens=False).input_ids for text in every]
    assert all(loaded.tokenizer.decode(loaded.tokenizer.encode(text).ids) == text for text in SENTENCES[:4])


def test_every_pre_tokenizer_cuts_without_losing_a_letter() -> None:
    for name, rules in RULES.items():
        made = rules.pre_tokenizer()
        for sentence in SENTENCES:
            pieces = "".join(piece for piece, _ in made.pre_tokenize_str(sentence))
            assert decoders.ByteLevel().decode([pieces]) == sentence, name
    digits = [piece for piece, _ in RULES["smollm"].pre_tokenizer().pre_tokenize_str("in 2024!")]
    assert digits == ["in", "Ġ", "2", "0", "2", "4", "!"]
    assert [p for p, _ in RULES["deepseek-v3"].pre_tokenizer().pre_tokenize_str("12345 a")] == ["123", "45", "Ġa"]


@pytest.mark.parametrize(("pre", "opens"), [("llama-bpe", True), ("gpt-2", False)])
def test_bos_is_put_before_a_text_where_its_kind_does(pre: str, opens: bool, tmp_path: Path) -> None:
    tokens, merges = byte_pieces()
    said = {"model": "gpt2", "pre": pre, "merges": merges, "bos_token_id": 7}
    types = [3 if i == 7 else 1 for i in range(len(tokens))]
    tokenizer = load(with_tokens(tmp_path / "a.gguf", tokens, types, **said)).tokenizer
    assert tokenizer is not None and (tokenizer.encode("a").ids[0] == 7) == opens
    other = load(with_tokens(tmp_path / "b.gguf", tokens, types, **said, add_bos_token=not opens)).tokenizer
    assert other is not None and (other.encode("a").ids[0] == 7) != opens


@pytest.mark.parametrize(
    ("said", "sentence"),
    [
        ({"model": "gpt2", "pre": "viking"}, "names the pre-tokenizer 'viking', which is not known here"),
        ({"model": "gpt2"}, "does not say which pre-tokenizer"),
        ({"model": "gpt2", "pre": "default"}, "does not say which pre-tokenizer"),
        ({"model": "rwkv"}, "of the kind 'rwkv', which is not read here"),
        ({"model": "llama"}, "neither merges nor scores"),
        ({}, "It has no vocabulary"),
    ],
)
def test_a_vocabulary_that_is_not_read_is_named(said: dict[str, str], sentence: str, tmp_path: Path) -> None:
    """The model opens all the same, and reads token numbers."""
    tokens, merges = byte_pieces()
    more = {"merges": merges} if said.get("model") == "gpt2" else {}
    loaded = load(with_tokens(tmp_path / "model.gguf", tokens, [1] * len(tokens), **said, **more))
    assert loaded.tokenizer is None and sentence in loaded.no_tokenizer
    with pytest.raises(TextError, match=sentence):
        loaded.tokens("Hello")


@pytest.mark.parametrize(
    ("tokens", "types", "merges", "sentence"),
    [
        (["a", "b", "a"], [1, 1, 1], [], "has the token 'a' twice"),
        (["a", "b"], [1], [], r"token_type has 1 entries, but there are 2 tokens"),
        (["a", "b"], [1, 1], ["ab"], "merges has 'ab', which is not two pieces"),
        (["a", "b"], [1, 1], ["a c"], "makes no tokenizer"),
    ],
)
def test_a_vocabulary_that_contradicts_itself_is_refused(
    tokens: list[str], types: list[int], merges: list[str], sentence: str, tmp_path: Path
) -> None:
    said = {"model": "gpt2", "pre": "gpt-2"} | ({"merges": merges} if merges else {})
    with pytest.raises(CheckpointError, match=sentence):
        load(with_tokens(tmp_path / "model.gguf", tokens, types, **said))


# SentencePiece ---------------------------------------------------------------------------------------------------------------


@cache
def spm_pieces() -> tuple[list[str], list[float], list[int]]:
    """<unk>, <s>, </s>, bytes, and pieces in the order in which they were learnt, as Llama's vocabulary has them."""
    learnt = Tokenizer(models.BPE())
    learnt.pre_tokenizer = pre_tokenizers.Metaspace()
    learnt.train_from_iterator(texts(), trainers.BpeTrainer(vocab_size=1500, show_progress=False))
    vocab = learnt.get_vocab()
    merged = sorted((piece for piece in vocab if len(piece) > 1), key=vocab.__getitem__)
    letters = sorted({*"".join(merged)})  # the others are bytes
    tokens = ["<unk>", "<s>", "</s>", *(f"<0x{i:02X}>" for i in range(256)), *merged, *letters, "<|turn|>"]
    types = [2, 3, 3] + [6] * 256 + [1] * (len(merged) + len(letters)) + [3]
    scores = [0.0] * 259 + [-float(i) for i in range(len(merged) + len(letters))] + [0.0]
    return tokens, scores, types


def by_scores(text: str, ids: dict[str, int], scores: list[float]) -> list[int]:
    """SentencePiece's own way (bpe_model.cc): the neighbours that make the best piece become one, the leftmost first."""
    pieces = list(("▁" + text.replace(" ", "▁")) if text else "")
    while True:
        best = max(
            (
                (scores[ids[one + two]], -i)
                for i, (one, two) in enumerate(itertools.pairwise(pieces))
                if one + two in ids
            ),
            default=None,
        )
        if best is None:
            break
        i = -best[1]
        pieces[i : i + 2] = ["".join(pieces[i : i + 2])]
    return [i for piece in pieces for i in ([ids[piece]] if piece in ids else [3 + byte for byte in piece.encode()])]


def test_sentencepiece_ids_are_those_of_its_own_way_and_of_transformers(tmp_path: Path) -> None:
    tokens, scores, types = spm_pieces()
    said = {"model": "llama", "scores": scores, "bos_token_id": 1, "eos_token_id": 2, "unknown_token_id": 0}
    loaded = load(with_tokens(tmp_path / "model.gguf", tokens, types, **said))
    assert loaded.tokenizer is not None
    ids = {token: i for i, token in enumerate(tokens) if types[i] == 1}
    every = [text for text in texts() if text]
    ours = ids_of(loaded.tokenizer, every)
    assert ours == [[1, *by_scores(text, ids, scores)] for text in every]
    theirs: Any = hf.AutoTokenizer.from_pretrained(tmp_path, gguf_file="model.gguf")
    plain = [i for i, text in enumerate(every) if not text.startswith(" ")]  # Metaspace adds no ▁ before one
    assert [ours[i] for i in plain] == [theirs(every[i]).input_ids for i in plain]
    assert loaded.tokenizer.decode(ours[1]) == SENTENCES[1]
    spaceless = load(
        with_tokens(tmp_path / "other.gguf", tokens, types, **said, add_space_prefix=False, add_bos_token=False)
    )
    assert spaceless.tokenizer is not None
    assert spaceless.tokenizer.encode("The").tokens[0][0] == "T"


# WordPiece and Unigram -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("lowercase", [True, False])
def test_wordpiece_ids_are_those_of_bert(lowercase: bool, tmp_path: Path) -> None:
    learnt = hf.BertTokenizer(
        do_lower_case=lowercase, vocab={t: i for i, t in enumerate(("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"))}
    )
    backend = learnt.backend_tokenizer
    trainer = trainers.WordPieceTrainer(
        vocab_size=900,
        special_tokens=["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"],
        limit_alphabet=400,
        show_progress=False,
    )
    backend.train_from_iterator(SENTENCES, trainer)
    vocab = backend.get_vocab()
    pieces = sorted(vocab, key=vocab.__getitem__)
    written = [
        t if t[0] == "[" and t[-1] == "]" and len(t) > 2 else t[2:] if t.startswith("##") else f"▁{t}" for t in pieces
    ]
    header = Header(
        tmp_path / "model.gguf",
        {
            "general.architecture": "bert",
            "tokenizer.ggml.model": "bert",
            "tokenizer.ggml.tokens": written,
            "tokenizer.ggml.token_type": [3] * 5 + [1] * (len(pieces) - 5),
            "tokenizer.ggml.unknown_token_id": 1,
            "tokenizer.ggml.cls_token_id": 2,
            "tokenizer.ggml.seperator_token_id": 3,
        },
        (),
        {},
        32,
    )
    tokenizer, reason = tokenizer_of(header, len(pieces))
    assert tokenizer is not None, reason
    vocab_file = tmp_path / "vocab.txt"
    vocab_file.write_text("\n".join(pieces) + "\n")
    judge = hf.BertTokenizer.from_pretrained(tmp_path, do_lower_case=lowercase)
    assert ids_of(tokenizer, texts()) == [judge(text).input_ids for text in texts()]
    assert [tokenizer.id_to_token(i) for i in range(len(pieces))] == pieces


def test_unigram_ids_are_those_that_were_learnt(tmp_path: Path) -> None:
    learnt = Tokenizer(models.Unigram())
    learnt.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace()])
    special = [AddedToken(text, special=True) for text in ("<pad>", "</s>", "<unk>")]
    learnt.train_from_iterator(
        texts(), trainers.UnigramTrainer(vocab_size=700, special_tokens=special, unk_token="<unk>", show_progress=False)
    )
    pieces = json.loads(learnt.to_str())["model"]["vocab"]
    tokens, scores = [piece for piece, _ in pieces], [float(score) for _, score in pieces]
    said = {"model": "t5", "scores": scores, "eos_token_id": 1, "unknown_token_id": 2, "padding_token_id": 0}
    file = with_tokens(tmp_path / "model.gguf", tokens, [3, 3, 2] + [1] * (len(tokens) - 3), **said)
    tokenizer = load(file).tokenizer
    assert tokenizer is not None
    assert ids_of(tokenizer, texts()) == [[*learnt.encode(text).ids, 1] for text in texts()]


def test_turns_of_a_chat_end_what_is_written(tmp_path: Path) -> None:
    tokens = [*(f"w{i}" for i in range(50)), "<|end|>", "<s>", "</s>"]
    said = {"tokenizer.ggml.model": "llama", "tokenizer.ggml.tokens": tokens, "tokenizer.ggml.scores": [0.0] * 53}
    said |= {
        "tokenizer.ggml.token_type": [1] * 50 + [3] * 3,
        "tokenizer.ggml.eos_token_id": 52,
        "tokenizer.ggml.bos_token_id": 51,
    }
    loaded = load(llama(reference("llama gqa").folder, tmp_path / "model.gguf", values=said))
    assert loaded.end_ids == (52, 50)
    assert loaded.tokens("w1<|end|>").ids[-1] == 50


def test_a_template_that_writes_the_first_token_gets_no_second(tmp_path: Path) -> None:
    tokens, merges = byte_pieces()
    tokens = [*tokens, "<|start|>", "<|turn|>"]
    bos, turn = len(tokens) - 2, len(tokens) - 1
    types = [1] * bos + [3, 3]
    said = {"model": "gpt2", "pre": "llama-bpe", "merges": merges, "bos_token_id": bos}  # which puts BOS before a text
    folder = reference("llama gqa").folder
    config = config_of(folder)
    arrays = arrays_of(folder, "llama", config)
    for name in ("token_embd.weight", "output.weight"):
        arrays[name] = arrays[name].repeat(len(tokens) // len(arrays[name]) + 1, 1)[: len(tokens)]
    values = llama_values(config) | {"tokenizer.ggml.tokens": tokens, "tokenizer.ggml.token_type": types}
    values |= {f"tokenizer.ggml.{key}": value for key, value in said.items()}
    template = "{{ bos_token }}{% for m in messages %}<|turn|>{{ m.content }}{% endfor %}"
    loaded = load(write(tmp_path / "a.gguf", "llama", values | {"tokenizer.chat_template": template}, arrays))
    assert loaded.tokens("Hi").ids[0] == bos
    chat = loaded.chat_tokens([{"role": "user", "content": "Hi"}])
    assert list(chat.ids[:2]) == [bos, turn] and chat.ids.count(bos) == 1
    read = core.trace_chat(loaded, [{"role": "user", "content": "Hi"}]).source
    assert list(read.ids) == list(chat.ids)
    spelt = template.replace("{{ bos_token }}", "<|start|>")  # as some templates write it out
    loaded = load(write(tmp_path / "b.gguf", "llama", values | {"tokenizer.chat_template": spelt}, arrays))
    assert list(loaded.chat_tokens([{"role": "user", "content": "Hi"}]).ids) == list(chat.ids)


def test_a_bert_reads_with_its_own_vocabulary(tmp_path: Path) -> None:
    tokens = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "▁the", "▁cat", "s", *(f"▁x{i}" for i in range(46))]
    said = {
        "tokenizer.ggml.model": "bert",
        "tokenizer.ggml.tokens": tokens,
        "tokenizer.ggml.token_type": [3] * 4 + [1] * 49,
    }
    loaded = load(bert(reference("bert without head").folder, tmp_path / "model.gguf", values=said))
    assert loaded.tokens("The CATS").strings == ("[CLS]", "the", "cat", "##s", "[SEP]")
