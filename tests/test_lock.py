"""Locks: they have what requirements*.txt asks for and what that needs, each file with a hash, and set-up installs nothing else."""

from __future__ import annotations

import re
from importlib.metadata import PackageNotFoundError, distribution
from io import BytesIO
from pathlib import Path
from urllib.error import URLError

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from scripts import lock

ROOT = Path(__file__).resolve().parents[1]
NAMES = sorted(path.stem for path in lock.LOCKS.iterdir())


def text(name: str) -> str:
    return (lock.LOCKS / f"{name}.txt").read_text(encoding="utf-8")


def requirements(name: str) -> list[Requirement]:
    return [Requirement(entry.split(" \\\n")[0]) for entry in lock.entries(text(name))]


def versions(name: str) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for each in requirements(name):
        found.setdefault(canonicalize_name(each.name), set()).add(str(each.specifier).removeprefix("=="))
    return found


def test_there_is_a_lock_for_each_environment() -> None:
    assert sorted([*lock.SOURCES, "cpu", "cuda"]) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_a_lock_has_versions_and_hashes_and_nothing_else(name: str) -> None:
    head, entries = text(name).split("\n", 2)[:2], lock.entries(text(name))
    assert head[0].startswith("# Made by `make lock` from requirements") and head[1] == "--only-binary :all:"
    assert text(name) == "\n".join(head) + "\n" + "".join(entries), "an address, a path or a package without a hash"
    for entry in entries:
        first, *hashes = entry.rstrip("\n").split(" \\\n")
        assert re.fullmatch(r"[a-z0-9][a-z0-9.-]*==[\w.+]+( ; .+)?", first)
        assert hashes and all(re.fullmatch(r"    --hash=sha256:[0-9a-f]{64}", each) for each in hashes)


@pytest.mark.parametrize(("name", "source"), lock.SOURCES.items())
def test_a_lock_has_the_versions_that_its_requirements_ask_for(name: str, source: str) -> None:
    lines = (ROOT / source).read_text(encoding="utf-8").splitlines()
    asked = [Requirement(line) for line in lines if line and not line.startswith(("#", "-r"))]
    locked = versions(name)
    assert asked
    for each in asked:
        assert all(each.specifier.contains(version) for version in locked[canonicalize_name(each.name)]), (
            f"{each} is not in locks/{name}.txt: make lock"
        )


@pytest.mark.parametrize("name", ["test", "cluster"])
def test_a_package_of_several_locks_has_the_same_version_and_hashes(name: str) -> None:
    def files(lock_name: str) -> set[str]:
        return {re.sub(r" ; .+(?= \\\n)", "", entry) for entry in lock.entries(text(lock_name))}  # without its systems

    assert files("run") <= files(name)


@pytest.mark.parametrize("name", ["run", "test"])
def test_a_lock_has_what_its_packages_need(name: str) -> None:
    """As the metadata of the packages installed here says. pip installs a lock without a look at it."""
    locked, seen = {**versions("cuda"), **versions(name)}, set()
    for each in requirements(name):
        try:
            package = distribution(each.name)
        except PackageNotFoundError:
            assert each.marker, f"{each.name} is locked and not installed"  # for another system
            continue
        seen.add(canonicalize_name(each.name))
        for need in map(Requirement, package.requires or []):
            if not need.marker or need.marker.evaluate({"extra": ""}):
                found = locked.get(canonicalize_name(need.name), set())
                assert any(need.specifier.contains(one, prereleases=True) for one in found), f"{package.name}: {need}"
    assert {"torch", "streamlit", "starlette"} <= seen


def test_the_libraries_of_cuda_and_the_cpu_build_are_those_of_the_locked_torch() -> None:
    (torch,) = versions("run")["torch"]
    assert versions("cpu") == {"torch": {f"{torch}+cpu"}}
    assert {"triton", "cuda-toolkit", "nvidia-cublas"} <= set(versions("cuda"))
    assert not [
        entry for name in ("run", "test", "cluster") for entry in lock.entries(text(name)) if lock.CUDA.match(entry)
    ]


# make lock

PAGE = "".join(
    f'<a href="/whl/cpu/torch-{build}-cp311-cp311-{system}.whl#sha256={digit * 64}">torch</a>\n'
    for build, system, digit in (
        ("9.1.0%2Bcpu", "win_amd64", "b"),
        ("9.1.0%2Bcpu", "manylinux_2_28_x86_64", "a"),
        ("9.1.0", "macosx_14_0_arm64", "c"),
        ("9.1.00%2Bcpu", "win_amd64", "d"),
        ("9.0.0%2Bcpu", "win_amd64", "e"),
    )
)


def test_the_cpu_builds_of_one_version_are_locked_with_all_their_hashes(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def answer(address: str, **_: object) -> BytesIO:
        asked.append(address)
        return BytesIO(PAGE.encode())

    monkeypatch.setattr(lock, "urlopen", answer)
    entry = lock.cpu_build("9.1.0", "https://example.org/cpu", [])
    assert asked == ["https://example.org/cpu/torch/"]
    assert entry == f"torch==9.1.0+cpu \\\n    --hash=sha256:{'a' * 64} \\\n    --hash=sha256:{'b' * 64}\n"
    assert lock.entries(entry) == [entry]
    with pytest.raises(SystemExit, match=r"no hash of torch==9\.2\.0\+cpu"):
        lock.cpu_build("9.2.0", "https://example.org/cpu", [])


def test_without_the_index_of_the_cpu_builds_only_their_locked_version_is_kept(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def no_answer(*_: object, **__: object) -> None:
        raise URLError("no route to host")

    monkeypatch.setattr(lock, "urlopen", no_answer)
    known = lock.entries(text("cpu"))
    (version,) = versions("run")["torch"]
    assert [lock.cpu_build(version, "https://example.org", known)] == known
    assert "stays unchanged" in capsys.readouterr().out
    with pytest.raises(SystemExit, match="no route to host"):
        lock.cpu_build("9.1.0", "https://example.org", known)


def test_the_dockerfile_names_the_index_of_the_cpu_builds() -> None:
    assert lock.cpu_index().startswith("https://") and not lock.cpu_index().endswith("/")


# set-up


def installs(name: str) -> list[str]:
    """Commands of a file that install Python packages."""
    lines = (ROOT / name).read_text(encoding="utf-8").splitlines()
    return [line.strip() for line in lines if re.search(r"\bpip\b.* install ", line) and not line.startswith("#")]


@pytest.mark.parametrize("name", ["Makefile", "Dockerfile", "scripts/install.sh"])
def test_set_up_installs_locked_files_whose_hash_is_known(name: str) -> None:
    free = [line for line in installs(name) if "--no-deps --require-hashes" not in line]
    assert all("$TORCH_INDEX" in line for line in free), "the one exception: a build of torch that a person chooses"
    assert bool(free) == (name == "scripts/install.sh")


def test_every_environment_of_the_makefile_comes_from_its_lock() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert installs("Makefile") == []
    assert re.findall(r"sh scripts/install\.sh (\S+) locks/(\w+)\.txt", makefile) == [
        ("$(PYTHON)", "run"), ("$(PYTHON)", "test"), ("$(CLUSTER)/bin/python", "cluster"),
    ]  # fmt: skip


def test_what_the_workflows_and_the_image_start_from_is_pinned_to_its_bytes() -> None:
    (image,) = re.findall(r"^FROM (\S+)", (ROOT / "Dockerfile").read_text(encoding="utf-8"), re.MULTILINE)
    assert re.fullmatch(r"python:[\w.-]+@sha256:[0-9a-f]{64}", image)
    workflow = (ROOT / ".github" / "workflows" / "ci.yml").read_text(encoding="utf-8")
    actions = re.findall(r"uses: (.+)", workflow)
    assert actions and all(re.fullmatch(r"actions/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", each) for each in actions)
