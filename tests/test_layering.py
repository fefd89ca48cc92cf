"""Who may import whom, and what the browser may be sent: read from the source, never run."""

from __future__ import annotations

import ast
import dataclasses
import os
import re
import sys
from collections.abc import Iterator
from functools import cache
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

from app.kit.room import Room
from app.shell import bar, registry
from tests.every import of_every

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("core", "cluster", "app", "benchmarks", "scripts", "tests")
PRODUCT = ("core", "cluster", "app", "benchmarks", "scripts")

# core, by folder, from the ground up: a module imports from its own folder and from the folders before it. docs/architecture.md
# shows the same order, and a test holds the two together.
CORE_LAYERS: tuple[frozenset[str], ...] = (
    frozenset({"errors"}),
    frozenset(
        {"device", "dataframes", "progress", "old_names", "secret", "version"}
    ),  # with errors the ground: modules of no folder
    frozenset({"model"}),
    frozenset({"edits"}),
    frozenset({"plan"}),
    frozenset({"checkpoints"}),
    frozenset({"run"}),
    frozenset({"read"}),
    frozenset({"patching"}),
    frozenset({"trace"}),  # a run with the methods of read and patching
    frozenset({"write"}),
    frozenset({"learn"}),
    frozenset({"labs"}),
    frozenset({"service"}),
    frozenset({"peers"}),
    frozenset({"__init__"}),
    frozenset({"__main__"}),
)

# app, by folder, from the ground up: a module imports from its own folder and from the folders before its layer.
APP_LAYERS: tuple[frozenset[str], ...] = (
    frozenset({"languages"}),
    frozenset({"streamlit_edge"}),  # what Streamlit does not promise
    frozenset({"transport"}),
    frozenset({"session"}),
    frozenset({"kit", "export"}),
    frozenset({"attention", "sizes"}),
    frozenset({"classroom"}),
    frozenset({"shell"}),
    frozenset({"rooms"}),
    frozenset({"notebook"}),  # a run as a page, without Streamlit
)
OUTSIDE = frozenset(
    {"app.__init__", "app.main", "app.start", "app.ui"}
)  # the server, what starts it, and the script that runs per visitor

# For a module, a package, or every module of app with that name: the top-level packages that it never imports, with the
# reason beside the rule.
FORBIDDEN: dict[str, frozenset[str]] = {
    # core knows no screen, and transformers is a judge in the tests, or a person's own that core.wrap is given
    "core": frozenset({"app", "streamlit", "plotly", "pandas", "altair", "starlette", "transformers"}),
    # the planner works out shapes and bytes on paper, without a tokenizer or a checkpoint
    "core.plan": frozenset({"tokenizers", "safetensors", "huggingface_hub"}),
    "app": frozenset({"transformers", "tests", "benchmarks"}),
    "app.export": frozenset({"streamlit"}),
    "app.notebook": frozenset({"streamlit"}),
    # pure: numbers in, a figure, a table or a sentence out
    "figure": frozenset({"streamlit"}),
    "figures": frozenset({"streamlit"}),
    "inspect": frozenset({"streamlit"}),
    "tables": frozenset({"streamlit", "plotly"}),
    "numbers": frozenset({"streamlit", "plotly", "torch"}),
    "theme": frozenset({"streamlit"}),
    "words": frozenset({"streamlit", "torch", "plotly", "pandas"}),
    "export": frozenset({"streamlit"}),
    "selection": frozenset({"streamlit"}),
    "transform": frozenset({"streamlit"}),
    "picture": frozenset({"streamlit"}),
    "place": frozenset({"streamlit"}),
    "params": frozenset({"streamlit"}),
    "messages": frozenset({"streamlit"}),
    # thin: what they show is made by core, figures and tables
    "view": frozenset({"torch", "numpy", "plotly", "tokenizers", "safetensors", "huggingface_hub"}),
    "request": frozenset({"torch"}),
    "bar": frozenset({"torch"}),
}

# What a module may import all the same, inside a function: whoever never calls that does without it (tests/test_package.py).
LAZILY: dict[str, frozenset[str]] = {
    "core.dataframes": frozenset({"pandas"}),
    # core.wrap, for a person's own model of transformers
    "core.run.call_records": frozenset({"transformers"}),
    "core.run.wrapped": frozenset({"transformers"}),
    "core.run.wrapped_trace": frozenset({"transformers"}),
}

# Modules that run what a file says, and so have no place in a program that opens other people's files.
UNSAFE_MODULES = frozenset({"pickle", "cPickle", "_pickle", "dill", "cloudpickle", "joblib", "shelve", "marshal"})
UNSAFE_CALLS = frozenset({"torch.load", "torch.hub.load", "pandas.read_pickle", "pd.read_pickle", "eval", "exec"})


def python_files(*packages: str) -> list[Path]:
    return sorted(
        path for package in packages for path in (ROOT / package).rglob("*.py") if "__pycache__" not in path.parts
    )


def module_name(path: Path) -> str:
    """core/plan/peak.py -> core.plan.peak; core/__init__.py -> core.__init__"""
    return ".".join(path.relative_to(ROOT).with_suffix("").parts)


@cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), filename=str(path))


def exists(dotted: str) -> bool:
    path = ROOT.joinpath(*dotted.split("."))
    return path.with_suffix(".py").is_file() or path.is_dir()


@cache
def imports(path: Path) -> tuple[str, ...]:
    """Every module that a file imports, by its full name; an import inside a function counts as well."""
    return tuple(_imports(path))


def _imports(path: Path) -> Iterator[str]:
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
    """core.plan.peak -> plan; core alone is its __init__."""
    parts = module.split(".")
    return parts[1] if len(parts) > 1 else "__init__"


def layer_of(part: str) -> int:
    return next(i for i, layer in enumerate(CORE_LAYERS) if part in layer)


def test_every_module_of_core_has_its_place() -> None:
    known = frozenset().union(*CORE_LAYERS)
    parts = {part_of_core(module_name(path)) for path in python_files("core")}
    assert parts, "core holds no modules: the other tests would pass on nothing"
    assert parts <= known, f"give {sorted(parts - known)} a layer in CORE_LAYERS and in docs/architecture.md"


@of_every(python_files("core"), module_name)
def test_core_imports_only_what_lies_below(path: Path) -> None:
    part = part_of_core(module_name(path))
    upward = [
        name
        for name in imports(path)
        if is_part_of(name, "core") and part_of_core(name) != part and layer_of(part_of_core(name)) >= layer_of(part)
    ]
    assert not upward, f"{module_name(path)} imports {upward}, which its layer may not"


@of_every(python_files("core", "app"), module_name)
def test_forbidden_imports(path: Path) -> None:
    module = module_name(path)
    name = module.rsplit(".", 1)[1] if is_part_of(module, "app") else None
    forbidden = frozenset().union(
        *(names for scope, names in FORBIDDEN.items() if is_part_of(module, scope) or scope == name)
    )
    forbidden -= LAZILY.get(module, frozenset())
    found = sorted(name for name in imports(path) if name.split(".")[0] in forbidden)
    assert not found, f"{module} imports {found}"


@pytest.mark.parametrize("module", LAZILY)
def test_what_is_optional_is_imported_when_it_is_called(module: str) -> None:
    tree = tree_of(ROOT / Path(*module.split(".")).with_suffix(".py"))
    at_once = {node for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom)}
    names = {
        (node.module or "") if isinstance(node, ast.ImportFrom) else node.names[0].name
        for node in at_once
        if not isinstance(node, ast.ImportFrom) or not node.level
    }
    assert not {name.split(".")[0] for name in names} & LAZILY[module]


# cluster, from the ground up: the front end imports what lies below Ray, and Ray's side what it needs of all.
CLUSTER: dict[str, tuple[str, ...]] = {
    "cluster.__init__": (),
    "cluster.wire": ("core",),
    "cluster.token": (),
    "cluster.remote": ("core", "cluster.token", "cluster.wire"),
    "cluster.answering": ("core", "cluster.token", "cluster.wire"),
    "cluster.deployment": (
        "core",
        "cluster.token",
        "cluster.wire",
        "cluster.answering",
        "app.session.idle",
        "app.session.models",
        "app.transport.logs",
        "app.transport.metrics",
        "app.transport.tracebacks",
    ),
    "cluster.__main__": ("core", "cluster.deployment"),
}
WITH_RAY = frozenset(
    {"cluster.deployment", "cluster.__main__", "core.patching.atlas_ray", "benchmarks.replicas"}
)  # no front end needs them


@of_every(python_files("cluster"), module_name)
def test_cluster_imports_only_what_lies_below(path: Path) -> None:
    allowed = CLUSTER[module_name(path)]
    ours = [name for name in imports(path) if name.split(".")[0] in PACKAGES]
    found = [name for name in ours if name != "cluster" and not any(is_part_of(name, part) for part in allowed)]
    assert not found, f"{module_name(path)} imports {found}, which its layer may not"


@of_every(python_files(*PRODUCT), module_name)
def test_only_the_machines_that_run_models_need_ray(path: Path) -> None:
    module = module_name(path)
    ours = "cluster.remote" if module == "app.session.service" else ""
    found = [name for name in imports(path) if name.split(".")[0] == "ray" and module not in WITH_RAY]
    if is_part_of(module, "app") or is_part_of(module, "core"):
        found += [name for name in imports(path) if name.split(".")[0] == "cluster" and name != ours]
    assert not found, f"{module} imports {found}: a front end and core do without"


def folder_of(module: str) -> str:
    """app.kit.theme -> kit"""
    return module.split(".")[1]


def app_layer_of(folder: str) -> int:
    return next(i for i, layer in enumerate(APP_LAYERS) if folder in layer)


def room_of(module: str) -> str | None:
    """app.rooms.memory.view -> memory; None outside of a room."""
    parts = module.split(".")
    return parts[2] if parts[1] == "rooms" and len(parts) > 2 and parts[2] != "__init__" else None


def test_every_room_has_its_line_in_the_registry_and_declares_itself() -> None:
    folders = {path.parent.name for path in (ROOT / "app" / "rooms").glob("*/__init__.py")}
    assert folders == {room.id for room in registry.rooms()} == set(registry.ROOMS)
    assert {room.group for room in registry.rooms()} <= set(bar.GROUPS)


def test_every_field_of_a_room_is_of_several_rooms() -> None:
    """What one room alone needs it registers itself, with what lies below: app/kit, app/session."""
    rooms = registry.rooms()
    for field in dataclasses.fields(Room):
        default = field.default if field.default_factory is dataclasses.MISSING else field.default_factory()
        those = [room.id for room in rooms if getattr(room, field.name) != default]
        assert len(those) > 1, f"Room.{field.name} is set by {those} alone"


@of_every(python_files("app/rooms"), module_name)
def test_no_room_reaches_another_through_the_registry(path: Path) -> None:
    found = [name for name in imports(path) if is_part_of(name, "app.shell.registry") or is_part_of(name, "importlib")]
    assert not found, f"{module_name(path)} imports {found}: what it needs of other rooms is told below them"


def test_every_module_of_app_has_its_place() -> None:
    folders = frozenset().union(*APP_LAYERS)
    modules = [module_name(path) for path in python_files("app")]
    assert modules, "app holds no modules: the other tests would pass on nothing"
    lost = [module for module in modules if module not in OUTSIDE and folder_of(module) not in folders]
    assert not lost, f"{lost} stand outside a room and outside a shared folder"


@of_every(python_files("app"), module_name)
def test_app_imports_only_what_lies_below(path: Path) -> None:
    module = module_name(path)
    if module in OUTSIDE:
        return
    folder = folder_of(module)
    for name in imports(path):
        if not is_part_of(name, "app"):
            continue
        assert name != "app" and name not in OUTSIDE, f"{module} imports {name}"
        other = folder_of(name)
        if other != folder:
            assert app_layer_of(other) < app_layer_of(folder), f"{module} imports {name}, which its layer may not"
        elif folder == "rooms":
            assert room_of(name) == room_of(module), f"{module} imports {name}: rooms never import rooms"


# What app may know of core: the Service and the data it speaks in, the planner's closed forms, and what models are on offer.
SEAM = frozenset(
    {
        "core.checkpoints",
        "core.model.config",
        "core.write.generate",
        "core.errors",
        "core.secret",
        "core.read.head_roles",
        "core.read.measures",
        "core.edits",  # a request holds them
        "core.learn.watched_training",  # descriptions of trainings
        "core.learn.recorded_runs",  # rules that read what a training came to
        "core.learn.text_training",  # descriptions of texts
        "core.model.custom_mask",
        "core.labs.scaling",  # sizes on paper
        "core.labs.shape_mistakes",  # shapes on paper
        "core.plan",
        "core.run.request",
        "core.model.rules",
        "core.service",
        "core.labs.sizes",  # closed forms, as core.plan
        "core.learn.tasks",
        "core.model.text",
        "core.version",
    }
)
# Modules with more, each with its reason.
BEHIND_THE_SEAM: dict[str, frozenset[str]] = {
    "app.session.service": frozenset({"core.service.engine"}),  # puts the Service of this process together
    "app.notebook.page": frozenset({"core.trace"}),  # a notebook has the run itself
    "app.notebook.cell": frozenset({"core.trace"}),  # the same
    "app.notebook.widget": frozenset({"core.trace"}),  # and its kernel runs other texts
    "app.shell.warm": frozenset({"torch"}),  # sets how many threads torch may use
    "app.rooms.step.small": frozenset({"core.labs.worked_examples"}),  # numbers that are of no model and of no run
    "app.rooms.lessons.small": frozenset({"core.labs.worked_examples"}),  # the same
}


@of_every(python_files("app"), module_name)
def test_app_asks_the_service_and_holds_no_run(path: Path) -> None:
    module = module_name(path)
    allowed = SEAM | BEHIND_THE_SEAM.get(module, frozenset())
    of_core = [name for name in imports(path) if is_part_of(name, "core") or name.split(".")[0] == "torch"]
    found = [name for name in of_core if not any(is_part_of(name, scope) for scope in allowed)]
    assert not found, f"{module} imports {found}: ask core.service for the numbers"


def test_the_seam_names_what_is_asked_through_it_and_nothing_else() -> None:
    def named(path: Path, module: str | None) -> set[str]:
        found = (node for node in ast.walk(tree_of(path)) if isinstance(node, ast.ImportFrom))
        return {alias.name for node in found if module in (None, node.module) for alias in node.names}

    offered = named(ROOT / "core" / "service" / "__init__.py", None)
    wanted = set().union(*(named(path, "core.service") for path in python_files("app", "cluster")))
    assert offered == wanted


@of_every(python_files(*PRODUCT), module_name)
def test_nothing_that_runs_a_file(path: Path) -> None:
    modules = sorted(name for name in imports(path) if name.split(".")[0] in UNSAFE_MODULES)
    assert not modules, f"{module_name(path)} imports {modules}"
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.Call):
            assert ast.unparse(node.func) not in UNSAFE_CALLS, f"line {node.lineno}: {ast.unparse(node)}"
            for keyword in node.keywords:
                allowed = isinstance(keyword.value, ast.Constant) and keyword.value.value is False
                assert keyword.arg not in ("allow_pickle", "trust_remote_code") or allowed, f"line {node.lineno}"


@of_every(python_files("app"), module_name)
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


@of_every(assets(".js", ".mjs", ".html"), lambda path: path.name)
def test_labels_are_text(path: Path) -> None:
    found = re.findall(
        r"\b(?:innerHTML|outerHTML|insertAdjacentHTML|document\.write|createContextualFragment|eval\()",
        path.read_text(encoding="utf-8"),
    )
    assert not found, f"{path.name} uses {sorted(set(found))}: labels go in with textContent"


@of_every(assets(".js", ".mjs", ".html", ".css", ".svg"), lambda path: path.name)
def test_no_request_leaves_for_another_host(path: Path) -> None:
    # the namespaces of SVG, XLink and XMP are names, which no browser fetches
    text = re.sub(
        r"http://(?:www\.w3\.org|purl\.org/dc|ns\.adobe\.com/xap)/[\w/.-]+", "", path.read_text(encoding="utf-8")
    )
    found = re.findall(r"(?:https?:)?//[\w-]+(?:\.[\w-]+)+[^\s\"'`)]*", text)
    assert not found, f"{path.name} names {found}"


def test_what_the_page_as_a_whole_is_told_has_one_owner() -> None:
    """<html data-projector> and the like: one script writes each of them, and in an exported page another."""
    owners: dict[str, set[str]] = {}
    for path in assets(".js"):
        text = path.read_text(encoding="utf-8")
        root = r"document\.documentElement\.dataset" + (
            r"|(?<![\w.])dataset" if "{ dataset } = document.documentElement" in text else ""
        )
        for name in re.findall(rf"(?:{root})\.(\w+) =[^=]", text):
            owners.setdefault(name, set()).add(path.name)
    assert owners.pop("projector") == {"history.js", "offline.js"}
    assert owners and all(len(names) == 1 for names in owners.values()), owners


OFF_STAGE = {  # rooms that stand on no stage, and why
    "lessons": "its rail stands beside the room of the step, whose keys, files and live region are the page's",
}
CHART = ROOT / "app" / "kit" / "browser" / "headline.js"  # of a room whose picture Streamlit draws


@pytest.mark.parametrize("room", registry.ROOMS)
def test_every_room_stands_on_the_stage(room: str) -> None:
    own = ROOT / "app" / "rooms" / room / "browser" / f"{room}.js"
    text = (own if own.exists() else CHART).read_text(encoding="utf-8")
    is_on = (
        re.search(r"^(?:export )?class \w+ extends Stage\b[\s\S]*^export default \w+;", text, re.MULTILINE) is not None
    )
    assert is_on == (room not in OFF_STAGE), f"{room}: {OFF_STAGE.get(room, 'not on the stage')}"


@of_every(assets(".js"), lambda path: path.relative_to(ROOT).as_posix())
def test_no_room_knows_its_host(path: Path) -> None:
    if path.parents[2].name == "rooms":
        found = re.findall(r"/(?:mount|component)\.js|setStateValue", path.read_text(encoding="utf-8"))
        assert not found, "who shows a room calls mount(), and the room only its host"


@of_every(assets(".js"), lambda path: path.relative_to(ROOT).as_posix())
def test_browser_files_import_only_what_lies_below(path: Path) -> None:
    """By folder, as Python does; constants.js and words.js are written by Python."""
    own = path.relative_to(ROOT).as_posix()
    for found in re.findall(r'^import [^;]* from "([^"]+)";', path.read_text(encoding="utf-8"), re.MULTILINE):
        target = Path(os.path.normpath(path.parent / found))
        assert target.is_file() or target.name in ("constants.js", "words.js"), f"{own} imports {found}"
        module = ".".join(path.relative_to(ROOT).parts)
        other = ".".join(target.relative_to(ROOT).parts)
        if folder_of(other) != folder_of(module):
            assert app_layer_of(folder_of(other)) < app_layer_of(folder_of(module)), f"{own} imports {found}"
        assert room_of(other) in (None, room_of(module)), f"{own} imports {found}: rooms never import rooms"
