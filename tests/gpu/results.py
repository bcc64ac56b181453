# SPDX-License-Identifier: Apache-2.0
"""What the parts came to: one JSON file that the next call goes on with, one Markdown table."""
import json
import os

# What a part may come to, beside "cut off"; that alone is done again with the same sources. A partial one took longer
# than it may and had found nothing until then.
DONE = ('ok', 'failed', 'skipped', 'partial')


class Results:
    """Threads: one at a time."""

    def __init__(self, folder, head):
        self.folder, self.head = folder, head
        self.parts = {}
        os.makedirs(os.path.join(folder, 'logs'), exist_ok=True)
        try:
            with open(self.path('results.json'), encoding='utf-8') as file:
                kept = json.load(file)
        except (OSError, ValueError):
            return
        if kept.get('sources') == head['sources'] and kept.get('gpu') == head['gpu']:
            self.parts = kept.get('parts', {})

    def path(self, name):
        return os.path.join(self.folder, name)

    def log_path(self, part):
        return os.path.join(self.folder, 'logs', part.replace(' ', '-').replace('/', '_') + '.log')

    def is_done(self, part):
        return self.parts.get(part, {}).get('status') in DONE

    def add(self, part, group, status, seconds, says='', rows=None):
        self.parts[part] = {'group': group, 'status': status, 'seconds': round(seconds, 1), 'says': says,
                            **({'rows': rows} if rows else {})}
        self.save()

    def count(self, status):
        return sum(1 for part in self.parts.values() if part['status'] == status)

    def save(self):
        """Whole or not at all: the machine may go at any time."""
        for name, text in (('results.json', json.dumps({**self.head, 'parts': self.parts}, indent=1)),
                           ('results.md', self.markdown())):
            with open(self.path(name + '.new'), 'w', encoding='utf-8') as file:
                file.write(text + '\n')
            os.replace(self.path(name + '.new'), self.path(name))

    def markdown(self):
        lines = [f'## {self.head["gpu"]}', '',
                 f'{self.head["date"]}, driver {self.head["driver"]}, sources {self.head["sources"]}. '
                 + ', '.join(f'{self.count(status)} {status}' for status in (*DONE, 'cut off')), '',
                 '| part | result | seconds | |', '|---|---|---|---|']
        # Failures first.
        order = sorted(self.parts.items(), key=lambda item: item[1]['status'] not in ('failed', 'cut off', 'partial'))
        lines += [f'| {name} | {part["status"]} | {part["seconds"]} | {part["says"]} |' for name, part in order]
        return '\n'.join(lines)
