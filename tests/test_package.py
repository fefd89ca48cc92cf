"""Headlight as a library: what README shows runs, and `pip install .` gives the same under a name of its own."""

from __future__ import annotations

import ast
import importlib.metadata
import re
import subprocess
import sys
import sysconfig
import tomllib
import venv
import zipfile
from collections.abc import Callable
from pathlib import Path
from shutil import copytree, ignore_patterns
from typing import Any

import pytest
import torch

import core
from core.checkpoints import find
from core.run import wrapped

ROOT = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))


def readme_code() -> str:
    section = (ROOT / "README.md").read_text("utf-8").split("## In a notebook or a script")[1].split("\n## ")[0]
    blocks = re.findall(r"```python\n(.*?)```", section, re.DOTALL)
    assert blocks
    return "\n".join(blocks)


def test_what_the_readme_shows_runs_and_does_what_it_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    exec(compile(readme_code(), "README.md", "exec"), names)
    assert isinstance(names["loaded"], core.Loaded)
    assert (names["record"].pattern().sum(-1) - 1).abs().max() <= 1e-5
    assert names["changed"].attention[0].pattern()[:, :, 2].abs().max() == 0
    assert [record.n_heads for record in names["records"]] == [4]
    assert names["tale"].contributions().string == names["tale"].predictions(k=1).strings[0][0]
    assert names["plan"].parameters.total == core.load("smollm2").spec.n_params
    assert core.load("my-model").config == names["loaded"].config


def test_every_error_is_at_hand() -> None:
    def is_public(kind: type) -> bool:
        return kind.__module__.startswith("core.") and not kind.__name__.startswith("_")

    def kinds(error: type) -> set[type]:
        return {error}.union(*(kinds(kind) for kind in error.__subclasses__() if is_public(kind)))

    assert {getattr(core, kind.__name__, None) for kind in kinds(core.Refused)} == kinds(core.Refused)
    assert {kind.__name__ for kind in kinds(core.Refused)} <= set(core.__all__)
    for name in ("measures", "report", "train", "load", "save"):
        assert name in core.__all__ and hasattr(core, name)


@pytest.mark.parametrize("spelled", [str, Path], ids=["str", "Path"])
def test_a_saved_model_is_loaded_as_it_was(
    tmp_path: Path, spelled: Callable[[Path], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded = core.load("translator")
    monkeypatch.chdir(tmp_path)
    core.save(loaded, spelled(Path("a new") / "folder"))
    again = core.load(spelled(tmp_path / "a new" / "folder"))
    assert (again.config, again.pad_id, again.start_id, again.end_ids, again.dtype) == (
        loaded.config, loaded.pad_id, loaded.start_id, loaded.end_ids, loaded.dtype,
    )  # fmt: skip
    one, other = (core.trace(each, "Ein Hund läuft.", "A dog") for each in (loaded, again))
    assert torch.equal(one.attention[-1].pattern(), other.attention[-1].pattern())
    assert one.predictions() == other.predictions()
    core.save(loaded, tmp_path / "half", dtype=torch.float16)
    half, whole = (tmp_path / name / "model.safetensors" for name in ("half", "a new/folder"))
    assert half.stat().st_size < 0.6 * whole.stat().st_size


@pytest.mark.parametrize(
    ("name", "known_as"),
    [
        ("gpt2", "openai-community/gpt2"),
        ("bert-base-uncased", "google-bert/bert-base-uncased"),
        ("t5-small", "google-t5/"),
    ],
)
def test_a_name_from_papers_is_the_hubs(name: str, known_as: str) -> None:
    assert find(name).location.startswith(known_as)


def test_what_the_package_needs_is_what_is_tested() -> None:
    """Each from the version that requirements.txt pins, and nothing that core does not import."""
    pins = dict(line.split("==") for line in (ROOT / "requirements.txt").read_text("utf-8").split())
    needs = dict(line.split(">=") for line in PROJECT["project"]["dependencies"])
    assert {name: pins[name] for name in needs} == needs
    imported = set()
    for path in (ROOT / "core").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Import):
                imported |= {alias.name.split(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and not node.level:
                imported.add((node.module or "").split(".")[0])
    theirs = importlib.metadata.requires("huggingface_hub") or ()
    comes_with_the_hub = {re.split(r"[^\w-]", line)[0] for line in theirs if "extra ==" not in line}
    optional = PROJECT["project"]["optional-dependencies"]
    more = [line for line in (ROOT / "requirements-cluster.txt").read_text("utf-8").split() if "==" in line]
    pins |= {line.split("[")[0]: line.split("==")[1] for line in more if "[" in line}
    needed = {name: line.split(">=")[1] for name, (line,) in optional.items()}
    assert (
        needed.pop("transformers") == f"{'.'.join(map(str, wrapped.OLDEST))}.0"
    )  # a range, whose both ends were tried
    with_tests = (ROOT / "requirements-dev.txt").read_text("utf-8").split()
    assert f"anywidget=={needed.pop('notebook')}" in with_tests  # which app.notebook imports, and no module of core
    assert {name: pins[name] for name in needed} == needed
    assert imported - set(sys.stdlib_module_names) - comes_with_the_hub - set(optional) == set(needs)
    assert "core" not in imported, "core would not find itself under another name"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built as `pip install .` does, from a copy, so that nothing is left in the repository."""
    source, out = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("wheel")
    for name in ("pyproject.toml", "setup.py", "README.md", "LICENSE"):
        (source / name).write_bytes((ROOT / name).read_bytes())
    for folder in ("core", "models", "app"):
        # a model's runs for Train, and no folder of core that has that name
        skip = ignore_patterns("__pycache__", *(("training",) if folder == "models" else ()))
        copytree(ROOT / folder, source / folder, ignore=skip, copy_function=without_much_in_it)
    pip("wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", str(out), str(source))
    (built,) = out.glob("*.whl")
    return built


def without_much_in_it(source: str, to: str) -> None:
    """A copy, but of large files only their name: it is their names that are looked for, and packing them takes long."""
    Path(to).write_bytes(b"" if Path(source).stat().st_size > 1 << 20 else Path(source).read_bytes())


def pip(*arguments: str, python: Path = Path(sys.executable)) -> None:
    command = [sys.executable, "-m", "pip", "--python", str(python), "--disable-pip-version-check", "--no-input"]
    done = subprocess.run([*command, *arguments[:1], "--no-index", *arguments[1:]], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_package_holds_all_of_core_under_its_own_name(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    assert {name.split("/")[0] for name in names} == {
        "headlight",
        f"headlight-{PROJECT['project']['version']}.dist-info",
    }
    for folder, inside in ((ROOT / "core", "headlight"), (ROOT / "models", "headlight/models")):
        wanted = {
            f"{inside}/{path.relative_to(folder).as_posix()}"
            for path in folder.rglob("*")
            if path.is_file() and "__pycache__" not in path.parts and not path.match("models/*/training/*")
        }
        assert wanted <= names, sorted(wanted - names)


USED = """
import importlib.util
import sys
import headlight

assert importlib.util.find_spec("core") is None and importlib.util.find_spec("app") is None
run = headlight.trace(headlight.load("copy"), "dabbi=", interventions=[headlight.NoScale()])
assert abs(run.attention[0].pattern().sum(-1) - 1).max() < 1e-5
assert "pandas" not in sys.modules and "transformers" not in sys.modules
assert len(run.to_frame()) == len(run.steps)
try:
    headlight.load("gpt2")
except headlight.Refused as error:
    print(type(error).__module__, error)
from headlight import __main__
print(__main__._parser().prog)
print(headlight.plan(headlight.load("minilm").config, batch=1, source_len=8).parameters.total)
"""


def test_the_package_works_in_an_environment_of_its_own(wheel: Path, tmp_path: Path) -> None:
    place = tmp_path / "environment"
    venv.create(place, with_pip=False)
    python = place / "bin" / "python"
    (packages,) = place.glob("lib/*/site-packages")
    (packages / "others.pth").write_text(sysconfig.get_path("purelib"))  # torch and the like, which need not be copied
    pip("install", "--no-deps", str(wheel), python=python)

    def says(*arguments: str) -> str:
        done = subprocess.run([python, *arguments], capture_output=True, text=True, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        return done.stdout

    said = says("-c", USED)
    assert "python -m headlight" in said
    assert "headlight.errors" in said and "openai-community/gpt2" in said
    assert str(core.load("minilm").spec.n_params) in said
    assert "storyteller" in says("-m", "headlight", "models")
