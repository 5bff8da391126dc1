#!/usr/bin/env bash
# Prints a Python of at least 3.11, or says what to install.
set -euo pipefail

candidates=("${PYTHON:-}" python3 python3.14 python3.13 python3.12 python3.11 python)
for candidate in "${candidates[@]}"; do
    [[ -n "$candidate" ]] || continue
    if "$candidate" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; then
        command -v "$candidate"
        exit 0
    fi
done

cat >&2 <<'MESSAGE'
No Python of at least 3.11 (with venv) was found. Install one, or name it: make PYTHON=/path/to/python ...
  Debian, Ubuntu   sudo apt-get install python3 python3-venv
  Fedora           sudo dnf install python3
  macOS            brew install python
MESSAGE
exit 1
