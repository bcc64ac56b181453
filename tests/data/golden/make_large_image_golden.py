#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""make_large_image_golden.py OUTPUT: writes large_images.json, what TensorFlow and Pillow make of larger images.

A list of cases as make_image_golden.py writes them, but with samples in the place of pixels. The inputs are the dims of
the image, its first values (the rest follow by the formula of image()) and the places of samples in the result; the
outputs are the samples and the mean of each channel. Needs TensorFlow (2.21 was used), NumPy and Pillow (12).
"""
import json
import sys

import numpy as np
import tensorflow as tf
from PIL import Image

SAMPLES = 48
SIZES = [((257, 319), (224, 224)), ((101, 67), (299, 211)), ((480, 641), (133, 97)), ((53, 71), (331, 509)),
         ((359, 40), (61, 277))]
RANDOM = np.random.default_rng(67)
NAMES = {"float32": "f32", "uint8": "u8", "int64": "i64"}


def image(height, width):
    """Noise; image_of() in image_golden_test.cc makes the same."""
    hashed = np.arange(height * width * 3, dtype=np.uint64) * 2654435761 % 2**32
    hashed ^= hashed >> 15
    return (hashed * 2246822519 % 2**32 >> 24).astype(np.uint8).reshape(height, width, 3)


def tensor(value):
    values = value.reshape(-1).tolist() if value.dtype.kind != "f" else [float(str(v)) for v in value.reshape(-1)]
    return {"dtype": NAMES[str(value.dtype)], "dims": list(value.shape), "values": values}


CASES = []


def case(x, y, absolute, **attributes):
    height, width, channels = y.shape
    places = RANDOM.choice(y.size, SAMPLES, replace=False)
    # The corners are where borders go wrong.
    places[:4] = [0, (width - 1) * channels, (height - 1) * width * channels, y.size - 1]
    mean = y.mean(axis=(0, 1), dtype=np.float64).astype(np.float32)
    kinds = {str: "string", bool: "bool", list: "ints"}
    CASES.append({
        "op": "resize", "attributes": {name: {kinds[type(value)]: value} for name, value in attributes.items()},
        "inputs": [tensor(np.array(x.shape)), tensor(x.reshape(-1)[:8]), tensor(places)],
        "outputs": [tensor(y.reshape(-1)[places]), tensor(mean)], "relative": 0.0, "absolute": absolute,
    })


for (height, width), size in SIZES:
    pixels = image(height, width)
    x = pixels.astype(np.float32) / np.float32(255)
    for method in ("bilinear", "nearest", "area"):
        # TensorFlow finds places in f32, which is good to 1e-4 of a pixel here.
        tolerance = 1e-5 if method == "nearest" else 1e-4
        case(x, tf.image.resize(x, size, method=method).numpy(), tolerance, size=list(size), method=method)
        y = tf.image.resize(pixels, size, method=method).numpy().astype(np.float32)
        case(pixels, y, tolerance * 255, size=list(size), method=method, output="f32")
    case(x, tf.image.resize(x, size, antialias=True).numpy(), 1e-4, size=list(size), antialias=True)
    planes = [Image.fromarray(x[:, :, c]).resize(size[::-1], Image.Resampling.BILINEAR) for c in range(3)]
    case(x, np.stack([np.asarray(p) for p in planes], axis=2), 1e-5, size=list(size), antialias=True)
    # In u8 Pillow rounds between its two passes too.
    y = np.asarray(Image.fromarray(pixels).resize(size[::-1], Image.Resampling.BILINEAR))
    case(pixels, y, 1.0, size=list(size), antialias=True)
with open(sys.argv[1], "w", encoding="utf-8") as output:
    output.write("[\n" + ",\n".join(json.dumps(one) for one in CASES) + "\n]\n")
