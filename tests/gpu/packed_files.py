# SPDX-License-Identifier: Apache-2.0
"""Many files in one, to be carried: a tar archive in xz, whose dictionary reaches all of it, so that what many programs have
in common is stored once. Nothing is needed but Python, and nothing of an archive is trusted: what it has goes into the folder,
as plain files."""
import io
import lzma
import os
import tarfile

MOST_DICTIONARY = 512 << 20
# What a member that is no file of a name inside the folder, or a stream that breaks off, is told as.
DAMAGED = (lzma.LZMAError, tarfile.TarError, EOFError, OSError)


def filters(size, preset):
    """Of xz for so many bytes."""
    reach = min(max(1 << 20, 1 << (size - 1).bit_length()) if size else 1 << 20, MOST_DICTIONARY)
    return [{'id': lzma.FILTER_LZMA2, 'preset': preset, 'dict_size': reach}]


def pack(path, listed, preset=6):
    """`listed`: [(name, path or bytes), ...], in this order. Written aside: there is all of it or nothing."""
    size = sum(len(what) if isinstance(what, bytes) else os.path.getsize(what) for _, what in listed)
    unfinished = path + '.new'
    with lzma.open(unfinished, 'wb', check=lzma.CHECK_CRC64, filters=filters(size, preset)) as stream:
        with tarfile.open(fileobj=stream, mode='w|') as archive:
            for name, what in listed:
                add(archive, name, what)
    os.replace(unfinished, path)


def add(archive, name, what):
    head = tarfile.TarInfo(name)
    if isinstance(what, bytes):
        head.size = len(what)
        archive.addfile(head, io.BytesIO(what))
        return
    state = os.stat(what)
    head.size, head.mtime = state.st_size, int(state.st_mtime)
    head.mode = 0o755 if state.st_mode & 0o100 else 0o644
    with open(what, 'rb') as file:
        archive.addfile(head, file)


def is_inside(name):
    return not os.path.isabs(name) and '..' not in name.split('/')


def members(path):
    """(head, its bytes as a file) of each; each before the next."""
    with lzma.open(path) as stream, tarfile.open(fileobj=stream, mode='r|') as archive:
        for head in archive:
            if not head.isreg() or not is_inside(head.name):
                raise tarfile.TarError(f"'{head.name}' is not what it may have")
            yield head, archive.extractfile(head)


def first(path):
    """The bytes of the first member; the rest is not read."""
    for _, file in members(path):
        return file.read()
    raise tarfile.TarError('it is empty')


def unpack(path, folder, is_private=False, overwrites=True):
    """Its files, in the folder; private ones are for their owner alone, and so are their folders."""
    for head, file in members(path):
        target = os.path.join(folder, head.name)
        make_folders(os.path.dirname(target), is_private)
        if os.path.lexists(target):
            if not overwrites:
                continue
            os.remove(target)
        mode = 0o600 if is_private else head.mode & 0o755
        with open(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), 'wb') as written:
            while block := file.read(1 << 20):
                written.write(block)
        os.utime(target, (head.mtime, head.mtime))


def make_folders(folder, is_private):
    known = os.umask(0o077) if is_private else None
    os.makedirs(folder, exist_ok=True)
    if known is not None:
        os.umask(known)
