# SPDX-License-Identifier: Apache-2.0
# For packaging/build.sh: RPM packages, and the source package, checked by rpmlint. packaging/rpm/check.sh tries them.
packaging/install-deps.sh build java csharp rpm
mkdir -p "$out/rpm" "$work/rpm/SOURCES"
tree=$work/rpm/tutti-$version
unpack_sources "$tree"
pack "$tree" "$work/rpm/SOURCES/tutti-$version.tar.xz"
sed "s/@VERSION@/$version/; s/@DATE@/$(date -d "@$SOURCE_DATE_EPOCH" '+%a %b %d %Y')/" \
    "$tree/packaging/rpm/tutti.spec.in" >"$work/rpm/tutti.spec"
# The names of dependencies are Fedora's. On Debian, where install-deps.sh installed the same by Debian's names, rpm's
# database is empty and rpmbuild must not look into it.
looks=''
[ ! -f /etc/debian_version ] || looks=--nodeps
with=''
[ "$cuda" = disabled ] || with='--with cuda'
build_rpms() {
    # shellcheck disable=SC2086
    rpmbuild "$@" $looks $with ${TUTTI_GPU_ARCHITECTURES:+--define "gpu_architectures $TUTTI_GPU_ARCHITECTURES"} \
        --define "_smp_mflags -j$(nproc)" --define '_buildhost localhost' \
        --define 'source_date_epoch_from_changelog 0' \
        --define 'use_source_date_epoch_as_buildtime 1' --define 'clamp_mtime_to_source_date_epoch 1' tutti.spec
}
# The source package holds the specification with the folder in which it is built, and packages built together with it
# its checksum: it is made alone, in ".".
(
    cd "$work/rpm"
    build_rpms -bb --define "_topdir $work/rpm"
    build_rpms -bs --define '_topdir .'
)
rpmlint --strict --config packaging/rpm/rpmlint.toml "$work"/rpm/RPMS/*/*.rpm "$work"/rpm/SRPMS/*.rpm \
    "$work/rpm/tutti.spec"
cp "$work"/rpm/RPMS/*/*.rpm "$work"/rpm/SRPMS/*.rpm "$out/rpm"
