"""What pyproject.toml cannot say: which package of the repository is which of headlight, and that the screens are among them.

Inside the repository the packages are core, app and cluster, names that an environment may have for something else. A wheel has
them as headlight, headlight.app and headlight.cluster, and so the lines of app and cluster that import the others name those.
core needs no change: it imports by relative names.
"""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

from setuptools import find_packages, setup
from setuptools.command.build_py import build_py

ROOT = Path(__file__).resolve().parent
INSTALLED = {"core": "headlight", "app": "headlight.app", "cluster": "headlight.cluster"}
OF_CLUSTER = ("__init__.py", "remote.py", "wire.py")  # who asks; those who answer need Ray, and a checkout
SETTINGS = ".streamlit/config.toml"
NOTICES = "notices"  # what scripts/notices.py writes before a wheel is built for others


def as_installed(source: str, name: str) -> str:
    """The text of a module of ours with `from app.kit import ...` as `from headlight.app.kit import ...`, and nothing else changed.

    Raises ValueError for `import app.kit`, which would bind another name once it is installed.
    """
    lines = source.splitlines(keepends=True)
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import) and any(alias.name.split(".")[0] in INSTALLED for alias in node.names):
            raise ValueError(f"{name}, line {node.lineno}: write `from package import name`")
        if isinstance(node, ast.ImportFrom) and not node.level and node.module:
            package, _, rest = node.module.partition(".")
            if package in INSTALLED:
                line, start = lines[node.lineno - 1], node.col_offset  # of a line that is ASCII up to here
                there = f"{INSTALLED[package]}.{rest}" if rest else INSTALLED[package]
                begun = f"from {node.module} "
                if not line.startswith(begun, start):
                    raise ValueError(f"{name}, line {node.lineno}: write `{begun}import name` with single spaces")
                lines[node.lineno - 1] = f"{line[:start]}from {there} {line[start + len(begun) :]}"
    return "".join(lines)


class BuildWithScreens(build_py):
    """Copies packages; those of the screens with the names of an installed package. Adds the server's settings and the notices."""

    def find_package_modules(self, package: str, package_dir: str) -> list[Any]:
        found = super().find_package_modules(package, package_dir)
        return [each for each in found if package != INSTALLED["cluster"] or Path(each[2]).name in OF_CLUSTER]

    def build_module(self, module: Any, module_file: Any, package: Any) -> Any:
        there, copied = super().build_module(module, module_file, package)
        path = Path(module_file)
        if path.parts[0] in ("app", "cluster"):
            Path(there).write_text(as_installed(path.read_text(encoding="utf-8"), str(path)), encoding="utf-8")
        return there, copied

    def run(self) -> None:
        super().run()
        if not self.editable_mode:
            for source, there in self._more().items():
                Path(there).parent.mkdir(parents=True, exist_ok=True)
                self.copy_file(str(source), there)

    def get_outputs(self, include_bytecode: bool = True) -> list[str]:
        return [*super().get_outputs(include_bytecode), *self._more().values()]

    def _more(self) -> dict[Path, str]:
        """Files that belong to no package, and where each is copied."""
        assert self.build_lib is not None
        installed = Path(self.build_lib, "headlight")
        notices = {path: str(installed / NOTICES / path.name) for path in sorted((ROOT / NOTICES).glob("*"))}
        return {ROOT / SETTINGS: str(installed / "app" / SETTINGS), **notices}


def packages() -> list[str]:
    """Every package of a wheel."""
    inside = [f"{there}.{name}" for here, there in INSTALLED.items() for name in find_packages(here)]
    return [*INSTALLED.values(), *inside, "headlight.models"]


if __name__ == "__main__":
    setup(packages=packages(), cmdclass={"build_py": BuildWithScreens})
