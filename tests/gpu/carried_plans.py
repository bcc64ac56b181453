# SPDX-License-Identifier: Apache-2.0
"""What the library keeps between processes, times of algorithms and machine code (lib/backend/cache_folder.h), between
machines, too: one file beside the results. Nothing in it has to fit: all of it says what it is of, and the rest is made
anew."""
import contextlib
import os
import time

import packed_files

NAME = 'plans.tar.xz'
MOST_BYTES = 12 << 20
VARIABLE = 'TUTTI_CACHE_DIR'


class Plans:
    """`folder`: where they are used; `results`: where they are carried."""

    def __init__(self, folder, results):
        self.folder, self.carried, self.begin = os.path.abspath(folder), os.path.join(results, NAME), time.time()

    def bring(self):
        """What was carried; what is there is newer, and stays. A sentence where that did not go well."""
        packed_files.make_folders(self.folder, is_private=True)
        os.chmod(self.folder, 0o700)
        if not os.path.exists(self.carried):
            return ''
        try:
            packed_files.unpack(self.carried, self.folder, is_private=True, overwrites=False)
        except packed_files.DAMAGED as error:
            return f'{self.carried} cannot be read, plans are made anew: {error}'
        return ''

    def found(self, since=0):
        paths = [os.path.join(folder, name) for folder, _, names in os.walk(self.folder) for name in sorted(names)]
        return [(os.path.relpath(path, self.folder), path) for path in paths if os.path.getmtime(path) >= since]

    def keep(self):
        """For the next call, where this one has added something; a sentence where it is too much."""
        if not self.found(self.begin):
            return ''
        unfinished = self.carried + '.all'
        # Of all of them, or of those that this call has made: others may be of builds that are gone.
        for since in (0, self.begin):
            try:
                packed_files.pack(unfinished, self.found(since), preset=1)
            except OSError as error:  # also what goes while it is read
                return f'plans are not kept: {error}'
            size = os.path.getsize(unfinished)
            if size <= MOST_BYTES:
                os.replace(unfinished, self.carried)
                return ''
        os.remove(unfinished)
        return f'plans are not kept: {size >> 20} MiB, more than {MOST_BYTES >> 20}'


@contextlib.contextmanager
def carried(folder, results, environment, say):
    """Programs with this environment use them, and what they add is carried on; not where it says itself where plans are."""
    if VARIABLE in environment:
        yield
        return
    plans = Plans(folder, results)
    environment[VARIABLE] = plans.folder
    tell(plans.bring(), say)
    try:
        yield
    finally:
        tell(plans.keep(), say)


def tell(sentence, say):
    if sentence:
        say(sentence)
