# SPDX-License-Identifier: Apache-2.0
"""What a build needs beside the toolkit. What the machine lacks comes from a folder of unpacked packages: brought along, or
filled here, by apt where that reaches its archive (carry.sh), by pip as far as that goes."""
import glob
import os
import shutil
import subprocess
import sys

# Beside them the toolkit is needed, which toolkit.py looks for.
PROGRAMS = {'Meson': 'meson', 'Ninja': 'ninja', 'a C++ compiler': 'c++'}
HEADERS = {'the headers of nlohmann_json': 'nlohmann/json.hpp', 'the headers of zlib': 'zlib.h', 'cmocka': 'cmocka.h',
           'the headers of protozero': 'protozero/pbf_reader.hpp', 'the headers of CLI11': 'CLI/CLI.hpp'}
YAML = 'PyYAML'
# Without them there is less to test.
WISHED = {'Gloo': 'gloo/transport/tcp/device.h'}
FASHION_MNIST = '/usr/share/datasets/fashion-mnist'
# What pip has of all that.
WHEELS = {'Meson': 'meson', 'Ninja': 'ninja', YAML: 'PyYAML'}
MOST_SECONDS = 180  # for each of both
# In a folder that carry.sh may make anew.
MARK = 'carried'


def folder():
    """Where unpacked packages are, or would be."""
    return os.path.abspath(os.environ.get('TUTTI_PACKAGES') or os.path.join('build', 'packages'))


def add(variable, folders, in_front=False):
    """To a list of folders in the environment."""
    there = [each for each in os.environ.get(variable, '').split(':') if each]
    more = [each for each in folders if each not in there]
    if more:
        os.environ[variable] = ':'.join([*more, *there] if in_front else [*there, *more])


def unknown_libraries(folder):
    """Of the folders there, each of one library and named for it, those of which the loader knows none."""
    answer = subprocess.run(['ldconfig', '-p'], capture_output=True, text=True, check=False)
    known = {line.split()[0] for line in answer.stdout.splitlines() if line.strip()}
    return [os.path.abspath(library) for library in sorted(glob.glob(os.path.join(folder, '*')))
            if os.path.basename(library) not in known]


def use(packages):
    """This process, and what it starts, finds what is in the folder; what the machine has goes first where that is a program
    or runs with one."""
    if not os.path.isdir(packages):
        return
    usr = os.path.join(packages, 'usr')
    add('PATH', [os.path.join(packages, 'python', 'bin')])
    add('PYTHONPATH', [os.path.join(packages, 'python')])
    add('CPATH', [os.path.join(usr, 'include')], in_front=True)
    add('LIBRARY_PATH', [*sorted(glob.glob(os.path.join(usr, 'lib', '*-linux-gnu'))), os.path.join(usr, 'lib')], in_front=True)
    add('CMAKE_PREFIX_PATH', [usr])
    add('LD_LIBRARY_PATH', unknown_libraries(os.path.join(packages, 'run')))
    os.environ.setdefault('TUTTI_FASHION_MNIST', packages + FASHION_MNIST)


def succeeds(*command, text=''):
    try:
        return subprocess.run(command, input=text, capture_output=True, text=True, check=False).returncode == 0
    except OSError:
        return False


def interpreter_of(script):
    """Which Python runs it: the generators need PyYAML in Meson's."""
    try:
        with open(script, encoding='utf-8') as file:
            words = file.readline().removeprefix('#!').split()
    except (OSError, UnicodeDecodeError):
        words = []
    return words if words and 'python' in words[-1] else ['python3']


def has_header(header):
    return succeeds('c++', '-E', '-x', 'c++', '-', text=f'#if !__has_include(<{header}>)\n#error\n#endif\n')


def lacking():
    """What of all that is not here, by the names of people."""
    found = [name for name, program in PROGRAMS.items() if shutil.which(program) is None]
    if not succeeds(*interpreter_of(shutil.which('meson') or ''), '-c', 'import yaml'):
        found.append(YAML)
    return found + [name for name, header in HEADERS.items() if not has_header(header)]


def wanting():
    """What of it there could be more to test with."""
    found = [name for name, header in WISHED.items() if not has_header(header)]
    if not os.path.isdir(os.environ.get('TUTTI_FASHION_MNIST', FASHION_MNIST)):
        found.append('Fashion-MNIST')
    return found


def fetch(packages, run):
    """Fills the folder with what this machine reaches. `run`: does a command and says whether it went well."""
    if (set(lacking()) - set(PROGRAMS) or wanting()) and has_apt() and run(['sh', 'tests/gpu/carry.sh', packages]):
        use(packages)
    wheels = [WHEELS[name] for name in lacking() if name in WHEELS]
    if wheels and run([sys.executable, '-m', 'pip', 'install', '--quiet', '--disable-pip-version-check', '--retries', '0',
                       '--timeout', '10', '--target', os.path.join(packages, 'python'), *wheels]):
        with open(os.path.join(packages, MARK), 'w', encoding='utf-8'):
            use(packages)


def has_apt():
    return shutil.which('apt-get') is not None and shutil.which('dpkg') is not None


def sentence(lacks, packages):
    """What to do about it."""
    says = f'a build needs {", ".join(lacks)}, not found here'
    if not set(lacks) - set(PROGRAMS):
        return says + ', where pip reaches no index either'
    why = 'apt-get reaches no archive' if has_apt() else 'there is no apt-get'
    return (f'{says}, and {why}: call tests/gpu/carry.sh in these sources on a machine with apt (Debian, Ubuntu), bring what it '
            f'makes, the folder build/packages, here as {packages}, and call run.sh again')
