#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What is carried to a machine that is lent for minutes and back: a build as one file, plans as another. Without a GPU, a
compiler and Meson: with programs of those names."""
import io
import json
import lzma
import os
import stat
import sys
import tarfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.join(HERE, '..', '..')
sys.path.insert(0, HERE)

# pylint: disable=wrong-import-position
import carried_build  # noqa: E402
import carried_plans  # noqa: E402
import packages  # noqa: E402
import packed_files  # noqa: E402
import parts  # noqa: E402
import run_parts  # noqa: E402
import source_digest  # noqa: E402
from stand_ins import InFolder  # noqa: E402

PROGRAM = 'tests/conformance/backend_objects_test'


class Carried(InFolder):
    def setUp(self):
        super().setUp()
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(ROOT)
        environment = dict(os.environ)
        self.addCleanup(lambda: (os.environ.clear(), os.environ.update(environment)))
        # Those of this machine take half a minute to pack.
        os.environ['TUTTI_FASHION_MNIST'] = os.path.join(self.folder, 'nowhere')
        self.archive = os.path.join(self.folder, 'build.tar.xz')
        self.said = []

    def inner(self, *names):
        path = os.path.join(self.folder, *names)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        return path

    def put(self, name, text='', mode=0o644):
        self.inner(name)
        os.chmod(self.file(name, text), mode)

    def built(self, text='exit 0'):
        """A build with a test and a plug-in, and programs that tell about it; its folder."""
        build = self.inner('built', '')[:-1]
        self.put('built/' + PROGRAM, f'#!/bin/sh\n{text}\n', 0o755)
        self.put('built/lib/backend/cuda/tutti-cuda.so', 'a plug-in')
        self.put('built/lib/libinner.so.1', 'built with it')
        self.put('somewhere/libouter.so.2', 'of a package')
        listed = [{'name': 'backend_objects_cuda', 'suite': ['tutti:gpu'], 'timeout': 30, 'workdir': None,
                   'cmd': [f'{build}/{PROGRAM}', f'{build}/lib/backend/cuda/tutti-cuda.so', os.path.abspath('tests/testdata')],
                   'env': {'LD_LIBRARY_PATH': f'{build}/lib:{build}/lib/backend/cuda', 'TUTTI_TEST_ENGINE': 'tutti-gloo.so'}},
                  {'name': 'other', 'suite': ['tutti:base'], 'cmd': ['/x'], 'env': {}, 'timeout': 30, 'workdir': None}]
        options = [{'name': 'gpu_architectures', 'value': ['90-real']}]
        self.program('meson', f'echo "$*" >> {self.folder}/meson-was-asked\ncase "$*" in\n'
                     f"*--tests*) cat <<'END'\n{json.dumps(listed)}\nEND\n;;\n"
                     f"*--buildoptions*) cat <<'END'\n{json.dumps(options)}\nEND\n;;\n"
                     f'setup*) touch {build}/build.ninja ;;\nesac')
        self.program('ldd', f'case $1 in *{PROGRAM}) echo "    libinner.so.1 => {build}/lib/../lib/libinner.so.1 (0x1)"\n'
                     f'echo "    libouter.so.2 => {self.folder}/somewhere/libouter.so.2 (0x2)"\n'
                     f'echo "    libstdc++.so.6 => {self.folder}/meson (0x3)"\necho "    libcuda.so.1 => not found" ;; esac')
        return build

    def pack(self, digest='', **more):
        """The build, packed as the programs above say."""
        os.environ['PATH'] = self.folder + ':' + os.environ['PATH']
        what = {'digest': digest or source_digest.of_what_is_built(), 'commit': 'abc', 'architectures': ['90-real'],
                'cuda': '13.0', 'missing': [], **more}
        carried_build.pack(self.archive, self.built(), ['lib/backend/cuda/tutti-cuda.so', 'tests/bench/none'], what, None)
        os.environ['TUTTI_GPU_BUILD'] = self.archive

    def take(self, name='elsewhere', capability='9.0'):
        self.said = []
        build = os.path.join(self.folder, name)
        return build, carried_build.take(build, {capability}, self.said.append)

    def test_a_build_works_in_another_folder(self):
        self.put('mnist/train-images-idx3-ubyte.gz')
        os.environ['TUTTI_FASHION_MNIST'] = os.path.join(self.folder, 'mnist')
        self.pack()
        os.environ.pop('TUTTI_FASHION_MNIST')
        os.remove(os.path.join(self.folder, 'meson'))
        build, what = self.take()
        self.assertEqual((what['commit'], self.said), ('abc', []))
        part = next(part for part in parts.tests(build) if part.name == 'backend_objects_cuda')
        self.assertEqual(part.command, (os.path.join(build, PROGRAM), os.path.join(build, 'lib/backend/cuda/tutti-cuda.so'),
                                        os.path.abspath('tests/testdata')))
        self.assertEqual(dict(part.environment)['LD_LIBRARY_PATH'], f'{build}/lib:{build}/lib/backend/cuda')
        self.assertTrue(os.access(part.command[0], os.X_OK))
        self.assertEqual([part.name for part in parts.tests(build)], ['backend_objects_cuda'])
        # Libraries of the build are where they were, those of packages are taken where the loader knows none.
        self.assertTrue(os.path.exists(os.path.join(build, 'lib', 'libinner.so.1')))
        self.assertEqual(os.listdir(os.path.join(build, 'run')), ['libouter.so.2'])
        carried_build.use(build)
        self.assertIn(os.path.join(build, 'run', 'libouter.so.2'), os.environ['LD_LIBRARY_PATH'].split(':'))
        self.assertEqual(os.listdir(os.environ['TUTTI_FASHION_MNIST']), ['train-images-idx3-ubyte.gz'])
        # Once.
        self.put('elsewhere/' + PROGRAM, 'as it is')
        self.take()
        with open(os.path.join(build, PROGRAM), encoding='utf-8') as file:
            self.assertEqual(file.read(), 'as it is')

    def test_a_build_that_does_not_fit_is_not_taken(self):
        self.assertEqual(self.refused_with(), None)
        os.environ['TUTTI_GPU_BUILD'] = self.archive
        self.assertIn('there is no', self.refused_with())
        self.pack(digest='other')
        self.assertIn('was built from other sources than these (abc)', self.refused_with())
        self.pack()
        self.assertIn('built for 90, and here is a GPU of 80', self.refused_with(capability='8.0'))
        # What was configured here goes first.
        self.put('elsewhere/build.ninja')
        self.assertIn('was configured here', self.refused_with())
        os.remove(os.path.join(self.folder, 'elsewhere', 'build.ninja'))
        with open(self.archive, 'r+b') as file:
            file.truncate(os.path.getsize(self.archive) // 2)
        self.assertIn('cannot be read', self.refused_with())

    def refused_with(self, **more):
        """The one sentence."""
        build, what = self.take(**more)
        self.assertIsNone(what)
        self.assertIsNone(carried_build.taken(build))
        self.assertLess(len(self.said), 2)
        return self.said[0] if self.said else None

    def test_half_a_build_is_none(self):
        self.pack()
        build, _ = self.take()
        os.remove(os.path.join(build, PROGRAM))
        # As if the machine had gone while it was unpacked.
        os.remove(os.path.join(build, carried_build.MARK))
        self.assertIsNone(carried_build.taken(build))
        self.take()
        self.assertTrue(os.path.exists(os.path.join(build, PROGRAM)))

    def test_where_a_build_was_brought_nothing_is_needed_to_build(self):
        self.pack(missing=['x (x.h)'])
        environment = self.bare_machine()
        # Neither Meson, nor Ninja, nor what a build needs: with another digest that is what it comes to.
        os.remove(os.path.join(self.folder, 'meson'))
        os.remove(os.path.join(self.folder, 'c++'))
        answer = self.run_sh({**environment, 'TUTTI_GPU_BUILD': self.archive}, '--minutes', '2', 'backend_objects_cuda')
        self.assertEqual(answer.returncode, 0, answer.stdout + answer.stderr)
        with open(os.path.join(self.folder, 'results.json'), encoding='utf-8') as file:
            results = json.load(file)
        self.assertEqual(results['parts']['tests backend_objects_cuda']['status'], 'ok')
        self.assertEqual((results['commit'], results['cuda']), ('abc', '13.0'))
        # Headers count where it was built.
        self.assertEqual([what for what in results['missing'] if what.endswith('.h)')], ['x (x.h)'])
        bucketed = 'resnet50 b256 bf16 training bucketed'
        for words, says in ((('--minutes', '6'), True), (('--again',), False)):
            self.run_sh({**environment, 'TUTTI_GPU_BUILD': self.archive}, *words, bucketed)
            log = os.path.join(environment['TUTTI_BUILD_DIR'], 'logs', f'bench-{bucketed.replace(" ", "-")}.log')
            with open(log, encoding='utf-8') as file:
                self.assertEqual('--quadruples 4' in file.readline(), says)
        self.pack(digest='other')
        answer = self.run_sh({**environment, 'TUTTI_GPU_BUILD': self.archive}, 'backend_objects_cuda')
        self.assertEqual(answer.returncode, 1)
        self.assertIn('was built from other sources', answer.stdout)

    def test_a_machine_without_a_gpu_packs(self):
        environment = self.bare_machine('cat', 'touch', 'strip', 'git')
        build = self.built()
        self.program('ninja', f'echo "$*" >> {self.folder}/ninja-was-asked; exit ${{NINJA_FAILS:-0}}')
        os.remove(os.path.join(self.folder, 'nvidia-smi'))
        for header in (*packages.HEADERS.values(), *packages.WISHED.values()):
            self.put('headers/' + header)
        self.file('yaml.py')
        environment.update(TUTTI_BUILD_DIR=build, CPATH=os.path.join(self.folder, 'headers'))
        answer = self.run_sh({**environment, 'NINJA_FAILS': '1'}, '--archive', self.archive)
        self.assertEqual((answer.returncode, os.path.exists(self.archive)), (1, False), answer.stderr)
        self.assertIn('nothing is packed', answer.stderr)
        answer = self.run_sh(environment, '--archive', self.archive, '--architectures', '80-real')
        self.assertEqual(answer.returncode, 0, answer.stderr)
        what = json.loads(packed_files.first(self.archive))
        self.assertEqual((what['digest'], what['architectures']), (source_digest.of_what_is_built(), ['90-real']))
        with open(os.path.join(self.folder, 'meson-was-asked'), encoding='utf-8') as file:
            asked = file.read()
        self.assertIn('-Dgpu_architectures=90-real -Dcpu=disabled', asked)
        # What was configured before is told of the architectures that were named.
        self.assertIn(f'configure {build} -Dgpu_architectures=80-real', asked)

    def test_nothing_is_packed_of_sources_that_changed(self):
        known = source_digest.of_what_is_built, run_parts.build, run_parts.make_ready, run_parts.toolkit.root
        self.addCleanup(lambda: (setattr(source_digest, 'of_what_is_built', known[0]), setattr(run_parts, 'build', known[1]),
                                 setattr(run_parts, 'make_ready', known[2]), setattr(run_parts.toolkit, 'root', known[3])))
        digests = iter(['before', 'behind'])
        source_digest.of_what_is_built = lambda: next(digests)
        run_parts.build, run_parts.make_ready = lambda *words: True, lambda clock: ([], '')
        run_parts.toolkit.root = lambda: self.folder
        arguments = run_parts.parsed(['--archive', self.archive])
        with self.assertRaises(SystemExit) as ended:
            run_parts.archive(arguments, run_parts.Clock(None))
        self.assertIn('changed while they were built', ended.exception.code)
        self.assertFalse(os.path.exists(self.archive))

    def test_what_is_alike_is_stored_once(self):
        block = os.urandom(1 << 20)
        packed_files.pack(self.archive, [(f'{i}', block) for i in range(20)])
        self.assertLess(os.path.getsize(self.archive), 1.1 * len(block))
        self.assertEqual(packed_files.first(self.archive), block)
        self.assertEqual(packed_files.filters(1 << 40, 6)[0]['dict_size'], packed_files.MOST_DICTIONARY)

    def test_an_archive_is_not_trusted(self):
        link = tarfile.TarInfo('link')
        link.type, link.linkname = tarfile.SYMTYPE, '/etc/passwd'
        for head in (tarfile.TarInfo('../x'), tarfile.TarInfo('/tmp/x'), tarfile.TarInfo('a/../../x'), link):
            with lzma.open(self.archive, 'wb') as stream, tarfile.open(fileobj=stream, mode='w|') as archive:
                archive.addfile(head, io.BytesIO())
            with self.assertRaises(packed_files.DAMAGED):
                packed_files.unpack(self.archive, os.path.join(self.folder, 'target'))
        self.assertEqual(os.listdir(self.folder), ['build.tar.xz'])

    def plans(self, folder, **made):
        """A call that finds and makes such plans; what it finds, and what was said."""
        environment, said = {}, []
        with carried_plans.carried(os.path.join(self.folder, folder), self.folder, environment, said.append):
            used = environment[carried_plans.VARIABLE]
            found = sorted(os.listdir(used))
            for name, data in made.items():
                with open(os.path.join(used, name), 'wb') as file:
                    file.write(data)
        return used, found, said

    def test_plans_go_on_on_another_machine(self):
        self.assertEqual(self.plans('one', a=b'1')[1:], ([], []))
        used, found, _ = self.plans('two', b=b'2')
        self.assertEqual(found, ['a'])
        # For their owner alone, or the library does not read them.
        self.assertEqual(stat.S_IMODE(os.stat(used).st_mode), 0o700)
        self.assertEqual(stat.S_IMODE(os.stat(os.path.join(used, 'a')).st_mode), 0o600)
        used, found, _ = self.plans('three')
        self.assertEqual(found, ['a', 'b'])
        # What is there is newer.
        self.plans('one', a=b'3')
        with open(os.path.join(self.plans('two')[0], 'a'), 'rb') as file:
            self.assertEqual(file.read(), b'1')
        # Where somebody says where they are, they are there.
        environment = {carried_plans.VARIABLE: 'off'}
        with carried_plans.carried(os.path.join(self.folder, 'four'), self.folder, environment, self.said.append):
            self.assertEqual(environment, {carried_plans.VARIABLE: 'off'})
        self.assertFalse(os.path.exists(os.path.join(self.folder, 'four')))

    def test_plans_that_are_too_large_stay_behind(self):
        known = carried_plans.MOST_BYTES
        self.addCleanup(setattr, carried_plans, 'MOST_BYTES', known)
        carried_plans.MOST_BYTES = 1 << 14
        self.assertEqual(self.plans('one', a=os.urandom(12000))[2], [])
        # With those of before it is too much: those of this call are kept.
        os.utime(os.path.join(self.folder, 'one', 'a'), (1, 1))
        self.assertEqual(self.plans('one', b=os.urandom(12000))[2], [])
        self.assertEqual(self.plans('two')[1], ['b'])
        said = self.plans('two', c=os.urandom(30000))[2]
        self.assertEqual((len(said), 'plans are not kept' in said[0]), (1, True))
        self.assertEqual(self.plans('three')[1], ['b'])
        self.assertFalse([name for name in os.listdir(self.folder) if '.all' in name or '.new' in name])

    def test_plans_that_are_damaged_are_made_anew(self):
        self.file(carried_plans.NAME, 'no archive')
        used, found, said = self.plans('one', a=b'1')
        self.assertEqual((found, len(said)), ([], 1))
        self.assertIn('cannot be read', said[0])
        self.assertEqual(self.plans('two')[1], ['a'])
        self.assertEqual(used, os.path.join(self.folder, 'one'))

    def test_parts_that_measure_use_them_and_tests_do_not(self):
        build = self.built()
        os.environ['PATH'] = self.folder + ':' + os.environ['PATH']
        listed = [*parts.tests(build), *parts.sanitize(build, ''), *parts.bench(build)]
        self.assertEqual({part.group for part in listed if dict(part.environment).get('TUTTI_CACHE_DIR') == 'off'},
                         {'tests', 'sanitize'})


if __name__ == '__main__':
    unittest.main()
