#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`tutti inspect checkpoint` and `tutti inspect model` on what a program has trained. usage: inspect_files_test.py TUTTI
WRITE_MODEL"""
import json
import math
import os
import shutil
import struct
import subprocess
import sys
import tempfile
import unittest

TUTTI, WRITE_MODEL = sys.argv[1:3]

# What write_model.c says: name, type, bytes of an element, shape.
TRAINED = [('dense/bias', 'f32', 4, [5]), ('dense/kernel', 'f32', 4, [4, 5]), ('dense_1/bias', 'f32', 4, [3]),
           ('dense_1/kernel', 'f32', 4, [5, 3])]
WEIGHTS = sorted([*TRAINED, ('seen', 'i64', 8, [2, 3])])


def expected(kind, variables, *slots):
    rows = [(name + slot, kind, dtype, shape, size * math.prod(shape))
            for name, dtype, size, shape in variables for slot in slots or ('',)]
    return sorted(rows)


EXPECTED = (expected('weight', WEIGHTS) + expected('average', TRAINED, '/average') +
            expected('slot', TRAINED, '/m', '/v'))


def tutti(*arguments):
    return subprocess.run([TUTTI, 'inspect', *arguments], capture_output=True, text=True, timeout=120, check=False)


def cells(line):
    """The cells of a table's line: a shape has blanks of its own."""
    return line.replace(', ', ',').split()


class InspectFiles(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp()
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        cls.model = os.path.join(cls.folder, 'model')
        subprocess.run([WRITE_MODEL, cls.model, '{"seed": 11}'], check=True, timeout=120)
        cls.newest = os.path.join(cls.model, 'checkpoint-7')

    def done(self, *arguments):
        done = tutti(*arguments)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def answer(self, *arguments):
        return json.loads(self.done(*arguments, '--json'))

    def copy(self, name='copy'):
        target = os.path.join(self.folder, name)
        shutil.copytree(self.model, target)
        self.addCleanup(shutil.rmtree, target)
        return target

    def assert_variables(self, found):
        rows = [tuple(variable[key] for key in ('name', 'kind', 'dtype', 'shape', 'bytes')) for variable in found]
        self.assertEqual(sorted(rows), sorted(EXPECTED))
        for kind in ('weight', 'average', 'slot'):
            names = [row[0] for row in rows if row[1] == kind]
            self.assertEqual(names, sorted(names))

    def test_variables_are_those_of_the_program(self):
        for path in (self.newest, self.newest + '/', self.model):
            found = self.answer('checkpoint', path)
            self.assert_variables(found['variables'])
            self.assertEqual((found['step'], found['epoch'], found['examples']), (7, 0, 35))
            self.assertEqual(found['bytes'], sum(row[4] for row in EXPECTED))
            for kind, total in found['totals'].items():
                of_kind = [row for row in EXPECTED if row[1] == kind]
                self.assertEqual(total, {'variables': len(of_kind), 'elements': sum(math.prod(row[3]) for row in of_kind),
                                         'bytes': sum(row[4] for row in of_kind)})
            self.assertEqual(set(found['totals']), {'weight', 'average', 'slot'})

    def test_what_else_the_manifest_says(self):
        found = self.answer('checkpoint', self.newest)
        with open(os.path.join(self.newest, 'manifest.json'), encoding='utf-8') as file:
            manifest = json.load(file)['manifest']
        self.assertEqual(found['options']['seed'], 11)
        for key in ('options', 'metrics', 'run'):
            self.assertEqual(found[key], manifest[key])
        sizes = {name: os.path.getsize(os.path.join(self.newest, name)) for name in os.listdir(self.newest)}
        del sizes['manifest.json']
        self.assertEqual({file['name']: file['bytes'] for file in found['files']}, sizes)

    def test_options_are_kept_with_their_origin(self):
        options = self.answer('checkpoint', self.newest)['options']['options']
        self.assertEqual(options['seed'], {'value': 11, 'origin': 'set'})
        self.assertEqual(options['determinism'], {'value': 'fast', 'origin': 'default'})
        self.assertEqual(options['keep_checkpoint_max'], {'value': 5, 'origin': 'default'})
        self.assertNotIn('model_dir', options)
        rows = {tuple(cells(line)) for line in self.done('checkpoint', self.newest).splitlines()}
        self.assertIn(('determinism', 'fast', '(default)'), rows)

    def test_the_table_has_a_row_for_each_variable(self):
        lines = self.done('checkpoint', self.newest).splitlines()
        self.assertEqual(lines[0], f'{self.newest}: step 7, epoch 0, 35 examples')
        self.assertEqual(lines[1].split(), ['variable', 'kind', 'dtype', 'shape', 'elements', 'bytes'])
        rows = {tuple(cells(line)) for line in lines}
        for name, kind, dtype, shape, size in EXPECTED:
            self.assertIn((name, kind, dtype, str(shape).replace(' ', ''), str(math.prod(shape)), str(size)), rows)
        weights = [row for row in EXPECTED if row[1] == 'weight']
        self.assertIn(('total', 'of', '5', 'weight', str(sum(math.prod(row[3]) for row in weights)),
                       str(sum(row[4] for row in weights))), rows)
        self.assertIn(('seed', '11'), rows)
        self.assertTrue(any(row[:1] == ('loss',) for row in rows))

    def test_a_file_of_variables(self):
        path = os.path.join(self.newest, 'weights.safetensors')
        found = self.answer('checkpoint', path)
        rows = [(variable['name'], variable['dtype'], variable['shape'], variable['bytes']) for variable in found['variables']]
        self.assertEqual(rows, [(name, dtype, shape, size) for name, _, dtype, shape, size in expected('', WEIGHTS)])
        self.assertNotIn('step', found)
        self.assertEqual(tutti('model', path).returncode, 1)

    def test_a_model_has_a_signature(self):
        found = self.answer('model', self.model)
        self.assertEqual(found['inputs'], [{'name': 'x', 'dtype': 'f32', 'shape': ['batch', 4]}])
        self.assertEqual(sorted(found['outputs'], key=lambda output: output['name']),
                         [{'name': 'class', 'dtype': 'i64', 'shape': ['batch']},
                          {'name': 'logits', 'dtype': 'f32', 'shape': ['batch', 3]}])
        self.assertEqual([place['step'] for place in found['checkpoints']], [0, 4, 7])
        self.assertEqual(found['newest'], self.answer('checkpoint', self.newest))
        self.assertEqual(self.answer('model', self.newest)['checkpoints'], [])

    def test_the_table_of_a_model(self):
        lines = self.done('model', self.model).splitlines()
        self.assertEqual(lines[0], f'{self.model}: checkpoints of steps 0, 4, 7')
        rows = [cells(line) for line in lines]
        for row in (['input', 'x', 'f32', '[batch,4]'], ['output', 'logits', 'f32', '[batch,3]'],
                    ['output', 'class', 'i64', '[batch]']):
            self.assertIn(row, rows)
        self.assertEqual(lines[-len(self.done('checkpoint', self.newest).splitlines()):],
                         self.done('checkpoint', self.newest).splitlines())

    def test_a_model_without_predictions(self):
        path = os.path.join(self.folder, 'silent')
        subprocess.run([WRITE_MODEL, path, '{"without_predictions": true}'], check=True, timeout=120)
        found = self.answer('model', path)
        self.assertEqual((found['inputs'], found['outputs']), (None, None))
        self.assert_variables(found['newest']['variables'])
        self.assertIn('without a graph of predictions', self.done('model', path))

    def assert_refused(self, path, *needles):
        for command in ('checkpoint', 'model'):
            done = tutti(command, path)
            self.assertEqual((done.returncode, done.stdout), (1, ''))
            for needle in needles:
                self.assertIn(needle, done.stderr)

    def test_damage_is_told(self):
        for name, change, needle in (
                ('weights.safetensors', lambda data: data + b'x', 'the manifest says'),
                ('slots.safetensors', lambda data: struct.pack('<Q', 10**15) + data[8:], 'header is longer'),
                ('weights.safetensors', lambda data: data[:8] + b'[' + data[9:], 'is damaged'),
                ('manifest.json', lambda data: data[:-10], 'is damaged'),
                ('manifest.json', lambda data: data.replace(b'"format_version": 1', b'"format_version": 2'),
                 'is of version 2; this command reads version 1')):
            path = os.path.join(self.copy(), 'checkpoint-7')
            with open(os.path.join(path, name), 'rb') as file:
                data = file.read()
            self.assertNotEqual(change(data), data)
            with open(os.path.join(path, name), 'wb') as file:
                file.write(change(data))
            self.assert_refused(path, needle, name)
            self.doCleanups()
        path = self.copy()
        os.remove(os.path.join(path, 'checkpoint-7', 'averages.safetensors'))
        self.assert_refused(path, 'averages.safetensors')

    def test_what_is_no_checkpoint(self):
        self.assert_refused('/no/such/place', '/no/such/place')
        empty = os.path.join(self.folder, 'empty')
        os.makedirs(os.path.join(empty, 'checkpoint-7.old'))
        self.assert_refused(empty, 'there is no checkpoint')

    def test_pipes_are_not_waited_for(self):
        for name in ('manifest.json', 'weights.safetensors'):
            path = os.path.join(self.copy(), 'checkpoint-7')
            os.remove(os.path.join(path, name))
            os.mkfifo(os.path.join(path, name))
            self.assert_refused(path, name, 'is not a regular file')
            self.doCleanups()
        pipe = os.path.join(self.folder, 'pipe.safetensors')
        os.mkfifo(pipe)
        self.assert_refused(pipe, 'pipe.safetensors', 'is not a regular file')

    def test_wrong_arguments(self):
        for arguments, text in ((['checkpoint'], 'no checkpoint given'), (['model'], 'no model directory given'),
                                (['checkpoint', 'a', 'b'], "unknown argument 'b'"),
                                (['model', self.model, '--jsn'], "did you mean '--json'?")):
            done = tutti(*arguments)
            self.assertEqual((done.returncode, done.stdout), (2, ''))
            self.assertIn(text, done.stderr)


if __name__ == '__main__':
    unittest.main(argv=sys.argv[:1])
