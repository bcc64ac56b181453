# SPDX-License-Identifier: Apache-2.0
# For packaging/check.sh: the archive, unpacked somewhere and moved.
begin_root gcc g++ libc6-dev pkg-config cmake make zstd
cp "$folder"/tarball/tutti-*-linux-*.tar.zst "$root/packages"
cp -r "$programs/cmake" "$root/root/cmake"
cp "$programs/hello.c" "$programs/hello.cc" "$root/root"
cp "$programs/hello.c" "$programs/hello.cc" "$root/root/cmake"
try 'tarball: unpacked, moved, found by pkg-config' sh -c 'tar -xf /packages/*.zst -C /opt && mv /opt/tutti-*-linux-* /opt/place &&
    PKG_CONFIG_PATH=/opt/place/lib/pkgconfig pkg-config --modversion tutti'
# shellcheck disable=SC2016
try 'tarball: C by pkg-config, compiled' sh -c '
    cc hello.c -o hello $(PKG_CONFIG_PATH=/opt/place/lib/pkgconfig pkg-config --cflags --libs tutti) && echo done'
try_program 'tarball: C' env LD_LIBRARY_PATH=/opt/place/lib ./hello
try 'tarball: two processes train together' env LD_LIBRARY_PATH=/opt/place/lib /opt/place/bin/tutti run -n 2 ./hello workers model2
try 'tarball: tutti finds its library by itself' /opt/place/bin/tutti version
try 'tarball: C and C++ by CMake, compiled' sh -c '
    cmake -S cmake -B built -DCMAKE_PREFIX_PATH=/opt/place && cmake --build built && echo done'
try_program 'tarball: C++ by CMake' built/hello_cxx
