"""Files of What if about single heads: tables of three tests and of paths, with the code that gives their numbers again. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from typing import Any

import pandas as pd

from app.export import about, files
from app.rooms.whatif import words
from app.rooms.whatif.export import caption
from core.service import Facts, PartTests, PatchRequest, PathEdges, PathRequest


def _begun(run: Facts, other: Facts | None, asked: PatchRequest) -> list[str]:
    """Lines of code as far as the lead."""
    lines = ["import headlight as hl", "", about.load_line(run), about.trace_line(run)]
    if other is not None:
        lines.append(about.trace_line(other).replace("run =", "other =", 1))
    named = [f"{name}={x}" for name in ("answer", "alternative", "position") if (x := getattr(asked, name)) is not None]
    return [
        *lines,
        f"lead = hl.patching.logit_diff_between({', '.join(['run', 'None' if other is None else 'other', *named])})",
    ]


def of_tests(run: Facts, other: Facts | None, asked: PatchRequest, found: PartTests, today: date) -> dict[str, Any]:
    """Caption, code and table of three tests."""
    part = found.part
    taken = "None" if other is None else "other"
    lines = [
        *_begun(run, other, asked),
        f"tests = hl.patching.three_tests(run, {taken}, hl.patching.Component({part.kind!r}, {part.layer}, {part.at}), lead)",
        "print(tests.patching, tests.zero_ablation, tests.mean_ablation, tests.verdict)",
    ]
    said, code = caption(run, today), "\n".join(lines)
    rows = [
        {"test": words.TESTS[name], "change": change, "p_answer": p}
        for name, change, p in zip(found.names, found.changes, found.p, strict=True)
    ]
    name = "headlight-whatif-tests"
    table = files.table_csv(pd.DataFrame(rows), said, code)
    return {"caption": said, "snippet": code, "table": [words.TABLE_TESTS, name, table]}


def of_paths(
    run: Facts, other: Facts, asked: PatchRequest, paths: PathRequest, found: Sequence[PathEdges], today: date
) -> dict[str, Any]:
    """Caption, code and table of paths."""
    named = "" if paths.into is None else f", receivers=[{paths.into!r}]"
    lines = [
        *_begun(run, other, asked),
        f"heads = {list(paths.heads)!r}",
        f"for edge in hl.patch_paths(run, other, heads, lead{named}):",
        "    places = [place and (place.layer, place.head) for place in (edge.sender, edge.receiver)]",
        "    print(*places, edge.input, edge.change)",
    ]
    said, code = caption(run, today), "\n".join(lines)
    rows = [
        {
            "from": words.PATH_WORD if edge.sender is None else f"L{edge.sender.layer} H{edge.sender.head}",
            "to": words.PATH_ANSWER if edge.receiver is None else f"L{edge.receiver.layer} H{edge.receiver.head}",
            "input": edge.input,
            "change": edge.change,
        }
        for some in found
        for edge in some.edges
    ]
    name = "headlight-whatif-paths"
    table = files.table_csv(pd.DataFrame(rows), said, code)
    return {"caption": said, "snippet": code, "name": name, "table": [words.TABLE_PATHS, name, table]}
