#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# carry.sh FOLDER: fetches the packages that a build for GPUs needs and unpacks them in a folder, for run.sh on a machine
# without a package manager: TUTTI_PACKAGES=FOLDER tests/gpu/run.sh
set -eu
[ $# -eq 1 ] || { sed -n '4,5{s/^# \{0,1\}//;p}' "$0" >&2 && exit 2; }
mkdir -p "$1"
folder=$(cd "$1" && pwd)
fetched=$(mktemp -d)
trap 'rm -rf "$fetched"' EXIT
cd "$fetched"
apt-get download nlohmann-json3-dev libcmocka-dev libcmocka0 zlib1g zlib1g-dev libprotozero-dev pkgconf pkgconf-bin \
    libpkgconf3
for package in *.deb; do
    dpkg -x "$package" "$folder"
done
du -sh "$folder"
