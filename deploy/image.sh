#!/usr/bin/env bash
# Builds the container image: deploy/image.sh [TAG], by default railmesh:VERSION.
# Links agent and worker statically into deploy/out/image/ and puts the two into an image FROM scratch.
# Needs Rust, a C compiler and a Docker engine; no image is pulled.
set -euo pipefail
cd "$(dirname "$0")/.."
version="$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -n 1)"
tag="${1:-railmesh:$version}"
target="$(rustc -vV | sed -n 's/^host: //p')"
context=deploy/out/image
mkdir -p "$context"

# --target keeps the flag away from build scripts and procedural macros. Two calls, so that neither links the other's half.
for part in control:railmesh worker:railmesh-worker; do
    RUSTFLAGS='-C target-feature=+crt-static' cargo build --locked --release --target "$target" \
        --target-dir target/static -p railmesh --no-default-features --features "${part%%:*}" --bin "${part##*:}"
    cp "target/static/$target/release/${part##*:}" "$context/"
    if ldd "$context/${part##*:}" 2>&1 | grep -q '=>'; then
        echo "error: $context/${part##*:} is not static" >&2
        exit 1
    fi
done
docker build --quiet --file deploy/Dockerfile --tag "$tag" "$context"
