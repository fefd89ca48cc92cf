"""The Chromium that the browser tests drive: find it, or install it where that is one command."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

NAMES = (
    "chromium-headless-shell",  # without windows, menus and tabs of its own: three quarters of the work for a page
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
    "/Applications/Chromium.app/Contents/MacOS/Chromium",
)
APT_GET = "apt-get"
PACKAGES = ("chromium-headless-shell", "fonts-dejavu-core")  # without a font, every label is drawn as nothing


def find() -> str | None:
    """The path of the first Chromium or Chrome on this machine; None where there is none."""
    return next((path for name in NAMES if (path := shutil.which(name))), None)


def install() -> None:
    """Ask Debian's package manager; whether it worked is for find() to say."""
    subprocess.run([APT_GET, "update"], check=False)
    environment = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
    subprocess.run([APT_GET, "install", "-y", "--no-install-recommends", *PACKAGES], check=False, env=environment)


def main() -> int:
    if find() is None and shutil.which(APT_GET) and os.geteuid() == 0:
        install()
    if find() is None:
        print(
            "The browser tests need Chromium or Chrome, and neither is on this machine. Install one "
            f"(Debian, as root: apt-get install {' '.join(PACKAGES)}; macOS: brew install --cask chromium) "
            "and run make test again.",
            file=sys.stderr,
        )
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
