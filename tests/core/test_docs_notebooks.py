"""The notebooks of docs/ run from the first cell to the last, and show what they say that they show."""

from __future__ import annotations

import ast
import json
from pathlib import Path
from typing import Any

import pytest

NOTEBOOKS = sorted((Path(__file__).resolve().parents[2] / "docs" / "notebooks").glob("*.ipynb"))


def cells(path: Path, kind: str = "code") -> list[str]:
    return [
        "".join(cell["source"]) for cell in json.loads(path.read_text("utf-8"))["cells"] if cell["cell_type"] == kind
    ]


def executed(path: Path) -> list[Any]:
    """The value of each cell of code, as a kernel would show it; None where its last line has none."""
    names: dict[str, Any] = {"__name__": "__main__"}
    values = []
    for number, source in enumerate(cells(path), 1):
        tree = ast.parse(source)
        last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
        exec(compile(tree, f"{path.name}, cell {number}", "exec"), names)
        shown = ast.Expression(last.value) if isinstance(last, ast.Expr) else None
        values.append(eval(compile(shown, f"{path.name}, cell {number}", "eval"), names) if shown else None)
    return values


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


LONG = ("5-causal-tools", "6-what-a-training-changed")


@pytest.mark.thorough(but=2)
@pytest.mark.parametrize(
    "path",
    [pytest.param(path, marks=pytest.mark.thorough if path.stem in LONG else (), id=path.stem) for path in NOTEBOOKS],
)
def test_a_notebook_runs_and_shows_what_it_makes(
    path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    values = [value for value in executed(path) if value is not None]
    said = capsys.readouterr().out
    pictures = [value for value in values if hasattr(value, "_repr_html_") or hasattr(value, "_repr_svg_")]
    assert pictures, "no cell shows a picture"
    if path.stem.startswith("1"):
        assert "'to' looks at 'Mary': 69%, which adds +1.15 to the logit" in said and "future" in values
        assert (tmp_path / "head.pdf").read_bytes().startswith(b"%PDF") and ("ĠMary", "Ġthe", "Ġhis") in values
    if path.stem.startswith("2"):
        assert "This run was made of attention weights" in said
    if path.stem.startswith("4"):
        assert any(isinstance(value, tuple) and value[0] == "future" for value in values)
    if path.stem.startswith("5"):
        changed, heads = values[-1]
        assert values[0] == "ĠMary" and changed[0] == "ĠJohn" and len(heads) == 3
    if path.stem.startswith("6"):
        first, last = next(value for value in values if isinstance(value, tuple) and isinstance(value[0], float))
        assert last < first / 10
        before, after = next(value for value in values if isinstance(value, tuple) and isinstance(value[0], tuple))
        assert before[0] != after[0] == "Ġkind"


def test_there_are_six_without_outputs_and_an_order() -> None:
    assert [path.stem.split("-", 1)[1] for path in NOTEBOOKS] == [
        "first-steps",
        "from-bertviz",
        "from-circuitsvis",
        "from-transformerlens",
        "causal-tools",
        "what-a-training-changed",
    ]
    for path in NOTEBOOKS:
        notebook = json.loads(path.read_text("utf-8"))
        assert all(not cell.get("outputs") for cell in notebook["cells"]), "they are as large as what they show"
        assert len({cell["id"] for cell in notebook["cells"]}) == len(notebook["cells"])
        assert cells(path, "markdown")[0].startswith("# ")
