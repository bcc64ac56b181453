# SPDX-License-Identifier: Apache-2.0
# For packaging/check.sh: the Debian packages.
. packaging/check/broken.sh
. packaging/check/coreclr.sh

begin_root gcc libc6-dev pkg-config
# shellcheck disable=SC2046
install_in_root $(debs libtutti0.1 libtutti0.1-gloo libtutti-dev tutti)
cp "$programs/hello.c" "$programs/hello.cc" "$root/root"
try 'deb: C by pkg-config, compiled' sh -c 'cc hello.c -o hello $(pkg-config --cflags --libs tutti) && echo done'
try_program 'deb: C, trained, then predicted by another process' ./hello
# shellcheck disable=SC2016
try 'deb: pkg-config tells plugindir and abi' sh -c \
    'test -f "$(pkg-config --variable=plugindir tutti)/tutti-gloo.so" && pkg-config --variable=abi tutti'
try 'deb: C, two processes train together' tutti run -n 2 ./hello workers model2
without_onednn 'deb: C' ./hello
without_places 'deb: C' ./hello
try_plugins
try 'deb: tutti version' tutti version
try 'deb: tutti tells why there is no GPU' sh -c 'tutti devices | grep -i cuda'
try 'deb: devices found without the GPU packages' sh -c 'tutti devices | grep -c cpu:'
try 'deb: a checkpoint is inspected' sh -c 'tutti inspect checkpoint model | grep dense/kernel'
# Of new processes; the first finds nothing in the page cache. The limit is for the processor's time, as others may
# compute. What libraries do that this one needs, when they are opened, differs from processor to processor, and is beyond
# its reach: that of itself is at most 1 ms where both together take longer than the limit.
cp "$programs/open_time.c" "$root/root"
# shellcheck disable=SC2016
try 'deb: dlopen, ms: first; all (10), of which own (1)' sh -c 'cc open_time.c -o open_time &&
    for file in /usr/lib/*/libtutti.so.0.1 /usr/lib/*/libdnnl.so.*; do
        dd if="$file" iflag=nocache count=0 status=none
    done &&
    needed=$(readelf -d /usr/lib/*/libtutti.so.0.1 | sed -n "s/.*NEEDED.*\[\(.*\)\]/\1/p" | grep -v "^ld-linux") &&
    ./open_time libtutti.so.0.1 >first &&
    median() { for i in $(seq 21); do ./open_time "$@"; done | sed "s/.* //" | sort -n | sed -n 11p; } &&
    all=$(median libtutti.so.0.1) && own=$(median libtutti.so.0.1 $needed) &&
    awk -v first="$(sed "s/ .*//" first)" -v all="$all" -v own="$own" \
        "BEGIN { printf(\"%.1f; %.1f, %.1f\\n\", first / 1000, all / 1000, own / 1000); exit all > 10000 && own > 1000 }"'
install_in_root g++ cmake make
cp -r "$programs/cmake" "$root/root/cmake"
cp "$programs/hello.c" "$programs/hello.cc" "$root/root/cmake"
try 'deb: C and C++ by CMake, compiled' sh -c 'cmake -S cmake -B built && cmake --build built && echo done'
try_program 'deb: C++' built/hello_cxx
try 'deb: C++, two processes train together' tutti run -n 2 built/hello_cxx workers model4
try_program 'deb: C by CMake' built/hello_c
# shellcheck disable=SC2046
try 'deb: upgrade from itself' sh -c "apt-get install -qy --reinstall $(debs libtutti0.1 tutti | tr '\n' ' ') && ./hello predict model"
# shellcheck disable=SC2016
try 'deb: purge leaves nothing' sh -c 'apt-get purge -qy "libtutti*" tutti &&
    left=$(find / -xdev \( -path /proc -o -path /root -o -path /packages -o -path /var/log \
        -o -path /var/cache -o -path /var/lib/apt \) -prune -o -name "*tutti*" -print) &&
    if [ -z "$left" ]; then echo nothing; else echo "$left"; exit 1; fi'

# shellcheck disable=SC2046
begin_root golang-go gcc libc6-dev
# shellcheck disable=SC2046
install_in_root $(debs libtutti0.1 libtutti0.1-gloo libtutti-dev golang-tutti-dev tutti)
mkdir -p "$root/root/go-hello"
cp "$programs/hello.go" "$root/root/go-hello/main.go"
# shellcheck disable=SC2016
try 'deb: Go, compiled' sh -c 'cd go-hello && export GOPATH=/usr/share/gocode GO111MODULE=off GOFLAGS=-buildvcs=false \
    GOCACHE=/tmp/go-cache && go build -o ../hello . && echo done'
try_program 'deb: Go' ./hello
try 'deb: Go, two processes train together' tutti run -n 2 ./hello workers model2
without_onednn 'deb: Go' ./hello

begin_root default-jdk-headless
# shellcheck disable=SC2046
install_in_root $(debs libtutti0.1 libtutti-jni libtutti-java)
cp "$programs/Hello.java" "$root/root"
try 'deb: Java, compiled' sh -c 'javac -cp /usr/share/java/tutti.jar Hello.java && echo done'
cp "$root/root"/*.class "$store"
begin_root default-jre-headless
# shellcheck disable=SC2046
install_in_root $(debs libtutti0.1 libtutti0.1-gloo libtutti-jni libtutti-java tutti)
mv "$store"/*.class "$root/root"
java='java -cp /usr/share/java/tutti.jar:. Hello'
# shellcheck disable=SC2086
{
    try_program 'deb: Java' $java
    try 'deb: Java, two processes train together' tutti run -n 2 $java workers model2
    without_onednn 'deb: Java' $java
    without_places 'deb: Java' $java
}

begin_root mono-mcs
# shellcheck disable=SC2046
install_in_root $(debs libtutti0.1 libtutti0.1-gloo libtutti-cil tutti)
cp "$programs/Hello.cs" "$root/root"
try 'deb: C#, compiled' sh -c 'mcs -r:/usr/lib/cli/tutti-0.1/Tutti.dll Hello.cs && echo done'
mono='env MONO_PATH=/usr/lib/cli/tutti-0.1 mono Hello.exe'
# shellcheck disable=SC2086
{
    try_program 'deb: C# on Mono' $mono
    try 'deb: C# on Mono, two processes train together' tutti run -n 2 $mono workers model2
    without_onednn 'deb: C# on Mono' $mono
    without_places 'deb: C# on Mono' $mono
}
if [ -z "$coreclr" ]; then
    say 'deb: C# on CoreCLR 3.1' "skipped: $no_coreclr"
else
    install_coreclr
    in_root sh -c 'mkdir core && cp Hello.exe core/Hello.dll && cp /usr/lib/cli/tutti-0.1/Tutti.dll core'
    configure_coreclr root/core/Hello
    coreclr_hello="env TUTTI_LIBRARY_DIR=/usr/lib/cli/tutti-0.1 $dotnet core/Hello.dll"
    # shellcheck disable=SC2086
    {
        try_program 'deb: C# on CoreCLR 3.1' $coreclr_hello
        try 'deb: C# on CoreCLR, two processes train together' tutti run -n 2 $coreclr_hello workers model4
        without_onednn 'deb: C# on CoreCLR' $coreclr_hello
    }
fi

# shellcheck disable=SC2016
hold 'deb: libtutti0.1, bytes of libtutti.so (8 MiB at most)' sh -c '
    cd "$(mktemp -d)" && dpkg-deb -x "$1"/libtutti0.1_*.deb . && bytes=$(stat -Lc %s usr/lib/*/libtutti.so.0.1) &&
    rm -r usr && echo "$bytes" && [ "$bytes" -le 8388608 ]' check "$folder/deb"
