# SPDX-License-Identifier: Apache-2.0
# For packaging/check.sh: the Debian packages.

# The .deb files of packages, as paths in the root, where they are copied.
debs() {
    for name in "$@"; do
        file=$(cd "$folder/deb" && ls "${name}"_*.deb)
        cp "$folder/deb/$file" "$root/packages"
        echo "/packages/$file"
    done
}

new_root gcc libc6-dev pkg-config
# shellcheck disable=SC2046
install_in_root $(debs libtutti0.1 libtutti0.1-gloo libtutti-dev tutti)
cp "$programs/hello.c" "$programs/hello.cc" "$root/root"
try 'deb: C by pkg-config, compiled' sh -c 'cc hello.c -o hello $(pkg-config --cflags --libs tutti) && echo done'
try_program 'deb: C, trained, then predicted by another process' ./hello
# shellcheck disable=SC2016
try 'deb: pkg-config tells plugindir and abi' sh -c \
    'test -f "$(pkg-config --variable=plugindir tutti)/tutti-gloo.so" && pkg-config --variable=abi tutti'
try 'deb: C, two processes train together' tutti run -n 2 ./hello workers model2
try 'deb: tutti version' tutti version
try 'deb: tutti tells why there is no GPU' sh -c 'tutti devices | grep -i cuda'
try 'deb: devices found without the GPU packages' sh -c 'tutti devices | grep -c cpu:'
try 'deb: a checkpoint is inspected' sh -c 'tutti inspect checkpoint model | grep dense/kernel'
install_in_root g++ cmake make
cp -r "$programs/cmake" "$root/root/cmake"
cp "$programs/hello.c" "$programs/hello.cc" "$root/root/cmake"
try 'deb: C and C++ by CMake, compiled' sh -c 'cmake -S cmake -B built && cmake --build built && echo done'
try_program 'deb: C++' built/hello_cxx
try_program 'deb: C by CMake' built/hello_c
# shellcheck disable=SC2046
try 'deb: upgrade from itself' sh -c "apt-get install -qy --reinstall $(debs libtutti0.1 tutti | tr '\n' ' ') && ./hello predict model"
# shellcheck disable=SC2016
try 'deb: purge leaves nothing' sh -c 'apt-get purge -qy "libtutti*" tutti &&
    left=$(find / -xdev \( -path /proc -o -path /root -o -path /packages -o -path /var/log \
        -o -path /var/cache -o -path /var/lib/apt \) -prune -o -name "*tutti*" -print) &&
    if [ -z "$left" ]; then echo nothing; else echo "$left"; exit 1; fi'

# shellcheck disable=SC2046
new_root golang-go gcc libc6-dev
# shellcheck disable=SC2046
install_in_root $(debs libtutti0.1 libtutti-dev golang-tutti-dev)
mkdir -p "$root/root/go-hello"
cp "$programs/hello.go" "$root/root/go-hello/main.go"
# shellcheck disable=SC2016
try 'deb: Go, compiled' sh -c 'cd go-hello && export GOPATH=/usr/share/gocode GO111MODULE=off GOFLAGS=-buildvcs=false \
    GOCACHE=/tmp/go-cache && go build -o ../hello . && echo done'
try_program 'deb: Go' ./hello

new_root default-jdk-headless
# shellcheck disable=SC2046
install_in_root $(debs libtutti0.1 libtutti-jni libtutti-java)
cp "$programs/Hello.java" "$root/root"
try 'deb: Java, compiled' sh -c 'javac -cp /usr/share/java/tutti.jar Hello.java && echo done'
cp "$root/root"/*.class "$store"
new_root default-jre-headless
# shellcheck disable=SC2046
install_in_root $(debs libtutti0.1 libtutti-jni libtutti-java)
mv "$store"/*.class "$root/root"
try_program 'deb: Java' java -cp /usr/share/java/tutti.jar:. Hello

new_root mono-mcs
# shellcheck disable=SC2046
install_in_root $(debs libtutti0.1 libtutti-cil)
cp "$programs/Hello.cs" "$root/root"
try 'deb: C#, compiled' sh -c 'mcs -r:/usr/lib/cli/tutti-0.1/Tutti.dll Hello.cs && echo done'
try_program 'deb: C# on Mono' env MONO_PATH=/usr/lib/cli/tutti-0.1 mono Hello.exe

# shellcheck disable=SC2016
hold 'deb: libtutti0.1, bytes of libtutti.so (8 MiB at most)' sh -c '
    cd "$(mktemp -d)" && dpkg-deb -x "$1"/libtutti0.1_*.deb . && bytes=$(stat -Lc %s usr/lib/*/libtutti.so.0.1) &&
    rm -r usr && echo "$bytes" && [ "$bytes" -le 8388608 ]' check "$folder/deb"
