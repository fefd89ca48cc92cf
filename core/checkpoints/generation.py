"""The tokens that the author of a checkpoint lets it write: generation_config.json, or config.json in older repositories."""

from __future__ import annotations

from typing import Any

from ..errors import CheckpointError
from ..model.config import ModelConfig
from ..model.next_tokens import NextTokenRule
from .family import Theirs, shown

# They change scores without forbidding or forcing anything, or depend on more than the text so far. With this value: nothing.
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
    """One token, or a list of them; () when absent. Raises CheckpointError for anything else."""
    value = c.any(key, None)
    return () if value is None else _whole(c, key, value if isinstance(value, list) else [value])


def next_token_rule(c: Theirs, config: ModelConfig, end_ids: tuple[int, ...]) -> tuple[NextTokenRule, tuple[str, ...]]:
    """The rule, and a sentence for each thing that is asked for and not done. Raises CheckpointError naming the key.

    Tokens beyond the vocabulary cannot be written anyway and are left out.
    """
    if not config.writes:
        return NextTokenRule(), ()
    size = config.vocab_size

    def known(key: str) -> tuple[int, ...]:
        return tuple(i for i in _tokens(c, key) if i < size)

    words = c.any("bad_words_ids", [])
    if not isinstance(words, list) or not all(isinstance(word, list) and word for word in words):
        raise CheckpointError(f"{c.where}: bad_words_ids is {shown(words)}, but it must be a list of lists of tokens.")
    runs = [_whole(c, "bad_words_ids", word) for word in words]
    runs = [run for run in runs if max(run) < size]
    # A text could never end if its end were a bad word, so published code leaves that out.
    alone = [run[0] for run in runs if len(run) == 1 and run[0] not in end_ids]
    first, last = known("forced_bos_token_id"), known("forced_eos_token_id")
    if len(first) > 1:
        raise CheckpointError(f"{c.where}: forced_bos_token_id is {shown(list(first))}, but it must be one token.")
    fewest_new = c.int("min_new_tokens", 0)
    never = tuple(dict.fromkeys((*alone, *known("suppress_tokens"))))
    if len(never) >= size:
        raise CheckpointError(f"{c.where} forbids every token of the vocabulary, so that nothing can be written.")
    rule = NextTokenRule(
        never=never,
        never_after=tuple(dict.fromkeys(run for run in runs if len(run) > 1)),
        never_first=known("begin_suppress_tokens"),
        first=first[0] if first else None,
        last=last,
        fewest=0 if fewest_new else c.int("min_length", 0),
        fewest_new=fewest_new,
        no_repeat=c.int("no_repeat_ngram_size", 0),
        end_ids=end_ids,
    )
    told = tuple(
        f"{c.where} asks for {key}={shown(c.values[key])}, which is not applied when this model writes."
        for key, nothing in NOT_APPLIED.items()
        if key in c and c.values[key] != nothing
    )
    return rule, told


def generation_values(rule: NextTokenRule) -> dict[str, Any]:
    """The contents of a generation_config.json from which next_token_rule() reads this rule again."""
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
