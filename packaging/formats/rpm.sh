# SPDX-License-Identifier: Apache-2.0
# For packaging/build.sh: RPM packages, and the source package, checked by rpmlint. The names of dependencies are Fedora's;
# where the distribution is another one, what is needed is installed by its own names and rpmbuild does not look.
packaging/install-deps.sh build java csharp rpm
mkdir -p "$out/rpm" "$work/rpm/SOURCES"
unpack_sources "$work/rpm/tutti-$version"
pack "$work/rpm/tutti-$version" "$work/rpm/SOURCES/tutti-$version.tar.xz"
sed "s/@VERSION@/$version/" packaging/rpm/tutti.spec.in >"$work/rpm/tutti.spec"
looks=''
[ ! -f /etc/debian_version ] || looks=--nodeps
rpmbuild $looks -ba --define "_topdir $work/rpm" --define 'source_date_epoch_from_changelog 0' \
    --define 'use_source_date_epoch_as_buildtime 1' --define 'clamp_mtime_to_source_date_epoch 1' \
    --define '_buildhost localhost' "$work/rpm/tutti.spec"
rpmlint --rpmlintrc packaging/rpm/tutti.rpmlintrc "$work"/rpm/RPMS/*/*.rpm "$work"/rpm/SRPMS/*.rpm
cp "$work"/rpm/RPMS/*/*.rpm "$work"/rpm/SRPMS/*.rpm "$out/rpm"
