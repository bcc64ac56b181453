# SPDX-License-Identifier: Apache-2.0
"""Ops of texts and images for pipeline_scenarios.py: what the pipelines "text_ops", "image_ops" and "image_mixes" must give,
from what ops.h says of each op and without the library. Pixels are lists of rows of lists of three numbers.
"""
import colorsys
import math
import struct

MASK = (1 << 64) - 1


# --- texts ------------------------------------------------------------------------------------------------------------


def hash_bucket(text, buckets, salt):
    """FNV-1a of 64 bits, and the last step of MurmurHash3."""
    state = 0xcbf29ce484222325
    for byte in struct.pack('<q', salt) + text:
        state = (state ^ byte) * 0x100000001b3 & MASK
    for factor in (0xff51afd7ed558ccd, 0xc4ceb9fe1a85ec53):
        state = (state ^ state >> 33) * factor & MASK
    return (state ^ state >> 33) * buckets >> 64


def lowered(text):
    return ''.join(letter.lower() if letter.isascii() else letter for letter in text)


def text_ops(text):
    """Of a text of eight bytes or more that ends with three digits."""
    words = ([word for word in text.split(' ') if word] + [''] * 3)[:3]
    results = {
        'bytes_length': len(text),
        'bytes_substring': text[1:4],
        'bytes_split': words,
        'bytes_lower': lowered(text),
        'bytes_join': '+'.join(words),
        'bytes_to_number': int(text[-3:]),
        'bytes_to_values': [struct.unpack('>q', text.encode()[:8])[0]],
        'bytes_hash_bucket': hash_bucket(text.encode(), 1000, 3),
    }
    return [('text', text), *sorted(results.items())]


# --- a JPEG file (ITU T.81) -------------------------------------------------------------------------------------------


def segment(marker, contents):
    return bytes([0xFF, marker]) + struct.pack('>H', len(contents) + 2) + contents


def huffman_table(kind, symbols):
    """Symbols whose codes all have four bits, in the order of the codes."""
    return segment(0xC4, bytes([kind]) + bytes([0, 0, 0, len(symbols)] + [0] * 12 + symbols))


def jpeg(levels):
    """A gray file, 8 pixels high, of squares of 8 x 8 pixels of one level each."""
    bits, before = '', 0
    for level in levels:
        difference, before = 8 * (level - 128) - before, 8 * (level - 128)
        size = abs(difference).bit_length()
        bits += f'{size:04b}'
        if size > 0:
            bits += f'{difference if difference > 0 else difference + (1 << size) - 1:0{size}b}'
        bits += '0000'  # no more coefficients
    bits += '1' * (-len(bits) % 8)
    data = bytes(int(bits[i:i + 8], 2) for i in range(0, len(bits), 8)).replace(b'\xff', b'\xff\0')
    frame = struct.pack('>BHHBBBB', 8, 8, 8 * len(levels), 1, 1, 0x11, 0)
    return (b'\xff\xd8' + segment(0xDB, bytes([0] + [1] * 64)) + segment(0xC0, frame) +
            huffman_table(0x00, list(range(12))) + huffman_table(0x10, [0]) + segment(0xDA, bytes([1, 1, 0, 0, 63, 0])) +
            data + b'\xff\xd9')


# --- images -----------------------------------------------------------------------------------------------------------


def each_pixel(function, pixels):
    return [[function(pixel) for pixel in row] for row in pixels]


def in_u8(value):
    """From 1 as the brightest."""
    return max(0, min(255, math.floor(value * 255.5)))


def recolored(function, pixels):
    """A function of red, green and blue up to 1."""
    return each_pixel(lambda pixel: [in_u8(c) for c in function(*(c / 255 for c in pixel))], pixels)


def saturated(factor):
    def change(*color):
        hue, saturation, value = colorsys.rgb_to_hsv(*color)
        return colorsys.hsv_to_rgb(hue, min(1, saturation * factor), value)
    return change


def turned(delta):
    def change(*color):
        hue, saturation, value = colorsys.rgb_to_hsv(*color)
        return colorsys.hsv_to_rgb((hue + delta) % 1, saturation, value)
    return change


def contrasted(factor, pixels):
    count = len(pixels) * len(pixels[0])
    means = [sum(pixel[c] for row in pixels for pixel in row) / 255 / count for c in range(3)]
    return recolored(lambda *color: [(c - mean) * factor + mean for c, mean in zip(color, means)], pixels)


def of_one_level(height, width, level):
    return [[[level] * 3] * width] * height


def image_ops(pixels, levels):
    """pixels: 2 x 3 of them; levels: the two of the JPEG file, of which the first is 40.

    Of ops that draw numbers a case that has one result."""
    normal = each_pixel(lambda pixel: [(c * 0.5 - m) / s for c, m, s in zip(pixel, (10, 20, 30), (2.0, 4.0, 8.0))], pixels)
    edges = [row[:1] * 4 for row in pixels]
    return [('image', pixels), ('photo', [[[level] * 3 for level in levels]]), *sorted([
        ('image_size', [8, 16]),
        ('crop', [pixels[1][1:]]),
        ('pad_image', [[row[0]] + row for row in pixels[:1] + pixels]),
        ('flip', pixels[::-1]),
        ('rotate90', [[row[2 - i] for row in pixels] for i in range(3)]),
        ('rotate', [row[::-1] for row in pixels[::-1]]),
        ('convert_image_dtype', each_pixel(lambda pixel: [c / 255 for c in pixel], pixels)),
        ('normalize_image', normal),
        ('adjust_brightness', recolored(lambda *color: [c + 0.2 for c in color], pixels)),
        ('adjust_contrast', contrasted(2, pixels)),
        ('adjust_saturation', recolored(saturated(0.5), pixels)),
        ('adjust_hue', recolored(turned(0.3), pixels)),
        ('random_crop', [row[:2] for row in edges]),
        ('random_rotate', of_one_level(2, 2, 40)),
        ('random_resized_crop', [row[::-1] for row in pixels]),
        ('random_crop_window', [0, 0, 8, 16]),
        ('random_cutout', of_one_level(2, 3, 7)),
        ('random_color_jitter', of_one_level(2, 2, 40)),
    ])]


def image_mixes(rows):
    """Of equal images; the shares of each mixed target add up to 1."""
    images, shares = [of_one_level(2, 2, 40 / 255)] * rows, [1.0] * rows
    targets = [[float(k == row) for k in range(3)] for row in range(rows)]
    return [('id', list(range(rows))), ('photo', images), ('target', targets), ('cutmix', images), ('cutmix_targets', shares),
            ('mixup', images), ('mixup_targets', shares)]
