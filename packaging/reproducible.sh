#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# reproducible.sh KIND...: builds packages of each kind (packaging/build.sh) twice from what is committed, in two clones with
# other paths, masks of rights, locales, time zones and home directories, one after the other, and compares the files.
# Prints a line for each. What differs is left in build/reproducible.
#
# Plug-ins for NVIDIA's GPUs are left out, unless TUTTI_CUDA says otherwise: nvcc puts a checksum of a source's path into the
# names of its kernels, so they have the same bytes in the same folder only.
#
# Of Debian's files those that tell when and where a package was built are left out: .buildinfo, and .changes, which holds
# its checksum.
set -eu
cd "$(dirname "$0")/.."

[ $# -gt 0 ] || {
    sed -n '4,6p' "$0" | sed 's/^# \{0,1\}//' >&2
    exit 2
}
folder=$PWD/build/reproducible
export TUTTI_CUDA="${TUTTI_CUDA:-disabled}"
rm -rf "$folder"
mkdir -p "$folder/home"

# build_in CLONE OUT MASK VARIABLE=VALUE... KIND...
build_in() {
    clone=$1 out=$2 mask=$3
    shift 3
    git clone -q . "$clone"
    (umask "$mask" && cd "$clone" && env "$@" "$out") >"$out.log" 2>&1 || {
        tail -n 30 "$out.log" >&2
        exit 1
    }
    rm -rf "$clone"
}

build_in "$folder/first" "$folder/one" 022 TZ=UTC LC_ALL=C.UTF-8 packaging/build.sh "$@"
build_in "$folder/second/place/below" "$folder/two" 077 TZ=Asia/Tokyo LC_ALL=C LANGUAGE=fr HOME="$folder/home" \
    packaging/build.sh "$@"

differ=0
for file in $(cd "$folder" && find one two -type f ! -name '*.buildinfo' ! -name '*.changes' | sed 's|^[a-z]*/||' | sort -u); do
    first=$(sha256sum <"$folder/one/$file" || true)
    second=$(sha256sum <"$folder/two/$file" || true)
    if [ "$first" = "$second" ]; then
        echo "same    $(echo "$first" | cut -c1-16) $file"
    else
        echo "differs $file"
        differ=$((differ + 1))
    fi
done
echo "$differ differ"
[ "$differ" = 0 ]
