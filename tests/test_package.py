"""Headlight as a library: what README shows runs, and an installed package gives the same under a name of its own."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from packaging.requirements import Requirement
from packaging.version import Version

import core
from core import __main__ as command_line
from core.checkpoints import Loaded, find
from core.run import wrapped
from setup import as_installed
from tests import wheels

ROOT = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))


def readme_code() -> str:
    section = (ROOT / "README.md").read_text("utf-8").split("## In a notebook or a script")[1].split("\n## ")[0]
    blocks = re.findall(r"```python\n(.*?)```", section, re.DOTALL)
    assert blocks
    return "\n".join(blocks)


@pytest.mark.thorough
def test_what_the_readme_shows_runs_and_does_what_it_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    exec(compile(readme_code(), "README.md", "exec"), names)
    assert isinstance(names["loaded"], Loaded)
    assert (names["record"].pattern().sum(-1) - 1).abs().max() <= 1e-5
    assert names["changed"].attention[0].pattern()[:, :, 2].abs().max() == 0
    assert [record.n_heads for record in names["records"]] == [4]
    assert names["tale"].logit_attribution().string == names["tale"].predictions(k=1).strings[0][0]
    assert names["plan"].parameters.total == core.load("smollm2").spec.n_params
    assert core.load("my-model").config == names["loaded"].config


def test_the_top_level_is_small_and_every_error_is_in_errors() -> None:
    def is_public(kind: type) -> bool:
        return kind.__module__.startswith("core.") and not kind.__name__.startswith("_")

    def kinds(error: type) -> set[type]:
        return {error}.union(*(kinds(kind) for kind in error.__subclasses__() if is_public(kind)))

    assert {getattr(core.errors, kind.__name__, None) for kind in kinds(core.HeadlightError)} == kinds(
        core.HeadlightError
    )
    assert len(set(core.__all__)) == len(core.__all__) <= 45
    assert all(hasattr(core, name) for name in core.__all__)
    assert {"measures", "report", "train", "load", "save", "edits", "errors", "patching"} <= set(core.__all__)


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


def requirements(*lines: str) -> dict[str, Requirement]:
    return {each.name.lower(): each for each in map(Requirement, lines)}


WITH_SCREENS = ("app", "notebook")  # extras that core imports nothing of
NEEDS = requirements(*PROJECT["project"]["dependencies"])
EXTRAS = {name: requirements(*lines) for name, lines in PROJECT["project"]["optional-dependencies"].items()}
OF_CORE = {name: needs for extra, each in EXTRAS.items() if extra not in WITH_SCREENS for name, needs in each.items()}
OF_SCREENS = {
    name: needs for name, needs in {**EXTRAS["app"], **EXTRAS["notebook"]}.items() if name != PROJECT["project"]["name"]
}


def pins(*files: str) -> dict[str, Version]:
    found: dict[str, Version] = {}
    for file in files:
        for line in (ROOT / file).read_text("utf-8").splitlines():
            if "==" in line and not line.startswith("#"):
                one = Requirement(line.split(" ")[0])
                found[one.name.lower()] = Version(str(one.specifier).removeprefix("=="))
    return found


def imported_by(folder: str) -> set[str]:
    found = set()
    for path in (ROOT / folder).rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Import):
                found |= {alias.name.split(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and not node.level:
                found.add((node.module or "").split(".")[0])
    return found - set(sys.stdlib_module_names)


@pytest.mark.thorough
def test_the_package_asks_for_what_core_imports_and_an_extra_for_what_one_function_does() -> None:
    imported = imported_by("core")
    assert imported - set(OF_CORE) == set(NEEDS)
    assert not set(OF_CORE) & set(NEEDS) and set(OF_CORE) <= imported
    assert "core" not in imported, "core would not find itself under another name"


def test_what_is_installed_for_the_tests_is_what_the_package_takes() -> None:
    """Both ends: the newest versions are pinned here, and the oldest were tried (docs/installing.md has the table)."""
    pinned = pins("requirements.txt", "requirements-dev.txt", "requirements-cluster.txt")
    for name, needs in (NEEDS | OF_CORE | OF_SCREENS).items():
        assert needs.specifier.contains(pinned[name]), f"{needs}, but {pinned[name]} is what is tested"
    asked = {*NEEDS, *OF_CORE, *OF_SCREENS}
    assert set(pins("requirements.txt")) <= asked, "an installed `headlight run` would lack it"
    page = (ROOT / "docs" / "installing.md").read_text("utf-8")
    tried = dict(re.findall(r"^\| ([\w-]+) \| ([\d.]+) \|", page, re.MULTILINE))
    oldest = {name: str(needs.specifier).removeprefix(">=") for name, needs in (NEEDS | OF_CORE).items()}
    assert tried == {name: version for name, version in oldest.items() if name != "ray"}
    assert ".".join(map(str, wrapped.OLDEST)) == ".".join(oldest["transformers"].split(".")[:2])


WITHOUT = """
import sys
for name in ("huggingface_hub", "gguf", "pyarrow", "pandas", "streamlit", "transformers"):
    sys.modules[name] = None
import headlight as hl
from headlight.__main__ import main
run = hl.trace(hl.load("copy"), "dabbi=")
with open("a.gguf", "wb") as file:
    file.write(b"GGUF" + bytes(60))
hl.save(run.loaded, "mine")
assert hl.load("mine").config == run.config and hl.plan(run.config, batch=1, source_len=8).total > 0
for call in (lambda: hl.load("openai-community/gpt2"), lambda: hl.load("a.gguf"), run.to_frame):
    try:
        call()
    except (hl.HeadlightError, ImportError) as error:
        print(error)
main(["atlas", "mine/config.json"])
main(["run"])
"""


@pytest.mark.thorough
def test_what_an_extra_brings_is_asked_for_by_its_name(tmp_path: Path) -> None:
    code = f"import sys; sys.path.insert(0, {str(ROOT)!r})\n{WITHOUT}"
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, encoding="utf-8")
    assert done.returncode == 0, done.stderr
    said = (done.stdout + done.stderr).splitlines()
    assert [re.findall(r"headlight-attention\[(\w+)\]", line) for line in said] == [
        ["hub"], ["gguf"], ["pandas"], ["atlas"], ["app"],
    ]  # fmt: skip
    assert said[-1].startswith("headlight: The screens need streamlit, pandas. They come with")


OLD = """
import sys
import warnings
import core
core.wrap
assert "transformers" not in sys.modules, "only wrap() imports it"
assert "core.service" not in sys.modules and "core.labs" not in sys.modules, "imported on demand"
assert core.service.Service and core.labs and core.peers
warnings.simplefilter("ignore", DeprecationWarning)
from core.given import given
from core.walk import guesses, terms, walk
from core.padding import padding_invariance
from core.leakage import leakage, relearnt
from core.scaling import WIDTHS
from core.model import Transformer
from core.trace import Trace
from core.planner.runs import run_bytes
from core.interventions import Ablate
from core.interventions.masks import Window
from core import Refused, aggregate, live, measures, small
import core.read.next_token_loss, core.trace, core.generate
assert given is core.read.next_token_loss.given and Trace is core.Trace and Ablate is core.edits.Ablate
assert callable(core.trace) and callable(core.generate) and callable(core.build) and callable(core.plan)
assert core.read.next_token_loss.__spec__.name == core.read.next_token_loss.__name__ == "core.read.next_token_loss"
assert core.text.from_ids and core.small is small and Refused is core.HeadlightError
warnings.simplefilter("error")
"""
SAME = """
import sys
import core
import headlight as hl
from headlight.read.next_token_loss import given
from headlight.read import measures
import headlight.trace, headlight.app.kit.theme
import app.kit.theme, core.read.next_token_loss, core.read.measures

assert hl is core and hl.Trace is core.Trace and measures is core.read.measures and headlight.app.kit.theme is app.kit.theme
assert given is core.read.next_token_loss.given and callable(core.trace) and core.trace is hl.trace
assert hl.Trace.__module__ == sys.modules["core.trace"].__spec__.name == "core.trace"
try:
    import headlight.nothing
except ModuleNotFoundError as error:
    print(error)
"""


@pytest.mark.thorough
@pytest.mark.parametrize(
    "first",
    [
        pytest.param(OLD, id="core and its old names first"),
        pytest.param("import headlight\n", id="headlight first", marks=pytest.mark.thorough),
    ],
)
def test_in_a_fresh_process_headlight_is_core_and_never_a_second_copy(first: str) -> None:
    assert "headlight.nothing" in wheels.ran(sys.executable, "-W", "error", "-c", first + SAME, cwd=ROOT)


def test_the_command_says_its_name_and_version(capsys: pytest.CaptureFixture[str]) -> None:
    for arguments, said in (
        (["trace", "-h"], "usage: headlight trace"),
        (["--version"], f"Headlight {core.__version__}\n"),
    ):
        with pytest.raises(SystemExit):
            command_line.main(arguments)
        assert capsys.readouterr().out.startswith(said)
    assert core.__version__ == PROJECT["project"]["version"]


@pytest.mark.thorough
@pytest.mark.parametrize("module", ["core", "headlight"])
def test_a_module_that_is_started_says_its_name(module: str) -> None:
    usage = wheels.ran(sys.executable, "-m", module, "plan", "-h", cwd=ROOT)
    assert usage.startswith(f"usage: python -m {module} plan")
    assert wheels.ran(sys.executable, "-m", module, "--version", cwd=ROOT) == f"Headlight {core.__version__}\n"


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--port", "70000"], "--port is 70000"),
        (["--model", "no/such/folder"], "no/such/folder"),
        (["--model", "two,models"], "comma"),
    ],
)
def test_what_cannot_be_started_is_refused_with_a_sentence(
    arguments: list[str], says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HEADLIGHT_OWN_MACHINE", "1")
    core.save(core.load("copy"), "two,models")
    assert command_line.main(["run", *arguments]) == 2
    assert says in capsys.readouterr().err


# the wheel

MOST_BYTES = {"wheel": 50_000_000, "sdist": 52_000_000}  # 45 MB of them are the models that ship


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return wheels.with_notices(wheels.copied(tmp_path_factory.mktemp("source") / "headlight"))


@pytest.fixture(scope="module")
def wheel(source: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return wheels.built(source, tmp_path_factory.mktemp("wheel"))


@pytest.mark.thorough
def test_the_package_holds_all_of_core_and_of_the_screens_under_its_own_name(wheel: Path) -> None:
    inside = zipfile.ZipFile(wheel)
    names = set(inside.namelist())
    information = f"headlight_attention-{core.__version__}.dist-info"
    assert {name.split("/")[0] for name in names} == {"headlight", information}
    for folder, there in (("core", "headlight"), ("app", "headlight/app"), ("models", "headlight/models")):
        wanted = {
            f"{there}/{path.relative_to(ROOT / folder).as_posix()}"
            for path in (ROOT / folder).rglob("*")
            if path.is_file()
            and "__pycache__" not in path.parts
            and not path.match("models/*/training/*")
            and not path.name.endswith(".d.ts")
        }
        assert wanted <= names, sorted(wanted - names)
    assert {"headlight/py.typed", "headlight/app/.streamlit/config.toml", "headlight/cluster/remote.py"} <= names
    assert {"headlight/notices/sbom.cdx.json", "headlight/notices/THIRD_PARTY_NOTICES.txt"} <= names
    assert not [name for name in names if "deployment" in name or "/tests/" in name]
    for name in names:
        if name.startswith(("headlight/app/", "headlight/cluster/")) and name.endswith(".py"):
            for node in ast.walk(ast.parse(inside.read(name))):
                if isinstance(node, ast.ImportFrom):
                    assert (node.module or "").split(".")[0] not in ("app", "core", "cluster"), name
    assert "headlight.__main__:main" in inside.read(f"{information}/entry_points.txt").decode()


def test_only_the_names_of_packages_change_in_an_installed_module() -> None:
    text = 'from core import load\nfrom app.kit import a, b\nfrom apple import c\nfrom . import d\nS = "from app import x"\n'
    changed = text.replace("from core", "from headlight").replace("from app.kit", "from headlight.app.kit")
    assert as_installed(text, "here.py") == changed
    assert as_installed("def f():\n    from cluster import wire\n", "here.py").endswith(
        "headlight.cluster import wire\n"
    )
    for wrong in ("import app.kit", "import core", "from  core import load"):
        with pytest.raises(ValueError, match=r"here\.py, line 1"):
            as_installed(wrong, "here.py")


@pytest.mark.thorough
def test_an_archive_of_the_source_gives_the_same_wheel(source: Path, wheel: Path, tmp_path: Path) -> None:
    archive = wheels.sdist(source, tmp_path)
    assert archive.stat().st_size < MOST_BYTES["sdist"] and wheel.stat().st_size < MOST_BYTES["wheel"]
    with tarfile.open(archive) as inside:
        inside.extractall(tmp_path / "from", filter="data")
    (unpacked,) = (tmp_path / "from").iterdir()
    again = wheels.built(unpacked, tmp_path / "again")
    one, other = (zipfile.ZipFile(path) for path in (wheel, again))
    assert {each.filename: each.CRC for each in one.infolist()} == {
        each.filename: each.CRC for each in other.infolist()
    }


USED = """
import importlib.util
import sys
import headlight

assert importlib.util.find_spec("core") is None and importlib.util.find_spec("app") is None
run = headlight.trace(headlight.load("copy"), "dabbi=", interventions=[headlight.edits.NoScale()])
assert abs(run.attention[0].pattern().sum(-1) - 1).max() < 1e-5
for name in ("pandas", "transformers", "huggingface_hub", "pyarrow", "streamlit"):
    assert name not in sys.modules, name
assert len(run.to_frame()) == len(run.steps)
try:
    headlight.load("gpt2")
except headlight.HeadlightError as error:
    print(type(error).__module__, error)
print(headlight.plan(headlight.load("minilm").config, batch=1, source_len=8).parameters.total)
print(headlight.__version__)
"""


@pytest.mark.thorough
def test_the_package_works_in_an_environment_of_its_own(wheel: Path, tmp_path: Path) -> None:
    installed = wheels.Environment(tmp_path / "environment", wheel)
    said = wheels.ran(installed.python, "-c", USED, cwd=tmp_path)
    assert "headlight.errors" in said and "openai-community/gpt2" in said
    assert str(core.load("minilm").spec.n_params) in said and said.splitlines()[-1] == core.__version__
    wheels.ran(installed.python, "-c", readme_code(), cwd=tmp_path)
    assert wheels.ran(installed.command, "--version", cwd=tmp_path) == f"Headlight {core.__version__}\n"
    assert "storyteller" in wheels.ran(installed.command, "models", cwd=tmp_path)
    assert "python -m headlight" in wheels.ran(installed.python, "-m", "headlight", "-h", cwd=tmp_path)
    found = wheels.ran(installed.command, "trace", "dabbi=", "--model", "copy", "--json", "-", cwd=tmp_path)
    run = core.trace(core.load("copy"), "dabbi=")
    assert json.loads(found)["source"]["labels"] == list(run.source.labels)
