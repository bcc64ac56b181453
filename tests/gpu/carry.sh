#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# carry.sh [FOLDER]: fetches the packages that a build for GPUs needs and unpacks them in a folder (build/packages), for
# run.sh on a machine without a package manager: TUTTI_PACKAGES=FOLDER tests/gpu/run.sh. About 40 MB, most of it the
# images of Fashion-MNIST.
#
# FOLDER/bin has a pkg-config, FOLDER/run the libraries that programs need when they run, FOLDER/python PyYAML.
set -eu
case ${1:-} in
-*) sed -n '4,8{s/^# \{0,1\}//;p}' "$0" >&2 && exit 2 ;;
esac
[ $# -gt 0 ] || set -- "$(dirname "$0")/../../build/packages"
rm -rf "$1"
mkdir -p "$1/bin" "$1/run"
folder=$(cd "$1" && pwd)
fetched=$(mktemp -d)
trap 'rm -rf "$fetched"' EXIT
cd "$fetched"
# What Gloo needs beside the C and C++ libraries; the release is part of these names.
needs_of() {
    apt-cache depends --important "$1" | sed -n 's/^ *Depends: \(lib\(hiredis\|ibverbs\|nl-\)[^ ]*\)$/\1/p'
}
apt-get download nlohmann-json3-dev libcmocka-dev libcmocka0 zlib1g zlib1g-dev libprotozero-dev pkgconf pkgconf-bin \
    libpkgconf3 python3-yaml dataset-fashion-mnist libgloo-dev libgloo0 $(needs_of libgloo0) $(needs_of libibverbs1)
for package in *.deb; do
    dpkg -x "$package" "$folder"
done
rm -rf "$folder/usr/share/doc" "$folder/usr/share/man"

# Links to absolute places lead out of the folder.
find "$folder" -type l | while read -r link; do
    target=$(readlink "$link")
    case $target in
    /*) ln -sfn "$(realpath -m --relative-to="$(dirname "$link")" "$folder$target")" "$link" ;;
    esac
done
# Each in a folder of its own: where the machine has one, its own is taken.
find "$folder/lib" "$folder/usr/lib" -name 'lib*.so.*' ! -name 'lib*.so.*.*.*' ! -name 'libz.*' ! -name 'libpkgconf.*' |
    while read -r library; do
        mkdir "$folder/run/$(basename "$library")"
        cp -L "$library" "$folder/run/$(basename "$library")/"
    done
# The part of PyYAML that any Python 3 reads.
mkdir "$folder/python"
cp -R "$folder/usr/lib/python3/dist-packages/yaml" "$folder/python/"
find "$folder/python" -name '*.so' -exec rm {} +
cat > "$folder/bin/pkg-config" <<'WRAPPER'
#!/bin/sh
root=$(cd "$(dirname "$0")/.." && pwd)
for libraries in "$root"/usr/lib/*-linux-gnu; do
    PATH=$root/usr/bin LD_LIBRARY_PATH=$libraries exec pkgconf "$@"
done
WRAPPER
chmod +x "$folder/bin/pkg-config"
du -sh "$folder"
