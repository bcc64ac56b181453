#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes pipelines.txt, images.txt and image_ops.txt, scenarios of input pipelines, without the library: their files and
results are made here from the specifications alone (RFC 4180, TFRecord, protocol buffers, PNG, JPEG,
Philox4x32-10) and what ops.h says of each transform and op.

usage: pipeline_scenarios.py [--check]      --check compares with the files beside this program instead
"""
import csv
import io
import os
import struct
import sys
import zlib

import data_op_model

HERE = os.path.dirname(os.path.abspath(__file__))
MASK = 0xFFFFFFFF


# --- how elements are printed -----------------------------------------------------------------------------------------


def shown(value):
    if isinstance(value, float):
        return f'{value:.5f}'
    return f'"{value}"' if isinstance(value, str) else str(value)


def shape_of(value):
    return [len(value)] + (shape_of(value[0]) if value else []) if isinstance(value, list) else []


def flat(value):
    return [one for part in value for one in flat(part)] if isinstance(value, list) else [value]


def component(name, value):
    shape = f' [{" ".join(map(str, shape_of(value)))}]' if isinstance(value, list) else ''
    return name + shape + ''.join(' ' + shown(one) for one in flat(value))


def elements(rows):
    """The result of "read": a line for each element, which is a list of pairs of name and value."""
    return ''.join('= ' + ' | '.join(component(name, value) for name, value in row) + '\n' for row in rows)


def column(name, values):
    return elements([[(name, value)] for value in values])


def file(name, contents):
    return f'file {name} {contents.hex()}\n'


# --- random numbers: Salmon et al., "Parallel random numbers: as easy as 1, 2, 3" ---------------------------------------


def philox(key, high, low):
    counter = [low & MASK, low >> 32, high & MASK, high >> 32]
    keys = [key & MASK, key >> 32]
    for _ in range(10):
        first, second = 0xD2511F53 * counter[0], 0xCD9E8D57 * counter[2]
        counter = [second >> 32 ^ counter[1] ^ keys[0], second & MASK, first >> 32 ^ counter[3] ^ keys[1], first & MASK]
        keys = [(keys[0] + 0x9E3779B9) & MASK, (keys[1] + 0xBB67AE85) & MASK]
    return counter


def key_of(seed, stream, counter):
    words = philox(seed, stream, counter)
    return words[0] | words[1] << 32


def sample(datasets, weights, seed):
    """Each draw is a function of seed, epoch and the number of the element."""
    datasets, key, drawn = [list(one) for one in datasets], key_of(seed, 1, 0), []
    ended = [False] * len(datasets)
    while not all(ended):
        words = philox(key, len(drawn), 0)
        place = ((words[1] << 32 | words[0]) >> 11) / 2 ** 53 * sum(w for w, end in zip(weights, ended) if not end)
        pick = None
        for i in range(len(datasets)):
            if not ended[i]:
                pick, place = i, place - weights[i]
                if place < 0:
                    break
        if datasets[pick]:
            drawn.append(datasets[pick].pop(0))
        else:
            ended[pick] = True
    return drawn


def is_flipped(seed, key, element):
    """A fair coin for an image: the first word of the stream of (seed, key, epoch 0, element)."""
    words = philox(key_of(seed, key, 0), element, 0)
    word = philox(words[0] | words[1] << 32, 0, 0)[0]
    return (word >> 8) / 2 ** 24 < 0.5


# --- files ------------------------------------------------------------------------------------------------------------


def crc32c(data):
    crc = MASK
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ MASK


def masked(data):
    crc = crc32c(data)
    return struct.pack('<I', ((crc >> 15 | crc << 17) + 0xA282EAD8) & MASK)


def tfrecord(records):
    heads = [struct.pack('<Q', len(record)) for record in records]
    return b''.join(head + masked(head) + record + masked(record) for head, record in zip(heads, records))


def varint(value):
    out = b''
    while value > 0x7F:
        out, value = out + bytes([value & 0x7F | 0x80]), value >> 7
    return out + bytes([value])


def field(number, contents):
    return varint(number << 3 | 2) + varint(len(contents)) + contents


def feature(values):
    """tf.train.Feature: bytes_list = 1, float_list = 2, int64_list = 3, each with repeated value = 1."""
    if values and isinstance(values[0], (str, bytes)):
        return field(1, b''.join(field(1, v.encode() if isinstance(v, str) else v) for v in values))
    if values and isinstance(values[0], float):
        return field(2, field(1, struct.pack(f'<{len(values)}f', *values)))
    return field(3, field(1, b''.join(varint(value & (2 ** 64 - 1)) for value in values)))


def features(values):
    """tf.train.Features: a map, whose entries have key = 1 and value = 2."""
    return b''.join(field(1, field(1, name.encode()) + field(2, feature(value))) for name, value in values.items())


def example(values):
    return field(1, features(values))


def sequence_example(context, lists):
    entries = b''.join(field(1, field(1, name.encode()) + field(2, b''.join(field(1, feature(step)) for step in steps)))
                       for name, steps in lists.items())
    return field(1, features(context)) + field(2, entries)


def png(rows):
    """8-bit RGB; rows of pixels of three numbers."""
    def chunk(kind, data):
        return struct.pack('>I', len(data)) + kind + data + struct.pack('>I', zlib.crc32(kind + data))
    pixels = b''.join(b'\0' + bytes(flat(row)) for row in rows)
    head = struct.pack('>IIBBBBB', len(rows[0]), len(rows), 8, 2, 0, 0, 0)
    return b'\x89PNG\r\n\x1a\n' + chunk(b'IHDR', head) + chunk(b'IDAT', zlib.compress(pixels)) + chunk(b'IEND', b'')


# --- scenarios --------------------------------------------------------------------------------------------------------


def turns(datasets, cycle, block):
    """A slot gives a block in its turn; one that ends ends its turn, and in the next the next dataset takes its place."""
    waiting, slots, given, at = [list(one) for one in datasets], [None] * cycle, [], 0
    while waiting or any(slots):
        if slots[at] is None and waiting:
            slots[at] = waiting.pop(0)
        for _ in range(block if slots[at] is not None else 0):
            if not slots[at]:
                slots[at] = None
                break
            given.append(slots[at].pop(0))
        at = (at + 1) % cycle
    return given


def buckets(texts, boundaries, size):
    """Full buckets give their batch at once, the others at the end, shortest first."""
    held, batches = [[] for _ in range(len(boundaries) + 1)], []
    for text in texts:
        bucket = held[sum(len(text) > boundary for boundary in boundaries)]
        bucket.append(text)
        if len(bucket) == size:
            batches.append(bucket[:])
            bucket.clear()
    return batches + [bucket for bucket in held if bucket]


def text_lines(texts):
    return ''.join(text + '\n' for text in texts).encode()


def numbers():
    sums = [sum(range(i + 1)) for i in range(6)]
    yield 'read turns\n' + column('value', turns([range(3), range(10, 15), range(20, 22)], 2, 2))
    yield 'read sums\n' + elements([[('value', total)] for total in sums])
    yield 'read sums_graph\n' + elements([[('value', total)] for total in sums])
    yield 'read below\n' + column('value', [i for i in range(10) if i < 4])
    yield 'read odd\n' + column('value', [i for i in range(8) if i % 2 == 1 and i < 6])
    yield 'read pairs\n' + column('value', [10 * i + j for i in range(3) for j in range(2)])
    yield 'read passes\n' + column('value', [100 * epoch + i for epoch in range(2) for i in range(3)])
    for seed in (1, 2):
        yield f'read sample {seed}\n' + column('value', sample([range(5), range(100, 108)], [1.0, 3.0], seed))


def texts():
    words = ['a', 'bbb', 'cc', 'ddddd', 'größe', 'e', 'ff', 'ggg', 'iiiiii', 'h']
    yield file('lines.txt', text_lines(words))
    sized = [(len(word.encode()), word) for word in words]
    batches = buckets([word.encode() for _, word in sized], [2, 4], 2)
    yield 'read buckets\n' + column('text', [[word.decode() for word in batch] for batch in batches])
    yield 'read cached\n' + column('text', words)
    yield 'read cached\n' + column('text', words)
    yield 'read snapshot\n' + column('text', words)
    yield 'read snapshot_files\n' + column('text', words)
    # Another file: what was kept of the first one must not be used.
    yield file('lines.txt', text_lines(['other', 'lines']))
    yield 'read cached\n' + column('text', ['other', 'lines'])
    yield 'read snapshot\n' + column('text', ['other', 'lines'])


def tables():
    text = 'name,weight,age\r\n"Ada, ""the first""",1.5,36\r\ntwo words,NA,\r\n,-2e-1,-7\r\n'
    yield file('people.csv', text.encode())
    rows = list(csv.DictReader(io.StringIO(text, newline='')))
    yield 'read csv\n' + elements([[('name', row['name']), ('age', int(row['age'] or '-1')),
                                    ('weight', float(row['weight'] if row['weight'] != 'NA' else '0.25'))] for row in rows])
    yield file('people.csv', b'name,weight,age\r\nBob,1,2\r\nEve,heavy,3\r\nZoe,4,5\r\n')


def records():
    values = [{'id': [7], 'box': [0.5, -1.25], 'words': ['one', 'größe']}, {'id': [-2 ** 62]},
              {'id': [1], 'box': [3.0, 4.0], 'words': ['', 'x', 'yz']}]
    yield file('examples.tfrecord', tfrecord([example(value) for value in values]))
    yield 'read examples\n' + elements([[('id', value['id'][0]), ('box', value.get('box', [0.5, 0.5])),
                                         ('words', value.get('words', []))] for value in values])
    walks = [({'id': [1]}, {'frames': [[1.0, 2.0], [3.0, 4.5]], 'tags': [['a'], ['b', 'c']]}),
             ({'id': [2]}, {'frames': [[-1.0, 0.0]], 'tags': [['größe']]})]
    yield file('sequences.tfrecord', tfrecord([sequence_example(*walk) for walk in walks]))
    rows = []
    for context, lists in walks:
        longest = max(len(step) for step in lists['tags'])
        filled = [step + [''] * (longest - len(step)) for step in lists['tags']]
        rows.append([('id', context['id'][0]), ('frames', lists['frames']), ('tags', filled),
                     ('tags_lengths', [len(step) for step in lists['tags']])])
    yield 'read sequences\n' + elements(rows)


def shrunk(pixels):
    """The mean of each square of four pixels, halves up."""
    return [[[(sum(pixels[2 * y + j][2 * x + i][c] for j in range(2) for i in range(2)) + 2) // 4 for c in range(3)]
             for x in range(len(pixels[0]) // 2)] for y in range(len(pixels) // 2)]


def images():
    pictures = [[[[(37 * n + 11 * y * y + 5 * x * (x + c) + 50 * c) % 256 for c in range(3)] for x in range(6)] for y in range(4)]
                for n in range(4)]
    yield file('images.tfrecord', tfrecord([example({'image': [png(picture)], 'id': [n]}) for n, picture in enumerate(pictures)]))
    for seed in (1, 6):
        rows = []
        for n, picture in enumerate(pictures):
            small = shrunk(picture)
            rows.append([('id', n), ('image', [row[::-1] for row in small] if is_flipped(seed, 7, n) else small)])
        yield f'read images {seed}\n' + elements(rows)


def text_ops():
    lines = ['Größe XL 007', 'Alpha  BETA Gamma delta 042', 'one 2 -12']
    yield file('lines.txt', text_lines(lines))
    yield 'read text_ops\n' + elements([data_op_model.text_ops(line) for line in lines])


def image_ops():
    """The levels of the JPEG files begin with 40."""
    pictures = [[[[(97 * n + 83 * y + 59 * x * (x + c) + 31 * c) % 256 for c in range(3)] for x in range(3)] for y in range(2)]
                for n in range(2)]
    levels = [[40, 200], [40, 3]]
    yield file('images.tfrecord', tfrecord([
        example({'image': [png(picture)], 'photo': [data_op_model.jpeg(photo)], 'id': [n]})
        for n, (picture, photo) in enumerate(zip(pictures, levels))]))
    yield 'read image_ops\n' + elements([data_op_model.image_ops(*one) for one in zip(pictures, levels)])
    yield 'read image_mixes\n' + elements([data_op_model.image_mixes(2)])


HEAD = """# Made by pipeline_scenarios.py, which knows these results from specifications; scenarios.txt says what the lines mean.
"""


def scenario(name, *parts):
    return f'\nscenario {name}\n' + ''.join(text for part in parts for text in part)


FILES = {'pipelines.txt': HEAD + scenario('numbers', numbers()) + scenario('texts', texts()) +
                          scenario('tables', tables()) + scenario('text_ops', text_ops()) + scenario('records', records()),
         'images.txt': HEAD + scenario('images', images()),
         'image_ops.txt': HEAD + scenario('image_ops', image_ops())}


def main(arguments):
    stale = []
    for name, text in FILES.items():
        path = os.path.join(HERE, name)
        if arguments != ['--check']:
            with open(path, 'w', encoding='utf-8') as target:
                target.write(text)
            continue
        with open(path, encoding='utf-8') as found:
            if found.read() != text:
                stale.append(name)
    for name in stale:
        print(f'tests/bindings/{name} is not what pipeline_scenarios.py writes')
    return 1 if stale else 0


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
