"""`make test`: run the checks and all tests at the same time. Arguments are passed to pytest.

The two test processes wait for their browsers a part of the time, and the checks use one core. The output of the checks is printed
at the end.
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
