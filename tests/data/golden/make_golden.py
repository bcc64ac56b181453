#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the golden files beside it, once, with TensorFlow, NumPy and Python: what tests of formats are compared with.

Made with TensorFlow 2.21.0 and NumPy 2.x; needs `pip install tensorflow-cpu`. tests/data/format/tfrecord_test.cc and its
neighbours know the contents.
"""
import csv
import gzip
import io
import json
import os
import random
import tarfile

import numpy as np
import tensorflow as tf

HERE = os.path.dirname(os.path.abspath(__file__))


def path(name):
    return os.path.join(HERE, name)


# tfrecord_test.cc: golden_records().
RECORDS = [b'', b'a', bytes(range(256)), b'x' * 1000, b'\x1f\x8b\x08', b''.join(b'record %d\n' % i for i in range(5000))]


def write_records():
    for name, compression in (('records.tfrecord', ''), ('records.tfrecord.gz', 'GZIP'), ('records.tfrecord.zlib', 'ZLIB')):
        with tf.io.TFRecordWriter(path(name), compression) as writer:
            for record in RECORDS:
                writer.write(record)


def floats(*values):
    return tf.train.Feature(float_list=tf.train.FloatList(value=values))


def integers(*values):
    return tf.train.Feature(int64_list=tf.train.Int64List(value=values))


def texts(*values):
    return tf.train.Feature(bytes_list=tf.train.BytesList(value=values))


# example_test.cc: the same values.
EXAMPLES = [
    {'label': integers(3), 'box': floats(0.5, -1.5, 2.0, 1e30), 'name': texts(b'first'), 'words': texts(b'a', b'', b'ccc'),
     'ids': integers(1, -1, 2**63 - 1, -2**63), 'points': floats(1, 2, 3, 4, 5, 6)},
    {'label': integers(-4), 'box': floats(1, 2, 3, 4), 'name': texts(bytes(range(256))), 'words': texts(), 'ids': integers()},
    {'label': integers(0), 'box': floats(float('inf'), float('-inf'), 0.0, -0.0), 'name': texts(b''), 'points': floats(7, 8, 9)},
]


def write_examples():
    with tf.io.TFRecordWriter(path('examples.tfrecord')) as writer:
        for features in EXAMPLES:
            example = tf.train.Example(features=tf.train.Features(feature=features))
            writer.write(example.SerializeToString(deterministic=True))


def steps(*features):
    return tf.train.FeatureList(feature=features)


# sequence_example_test.cc: three, of which the second has lists without steps and the third lacks some.
SEQUENCES = [
    ({'id': integers(7), 'speaker': texts(b'anna')},
     {'frames': steps(floats(0.5, -1.5), floats(2, 1e30), floats(0, -0.0)), 'label': steps(integers(1), integers(-2), integers(2**63 - 1)),
      'word': steps(texts(b'a'), texts(b''), texts(bytes(range(256)))), 'letters': steps(texts(b'x', b'yy'), texts(), texts(b'', b'z', b'last')),
      'tokens': steps(integers(5), integers(), integers(-1, -2, 2**40)), 'points': steps(floats(1, 2, 3, 4), floats(), floats(5, 6))}),
    ({'id': integers(8)},
     {'frames': steps(), 'label': steps(), 'word': steps(), 'letters': steps(), 'tokens': steps(), 'points': steps()}),
    ({'id': integers(9), 'speaker': texts(b'')},
     {'frames': steps(*[floats(i, i / 4) for i in range(300)]), 'label': steps(integers(4)), 'word': steps(texts(b'one'))}),
]


def write_sequence_examples():
    kinds = {'frames': tf.io.FixedLenSequenceFeature([2], tf.float32), 'label': tf.io.FixedLenSequenceFeature([], tf.int64),
             'word': tf.io.FixedLenSequenceFeature([], tf.string), 'letters': tf.io.RaggedFeature(tf.string),
             'tokens': tf.io.RaggedFeature(tf.int64), 'points': tf.io.RaggedFeature(tf.float32)}
    context = {'id': tf.io.FixedLenFeature([], tf.int64), 'speaker': tf.io.FixedLenFeature([], tf.string, b'nobody')}
    read = []
    with tf.io.TFRecordWriter(path('sequence_examples.tfrecord')) as writer:
        for features, lists in SEQUENCES:
            example = tf.train.SequenceExample(context=tf.train.Features(feature=features),
                                               feature_lists=tf.train.FeatureLists(feature_list=lists))
            record = example.SerializeToString(deterministic=True)
            writer.write(record)
            read.append(described(*tf.io.parse_single_sequence_example(record, context, kinds)))
    with open(path('sequence_examples.json'), 'w', encoding='utf-8') as file:
        json.dump(read, file)
        file.write('\n')


# What TensorFlow read: ragged ones filled up, with their lengths. Texts are written in hexadecimal digits, numbers as texts.
def described(context, lists):
    def values(array):
        return [value.hex() if isinstance(value, bytes) else repr(value) for value in np.asarray(array).reshape(-1).tolist()]

    shown = {name: {'shape': [], 'values': values(tensor.numpy())} for name, tensor in context.items()}
    for name, tensor in lists.items():
        if isinstance(tensor, tf.RaggedTensor):
            shown[name + '_lengths'] = {'shape': [int(tensor.nrows())], 'values': values(tensor.row_lengths().numpy())}
            tensor = tensor.to_tensor()
        shown[name] = {'shape': tensor.shape.as_list(), 'values': values(tensor.numpy())}
    return shown


# npy_test.cc: the same values.
def write_arrays():
    counted = np.arange(12)
    for name, array in {
            'f32': counted.astype('<f4').reshape(4, 3) / 2, 'big_endian': counted.astype('>i4').reshape(4, 3), 'bool': counted % 3 == 0,
            'fortran': np.asfortranarray(counted.astype('<i8').reshape(2, 3, 2)), 'text': np.array([b'one', b'', b'three']),
            'unicode': np.array(['one', 'zwei', 'drei\u00e4\U0001f600']), 'scalar': np.float64(2.5), 'f16': counted.astype('<f2'),
            'empty': np.zeros((0, 3), '<u2')
    }.items():
        np.save(path(f'{name}.npy'), array)
    with open(path('version2.npy'), 'wb') as file:
        np.lib.format.write_array(file, counted.astype('<u8'), version=(2, 0))
    with open(path('version3.npy'), 'wb') as file:
        np.lib.format.write_array(file, counted.astype('<i2'), version=(3, 0))
    both = {'x': counted.astype('<f4').reshape(4, 3), 'y': np.array([3, 1, 4, 1], '<i4')}
    np.savez(path('both.npz'), **both)
    np.savez_compressed(path('both_compressed.npz'), **both)


# csv_test.cc: what Python's csv module reads in what it wrote.
def write_csv():
    draw = random.Random(7)
    rows = [[''.join(draw.choice(['a', 'b', ' ', ',', '"', '\n', '\r\n', "'", '\u00e4', '7']) for _ in range(draw.randrange(6)))
             for _ in range(4)] for _ in range(400)]
    with open(path('random.csv'), 'w', encoding='utf-8', newline='') as file:
        for number, row in enumerate([['w', 'x', 'y', 'z']] + rows):
            style = {'quoting': csv.QUOTE_ALL} if number % 3 == 0 else {}
            csv.writer(file, lineterminator='\n' if number % 2 else '\r\n', **style).writerow(row)
    with open(path('random.csv'), encoding='utf-8', newline='') as file:
        read = list(csv.reader(file))[1:]
    assert read == rows
    with open(path('random.csv.json'), 'w', encoding='utf-8') as file:
        json.dump(read, file, indent=None)
        file.write('\n')


# tar_test.cc: two samples, one with names that need more than a header; directories and links between them.
def write_archives():
    long_key = 'k' * 150 + '/' + 'n' * 120 + '\u00e4'
    members = [('train.d/0001.jpg', b'i' * 700), ('train.d/0001.cls', b'7'), ('train.d/0002.jpg', b''), ('train.d/0002.cls', b' -3\n'),
               ('train.d/0002.seg.png', b's' * 512), (long_key + '.jpg', b'long'), (long_key + '.cls', b'0')]
    for name, form in (('gnu.tar', tarfile.GNU_FORMAT), ('pax.tar', tarfile.PAX_FORMAT), ('ustar.tar', tarfile.USTAR_FORMAT)):
        with tarfile.open(path(name), 'w', format=form) as archive:
            for number, (member, contents) in enumerate(members[:5] if form == tarfile.USTAR_FORMAT else members):
                information = tarfile.TarInfo(member)
                information.size = len(contents)
                information.mtime = 1700000000.5 if form == tarfile.PAX_FORMAT else 1700000000
                archive.addfile(information, io.BytesIO(contents))
                if number % 2:
                    directory = tarfile.TarInfo('train.d')
                    directory.type = tarfile.DIRTYPE
                    archive.addfile(directory)
    with open(path('gnu.tar'), 'rb') as plain, open(path('gnu.tar.gz'), 'wb') as packed:
        packed.write(gzip.compress(plain.read(), mtime=0))


if __name__ == '__main__':
    write_archives()
    write_csv()
    write_records()
    write_examples()
    write_sequence_examples()
    write_arrays()
