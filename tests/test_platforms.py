"""Other systems, as far as one can tell from here: what Windows lacks is not imported, and no text depends on a system's encoding."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from tests.every import of_every

ROOT = Path(__file__).resolve().parents[1]
PRODUCT = ("core", "app", "cluster", "deploy", "scripts", "benchmarks")
FILES = [path for folder in PRODUCT for path in sorted((ROOT / folder).rglob("*.py"))]
# Every module is imported twice: once here, which brings what we build upon, and then as on a system without these.
WITHOUT = """
import importlib, os, signal, sys
from pathlib import Path

names = []
for folder in ("core", "app"):
    for path in sorted(Path(folder).rglob("*.py")):
        parts = path.with_suffix("").parts
        parts = parts[:-1] if parts[-1] == "__init__" else parts
        if parts[-1] not in ("__main__", "atlas_ray", "ui"):  # they run when they are imported, or need Ray
            names.append(".".join(parts))

def all_of_them():
    for name in names:
        importlib.import_module(name)

all_of_them()
import asyncio, subprocess, torch
for name in [name for name in sys.modules if name.partition(".")[0] in ("core", "app", "cluster")]:
    del sys.modules[name]
for name in ("resource", "fcntl", "termios", "pwd", "grp"):
    sys.modules[name] = None  # import raises ModuleNotFoundError
for name in ("sysconf", "sysconf_names", "uname", "fork", "getuid", "nice", "sched_getaffinity"):
    delattr(os, name)
for name in ("SIGHUP", "SIGUSR1", "SIGKILL"):
    delattr(signal, name)
sys.platform = "win32"
all_of_them()

from core import device, memory
from core.service import cores
from app.transport import files
files.allow(1000)
cpu = torch.device("cpu")
memory.Path = device.Path = lambda *_: Path("nowhere")  # nor are there /proc and /sys
print(memory._system_free() >> 30, device.total_bytes(cpu) >> 30, device.default_budget(cpu).models >> 20, cores() >= 1)
import core
print(core.plan(core.load("copy").config, batch=1, source_len=8).total > 0, len(names))
"""


@pytest.mark.thorough
def test_every_module_is_imported_and_memory_is_predicted_without_what_windows_lacks() -> None:
    done = subprocess.run([sys.executable, "-c", WITHOUT], cwd=ROOT, capture_output=True, text=True, encoding="utf-8")
    assert done.returncode == 0, done.stderr
    first, second = done.stdout.splitlines()
    assert first == "4 4 512 True"  # where nothing is known of the machine
    known, modules = second.split()
    assert known == "True" and int(modules) > 300


def opened_as_text(tree: ast.AST) -> list[str]:
    """The calls that open, read or write a file as text and name no encoding."""
    found = []
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or "encoding" in {keyword.arg for keyword in node.keywords}:
            continue
        said = ast.unparse(node.func)
        name = said.rpartition(".")[2]
        arguments = [argument.value for argument in node.args if isinstance(argument, ast.Constant)]
        if name == "read_text" and not node.args:
            found.append(ast.unparse(node))
        if name == "write_text" and len(node.args) < 2:
            found.append(ast.unparse(node))
        of_a_path = "." in said and not node.keywords and all(str(value)[:1] in "rwax" for value in arguments)
        if said == "open" or (name == "open" and of_a_path and len(arguments) == len(node.args) == 1):
            mode = arguments[-1] if arguments and (said != "open" or len(node.args) > 1) else "r"
            if "b" not in str(mode):
                found.append(ast.unparse(node))
    return found


def test_a_text_file_without_an_encoding_is_found() -> None:
    wrong = ("open(p)", "open(p, 'w')", "p.open('w')", "p.read_text()", "p.write_text(t)")
    right = (
        "open(p, 'rb')",
        "p.open('rb')",
        "p.open('w', encoding='utf-8')",
        "p.read_text('utf-8')",
        "door.open(also)",
    )
    assert [len(opened_as_text(ast.parse(line))) for line in (*wrong, *right)] == [1] * 5 + [0] * 5


@pytest.mark.thorough
@of_every(FILES, lambda path: str(path.relative_to(ROOT)))
def test_no_text_depends_on_the_encoding_of_a_system(path: Path) -> None:
    assert not opened_as_text(ast.parse(path.read_text(encoding="utf-8")))
