#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""image_peer.py [FOLDER]: what PyTorch's DataLoader and tf.data give of the pipelines of image_bench.

Images of 28 x 28 bytes, shuffled, cropped at random after a padding of 4, flipped with probability 1/2, normalised to f32,
in batches of 256; and the JPEG files of FOLDER (`image_bench files FOLDER`), decoded, a random part resized to 224,
normalised, in batches of 64. Prints images/s of whichever library can be imported, PyTorch with the worker count that
is fastest.
"""
import glob
import os
import sys
import time

import numpy as np

COUNT, BATCH = 60000, 256
IMAGES = np.random.default_rng(1).integers(0, 256, (COUNT, 28, 28), dtype=np.uint8)
FILES = sorted(glob.glob(os.path.join(sys.argv[1], "*.jpg"))) * 16 if len(sys.argv) > 1 else []
PHOTO_BATCH, SIDE = 64, 224
MEAN, DEVIATION = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)


def rate(batches, at_most=6.0):
    """From the first batch on, so that the start of workers does not count."""
    batches = iter(batches)
    next(batches)
    start, rows = time.perf_counter(), 0
    for batch in batches:
        rows += len(batch)
        if time.perf_counter() - start > at_most:
            break
    return rows / (time.perf_counter() - start)


def torch_best(what, dataset, batch):
    import torch
    from torch.utils.data import DataLoader

    rates = {}
    for workers in (0, 1, 2, 4):
        loader = DataLoader(dataset, batch_size=batch, shuffle=True, num_workers=workers)
        rates[workers] = rate(loader)
    best = max(rates, key=rates.get)
    print(f"{what}: PyTorch {torch.__version__}, {best} workers: {rates[best]:10.0f} images/s", flush=True)


def torch_images():
    import torch
    from torch.utils.data import Dataset

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

    torch_best("fashion", Images(), BATCH)


def torch_photos():
    import torch
    from PIL import Image
    from torch.utils.data import Dataset
    from torchvision import io, transforms

    crop = transforms.RandomResizedCrop(SIDE, antialias=False)
    normalise = transforms.Normalize(MEAN, DEVIATION)

    class ByPillow(Dataset):
        transform = transforms.Compose([crop, transforms.ToTensor(), normalise])

        def __len__(self):
            return len(FILES)

        def __getitem__(self, index):
            return self.transform(Image.open(FILES[index]).convert("RGB"))

    class ByTorchvision(ByPillow):
        transform = transforms.Compose([crop, transforms.ConvertImageDtype(torch.float32), normalise])

        def __getitem__(self, index):
            return self.transform(io.decode_jpeg(io.read_file(FILES[index])))

    torch_best("photos, Pillow", ByPillow(), PHOTO_BATCH)
    torch_best("photos, torchvision", ByTorchvision(), PHOTO_BATCH)


def tensorflow_images():
    import tensorflow as tf

    def augment(image):
        image = tf.pad(image, [[4, 4], [4, 4]])
        image = tf.image.random_flip_left_right(tf.image.random_crop(image[:, :, None], [28, 28, 1]))
        return (tf.cast(image, tf.float32) / 255 - 0.286) / 0.353

    dataset = tf.data.Dataset.from_tensor_slices(IMAGES).shuffle(COUNT).map(augment, tf.data.AUTOTUNE)
    one = rate(dataset.batch(BATCH).prefetch(tf.data.AUTOTUNE))
    print(f"fashion: TensorFlow {tf.__version__}, tf.data: {one:10.0f} images/s", flush=True)


def tensorflow_photos():
    import tensorflow as tf

    def load(path):
        contents = tf.io.read_file(path)
        begin, size, _ = tf.image.sample_distorted_bounding_box(
            tf.io.extract_jpeg_shape(contents), tf.zeros([1, 0, 4]), area_range=(0.08, 1.0),
            aspect_ratio_range=(3 / 4, 4 / 3), use_image_if_no_bounding_boxes=True)
        image = tf.io.decode_and_crop_jpeg(contents, tf.concat([begin[:2], size[:2]], 0), channels=3)
        return (tf.image.resize(image, [SIDE, SIDE]) / 255 - MEAN) / DEVIATION

    dataset = tf.data.Dataset.from_tensor_slices(FILES).shuffle(len(FILES)).map(load, tf.data.AUTOTUNE)
    one = rate(dataset.batch(PHOTO_BATCH).prefetch(tf.data.AUTOTUNE))
    print(f"photos, only the part decoded: TensorFlow {tf.__version__}, tf.data: {one:10.0f} images/s", flush=True)


for measure in (torch_images, tensorflow_images) + ((torch_photos, tensorflow_photos) if FILES else ()):
    try:
        measure()
    except ImportError as error:
        print(f"left out: {error}")
