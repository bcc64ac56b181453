# SPDX-License-Identifier: Apache-2.0
"""What the parts came to, in three files: results.json, which the next call goes on with, results.md, two tables, and logs.txt,
the ends of all outputs, those of failures first. A machine that is lent gives few files back."""
import json
import os
import re
import shutil

import must_hold

# What a part may come to, beside "cut off"; that alone is done again with the same sources. A partial one took longer
# than it may and had found nothing until then.
DONE = ('ok', 'failed', 'skipped', 'partial')


# Characters of an output that logs.txt has, of one that failed and of one that did not.
MOST_OF_FAILURE, MOST_OF_OTHER = 40000, 4000


def known_of(parts):
    """What tells how long parts take: those that ran."""
    return {name: {'status': part['status'], 'seconds': part['seconds']} for name, part in parts.items()
            if part['status'] != 'skipped'}


def ends_in(path):
    """What logs.txt had of each part."""
    try:
        with open(path, encoding='utf-8', errors='replace') as file:
            text = file.read()
    except OSError:
        return {}
    heads = re.compile(rf'^==== (.+) (?:{"|".join(DONE)}|cut off|)$', re.MULTILINE)
    begins = [(found[1], found.start()) for found in heads.finditer(text)]
    return {name: text[begin:end].rstrip('\n')
            for (name, begin), (_, end) in zip(begins, [*begins[1:], ('', len(text))])}


class Results:
    """`logs`: the folder of whole outputs; `names`: of all parts that there are; `last`: what each came to when it was last
    done, with whichever sources and on whichever GPU, which tells how long it takes. Threads: one at a time."""

    def __init__(self, folder, head, logs=None):
        self.folder, self.head, self.names = folder, head, []
        self.logs = logs or os.path.join(folder, '..', 'logs')
        self.parts, self.last, self.former_ends = {}, {}, {}
        os.makedirs(folder, exist_ok=True)
        os.makedirs(self.logs, exist_ok=True)
        try:
            with open(self.path('results.json'), encoding='utf-8') as file:
                kept = json.load(file)
        except (OSError, ValueError):
            return
        self.last = {**known_of(kept.get('parts', {})), **kept.get('last', {})}
        if kept.get('sources') == head['sources'] and kept.get('gpu') == head['gpu']:
            self.parts = kept.get('parts', {})
            self.former_ends = ends_in(self.path('logs.txt'))

    def path(self, name):
        return os.path.join(self.folder, name)

    def log_path(self, part):
        return os.path.join(self.logs, part.replace(' ', '-').replace('/', '_') + '.log')

    def is_done(self, part):
        return self.parts.get(part, {}).get('status') in DONE

    def add(self, part, group, status, seconds, says='', rows=None, kernels=''):
        """`kernels`: the digest of what it was worth doing for."""
        self.parts[part] = {'group': group, 'status': status, 'seconds': round(seconds, 1), 'says': says,
                            **({'rows': rows} if rows else {})}
        self.remember(part, kernels)
        self.save()

    def remember(self, part, kernels):
        for name, known in known_of({part: self.parts[part]}).items():
            if known['status'] in ('failed', 'cut off'):
                # Sooner than it would have ended.
                known['seconds'] = max(known['seconds'], self.last.get(name, {}).get('seconds', 0))
            elif kernels:
                known['kernels'] = kernels
            self.last[name] = known

    def count(self, status):
        return sum(1 for part in self.parts.values() if part['status'] == status)

    def save(self):
        """Whole or not at all: the machine may go at any time."""
        everything = {**self.head, 'must_hold': must_hold.rows(self.parts, self.names), 'parts': self.parts, 'last': self.last}
        for name, text in (('results.json', json.dumps(everything, indent=1)),
                           ('results.md', self.markdown()), ('logs.txt', self.ends_of_logs())):
            # What is not whole yet lies elsewhere.
            unfinished = os.path.join(self.logs, name + '.new')
            with open(unfinished, 'w', encoding='utf-8') as file:
                file.write(text + '\n')
            shutil.move(unfinished, self.path(name))

    def failures_first(self):
        return sorted(self.parts.items(), key=lambda item: item[1]['status'] not in ('failed', 'cut off', 'partial'))

    def ends_of_logs(self):
        texts = []
        for name, part in [('build', {'status': ''}), *self.failures_first()]:
            try:
                with open(self.log_path(name), encoding='utf-8', errors='replace') as file:
                    text = file.read()
            except OSError:  # of a machine that has gone
                texts += [self.former_ends[name]] if name in self.former_ends else []
                continue
            most = MOST_OF_OTHER if part['status'] in ('ok', 'skipped') else MOST_OF_FAILURE
            texts.append(f'==== {name} {part["status"]}\n' + ('...' if len(text) > most else '') + text[-most:])
        return '\n'.join(texts)

    def markdown(self):
        lines = [f'## {self.head["gpu"]}', '',
                 f'{self.head["date"]}, driver {self.head["driver"]}, CUDA {self.head.get("cuda", "unknown")}, '
                 f'sources {self.head["sources"]}'
                 + (f' of commit {self.head["commit"]}' if self.head.get('commit') else '') + '. '
                 + ', '.join(f'{self.count(status)} {status}' for status in (*DONE, 'cut off')), '']
        lines += [f'Not found when it was built: {what}.' for what in self.head.get('missing', [])]
        lines += ['| what must hold | holds | |', '|---|---|---|']
        lines += [f'| {row["what"]} | {row["holds"]} | {row["says"]} |' for row in must_hold.rows(self.parts, self.names)]
        lines += ['', '| part | result | seconds | |', '|---|---|---|---|']
        lines += [f'| {name} | {part["status"]} | {part["seconds"]} | {part["says"]} |' for name, part in self.failures_first()]
        return '\n'.join(lines)
