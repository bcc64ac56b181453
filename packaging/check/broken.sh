# SPDX-License-Identifier: Apache-2.0
# For packaging/check.sh: what is said when parts of the Debian packages are missing or damaged. All leave the root as
# it was, with what a program has trained in `model`.

# without_onednn WHAT COMMAND...: the library that computes on processors is gone, and comes back.
without_onednn() {
    of=$1
    shift
    in_root sh -c 'mkdir away && mv /usr/lib/*/libdnnl.so* away'
    try_error "$of, oneDNN is missing: told" libdnnl.so. "$@" predict model
    in_root sh -c 'mv away/* /usr/lib/*-linux-gnu && rmdir away'
    try_again "$of, oneDNN is back" "$@"
}

# without_places WHAT COMMAND...: no HOME, and /tmp read-only, or such that no code runs in it.
without_places() {
    of=$1
    shift
    for kind in ro noexec; do
        mount -t tmpfs -o "$kind" tmpfs "$root/tmp"
        try_program "$of, /tmp is $kind, no HOME" env -u HOME "$@"
        umount "$root/tmp"
    done
}

# try_plugin WHAT TEXT: two processes with the plug-ins of the folder /srv/plugins.
try_plugin() {
    try_error "deb: plug-in $1: told" "$2" env TUTTI_PLUGIN_PATH=/srv/plugins tutti run -n 2 ./hello workers model3
}

# Plug-ins for hello, which C made.
try_plugins() {
    in_root mkdir /srv/plugins
    try_plugin 'missing' 'no plug-in tutti-gloo.so in /srv/plugins'
    in_root sh -c 'echo text >/srv/plugins/tutti-gloo.so'
    try_plugin 'is a text' "plug-in '/srv/plugins/tutti-gloo.so' cannot be loaded"
    # shellcheck disable=SC2016
    in_root sh -c 'head -c 8000 "$(pkg-config --variable=plugindir tutti)/tutti-gloo.so" >/srv/plugins/tutti-gloo.so'
    try_plugin 'is half' "plug-in '/srv/plugins/tutti-gloo.so' cannot be loaded"
    # shellcheck disable=SC2016
    in_root sh -c 'plugin=$(pkg-config --variable=plugindir tutti)/tutti-gloo.so
        id=$(./hello build | sed -n "s/.*\"build_id\": *\"\([^\"]*\)\".*/\1/p")
        LC_ALL=C sed "s/$id/$(echo "$id" | tr 0-9a-z 1-9a-z0)/g" "$plugin" >/srv/plugins/tutti-gloo.so'
    try_plugin 'of another build' 'install both from one build'
    in_root sh -c 'rm /srv/plugins/tutti-gloo.so && chmod 700 /srv/plugins &&
        install -d -o 65534 /srv/own && cp hello /srv/own'
    # shellcheck disable=SC2086
    try_error 'deb: folder of plug-ins may not be read: told' '/srv/plugins' \
        $nobody env TUTTI_PLUGIN_PATH=/srv/plugins tutti run -n 2 /srv/own/hello workers /srv/own/model
    # shellcheck disable=SC2086
    try 'deb: the same user with the folder of the package' $nobody tutti run -n 2 /srv/own/hello workers /srv/own/model
    in_root rm -r /srv/plugins /srv/own
    try_again 'deb: C, nothing is lost' ./hello
}
