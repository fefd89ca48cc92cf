"""What leaves What if as files: captions, tables and the code that gives the numbers again. Pure."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from datetime import date
from difflib import SequenceMatcher
from itertools import zip_longest
from math import log
from typing import Any

import numpy as np
import pandas as pd

from app.export import about, files
from app.rooms.whatif import words
from core.service import (
    AblateHeads,
    AnswerChange,
    BlockEdges,
    Facts,
    HeadDifference,
    HeadPlace,
    Heads,
    PartEstimates,
    PartRows,
    PatchHeads,
    PatchRequest,
    SiteId,
    SweepPart,
    SweepRequest,
)

BITS = 1 / log(2)  # of a nat


def caption(run: Facts, today: date) -> str:
    """One line that every file says of itself."""
    return about.line(
        [
            "Headlight " + about.version(),
            run.spec.title,
            words.CAPTION_TEXT.format(text=run.source.text),
            *([words.CAPTION_EDITS.format(edits=", ".join(run.interventions))] if run.interventions else []),
            f"{run.dtype}, {run.device}",
            today.isoformat(),
        ]
    )


def call(asked: SweepRequest) -> str:
    """The call of core that gives a sweep again."""
    named: dict[str, Any] = {"position": asked.position, "token": asked.token}
    if isinstance(asked, AblateHeads):
        name, named = "sweep_heads(run", {"to": asked.to} | named | {"groups": asked.groups}
    elif isinstance(asked, BlockEdges):
        name = "sweep_edges(run"
        named = {n: getattr(asked, n) for n in ("site", "stack", "layer", "head", "query")} | named
    else:
        name, named = "patch_heads(run, other", {"where": asked.where} | named
    plain = {"groups": False, "to": "zero", "where": "all", "site": "attn"}
    said = [f"{key}={value!r}" for key, value in named.items() if value is not None and plain.get(key) != value]
    return f"found = hl.{', '.join([name, *said])})"


def sweep_code(run: Facts, other: Facts | None, asked: SweepRequest, predicts: bool) -> str:
    """Python that gives the numbers of a sweep again, a line for each."""
    lines = ["import headlight as hl", "", about.load_line(run), about.trace_line(run)]
    if other is not None:
        lines.append(about.trace_line(other).replace("run =", "other =", 1))
    lines.append(call(asked))
    if predicts:
        lines.append("change = found.after.probability[:, 0] - found.before.probability[0, 0]")
    else:
        lines.append("change = found.after.distance")
    lines += ["for place, number in zip(found.places, change):", "    print(place, float(number))"]
    return "\n".join(lines)


def of_sweep(
    run: Facts, other: Facts | None, asked: SweepRequest, parts: Sequence[SweepPart], today: date
) -> dict[str, Any]:
    """What the files of a sweep say: caption, code and its table."""
    predicts = parts[0].sweep.after.distance is None
    said, code = caption(run, today), sweep_code(run, other, asked, predicts)
    rows = []
    for part in parts:
        sweep = part.sweep
        for i, place in enumerate(sweep.places):
            where = (
                {"stack": place.stack, "layer": place.layer, "site": place.site, "head": place.head}
                | ({"heads": place.n} if place.n > 1 else {})
                if isinstance(place, HeadPlace)
                else {"query": place.query, "key": place.key}
            )
            rows.append(where | _numbers(part, i))
    kind = {AblateHeads: "heads", BlockEdges: "looks", PatchHeads: "patch"}[type(asked)]
    name = f"headlight-whatif-{kind}"
    table = files.table_csv(pd.DataFrame(rows), said, code)
    return {"caption": said, "snippet": code, "name": name, "table": [words.TABLE_SWEEP, name, table]}


def parts_code(run: Facts, other: Facts | None, asked: PatchRequest, known: PartEstimates) -> str:
    """Python that gives the numbers of all parts again, a line for each."""
    named = "" if asked.to == "other" else f", to={asked.to!r}"
    named += "" if asked.position is None else f", position={asked.position}"
    taken = "other" if other is not None and asked.to == "other" else "None"
    return "\n".join(
        [
            "import headlight as hl",
            "",
            about.load_line(run),
            about.trace_line(run),
            *([] if other is None or taken == "None" else [about.trace_line(other).replace("run =", "other =", 1)]),
            f"found = hl.attribution_patching(run, {taken}, {known.answer}, {known.alternative}{named})",
            f"parts = hl.patching.run_order(found, {known.tokens!r})",
            f"for rows in hl.patch_components(run, {taken}, parts, [{known.answer}, {known.alternative}]{named}):",
            "    lead = rows.log_p[:, 0] - rows.log_p[:, 1]",
            "    for part, change in zip(rows.parts, lead - found.lead):",
            "        print(part.kind, part.layer, part.at, found.of(part), float(change))",
        ]
    )


def of_parts(
    run: Facts, other: Facts | None, asked: PatchRequest, known: PartEstimates, found: Sequence[PartRows], today: date
) -> dict[str, Any]:
    """For the files of all parts: caption, code, and a table of estimates and exact changes of the lead."""
    said, code = caption(run, today), parts_code(run, other, asked, known)
    labels = run.source.labels
    lead = known.before[0] - known.before[1]
    rows = []
    for part, log_p in ((part, log_p) for each in found for part, log_p in zip(each.parts, each.log_p, strict=True)):
        if part.kind == "head":
            estimate = known.heads[part.layer, part.at]
        elif part.kind == "mlp":
            estimate = known.mlps[part.layer]
        else:
            assert known.resid is not None
            estimate = known.resid[part.layer, known.tokens.index(part.at)]
        rows.append(
            {
                "part": words.PART_KINDS[part.kind],
                "layer": part.layer,
                "head": part.at if part.kind == "head" else "",
                "token": f"{labels[part.at]} {part.at}" if part.kind == "resid" else "",
                "estimate": float(estimate),
                "exact": float(log_p[0] - log_p[1] - lead),
                **{f"log_p {known.labels[t]}": float(p) for t, p in zip(known.watched, log_p, strict=True)},
            }
        )
    name = "headlight-whatif-parts"
    table = files.table_csv(pd.DataFrame(rows), said, code)
    return {"caption": said, "snippet": code, "name": name, "table": [words.TABLE_PARTS, name, table]}


def _numbers(part: SweepPart, row: int) -> dict[str, Any]:
    """The columns of one row."""
    before, after = part.sweep.before, part.sweep.after
    if after.distance is not None:
        return {"distance": float(after.distance[row])}
    assert before.probability is not None and after.probability is not None and after.kl is not None
    labels, found = part.sweep.labels, {}
    for i, token in enumerate(part.sweep.watched):
        name = "" if i == 0 else "_of_the_other"
        found[f"word{name}"] = labels[token]
        found[f"before{name}"] = float(before.probability[0, i])
        found[f"after{name}"] = float(after.probability[row, i])
    return found | {"kl_bits": float(after.kl[row]) * BITS}


def of_side(a: Facts, b: Facts, answer: AnswerChange, moved: Sequence[HeadDifference], today: date) -> dict[str, Any]:
    """What the files of two runs side by side say: caption, code and tables."""
    said = caption(b, today)
    second = [] if b.spec.id == a.spec.id else [about.load_line(b).replace("loaded =", "second =", 1)]
    of_b = about.trace_line(b).replace("run =", "b =", 1)
    lines = ["import headlight as hl", "", about.load_line(a), *second, about.trace_line(a).replace("run =", "a =", 1)]
    lines += [
        of_b.replace("(loaded,", "(second,", 1) if second else of_b,
        "answer = hl.read.comparison.answer_change(a, b)",
    ]
    lines.append("for word in answer.words:\n    print(word)" if answer.words else "print(answer.distance)")
    if moved:
        lines.append("for head in hl.compare(a, b).most_different(5):\n    print(head)")
    code = "\n".join(lines)
    tables = []
    if answer.words:
        columns = [{"word": word.label, "before": word.before, "after": word.after} for word in answer.words]
        tables.append([words.TABLE_WORDS, "headlight-whatif-words", files.table_csv(pd.DataFrame(columns), said, code)])
    if moved:
        heads = [
            {
                "stack_layer": h.name,
                "head": h.head,
                "moved": h.moved,
                "query": h.query,
                "key": h.key,
                "largest": h.largest,
            }
            for h in moved
        ]
        tables.append([words.TABLE_MOVED, "headlight-whatif-moved", files.table_csv(pd.DataFrame(heads), said, code)])
    return {"caption": said, "snippet": code, "tables": tables}


def npz(
    a: Facts, b: Facts, mine: Mapping[SiteId, Heads], theirs: Mapping[SiteId, Heads], answer: AnswerChange, today: date
) -> bytes:
    """Arrays for numpy: before_ and after_ each kind of attention, float32 [layer, head, query, key]; words, vectors, tokens."""
    out = io.BytesIO()
    arrays: dict[str, np.ndarray] = {
        "caption": np.array(caption(b, today)),
        "tokens_before": np.array(a.source.labels),
        "tokens_after": np.array(b.source.labels),
    }
    for side, found in (("before", mine), ("after", theirs)):
        arrays |= {f"{side}_{site}": heads.weights for site, heads in found.items()}
    if answer.words:
        arrays["words"] = np.array([word.label for word in answer.words])
        for side in ("before", "after"):
            given = [getattr(word, side) for word in answer.words]
            arrays[f"{side}_words"] = np.array([np.nan if p is None else p for p in given], np.float32)
    if answer.turned is not None:
        arrays["turned"] = np.array(answer.turned, np.float32)
    np.savez_compressed(out, allow_pickle=False, **arrays)
    return out.getvalue()


def unmatched(a: Sequence[str], b: Sequence[str]) -> list[int]:
    """The tokens of b that have no counterpart in a, word by word."""
    kept: set[int] = set()
    for block in SequenceMatcher(None, a, b, autojunk=False).get_matching_blocks():
        kept.update(range(block.b, block.b + block.size))
    return [i for i in range(len(b)) if i not in kept]


def columns(a: Sequence[str], b: Sequence[str]) -> list[tuple[int | None, int | None]]:
    """Tokens of a and b that stand over each other: equal ones, then what was put in the place of what; None has no counterpart."""
    found: list[tuple[int | None, int | None]] = []
    for _, a0, a1, b0, b1 in SequenceMatcher(None, a, b, autojunk=False).get_opcodes():
        found += zip_longest(range(a0, a1), range(b0, b1))
    return found
