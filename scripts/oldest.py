"""Whether the oldest versions that the package asks for are enough: `python scripts/oldest.py`. Needs a package index.

Two environments that see torch and what else is installed here, and have the lower bounds of pyproject.toml in front of it: one for
all but transformers, and one for transformers, which asks for newer versions of two others than we do. In each, what a newcomer
does first: see CHECKS.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import sysconfig
import tempfile
import tomllib
import venv
from collections.abc import Callable, Iterator
from importlib import metadata
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
HERE = ("torch", "ray")  # taken as they are: a build of torch is gigabytes, and Ray has an environment of its own
WITH_SCREENS = ("app", "notebook")  # extras that core imports nothing of
ALONE = "transformers"
WITH_PANDAS = "pytz"  # which newer versions of pandas do without
TEXT = "The animal didn't cross the street because it was too tired."


def bounds() -> dict[str, str]:
    """Name -> version of every lower bound of core and its extras."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    lines = [*project["dependencies"]]
    for extra, more in project["optional-dependencies"].items():
        lines += more if extra not in WITH_SCREENS else []
    found = (re.fullmatch(r"([\w-]+)(?:\[\w+\])?>=([\d.]+)", line) for line in lines)
    return {match[1]: match[2] for match in found if match}


def run_code(page: str) -> None:
    """Run the Python of a page of ours, or of a part of one."""
    code = "\n".join(re.findall(r"```python\n(.*?)```", page, re.DOTALL))
    subprocess.run([sys.executable, "-c", code], check=True, env={**os.environ, "PYTHONPATH": str(ROOT)})


def the_readme_runs() -> None:
    section = (
        (ROOT / "README.md").read_text(encoding="utf-8").split("## In a notebook or a script")[1].split("\n## ")[0]
    )
    run_code(section)


def models_of_each_kind_run_and_are_saved() -> None:
    import headlight as hl

    for name, text in (("minilm", TEXT), ("storyteller", "The wolf"), ("translator", "Ein Hund"), ("copy", "dabbi=")):
        loaded = hl.load(name)
        run = hl.trace(loaded, text)
        assert all((record.receipt().fused_error or 0) < 1e-5 for record in run.attention), name
        assert len(run.to_frame()) == len(run.steps), name
        hl.save(loaded, name)
        assert hl.load(Path(name).resolve()).config == loaded.config, name


def a_chat_is_read() -> None:
    import headlight as hl

    run = hl.trace_chat(hl.load("smollm2"), [{"role": "user", "content": "Hello"}])
    assert run.predictions(k=2).strings


def files_and_an_atlas_are_written() -> None:
    from core.__main__ import main

    Path("texts.txt").write_text(f"{TEXT}\n\nThe cat sat on the mat.\n", encoding="utf-8")
    assert main(["trace", TEXT, "--model", "minilm", "--npz", "a.npz", "--html", "a.html", "--json", "a.json"]) == 0
    assert main(["atlas", "texts.txt", "--model", "minilm", "--json", "atlas.json"]) == 0


def a_hub_that_cannot_be_reached_has_a_sentence() -> None:
    import headlight as hl

    try:
        hl.load("nobody/has-downloaded-this")
    except hl.errors.CheckpointError as error:
        assert "cannot be reached" in str(error), error
    else:
        raise AssertionError("nothing was refused")


def a_model_of_transformers_is_recorded() -> None:
    run_code((ROOT / "docs" / "wrap.md").read_text(encoding="utf-8"))


CHECKS: dict[str, tuple[Callable[[], None], ...]] = {
    "core": (
        the_readme_runs,
        models_of_each_kind_run_and_are_saved,
        a_chat_is_read,
        files_and_an_atlas_are_written,
        a_hub_that_cannot_be_reached_has_a_sentence,
    ),
    ALONE: (a_model_of_transformers_is_recorded,),
}


def environments() -> Iterator[tuple[str, dict[str, str]]]:
    wanted = {name: version for name, version in bounds().items() if name not in HERE}
    yield "core", {name: version for name, version in wanted.items() if name != ALONE}
    yield ALONE, {ALONE: wanted[ALONE]}


def main() -> int:
    for kind, versions in environments():
        with tempfile.TemporaryDirectory() as folder:
            venv.create(folder, with_pip=False)
            python = Path(folder, "Scripts" if os.name == "nt" else "bin", "python")
            pip = [sys.executable, "-m", "pip", "--python", str(python), "--disable-pip-version-check", "install", "-q"]
            more = [WITH_PANDAS] if "pandas" in versions else []
            subprocess.run(
                [*pip, "--no-deps", *(f"{name}=={version}" for name, version in versions.items()), *more], check=True
            )
            # Only now: pip must take nothing of ours for a part of this environment.
            (packages,) = (path for path in Path(folder).rglob("site-packages") if path.is_dir())
            (packages / "others.pth").write_text(sysconfig.get_path("purelib"), encoding="utf-8")
            done = subprocess.run([python, __file__, kind], cwd=folder, env={**os.environ, "HF_HUB_OFFLINE": "1"})
            if done.returncode:
                return done.returncode
    return 0


def check(kind: str) -> None:
    """Done inside of an environment."""
    sys.path.insert(0, str(ROOT))
    print(", ".join(f"{name} {metadata.version(name)}" for name in ("torch", *dict(environments())[kind])))
    for one in CHECKS[kind]:
        one()
        print("  " + one.__name__.replace("_", " "))


if __name__ == "__main__":
    sys.exit(check(sys.argv[1]) if len(sys.argv) > 1 else main())
