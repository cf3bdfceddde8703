#!/usr/bin/env bash
# Everything that must hold, in a virtual environment of its own: style, types, imports between rooms, behaviour.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

python="${PYTHON:-python3}"
[ -x .venv/bin/python ] || "$python" -m venv .venv
.venv/bin/python -m pip install --quiet --disable-pip-version-check -r tests/requirements.txt -e .

.venv/bin/ruff check
.venv/bin/ruff format --check
.venv/bin/mypy
.venv/bin/lint-imports --no-logo --no-cache
.venv/bin/pytest </dev/null
