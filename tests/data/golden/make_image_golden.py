#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""make_image_golden.py OUTPUT: writes images.json, what TensorFlow and Pillow make of some images.

A list of cases {op, attributes, inputs, outputs, relative, absolute} in the form of tests/conformance/golden_case.h; a
tensor of dtype bytes has one hexadecimal text per element. Needs TensorFlow (2.21 was used), NumPy and Pillow (12); the
file is kept in the tree, so building and testing need none of them.
"""
import io
import json
import sys

import numpy as np
import tensorflow as tf
from PIL import Image

RANDOM = np.random.default_rng(61)
NAMES = {"float32": "f32", "uint8": "u8", "int64": "i64"}


def tensor(value):
    if isinstance(value, bytes):
        return {"dtype": "bytes", "dims": [], "texts": [value.hex()]}
    value = np.asarray(value)
    if value.dtype.kind == "f":
        values = [float(str(v)) for v in value.reshape(-1)]
    else:
        values = [int(v) for v in value.reshape(-1)]
    return {"dtype": NAMES[str(value.dtype)], "dims": list(value.shape), "values": values}


def attribute(value):
    if isinstance(value, tuple):
        return {value[0]: value[1]}
    for kind, name in ((bool, "bool"), (int, "i64"), (float, "f64"), (str, "string")):
        if isinstance(value, kind):
            return {name: value}
    return {"doubles" if isinstance(value[0], float) else "ints": list(value)}


CASES = []


def case(op, x, y, absolute, **attributes):
    CASES.append({
        "op": op, "attributes": {name: attribute(value) for name, value in attributes.items()}, "inputs": [tensor(x)],
        "outputs": [tensor(y)], "relative": 0.0, "absolute": absolute,
    })


def bytes_image(*shape):
    return RANDOM.integers(0, 256, shape, dtype=np.uint8)


def float_image(*shape):
    return RANDOM.uniform(0, 1, shape).astype(np.float32)


def resizes():
    sizes = [((7, 9), (4, 5)), ((5, 6), (11, 8)), ((13, 4), (5, 10)), ((6, 6), (6, 3)), ((1, 7), (3, 2))]
    for (height, width), size in sizes:
        x = float_image(height, width, 3)
        pixels = bytes_image(height, width, 3)
        for method in ("bilinear", "nearest", "area"):
            y = tf.image.resize(x, size, method=method).numpy()
            case("resize", x, y, 1e-5, size=list(size), method=method)
            y = tf.image.resize(pixels, size, method=method).numpy().astype(np.float32)
            case("resize", pixels, y, 1e-3, size=list(size), method=method, output="f32")
        y = tf.image.resize(x, size, antialias=True).numpy()
        case("resize", x, y, 1e-5, size=list(size), antialias=True)
        # Pillow's filter in f32, one channel at a time.
        planes = [Image.fromarray(x[:, :, c]).resize(size[::-1], Image.Resampling.BILINEAR) for c in range(3)]
        case("resize", x, np.stack([np.asarray(p) for p in planes], axis=2), 1e-5, size=list(size), antialias=True)
        # In u8 Pillow rounds between its two passes too.
        y = np.asarray(Image.fromarray(pixels).resize(size[::-1], Image.Resampling.BILINEAR))
        case("resize", pixels, y, 1.0, size=list(size), antialias=True)
        # Of 4 columns made 10 some centres lie on a border, where Pillow's sums fall to either side.
        if size[1] != 10:
            y = np.asarray(Image.fromarray(pixels).resize(size[::-1], Image.Resampling.NEAREST))
            case("resize", pixels, y, 0.0, size=list(size), method="nearest")


def colors():
    for x in (float_image(4, 5, 3), bytes_image(4, 5, 3)):
        # TensorFlow's fused kernels and ours may truncate to neighbouring bytes.
        tolerance = 1e-5 if x.dtype == np.float32 else 1.0
        for value in (-0.3, 0.25):
            case("adjust_brightness", x, tf.image.adjust_brightness(x, value).numpy(), tolerance, delta=value)
            case("adjust_hue", x, tf.image.adjust_hue(x, value).numpy(), tolerance, delta=value)
        for value in (0.4, 1.7):
            case("adjust_contrast", x, tf.image.adjust_contrast(x, value).numpy(), tolerance, factor=value)
            case("adjust_saturation", x, tf.image.adjust_saturation(x, value).numpy(), tolerance, factor=value)
    pixels = np.arange(256, dtype=np.uint8).reshape(16, 16, 1)
    floats = tf.image.convert_image_dtype(pixels, tf.float32).numpy()
    case("convert_image_dtype", pixels, floats, 1e-7, dtype=("dtype", "f32"))
    for values in (floats, float_image(9, 9, 1)):
        y = tf.image.convert_image_dtype(values, tf.uint8, saturate=True).numpy()
        case("convert_image_dtype", values, y, 0.0, dtype=("dtype", "u8"))
    x = bytes_image(3, 4, 3)
    mean, deviation = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]
    y = ((x / 255.0 - mean) / deviation).astype(np.float32)
    case("normalize_image", x, y, 1e-5, mean=mean, stddev=deviation, scale=1 / 255)


def geometry():
    for x in (bytes_image(5, 7, 3), float_image(4, 3, 1)):
        height, width = x.shape[:2]
        for turns in range(4):
            case("rotate90", x, tf.image.rot90(x, turns).numpy(), 0.0, turns=turns)
        case("flip", x, tf.image.flip_left_right(x).numpy(), 0.0)
        case("flip", x, tf.image.flip_up_down(x).numpy(), 0.0, direction="vertical")
        y = tf.image.crop_to_bounding_box(x, 1, 1, height - 2, width - 1).numpy()
        case("crop", x, y, 0.0, offset=[1, 1], size=[height - 2, width - 1])
        y = tf.image.resize_with_crop_or_pad(x, height - 3, width - 2).numpy()
        case("crop", x, y, 0.0, size=[height - 3, width - 2], centered=True)
        for mode, name in (("constant", "constant"), ("edge", "edge"), ("reflect", "reflect")):
            y = np.pad(x, ((1, 2), (2, 0), (0, 0)), mode=name)
            case("pad_image", x, y, 0.0, pads=[1, 2, 2, 0], mode=mode)


def turned(plane, degrees, method, value):
    return np.asarray(Image.fromarray(plane).rotate(degrees, resample=method, fillcolor=value))


def rotations():
    methods = {"bilinear": Image.Resampling.BILINEAR, "nearest": Image.Resampling.NEAREST}
    for height, width in ((6, 9), (8, 8), (1, 5), (15, 11)):
        x = float_image(height, width, 1)
        pixels = bytes_image(height, width, 3)
        for degrees, value in ((17.0, 0.25), (-75.5, 0.0), (133.0, 1.0)):
            for name, method in methods.items():
                settings = {"degrees": degrees, "method": name, "value": value}
                case("rotate", x, turned(x[:, :, 0], degrees, method, value)[:, :, None], 1e-5, **settings)
                # Pillow cuts fractions off, and in u8 finds the nearest pixel in fixed point.
                if name == "bilinear":
                    y = turned(pixels, degrees, method, (0, 0, 0))
                    case("rotate", pixels, y, 1.0, degrees=degrees)


def png_of(pixels, **settings):
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, "PNG", **settings)
    return file.getvalue()


def files():
    for shape in ((9, 11), (6, 5, 3), (7, 4, 4)):
        pixels = bytes_image(*shape)
        file = png_of(pixels)
        for channels in (1, 3, 4):
            if channels == 1 and pixels.ndim == 3:
                y = np.asarray(Image.fromarray(pixels).convert("RGB").convert("L"))[:, :, None]
            else:
                y = tf.io.decode_png(file, channels=channels).numpy()
            case("decode_png", file, y, 0.0, channels=channels)
    palette = Image.fromarray(bytes_image(8, 9, 3)).quantize(13)
    for colors_left in (13, 4, 2):
        image = palette.convert("RGB").quantize(colors_left)
        file = io.BytesIO()
        image.save(file, "PNG")
        case("decode_png", file.getvalue(), np.asarray(image.convert("RGB")), 0.0, channels=3)
    deep = RANDOM.integers(0, 65536, (4, 6), dtype=np.uint16)
    case("decode_png", png_of(deep), (deep >> 8).astype(np.uint8)[:, :, None].repeat(3, axis=2), 0.0, channels=3)
    file = png_of(bytes_image(5, 6, 3))
    case("decode_image", file, tf.io.decode_png(file, channels=3).numpy(), 0.0)
    case("image_size", file, np.array([5, 6]), 0.0)
    photo = (np.add.outer(np.arange(24) * 5, np.arange(32) * 3)[:, :, None] + [0, 20, 40]).astype(np.uint8)
    file = io.BytesIO()
    Image.fromarray(photo).save(file, "JPEG", quality=90)
    y = np.asarray(Image.open(io.BytesIO(file.getvalue())))
    # Another release of libjpeg-turbo may be inside of Pillow.
    case("decode_jpeg", file.getvalue(), y, 1.0)
    case("decode_image", file.getvalue(), y, 1.0)
    y = tf.io.decode_jpeg(file.getvalue(), channels=3, dct_method="INTEGER_ACCURATE").numpy()
    case("decode_jpeg", file.getvalue(), y, 1.0)
    case("image_size", file.getvalue(), np.array([24, 32]), 0.0)


for family in (resizes, colors, geometry, files, rotations):
    family()
with open(sys.argv[1], "w", encoding="utf-8") as output:
    output.write("[\n" + ",\n".join(json.dumps(one) for one in CASES) + "\n]\n")
