# SPDX-License-Identifier: Apache-2.0
# For packaging/build.sh: an archive that runs where it is unpacked, and the source archive.
packaging/install-deps.sh tarball
build_release
name=tutti-$version-linux-$(uname -m)
mkdir -p "$out/tarball"
cp -a "$release/root/tutti" "$work/$name"
(cd "$release/source" && cp LICENSE CHANGELOG.md README.md "$work/$name")
# libcurl needs half a system: reading from HTTP takes it from the system.
find "$work/$name/bin" "$work/$name/lib" -type f \( -path '*/bin/*' -o -name '*.so' -o -name '*.so.*' \) |
    xargs python3 packaging/bundle_libraries.py --leave tutti-http.so --licences "$work/$name/share/licenses" -- "$work/$name/lib"
pack "$work/$name" "$out/tarball/$name.tar.zst"

unpack_sources "$work/tutti-$version"
pack "$work/tutti-$version" "$out/tarball/tutti-$version.tar.xz"
