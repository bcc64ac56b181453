#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Two machines, as network namespaces with a link of this test's own between them, which delays and loses packets.

  namespaces_test.py WORKERS            a short delay, few losses: trained as in one process; a link that is cut; a new start
  namespaces_test.py --long WORKERS     a slow and bad link; takes minutes

WORKERS is examples/c/workers. Skipped (status 77) where namespaces cannot be made.
"""
import ctypes
import fcntl
import heapq
import os
import random
import re
import select
import struct
import subprocess
import sys
import tempfile
import threading
import time

SKIPPED = 77
CLONE_NEWNET = 0x40000000
TUNSETIFF, IFF_TUN, IFF_NO_PI = 0x400454CA, 1, 0x1000
LAUNCHERS = ('TF_CONFIG', 'OMPI_COMM_WORLD_RANK', 'SLURM_PROCID', 'TORCHELASTIC_USE_AGENT_STORE')


class CannotBeMade(Exception):
    pass


def ip(*words):
    try:
        done = subprocess.run(['ip', *words], capture_output=True, text=True, check=False, timeout=20)
    except FileNotFoundError as error:
        raise CannotBeMade('there is no ip') from error
    if done.returncode != 0:
        raise CannotBeMade(f"ip {' '.join(words)}: {done.stderr.strip()}")


def open_tun(namespace, opened):
    """In a thread of its own, which stays in the namespace."""
    libc = ctypes.CDLL(None, use_errno=True)
    try:
        with open(f'/run/netns/{namespace}', 'rb') as file:
            if libc.setns(file.fileno(), CLONE_NEWNET) != 0:
                raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
        tun = os.open('/dev/net/tun', os.O_RDWR | os.O_NONBLOCK)
        fcntl.ioctl(tun, TUNSETIFF, struct.pack('16sH22x', b'tun0', IFF_TUN | IFF_NO_PI))
        opened.append(tun)
    except OSError as error:
        opened.append(error)


class Link:
    """Between 192.0.2.1 and 192.0.2.2; each packet takes `delay` seconds, and one of `loss` is lost."""

    def __init__(self, delay, loss):
        self.delay, self.loss = delay, loss
        self.draw = random.Random(7)
        self.carried, self.lost, self.is_cut, self.closing = 0, 0, False, False
        self.names, self.tuns = [f'tutti-{os.getpid()}-{side}' for side in (0, 1)], []
        self.made = []
        self.thread = threading.Thread(target=self.carry)

    def __enter__(self):
        try:
            for side, name in enumerate(self.names):
                ip('netns', 'add', name)
                self.made.append(name)
                ip('netns', 'exec', name, 'true')
                thread = threading.Thread(target=open_tun, args=(name, self.tuns))
                thread.start()
                thread.join()
                if isinstance(self.tuns[-1], OSError):
                    raise CannotBeMade(f'/dev/net/tun: {self.tuns.pop()}')
                ip('-n', name, 'addr', 'add', f'192.0.2.{side + 1}/24', 'dev', 'tun0')
                for device in ('lo', 'tun0'):
                    ip('-n', name, 'link', 'set', device, 'up')
        except CannotBeMade:
            self.__exit__()
            raise
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.closing = True
        if self.thread.is_alive():
            self.thread.join()
        for tun in self.tuns:
            os.close(tun)
        for name in self.made:
            subprocess.run(['ip', 'netns', 'del', name], check=False)

    def carry(self):
        under_way, number = [], 0
        while not self.closing:
            now = time.monotonic()
            while under_way and under_way[0][0] <= now:
                _, _, tun, packet = heapq.heappop(under_way)
                try:
                    os.write(tun, packet)
                except OSError:
                    pass  # a full queue loses it
            wait = min(0.05, under_way[0][0] - now) if under_way else 0.05
            for tun in select.select(self.tuns, [], [], max(wait, 0))[0]:
                packet = os.read(tun, 65536)
                self.carried += 1
                if self.is_cut or self.draw.random() < self.loss:
                    self.lost += 1
                    continue
                number += 1
                other = self.tuns[1 - self.tuns.index(tun)]
                heapq.heappush(under_way, (time.monotonic() + self.delay, number, other, packet))

    def start(self, program, model_dir, timeout_ms):
        """A worker on each side."""
        started = []
        for side, name in enumerate(self.names):
            environment = {key: value for key, value in os.environ.items() if key not in LAUNCHERS}
            environment.update(RANK=str(side), WORLD_SIZE='2', MASTER_ADDR='192.0.2.1', MASTER_PORT='8888')
            started.append(subprocess.Popen(['ip', 'netns', 'exec', name, program, model_dir, str(timeout_ms)], env=environment,
                                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True))
        return started


def fail(text):
    print(text)
    sys.exit(1)


def finish(started, limit):
    """Exit statuses, and what was said."""
    end = time.monotonic() + limit
    try:
        said = [process.communicate(timeout=max(end - time.monotonic(), 0.1)) for process in started]
    except subprocess.TimeoutExpired:
        for process in started:
            process.kill()
        fail(f'the workers have not ended within {limit} s')
    return [process.returncode for process in started], [''.join(both) for both in said]


def accuracy_of(text, workers):
    done = re.search(rf'workers {workers}, replicas \d+, step 384, accuracy (\d\.\d+), predictions 4096', text)
    return float(done[1]) if done else fail(f'unexpected words: {text}')


def check_training(program, delay, loss, limit):
    """What is trained over the link is as good as what one process trains."""
    with tempfile.TemporaryDirectory() as folder:
        environment = {key: value for key, value in os.environ.items() if key not in LAUNCHERS}
        environment.update(RANK='0', WORLD_SIZE='1', MASTER_ADDR='127.0.0.1')
        alone = subprocess.run([program, os.path.join(folder, 'alone')], env=environment, capture_output=True, text=True,
                               check=True, timeout=60)
        with Link(delay, loss) as link:
            begin = time.monotonic()
            statuses, texts = finish(link.start(program, os.path.join(folder, 'both'), 60000), limit)
            print(f'{link.carried} packets, {link.lost} of them lost, {time.monotonic() - begin:.1f} s: {texts[0].strip()}')
            if statuses != [0, 0]:
                fail(f'exit statuses {statuses}\n{texts[0]}\n{texts[1]}')
            if link.lost == 0:
                fail('no packet was lost')
            if abs(accuracy_of(texts[0], 2) - accuracy_of(alone.stdout, 1)) > 0.01:
                fail(f'trained otherwise than in one process: {alone.stdout}')


def check_cut(program, delay):
    """Both sides of a link that is cut say whom they miss, in time, and go on later."""
    with tempfile.TemporaryDirectory() as folder, Link(delay, 0) as link:
        started = link.start(program, folder, 3000)
        end = time.monotonic() + 60
        while link.carried < 800 and time.monotonic() < end:
            time.sleep(0.005)
        link.is_cut = True
        statuses, texts = finish(started, 40)
        for side, text in enumerate(texts):
            print(f'worker {side}: {text.strip()[:200]}')
            # Who has voted for a step to be settled waits a little longer than who counts the votes.
            named = rf'worker {side} waited (3000|3250) ms for worker {1 - side}\b'
            if statuses[side] != 1 or not re.search(named, text):
                fail(f'exit status {statuses[side]}, and the other worker is not named: {text}')
        link.is_cut = False
        statuses, texts = finish(link.start(program, folder, 60000), 60)
        if statuses != [0, 0]:
            fail(f'it does not go on: {texts}')
        print(f'and then: {texts[0].strip()}')
        # The batch of the step that was given up came again.
        if accuracy_of(texts[0], 2) < 0.97:
            fail('it has not learnt as much as without a cut')


def main(words):
    program = os.path.abspath(words[-1])
    try:
        if words[0] == '--long':
            check_training(program, 0.02, 0.02, 1200)
            return 0
        check_training(program, 0.001, 0.003, 100)
        check_cut(program, 0.001)
    except CannotBeMade as error:
        print(f'skipped: no network namespaces with a link between them can be made here: {error}')
        return SKIPPED
    return 0


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
