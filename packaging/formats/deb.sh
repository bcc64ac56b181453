# SPDX-License-Identifier: Apache-2.0
# For packaging/build.sh: Debian packages and the source package, checked by lintian.
packaging/install-deps.sh build java csharp deb
mkdir -p "$out/deb"
unpack_sources "$work/deb/tutti-$version"
pack "$work/deb/tutti-$version" "$work/deb/tutti_$version.orig.tar.xz"
cp -r packaging/debian "$work/deb/tutti-$version/debian"
profiles=nocheck
[ "$cuda" = disabled ] || profiles=$profiles,pkg.tutti.cuda
(
    cd "$work/deb/tutti-$version"
    DEB_BUILD_OPTIONS="${DEB_BUILD_OPTIONS:+$DEB_BUILD_OPTIONS }nocheck parallel=$(nproc)" \
        dpkg-buildpackage -us -uc -F --build-profiles="$profiles"
)
# These are packages of the project's own: there is no request for them to close.
lintian --allow-root --tag-display-limit 0 --suppress-tags initial-upload-closes-no-bugs --fail-on error,warning \
    "$work"/deb/*.changes
find "$work/deb" -maxdepth 1 -type f -exec cp -p {} "$out/deb" \;
