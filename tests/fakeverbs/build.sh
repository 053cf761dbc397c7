#!/bin/sh
# Builds the recording library.
#
#   tests/fakeverbs/build.sh FOLDER      makes FOLDER/libibverbs.so.1
#
# Needs only a C compiler: no RDMA headers. The library has no SONAME, so that a program may load it in front of the real
# one with LD_PRELOAD, and finds it by its file name with LD_LIBRARY_PATH.
set -eu
here="$(cd "$(dirname "$0")" && pwd)"
folder="$1"
mkdir -p "$folder"
made="$folder/.libibverbs.$$"
"${CC:-cc}" -std=gnu11 -O2 -g1 -fPIC -shared -fvisibility=default -Wall -Wextra -Werror -Wno-missing-field-initializers \
    -Wl,-z,defs -Wl,--version-script="$here/libibverbs.map" -o "$made" \
    "$here/data.c" "$here/devices.c" "$here/fabric.c" "$here/inject.c" "$here/objects.c" "$here/qp.c" "$here/record.c" \
    "$here/scenario.c" "$here/transfer.c" "$here/unsupported.c" -lpthread
mv "$made" "$folder/libibverbs.so.1"
