#!/usr/bin/env bash
# Builds the two executables of a deployment into deploy/out/:
#   railmesh         the control-only agent, static-pie: runs on any Linux of this architecture
#   railmesh-worker  the data worker, dynamic: loads vendor libraries of the node it runs on
# The agent finds the worker beside itself. Needs only Rust and a C compiler.
set -euo pipefail
cd "$(dirname "$0")/.."
target="$(rustc -vV | sed -n 's/^host: //p')"
out=deploy/out
mkdir -p "$out"

# --target keeps the flag away from build scripts and procedural macros.
RUSTFLAGS='-C target-feature=+crt-static' cargo build --locked --release --target "$target" \
    --target-dir target/static -p railmesh --no-default-features --features control --bin railmesh
cargo build --locked --release --target-dir target/worker -p railmesh --no-default-features --features worker \
    --bin railmesh-worker
cp "target/static/$target/release/railmesh" "$out/railmesh"
cp target/worker/release/railmesh-worker "$out/railmesh-worker"

# The agent must be static and must not contain the data plane; the worker must be dynamic and contain no mesh.
# Outputs are captured first: with pipefail, a reader that stops early would look like a failure of the writer.
if [[ "$(ldd "$out/railmesh" 2>&1 || true)" == *"=>"* ]]; then
    echo "error: $out/railmesh is not static" >&2
    exit 1
fi
if [[ "$(ldd "$out/railmesh-worker")" != *libc.so* ]]; then
    echo "error: $out/railmesh-worker is not dynamic" >&2
    exit 1
fi
links() { cargo tree --locked -p railmesh --no-default-features --features "$1" --edges features -i transport; }
if [[ "$(links control)" == *'transport feature "data"'* ]]; then
    echo "error: the control-only agent links the data plane" >&2
    exit 1
fi
if [[ "$(links worker)" == *'transport feature "control"'* ]]; then
    echo "error: the worker links the control mesh" >&2
    exit 1
fi
ls -l "$out"
