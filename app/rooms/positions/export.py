"""What the files of Positions say about themselves: caption, names, and the lines of code that load and run."""

from __future__ import annotations

from datetime import date
from typing import Any

from app.export import about
from app.rooms.positions import words
from core.service import Facts


def described(run: Facts, today: date) -> dict[str, Any]:
    """For the browser: what it puts around its own sentence and numbers."""
    said = [
        run.spec.title,
        words.EXPORT_TOKENS.format(n=len(run.source)),
        f"“{run.source.text}”",
        f"Headlight {about.version()}",
        f"torch {run.torch_version}, {run.dtype}",
        today.isoformat(),
    ]
    return {
        "name": f"headlight-positions-{run.spec.id.rpartition('/')[2].partition('@')[0]}",
        "caption": about.line(said),
        "text": run.source.text,
        "load": about.load_line(run),
        "trace": about.trace_line(run),
    }


def edited(now: Facts) -> dict[str, str]:
    """The edit of a run, as Python writes it, and the line that runs it so."""
    return {
        "edit": ", ".join(now.interventions),
        "again": about.trace_line(now).removeprefix("run = "),
    }
