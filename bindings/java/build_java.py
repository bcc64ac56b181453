#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the build of the Java package needs beside a C compiler.

usage: build_java.py sources OUTPUT_FOLDER WRAPPER STAMP SWIG      the raw layer from SWIG, and the builders
       build_java.py jar OUTPUT_FOLDER JAR POM JAVAC                the classes of the package, in a jar
       build_java.py natives OUTPUT_FOLDER JAR TUTTI_JAR JAVAC FILE... [beside FILE...] [licences FOLDER]
                                                                    a jar of native libraries, in loading order
       build_java.py plugins OUTPUT_FOLDER JAR NAME TUTTI_JAR JAVAC FILE...
                                                                    a jar of plug-ins, unpacked beside those libraries
       build_java.py installed JAR FOLDER                            what Meson has installed into FOLDER, as it was built
       build_java.py tests OUTPUT_FOLDER JAR CLASS_PATH JAVAC      the tests' classes
       build_java.py javadoc OUTPUT_FOLDER JAVADOC                  the documentation, without a warning

OUTPUT_FOLDER holds the generated sources in "generated". Jars hold no times: equal sources give equal jars.
"""
import glob
import os
import shutil
import subprocess
import sys
import zipfile

import builders

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
MAIN, TESTS = os.path.join(HERE, 'src', 'main', 'java'), os.path.join(HERE, 'src', 'test', 'java')
NATIVES = os.path.join(HERE, 'src', 'natives')
RELEASE = '17'
EPOCH = (1980, 1, 1, 0, 0, 0)
RAW = ('Raw.java', 'RawConstants.java', 'RawNative.java')


def fresh(folder):
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    return folder


def write(path, text):
    with open(path, 'w', encoding='utf-8') as file:
        file.write(text)


def sources(output, wrapper, stamp, swig):
    folder = fresh(os.path.join(output, 'generated', 'org', 'tutti'))
    swig_folder = os.path.join(ROOT, 'bindings', 'swig')
    subprocess.run([swig, '-java', '-package', 'org.tutti', '-Wall', '-Werror', '-I' + os.path.join(ROOT, 'include'),
                    '-I' + swig_folder, '-outdir', folder, '-o', wrapper, os.path.join(swig_folder, 'tutti_java.i')],
                   check=True)
    for name in RAW:
        path = os.path.join(folder, name)
        with open(path, encoding='utf-8') as file:
            text = file.read()
        # SWIG can make its classes invisible outside the package, but not its interface of constants.
        write(path, text.replace('public interface', 'interface', 1))
    for name, text in builders.files().items():
        write(os.path.join(folder, name), text)
    write(stamp, '')


def java_files(*folders):
    return sorted(path for folder in folders for path in glob.glob(os.path.join(folder, '**', '*.java'), recursive=True))


def write_jar(jar, entries):
    """Entries are name and bytes; the same ones give the same jar."""
    with zipfile.ZipFile(jar, 'w', zipfile.ZIP_DEFLATED) as file:
        for name, data in [('META-INF/MANIFEST.MF', b'Manifest-Version: 1.0\n\n')] + sorted(entries):
            information = zipfile.ZipInfo(name, EPOCH)
            information.compress_type = zipfile.ZIP_DEFLATED
            information.external_attr = 0o644 << 16
            file.writestr(information, data)


def read(path):
    with open(path, 'rb') as file:
        return file.read()


def compile_java(javac, classes, paths, *flags):
    # Warnings are shown, not errors: later JDKs have new ones.
    # -g: what Java says of a null has the parameter's name.
    arguments = [javac, '--release', RELEASE, '-g', '-encoding', 'UTF-8', '-Xlint:all,-try', '-d', fresh(classes)]
    subprocess.run([*arguments, *flags, *paths], check=True)
    found = glob.glob(os.path.join(classes, '**', '*.class'), recursive=True)
    return [(os.path.relpath(path, classes), read(path)) for path in found]


def jar(output, target, pom, javac):
    entries = compile_java(javac, os.path.join(output, 'classes'), java_files(MAIN, os.path.join(output, 'generated')))
    write_jar(target, entries + [('META-INF/maven/org.tutti/tutti/pom.xml', read(pom))])


def installed(built, folder):
    """Meson runs jar over a jar that it installs, which writes the time of the day, and puts the manifest last."""
    shutil.copyfile(built, os.path.join(os.environ['MESON_INSTALL_DESTDIR_PREFIX'], folder, os.path.basename(built)))


def tests(output, target, class_path, javac):
    write_jar(target, compile_java(javac, os.path.join(output, 'test_classes'), java_files(TESTS), '-cp', class_path))


def filled(name, **words):
    with open(os.path.join(NATIVES, name), encoding='utf-8') as file:
        text = file.read()
    for word, value in words.items():
        text = text.replace(f'@{word}@', value)
    return text


def provider(output, module, platform, folder, tutti_jar, javac):
    """The class by which the jar is found, on the class path and on the module path, and the module."""
    paths = []
    for name in ('module-info.java', 'Files.java'):
        paths.append(os.path.join(fresh(os.path.join(output, 'natives', name[:-5])), name))
        write(paths[-1], filled(name + '.in', MODULE=module, PLATFORM=platform, FOLDER=folder))
    return compile_java(javac, os.path.join(output, 'natives_classes'), paths, '--module-path', tutti_jar)


def natives(output, target, tutti_jar, javac, *files):
    """Files behind the word `beside` are what the others need, and plug-ins: they are unpacked, not loaded. Behind
    `licences` is the folder of the texts that go with them."""
    files, texts = list(files), []
    if 'licences' in files:
        folder = files.pop(files.index('licences') + 1)
        files.remove('licences')
        texts = [('META-INF/licences/' + name, read(os.path.join(folder, name))) for name in sorted(os.listdir(folder))]
    loaded = files[:files.index('beside')] if 'beside' in files else files
    write_natives(output, target, '', loaded, files[len(loaded) + 1:], tutti_jar, javac, texts)


def plugins(output, target, name, tutti_jar, javac, *files):
    """`name` tells such jars apart; what they hold is unpacked into the folder of the jar of natives."""
    write_natives(output, target, name, [], files, tutti_jar, javac)


def write_natives(output, target, name, loaded, beside, tutti_jar, javac, texts=()):
    machine = os.uname().machine
    platform, module = 'linux-' + machine, '.'.join(['org.tutti.natives.linux', machine, *([name] if name else [])])
    # No package, by its name, so that nothing encapsulates it.
    folder = f'org/tutti/natives/{platform}/' + (name + '/' if name else '')
    # The wrapper asks for the library by its soname, which is loaded before it.
    entries = [(folder + soname(path), read(path)) for path in loaded]
    entries += [(folder + os.path.basename(path), read(path)) for path in beside]
    names = ''.join(soname(path) + '\n' for path in loaded)
    names += ''.join(f'beside {os.path.basename(path)}\n' for path in beside)
    entries += [(folder + 'files.txt', names.encode()),
                ('META-INF/services/org.tutti.NativeFiles', f'{module}.Files\n'.encode())]
    write_jar(target, entries + list(texts) + provider(output, module, platform, folder, tutti_jar, javac))


def soname(path):
    name = os.path.basename(path)
    parts = name.split('.so.')
    return name if len(parts) == 1 else parts[0] + '.so.' + '.'.join(parts[1].split('.')[:2])


def javadoc(output, program):
    folder = fresh(os.path.join(output, 'javadoc'))
    command = [program, '-quiet', '-Xdoclint:all', '-Werror', '--release', RELEASE, '-encoding', 'UTF-8', '-public',
               '-notimestamp']
    done = subprocess.run(command + ['-d', folder, *java_files(MAIN, os.path.join(output, 'generated'))],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    print(done.stdout)
    return 1 if done.returncode or 'warning' in done.stdout else 0


if __name__ == '__main__':
    steps = {'sources': sources, 'jar': jar, 'natives': natives, 'plugins': plugins, 'tests': tests, 'javadoc': javadoc,
             'installed': installed}
    sys.exit(steps[sys.argv[1]](*sys.argv[2:]))
