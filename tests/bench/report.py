# SPDX-License-Identifier: Apache-2.0
"""Results as JSON and as Markdown tables."""
import datetime
import json
import os
import re
import subprocess


def machine():
    with open('/proc/cpuinfo', encoding='utf-8') as file:
        text = file.read()
    name = re.search(r'model name\s*: (.*)', text)
    family, number = (re.search(rf'{key}\s*: (\d+)', text) for key in ('cpu family', r'model\t'))
    kind = f'family {family[1]} model {number[1]}' if family and number else 'unknown kind'
    return f'{name[1] if name else "unknown processor"} ({kind}), {os.cpu_count()} cores'


def commit():
    here = os.path.dirname(os.path.abspath(__file__))
    try:
        answer = subprocess.run(['git', 'rev-parse', '--short', 'HEAD'], cwd=here, capture_output=True, text=True, check=False)
    except OSError:  # there is no git
        return 'unknown'
    return answer.stdout.strip() or 'unknown'


class Report:
    """What was measured, written as it grows."""

    def __init__(self, what, json_path, markdown_path, bound):
        self.json_path, self.markdown_path = json_path, markdown_path
        self.head = {'what': what, 'date': datetime.date.today().isoformat(), 'machine': machine(), 'commit': commit(),
                     'bound': bound}
        self.rows = []
        self.lines = [f'## {what}', '', f'{self.head["date"]}, {self.head["machine"]}, commit {self.head["commit"]}', '']

    def say(self, line=''):
        self.lines.append(line)
        print(line, flush=True)

    def table(self, *titles):
        self.say('| ' + ' | '.join(titles) + ' |')
        self.say('|' + '---|' * len(titles))

    def row(self, record, *cells):
        self.rows.append(record)
        self.say('| ' + ' | '.join(str(cell) for cell in cells) + ' |')
        self.save()

    def save(self):
        if self.json_path:
            with open(self.json_path, 'w', encoding='utf-8') as file:
                json.dump({**self.head, 'rows': self.rows}, file, indent=2)
        if self.markdown_path:
            with open(self.markdown_path, 'w', encoding='utf-8') as file:
                file.write('\n'.join(self.lines) + '\n')


def verdict(result, gate, aim, bound):
    """What a row says of its gate; an inconclusive one says nothing."""
    if not result['cores_were_free']:
        return 'inconclusive: cores were not free'
    if (result['high'] - result['low']) / result['ratio'] > 2 * bound:
        return 'inconclusive'
    if result['ratio'] < gate:
        return f'below {gate:g}'
    return f'aim {aim:g} reached' if result['ratio'] >= aim else f'holds {gate:g}'
