#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`tutti dataset` on files that Python writes, and reads back. usage: dataset_test.py TUTTI GOLDEN_FILES
PREPROCESSED_TEST"""
import collections
import csv
import gzip
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

TUTTI, GOLDEN, PREPROCESSED_TEST = sys.argv[1:4]


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

    def write_corpus(self):
        """Lines of words; how often each word comes, the most frequent first and equally frequent ones by name."""
        generator = random.Random(3)
        lines = [' '.join(f'w{min(generator.randrange(1, 400) for _ in range(3))}' for _ in range(generator.randrange(9)))
                 for _ in range(900)]
        with open(self.path('corpus.txt'), 'w', encoding='utf-8') as file:
            file.write(''.join(line + '\n' for line in lines))
        counts = collections.Counter(word for line in lines for word in line.split())
        return sorted(counts.items(), key=lambda item: (-item[1], item[0]))

    tokenized = ('--map', 'text = bytes_tokenize(text)')

    def test_words_are_counted(self):
        counts = self.write_corpus()
        self.assertGreater(len(counts), 200)
        text = self.answer('stats', self.path('corpus.txt'), *self.tokenized)['components'][0]
        self.assertEqual((text['shape'], text['different_values']), ('[?]', len(counts)))
        self.assertEqual(list(text['counts'].items()), [(f'"{word}"', times) for word, times in counts[:100]])
        shown = self.done('stats', self.path('corpus.txt'), *self.tokenized)
        self.assertIn(f'text: {len(counts)} different values', shown)
        share = 100 * counts[0][1] / sum(times for _, times in counts)
        self.assertRegex(shown, f'"{counts[0][0]}" +{counts[0][1]} +{share:.3g}')

    def test_a_vocabulary_is_written(self):
        counts = self.write_corpus()
        source, target = self.path('corpus.txt'), self.path('words.txt')
        said = self.done('vocabulary', source, target, *self.tokenized)
        with open(target, encoding='utf-8') as file:
            self.assertEqual(file.read(), ''.join(word + '\n' for word, _ in counts))
        self.assertIn(f"{len(counts)} of {len(counts)} different texts of 'text', which are 100 % of all", said)
        found = self.answer('vocabulary', source, target, *self.tokenized, '--most', '50', '--of', 'text')
        every, kept = sum(times for _, times in counts), sum(times for _, times in counts[:50])
        self.assertEqual((found['written'], found['different'], found['texts']), (50, len(counts), every))
        self.assertAlmostEqual(found['share'], kept / every)
        # What it is for.
        shown = self.answer('inspect', source, '--map', f'text = lookup(bytes_tokenize(text), path="{target}")', '--first',
                            '900')['elements']
        numbers = {word: str(i) for i, (word, _) in enumerate(counts[:50])}
        with open(source, encoding='utf-8') as file:
            expected = [' '.join(numbers.get(word, '-1') for word in line.split()) for line in file]
        self.assertEqual([element['text']['values'] for element in shown], expected)
        often = self.answer('vocabulary', source, target, *self.tokenized, '--least', '9')
        self.assertEqual(often['written'], sum(times >= 9 for _, times in counts))

    def test_a_vocabulary_that_fails_leaves_no_file(self):
        with open(self.path('two.csv'), 'w', encoding='utf-8') as file:
            file.write('a,b\n"one\ntwo",x\n')
        columns = ('--set', 'columns=a: bytes', '--set', 'columns=b: bytes')
        for more, says, status in (((), 'known: a, b', 2), (('--of', 'c'), "no component of texts 'c'", 2),
                                   (('--of', 'a'), 'has line breaks', 1),
                                   (('--of', 'b', '--memory-bytes', '64'), 'need more than 64 bytes', 1)):
            done = tutti('vocabulary', self.path('two.csv'), self.path('words.txt'), *columns, *more)
            self.assertEqual(done.returncode, status, done.stderr)
            self.assertIn(says, done.stderr)
        self.assertEqual(os.listdir(self.folder.name), ['two.csv'])
        self.done('vocabulary', self.path('two.csv'), self.path('words.txt'), *columns, '--of', 'b')
        with open(self.path('words.txt'), encoding='utf-8') as file:
            self.assertEqual(file.read(), 'x\n')

    def write_photos(self, count=23):
        """Photos of several sizes in three classes; how many there are of each."""
        generator = random.Random(11)
        for i in range(count):
            os.makedirs(self.path(f'photos/{i % 3}'), exist_ok=True)
            height, width = generator.randrange(9, 30), generator.randrange(9, 30)
            rows = [[(generator.randrange(256), x * 8, 100 * (i % 3)) for x in range(width)] for _ in range(height)]
            write_png(self.path(f'photos/{i % 3}/{i:02}.png'), rows)
        return [len(range(i, count, 3)) for i in range(3)]

    resized = ('--map', 'image = resize(decode_image(image), size=[8, 8])')

    def test_what_is_prepared_once_is_what_a_pipeline_gives(self):
        self.write_photos()
        records, elements, crops = self.path('photos.tfrecord'), self.path('photos.elements'), self.path('crops.elements')
        said = self.done('convert', self.path('photos'), records, *self.resized)
        self.assertIn('23 elements', said)
        self.assertIn('features "image: u8[8, 8, 3]", "label: i32"\n  labels "label"\n', said)
        self.assertLess(os.path.getsize(records), 23 * (192 + 60))
        self.done('convert', self.path('photos'), elements, *self.resized)
        self.done('convert', self.path('photos'), crops, '--map', 'image = decode_image(image)', '--map',
                  'image = random_crop(image, size=[8, 8])', '--seed', '5')
        done = subprocess.run([PREPROCESSED_TEST, self.path('photos'), records, elements, crops, '5'],
                              capture_output=True, text=True, timeout=120, check=False)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def shown(self, *arguments):
        """Component to what inspect shows of it in each element."""
        shown = {}
        for element in self.answer('inspect', *arguments)['elements']:
            for name, value in element.items():
                shown.setdefault(name, []).append((value['dtype'] + value['shape'], value['values']))
        return shown

    def test_expressions(self):
        with open(self.path('x.csv'), 'w', encoding='utf-8') as file:
            file.write('x,class,image/word\n2,1,"Hello, you"\n-0.5,0,bye\n')
        source = (self.path('x.csv'), '--set', 'columns=x: f32', '--set', 'columns=class: i32', '--set',
                  'columns=image/word: bytes', '--set', 'labels=class')
        for expression, expected in (
                ('add(x, 1)', ('f32[]', '3', '0.5')), ('sub( x ,-1.5e0)', ('f32[]', '3.5', '1')),
                ('add(class, 1)', ('i32[]', '2', '1')), ('div(x, 1/4)', ('f32[]', '8', '-2')),
                ('cast(x, dtype="i64")', ('i64[]', '2', '0')), ('cast(x, dtype=u8)', ('u8[]', '2', '0')),
                ('one_hot(class, depth=2, on=5)', ('f32[2]', '0 5', '5 0')),
                ('mul(one_hot(class, depth=2), [3, 4])', ('f32[2]', '0 4', '3 0')),
                ('select(greater(x, 0), class, -7)', ('i32[]', '1', '-7')),
                ('gather([10, 20], class)', ('i64[]', '20', '10')), ('class', ('i32[]', '1', '0')),
                ('bytes_lower(image/word)', ('bytes[]', '"hello, you"', '"bye"')),
                ('bytes_split(image/word, separator=", ", count=2)', ('bytes[2]', '"Hello" "you"', '"bye" ""')),
                ("equal(image/word, 'bye')", ('bool[]', '0', '1')),
                ('logical_or(greater(x, 0), true)', ('bool[]', '1', '1')),
                ('lookup(image/word, ["bye", "Hello, you"])', ('i64[]', '1', '0')),
                ('bytes_join(bytes_tokenize(image/word, lower_case=false, punctuation=drop), separator="\\n\\"")',
                 ('bytes[]', '"Hello\n"you"', '"bye"')),
                ('reshape(x, dims=[batch, 1])', ('f32[1]', '2', '-0.5'))):
            shown = self.shown(*source, '--map', 'y = ' + expression)['y']
            self.assertEqual(shown, [(expected[0], value) for value in expected[1:]], expression)

    def test_maps_follow_each_other(self):
        with open(self.path('x.csv'), 'w', encoding='utf-8') as file:
            file.write('x,class\n2,1\n3,0\n')
        source = (self.path('x.csv'), '--set', 'columns=x: f32', '--set', 'columns=class: i32', '--set', 'labels=class')
        maps = ('--map', 'x = mul(x, 10)', '--map', 'a = add(x, x)', '--map', 'class = add(class, 1)')
        shown = self.shown(*source, *maps, '--select', 'z = a, class', '--select', 'x')
        self.assertEqual(list(shown), ['z', 'x', 'class'])
        self.assertEqual(shown['z'], [('f32[]', '40'), ('f32[]', '60')])
        self.assertEqual(shown['class'], [('i32[]', '2'), ('i32[]', '1')])
        spec = self.answer('inspect', *source, *maps)['spec']['components']
        self.assertEqual([(part['name'], part['role']) for part in spec],
                         [('x', 'feature'), ('class', 'label'), ('a', 'feature')])
        # Statements draw independently of each other; another seed gives other values.
        draws = ('--map', 'a = random_uniform(dims=[batch])', '--map', 'b = random_uniform(dims=[batch])')
        one, other = self.shown(*source, *draws), self.shown(*source, *draws, '--seed', '1')
        self.assertEqual(len({*one['a'], *one['b'], *other['a'], *other['b']}), 8)
        self.assertEqual(one, self.shown(*source, *draws, '--seed', '0'))

    def test_statistics_and_sheet_over_maps(self):
        counts = self.write_photos()
        found = self.answer('stats', self.path('photos'), '--map',
                            'image = convert_image_dtype(crop(decode_image(image), size=[4, 4]))', '--shuffle', '50')
        image, label = found['components']
        self.assertEqual((image['shape'], image['dtype'], found['elements']), ('[4, 4, 3]', 'f32', 23))
        self.assertLessEqual(image['max'], 1)
        self.assertGreater(image['max'], 0.9)
        self.assertEqual(label['counts'], {str(i): count for i, count in enumerate(counts)})
        self.done('inspect', self.path('photos'), '--map',
                  'image = pad_image(crop(decode_image(image), size=[2, 2]), pads=[1, 1, 1, 1], value=9)', '--sheet',
                  self.path('sheet.png'), '--first', '1')
        rows = read_png(self.path('sheet.png'))
        self.assertEqual(tuple(rows[4][12:15]), (9, 9, 9))
        self.assertEqual(rows[4 + 48][3 * (4 + 48) + 2], 0)

    def test_shuffled_shards_hold_all_elements(self):
        with open(self.path('n.csv'), 'w', encoding='utf-8') as file:
            file.write('n\n' + ''.join(f'{i}\n' for i in range(100)))
        numbers = {}
        for seed in ('1', '1', '2'):
            self.done('convert', self.path('n.csv'), self.path('n.tfrecord'), '--set', 'columns=n: i64', '--shuffle', '100',
                      '--seed', seed, '--shards', '2')
            order = []
            for i in range(2):
                self.done('convert', self.path(f'n-0000{i}-of-00002.tfrecord'), self.path('back.csv'))
                with open(self.path('back.csv'), encoding='utf-8') as file:
                    order += [int(line) for line in file.read().split()[1:]]
            self.assertEqual(sorted(order), list(range(100)))
            self.assertNotEqual(order[:50], sorted(order[:50]))
            self.assertEqual(numbers.setdefault(seed, order), order)
        self.assertNotEqual(numbers['1'], numbers['2'])

    def test_element_files_keep_shapes_and_roles(self):
        self.write_photos()
        target = self.path('whole.elements')
        for _ in range(2):
            said = self.done('convert', self.path('photos'), target, '--map', 'image = decode_image(image)', '--first', '5')
            self.assertIn('5 elements', said)
        self.assertEqual(self.shown(target, '--first', '9'),
                         self.shown(self.path('photos'), '--map', 'image = decode_image(image)', '--first', '5'))
        spec = self.answer('inspect', target)['spec']['components']
        self.assertEqual([part['role'] for part in spec], ['feature', 'label'])
        done = tutti('convert', self.path('photos'), self.path('no.tfrecord'), '--map', 'image = decode_image(image)')
        self.assertEqual(done.returncode, 2)
        self.assertIn("'image' has the shape [?, ?, 3]", done.stderr)
        with open(self.path('photos/0/00.png'), 'wb') as file:
            file.write(b'\x89PNG\r\n\x1a\nbroken')
        done = tutti('convert', self.path('photos'), self.path('bad.elements'), *self.resized)
        self.assertEqual(done.returncode, 1)
        self.assertIn('00.png', done.stderr)
        self.assertEqual(sorted(os.listdir(self.folder.name)), ['photos', 'whole.elements'])

    def test_mistakes_in_maps_show_their_place(self):
        with open(self.path('x.csv'), 'w', encoding='utf-8') as file:
            file.write('x,class,word\n2,1,a\n')
        source = ('inspect', self.path('x.csv'), '--set', 'columns=x: f32', '--set', 'columns=class: i32', '--set',
                  'columns=word: bytes')
        for statement, place, says in (
                ('', 0, 'expected the name of a component'), ('x', 1, "expected '=' after 'x'"),
                ('x =', 3, 'got the end'), ('x = add(x 1)', 10, "expected ',' or ')' in the arguments of add, got '1'"),
                ('x = add(x, 1) x', 14, "expected the end, got 'x'"), ('x = $', 4, "got '$'"),
                ('x = add(x, 1', 12, 'got the end'), ('y = one_hot(class, depth=[2', 27, "',' or ']'"),
                ('x = add(x, 1.2.3)', 11, 'expected a number'), ('x = div(x, 1/0)', 13, 'division by 0'),
                ('w = bytes_split(word, separator="a)', 32, 'the text has no closing quote'),
                ('w = bytes_split(word, separator="\\q")', 33, 'expected \\n'),
                ('x = ad(x, 1)', 4, "there is no op 'ad', did you mean 'add'?"),
                ('x = frobnicate(x)', 4, "there is no op 'frobnicate'; known: abs, add,"),
                ('x = variable(x)', 4, "there is no op 'variable'"),
                ('x = add(y, 1)', 8, "there is no component 'y'"), ('x = add(clas, 1)', 8, "did you mean 'class'?"),
                ('x = relu', 4, 'the op needs arguments in parentheses'), ('x = 3', 4, 'a constant alone is not a map'),
                ('x = add(x)', 4, 'add has 2 inputs, got 1: add(a, b)'),
                ('x = add(x, 1, 2)', 4, 'add has 2 inputs, got 3'),
                ('w = lookup(word, ["a"], x)', 4, 'lookup has 1 to 2 inputs, got 3'),
                ('y = one_hot(class, dept=3)', 19, "one_hot has no attribute 'dept', did you mean 'depth'?"),
                ('y = one_hot(class, depth=3, depth=4)', 28, "'depth' is given twice"),
                ('y = one_hot(class)', 4, "one_hot needs the attribute 'depth'"),
                ('y = one_hot(class, depth=1.5)', 25, "'depth' of one_hot is an integer"),
                ('y = one_hot(class, depth=3, dtype=float)', 34, "'dtype' of one_hot is a type"),
                ('y = bytes_length(word, unit=bits)', 28, 'one of bytes, characters'),
                ('y = gelu(x, approximate=1)', 24, 'is true or false'),
                ('x = reduce_sum(x, axes=1)', 23, 'is a list of integers'),
                ('x = reshape(x, dims=[row, 1])', 20, 'word batch'),
                ('y = add(class, 1.5)', 15, "expected a constant of type i32 for 'b' of add"),
                ('y = add(class, 3000000000)', 15, 'expected a constant of type i32'),
                ('y = equal(word, 3)', 16, 'expected a constant of type bytes'),
                ('y = add(x, class)', 4, 'INVALID_ARGUMENT'), ('y = one_hot(class, depth=0)', 4, 'expected at least 1'),
                ('y = ' + 'neg(' * 200 + 'x' + ')' * 200, 4 + 4 * 101, 'nested too deeply')):
            done = tutti(*source, '--map', statement)
            self.assertEqual(done.returncode, 2, statement + done.stderr)
            message, line, mark = done.stderr.rstrip('\n').split('\n')
            self.assertIn(says, message)
            self.assertEqual((line, mark), ('  ' + statement, '  ' + ' ' * place + '^'), message)
        for arguments, says in ((('--select', 'y'), "there is no component 'y'"), (('--select', 'x,,x'), 'takes component names'),
                                (('--shuffle', '0'), 'a number above 0'), (('--seed', 'x'), 'takes a number')):
            done = tutti(*source, *arguments)
            self.assertEqual(done.returncode, 2, arguments)
            self.assertIn(says, done.stderr)
        self.assertIn('write', tutti('convert', self.path('x.csv'), 'x.elements', '--shards', '2').stderr +
                      tutti('convert', self.path('x.csv'), 'x.parquet').stderr)

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

    def test_idx_files_are_known_by_their_names(self):
        numbers = struct.pack('>HBBII', 0, 12, 2, 2, 3) + struct.pack('>6i', 7, 0, -1, 70000, 1, 2)
        for name in ('labels-idx2-int', 'labels.idx2-int', 'labels.idx'):
            with open(self.path(name), 'wb') as file:
                file.write(numbers)
            self.assertEqual(self.answer('inspect', self.path(name))['elements'][1]['label']['values'], '70000 1 2')
        with open(self.path('labels-idx2-int.gz'), 'wb') as file:
            file.write(gzip.compress(numbers))
        self.assertEqual(self.answer('inspect', self.path('labels-idx2-int.gz'))['format'], 'idx')
        with open(self.path('print'), 'w') as file:
            file.write('a line\n')
        self.assertEqual(self.answer('inspect', self.path('print'))['format'], 'text_lines')

    def test_parts_of_an_archive_are_found(self):
        members = (('._a.cls', b'?'), ('a.CLS', b'3'), ('README', b'?'), ('a.txt', b'hello'), ('b.cls', b'4'),
                   ('b.txt', b'there'))
        for archive_name, mode in (('train.tar', 'w'), ('train.tar.gz', 'w:gz'), ('train.tgz', 'w:gz')):
            for form in (tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT):
                folder = 'folder.d/' + ('n' * 120 + '/') * (form != tarfile.USTAR_FORMAT)
                with tarfile.open(self.path(archive_name), mode, format=form) as archive:
                    for name, data in members:
                        member = tarfile.TarInfo(folder + name)
                        member.size = len(data)
                        archive.addfile(member, io.BytesIO(data))
                elements = self.answer('inspect', self.path(archive_name))['elements']
                self.assertEqual([[part['values'] for part in element.values()] for element in elements],
                                 [['"3"', '"hello"'], ['"4"', '"there"']])

    def test_pictures_left_out_are_told(self):
        os.makedirs(self.path('pictures/cat'))
        for name in ('a.jpg', 'b.webp'):
            with open(self.path('pictures/cat/' + name), 'wb') as file:
                file.write(b'x')
        done = tutti('inspect', self.path('pictures'), '--json')
        self.assertEqual(done.returncode, 0)
        self.assertEqual(len(json.loads(done.stdout)['elements']), 1)
        self.assertEqual(done.stderr.count('1 webp ('), 1)

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

    def test_pipes_are_not_waited_for(self):
        for name in ('pipe.csv', 'pipe.tar', 'pipe.npz', 'pipe.npy', 'pipe.tfrecord', 'pipe-labels-idx1-ubyte', 'pipe.txt'):
            os.mkfifo(self.path(name))
            done = tutti('inspect', self.path(name))
            self.assertEqual(done.returncode, 1)
            self.assertIn('expected a regular file', done.stderr)

    def test_a_conversion_that_fails_leaves_no_file(self):
        with open(self.path('bad.csv'), 'w', encoding='utf-8') as file:
            file.write('x\n1\n2\nthree\n')
        for target in ('bad.tfrecord', 'out.csv'):
            done = tutti('convert', self.path('bad.csv'), self.path(target), '--set', 'columns=x: i64')
            self.assertEqual(done.returncode, 1)
            self.assertIn("bad.csv':4: column 'x'", done.stderr)
        self.assertEqual(os.listdir(self.folder.name), ['bad.csv'])

    def test_wrong_arguments(self):
        for arguments, says in ((('inspect',), 'no source files'), (('look', 'x'), 'inspect, stats, convert or'),
                                (('vocabulary', 'x.csv'), 'vocabulary needs a source and a target'),
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
