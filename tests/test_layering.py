"""Who may import whom, and what the browser may be sent: read from the source, never run."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from functools import cache
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("core", "app", "benchmarks", "scripts", "tests")
PRODUCT = ("core", "app", "benchmarks", "scripts")

# core, from the ground up: a module imports only from the layers before its own, and from its own package.
CORE_LAYERS: tuple[frozenset[str], ...] = (
    frozenset({"errors", "hooks"}),
    frozenset({"config", "memory", "tasks", "text"}),
    frozenset({"cache", "positions", "rules"}),
    frozenset({"model", "attention"}),
    frozenset({"checkpoints", "interventions", "measures", "planner"}),
    frozenset({"aggregate", "build", "recorder"}),
    frozenset({"capture", "trace", "training"}),
    frozenset({"generate", "report"}),
    frozenset({"engine"}),
    frozenset({"__init__"}),
    frozenset({"__main__"}),
)

# For a module or a package: the top-level packages that it never imports, with the reason beside the rule.
FORBIDDEN: dict[str, frozenset[str]] = {
    # core knows no screen, and transformers is a judge in the tests only
    "core": frozenset({"app", "streamlit", "plotly", "pandas", "altair", "starlette", "transformers"}),
    # the planner works out shapes and bytes on paper, without a tokenizer or a checkpoint
    "core.planner": frozenset({"tokenizers", "safetensors", "huggingface_hub"}),
    "app": frozenset({"transformers", "tests", "benchmarks"}),
    # pure: a Trace and a Selection in, a figure or a table out
    "app.figures": frozenset({"streamlit"}),
    "app.tables": frozenset({"streamlit", "plotly"}),
    "app.theme": frozenset({"streamlit"}),
    "app.words": frozenset({"streamlit", "torch", "plotly", "pandas"}),
    "app.export": frozenset({"streamlit"}),
    # thin: what they show is made by core, figures and tables
    "app.views": frozenset({"torch", "numpy", "plotly", "tokenizers", "safetensors", "huggingface_hub"}),
    "app.controls": frozenset({"torch"}),
}

# Modules that run what a file says, and so have no place in a program that opens other people's files.
UNSAFE_MODULES = frozenset({"pickle", "cPickle", "_pickle", "dill", "cloudpickle", "joblib", "shelve", "marshal"})
UNSAFE_CALLS = frozenset({"torch.load", "torch.hub.load", "pandas.read_pickle", "pd.read_pickle", "eval", "exec"})


def python_files(*packages: str) -> list[Path]:
    return sorted(
        path for package in packages for path in (ROOT / package).rglob("*.py") if "__pycache__" not in path.parts
    )


def module_name(path: Path) -> str:
    """core/planner/runs.py -> core.planner.runs; core/__init__.py -> core.__init__"""
    return ".".join(path.relative_to(ROOT).with_suffix("").parts)


@cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), filename=str(path))


def exists(dotted: str) -> bool:
    path = ROOT.joinpath(*dotted.split("."))
    return path.with_suffix(".py").is_file() or path.is_dir()


def imports(path: Path) -> Iterator[str]:
    """Every module that a file imports, by its full name; an import inside a function counts as well."""
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                package = module_name(path).split(".")[: -node.level]
                base = ".".join([*package, *([node.module] if node.module else [])])
            for alias in node.names:
                # `from package import module` imports that module, `from module import name` only the first
                yield f"{base}.{alias.name}" if exists(f"{base}.{alias.name}") else base


def is_part_of(module: str, package: str) -> bool:
    return module == package or module.startswith(f"{package}.")


def part_of_core(module: str) -> str:
    """core.planner.runs -> planner; core alone is its __init__."""
    parts = module.split(".")
    return parts[1] if len(parts) > 1 else "__init__"


def layer_of(part: str) -> int:
    return next(i for i, layer in enumerate(CORE_LAYERS) if part in layer)


def test_every_module_of_core_has_its_place() -> None:
    known = frozenset().union(*CORE_LAYERS)
    parts = {part_of_core(module_name(path)) for path in python_files("core")}
    assert parts, "core holds no modules: the other tests would pass on nothing"
    assert parts <= known, f"give {sorted(parts - known)} a layer in CORE_LAYERS and in docs/architecture.md"


@pytest.mark.parametrize("path", python_files("core"), ids=module_name)
def test_core_imports_only_what_lies_below(path: Path) -> None:
    part = part_of_core(module_name(path))
    upward = [
        name
        for name in imports(path)
        if is_part_of(name, "core") and part_of_core(name) != part and layer_of(part_of_core(name)) >= layer_of(part)
    ]
    assert not upward, f"{module_name(path)} imports {upward}, which its layer may not"


@pytest.mark.parametrize("path", python_files("core", "app"), ids=module_name)
def test_forbidden_imports(path: Path) -> None:
    module = module_name(path)
    forbidden = frozenset().union(*(names for scope, names in FORBIDDEN.items() if is_part_of(module, scope)))
    found = sorted(name for name in imports(path) if name.split(".")[0] in forbidden)
    assert not found, f"{module} imports {found}"


@pytest.mark.parametrize("path", python_files("app"), ids=module_name)
def test_figures_and_tables_know_no_page(path: Path) -> None:
    module = module_name(path)
    pure = any(is_part_of(module, scope) for scope in ("app.figures", "app.tables", "app.theme", "app.words"))
    pages = ("app.views", "app.controls", "app.state", "app.ui", "app.main")
    found = [name for name in imports(path) if any(is_part_of(name, page) for page in pages)]
    assert not (pure and found), f"{module} imports {found}"


@pytest.mark.parametrize("path", python_files(*PRODUCT), ids=module_name)
def test_nothing_that_runs_a_file(path: Path) -> None:
    modules = sorted(name for name in imports(path) if name.split(".")[0] in UNSAFE_MODULES)
    assert not modules, f"{module_name(path)} imports {modules}"
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.Call):
            assert ast.unparse(node.func) not in UNSAFE_CALLS, f"line {node.lineno}: {ast.unparse(node)}"
            for keyword in node.keywords:
                allowed = isinstance(keyword.value, ast.Constant) and keyword.value.value is False
                assert keyword.arg not in ("allow_pickle", "trust_remote_code") or allowed, f"line {node.lineno}"


@pytest.mark.parametrize("path", python_files("app"), ids=module_name)
def test_no_text_becomes_markup(path: Path) -> None:
    lines = [
        node.lineno
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.keyword) and node.arg in ("unsafe_allow_html", "unsafe_allow_javascript")
    ]
    assert not lines, f"{module_name(path)} passes text on as markup in lines {lines}"


def test_app_hides_no_package() -> None:
    """`streamlit run app/main.py` puts app/ first on the path: app/plotly.py would be everybody's plotly."""
    taken = set(packages_distributions()) | set(sys.stdlib_module_names) | set(PACKAGES)
    names = {path.stem if path.suffix == ".py" else path.name for path in (ROOT / "app").iterdir()}
    assert "torch" in taken
    assert not (names - {"__init__", "__pycache__"}) & taken


def assets(*suffixes: str) -> list[Path]:
    return sorted(path for path in (ROOT / "app").rglob("*") if path.suffix in suffixes)


@pytest.mark.parametrize("path", assets(".js", ".mjs", ".html"), ids=lambda path: path.name)
def test_labels_are_text(path: Path) -> None:
    found = re.findall(
        r"\b(?:innerHTML|outerHTML|insertAdjacentHTML|document\.write|createContextualFragment|eval\()",
        path.read_text(encoding="utf-8"),
    )
    assert not found, f"{path.name} uses {sorted(set(found))}: labels go in with textContent"


@pytest.mark.parametrize("path", assets(".js", ".mjs", ".html", ".css", ".svg"), ids=lambda path: path.name)
def test_no_request_leaves_for_another_host(path: Path) -> None:
    # the namespaces of SVG and XLink are names, which no browser fetches
    text = re.sub(r"http://www\.w3\.org/[\w/]+", "", path.read_text(encoding="utf-8"))
    found = re.findall(r"(?:https?:)?//[\w-]+(?:\.[\w-]+)+[^\s\"'`)]*", text)
    assert not found, f"{path.name} names {found}"
