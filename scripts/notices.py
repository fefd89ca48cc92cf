"""Write an SBOM (CycloneDX) and the licences of the packages that Headlight runs with, as they are installed here.

    python scripts/notices.py FOLDER LOCK ...

Fails if a locked package for this system is not installed, or if its licence or the text of that is unknown.
"""

from __future__ import annotations

import json
import re
import sys
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[1]
APACHE = "Apache-2.0"  # its text is in LICENSE
CLASSIFIED = {
    "Apache Software License": APACHE,
    "BSD License": "BSD",
    "MIT License": "MIT",
    "Mozilla Public License 2.0 (MPL 2.0)": "MPL-2.0",
}
TEXT = re.compile(r"(?:.*licen[cs]e|notice|copying|authors|third.?party).*", re.IGNORECASE)
NO_TEXT = {".py", ".pyc", ".pyi", ".js", ".json", ".css", ".h", ".hpp", ".map", ".so"}
RULE = "=" * 100


class Unknown(Exception):
    """A package has no licence, or no text of it, or is not installed. The message names the package."""


def locked(files: list[Path]) -> list[str]:
    """Names of the packages that locks have for this system."""
    lines = [line for file in files for line in file.read_text(encoding="utf-8").splitlines()]
    wanted = [Requirement(re.split(r" \\$| --hash=", line)[0]) for line in lines if re.match(r"[\w.-]+==", line)]
    return sorted({canonicalize_name(each.name) for each in wanted if not each.marker or each.marker.evaluate()})


def installed(name: str) -> Distribution:
    try:
        return distribution(name)
    except PackageNotFoundError as error:
        raise Unknown(f"{name} is locked and not installed.") from error


def field(package: Distribution, name: str) -> str:
    return next(iter(package.metadata.get_all(name) or []), "").strip()


def expression(package: Distribution) -> str:
    """SPDX expression of a package. Older packages have none."""
    return field(package, "License-Expression")


def licence(package: Distribution) -> str:
    """SPDX expression of a package, or the name that its metadata has instead. Raises Unknown."""
    if spdx := expression(package):
        return spdx
    classifiers = package.metadata.get_all("Classifier") or []
    classified = [each.rpartition(" :: ")[2] for each in classifiers if each.startswith("License")]
    stated = field(package, "License")
    if stated and "\n" not in stated and len(stated) < 80:
        return stated
    if classified:
        return " AND ".join(CLASSIFIED.get(each, each) for each in classified)
    raise Unknown(f"{package.name} states no licence.")


def texts(package: Distribution) -> list[tuple[str, str]]:
    """Names and contents of the licence files of a package. Raises Unknown if there is none and it is not Apache's licence."""
    files = [file for file in package.files or [] if TEXT.fullmatch(file.name) and file.suffix not in NO_TEXT]
    found = [(str(file), Path(str(file.locate())).read_text(encoding="utf-8", errors="replace")) for file in files]
    if found:
        return found
    if not licence(package).startswith("Apache"):
        raise Unknown(f"{package.name} has no licence file.")
    return [(APACHE, (ROOT / "LICENSE").read_text(encoding="utf-8"))]


def notice(package: Distribution) -> str:
    parts = [f"{RULE}\n{package.name} {package.version}\nLicence: {licence(package)}\n{RULE}\n"]
    return "\n".join([*parts, *(f"--- {name}\n\n{text.strip()}\n" for name, text in texts(package))])


def reference(package: Distribution) -> str:
    return f"pkg:pypi/{canonicalize_name(package.name)}@{package.version}"


def component(package: Distribution) -> dict[str, Any]:
    return {
        "type": "library",
        "bom-ref": reference(package),
        "name": canonicalize_name(package.name),
        "version": package.version,
        "purl": reference(package).replace("+", "%2B"),
        "licenses": [
            {"expression": spdx} if (spdx := expression(package)) else {"license": {"name": licence(package)}}
        ],
    }


def needs(package: Distribution, others: dict[str, Distribution]) -> list[str]:
    """References of the packages that this one requires here."""
    wanted = [Requirement(line) for line in package.requires or []]
    names = {canonicalize_name(each.name) for each in wanted if not each.marker or each.marker.evaluate({"extra": ""})}
    return sorted(reference(others[name]) for name in names & set(others))


def bill(packages: dict[str, Distribution]) -> dict[str, Any]:
    """The SBOM. The same packages give the same bytes: it has no time and no serial number."""
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {
            "component": {
                "type": "application",
                "name": "headlight-attention",
                "licenses": [{"license": {"id": APACHE}}],
            }
        },
        "components": [component(package) for package in packages.values()],
        "dependencies": [
            {"ref": reference(package), "dependsOn": needs(package, packages)} for package in packages.values()
        ],
    }


def main(folder: Path, locks: list[Path]) -> None:
    packages = {name: installed(name) for name in locked(locks)}
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "sbom.cdx.json").write_text(json.dumps(bill(packages), indent=1) + "\n", encoding="utf-8")
    notices = "\n".join(notice(package) for package in packages.values())
    (folder / "THIRD_PARTY_NOTICES.txt").write_text(notices, encoding="utf-8")
    print(f"{folder}: an SBOM and the licences of {len(packages)} packages")


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    try:
        main(Path(sys.argv[1]), [Path(each) for each in sys.argv[2:]])
    except Unknown as error:
        sys.exit(str(error))
