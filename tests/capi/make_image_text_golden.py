#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""make_image_text_golden.py: prints image_text_golden.h, what Pillow, colorsys and plain Python make of a small image and of
some texts, for image_text_ops_test.c. The file is kept in the tree, after clang-format.

Needs Pillow and NumPy; building and testing do not.
"""
import colorsys
import io

import numpy as np
from PIL import Image, ImageOps

HEIGHT, WIDTH = 5, 7
TEXTS = ['Größe 7', 'ABC,xyz', '', '日本語 Text', 'a\0b']
MASK = 2 ** 64 - 1


def image():
    """Smooth, so that JPEG files keep its colours, with a corner that is not."""
    rows = [[(30 * x + 10 * y, 250 - 20 * x - 9 * y, 40 * y + 5 * x) for x in range(WIDTH)] for y in range(HEIGHT)]
    rows[0][0], rows[1][2] = (255, 0, 0), (17, 200, 99)
    return np.array(rows, np.uint8)


def array(name, kind, values):
    values = np.asarray(values).reshape(-1)
    form = '{:.8f}f' if kind == 'float' else '{}'
    numbers = ', '.join(form.format(value) for value in values.tolist())
    print(f'static const {kind} {name}[] = {{{numbers}}};')


def pixels(name, values):
    array(name, 'uint8_t', values)


def encoded(pixels_, form, **settings):
    file = io.BytesIO()
    Image.fromarray(pixels_).save(file, form, **settings)
    return file.getvalue()


def files(x):
    large = np.asarray(Image.fromarray(x).resize((8, 6), Image.Resampling.BICUBIC))
    for name, contents in (('jpeg_file', encoded(large, 'JPEG', quality=90, optimize=True)), ('png_file', encoded(x, 'PNG'))):
        array(name, 'uint8_t', list(contents))
    decoded = Image.open(io.BytesIO(encoded(large, 'JPEG', quality=90, optimize=True)))
    pixels('jpeg_pixels', np.asarray(decoded))
    file = Image.open(io.BytesIO(encoded(large, 'JPEG', quality=90, optimize=True)))
    file.draft('L', file.size)
    pixels('jpeg_gray', np.asarray(file))


def by_pixel(x, change):
    """In floats from 0 to 1, limited to that."""
    result = [[change(*(int(c) / 255 for c in pixel)) for pixel in row] for row in x]
    return np.clip(np.array(result), 0, 1)


def saturated(factor):
    def change(*rgb):
        h, s, v = colorsys.rgb_to_hsv(*rgb)
        return colorsys.hsv_to_rgb(h, min(s * factor, 1), v)
    return change


def turned(delta):
    def change(*rgb):
        h, s, v = colorsys.rgb_to_hsv(*rgb)
        return colorsys.hsv_to_rgb((h + delta) % 1, s, v)
    return change


def images():
    x = image()
    pixels('image', x)
    files(x)
    picture = Image.fromarray(x)
    pixels('cropped', picture.crop((2, 1, 5, 4)))
    pixels('padded', ImageOps.expand(picture, (1, 1, 2, 0), (9, 9, 9)))
    pixels('padded_edge', np.pad(x, ((1, 1), (0, 2), (0, 0)), 'edge'))
    pixels('padded_reflect', np.pad(x, ((2, 0), (0, 1), (0, 0)), 'reflect'))
    pixels('turned_once', picture.transpose(Image.Transpose.ROTATE_90))
    pixels('turned_twice', picture.transpose(Image.Transpose.ROTATE_180))
    floats = x / 255
    array('as_floats', 'float', floats)
    array('brighter', 'float', floats + 0.25)
    mean = floats.mean((0, 1))
    array('less_contrast', 'float', (floats - mean) * 0.5 + mean)
    array('less_saturated', 'float', by_pixel(x, saturated(0.5)))
    array('hue_turned', 'float', by_pixel(x, turned(0.3)))


def hash_bucket(text, buckets, salt):
    value = 14695981039346656037
    for byte in salt.to_bytes(8, 'little', signed=True) + text:
        value = (value ^ byte) * 1099511628211 & MASK
    for factor in (0xff51afd7ed558ccd, 0xc4ceb9fe1a85ec53):
        value = (value ^ value >> 33) * factor & MASK
    return (value ^ value >> 33) * buckets >> 64


def string(text):
    """Three digits to a byte: what follows is no part of it."""
    return '"' + ''.join(f'\\{byte:03o}' for byte in text) + '"'


def strings(name, values):
    print(f'static const struct golden_text {name}[] = {{'
          + ', '.join(f'{{{len(value)}, {string(value)}}}' for value in values) + '};')


def texts():
    encoded_texts = [text.encode() for text in TEXTS]
    strings('texts', encoded_texts)
    array('text_bytes', 'int64_t', [len(text) for text in encoded_texts])
    array('text_characters', 'int64_t', [len(text) for text in TEXTS])
    strings('from_second_byte', [text[1:4] for text in encoded_texts])
    strings('last_characters', [text[-3:].encode() for text in TEXTS])
    strings('in_small_letters', [bytes(b + 32 if 65 <= b <= 90 else b for b in text) for text in encoded_texts])
    strings('all_joined', [b' | '.join(encoded_texts)])
    array('hash_buckets', 'int64_t', [hash_bucket(text, 1000, 0) for text in encoded_texts])
    array('salted_hash_buckets', 'int64_t', [hash_bucket(text, 7, -5) for text in encoded_texts])
    numbers = [1, -2, 300, -32768]
    strings('little_i16', [b''.join(n.to_bytes(2, 'little', signed=True) for n in numbers)])
    strings('big_i16', [b''.join(n.to_bytes(2, 'big', signed=True) for n in numbers)])
    array('i16_values', 'int16_t', numbers)


def main():
    print('/* SPDX-License-Identifier: Apache-2.0\n * Made by make_image_text_golden.py. */')
    print('#ifndef TUTTI_TESTS_CAPI_IMAGE_TEXT_GOLDEN_H_\n#define TUTTI_TESTS_CAPI_IMAGE_TEXT_GOLDEN_H_\n')
    print('#include <stdint.h>\n')
    print(f'enum {{ IMAGE_HEIGHT = {HEIGHT}, IMAGE_WIDTH = {WIDTH}, JPEG_HEIGHT = 6, JPEG_WIDTH = 8, TEXTS = {len(TEXTS)} }};\n')
    print('struct golden_text {\n  int64_t size;\n  const char *bytes;\n};\n')
    images()
    texts()
    print('\n#endif')


main()
