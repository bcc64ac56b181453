#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Help, wrong arguments, devices, manual pages and completions of the `tutti` command. usage: command_test.py TUTTI
FOLDER_OF_DOCUMENTS"""
import filecmp
import glob
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

TUTTI, DOCUMENTS = map(os.path.abspath, sys.argv[1:3])

PREPARATION = ['--map', '--select', '--shuffle', '--seed']
SOURCE = ['--format', '--set', '--feature']
# Each command with its options, beside --help.
COMMANDS = {
    'bench': ['--batch', '--devices', '--seconds', '--set', '--json'],
    'compile': ['--for', '--pjrt-plugin', '--rows', '--json'],
    'dataset inspect': ['--first', '--sheet', '--json', *PREPARATION, *SOURCE],
    'dataset stats': ['--first', '--json', *PREPARATION, *SOURCE],
    'dataset convert': ['--first', '--shards', '--compression', *PREPARATION, *SOURCE],
    'dataset vocabulary': ['--of', '--most', '--least', '--memory-bytes', '--first', '--json', *PREPARATION, *SOURCE],
    'devices': ['--json'],
    'evaluate': ['--data', '--steps', '--devices', '--batch', '--set', '--json'],
    'explain': ['--json'],
    'export': ['--raw-weights'],
    'inspect checkpoint': ['--json'],
    'inspect model': ['--json'],
    'inspect plan': ['--rows', '--time', '--threads', '--determinism', '--precision', '--json'],
    'options': ['--json'],
    'predict': ['--batch', '--backend', '--devices', '--first', *PREPARATION, *SOURCE],
    'report': ['-o', '--output'],
    'run': ['-n'],
    'train': ['--model-dir', '--data', '--label', '--model', '--loss', '--metrics', '--optimizer', '--steps', '--learning-rate',
              '--devices', '--batch', '--set', '--json', '--quiet'],
    'version': [],
    'help': [],
}
# Short names of options that have a long one, which is what completion offers.
SHORT = {'-o'}
GROUPS = {'dataset', 'inspect'}


def call(*arguments, **more):
    return subprocess.run([TUTTI, *arguments], capture_output=True, text=True, timeout=60, check=False, **more)


def options_in(text):
    """The options that a help describes: `--rows N`, `-h, --help`."""
    lines = re.findall(r'^  (-\S.*?)(?:  |$)', text, re.M)
    return {part.split()[0] for line in lines for part in line.split(', ')}


def plain(page):
    """A manual page without the marks of roff."""
    for mark, text in ((r'\-', '-'), (r'\(aq', "'"), (r'\e', '\\'), (r'\fB', ''), (r'\fI', ''), (r'\fR', ''), (r'\&', '')):
        page = page.replace(mark, text)
    return page


class Case(unittest.TestCase):
    def out(self, *arguments):
        done = call(*arguments)
        self.assertEqual((done.returncode, done.stderr), (0, ''), arguments)
        return done.stdout


class Help(Case):
    def test_all_commands_are_listed_in_one_line_each(self):
        for words in (['--help'], ['-h'], ['help']):
            text = self.out(*words)
            listed = text.split('Commands:\n')[1].split('\n\n')[0]
            paths = [re.match(r'  (\w+(?: \w+)?)  ', line) for line in listed.splitlines()]
            self.assertEqual([path and path[1] for path in paths], list(COMMANDS))

    def test_a_group_lists_its_own(self):
        for group in GROUPS:
            listed = self.out(group, '--help').split('Commands:\n')[1].split('\n\n')[0]
            self.assertEqual(re.findall(r'^  (\w+ \w+)', listed, re.M), [path for path in COMMANDS if path.startswith(group)])

    def test_a_command_is_described_alone(self):
        for path, options in COMMANDS.items():
            text = self.out(*path.split(), '--help')
            self.assertTrue(text.startswith(f'usage: tutti {path} [OPTION...]'), text)
            self.assertEqual(options_in(text), {*options, '-h', '--help'}, path)
            self.assertIn(f'\nExample:\n  tutti {path}', text)
            self.assertLessEqual(max(map(len, text.splitlines())), 80, path)
            for same in (['help', *path.split()], [*path.split(), '-h']):
                self.assertEqual(self.out(*same), text)
            others = [other for other in COMMANDS if other != path and other not in ('help', 'run')]
            self.assertFalse([other for other in others if f'usage: tutti {other}' in text])

    def test_help_comes_in_any_place(self):
        expected = self.out('help', 'inspect', 'plan')
        self.assertEqual(self.out('inspect', 'plan', '--rows', 'many', 'x', 'y', '--help'), expected)
        # But not from another program's words.
        self.assertEqual(self.out('run', '-n', '1', 'echo', '--help', '-h'), '--help -h\n')
        self.assertEqual(self.out('run', '-n1', '--', 'echo', '-n', '--help'), '--help')
        self.assertEqual(self.out('run', '-n', '2', '--help'), self.out('help', 'run'))

    def test_defaults_are_those_in_force(self):
        text = self.out('inspect', 'plan', '--help')
        self.assertRegex(text, r'--rows N .*\(default: 64\)')
        self.assertRegex(re.sub(r'\s+', ' ', text), r'fast, repeatable or invariant \(default: fast\)')

    def test_version(self):
        self.assertRegex(self.out('version'), r'^\d+\.\d+\.\d+\n$')
        self.assertEqual(self.out('--version'), self.out('version'))


class WrongArguments(Case):
    def test_they_are_told_with_what_was_meant(self):
        for words, *needles in (
                ([], 'no command given', 'usage: tutti COMMAND'),
                (['dance'], "unknown command 'dance'", 'usage: tutti COMMAND'),
                (['devcies'], "unknown command 'devcies', did you mean 'devices'?"),
                (['--vresion'], "unknown argument '--vresion', did you mean '--version'?"),
                (['dataset'], 'dataset takes inspect, stats, convert or vocabulary\n', 'usage: tutti dataset COMMAND'),
                (['dataset', 'stat', '--first', '3'], "got 'stat', did you mean 'stats'?"),
                (['inspect', 'chekpoint', 'x'], 'checkpoint, model or plan', "did you mean 'checkpoint'?"),
                (['dataset', 'stats', 'x.csv', '--frist', '3'], "unknown argument '--frist', did you mean '--first'?",
                 'usage: tutti dataset stats [OPTION...] SOURCE...'),
                (['dataset', 'stats', 'x.csv', '--frist=3'], "unknown argument '--frist=3', did you mean '--first'?"),
                (['dataset', 'stats', 'x.csv', '--first'], '--first takes a value'),
                (['dataset', 'stats', 'x.csv', '--first', '--json'], "--first takes a number, got '--json'"),
                (['dataset', 'stats', 'x.csv', '--first', '-3'], "--first takes a number, got '-3'"),
                (['dataset', 'stats', 'x.csv', '--first', '99999999999999999999'], '--first takes a number'),
                (['dataset', 'stats'], 'no source files given'),
                (['dataset', 'convert', 'x'], 'convert needs a source and a target'),
                (['dataset', 'stats', '++', 'x.csv'], "unknown argument '++'"),
                (['devices', 'cpu'], "unknown argument 'cpu'", 'usage: tutti devices [OPTION...]\n'),
                (['version', '--json'], "unknown argument '--json'"),
                (['help', 'dataset', 'convrt'], "did you mean 'convert'?"),
                (['help', 'devices', 'x'], "unknown argument 'x'"),
                (['run', '-m', '2', 'true'], "unknown argument '-m'"),
                (['run', '-n', '2', '--'], 'run needs a program')):
            done = call(*words)
            self.assertEqual((done.returncode, done.stdout), (2, ''), (words, done.stderr))
            for needle in needles:
                self.assertIn(needle, done.stderr)
            self.assertIn(' --help\' tells more.', done.stderr)

    def test_values_may_follow_an_equals_sign(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, '--first')
            with open(path, 'w', encoding='utf-8') as file:
                file.write('a\nb\nc\n')
            done = call('dataset', 'stats', '--first=2', '--json', '--', '--first', cwd=folder)
            self.assertEqual(json.loads(done.stdout)['elements'], 2)
            # What had no meaning for a command, and was taken all the same, still is.
            done = call('dataset', 'stats', '--shards', '3', '--sheet', 'x.png', '--compression', 'gzip', '--json', path)
            self.assertEqual((json.loads(done.stdout)['elements'], os.listdir(folder)), (3, ['--first']))
            target = os.path.join(folder, 'x.tfrecord')
            self.assertEqual(call('dataset', 'convert', '--json', path, target).returncode, 0)
            # The last value counts.
            done = call('dataset', 'stats', '--first=2', '--first', '1', '--json', '--json', path)
            self.assertEqual(json.loads(done.stdout)['elements'], 1)


class Options(Case):
    SCHEMAS = ['context', 'cluster', 'run', 'train', 'predictor']

    def test_each_key_is_described(self):
        found = json.loads(self.out('options', '--json'))
        self.assertEqual([schema['schema'] for schema in found], self.SCHEMAS)
        text = re.sub(r'\s+', ' ', self.out('options'))
        for schema in found:
            self.assertGreater(len(schema['keys']), 5)
            for key in schema['keys']:
                self.assertIn(' ' + key['key'] + ' ', text)
                self.assertIn(re.sub(r'\s+', ' ', key['documentation']), text)

    def test_one_schema(self):
        text = self.out('options', 'train')
        self.assertTrue(text.startswith('Options of schema "train"'), text)
        self.assertRegex(text, r'\n  max_seconds +f64, at least 0, default 0\. ')
        self.assertNotIn('model_dir', text)
        self.assertRegex(self.out('options', 'run'), r'\n  determinism +string: fast, repeatable or invariant, default fast\.')
        done = call('options', 'trian')
        self.assertEqual(done.returncode, 2)
        self.assertIn("unknown schema 'trian', did you mean 'train'?", done.stderr)


class Devices(Case):
    def test_each_backend_has_devices_or_a_reason(self):
        found = json.loads(self.out('devices', '--json'))
        backends = {backend['name']: backend for backend in found['backends']}
        self.assertEqual(list(backends)[:5], ['cuda', 'hip', 'pjrt', 'cpu', 'reference'])
        self.assertTrue(backends['reference']['available'])
        self.assertTrue(backends[found['default_backend']]['available'])
        for name, backend in backends.items():
            self.assertEqual(backend['available'], 'reason' not in backend)
            if backend['available']:
                self.assertGreater(len(backend['devices']), 0)
                for i, device in enumerate(backend['devices']):
                    self.assertEqual((device['name'], device['backend']), (f'{name}:{i}', name))
                    self.assertGreaterEqual(device['memory_bytes'], 0)
            else:
                self.assertEqual(backend['devices'], [])
                self.assertGreater(len(backend['reason']), 10)

    def test_the_table_says_the_same(self):
        found = json.loads(self.out('devices', '--json'))
        lines = self.out('devices').splitlines()
        self.assertEqual(lines[0].split()[:3], ['backend', 'devices', 'kind'])
        for backend in found['backends']:
            name = backend['name']
            if backend['available']:
                rows = [line for line in lines if line.startswith(name + ' ') and f'{name}:' in line]
                self.assertIn(backend['devices'][0]['description'], rows[0])
                self.assertIn(backend['devices'][0]['name'], rows[0])
                self.assertIn(backend['devices'][-1]['name'], rows[-1])
            else:
                self.assertIn(f"{name} cannot be used: {backend['reason']}", lines)
        self.assertIn(f"Programs that do not choose use {found['default_backend']}.", lines)

    def test_a_backend_without_its_plug_in(self):
        with tempfile.TemporaryDirectory() as folder:
            broken = os.path.join(folder, 'tutti-hip.so')
            with open(broken, 'w', encoding='utf-8') as file:
                file.write('no library')
            done = call('devices', '--json', env=dict(os.environ, TUTTI_PLUGIN_PATH=folder))
            self.assertEqual(done.returncode, 0)
            reason = {backend['name']: backend.get('reason') for backend in json.loads(done.stdout)['backends']}['hip']
            self.assertIn(broken, reason)


class ManualPages(Case):
    @staticmethod
    def page(path=''):
        name = '-'.join(['tutti', *path.split()]) + '.1'
        with open(os.path.join(DOCUMENTS, name), encoding='utf-8') as file:
            return file.read()

    def test_each_command_has_one_and_nothing_else_does(self):
        pages = {os.path.basename(path) for path in glob.glob(os.path.join(DOCUMENTS, '*.1'))}
        self.assertEqual(pages, {'-'.join(['tutti', *path.split()]) + '.1' for path in ['', *GROUPS, *COMMANDS]})

    def test_they_say_what_the_help_says(self):
        for path in ['', *GROUPS, *COMMANDS]:
            page, text = plain(self.page(path)), self.out(*path.split(), '--help')
            for heading in ('NAME', 'SYNOPSIS', 'OPTIONS', 'EXIT STATUS'):
                self.assertIn(f'.SH "{heading}"', page)
            for option in options_in(text):
                self.assertRegex(page, rf'(?m)^\.TP\n.*{re.escape(option)}\b', path)
            self.assertIn(text.splitlines()[0].removeprefix('usage: '), page)
            # Every word of the help but its titles is in the page.
            words = set(re.findall(r'[a-z]{4,}', text.split('\n', 2)[2].lower())) - {'usage', 'describes', 'them'}
            self.assertFalse(words - set(re.findall(r'[a-z]{4,}', page.lower())), path)

    def test_they_are_related(self):
        self.assertIn('.BR tutti-dataset (1)', plain(self.page('dataset convert')))
        self.assertIn('.BR tutti-dataset-convert (1)', plain(self.page('dataset')))
        self.assertNotIn('documentation', self.page())

    def test_equal_sources_give_equal_pages(self):
        with tempfile.TemporaryDirectory() as folder:
            names = [name for name in os.listdir(DOCUMENTS) if name == 'tutti' or re.fullmatch(r'_?tutti.*\.(1|fish)|_tutti', name)]
            paths = [os.path.join(folder, name) for name in names]
            done = call('documentation', *paths, env=dict(os.environ, SOURCE_DATE_EPOCH='1', TZ='Asia/Tokyo', LC_ALL='C'))
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(filecmp.cmpfiles(DOCUMENTS, folder, names, shallow=False)[1:], ([], []))
            # A list that misses one is refused.
            for some, needle in ((paths[1:], names[0]), ([*paths, paths[0] + 'x'], names[0] + 'x')):
                done = call('documentation', *some)
                self.assertEqual(done.returncode, 1)
                self.assertIn(needle, done.stderr)

    def test_roff_finds_no_fault(self):
        tools = [(name, command) for name, command in (('man', ['man', '--warnings', '-l']), ('groff', ['groff', '-man', '-ww', '-Tutf8', '-z']),
                                                       ('mandoc', ['mandoc', '-T', 'lint', '-W', 'error'])) if shutil.which(name)]
        if not tools:
            self.skipTest('there is no man, groff or mandoc')
        for path in ['', *GROUPS, *COMMANDS]:
            file = os.path.join(DOCUMENTS, '-'.join(['tutti', *path.split()]) + '.1')
            for _, command in tools:
                done = subprocess.run([*command, file], capture_output=True, text=True, timeout=60, check=False,
                                      env=dict(os.environ, LC_ALL='C.UTF-8', MANPAGER='cat', MAN_KEEP_FORMATTING=''))
                self.assertEqual((done.returncode, done.stderr), (0, ''), (command, path))


class Completion(Case):
    def bash(self, *words):
        """What is offered for the last word."""
        script = 'source "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _tutti; printf "%s\\n" "${COMPREPLY[@]}"'
        done = subprocess.run(['bash', '-c', script, 'bash', os.path.join(DOCUMENTS, 'tutti'), 'tutti', *words],
                              capture_output=True, text=True, timeout=60, check=False)
        self.assertEqual((done.returncode, done.stderr), (0, ''))
        return set(done.stdout.split())

    @unittest.skipUnless(shutil.which('bash'), 'there is no bash')
    def test_bash(self):
        self.assertEqual(self.bash(''), {path.split()[0] for path in COMMANDS} | {'--help', '--version'})
        self.assertEqual(self.bash('help', ''), self.bash(''))
        self.assertEqual(self.bash('de'), {'devices'})
        for group in GROUPS:
            inside = {path.split()[1] for path in COMMANDS if path.startswith(group)}
            for words in ((group, ''), ('help', group, '')):
                self.assertEqual(self.bash(*words) - {'--help'}, inside)
        for path, options in COMMANDS.items():
            if path == 'help':
                continue
            self.assertEqual(self.bash(*path.split(), '-'), {*options, '--help'} - SHORT, path)
            # Names of files are the shell's own.
            self.assertEqual(self.bash(*path.split(), ''), set(), path)
        self.assertEqual(self.bash('inspect', 'plan', 'x', '--determinism', ''), {'fast', 'repeatable', 'invariant'})
        self.assertEqual(self.bash('inspect', 'plan', '--determinism', 'i'), {'invariant'})
        self.assertEqual(self.bash('inspect', 'plan', '--rows', ''), set())
        self.assertEqual(self.bash('inspect', 'plan', '--json', '--ro'), {'--rows'})
        self.assertEqual(self.bash('run', '-n', '2', 'ls', '-'), set())

    def test_each_shell_knows_all(self):
        for name in ('tutti', '_tutti', 'tutti.fish'):
            with open(os.path.join(DOCUMENTS, name), encoding='utf-8') as file:
                text = file.read()
            for path, options in COMMANDS.items():
                for word in path.split():
                    self.assertRegex(text, rf'\b{word}\b', name)
                for option in options:
                    self.assertRegex(text, rf"(-l|-s) {option.strip('-')} " if name == 'tutti.fish' else f'{option}\\b', name)
            self.assertIn('repeatable', text)
            self.assertNotIn('documentation', text)

    def check_syntax(self, shell, name):
        done = subprocess.run([shell, '-n', os.path.join(DOCUMENTS, name)], capture_output=True, text=True, timeout=60, check=False)
        self.assertEqual((done.returncode, done.stderr), (0, ''))

    @unittest.skipUnless(shutil.which('zsh'), 'there is no zsh')
    def test_zsh(self):
        self.check_syntax('zsh', '_tutti')

    @unittest.skipUnless(shutil.which('fish'), 'there is no fish')
    def test_fish(self):
        self.check_syntax('fish', 'tutti.fish')

        def offered(line):
            script = f"source {os.path.join(DOCUMENTS, 'tutti.fish')}; complete -C {json.dumps(line)}"
            done = subprocess.run(['fish', '--no-config', '-c', script], capture_output=True, text=True, timeout=60, check=False)
            return {row.split('\t')[0] for row in done.stdout.splitlines()}
        self.assertEqual(offered('tutti inspect '), {'checkpoint', 'model', 'plan'})
        self.assertLessEqual({'--rows', '--determinism', '--help'}, offered('tutti inspect plan --'))
        self.assertEqual(offered('tutti inspect plan --determinism '), {'fast', 'repeatable', 'invariant'})
        self.assertEqual(offered('tutti dev'), {'devices'})


if __name__ == '__main__':
    unittest.main(argv=sys.argv[:1])
