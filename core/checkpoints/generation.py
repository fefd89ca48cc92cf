"""Rules for generated tokens, from generation_config.json, or from config.json in older repositories."""

from __future__ import annotations

from typing import Any

from ..errors import CheckpointError
from ..model.config import ModelConfig
from ..model.next_tokens import NextTokenRule
from .family import Theirs, shown

# Unsupported keys -> their neutral value. They change scores, or depend on more than the text so far.
NOT_APPLIED: dict[str, Any] = {
    "repetition_penalty": 1.0,
    "encoder_repetition_penalty": 1.0,
    "encoder_no_repeat_ngram_size": 0,
    "sequence_bias": None,
    "exponential_decay_length_penalty": None,
    "forced_decoder_ids": None,
    "guidance_scale": 1.0,
}


def _tokens(c: Theirs, key: str) -> tuple[int, ...]:
    """One token or a list of tokens; () if absent. Raises CheckpointError for other values."""
    value = c.any(key, None)
    return () if value is None else _whole(c, key, value if isinstance(value, list) else [value])


def next_token_rule(c: Theirs, config: ModelConfig, end_ids: tuple[int, ...]) -> tuple[NextTokenRule, tuple[str, ...]]:
    """The rule, and a notice for each unsupported setting. Raises CheckpointError naming the key.

    Tokens outside of the vocabulary are ignored.
    """
    if not config.writes:
        return NextTokenRule(), ()
    size = config.vocab_size

    def known(key: str) -> tuple[int, ...]:
        return tuple(i for i in _tokens(c, key) if i < size)

    first = known("forced_bos_token_id")
    if len(first) > 1:
        raise CheckpointError(f"{c.where}: forced_bos_token_id is {shown(list(first))}, but it must be one token.")
    runs = [run for run in _bad_words(c) if max(run) < size]
    # An end token cannot be a bad word, or texts would never end; published code ignores it as well.
    singles = [run[0] for run in runs if len(run) == 1 and run[0] not in end_ids]
    never = tuple(dict.fromkeys((*singles, *known("suppress_tokens"))))
    if len(never) >= size:
        raise CheckpointError(f"{c.where} forbids every token of the vocabulary, so that nothing can be written.")
    fewest_new = c.int("min_new_tokens", 0)
    rule = NextTokenRule(
        never=never,
        never_after=tuple(dict.fromkeys(run for run in runs if len(run) > 1)),
        never_first=known("begin_suppress_tokens"),
        first=first[0] if first else None,
        last=known("forced_eos_token_id"),
        fewest=0 if fewest_new else c.int("min_length", 0),
        fewest_new=fewest_new,
        no_repeat=c.int("no_repeat_ngram_size", 0),
        end_ids=end_ids,
    )
    notices = tuple(
        f"{c.where} asks for {key}={shown(c.values[key])}, which is not applied when this model writes."
        for key, neutral in NOT_APPLIED.items()
        if key in c and c.values[key] != neutral
    )
    return rule, notices


def _bad_words(c: Theirs) -> list[tuple[int, ...]]:
    words = c.any("bad_words_ids", [])
    if not isinstance(words, list) or not all(isinstance(word, list) and word for word in words):
        raise CheckpointError(f"{c.where}: bad_words_ids is {shown(words)}, but it must be a list of lists of tokens.")
    return [_whole(c, "bad_words_ids", word) for word in words]


def generation_values(rule: NextTokenRule) -> dict[str, Any]:
    """Contents of a generation_config.json from which next_token_rule() reads this rule."""
    lists = {
        "bad_words_ids": [list(run) for run in rule.never_after],
        "suppress_tokens": list(rule.never),
        "begin_suppress_tokens": list(rule.never_first),
        "forced_bos_token_id": [] if rule.first is None else [rule.first],
        "forced_eos_token_id": list(rule.last),
        "eos_token_id": list(rule.end_ids),
    }
    numbers = {
        "min_length": rule.fewest,
        "min_new_tokens": rule.fewest_new,
        "no_repeat_ngram_size": rule.no_repeat,
    }
    return {key: value for key, value in (lists | numbers).items() if value}


def _whole(c: Theirs, key: str, values: list[Any]) -> tuple[int, ...]:
    if not all(isinstance(v, int) and not isinstance(v, bool) and v >= 0 for v in values):
        raise CheckpointError(f"{c.where}: {key} is {shown(c.values[key])}, but tokens are whole numbers from 0.")
    return tuple(values)
