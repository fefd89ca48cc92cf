"""Headlight as a package: built from a copy of the repository, and installed into an environment of its own."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path
from shutil import copytree, ignore_patterns

ROOT = Path(__file__).resolve().parents[1]
FILES = ("pyproject.toml", "setup.py", "MANIFEST.in", "README.md", "LICENSE")
FOLDERS = ("core", "app", "cluster", "models", ".streamlit")
SDIST = "import sys; from setuptools.build_meta import build_sdist; build_sdist(sys.argv[1])"


def copied(source: Path) -> Path:
    """A copy of all that a package is built from, so that nothing is left in the repository."""
    source.mkdir(parents=True)
    for name in FILES:
        (source / name).write_bytes((ROOT / name).read_bytes())
    for folder in FOLDERS:
        # a model's runs for Train, which no repository keeps, and no folder of core that has that name
        skip = ignore_patterns("__pycache__", *(("training",) if folder == "models" else ()))
        copytree(ROOT / folder, source / folder, ignore=skip)
    return source


def with_notices(source: Path) -> Path:
    """The same copy after the first step of `make wheel`."""
    ran(
        sys.executable,
        ROOT / "scripts/notices.py",
        "notices",
        ROOT / "locks/run.txt",
        ROOT / "requirements-models.txt",
        cwd=source,
    )
    return source


def built(source: Path, out: Path) -> Path:
    """The wheel, made as `pip install .` makes it."""
    pip("wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", str(out), str(source))
    (found,) = out.glob("*.whl")
    return found


def sdist(source: Path, out: Path) -> Path:
    """The archive of what a wheel is built from."""
    ran(sys.executable, "-c", SDIST, str(out), cwd=source)
    (found,) = out.glob("*.tar.gz")
    return found


class Environment:
    """A virtual environment that has a wheel of ours, and sees torch and the like where they are already."""

    def __init__(self, place: Path, wheel: Path) -> None:
        venv.create(place, with_pip=False)
        self.scripts = place / ("Scripts" if os.name == "nt" else "bin")
        self.python = self.scripts / "python"
        (packages,) = (path for path in place.rglob("site-packages") if path.is_dir())
        # Only after it was installed: pip must not take our own packages for those of this environment.
        pip("install", "--no-deps", str(wheel), python=self.python)
        (packages / "others.pth").write_text(sysconfig.get_path("purelib"), encoding="utf-8")
        self.packages, self.command = packages, self.scripts / "headlight"


def pip(*arguments: str, python: Path = Path(sys.executable)) -> None:
    command = [sys.executable, "-m", "pip", "--python", str(python), "--disable-pip-version-check", "--no-input"]
    ran(*command, *arguments[:1], "--no-index", *arguments[1:])


def ran(*command: str | Path, cwd: Path | None = None, status: int = 0) -> str:
    """The output of a command, or where it must end with an error its sentence."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(command, capture_output=True, text=True, encoding="utf-8", cwd=cwd, env=environment)
    assert done.returncode == status, done.stdout + done.stderr
    return done.stderr if status else done.stdout
