# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh
# To be sourced: an empty Debian of a release, in which commands run as on a machine of its own. As root; needs
# mmdebstrap and the network of apt. What is unpacked each time is kept in build/check.
#
#   new_root SUITE      makes it, in place of the last one; $root is its path, /packages there is empty
#   in_root COMMAND...  runs a command in its home directory
#   in_root_alone ...   the same without a network
#   install_in_root PACKAGE...
#   leave_root          removes it; done at the end, too

root=''
root_store=$PWD/build/check

leave_root() {
    [ -n "$root" ] || return 0
    umount -l "$root/tmp" "$root/proc" "$root/dev" 2>/dev/null || true
    rm -rf --one-file-system "$root"
    root=''
}
trap leave_root EXIT
# A shell that a signal ends does not come to its EXIT trap by itself, and the root has this machine's /dev.
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM

new_root() {
    leave_root
    mkdir -p "$root_store"
    if [ ! -f "$root_store/$1.tar" ]; then
        apt-config dump Acquire >"$root_store/apt.conf"
        mmdebstrap --quiet --format=tar --variant=minbase --aptopt="$root_store/apt.conf" "$1" "$root_store/$1.tar.new"
        mv "$root_store/$1.tar.new" "$root_store/$1.tar"
    fi
    root=$(mktemp -d "$root_store/root.XXXXXX")
    chmod 755 "$root"
    tar -xf "$root_store/$1.tar" -C "$root"
    cp -L /etc/resolv.conf "$root/etc/resolv.conf" 2>/dev/null || true
    mount -t proc proc "$root/proc"
    mount --bind /dev "$root/dev"
    mkdir "$root/packages"
    in_root apt-get update -q >"$root_store/apt.log"
}

in_root() {
    chroot "$root" /usr/bin/env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root \
        LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive sh -c 'cd /root && exec "$@"' root "$@" </dev/null
}

in_root_alone() {
    unshare --net chroot "$root" /usr/bin/env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
        HOME=/root LC_ALL=C.UTF-8 sh -c 'cd /root && exec "$@"' root "$@" </dev/null
}

install_in_root() {
    in_root apt-get install -qy --no-install-recommends "$@" >"$root_store/apt.log" 2>&1 || {
        tail -n 20 "$root_store/apt.log" >&2
        return 1
    }
}
