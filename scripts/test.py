"""`make test`: `make check` and every test at the same time. Arguments are pytest's.

The two processes of the tests wait for their browsers now and then, and the checks take one core for as long as they last. What the
checks say is printed at the end, in one piece.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile

from scripts.check import ROOT

PYTEST = ["-m", "pytest", "-n", "2", "--dist", "worksteal", "--durations=20"]
CHECK = ["-m", "scripts.check", "1"]


def main(arguments: list[str], pytest: list[str] = PYTEST, check: list[str] = CHECK) -> int:
    with tempfile.TemporaryFile() as out:
        checking = subprocess.Popen([sys.executable, *check], cwd=ROOT, stdout=out, stderr=subprocess.STDOUT)
        try:
            tests = subprocess.run([sys.executable, *pytest, *arguments], cwd=ROOT).returncode
            checks = checking.wait()
        finally:
            checking.kill()
            checking.wait()
        out.seek(0)
        print(out.read().decode(errors="replace"), end="", flush=True)
    return tests or checks


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
