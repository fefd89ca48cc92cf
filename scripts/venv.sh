#!/bin/sh
# Makes the virtual environment named by $1 with the first Python 3.11 or newer it finds, or says what is missing.
set -eu

for candidate in python3.11 python3.12 python3.13 python3.14 python3 python; do
    if "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; then
        python=$candidate
        break
    fi
done

if [ -z "${python:-}" ]; then
    echo "Headlight needs Python 3.11 or newer, and no such Python is on the PATH. Install one (Debian and Ubuntu:" \
        "apt-get install python3 python3-venv; macOS: brew install python@3.11; or python.org) and run make again." >&2
    exit 1
fi

# Debian's python3 comes without ensurepip; venv would then fail half-way and leave a directory behind.
if ! "$python" -c 'import venv, ensurepip' >/dev/null 2>&1; then
    version=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
    echo "Python $version is here, but it cannot make virtual environments. Install its venv package" \
        "(Debian and Ubuntu, as root: apt-get install python$version-venv) and run make again." >&2
    exit 1
fi

echo "Setting up Headlight in $1 with $("$python" --version)."
if ! "$python" -m venv --clear "$1"; then
    rm -rf "$1"
    echo "The virtual environment could not be made; the lines above say why." >&2
    exit 1
fi
