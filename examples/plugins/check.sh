#!/bin/bash
# Builds Hookline and these plugins as wheels, installs them in an environment of their own, and
# runs the plugins' tests there: what a stranger's plugin needs is what a wheel brings.
#
#     examples/plugins/check.sh [DIRECTORY FOR THE ENVIRONMENT]
set -euo pipefail
cd "$(dirname "$0")"
work="${1:-$(mktemp -d)}"
pip=(--disable-pip-version-check --quiet)

python3 -m venv "$work/venv"
"$work/venv/bin/pip" wheel "${pip[@]}" --no-deps --wheel-dir "$work/wheels" ../.. ./*/
hookline=("$work"/wheels/hookline-[0-9]*.whl)
plugins=()
for wheel in "$work"/wheels/hookline_*.whl; do plugins+=("$wheel[test]"); done
"$work/venv/bin/pip" install "${pip[@]}" "${hookline[0]}[structured,websearch]" "${plugins[@]}"

"$work/venv/bin/hookline" plugins list
for plugin in */; do
    printf '\n-- %s\n' "$plugin"
    "$work/venv/bin/python" -m pytest -q -p no:cacheprovider --import-mode=importlib \
        --override-ini=filterwarnings=error --rootdir "$plugin" -c /dev/null "$plugin/tests"
done
