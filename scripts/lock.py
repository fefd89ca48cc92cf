"""Write locks/: every package of each environment, at one version, with the hashes of its files. Needs a package index.

    python -m scripts.lock              what requirements*.txt changed, and no other version
    python -m scripts.lock --upgrade    the newest version of everything that they leave open

A lock is for every system and for Python 3.11 and later; markers choose between systems. It is installed with `--no-deps
--require-hashes`, so nothing outside the lock is installed. Each package is a wheel: no code runs during an installation.

PyPI's torch for Linux is the CUDA build. locks/cuda.txt has what only that build needs. locks/cpu.txt has the builds of the same
version for the CPU, which have an index of their own.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

from scripts.tools import NotInstalled, tools

ROOT = Path(__file__).resolve().parents[1]
LOCKS = ROOT / "locks"
SOURCES = {
    "run": "requirements.txt",
    "test": "requirements-dev.txt",
    "cluster": "requirements-cluster.txt",
    "tools": "requirements-tools.txt",
}
OPTIONS = (
    "--universal --python-version 3.11 --generate-hashes --only-binary :all: --no-annotate --no-header --no-config"
)
CUDA = re.compile(r"(?:cuda|nvidia)-|triton==")
HEADER = "# Made by `make lock` from {source}. Do not edit.\n--only-binary :all:\n"
WAIT = 60  # seconds for the index of the CPU builds


def entries(text: str) -> list[str]:
    """Requirements of a lock, each with its hashes."""
    return re.findall(r"^[\w.-]+==[^\n]*(?:\n +--hash=[^\n]*)+\n", text, re.MULTILINE)


def solve(uv: Path, source: Path, known: list[str], *arguments: str) -> list[str]:
    """Entries of all packages that a file of requirements needs. `known` are the entries of its last lock."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder, "lock.txt")
        versions = [entry.split(" \\\n")[0] for entry in known]  # uv keeps these, and asks for the hashes again
        out.write_text("\n".join(versions), encoding="utf-8")
        command = [uv, "pip", "compile", "--quiet", *OPTIONS.split(), source, "--output-file", out, *arguments]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
        if done.returncode:
            raise SystemExit(f"{source.name} could not be locked.\n{done.stderr}")
        return entries(out.read_text(encoding="utf-8"))


def cpu_index() -> str:
    """Address of the index with the CPU builds of torch, from the Dockerfile."""
    (found,) = re.findall(r"^ARG TORCH_INDEX=(\S+)$", (ROOT / "Dockerfile").read_text(encoding="utf-8"), re.MULTILINE)
    return found


def cpu_build(version: str, index: str, known: list[str]) -> str:
    """Entry of the CPU builds of a version of torch. Without the index, that of the last lock, if it is of this version."""
    requirement = f"torch=={version}+cpu"
    try:
        with urlopen(f"{index}/torch/", timeout=WAIT) as answer:
            page = answer.read().decode()
    except URLError as error:
        same = [entry for entry in known if entry.startswith(f"{requirement} ")]
        if not same:
            raise SystemExit(f"The hashes of {requirement} are at {index}: {error.reason}.") from error
        print(f"{index} did not answer, so locks/cpu.txt stays unchanged.")
        return same[0]
    found = set(re.findall(rf"torch-{re.escape(version)}(?:%2B|\+)cpu-[\w.-]+\.whl#sha256=([0-9a-f]{{64}})", page))
    if not found:
        raise SystemExit(f"{index} has no hash of {requirement}.")
    return " \\\n".join([requirement, *(f"    --hash=sha256:{each}" for each in sorted(found))]) + "\n"


def last(name: str) -> list[str]:
    path = LOCKS / f"{name}.txt"
    return entries(path.read_text(encoding="utf-8")) if path.exists() else []


def write(name: str, source: str, found: list[str]) -> None:
    (LOCKS / f"{name}.txt").write_text(HEADER.format(source=source) + "".join(found), encoding="utf-8")
    print(f"locks/{name}.txt: {len(found)} packages")


def main(arguments: list[str]) -> None:
    with tools() as commands, tempfile.TemporaryDirectory() as folder:
        uv = commands / "uv"
        run = solve(uv, ROOT / SOURCES["run"], last("run") + last("cuda"), *arguments)
        same = Path(folder, "run.txt")  # packages of several locks have the versions of the first
        same.write_text("".join(run), encoding="utf-8")
        found = {"run": run}
        for name in ("test", "cluster"):
            found[name] = solve(uv, ROOT / SOURCES[name], last(name), "--constraint", str(same), *arguments)
        found["tools"] = solve(uv, ROOT / SOURCES["tools"], last("tools"), *arguments)
    (torch,) = (entry.split()[0].removeprefix("torch==") for entry in run if entry.startswith("torch=="))
    write("cpu", SOURCES["run"], [cpu_build(torch, cpu_index(), last("cpu"))])
    write("cuda", SOURCES["run"], [entry for entry in run if CUDA.match(entry)])
    for name, each in found.items():
        write(name, SOURCES[name], [entry for entry in each if not CUDA.match(entry)])


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except NotInstalled as error:
        sys.exit(f"uv could not be installed: {error}")
