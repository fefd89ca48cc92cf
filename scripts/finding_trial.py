"""A trial of the opening look on many texts: docs/findings.md, with a sentence for each and whether it is dull by a stated test.

python -m scripts.finding_trial docs/findings.md
"""

from __future__ import annotations

import argparse
import textwrap
from dataclasses import dataclass
from pathlib import Path

import core
from core.read.head_roles import is_punctuation, spaced_words
from scripts.finding_texts import MINILM, SMOLLM2, STORYTELLER, TRANSLATOR

# Articles, prepositions, conjunctions and auxiliaries: words that say little of a sentence. Pronouns are none of them, because
# whom a pronoun means is a question that people ask of attention.
FUNCTION_WORDS = (
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
    "ser ha "
)
LEAST_WEIGHT = 0.1
POSITIONAL = 0.5  # mean weight on the word before, from which a head looks there whatever the words are


@dataclass(frozen=True)
class Row:
    """One text of the trial: its opening look in a sentence, and the reason why it is dull ("" where it is not)."""

    kind: str
    text: str
    found: core.Finding
    sentence: str
    dull: str
    is_short: bool


def judged(run: core.Trace, kind: str) -> Row:
    """A text's opening look, by the test of docs/findings.md."""
    found = core.opening_look(run)
    record = run.attention.at(found.layer, found.site, found.stack)
    queries, keys = run.tokens_of(record)
    cross = found.site == "cross_attn"
    words, label = spaced_words(queries), keys.labels[found.key]
    mean = 0.0
    if not cross and found.query - found.key == 1 and len(queries) > 2:
        pattern = record.pattern(found.head)[0]
        mean = pattern.diagonal(-1)[1:].mean().item()
    reasons = {
        "no look to tell of": found.kind == "largest push",
        "at punctuation": is_punctuation(label) or keys.special[found.key],
        "at a function word": label.casefold() in FUNCTION_WORDS.split() and label.casefold() != found.word.casefold(),
        "at a scrap of a word": len(label) < 3
        and sum(words[i] == words[found.key] and not is_punctuation(other) for i, other in enumerate(keys.labels)) > 1
        and label.isalpha()
        and label.casefold() != found.word.casefold()
        and not cross,
        "writes no word": found.kind == "writes" and not any(map(str.isalnum, found.word)),
        "hardly a look": found.weight < LEAST_WEIGHT,
        "one back, whatever the words are": mean >= POSITIONAL,
        "inside one word": not cross
        and words[found.query] == words[found.key]
        and not is_punctuation(queries.labels[found.query]),
    }
    typed = [special for special in queries.special if not special]
    text = run.source.text if run.target is None else f"{run.source.text} → {run.target.text}"
    dull = next((reason for reason, holds in reasons.items() if holds), "")
    return Row(kind, text, found, sentence(run, found), dull, len(typed) < 3 and not cross)


def sentence(run: core.Trace, found: core.Finding) -> str:
    """The finding in the words of a screen."""
    record = run.attention.at(found.layer, found.site, found.stack)
    queries, keys = run.tokens_of(record)
    query, key = queries.labels[found.query], keys.labels[found.key]
    head, weight, back = f"head {found.head} of layer {found.layer}", percent(found.weight), found.query - found.key
    if found.kind == "writes":
        way = f"looks from {query} across at" if found.site == "cross_attn" else f"looks back from {query} at"
        if found.site != "cross_attn" and len(queries) > 20:
            way = f"looks {back} words back from {query} at"
        return f"To write {found.word}, {head} {way} {key}: {weight}. That look alone adds {signed(found)} to the logit of {found.word}."
    if found.kind == "largest push":
        return f"No single look decides {found.word}. The one that counts most, {head} from {query} at {key} ({weight}), adds only {signed(found)}."
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


def signed(found: core.Finding) -> str:
    return f"{found.addition or 0:+.2f}".replace("-", "−")


def table(rows: list[Row]) -> list[str]:
    """Markdown: kind and text, head, sentence, verdict."""
    lines = ["| text | head | sentence | |", "|---|---|---|---|"]
    for row in rows:
        shown = row.text.replace("\n", "↵")
        shown = shown if len(shown) <= 64 else "… " + shown[-62:]
        verdict = "short" if row.is_short else (row.dull and f"**dull**: {row.dull}") or "interesting"
        place = f"{row.found.layer}.{row.found.head}"
        cells = (f"{row.kind}: {shown}" if row.kind else shown, place, row.sentence.replace("\n", "↵"), verdict)
        lines.append(
            "| "
            + " | ".join(
                cell.replace("|", "\\|").replace("<", "&lt;").replace("*", "\\*") if i < 3 else cell
                for i, cell in enumerate(cells)
            )
            + " |"
        )
    return lines


def trial() -> dict[str, list[Row]]:
    """All texts of all models that ship and were trained on language, by title."""
    found: dict[str, list[Row]] = {}
    smollm2 = core.load("smollm2")
    found[smollm2.spec.title] = [
        judged(core.trace(smollm2, text), kind) for kind, texts in SMOLLM2.items() for text in texts
    ]
    for name, texts in (("storyteller", STORYTELLER), ("minilm", MINILM)):
        loaded = core.load(name)
        found[loaded.spec.title] = [judged(core.trace(loaded, text), "") for text in texts]
    loaded = core.load("translator")
    rows = found[loaded.spec.title] = []
    for text in TRANSLATOR:
        (written,) = core.generate(loaded, text, max_tokens=24)
        rows.append(judged(core.trace(loaded, text, written.text), ""))
    return found


def page(found: dict[str, list[Row]], head: str) -> str:
    """The page: what stands above its first table stays, and the tables are written again."""
    lines = [
        head.rstrip(),
        "",
        "## Shares",
        "",
        "| model | texts | dull | opens on “writes” | too short to judge |",
        "|---|---|---|---|---|",
    ]
    for title, rows in found.items():
        judged_rows = [row for row in rows if not row.is_short]
        dull = sum(bool(row.dull) for row in judged_rows)
        writes = sum(row.found.kind == "writes" for row in judged_rows)
        lines.append(
            f"| {title} | {len(rows)} | {dull} of {len(judged_rows)} ({100 * dull / len(judged_rows):.0f} %) | {writes} | {len(rows) - len(judged_rows)} |"
        )
    for title, rows in found.items():
        lines += ["", f"## {title}", "", *table(rows)]
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m scripts.finding_trial",
        description=textwrap.dedent(__doc__ or ""),
        formatter_class=argparse.RawTextHelpFormatter,
    )
    parser.add_argument("page", type=Path, help="written again from its part 'Shares' on")
    path = parser.parse_args().page
    head = path.read_text("utf-8").split("\n## Shares")[0]
    path.write_text(page(trial(), head), "utf-8")


if __name__ == "__main__":
    main()
