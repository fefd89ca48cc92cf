"""Special tokens, and rules for generated tokens, from generation_config.json, or from config.json in older repositories."""

from __future__ import annotations

from typing import Any

from tokenizers import Tokenizer

from ..errors import CheckpointError
from ..model.config import ModelConfig
from ..model.next_tokens import NextTokenRule
from .family import Family, Theirs, shown

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
    return rule, _not_applied(c)


def _not_applied(c: Theirs) -> tuple[str, ...]:
    return tuple(
        f"{c.where} asks for {key}={shown(c.values[key])}, which is not applied when this model writes."
        for key, neutral in NOT_APPLIED.items()
        if key in c and c.values[key] != neutral
    )


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


def special_ids(
    source_config: Theirs, generation: Theirs | None, family: Family, config: ModelConfig, tokenizer: Tokenizer | None
) -> dict[str, Any]:
    """pad_id, has_pad, start_id and end_ids of a model. Padding is masked, so a model without a padding token uses its end token, or 0."""

    def all_stated(place: Theirs | None, key: str) -> list[int]:
        value = None if place is None else place.any(key, None)
        values = value if isinstance(value, list) else [value]  # Llama 3 has several end tokens
        whole = [v for v in values if isinstance(v, int) and not isinstance(v, bool)]
        return [v for v in whole if 0 <= v < config.vocab_size]

    def stated(key: str) -> int | None:
        return next(iter(all_stated(source_config, key) + all_stated(generation, key)), None)

    named = [tokenizer.token_to_id(name) for name in ("[PAD]", "<pad>")] if tokenizer is not None else []
    end = stated("eos_token_id")
    # generation_config.json takes precedence.
    ends = all_stated(generation, "eos_token_id") or all_stated(source_config, "eos_token_id")
    # If positions skip the padding token, no other token may be used as padding.
    own = [config.uncounted_id, stated("pad_token_id"), *named]
    pad_id = next(i for i in (*own, end, 0) if i is not None and i < config.vocab_size)
    start = None
    if config.kind == "encoder-decoder":
        start = stated("decoder_start_token_id")
        start = end if start is None and family.start_token == "eos" else start
        start = pad_id if start is None else start
    return {
        "pad_id": pad_id,
        "has_pad": pad_id in own,
        "start_id": start,
        "end_ids": tuple(dict.fromkeys(ends)),
    }


def custom_code_notices(source_config: Theirs, family: Family) -> tuple[str, ...]:
    """Notice about custom code of a repository (auto_map), which is never run."""
    classes = source_config.inside("auto_map").values
    names = sorted(
        {str(name) for value in classes.values() for name in (value if isinstance(value, list) else [value])}
    )
    if not names:
        return ()
    return (
        f"The repository brings code of its own ({shown(', '.join(names))}, in auto_map of config.json). It is not run: this is "
        f"{family.title} as published, and where that code does otherwise its numbers are others.",
    )
