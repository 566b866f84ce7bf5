#!/bin/sh
# Makes a virtual environment with the pinned versions: ci/install.sh FOLDER
# PYTHON names the interpreter to use; without it the first of python3, python3.11 .. that is new enough.
set -eu
folder=$1
here=$(dirname "$0")

new_enough() { "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; }

python=${PYTHON:-}
if [ -n "$python" ]; then
    new_enough "$python" || { echo "$python is missing or older than Python 3.11" >&2; exit 2; }
else
    for candidate in python3 python3.11 python3.12 python3.13 python3.14; do
        if new_enough "$candidate"; then python=$candidate; break; fi
    done
    [ -n "$python" ] || { echo "trivet needs Python 3.11 or newer; none found (set PYTHON=..)" >&2; exit 2; }
fi

make_environment() {
    "$python" -m venv "$folder" 2>/dev/null && return 0
    rm -rf "$folder"
    "$python" -m virtualenv "$folder" 2>/dev/null && return 0
    rm -rf "$folder"
    "$python" -m venv --without-pip "$folder" 2>/dev/null &&
        "$python" -m pip --python "$folder/bin/python" install --quiet pip 2>/dev/null && return 0
    rm -rf "$folder"
    return 1
}

# Debian and Ubuntu ship Python without ensurepip: the package python3-venv brings it.
if [ ! -x "$folder/bin/python" ] && ! make_environment; then
    package=$("$python" -c 'import sys; print("python%d.%d-venv" % sys.version_info[:2])')
    if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
        echo "no usable venv module: installing $package" >&2
        apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq "$package" >&2
    fi
    make_environment || {
        echo "$python cannot make a virtual environment; install it: apt-get install $package" >&2
        exit 2
    }
fi

pip="$folder/bin/python -m pip --disable-pip-version-check --no-input"
constraints=$here/constraints.txt
$pip install --quiet --constraint "$constraints" setuptools wheel
$pip install --quiet --no-deps --constraint "$constraints" torch 2>/dev/null || {
    echo "the package index has no CPU build of torch for this Python: using the public build (large)" >&2
    constraints=$here/constraints-pypi.txt
}
$pip install --quiet --constraint "$constraints" --editable "$here/..[dev]"
