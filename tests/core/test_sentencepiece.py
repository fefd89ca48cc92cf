"""SentencePiece and tiktoken files: ids equal to those of the library that trained them, and of transformers where it adds to them."""

from __future__ import annotations

import base64
import io
import json
import random
import re
import struct
import warnings
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import sentencepiece as spm
import transformers as hf
from tokenizers import Regex, Tokenizer, pre_tokenizers

from core.checkpoints.tokenizer_files import CONTROL, UNUSED, read_sentencepiece, tokenizer_of
from core.checkpoints.tokenizers import LLAMA3, LLAMA3_MARKS, marian_notices, read_tokenizer
from core.errors import CheckpointError
from core.model.text import tokenize

LINES = [line for line in (Path(__file__).parent / "alice.txt").read_text("utf-8").split("\n") if line.strip()]
MORE = "größe, café naïve 你好世界 こんにちは Привет мир ﬁne ½ Ⅳ"
LLAMA_LIKE: dict[str, Any] = {
    "model_type": "bpe",
    "vocab_size": 700,
    "byte_fallback": True,
    "normalization_rule_name": "identity",
    "remove_extra_whitespaces": False,
}
SYMBOLS = ["<sep>", "@@"]
TRAINED: dict[str, dict[str, Any]] = {
    "unigram": {"model_type": "unigram", "vocab_size": 400},
    "unigram with bytes": {"model_type": "unigram", "vocab_size": 600, "byte_fallback": True},
    "unigram without rules": {"model_type": "unigram", "vocab_size": 400, "normalization_rule_name": "identity"},
    "unigram, lower case": {"model_type": "unigram", "vocab_size": 400, "normalization_rule_name": "nmt_nfkc_cf"},
    "unigram with spaces inside": {"model_type": "unigram", "vocab_size": 400, "split_by_whitespace": False},
    "unigram with symbols": {"model_type": "unigram", "vocab_size": 400, "user_defined_symbols": SYMBOLS},
    "bpe": {"model_type": "bpe", "vocab_size": 500},
    "bpe with symbols": {"model_type": "bpe", "vocab_size": 500, "user_defined_symbols": SYMBOLS},
    "bpe of Llama": LLAMA_LIKE,
    "bpe of Gemma": LLAMA_LIKE
    | {"add_dummy_prefix": False, "user_defined_symbols": ["▁▁", "▁▁▁", "\n\n", "<start_of_turn>"]},
}
PARTS = [
    " ",
    "  ",
    "\t",
    "\n",
    "\r\n",
    "▁",
    "é",
    "e\u0301",
    "e\u0302\u0301",
    "ﬁ",
    "Ⅳ",
    "½",
    "你",
    "🎉",
    "👩‍👩‍👧",
    "\u200b",
]
PARTS += [
    "\u00a0",
    "\u3000",
    "ㄱ",
    "각",
    "가",
    "<sep>",
    "@@",
    "<start_of_turn>",
    "\n\n",
    "a",
    "the ",
    "Alice",
    "１２",
    "…",
]
PARTS += ["－", "\x07", "ß", "İ", "ﾊﾟ", "<", "x"]


@cache
def trained(name: str) -> bytes:
    return train(**TRAINED[name])


def train(**settings: Any) -> bytes:
    out = io.BytesIO()
    lines = [*LINES[:800], *[MORE] * 20]
    spm.SentencePieceTrainer.train(
        sentence_iterator=iter(lines),
        model_writer=out,
        minloglevel=2,
        hard_vocab_limit=False,
        num_threads=1,
        **settings,
    )
    return out.getvalue()


def texts() -> list[str]:
    draw = random.Random(0)
    made = ["".join(draw.choice(PARTS) for _ in range(draw.randint(1, 9))) for _ in range(1500)]
    return [*LINES[:60], " a", "a ", "  a  b ", "", "a<sep>b", "<sep> b", "aaaaaaaaa", "x" * 300, *made]


def alone(text: str) -> bool:
    """A text of one symbol and nothing else, which keeps no space before it here; and one whose symbols overlap."""
    return text.strip(" \n\t\r▁\u00a0\u3000\u200b\x07") in SYMBOLS or "@@@" in text


@pytest.mark.thorough(but=4)
@pytest.mark.parametrize("name", TRAINED)
def test_ids_are_those_of_sentencepiece(name: str, tmp_path: Path) -> None:
    (tmp_path / "tokenizer.model").write_bytes(trained(name))
    theirs = spm.SentencePieceProcessor(model_proto=trained(name))
    ours = tokenizer_of(read_sentencepiece(tmp_path / "tokenizer.model"))
    tried = [text for text in texts() if not ("symbols" in name and alone(text))]
    assert len(tried) > 1400
    for text in tried:
        assert ours.encode(text, add_special_tokens=False).ids == theirs.encode(text), text
    again = Tokenizer.from_str(ours.to_str())
    assert again.encode(LINES[0], add_special_tokens=False).ids == theirs.encode(LINES[0])


@pytest.mark.parametrize("name", ["unigram", "bpe of Llama"])
def test_every_character_is_some_tokens(name: str, tmp_path: Path) -> None:
    (tmp_path / "tokenizer.model").write_bytes(trained(name))
    tokens = tokenize(tokenizer_of(read_sentencepiece(tmp_path / "tokenizer.model")), "Alice was naïve")
    assert "".join(tokens.labels).replace("␣", "") == "Alicewasnaïve"


def folder_of(tmp_path: Path, file: str, data: bytes, **settings: Any) -> Path:
    (tmp_path / file).write_bytes(data)
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(settings))
    return tmp_path


def compare(place: Path, ours: Tokenizer, theirs: Any) -> None:
    for text in [text for text in texts()[:400] if "▁" not in text and "<" not in text]:
        assert ours.encode(text).ids == theirs(text)["input_ids"], text
    assert ours.encode("a b", "c d").ids == theirs("a b", "c d")["input_ids"]


def test_llama(tmp_path: Path) -> None:
    """Its own mark before a text, and added tokens of tokenizer_config.json after the vocabulary."""
    added = {"702": {"content": "<|user|>", "special": True}}
    data = train(**LLAMA_LIKE)
    size = spm.SentencePieceProcessor(model_proto=data).get_piece_size()
    place = folder_of(tmp_path, "tokenizer.model", data, added_tokens_decoder={str(size): added["702"]})
    ours = read_tokenizer(place, "llama")
    assert ours is not None
    own = spm.SentencePieceProcessor(model_proto=data)
    for text in LINES[:40]:
        assert ours.encode(text).ids == [own.bos_id(), *own.encode(text)]
    assert ours.encode("<|user|>").ids[-1] == size
    folder_of(place, "tokenizer.model", data, add_bos_token=False, add_eos_token=True)
    again = read_tokenizer(place, "llama")
    assert again is not None and again.encode("a b").ids == [*own.encode("a b"), own.eos_id()]


AROUND = ("@the cat", "@ the cat", "the@cat", "the @ cat", "the cat@", "@@", "@  the", "a\n@b", "@\nthe")
ALBERT_LIKE: dict[str, Any] = {
    "model_type": "unigram",
    "vocab_size": 400,
    "control_symbols": ["[CLS]", "[SEP]", "[MASK]"],
    "pad_id": 0,
    "unk_id": 1,
    "bos_id": -1,
    "eos_id": -1,
}
DEBERTA_LIKE: dict[str, Any] = {
    "model_type": "unigram",
    "vocab_size": 400,
    "pad_id": 0,
    "bos_id": 1,
    "eos_id": 2,
    "unk_id": 3,
    "pad_piece": "[PAD]",
    "bos_piece": "[CLS]",
    "eos_piece": "[SEP]",
    "unk_piece": "[UNK]",
}
BESIDE_SPECIAL: dict[str, tuple[str, dict[str, Any], Any, tuple[str, ...]]] = {
    "llama": ("tokenizer.model", LLAMA_LIKE, hf.LlamaTokenizer, ("</s>",)),
    "gemma": ("tokenizer.model", TRAINED["bpe of Gemma"], hf.GemmaTokenizer, ("</s>", "<start_of_turn>")),
    "t5": (
        "spiece.model",
        TRAINED["unigram"] | {"pad_id": 0, "eos_id": 1, "unk_id": 2, "bos_id": -1},
        hf.T5Tokenizer,
        ("</s>", "<extra_id_0>"),
    ),
    "xlm-roberta": ("sentencepiece.bpe.model", TRAINED["unigram"], hf.XLMRobertaTokenizer, ("</s>", "<mask>")),
    "albert": ("spiece.model", ALBERT_LIKE, hf.AlbertTokenizer, ("[SEP]", "[MASK]")),
    "deberta-v2": ("spm.model", DEBERTA_LIKE, hf.DebertaV2Tokenizer, ("[SEP]", "[CLS]")),
}


@pytest.mark.parametrize("stated", [{}, {"legacy": True}, {"legacy": False}, {"add_prefix_space": False}], ids=str)
@pytest.mark.parametrize("kind", BESIDE_SPECIAL)
def test_spaces_beside_special_tokens_are_read_as_published(kind: str, stated: dict[str, bool], tmp_path: Path) -> None:
    file, settings, published, marks = BESIDE_SPECIAL[kind]
    data = train(**settings)
    if kind != "t5":  # whose sentinels would have to be listed as well
        marks += ("<|user|>",)
        size = spm.SentencePieceProcessor(model_proto=data).get_piece_size()
        stated = stated | {"added_tokens_decoder": {str(size): {"content": "<|user|>", "special": True}}}  # type: ignore[dict-item]
    place = folder_of(tmp_path, file, data, **stated)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs = published.from_pretrained(place)
    ours = read_tokenizer(place, kind)
    assert ours is not None
    for text in [
        "the cat",
        " the cat",
        "the  cat ",
        *(around.replace("@", mark) for mark in marks for around in AROUND),
    ]:
        expected = theirs(text, add_special_tokens=False)["input_ids"]
        assert ours.encode(text, add_special_tokens=False).ids == expected, text


def test_t5(tmp_path: Path) -> None:
    data = train(model_type="unigram", vocab_size=400, pad_id=0, eos_id=1, unk_id=2, bos_id=-1)
    place = folder_of(tmp_path, "spiece.model", data)
    ours = read_tokenizer(place, "t5")
    assert ours is not None
    own = spm.SentencePieceProcessor(model_proto=data)
    for text in texts()[:300]:
        if "<" not in text:
            assert ours.encode(text).ids == [*own.encode(text), 1]
    assert ours.token_to_id("<extra_id_0>") == own.get_piece_size() + 99
    assert ours.token_to_id("<extra_id_99>") == own.get_piece_size()


@pytest.mark.parametrize("kind", ["xlm-roberta", "xglm"])
def test_fairseqs_numbers(kind: str, tmp_path: Path) -> None:
    """fairseq's four marks, then the pieces from the fourth on, each with the next number (XLMRobertaTokenizer of transformers)."""
    data = train(model_type="unigram", vocab_size=400)
    ours = read_tokenizer(folder_of(tmp_path, "sentencepiece.bpe.model", data), kind)
    assert ours is not None
    own = spm.SentencePieceProcessor(model_proto=data)
    before, after = ([0], [2]) if kind == "xlm-roberta" else ([2], [])
    for text in texts()[:300]:
        if "<" not in text:
            assert ours.encode(text).ids == [*before, *(i + 1 if i else 3 for i in own.encode(text)), *after], text
    size = own.get_piece_size()
    assert [ours.token_to_id(t) for t in ("<s>", "<pad>", "</s>", "<unk>")] == [0, 1, 2, 3]
    assert ours.token_to_id("<mask>" if kind == "xlm-roberta" else "<madeupword0>") == size + 1


CODES = {
    "mbart of 25": [f"l{chr(97 + i)}_XX" for i in range(24)] + ["en_XX"],
    "mbart of more": ["ar_AR", "cs_CZ", "de_DE", "en_XX", "ro_RO"],
    "nllb": ["ace_Latn", "deu_Latn", "eng_Latn", "zul_Latn"],
}


@pytest.mark.parametrize("name", CODES)
def test_languages_have_codes_after_the_vocabulary(name: str, tmp_path: Path) -> None:
    """As fairseq numbers them: four marks, the pieces from the fourth on, the codes, the mask."""
    data, codes = train(model_type="unigram", vocab_size=400), CODES[name]
    kind = "m2m_100" if name == "nllb" else "mbart"
    place = folder_of(tmp_path, "sentencepiece.bpe.model", data, additional_special_tokens=codes)
    ours = read_tokenizer(place, kind)
    assert ours is not None
    own = spm.SentencePieceProcessor(model_proto=data)
    size, first = own.get_piece_size(), codes.index("eng_Latn" if name == "nllb" else "en_XX")
    before, after = ([], [2, size + 1 + first]) if name == "mbart of 25" else ([size + 1 + first], [2])
    for text in texts()[:300]:
        if "<" not in text:
            assert ours.encode(text).ids == [*before, *(i + 1 if i else 3 for i in own.encode(text)), *after], text
    assert [ours.token_to_id(code) for code in codes] == list(range(size + 1, size + 1 + len(codes)))
    assert ours.token_to_id("<mask>") == size + 1 + len(codes)
    other = folder_of(place, "sentencepiece.bpe.model", data, additional_special_tokens=codes, src_lang=codes[1])
    again = read_tokenizer(other, kind)
    assert again is not None and size + 2 in again.encode("a").ids
    folder_of(place, "sentencepiece.bpe.model", data, additional_special_tokens=codes, src_lang="xx")
    with pytest.raises(CheckpointError, match="src_lang is xx, which is none of the folder's languages"):
        read_tokenizer(place, kind)
    folder_of(place, "sentencepiece.bpe.model", data)
    assert read_tokenizer(place, kind) is None, "a folder that lists no languages does not say their numbers"


def test_m2m100(tmp_path: Path) -> None:
    """Pieces by the file, numbers by vocab.json, then the languages, as M2M100Tokenizer of transformers gives them."""
    data = train(model_type="unigram", vocab_size=400)
    own = spm.SentencePieceProcessor(model_proto=data)
    pieces = [own.id_to_piece(i) for i in range(3, own.get_piece_size())]
    vocab = ["<s>", "<pad>", "</s>", "<unk>", *pieces[::-1]]
    (tmp_path / "vocab.json").write_text(json.dumps({piece: i for i, piece in enumerate(vocab)}))
    codes = [f"__{code}__" for code in hf.models.m2m_100.tokenization_m2m_100.FAIRSEQ_LANGUAGE_CODES["m2m100"]]
    place = folder_of(tmp_path, "sentencepiece.bpe.model", data, additional_special_tokens=codes, src_lang="de")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs = hf.M2M100Tokenizer.from_pretrained(place)
    ours = read_tokenizer(place, "m2m_100")
    assert ours is not None
    for text in LINES[:80]:
        assert ours.encode(text).ids == theirs(text)["input_ids"], text
    assert ours.encode("a").ids[0] == len(vocab) + codes.index("__de__") == theirs("a")["input_ids"][0]


def test_pegasus(tmp_path: Path) -> None:
    data = train(model_type="unigram", vocab_size=400, pad_id=0, eos_id=1, unk_id=2, bos_id=-1)
    place = folder_of(tmp_path, "spiece.model", data)
    ours = read_tokenizer(place, "pegasus")
    assert ours is not None
    own = spm.SentencePieceProcessor(model_proto=data)
    for text in texts()[:300]:
        if "<" not in text:
            assert ours.encode(text).ids == [*(i + 103 for i in own.encode(text)), 1], text
    assert [ours.token_to_id(t) for t in ("<pad>", "</s>", "<mask_1>", "<mask_2>", "<unk_2>", "<unk>")] == [
        0,
        1,
        2,
        3,
        4,
        105,
    ]
    folder_of(place, "spiece.model", data, offset=0)
    with pytest.raises(CheckpointError, match="offset is 0, and 3 to 1000"):
        read_tokenizer(place, "pegasus")


def test_albert(tmp_path: Path) -> None:
    data = train(**ALBERT_LIKE)
    place = folder_of(tmp_path, "spiece.model", data, tokenizer_class="AlbertTokenizer")
    ours = read_tokenizer(place, "albert")
    assert ours is not None
    own = spm.SentencePieceProcessor(model_proto=data)
    cls, sep = own.piece_to_id("[CLS]"), own.piece_to_id("[SEP]")
    for text in LINES[:60]:
        plain = text.lower().replace("``", '"').replace("''", '"')
        assert ours.encode(text).ids == [cls, *own.encode(plain), sep], text
    assert ours.encode("ÉCOLE").ids == ours.encode("ecole").ids


@pytest.mark.parametrize("stated", [{}, {"do_lower_case": True, "split_by_punct": True}], ids=str)
def test_deberta(stated: dict[str, bool], tmp_path: Path) -> None:
    place = folder_of(tmp_path, "spm.model", train(**DEBERTA_LIKE), **stated)
    theirs = hf.DebertaV2Tokenizer.from_pretrained(place)
    ours = read_tokenizer(place, "deberta-v2")
    assert ours is not None
    compare(place, ours, theirs)
    for text in [*LINES[:40], "  a\n b\t", "É,é! x", "one [MASK] two"]:
        assert ours.encode(text).ids == theirs(text)["input_ids"], text


@pytest.mark.parametrize("kind", ["unigram", "bpe"])
def test_marian(kind: str, tmp_path: Path) -> None:
    """Pieces by source.spm, numbers by vocab.json, as MarianTokenizer of transformers gives them."""
    source = train(model_type=kind, vocab_size=400)
    own = spm.SentencePieceProcessor(model_proto=source)
    pieces = [own.id_to_piece(i) for i in range(3, own.get_piece_size())]
    words = ["</s>", "<unk>", "▁Hund", "Hund", "▁und", *pieces[::-1], ">>fra<<", "<pad>"]
    words = list(dict.fromkeys(words))
    (tmp_path / "source.spm").write_bytes(source)
    (tmp_path / "target.spm").write_bytes(source)
    (tmp_path / "vocab.json").write_text(json.dumps({word: i for i, word in enumerate(words)}))
    (tmp_path / "tokenizer_config.json").write_text("{}")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs = hf.MarianTokenizer.from_pretrained(tmp_path)
    ours = read_tokenizer(tmp_path, "marian")
    assert ours is not None
    for text in [*LINES[:60], ">>fra<< the cat", "the end"]:
        assert ours.encode(text).ids == theirs(text)["input_ids"], text
    assert ours.decode(ours.encode("the Hund").ids).strip().endswith("Hund")
    assert marian_notices(tmp_path, "marian") == (
        "A text for the decoder is cut by source.spm too, and target.spm is not read.",
    )
    (tmp_path / "vocab.json").write_text(json.dumps({word: i for i, word in enumerate(words[:-9] + words[-2:])}))
    assert "source.spm has 7 pieces that vocab.json does not number" in marian_notices(tmp_path, "marian")[1]


# tiktoken


def ranks() -> dict[bytes, int]:
    """Pieces of bytes with their ranks, merged from a text as tiktoken trains them."""
    found = {bytes([byte]): byte for byte in range(256)}
    words = [[bytes([b]) for b in word.encode()] for line in LINES[:60] for word in re.findall(r" ?\S+", line)]
    for _ in range(300):
        counts: dict[bytes, int] = {}
        for word in words:
            for pair in pairwise(word):
                counts[b"".join(pair)] = counts.get(b"".join(pair), 0) + 1
        best = max(counts, key=lambda each: (counts[each], each))
        found[best] = len(found)
        words = [merge(word, best) for word in words]
    return found


def merge(parts: list[bytes], piece: bytes) -> list[bytes]:
    out: list[bytes] = []
    for part in parts:
        if out and out[-1] + part == piece:
            out[-1] = piece
        else:
            out.append(part)
    return out


def by_rank(word: bytes, known: dict[bytes, int]) -> list[int]:
    """tiktoken's own way, as its _educational.py has it: the pair with the lowest rank is merged, the leftmost first."""
    parts = [bytes([byte]) for byte in word]
    while True:
        pairs = [(known[a + b], i) for i, (a, b) in enumerate(pairwise(parts)) if a + b in known]
        if not pairs:
            return [known[part] for part in parts]
        _, i = min(pairs)
        parts[i : i + 2] = [parts[i] + parts[i + 1]]


def written(known: dict[bytes, int]) -> bytes:
    return b"".join(base64.b64encode(piece) + f" {rank}\n".encode() for piece, rank in known.items())


@pytest.mark.parametrize("file", ["tokenizer.model", "llama.tiktoken"])
def test_ranks_of_bytes(file: str, tmp_path: Path) -> None:
    known = ranks()
    ours = read_tokenizer(folder_of(tmp_path, file, written(known)), "llama")
    assert ours is not None
    cut = pre_tokenizers.Split(Regex(LLAMA3), "isolated")
    first = len(known) + LLAMA3_MARKS.index("<|begin_of_text|>")
    for text in [*LINES[:60], *(text for text in texts()[:300] if text)]:
        expected = [id for word, _ in cut.pre_tokenize_str(text) for id in by_rank(word.encode(), known)]
        assert ours.encode(text).ids == [first, *expected], text
        assert ours.decode(ours.encode(text).ids) == text
    assert (
        len(LLAMA3_MARKS) == 256 and ours.token_to_id("<|eot_id|>") == len(known) + 9
    )  # as Meta's tokenizer.py numbers them


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda d: d.replace(b"\n", b" x\n", 1), "line 1 is not a new piece"),
        (lambda d: d + d.splitlines()[3] + b"\n", "is not a new piece in base64"),
        (lambda d: d + b"YWJjZGVm 9000\n", "must number its pieces from 0 without a gap"),
        (lambda d: b"\n".join(d.splitlines()[:100]) + b"\n", "has no piece for the byte 100"),
    ],
)
def test_damaged_ranks(change: Any, says: str, tmp_path: Path) -> None:
    data = b"".join(base64.b64encode(bytes([i])) + f" {i}\n".encode() for i in range(256))
    with pytest.raises(CheckpointError, match=says):
        read_tokenizer(folder_of(tmp_path, "qwen.tiktoken", change(data)), "qwen2")


def test_ranks_whose_cutting_is_not_known_are_not_read(tmp_path: Path) -> None:
    data = b"".join(base64.b64encode(bytes([i])) + f" {i}\n".encode() for i in range(256))
    assert read_tokenizer(folder_of(tmp_path, "x.tiktoken", data), "mistral") is None


# damaged


def message(*fields: tuple[int, Any]) -> bytes:
    out = b""
    for number, value in fields:
        if isinstance(value, bytes):
            out += varint(number << 3 | 2) + varint(len(value)) + value
        elif isinstance(value, float):
            out += varint(number << 3 | 5) + struct.pack("<f", value)
        else:
            out += varint(number << 3) + varint(value)
    return out


def varint(n: int) -> bytes:
    out = b""
    while n > 127:
        out, n = out + bytes([n & 127 | 128]), n >> 7
    return out + bytes([n])


UNK = (1, message((1, b"<unk>"), (2, 0.0), (3, 2)))
A = (1, message((1, b"a"), (2, -1.0)))


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"", "it has no pieces"),
        (b"\x0a\xff\xff\xff\x7f", "it ends within a field of 268,435,455 bytes"),
        (b"\x0a\x80", "it ends within a number"),
        (b"\x0a" + b"\xff" * 12, "a number in it is too long"),
        (b"\x0b", "begins a field of a kind that there is not"),
        (message(UNK, A, A), "1 of its pieces are there twice"),
        (message(UNK, (1, message((2, -1.0)))), "no text or no score"),
        (message(UNK, (1, message((1, b"a"), (2, float("nan"))))), "no text or no score"),
        (message(UNK, (1, message((1, b"\xff"), (2, -1.0)))), "can't decode byte"),
        (message(UNK, (1, 7)), "a text in it is a number"),
        (message(UNK, A, (2, message((40, 9)))), "its unknown piece is number 9 of 2"),
        (message(UNK, A, (2, message((35, 1)))), "has no piece for each of them"),
        (message(UNK, A, (2, message((3, b"x")))), "a number in it is a text"),
        (trained("bpe")[:-1000], "it ends within"),
    ],
)
def test_damaged_files(data: bytes, says: str, tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match=f"tokenizer.model is not a SentencePiece model.*{re.escape(says)}"):
        read_tokenizer(folder_of(tmp_path, "tokenizer.model", data), "llama")


@pytest.mark.parametrize("field", [(3, 3), (3, 4), (3, 9), (24, 1)])
def test_rules_that_are_not_read(field: tuple[int, int], tmp_path: Path) -> None:
    data = message(UNK, A, (2, message(field)))
    assert read_tokenizer(folder_of(tmp_path, "tokenizer.model", data), "llama") is None


@pytest.mark.parametrize("kind", ["unigram", "bpe"])
def test_pieces_that_are_not_used(kind: str, tmp_path: Path) -> None:
    """A piece that was switched off after the training is found in no text."""
    (tmp_path / "m.model").write_bytes(trained(kind))
    model = read_sentencepiece(tmp_path / "m.model")
    off = next(i for i, piece in enumerate(model.pieces) if piece.text == "the" or piece.text == "▁the")
    pieces = [
        (1, message((1, p.text.encode()), (2, p.score), (3, UNUSED if i == off else p.type)))
        for i, p in enumerate(model.pieces)
    ]
    ours = tokenizer_of(read_sentencepiece(folder_of(tmp_path, "m.model", message(*pieces)) / "m.model"))
    assert off not in ours.encode("the other the", add_special_tokens=False).ids
    assert sum(p.type == CONTROL for p in model.pieces) == 2


def test_a_marian_vocabulary_with_a_gap(tmp_path: Path) -> None:
    (tmp_path / "source.spm").write_bytes(trained("unigram"))
    (tmp_path / "vocab.json").write_text(json.dumps({"<unk>": 0, "</s>": 2}))
    with pytest.raises(CheckpointError, match=r"vocab\.json must number its pieces from 0 without a gap"):
        read_tokenizer(tmp_path, "marian")
