#!/usr/bin/env bash
# The container tier: builds the image, runs a mesh of three containers on a Docker network of its own, and sweeps it.
# Proves that the static files work without any libc, that names come from DNS, that a sound mesh is exit 0, and that a
# mesh without one of its nodes is exit 3. Removes what it made. Where there is no Docker it prints SKIP and exits 0, or 1
# with RAILMESH_CI_STRICT=1.
set -euo pipefail
cd "$(dirname "$0")/../.."

if ! docker version >/dev/null 2>&1; then
    echo "SKIP containers: no Docker engine answers (docker version)"
    [[ -z "${RAILMESH_CI_STRICT:-}" ]]
    exit
fi

id="railmesh-test-$$"
image="$id:test"
work="$(mktemp -d)"
nodes=(n1 n2 n3)

clean() {
    docker rm --force "${nodes[@]/#/$id-}" >/dev/null 2>&1 || true
    docker network rm "$id" >/dev/null 2>&1 || true
    docker rmi "$image" >/dev/null 2>&1 || true
    rm -rf "$work"
}
trap clean EXIT

fail() {
    echo "FAIL: $*" >&2
    for node in "${nodes[@]}"; do
        echo "--- log of $node" >&2
        docker logs "$id-$node" 2>&1 | tail -n 30 >&2 || true
    done
    exit 1
}

# A sweep by a client in a container of its own; result.json goes to $work/$1.json. Gives the exit code.
sweep() {
    local code=0
    docker run --rm --network "$id" --volume "$work/in:/in:ro" "$image" \
        sweep /in/plan.toml --key /in/mesh.key --connect n1:7777 --out /tmp/run --json >"$work/$1.json" || code=$?
    echo "$code"
}

deploy/image.sh "$image"
mkdir "$work/in"
deploy/out/image/railmesh keygen "$work/in/mesh.key"
# Absolute limits alone: this proves the image, and containers on one busy machine are no population.
cat >"$work/in/plan.toml" <<'TOML'
duration = "300ms"
warmup = "50ms"
rate_limit = "200M"
[gates]
min_bandwidth = "150M"
max_latency = "50ms"
population = "off"
TOML

docker network create "$id" >/dev/null
for node in "${nodes[@]}"; do
    docker run --detach --name "$id-$node" --hostname "$node" --network "$id" --network-alias "$node" \
        --volume "$work/in:/in:ro" "$image" \
        agent --key /in/mesh.key --peers 'n[1-3]' --join-timeout 10s >/dev/null
done

code="$(sweep whole)"
[ "$code" = 0 ] || fail "the sweep of a sound mesh ended with $code"
passed="$(grep -c '"status": "pass"' "$work/whole.json" || true)"
[ "$passed" = 12 ] || fail "3 nodes, 1 rail and 2 tests are 12 cells; $passed passed"
echo "ok: three containers, 12 cells, exit 0"

docker stop "$id-n3" >/dev/null
code="$(sweep without)"
[ "$code" = 3 ] || fail "the sweep without n3 ended with $code"
grep -q '"status": "not_tested"' "$work/without.json" || fail "no cell of n3 is not_tested"
echo "ok: without n3, exit 3"
