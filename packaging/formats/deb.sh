# SPDX-License-Identifier: Apache-2.0
# For packaging/build.sh: Debian packages and the source package, checked by lintian. The time of the changelog is that
# of the commit: whoever builds from the source package has the same time, and so the same bytes.
packaging/install-deps.sh build java csharp deb
mkdir -p "$out/deb"
tree=$work/deb/tutti-$version
unpack_sources "$tree"
pack "$tree" "$work/deb/tutti_$version.orig.tar.xz"
cp -rp "$tree/packaging/debian" "$tree/debian"
sed -i "s/^\( -- .*>  \).*/\1$(date -R -d "@$SOURCE_DATE_EPOCH")/" "$tree/debian/changelog"
grep -q "^tutti ($version-" "$tree/debian/changelog" || {
    echo "build.sh: packaging/debian/changelog does not begin with version $version" >&2
    exit 1
}
profiles=nocheck
[ "$cuda" = disabled ] || profiles=$profiles,pkg.tutti.cuda
(
    cd "$tree"
    DEB_BUILD_OPTIONS="${DEB_BUILD_OPTIONS:+$DEB_BUILD_OPTIONS }nocheck parallel=$(nproc)" \
        dpkg-buildpackage -us -uc -F --build-profiles="$profiles"
)
# These are packages of the project's own: there is no request for them to close.
lintian --allow-root --tag-display-limit 0 --suppress-tags initial-upload-closes-no-bugs --fail-on error,warning \
    "$work"/deb/*.changes
find "$work/deb" -maxdepth 1 -type f -exec cp -p {} "$out/deb" \;
