#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs an example as a test: its exit status, and what its last line says.

  run_example.py hello PROGRAM
  run_example.py driven_training PROGRAM
  run_example.py hard_examples PROGRAM
  run_example.py rare_class PROGRAM
  run_example.py normalization PROGRAM
  run_example.py configuration TUTTI FILE.yaml      all commands for a run, on Debian's data where they are
  run_example.py fashion_mnist PROGRAM [TUTTI]  on a small data set of the same form, made here: a bright square per
                                                class; with the command `tutti`, also the report of the run
"""
import gzip
import json
import os
import random
import re
import subprocess
import sys
import tempfile
import zipfile

KEYS = ("test_accuracy", "examples_per_second", "replicas", "global_step")
TRAIN_IMAGES, TEST_IMAGES, SIDE, EPOCHS, BATCH = 700, 150, 28, 4, 128


def last_line(command):
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    print(done.stdout, end="")
    if done.returncode != 0:
        sys.exit(f"exit status {done.returncode}")
    lines = done.stdout.strip().split("\n")
    return lines[-1]


def write_images(folder, prefix, count, draw):
    """IDX files: class c has a bright square at its own place, everything else is noise."""
    images, labels = bytearray(), bytearray()
    for _ in range(count):
        label = draw.randrange(10)
        image = bytearray(draw.randrange(60) for _ in range(SIDE * SIDE))
        top, left = 2 + label // 5 * 12, 1 + label % 5 * 5
        for row in range(top, top + 6):
            image[row * SIDE + left:row * SIDE + left + 4] = b"\xe0" * 4
        images += image
        labels.append(label)
    number = count.to_bytes(4, "big")
    side = SIDE.to_bytes(4, "big")
    for name, data in ((f"{prefix}-images-idx3-ubyte.gz", b"\0\0\x08\x03" + number + side + side + images),
                       (f"{prefix}-labels-idx1-ubyte.gz", b"\0\0\x08\x01" + number + labels)):
        with gzip.open(os.path.join(folder, name), "wb", 1) as file:
            file.write(bytes(data))


def check_report(output, tutti, result):
    """The page that the quickstart ends with: small, and with the figures that the program has printed."""
    page = subprocess.run([tutti, "report", output], stdout=subprocess.PIPE, text=True, check=True).stdout.strip()
    with open(page, encoding="utf-8") as file:
        text = file.read()
    if page != os.path.join(output, "report.html") or len(text.encode()) > 1e6:
        sys.exit(f"{page} is not the report, or larger than 1 MB")
    shown = {float(value) for value in re.findall(r'data-value="([^"]*)"', text)}
    for key, digits in (("evaluated_accuracy", 4), ("test_loss", 4), ("global_step", 0)):
        if round(result[key], digits) not in {round(value, digits) for value in shown}:
            sys.exit(f"the report lacks the {key} {result[key]}")
    if len(re.findall(r'<tr><th scope="row" class="n">\d</th>', text)) != 10:
        sys.exit("the report has no confusion matrix of ten classes")


def check_fashion_mnist(program, tutti=None):
    with tempfile.TemporaryDirectory() as folder:
        draw = random.Random(1)
        write_images(folder, "train", TRAIN_IMAGES, draw)
        write_images(folder, "t10k", TEST_IMAGES, draw)
        output = os.path.join(folder, "output")
        os.mkdir(output)
        result = json.loads(last_line([program, folder, output, str(EPOCHS)]))
        missing = [key for key in KEYS if key not in result]
        if missing:
            sys.exit(f"the last line lacks {', '.join(missing)}")
        steps = -(-TRAIN_IMAGES * EPOCHS // BATCH)
        if result["global_step"] != steps:
            sys.exit(f"{result['global_step']} steps, expected {steps}")
        if result["replicas"] < 1 or result["examples_per_second"] <= 0:
            sys.exit("no replicas, or no speed")
        if not 0.5 < result["test_accuracy"] <= 1:
            sys.exit(f"accuracy {result['test_accuracy']}: it has not learnt what a square is")
        if not os.path.isdir(os.path.join(output, f"checkpoint-{steps}")):
            sys.exit("no checkpoint of the last step")
        if tutti is not None:
            check_report(output, tutti, result)


def idx_files(folder, prefix):
    return [os.path.join(folder, f"{prefix}-{part}-ubyte.gz") for part in ("images-idx3", "labels-idx1")]


def check_configuration(program, configuration):
    with tempfile.TemporaryDirectory() as work:
        folder = "/usr/share/datasets/fashion-mnist"
        if not os.path.isdir(folder):
            folder = work
            draw = random.Random(1)
            write_images(work, "train", 4000, draw)
            write_images(work, "t10k", 1000, draw)
        run = os.path.join(work, "run")
        train, test = idx_files(folder, "train"), idx_files(folder, "t10k")
        done = subprocess.run(
            [program, "train", configuration, "--steps", "60", "--batch", "64", "--model-dir", run, "--json", "--set",
             f"data.train.source={json.dumps(train)}", "--set", "data.train.take=4000", "--set",
             f"data.evaluate={json.dumps({'source': test, 'take': 1000})}", "--set", "evaluation.every_steps=30"],
            stdout=subprocess.PIPE, text=True, check=True)
        result = json.loads(done.stdout)
        print(done.stdout)
        if (result["training"]["step"], result["evaluation"]["examples"]) != (60, 1000):
            sys.exit("it has not trained 60 steps, or not evaluated 1,000 images")
        if not 0.6 < result["evaluation"]["metrics"]["accuracy"] <= 1:
            sys.exit("it has not learnt what is in the images")
        predictions = os.path.join(work, "classes.csv")
        subprocess.run([program, "predict", run, test[0], predictions, "--first", "1000"], check=True)
        with gzip.open(test[1]) as file:
            labels = file.read()[8:1008]
        with open(predictions, encoding="utf-8") as file:
            header, *rows = (line.strip().split(",") for line in file)
        column = header.index("class")
        right = sum(int(row[column]) == label for row, label in zip(rows, labels))
        if len(rows) != 1000 or abs(right / 1000 - result["evaluation"]["metrics"]["accuracy"]) > 1e-6:
            sys.exit(f"{right} of {len(rows)} predictions are right, which is not the accuracy")
        check_other_commands(program, run, result)


def json_of(*command):
    return json.loads(subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout)


def check_other_commands(program, run, result):
    """What is done with a run that has been trained."""
    evaluated = json_of(program, "evaluate", run, "--json")
    if evaluated["metrics"] != result["evaluation"]["metrics"]:
        sys.exit(f"evaluate says {evaluated['metrics']}, the training {result['evaluation']['metrics']}")
    # The run as a part of another model, which a learning rate of 0 leaves as it is.
    added = json_of(program, "train", os.path.join(run, "config.yaml"), "--model", f"{{saved_model: {run}}}",
                    "--model-dir", os.path.join(run, "added"), "--learning-rate", "0", "--steps", "1", "--json")
    if added["evaluation"]["metrics"] != evaluated["metrics"]:
        sys.exit(f"as a saved model it says {added['evaluation']['metrics']}, itself {evaluated['metrics']}")
    weights = os.path.join(run, "weights.npz")
    subprocess.run([program, "export", run, weights], check=True)
    with zipfile.ZipFile(weights) as file:
        if not {"conv2d/kernel.npy", "dense/bias.npy"} <= set(file.namelist()):
            sys.exit(f"export has written {file.namelist()}")
    speed, = json_of(program, "bench", run, "--batch", "8", "--seconds", "0.2", "--json")
    if not 0 < speed["prediction"]["p50_ms"] < speed["training"]["p99_ms"]:
        sys.exit(f"bench says {speed}")
    page = os.path.join(run, "page.html")
    subprocess.run([program, "report", run, "-o", page], check=True)
    with open(page, encoding="utf-8") as file:
        if f"{result['evaluation']['metrics']['accuracy']:.4g}" not in file.read():
            sys.exit("the report lacks the accuracy")
    explained = subprocess.run([program, "explain", run], stdout=subprocess.PIPE, text=True, check=True).stdout
    if "60 steps of 64 rows" not in explained:
        sys.exit(f"explain says {explained}")


def check_hello(program):
    line = last_line([program])
    if not re.fullmatch(r"step 100, loss 0\.\d+", line):
        sys.exit(f"unexpected last line: {line}")


def check_driven_training(program):
    done = re.fullmatch(r"step (\d+), rate (0\.\d{4}), loss (0\.\d{6})", last_line([program]))
    if not done:
        sys.exit("unexpected last line")
    step, rate, loss = (float(number) for number in done.groups())
    if step % 25 != 0 or step < 250 or rate > 0.002 or loss > 0.002:  # noise of 0.1 / sqrt(12) leaves 0.0008
        sys.exit("it has not learnt the line, or not slowed down")


def check_hard_examples(program):
    done = re.fullmatch(r"off by (0\.\d{4}), by (0\.\d{4}) at the (\d+) hardest", last_line([program]))
    if not done:
        sys.exit("unexpected last line")
    mean, hardest, rows = (float(number) for number in done.groups())
    if mean > 0.04 or hardest <= mean or not 16 <= rows <= 64:  # a plane leaves 1/16
        sys.exit("it has not learnt the product, or not found where it is hard")


def check_rare_class(program):
    lines = subprocess.run([program], stdout=subprocess.PIPE, text=True, check=True).stdout.splitlines()
    print("\n".join(lines))
    pattern = r"class weights [\d.]+ and [\d.]+: accuracy (0\.\d{3}), recall of the rare class (0\.\d{3}|1\.000)"
    found = [re.fullmatch(pattern, line) for line in lines]
    if len(found) != 2 or not all(found):
        sys.exit("unexpected lines")
    plain, weighted = ([float(number) for number in line.groups()] for line in found)
    if plain[0] < 0.95 or weighted[0] < 0.7 or weighted[1] < plain[1] + 0.3:  # 0.95: all of the other class
        sys.exit("class weights have not led to more of the rare class")


def check_normalization(program):
    lines = subprocess.run([program], stdout=subprocess.PIPE, text=True, check=True).stdout
    print(lines)
    kinds = ("nothing", "weight_norm", "layer_norm")
    done = re.fullmatch("".join(rf"with {kind}: loss (0\.\d{{4}})\n" for kind in kinds), lines)
    if not done:
        sys.exit("unexpected lines")
    nothing, weight_norm, layer_norm = map(float, done.groups())
    if weight_norm > 0.9 * nothing or layer_norm > 0.5 * nothing:
        sys.exit("normalization has not helped")


if __name__ == "__main__":
    check = {"hello": check_hello, "driven_training": check_driven_training, "hard_examples": check_hard_examples,
             "fashion_mnist": check_fashion_mnist, "configuration": check_configuration, "rare_class": check_rare_class,
             "normalization": check_normalization}
    check[sys.argv[1]](*sys.argv[2:])
