#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""image_peer.py: what PyTorch's DataLoader and tf.data give of the Fashion-MNIST pipeline of image_bench.

Images of 28 x 28 bytes, shuffled, cropped at random after a padding of 4, flipped with probability 1/2, normalised to f32,
in batches of 256. Prints images/s of whichever library can be imported, PyTorch with the worker count that is fastest.
"""
import time

import numpy as np

COUNT, BATCH = 60000, 256
IMAGES = np.random.default_rng(1).integers(0, 256, (COUNT, 28, 28), dtype=np.uint8)


def rate(batches, at_most=6.0):
    start, rows = time.perf_counter(), 0
    for batch in batches:
        rows += len(batch)
        if time.perf_counter() - start > at_most:
            break
    return rows / (time.perf_counter() - start)


def torch_rates():
    import torch
    from torch.utils.data import DataLoader, Dataset

    class Images(Dataset):
        """As torchvision's RandomCrop(28, padding=4), RandomHorizontalFlip, ToTensor and Normalize, on tensors."""

        def __init__(self):
            self.images = torch.from_numpy(IMAGES)

        def __len__(self):
            return COUNT

        def __getitem__(self, index):
            padded = torch.nn.functional.pad(self.images[index], (4, 4, 4, 4))
            top, left = torch.randint(0, 9, (2,)).tolist()
            image = padded[top:top + 28, left:left + 28]
            if torch.rand(1) < 0.5:
                image = image.flip(1)
            return image.to(torch.float32).div(255).sub(0.286).div(0.353)[None]

    best = 0.0
    for workers in (0, 1, 2, 4):
        loader = DataLoader(Images(), batch_size=BATCH, shuffle=True, num_workers=workers)
        one = rate(loader)
        print(f"PyTorch {torch.__version__}, {workers} workers: {one:10.0f} images/s", flush=True)
        best = max(best, one)
    return best


def tensorflow_rate():
    import tensorflow as tf

    def augment(image):
        image = tf.pad(image, [[4, 4], [4, 4]])
        image = tf.image.random_flip_left_right(tf.image.random_crop(image[:, :, None], [28, 28, 1]))
        return (tf.cast(image, tf.float32) / 255 - 0.286) / 0.353

    dataset = tf.data.Dataset.from_tensor_slices(IMAGES).shuffle(COUNT).map(augment, tf.data.AUTOTUNE)
    one = rate(dataset.batch(BATCH).prefetch(tf.data.AUTOTUNE))
    print(f"TensorFlow {tf.__version__}, tf.data: {one:10.0f} images/s", flush=True)


for measure in (torch_rates, tensorflow_rate):
    try:
        measure()
    except ImportError as error:
        print(f"left out: {error}")
