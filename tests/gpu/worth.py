# SPDX-License-Identifier: Apache-2.0
"""In which order parts are done where minutes count, and how long each takes: what shows that anything works, the comparisons
that matter most, then what is short, then what takes long."""
import parts as all_parts
from gpu_cases import CASES

FLAGSHIPS = {case.name for case in CASES if case.against_compiled}
# Seconds, from which on nothing shorter waits for a part; its kind comes second then.
LONG = 150
# Of parts beside each other, and of figures of another machine.
MARGIN = 1.15
FIRST, FLAGSHIP, TEST, BENCH, SANITIZE, ACCURACY, SOAK, UNCHANGED = range(8)
KINDS = {'tests': TEST, 'bench': BENCH, 'sanitize': SANITIZE, 'accuracy': ACCURACY, 'soak': SOAK}


def name_of(part):
    return f'{part.group} {part.name}'


def expected(part, last):
    """Seconds. `last`: what it came to when it was done last, with whichever sources."""
    if not last:
        return part.expected
    # What failed, or was cut off, may have ended earlier than it would have.
    least = 0 if last['status'] in ('ok', 'partial') else part.expected
    return min(max(last['seconds'] * MARGIN, least), max(part.limit, part.expected))


def kind_of(part, kernels):
    if part.group == 'tests' and part.name in all_parts.FIRST_TESTS:
        return FIRST
    if part.group == 'bench' and part.name in FLAGSHIPS:
        return FLAGSHIP
    if part.group == 'sanitize' and kernels == all_parts.digest_of_kernels(part):
        return UNCHANGED
    return KINDS.get(part.group, SOAK)


def worth(part, results):
    """A key to sort by: what is done first is least."""
    last = results.last.get(name_of(part), {})
    seconds = expected(part, last)
    kind = kind_of(part, last.get('kernels'))
    if kind in (FIRST, FLAGSHIP):
        return 0, kind, 0, 0
    is_long = seconds > LONG or kind == UNCHANGED
    # What failed with other sources is perhaps what was mended since.
    return 1 + is_long, kind, last.get('status') != 'failed', seconds


def by_worth(parts, results):
    return sorted(parts, key=lambda part: worth(part, results))


def not_done(parts, results):
    """What has not come to an end, and what could not be done on a machine that had less."""
    return [part for part in parts if not results.is_done(name_of(part)) or
            (results.parts[name_of(part)]['status'] == 'skipped' and results.parts[name_of(part)]['seconds'] == 0
             and not part.lacks)]


def left(parts, results):
    """What is left to do, by worth; what failed with these sources once more behind all that has not run."""
    not_run = not_done(parts, results)
    failed = [part for part in parts if results.parts.get(name_of(part), {}).get('status') == 'failed']
    return by_worth(not_run, results) + by_worth(failed, results)
