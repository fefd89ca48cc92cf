"""Pre-tokenizers of byte-level vocabularies, by the names in GGUF files.

A name refers to the rules of a published tokenizer.json, which the file does not contain. Similar rules would silently return other
ids, so unknown names are rejected.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tokenizers import Regex, normalizers, pre_tokenizers

_CONTRACTED = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)"
_REST = r"\s*[\r\n]+|\s+(?!\S)|\s+"
_LLAMA3 = rf"{_CONTRACTED}|[^\r\n\p{{L}}\p{{N}}]?\p{{L}}+|\p{{N}}{{1,3}}| ?[^\s\p{{L}}\p{{N}}]+[\r\n]*|{_REST}"
_QWEN2 = rf"{_CONTRACTED}|[^\r\n\p{{L}}\p{{N}}]?\p{{L}}+|\p{{N}}| ?[^\s\p{{L}}\p{{N}}]+[\r\n]*|{_REST}"
_UPPER, _LOWER = r"\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}", r"\p{Ll}\p{Lm}\p{Lo}\p{M}"
_CASED = (
    rf"[^\r\n\p{{L}}\p{{N}}]?[{_UPPER}]*[{_LOWER}]+%s|[^\r\n\p{{L}}\p{{N}}]?[{_UPPER}]+[{_LOWER}]*%s"
    rf"|\p{{N}}%s| ?[^\s\p{{L}}\p{{N}}]+[\r\n/]*|{_REST}"
)
_TEKKEN = _CASED % ("", "", "")
_GPT4O = _CASED % (f"{_CONTRACTED}?", f"{_CONTRACTED}?", "{1,3}")


@dataclass(frozen=True)
class Rules:
    """Rules of a pre-tokenizer."""

    steps: Callable[[], list[pre_tokenizers.PreTokenizer]]
    whole_words: bool = False  # words in the vocabulary are never split (ignore_merges)
    opens: bool = False  # by default a text begins with BOS
    composed: bool = False  # characters are composed first (NFC)

    def pre_tokenizer(self) -> pre_tokenizers.PreTokenizer:
        return pre_tokenizers.Sequence(self.steps())

    def normalizer(self) -> normalizers.Normalizer | None:
        return normalizers.NFC() if self.composed else None


def _gpt2() -> list[pre_tokenizers.PreTokenizer]:
    return [pre_tokenizers.ByteLevel(add_prefix_space=False)]


def _single_digits() -> list[pre_tokenizers.PreTokenizer]:
    return [pre_tokenizers.Digits(individual_digits=True), *_gpt2()]


def _cut(*patterns: str, digits: bool = False) -> Callable[[], list[pre_tokenizers.PreTokenizer]]:
    def steps() -> list[pre_tokenizers.PreTokenizer]:
        return [
            *(pre_tokenizers.Split(Regex(pattern), behavior="isolated") for pattern in patterns),
            *([pre_tokenizers.Digits(individual_digits=True)] if digits else []),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]

    return steps


_LLAMA3_RULES = Rules(_cut(_LLAMA3), whole_words=True, opens=True)
_QWEN2_RULES = Rules(_cut(_QWEN2), composed=True)
RULES: dict[str, Rules] = {
    **dict.fromkeys(("gpt-2", "phi-2", "exaone4", "roberta-bpe"), Rules(_gpt2)),
    **dict.fromkeys(("olmo", "mpt"), Rules(_gpt2, composed=True)),  # GPT-NeoX's
    **dict.fromkeys(("smollm", "starcoder", "refact"), Rules(_single_digits)),
    "command-r": Rules(_single_digits, composed=True),
    **dict.fromkeys(("llama3", "llama-v3", "llama-bpe", "falcon3", "pixtral", "midm-2.0"), _LLAMA3_RULES),
    **dict.fromkeys(("dbrx", "smaug-bpe"), Rules(_cut(_LLAMA3))),
    **dict.fromkeys(("qwen2", "deepseek-r1-qwen", "megrez"), _QWEN2_RULES),
    "stablelm2": Rules(_cut(_QWEN2)),
    "tekken": Rules(_cut(_TEKKEN), whole_words=True, opens=True),
    **dict.fromkeys(("gpt-4o", "kanana2"), Rules(_cut(_GPT4O))),
    "deepseek-coder": Rules(_cut(r"[\r\n]", r"\s?\p{L}+", r"\s?\p{P}+", "[一-龥ࠀ-一가-퟿]+", digits=True)),
    "deepseek-v3": Rules(
        _cut(
            r"\p{N}{1,3}",
            "[一-龥぀-ゟ゠-ヿ]+",
            r"[!\"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+"
            rf"| ?[\p{{P}}\p{{S}}]+[\r\n]*|{_REST}",
        )
    ),
}
