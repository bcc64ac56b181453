#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs a serving example as a test: many clients at once ask one server, which says on its first line at which port it listens.

  serving_client.py PROGRAM

The server gets rows of numbers, one row a line, and answers with the number of the largest in each row.
"""
import concurrent.futures
import random
import subprocess
import sys
import urllib.error
import urllib.request

CLIENTS, REQUESTS, ROWS, COLUMNS = 8, 20, 50, 4
TIMEOUT_SECONDS = 60


def ask(port, text):
    """Status and text of an answer."""
    request = urllib.request.Request(f"http://127.0.0.1:{port}/predict", data=text.encode())
    try:
        with urllib.request.urlopen(request, timeout=TIMEOUT_SECONDS) as answer:
            return answer.status, answer.read().decode().split()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def check(port):
    draw = random.Random(3)
    rows = [[draw.random() for _ in range(COLUMNS)] for _ in range(ROWS)]
    lines = [",".join(f"{number:.6f}" for number in row) for row in rows]
    status, together = ask(port, "\n".join(lines))
    right = sum(int(answer) == row.index(max(row)) for answer, row in zip(together, rows))
    if status != 200 or len(together) != ROWS or right < 0.8 * ROWS:
        sys.exit(f"status {status}, {right} of {ROWS} right: {together}")
    with concurrent.futures.ThreadPoolExecutor(CLIENTS) as pool:
        numbers = [draw.randrange(ROWS) for _ in range(CLIENTS * REQUESTS)]
        for number, (status, answer) in zip(numbers, pool.map(lambda n: ask(port, lines[n]), numbers)):
            if status != 200 or answer != together[number:number + 1]:
                sys.exit(f"row {number}: status {status}, {answer}, in one batch {together[number]}")
    for wrong in ("1,2,3", "a,b,c,d"):
        status, answer = ask(port, wrong)
        if status != 400 or not answer.strip():
            sys.exit(f"'{wrong}': status {status}, {answer}")
    print(f"{CLIENTS} clients, {CLIENTS * REQUESTS} requests, {right} of {ROWS} right")


def main(program):
    with subprocess.Popen([program, "0"], stdout=subprocess.PIPE, text=True) as server:
        try:
            line = server.stdout.readline()
            if not line.startswith("listening on port "):
                sys.exit(f"the server says: {line}")
            check(int(line.split()[-1]))
        finally:
            server.terminate()


if __name__ == "__main__":
    main(sys.argv[1])
