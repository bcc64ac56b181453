#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""make_element_files.py FOLDER: element files written from the description in lib/data/keep/element_file.h alone.

rows.elements has 5 elements of static shape in blocks of 3, texts.elements 3 of other shapes in two blocks.
"""
import json
import os
import struct
import sys


def crc32c(data):
    """CRC-32C (Castagnoli), bit by bit."""
    crc = 0xffffffff
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = (crc >> 1) ^ (0x82f63b78 if crc & 1 else 0)
    return crc ^ 0xffffffff


def padded(data, multiple):
    return data + bytes(-len(data) % multiple)


def write(path, components, rows_per_block, blocks):
    """`blocks` are (elements, bytes)."""
    text = json.dumps({'spec': {'components': components, 'batch_size': 0, 'exact_batches': False},
                       'fingerprint': 'by hand', 'rows_per_block': rows_per_block}).encode()
    header = padded(b'TUTTIELM' + struct.pack('<II', 1, len(text)) + text, 64)
    body, index, first = header, b'', 0
    for count, block in blocks:
        index += struct.pack('<QQQII', len(body), len(block), first, count, crc32c(block))
        body, first = body + block, first + count
    trailer = struct.pack('<QQQII24x', len(body), len(blocks), first, crc32c(header), crc32c(index))
    with open(path, 'wb') as file:
        file.write(body + index + trailer + struct.pack('<I', crc32c(trailer)) + b'TELM')


def component(name, dtype, dims, role=0):
    return {'name': name, 'role': role, 'dtype': dtype, 'dims': dims}


def rows_block(rows):
    """x is the row and the row + 1/2, y is 10 times the row."""
    parts = [b''.join(struct.pack('<q', row) for row in rows), b''.join(struct.pack('<ff', row, row + 0.5) for row in rows),
             b''.join(struct.pack('<i', 10 * row) for row in rows)]
    return len(rows), b''.join(padded(part, 64) for part in parts)


def texts_block(first, elements):
    offsets, values = b'', b''
    for texts in elements:
        values = padded(values, 16)
        offsets += struct.pack('<Q', len(values))
        start = 8 * (len(texts) + 1)
        places = [start + sum(map(len, texts[:i])) for i in range(len(texts) + 1)]
        data = struct.pack(f'<{len(places)}q', *places) + b''.join(texts)
        values = padded(padded(values + struct.pack('<qQ', len(texts), len(data)), 16) + data, 8)
    lineages = b''.join(struct.pack('<q', first + i) for i in range(len(elements)))
    return len(elements), padded(lineages, 64) + padded(offsets, 64) + padded(values, 64)


def main(folder):
    write(os.path.join(folder, 'rows.elements'), [component('x', 'f32', [2]), component('y', 'i32', [], 1)], 3,
          [rows_block([0, 1, 2]), rows_block([3, 4])])
    write(os.path.join(folder, 'texts.elements'), [component('text', 'bytes', ['unknown'])], 0,
          [texts_block(0, [[b'one', b''], []]), texts_block(2, [[b'three words here']])])


if __name__ == '__main__':
    main(sys.argv[1])
