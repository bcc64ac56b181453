# SPDX-License-Identifier: Apache-2.0
"""ZIP archives that have the same bytes each time: sorted, with one time for all, and no attributes of the machine's."""
import os
import time
import zipfile


def epoch():
    return int(os.environ['SOURCE_DATE_EPOCH'])


def read(path):
    with open(path, 'rb') as file:
        return file.read()


def tree(folder, prefix=''):
    """The files below a folder: (name below `prefix`, bytes)."""
    found = []
    for parent, _, names in os.walk(folder):
        for name in names:
            path = os.path.join(parent, name)
            found.append((prefix + os.path.relpath(path, folder), read(path)))
    return found


def write(path, entries, first=()):
    """entries: (name, bytes). Names of `first` come first, in that order; the others are sorted."""
    moment = time.gmtime(max(epoch(), 315532800))[:6]  # a ZIP archive knows no time before 1980
    by_name = dict(entries)
    names = list(first) + sorted(name for name in by_name if name not in first)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with zipfile.ZipFile(path, 'w') as archive:
        for name in names:
            information = zipfile.ZipInfo(name, moment)
            information.compress_type = zipfile.ZIP_DEFLATED
            information.create_system = 3
            information.external_attr = (0o100755 if name.endswith('.so') or '.so.' in name else 0o100644) << 16
            archive.writestr(information, by_name[name], compresslevel=9)
