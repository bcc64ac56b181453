#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`tutti dataset` on files that Python writes, and reads back. usage: dataset_test.py TUTTI GOLDEN_FILES"""
import csv
import io
import json
import os
import random
import statistics
import struct
import subprocess
import sys
import tarfile
import tempfile
import unittest
import zlib

TUTTI, GOLDEN = sys.argv[1], sys.argv[2]


def tutti(*arguments):
    return subprocess.run([TUTTI, 'dataset', *arguments], capture_output=True, text=True, timeout=120, check=False)


def chunk(kind, data):
    return struct.pack('>I', len(data)) + kind + data + struct.pack('>I', zlib.crc32(kind + data))


def write_png(path, rows):
    """Rows of (r, g, b)."""
    raw = b''.join(b'\0' + bytes(value for pixel in row for value in pixel) for row in rows)
    header = struct.pack('>IIBBBBB', len(rows[0]), len(rows), 8, 2, 0, 0, 0)
    with open(path, 'wb') as file:
        file.write(b'\x89PNG\r\n\x1a\n' + chunk(b'IHDR', header) + chunk(b'IDAT', zlib.compress(raw)) + chunk(b'IEND', b''))


def unfiltered(kind, line, above):
    """A row of a PNG file with 3 bytes a pixel (PNG specification, 9.2)."""
    row = bytearray()
    for i, value in enumerate(line):
        left, up = (row[i - 3] if i >= 3 else 0), above[i]
        corner = above[i - 3] if i >= 3 else 0
        guess = left + up - corner
        paeth = min((left, up, corner), key=lambda near: abs(guess - near))
        row.append((value + [0, left, up, (left + up) // 2, paeth][kind]) & 255)
    return row


def read_png(path):
    """Rows of bytes, RGB."""
    with open(path, 'rb') as file:
        data = file.read()
    at, packed, width, height = 8, b'', 0, 0
    while at < len(data):
        size, kind = struct.unpack('>I4s', data[at:at + 8])
        body = data[at + 8:at + 8 + size]
        if kind == b'IHDR':
            width, height = struct.unpack('>II', body[:8])
        packed += body if kind == b'IDAT' else b''
        at += size + 12
    raw, rows, above = zlib.decompress(packed), [], bytes(3 * width)
    for y in range(height):
        line = raw[y * (3 * width + 1):(y + 1) * (3 * width + 1)]
        above = unfiltered(line[0], line[1:], above)
        rows.append(above)
    return rows


class Dataset(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def path(self, name):
        return os.path.join(self.folder.name, name)

    def done(self, *arguments):
        done = tutti(*arguments)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def answer(self, *arguments):
        return json.loads(self.done(*arguments, '--json'))

    def write_numbers(self, count=500):
        generator = random.Random(5)
        rows = [(repr(generator.gauss(3, 2)), generator.randrange(4), f'word {i % 7}, "quoted"') for i in range(count)]
        with open(self.path('numbers.csv'), 'w', newline='', encoding='utf-8') as file:
            writer = csv.writer(file)
            writer.writerow(['x', 'class', 'text'])
            writer.writerows(rows)
        return rows

    columns = ('--set', 'columns=x: f64', '--set', 'columns=class: i64', '--set', 'columns=text: bytes', '--set',
               'labels=class')

    def test_statistics_are_those_of_the_values(self):
        rows = self.write_numbers()
        found = self.answer('stats', self.path('numbers.csv'), *self.columns)
        x, label, text = found['components']
        values = [float(row[0]) for row in rows]
        self.assertEqual(found['elements'], 500)
        self.assertEqual((x['min'], x['max']), (min(values), max(values)))
        self.assertAlmostEqual(x['mean'], statistics.fmean(values))
        self.assertAlmostEqual(x['standard_deviation'], statistics.pstdev(values))
        self.assertNotIn('counts', x)
        classes = [row[1] for row in rows]
        self.assertEqual(label['counts'], {str(c): classes.count(c) for c in range(4)})
        self.assertEqual(sum(text['counts'].values()), 500)
        self.assertEqual(text['min'], len('word 0, "quoted"'))

    def test_a_limit_is_kept(self):
        self.write_numbers()
        self.assertEqual(self.answer('stats', self.path('numbers.csv'), '--first', '7')['elements'], 7)
        self.assertEqual(len(self.answer('inspect', self.path('numbers.csv'), '--first', '9')['elements']), 9)

    def test_there_and_back(self):
        rows = self.write_numbers()
        self.done('convert', self.path('numbers.csv'), self.path('numbers.tfrecord.gz'), *self.columns, '--shards', '3')
        shards = [self.path(f'numbers-0000{i}-of-00003.tfrecord.gz') for i in range(3)]
        kinds = self.answer('inspect', shards[0])['elements'][0]
        self.assertEqual({name: value['dtype'] for name, value in kinds.items()},
                         {'class': 'i64', 'text': 'bytes', 'x': 'f32'})
        for i, shard in enumerate(shards):
            self.done('convert', shard, self.path('back.csv'))
            with open(self.path('back.csv'), newline='', encoding='utf-8') as file:
                back = list(csv.DictReader(file))
            expected = rows[i::3]
            self.assertEqual([row['text'] for row in back], [row[2] for row in expected])
            self.assertEqual([int(row['class']) for row in back], [row[1] for row in expected])
            for row, want in zip(back, expected):
                self.assertAlmostEqual(float(row['x']), float(want[0]), places=5)

    def test_features_of_examples_that_tensorflow_wrote(self):
        elements = self.answer('inspect', os.path.join(GOLDEN, 'examples.tfrecord'))['elements']
        self.assertEqual({name: value['dtype'] + value['shape'] for name, value in elements[0].items()},
                         {'box': 'f32[4]', 'ids': 'i64[4]', 'label': 'i64[]', 'name': 'bytes[]', 'points': 'f32[6]',
                          'words': 'bytes[3]'})
        raw = self.answer('inspect', os.path.join(GOLDEN, 'records.tfrecord'))['elements']
        self.assertEqual(list(raw[0]), ['record'])

    def test_sheet_of_image_files(self):
        colours = {'blue': (0, 0, 255), 'red': (255, 0, 0), 'white': (250, 250, 250)}
        for name, colour in colours.items():
            os.makedirs(self.path(f'images/{name}'))
            write_png(self.path(f'images/{name}/one.png'), [[colour] * 50 for _ in range(20)])
        self.done('inspect', self.path('images'), '--sheet', self.path('sheet.png'))
        rows = read_png(self.path('sheet.png'))
        # Squares of 96 with gaps of 4; of 50 x 20 pixels, the upper two fifths are covered.
        for i, colour in enumerate(colours.values()):
            left = 3 * (4 + 100 * i)
            self.assertEqual(tuple(rows[5][left:left + 3]), colour)
            self.assertEqual(tuple(rows[4 + 37][left + 3 * 95:left + 3 * 96]), colour)
            self.assertEqual(tuple(rows[4 + 50][left:left + 3]), (255, 255, 255))

    def test_sheet_of_numbers(self):
        images = bytes(range(256)) * 2
        with open(self.path('x-ubyte'), 'wb') as file:
            file.write(struct.pack('>HBBIII', 0, 8, 3, 2, 16, 16) + images)
        with open(self.path('labels-ubyte'), 'wb') as file:
            file.write(struct.pack('>HBBI', 0, 8, 1, 2) + b'\x01\x07')
        sources = (self.path('x-ubyte'), self.path('labels-ubyte'))
        self.done('inspect', *sources, '--sheet', self.path('sheet.png'))
        rows = read_png(self.path('sheet.png'))
        self.assertEqual([rows[4 + 6 * y + 3][3 * (4 + 6 * x + 3)] for y in range(16) for x in range(16)],
                         list(range(256)))
        label = self.answer('stats', *sources)['components'][1]
        self.assertEqual(label['counts'], {'1': 1, '7': 1})

    def test_parts_of_an_archive_are_found(self):
        with tarfile.open(self.path('train.tar'), 'w') as archive:
            for name, data in (('a.cls', b'3'), ('a.txt', b'hello'), ('b.cls', b'4'), ('b.txt', b'there')):
                member = tarfile.TarInfo('folder/' + name)
                member.size = len(data)
                archive.addfile(member, io.BytesIO(data))
        elements = self.answer('inspect', self.path('train.tar'))['elements']
        self.assertEqual([[part['values'] for part in element.values()] for element in elements],
                         [['"3"', '"hello"'], ['"4"', '"there"']])

    def test_damage_is_told(self):
        self.write_numbers()
        self.done('convert', self.path('numbers.csv'), self.path('numbers.tfrecord'), *self.columns)
        with open(self.path('numbers.tfrecord'), 'r+b') as file:
            file.seek(200)
            file.write(b'XXXX')
        done = tutti('stats', self.path('numbers.tfrecord'), '--feature', 'x: f32', '--json')
        self.assertEqual(done.returncode, 1)
        found = json.loads(done.stdout)
        self.assertGreater(found['failures'], 0)
        self.assertIn('numbers.tfrecord', found['first_failure'])

    def test_a_conversion_that_fails_leaves_no_file(self):
        with open(self.path('bad.csv'), 'w', encoding='utf-8') as file:
            file.write('x\n1\n2\nthree\n')
        for target in ('bad.tfrecord', 'out.csv'):
            done = tutti('convert', self.path('bad.csv'), self.path(target), '--set', 'columns=x: i64')
            self.assertEqual(done.returncode, 1)
            self.assertIn("bad.csv':4: column 'x'", done.stderr)
        self.assertEqual(os.listdir(self.folder.name), ['bad.csv'])

    def test_wrong_arguments(self):
        for arguments, says in ((('inspect',), 'which files'), (('look', 'x'), 'inspect, stats or convert'),
                                (('convert', 'x.csv'), 'a source and a target'),
                                (('inspect', 'x.csv', '--sheet'), 'takes a value'),
                                (('stats', 'x.csv', '--first', 'ten'), "takes a number, got 'ten'")):
            done = tutti(*arguments)
            self.assertEqual(done.returncode, 2, arguments)
            self.assertIn(says, done.stderr)
        done = tutti('inspect', self.path('nothing.csv'))
        self.assertEqual(done.returncode, 1)
        self.assertIn('nothing.csv', done.stderr)


if __name__ == '__main__':
    unittest.main(argv=sys.argv[:1])
