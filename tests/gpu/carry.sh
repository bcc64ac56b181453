#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# carry.sh [FOLDER]: fetches the packages that a build for GPUs needs and unpacks them in a folder (build/packages), where
# run.sh finds them; nothing is installed. run.sh calls it where there is apt. For a machine without a package manager call
# it where there is one, and bring the folder along. About 40 MB, most of it the images of Fashion-MNIST.
#
# FOLDER/run has the libraries that programs need when they run, FOLDER/python PyYAML.
set -eu
case ${1:-} in
-*) sed -n '4,8{s/^# \{0,1\}//;p}' "$0" >&2 && exit 2 ;;
esac
[ $# -gt 0 ] || set -- "$(dirname "$0")/../../build/packages"
mkdir -p "$(dirname "$1")"
target=$(cd "$(dirname "$1")" && pwd)/$(basename "$1")
if [ -e "$target" ] && [ ! -e "$target/carried" ]; then
    echo "carry.sh: $target is there already, and not of its making: it goes first, or another name is given" >&2
    exit 1
fi
fetched=$(mktemp -d)
# Aside, until all is there.
folder=$target.new
trap 'rm -rf "$fetched" "$folder"' EXIT
rm -rf "$folder"
mkdir -p "$folder/run"
cd "$fetched"

# Where no archive is reached, that shows soon.
apt="-o Acquire::Retries=0 -o Acquire::http::Timeout=10 -o Acquire::https::Timeout=10 -o APT::Sandbox::User=root"
if ! apt-get --print-uris download nlohmann-json3-dev >/dev/null 2>&1; then
    # This machine has no lists of packages, as images of containers have none: they are read for this call.
    mkdir -p lists/partial cache/archives/partial
    apt="$apt -o Dir::State::lists=$fetched/lists -o Dir::Cache=$fetched/cache"
    apt-get $apt -q update
fi
# What Gloo needs beside the C and C++ libraries; the release is part of these names.
needs_of() {
    apt-cache $apt depends --important "$1" | sed -n 's/^ *Depends: \(lib\(hiredis\|ibverbs\|nl-\)[^ ]*\)$/\1/p'
}
apt-get $apt download nlohmann-json3-dev libcli11-dev libcmocka-dev libcmocka0 zlib1g zlib1g-dev libprotozero-dev python3-yaml
for wished in "libgloo-dev libgloo0 $(needs_of libgloo0) $(needs_of libibverbs1)" dataset-fashion-mnist; do
    apt-get $apt download $wished || echo "carry.sh: without" $wished >&2
done
for package in *.deb; do
    dpkg -x "$package" "$folder"
done
rm -rf "$folder/usr/share/doc" "$folder/usr/share/man"

# Links to absolute places lead out of the folder.
find "$folder" -type l | while read -r link; do
    target_of=$(readlink "$link")
    case $target_of in
    /*) ln -sfn "$(realpath -m --relative-to="$(dirname "$link")" "$folder$target_of")" "$link" ;;
    esac
done
# Each in a folder of its own: where the machine has one, its own is taken.
find "$folder" -name 'lib*.so.*' ! -path "$folder/run/*" ! -name 'lib*.so.*.*.*' ! -name 'libz.*' |
    while read -r library; do
        mkdir "$folder/run/$(basename "$library")"
        cp -L "$library" "$folder/run/$(basename "$library")/"
    done
# The part of PyYAML that any Python 3 reads.
mkdir "$folder/python"
cp -R "$folder/usr/lib/python3/dist-packages/yaml" "$folder/python/"
find "$folder/python" -name '*.so' -exec rm {} +
touch "$folder/carried"
rm -rf "$target"
mv "$folder" "$target"
du -sh "$target"
