"""A trial of the opening look on many texts: docs/findings.md, with a sentence for each and whether it is dull by a stated test.

python -m scripts.finding_trial docs/findings.md
"""

from __future__ import annotations

import argparse
import json
import math
import re
import textwrap
import unicodedata
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

import core
from core.checkpoints import Loaded
from core.checkpoints.catalog import SHIPPED
from core.model.text import Tokens
from core.read.findings import Finding
from core.read.head_roles import is_punctuation

TEXTS = Path(__file__).with_name("finding_texts.json")

# Articles, prepositions, conjunctions and auxiliaries: words that say little of a sentence. Pronouns are none of them, because
# whom a pronoun means is a question that people ask of attention.
COMMON = (
    "a an the this that these those some any no such of in on at to from by "
    "for with about into onto over under across along through after before between during against without within up "
    "down off out as than and or but nor so if because although while when where then there "
    "not be is are was were been being am has have had do does did will would can "
    "could should may might must too very just only also der die das den dem des ein "
    "eine einen einem einer eines von vom zu zum zur in im an am auf aus bei mit "
    "nach vor über unter durch für um und oder aber denn weil dass wenn als wie nicht ist "
    "sind waren sein haben wird werden sehr le la les un une des du de d l à "
    "au aux en dans sur sous avec pour par et ou mais que qui est sont était être "
    "a ont el los las una unos unas del al con por para y o pero es era "
    "ser ha في من على إلى عن و ال هي هو של את על לא הוא היא 的 了 是 在 和 们 吗"
)
FUNCTION_WORDS = frozenset(COMMON.split())
LEAST_WEIGHT = 0.1
LEAST_ADDED = 0.4  # logits, of a look at the word just before
POSITIONAL = 0.5  # mean weight on the word before, from which a head looks there whatever the words are
SHORT = 3  # words
MOST_SHOWN = 64  # characters of a text in a table
MOST_WRITTEN = 40  # tokens of a translation
LETTERS = 100  # a vocabulary of fewer tokens has letters and signs, and no words
JOINERS = "\u200d\ufe0f"  # of emoji
ALONE = "\u3040-\u30ff\u3400-\u9fff"  # Japanese and Chinese, where each character is a word
WORD = re.compile(rf"[{ALONE}]|(?:(?![{ALONE}])[\w'’])+")
PART = re.compile(r"(.) \d/\d")  # the label of a token that is a part of a character


@dataclass(frozen=True)
class Row:
    """One text of the trial: its opening look in a sentence, and the reason why it is dull ("" where it is not)."""

    kind: str
    text: str
    target: str  # that an encoder–decoder wrote, else ""
    found: Finding
    sentence: str
    dull: str
    is_short: bool


def judged(run: core.Trace, kind: str) -> Row:
    """A text's opening look, by the test of docs/findings.md."""
    found = core.opening_finding(run)
    target = "" if run.target is None else run.target.text
    return Row(kind, run.source.text, target, found, sentence(run, found), dull(run, found), is_short(run))


def is_short(run: core.Trace) -> bool:
    """Whether a text has one word or two, or of a model that reads letters one token or two."""
    if run.config.vocab_size < LETTERS:
        return sum(not special for special in run.source.special) < SHORT
    return max(len(run.source.text.split()), len(re.findall(rf"[{ALONE}]", run.source.text))) < SHORT


def dull(run: core.Trace, found: Finding) -> str:
    """The reason why a look is dull, the first that holds: see docs/findings.md. "" where none does."""
    record = run.attention.at(found.layer, found.site, found.stack)
    queries, keys = run.tokens_of(record)
    cross, decoder = found.site == "cross_attn", run.config.kind == "decoder"
    back = None if cross else found.query - found.key
    label = PART.sub(r"\1", keys.labels[found.key])
    written = found.kind == "writes" and label.casefold() == found.word.casefold()
    has_words = run.config.vocab_size >= LETTERS
    word, pieces = word_at(keys, found.key), sum(word_at(keys, i) == word_at(keys, found.key) for i in range(len(keys)))
    mean = record.pattern(found.head)[0].diagonal(-1)[1:].mean().item() if back == 1 and len(queries) > 2 else 0.0
    least = LEAST_ADDED if decoder else math.inf
    reasons = {
        "no look to tell of": found.kind == "largest push",
        "at itself": back == 0,
        "where attention rests": keys.special[found.key] or (decoder and found.key == 0),
        "at punctuation": has_words and is_punctuation(label) and not is_emoji(label),
        "at a function word": has_words and label.casefold() in FUNCTION_WORDS and not written,
        "inside one word": has_words and not cross and word is not None and word == word_at(queries, found.query),
        "at a scrap of a word": has_words
        and not cross
        and not written
        and word is not None
        and pieces > 1
        and len(label) < 3
        and word[1] - word[0] > 1,
        "writes no word": has_words and found.kind == "writes" and not writes_a_word(run, found),
        "hardly a look": found.weight < LEAST_WEIGHT,
        "one back": back is not None and abs(back) == 1 and (mean >= POSITIONAL or (found.addition or 0) < least),
    }
    return next((reason for reason, holds in reasons.items() if holds), "")


def writes_a_word(run: core.Trace, found: Finding) -> bool:
    """Whether the next token is no mark, no space, and no end of the text."""
    tokenizer = run.loaded.tokenizer
    assert tokenizer is not None
    added = tokenizer.get_added_tokens_decoder().get(found.token or 0)
    return any(map(str.isalnum, found.word)) and not (added is not None and added.special)


def word_at(tokens: Tokens, i: int) -> tuple[int, int] | None:
    """Where in the text the word is that a token belongs to: a run of letters, or one character of Chinese or Japanese, or an
    emoji. None for a special token, a mark or a space."""
    start, stop = tokens.offsets[i]
    if tokens.special[i]:
        return None
    if is_emoji(tokens.text[start:stop].strip()):
        return start, stop
    return next(
        (match.span() for match in WORD.finditer(tokens.text) if match.start() < stop and match.end() > start), None
    )


def is_emoji(text: str) -> bool:
    """Whether all of a text is pictures, which were typed to say something, as no mark is."""
    return bool(text) and all(unicodedata.category(char) == "So" or char in JOINERS for char in text)


def sentence(run: core.Trace, found: Finding) -> str:
    """The finding in the words of a screen, as a cell of a table in Markdown: tokens are quoted."""
    record = run.attention.at(found.layer, found.site, found.stack)
    queries, keys = run.tokens_of(record)
    query, key, word = map(quoted, (queries.labels[found.query], keys.labels[found.key], found.word))
    head, weight, back = f"head {found.head} of layer {found.layer}", percent(found.weight), found.query - found.key
    if found.kind == "writes":
        way = f"looks from {query} across at" if found.site == "cross_attn" else f"looks back from {query} at"
        if found.site != "cross_attn" and len(queries) > 20:
            way = f"looks {back} words back from {query} at"
        return f"To write {word}, {head} {way} {key}: {weight}. That look alone adds {signed(found)} to the logit of {word}."
    if found.kind == "largest push":
        return f"No single look decides {word}. The one that counts most, {head} from {query} at {key} ({weight}), adds only {signed(found)}."
    if found.site == "cross_attn":
        return f"H{head[1:]} looks from {query} across at {key}: {weight}. Other words give it {percent(found.habit or 0)}."
    way, far = ("back", back) if back > 0 else ("ahead", -back)
    usual = f" {far} word{'s' * (far > 1)} {way} it usually gives {percent(found.habit or 0)}." if far else ""
    return f"H{head[1:]} looks from {query} {way} at {key}: {weight}.{usual}"


def percent(share: float) -> str:
    """Whole from 10 to 98 %, else with one decimal."""
    if share < 0.0005:
        return "<0.1 %"
    if share > 0.9995:
        return ">99.9 %"
    return f"{share * 100:.0f} %" if 0.0995 <= share < 0.985 else f"{share * 100:.1f} %"


def signed(found: Finding) -> str:
    return f"{found.addition or 0:+.2f}".replace("-", "−")


def quoted(text: str) -> str:
    """A text that was typed or written, letter by letter; of a long one its end."""
    shown = text.replace("\n", "↵").replace("`", "'")
    shown = shown if len(shown) <= MOST_SHOWN else "… " + shown[2 - MOST_SHOWN :]
    return f"`{shown}`".replace("|", "\\|")


def text_cell(kind: str, text: str) -> str:
    """The first cell of a text's row, without its translation."""
    return f"{kind}: " * bool(kind) + quoted(text)


def table(rows: list[Row]) -> list[str]:
    """Markdown: kind and text, head, sentence, verdict."""
    lines = ["| text | head | sentence | |", "|---|---|---|---|"]
    for row in rows:
        first = text_cell(row.kind, row.text) + f" → {quoted(row.target)}" * bool(row.target)
        verdict = "short" if row.is_short else (row.dull and f"**dull**: {row.dull}") or "interesting"
        lines.append(f"| {first} | {row.found.layer}.{row.found.head} | {row.sentence} | {verdict} |")
    return lines


WITH_WORDS = ("smollm2", "storyteller", "minilm", "translator")
TINY = tuple(name for name in SHIPPED if name not in WITH_WORDS)
SETS = ("new", "fresh", "unseen")


def texts() -> dict[str, Any]:
    """The inputs: those that the rule was set on by model, new, fresh and unseen ones by kind, captions, and those in letters by task."""
    return json.loads(TEXTS.read_text("utf-8"))


def inputs(name: str) -> dict[str, dict[str, list[str]]]:
    """The texts that have a table of a model, by set and kind: all kinds, and captions for the Translator; of a tiny one those of
    its own letters, for it reads no others."""
    known = texts()
    if name in TINY:
        return {"new": {"": known["letters"][name.partition("-")[0]]}}
    captions = {"new": known["captions"], **{part: known[f"{part} captions"] for part in SETS[1:]}}
    return {part: known[part] | ({"caption": captions[part]} if name == "translator" else {}) for part in SETS}


def rows_of(loaded: Loaded, by_kind: dict[str, list[str]]) -> list[Row]:
    """Each text opened; an encoder–decoder writes its own target."""
    rows: list[Row] = []
    for kind, some in by_kind.items():
        for text in some:
            target = None
            if loaded.config.kind == "encoder-decoder":
                (written,) = core.generate(loaded, text, max_tokens=MOST_WRITTEN)
                target = written.text
            rows.append(judged(core.trace(loaded, text, target), kind))
    return rows


def share(rows: list[Row]) -> str:
    """How many are dull of those that are not short: "9 of 90 (10 %)"."""
    counted = [bool(row.dull) for row in rows if not row.is_short]
    return f"{sum(counted)} of {len(counted)} ({100 * sum(counted) / len(counted):.0f} %)"


def page(head: str) -> str:
    """The page, all texts opened on all models that ship: what stands above "Shares" stays, and the rest is written again."""
    shares = ["| model | texts | dull | opens on “writes” | short |", "|---|---|---|---|---|"]
    tables: list[str] = []
    for name in (*WITH_WORDS, *TINY):
        loaded = core.load(name)
        old = texts()["set on"].get(name)
        for part, by_kind in {**({"set on": old} if old else {}), **inputs(name)}.items():
            rows = rows_of(loaded, by_kind)
            writes = sum(row.found.kind == "writes" for row in rows if not row.is_short)
            short = sum(row.is_short for row in rows)
            shares.append(f"| {loaded.spec.title}, {part} | {len(rows)} | {share(rows)} | {writes} | {short} |")
            if part != "set on":
                tables += ["", f"## {loaded.spec.title}, {part}", "", *table(rows)]
    return "\n".join([head.rstrip(), "", "## Shares", "", *shares, *tables]) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m scripts.finding_trial",
        description=textwrap.dedent(__doc__ or ""),
        formatter_class=argparse.RawTextHelpFormatter,
    )
    parser.add_argument("page", type=Path, help="written again from its part 'Shares' on")
    path = parser.parse_args().page
    torch.set_num_threads(1)  # sums in one order, so that the page is the same each time
    path.write_text(page(path.read_text("utf-8").split("\n## Shares")[0]), "utf-8")


if __name__ == "__main__":
    main()
