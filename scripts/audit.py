"""Ask the advisory database of PyPI about every pinned package (pip-audit), and say plainly where that could not be done.

    python scripts/audit.py

0: nothing known, or it did not run; 1: something is known. pip-audit is not installed with the rest: it is fetched here, into an
environment of its own, for it is no part of what it looks at.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
AUDITOR = "pip-audit==2.10.1"
FILES = ("requirements.txt", "requirements-models.txt", "requirements-dev.txt", "requirements-cluster.txt")
DID_NOT_RUN = "pip-audit did NOT run: {why} Nothing is known about advisories of the pinned packages."


def main() -> int:
    with tempfile.TemporaryDirectory() as folder:
        venv.create(folder, with_pip=True)
        python = str(Path(folder, "bin", "python"))
        fetched = subprocess.run(
            [python, "-m", "pip", "--disable-pip-version-check", "install", "-q", AUDITOR],
            capture_output=True,
            text=True,
        )
        if fetched.returncode:
            print(DID_NOT_RUN.format(why=f"{AUDITOR} could not be installed."))
            return 0
        return verdict(audit(python))


def pins() -> list[str]:
    """name==version of every file, without hashes: pip-audit wants those of all packages or of none."""
    lines = [line for name in FILES for line in (ROOT / name).read_text(encoding="utf-8").splitlines()]
    return sorted({line.split()[0] for line in lines if "==" in line and not line.startswith("#")})


def audit(python: str) -> subprocess.CompletedProcess[str]:
    """pip-audit on the pins themselves, without solving for what they bring along."""
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as asked:
        asked.write("\n".join(pins()))
        asked.flush()
        command = [
            python,
            "-m",
            "pip_audit",
            "--no-deps",
            "--disable-pip",
            "--progress-spinner",
            "off",
            "-f",
            "json",
            "-r",
            asked.name,
        ]
        return subprocess.run(command, capture_output=True, text=True)


def verdict(ran: subprocess.CompletedProcess[str]) -> int:
    """Print what pip-audit found.

    Where no database answers it says "no known vulnerabilities" too, and that it skipped every package: only those that it
    asked about count.
    """
    try:
        packages = json.loads(ran.stdout)["dependencies"]
    except (ValueError, KeyError):
        last = next((line.strip() for line in reversed(ran.stderr.splitlines()) if line.strip()), "it said nothing")
        print(DID_NOT_RUN.format(why=f"it failed ({last[:160]})."))
        return 0
    asked = [package for package in packages if "skip_reason" not in package]
    if not asked:
        print(DID_NOT_RUN.format(why="the advisory database knows none of them here, or could not be asked."))
        return 0
    known = [(package, found) for package in asked for found in package["vulns"]]
    for package, found in known:
        print(
            f"{package['name']} {package['version']}: {found['id']}, mended in {', '.join(found['fix_versions']) or 'none'}"
        )
    left = f" {len(packages) - len(asked)} could not be asked about." if len(asked) < len(packages) else ""
    print(f"pip-audit ran: {len(known)} advisories for {len(asked)} pinned packages.{left}")
    return 1 if known else 0


if __name__ == "__main__":
    sys.exit(main())
