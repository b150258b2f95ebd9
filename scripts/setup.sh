#!/usr/bin/env bash
# Make the virtual environment with scopedown (editable) and its development tools.
# On Debian and Ubuntu, run as root, a missing python3-venv is installed, on Debian also chromium for the tests of the
# HTML report; elsewhere this says what is missing.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
python="${PYTHON:-python3}"
venv="${VENV:-.venv}"

say() { printf 'setup: %s\n' "$*"; }

if ! command -v "$python" >/dev/null; then
    say "$python is not on PATH: install Python 3.11 or newer, or name it: make PYTHON=/path/to/python3.12" >&2
    exit 1
fi
if ! "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))'; then
    say "$("$python" --version) is too old: Python 3.11 or newer is needed: make PYTHON=/path/to/python3.12" >&2
    exit 1
fi
if ! "$python" -c 'import ensurepip, venv' 2>/dev/null; then
    package="$("$python" -c 'import sys; print("python%d.%d-venv" % sys.version_info[:2])')"
    if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
        say "$python has no venv module: installing $package with apt-get"
        apt-get update -qq
        DEBIAN_FRONTEND=noninteractive apt-get install -y -qq "$package" ||
            DEBIAN_FRONTEND=noninteractive apt-get install -y -qq python3-venv
    else
        say "$python has no venv module: install it (Debian, Ubuntu: apt-get install $package) and run make again" >&2
        exit 1
    fi
fi
# The tests of the HTML report drive a real browser; without one they are skipped.
if ! command -v chromium >/dev/null && [ "$(id -u)" = 0 ] && grep -qs '^ID=debian' /etc/os-release; then
    say "no chromium, which the tests of the HTML report drive: installing it with apt-get"
    { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq chromium >/dev/null; } ||
        say "chromium could not be installed: those tests will be skipped"
fi
if [ ! -x "$venv/bin/python" ] || ! "$venv/bin/python" -m pip --version >/dev/null 2>&1; then
    say "creating $venv with $("$python" --version)"
    "$python" -m venv --clear "$venv"
fi
say "installing scopedown and its development tools into $venv"
"$venv/bin/python" -m pip install --quiet --disable-pip-version-check -e '.[dev]'
say "ready: $("$venv/bin/scopedown" --version)"
