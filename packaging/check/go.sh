# SPDX-License-Identifier: Apache-2.0
# For packaging/check.sh: the Go module, as `go get` takes it from its proxy folder, over each installed library.
go_get='export GOPROXY=file:///packages/go GONOSUMDB=tutti.org && cd go-hello && rm -f go.mod go.sum &&
    go mod init hello && go get tutti.org/tutti@v0.1.0'

begin_root golang-go gcc libc6-dev pkg-config zstd
cp -r "$folder/go" "$root/packages/go"
cp "$folder"/tarball/tutti-*-linux-*.tar.zst "$root/packages"
mkdir -p "$root/root/go-hello"
cp "$programs/hello.go" "$root/root/go-hello/main.go"
try 'go: go get from the proxy folder' sh -c "$go_get && grep tutti.org go.mod"
try_error 'go: no library to build with: told' 'Package tutti was not found' \
    sh -c 'cd go-hello && go build -o ../hello .'
in_root sh -c 'tar -xf /packages/*.zst -C /opt && mv /opt/tutti-*-linux-* /opt/place'
try 'go: built by PKG_CONFIG_PATH, over the archive' sh -c 'cd go-hello &&
    PKG_CONFIG_PATH=/opt/place/lib/pkgconfig go build -o ../hello . && echo done'
try_error 'go: no library to run with: told' libtutti.so.0.1 ./hello predict model
try_program 'go: found by LD_LIBRARY_PATH' env LD_LIBRARY_PATH=/opt/place/lib ./hello
try_workers 'go: two processes train together, over the archive' env LD_LIBRARY_PATH=/opt/place/lib ./hello
rm -r "$root/opt/place" "$root/root/hello"

# shellcheck disable=SC2046
install_in_root $(debs libtutti0.1 libtutti0.1-gloo libtutti-dev tutti)
try 'go: built over the Debian packages' sh -c "$go_get && go build -o ../hello . && echo done"
try_program 'go: found in the system' ./hello
try 'go: two processes train together' tutti run -n 2 ./hello workers model2
