# SPDX-License-Identifier: Apache-2.0
# For packaging/build.sh: the Go module, as a proxy would give it. Programs link the installed library by pkg-config.
unpack_sources "$work/go"
python3 packaging/formats/go_proxy.py "$work/go" "$version" "$out/go"
