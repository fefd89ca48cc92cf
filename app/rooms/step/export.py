"""What a file of Step through says about itself, and the code that gives its numbers again."""

from __future__ import annotations

import re
from datetime import date
from typing import Any

from app.export import about
from core.service import Facts


def described(run: Facts | None) -> dict[str, Any]:
    """Caption, a name for files, and the lines of code that load and trace; the browser adds what is on the screen."""
    today = date.today().isoformat()
    if run is None:
        return {"caption": about.line([f"Headlight {about.version()}", today]), "name": "step", "code": []}
    torch = f"torch {run.torch_version}"
    parts = [
        run.spec.title,
        run.source.text,
        f"{run.device} {run.dtype}",
        f"Headlight {about.version()}, {torch}",
        today,
    ]
    name = re.sub(r"[^a-z0-9]+", "-", run.spec.title.lower()).strip("-") or "model"
    imports = ["import torch", ""] if run.dtype != "float32" else []
    code = [*imports, "import headlight as hl", "from headlight.read.layer_walk import guesses, terms, walk", ""]
    return {"caption": about.line(parts), "name": name, "code": [*code, about.load_line(run), about.trace_line(run)]}
