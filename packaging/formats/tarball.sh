# SPDX-License-Identifier: Apache-2.0
# For packaging/build.sh: an archive that runs where it is unpacked, and the source archive.
packaging/install-deps.sh tarball
build_release
name=tutti-$version-linux-$(uname -m)
mkdir -p "$out/tarball"
cp -a "$release/root/tutti" "$work/$name"
cp LICENSE CHANGELOG.md README.md "$work/$name"
python3 packaging/bundle_libraries.py "$work/$name/lib" "$work/$name"/bin/* "$work/$name"/lib/*.so "$work/$name"/lib/*/*.so \
    "$work/$name"/lib/tutti/plugins-*/*.so --licences "$work/$name/share/licenses"
pack "$work/$name" "$out/tarball/$name.tar.zst"

unpack_sources "$work/tutti-$version"
pack "$work/tutti-$version" "$out/tarball/tutti-$version.tar.xz"
