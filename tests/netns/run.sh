#!/usr/bin/env bash
# Tier 2: scenarios over real addresses in network namespaces. Builds the executable and the tests, then runs them.
#
#   sudo tests/netns/run.sh [FILTER]      FILTER: only scenarios whose name contains it; default: all of them
#
# Needs root, ip and tc (iproute2), dnsmasq, taskset and unshare (util-linux); faketime for one scenario. Installs nothing: what
# is missing is said in a line that begins with SKIP. Exit code 0 if all that could run passed; 1 if one failed.
# With RAILMESH_REQUIRE_TIER2=1 a SKIP is a failure too, for machines that are there to run this tier.
set -euo pipefail
cd "$(dirname "$0")/../.."
filter="${1:-netns}"
skipped=0

skip() {
    echo "SKIP tier 2 (network namespaces): $1" >&2
    skipped=1
}

finish() {
    if [ "$skipped" = 1 ] && [ "${RAILMESH_REQUIRE_TIER2:-0}" = 1 ]; then
        echo "FAIL tier 2: RAILMESH_REQUIRE_TIER2=1 allows no SKIP" >&2
        exit 1
    fi
    exit 0
}

[ "$(id -u)" = 0 ] || { skip "needs root; all scenarios"; finish; }
for tool in ip tc taskset unshare; do
    command -v "$tool" >/dev/null || { skip "$tool is not installed; all scenarios"; finish; }
done
# Containers can be root and still may not make namespaces.
probe="rmtest-$$-probe"
if ! reason="$(ip netns add "$probe" 2>&1 && ip -n "$probe" link add probe0 type veth peer name probe1 2>&1 &&
    tc -n "$probe" qdisc add dev probe0 root tbf rate 1gbit burst 256kb latency 20ms 2>&1)"; then
    ip netns del "$probe" 2>/dev/null || true
    skip "the kernel refuses a namespace with veth and tbf (${reason}); all scenarios"
    finish
fi
ip netns del "$probe"

without=()
if ! command -v dnsmasq >/dev/null; then
    skip "dnsmasq is not installed; the scenarios of a Service"
    without+=(--skip netns::service::)
fi
if ! command -v faketime >/dev/null; then
    skip "faketime is not installed; the scenario of a wrong wall clock"
    without+=(--skip wall_clock)
fi
if ! unshare --time --monotonic 60 true 2>/dev/null; then
    skip "the kernel has no time namespaces; the scenario of a shifted monotonic clock"
    without+=(--skip monotonic_clock)
fi

# What a killed test left behind: namespaces are named after the process that made them.
sweep_up() {
    local name owner
    for name in $(ip netns list | awk '/^rmtest-/ { print $1 }'); do
        owner="$(cut -d- -f2 <<<"$name")"
        if [ ! -d "/proc/$owner" ]; then
            ip netns pids "$name" | xargs -r kill -9 || true
            ip netns del "$name" || true
            rm -rf "/etc/netns/$name"
        fi
    done
}
trap sweep_up EXIT

cargo build --locked -p railmesh
target="${CARGO_TARGET_DIR:-target}"
RAILMESH_BIN="$(realpath "$target")/debug/railmesh"
export RAILMESH_BIN
cargo test --locked -p tests --test scenarios -- --ignored "$filter" --test-threads=1 --nocapture "${without[@]}"
finish
