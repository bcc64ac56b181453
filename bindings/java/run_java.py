#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the tests and examples of the Java package, with the library of a build folder that need not be installed.

usage: run_java.py class_path                                   where JUnit 4 is; empty when it is not here
       run_java.py test BUILD_FOLDER JAVA_HOME [CLASS...]       all tests, or those of some classes
       run_java.py checked BUILD_FOLDER JAVA_HOME [CLASS...]    under -Xcheck:jni, which must not warn, with little memory
       run_java.py installed BUILD_FOLDER JAVA_HOME             installs into a folder, and runs hello with that
       run_java.py modules BUILD_FOLDER JAVA_HOME               runs a module of one's own with the jars on the module path
       run_java.py samples BUILD_FOLDER JAVA_HOME               compiles the samples of the documentation
       run_java.py example BUILD_FOLDER JAVA_HOME NAME          compiles a program of examples/java, and runs it as a test
       run_java.py scenario_program BUILD_FOLDER JAVA_HOME FOLDER   makes a program that does scenarios as a worker; prints its path
       run_java.py measure BUILD_FOLDER JAVA_HOME              prints what calls cost
"""
import filecmp
import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile

import samples as documentation

HERE = os.path.dirname(os.path.abspath(__file__))
EXAMPLES = os.path.join(os.path.dirname(os.path.dirname(HERE)), 'examples', 'java')
RUN_EXAMPLE = os.path.join(os.path.dirname(EXAMPLES), 'run_example.py')
SERVING_CLIENT = os.path.join(os.path.dirname(EXAMPLES), 'serving_client.py')
JARS = '/usr/share/java'
# A heap that is all there from the start: what the process grows by is not the heap.
PLAIN = ('-Xms256m', '-Xmx256m', '-XX:+AlwaysPreTouch')
CHECKS = ('-Xcheck:jni', '-Xms64m', '-Xmx64m', '-XX:+AlwaysPreTouch', '-XX:MaxDirectMemorySize=256m')
# What -Xcheck:jni writes, maybe behind the dots of JUnit; it does not stop for it.
JNI_COMPLAINT = re.compile(r'(WARNING in native method|FATAL ERROR in native method|WARNING: JNI|Warning: JNI).*')


def class_path():
    """JUnit 4 and what it needs, by the names that Debian gives them."""
    junit, hamcrest = glob.glob(os.path.join(JARS, 'junit4.jar')), sorted(glob.glob(os.path.join(JARS, 'hamcrest*.jar')))
    plain = [path for path in hamcrest if re.fullmatch(r'hamcrest(-core|-library)?\.jar', os.path.basename(path))]
    return ':'.join(junit + plain) if junit and plain else ''


def output_of(build):
    return os.path.join(build, 'bindings', 'java')


def test_classes(jar):
    with zipfile.ZipFile(jar) as file:
        return sorted(name[:-len('.class')].replace('/', '.') for name in file.namelist() if name.endswith('Test.class'))


def run_tests(build, java_home, flags, classes):
    folder = output_of(build)
    tests = os.path.join(folder, 'tutti-tests.jar')
    path = ':'.join([os.path.join(folder, 'tutti.jar'), tests, class_path()])
    names = [f'org.tutti.{name}' for name in classes] or test_classes(tests)
    command = [os.path.join(java_home, 'bin', 'java'), *flags, '-ea', '-Djava.library.path=' + folder,
               '-Dtutti.test.readme=' + os.path.join(HERE, 'README.md'), '-Dtutti.test.examples=' + EXAMPLES,
               '-Dtutti.test.sources=' + os.path.join(HERE, 'src', 'main', 'java'), '-cp', path, 'org.junit.runner.JUnitCore', *names]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
                          errors='replace')
    print(done.stdout)
    complaint = JNI_COMPLAINT.search(done.stdout)
    if complaint:
        print('failed: -Xcheck:jni says:', complaint.group(0))
    return 1 if done.returncode or complaint else 0


def launcher(folder, java_home, flags, class_name):
    """A script that runs a class as if it were a program, for run_example.py."""
    path = os.path.join(folder, class_name)
    words = [os.path.join(java_home, 'bin', 'java'), *flags, class_name]
    with open(path, 'w', encoding='utf-8') as file:
        file.write('#!/bin/sh\nexec ' + ' '.join(f"'{word}'" for word in words) + ' "$@"\n')
    os.chmod(path, 0o755)
    return path


def compiled(folder, java_home, jar, source):
    subprocess.run([os.path.join(java_home, 'bin', 'javac'), '--release', '17', '-Xlint:all', '-Werror',
                    '-encoding', 'UTF-8', '-cp', jar, '-d', folder, source], check=True)


def example(build, java_home, name):
    class_name = ''.join(part.capitalize() for part in name.split('_'))
    jar = os.path.join(output_of(build), 'tutti.jar')
    with tempfile.TemporaryDirectory() as folder:
        compiled(folder, java_home, jar, os.path.join(EXAMPLES, class_name + '.java'))
        flags = ['-Djava.library.path=' + output_of(build), '-cp', f'{jar}:{folder}']
        test = [SERVING_CLIENT] if name == 'serving' else [RUN_EXAMPLE, name]
        program = launcher(folder, java_home, flags, class_name)
        return subprocess.run([sys.executable, *test, program], check=False).returncode


def installed(build, java_home):
    """hello by each way to the native library, with nothing of the build or source folder; what is told where there is none."""
    with tempfile.TemporaryDirectory() as folder:
        system = os.path.join(folder, 'system')
        subprocess.run(['meson', 'install', '-C', build, '--no-rebuild', '--quiet', '--destdir', system], check=True,
                       stdout=subprocess.DEVNULL)
        (jar,) = glob.glob(os.path.join(system, '**', 'java', 'tutti.jar'), recursive=True)
        if not filecmp.cmp(jar, os.path.join(output_of(build), 'tutti.jar'), shallow=False):
            print('failed: the jar that was installed is another one than that which was built')
            return 1
        (jni,) = glob.glob(os.path.join(system, '**', 'jni', 'libtuttijni.so'), recursive=True)
        (library,) = glob.glob(os.path.join(system, '**', 'libtutti.so'), recursive=True)
        natives = shutil.copy(glob.glob(os.path.join(output_of(build), 'tutti-natives-*.jar'))[0], folder)
        shutil.copy(os.path.join(EXAMPLES, 'Hello.java'), folder)
        compiled(folder, java_home, jar, os.path.join(folder, 'Hello.java'))
        plain, libraries = ['-cp', f'{jar}:{folder}'], os.path.dirname(library)
        ways = {'java.library.path': (['-Djava.library.path=' + os.path.dirname(jni), *plain], libraries),
                'tutti.library.path': (['-Dtutti.library.path=' + jni, *plain], libraries),
                'natives': (['-Djava.library.path=' + folder, '-cp', f'{jar}:{natives}:{folder}'], '')}
        flags = ways['natives'][0]
        ways['natives unpacked in the cache'] = ['-Djava.io.tmpdir=/proc/none', '-Duser.home=' + folder, *flags], ''
        ways['natives unpacked where it was said'] = [f'-Dtutti.unpack.path={folder}/here', *flags], ''
        for way, (flags, path) in ways.items():
            program = launcher(folder, java_home, flags, 'Hello')
            done = subprocess.run([sys.executable, RUN_EXAMPLE, 'hello', program], check=False,
                                  env={**without_cache(), 'LD_LIBRARY_PATH': path})
            if done.returncode:
                print('failed: found by', way)
                return 1
        if not plugin_found(folder, java_home, jar, natives):
            print('failed: a plug-in in a jar of its own')
            return 1
        left = glob.glob(os.path.join(folder, '**', 'tutti-natives-*', ''), recursive=True)
        done = subprocess.run([launcher(folder, java_home, ['-Dtutti.unpack.path=/proc/none', *ways['natives'][0]], 'Hello')],
                              stderr=subprocess.PIPE, text=True, check=False, env=without_cache())
        print(done.stderr, 'left behind:', left)
        if 'the jar of natives, unpacked in /proc/none' not in done.stderr or left:
            return 1
        half = os.path.join(folder, 'half.jar')
        with open(natives, 'rb') as whole, open(half, 'wb') as file:
            file.write(whole.read(os.path.getsize(natives) // 2))
        flags = ['-Djava.library.path=' + folder, '-cp', f'{jar}:{half}:{folder}']
        done = subprocess.run([launcher(folder, java_home, flags, 'Hello')], stderr=subprocess.PIPE, text=True, check=False,
                              env=without_cache())
        print(done.stderr)
        return 0 if f'{half} on the class path cannot be read: ' in done.stderr else 1


ASKS_FOR_CUDA = '''import org.tutti.Context;
import org.tutti.ContextOptions;
import org.tutti.TuttiException;

public class AsksForCuda {
    public static void main(String[] arguments) {
        try (Context context = new Context(new ContextOptions().backend("cuda"))) {
            System.out.println(context);
        } catch (TuttiException error) {
            System.out.println(error.getMessage());
        }
    }
}
'''


def plugin_found(folder, java_home, jar, natives):
    """A plug-in from a jar of its own lies beside the library: one that is no library is refused, by its path there."""
    plugin, source = os.path.join(folder, 'tutti-cuda.so'), os.path.join(folder, 'AsksForCuda.java')
    for path, text in {plugin: 'no library', source: ASKS_FOR_CUDA}.items():
        with open(path, 'w', encoding='utf-8') as file:
            file.write(text)
    compiled(folder, java_home, jar, source)
    plugins = os.path.join(folder, 'plugins.jar')
    subprocess.run([sys.executable, os.path.join(HERE, 'build_java.py'), 'plugins', os.path.join(folder, 'plugins'), plugins, 'cuda',
                    jar, os.path.join(java_home, 'bin', 'javac'), plugin], check=True)
    unpacked = os.path.join(folder, 'beside')
    # Wherever the jar stands on the class path.
    for class_path in ([jar, natives, plugins, folder], [plugins, jar, natives, folder]):
        command = [os.path.join(java_home, 'bin', 'java'), '-Djava.library.path=' + folder, '-Dtutti.unpack.path=' + unpacked,
                   '-cp', ':'.join(class_path), 'AsksForCuda']
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False, env=without_cache())
        print(done.stdout)
        if done.returncode or not re.search(re.escape(unpacked) + '/tutti-natives-[^/]+/tutti-cuda.so', done.stdout):
            return False
    return True


def without_cache():
    return {name: value for name, value in os.environ.items() if name not in ('XDG_CACHE_HOME', 'LD_LIBRARY_PATH')}


def run_module(java_home, folder, module_path, *more):
    """The output of the module "program" in a process without a library path; none when it fails."""
    command = [os.path.join(java_home, 'bin', 'java'), '-Djava.library.path=' + folder, '--module-path', ':'.join(module_path), *more,
               '--module', 'program/program.Main']
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
                          env={**os.environ, 'LD_LIBRARY_PATH': ''})
    print(done.stdout)
    return done.stdout if done.returncode == 0 else ''


PROGRAM = {'module-info.java': 'module program {\n    requires org.tutti;\n}\n',
           'Main.java': '''package program;

import org.tutti.NativeFiles;
import org.tutti.Tensor;
import org.tutti.Tutti;

public class Main {
    public static void main(String[] arguments) {
        try (Tensor tensor = Tensor.of(new float[] {1, 2})) {
            System.out.println(Tutti.class.getModule() + " " + Tutti.version() + " " + tensor.toFloats()[1]);
        }
        System.out.println("packages " + NativeFiles.class.getModule().getDescriptor().exports());
    }
}
'''}


def modules(build, java_home):
    """A module that requires org.tutti finds the natives on the module path, on the class path, and not where there are none."""
    jar = os.path.join(output_of(build), 'tutti.jar')
    (natives,) = glob.glob(os.path.join(output_of(build), 'tutti-natives-*.jar'))
    with tempfile.TemporaryDirectory() as folder:
        classes, empty = os.path.join(folder, 'program'), os.path.join(folder, 'empty')
        os.mkdir(empty)
        for name, text in PROGRAM.items():
            with open(os.path.join(folder, name), 'w', encoding='utf-8') as file:
                file.write(text)
        subprocess.run([os.path.join(java_home, 'bin', 'javac'), '--release', '17', '-Xlint:all', '-Werror', '--module-path', jar,
                        '-d', classes, *(os.path.join(folder, name) for name in PROGRAM)], check=True)
        wanted = r'module org\.tutti \d+\.\d+\.\d+ 2\.0\npackages \[org\.tutti\]\n'
        found = [re.search(wanted, run_module(java_home, empty, [jar, natives, classes])),
                 re.search(wanted, run_module(java_home, empty, [jar, classes], '--class-path', natives))]
        print('without natives:')
        return 0 if all(found) and not run_module(java_home, empty, [jar, classes]) else 1


def samples(build, java_home):
    jar = os.path.join(output_of(build), 'tutti.jar')
    found = documentation.documented(os.path.join(output_of(build), 'generated'))
    print(len(found), 'samples')
    with tempfile.TemporaryDirectory() as folder:
        good = documentation.compiles(folder, java_home, jar, found)
    with tempfile.TemporaryDirectory() as folder:
        print('one that must not compile:')
        bad = documentation.compiles(folder, java_home, jar, [documentation.BROKEN])
    return 0 if len(found) > 9 and good and not bad else 1


def scenario_program(build, java_home, folder):
    output = output_of(build)
    path = ':'.join([os.path.join(output, 'tutti.jar'), os.path.join(output, 'tutti-tests.jar'), class_path()])
    print(launcher(folder, java_home, ['-Xmx128m', '-ea', '-Djava.library.path=' + output, '-cp', path], 'org.tutti.ScenarioWorker'))
    return 0


def measure(build, java_home):
    folder = output_of(build)
    path = ':'.join(os.path.join(folder, name) for name in ('tutti.jar', 'tutti-tests.jar')) + ':' + class_path()
    command = [os.path.join(java_home, 'bin', 'java'), '-Djava.library.path=' + folder, '-cp', path, 'org.tutti.Overhead']
    return subprocess.run(command, check=False).returncode


def main(what, *arguments):
    if what == 'class_path':
        print(class_path())
        return 0
    build, java_home, *more = arguments
    build = os.path.abspath(build)
    if what in ('test', 'checked'):
        return run_tests(build, java_home, CHECKS if what == 'checked' else PLAIN, more)
    functions = {'installed': installed, 'modules': modules, 'samples': samples, 'example': example, 'scenario_program': scenario_program, 'measure': measure}
    return functions[what](build, java_home, *more)


if __name__ == '__main__':
    sys.exit(main(*sys.argv[1:]))
