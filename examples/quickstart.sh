#!/bin/sh
# Starts all services on an empty store, applies the packages of this folder twice, and stops everything again.
# usage: examples/quickstart.sh DIR_OF_PKGER
set -eu
here=$(dirname "$0")
bin=$1
work=$(mktemp -d "${TMPDIR:-/tmp}/pkger-quickstart.XXXXXX")
up=

finish() {
    status=$?
    trap - EXIT INT TERM
    if [ -n "$up" ]; then kill "$up" 2>/dev/null && wait "$up" || true; fi
    [ "$status" -eq 0 ] || tail -n 20 "$work/up.log" >&2
    rm -rf "$work"
    exit "$status"
}
trap finish EXIT
trap 'exit 1' INT TERM

# Everything in a folder of this run, and no port: two runs do not interfere.
export PKGER_HOME="$work"
for service in parser planner applier stack; do
    export "PKGER_$(echo "$service" | tr a-z A-Z)_ADDRESS=unix:$work/run/$service.sock"
done

step() { printf '\n$ %s\n' "$*"; "$@"; }

"$bin/pkger" up >"$work/up.log" 2>&1 &
up=$!
"$bin/python" -m services.healthcheck stack platform parser planner applier --wait --timeout 30
step "$bin/pkger" apply -f "$here/labels.json" -f "$here/fleet.yml" --stack quickstart --yes
step "$bin/pkger" stacks show quickstart -o json
step "$bin/pkger" apply -f "$here/labels.json" -f "$here/fleet.yml" --stack quickstart --yes
