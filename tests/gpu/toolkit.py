# SPDX-License-Identifier: Apache-2.0
"""Where nvcc's toolkit is, and cuDNN, NCCL and cuBLASLt: in it, or in the packages of a Python that has PyTorch."""
import glob
import os
import re
import shutil
import site
import subprocess
import sys

# Header and library of each; the folders of the second have nothing else that a toolkit has, too.
PARTS = {
    'cuDNN': ('cudnn_graph.h', 'libcudnn.so.*'),
    'NCCL': ('nccl.h', 'libnccl.so.*'),
    'cuBLASLt': ('cublasLt.h', 'libcublasLt.so.*'),
    'NVRTC': ('nvrtc.h', 'libnvrtc.so.*'),
}


# Where a toolkit is looked for, and its programs would be, if nothing else tells.
USUAL = '/usr/local/cuda'


def is_header(missing):
    """Whether what is missing is wanted for a build alone."""
    return missing.endswith('.h)')


def root():
    """The folder of the toolkit; None where there is no nvcc."""
    nvcc = shutil.which('nvcc') or shutil.which('nvcc', path=USUAL + '/bin')
    return os.path.dirname(os.path.dirname(os.path.realpath(nvcc))) if nvcc else None


def release(folder):
    """Of the toolkit: "13.0"."""
    try:
        answer = subprocess.run([os.path.join(folder, 'bin', 'nvcc'), '--version'], capture_output=True, text=True, check=False)
    except OSError:
        return 'unknown'
    found = re.search(r'release ([\d.]+)', answer.stdout)
    return found[1] if found else 'unknown'


def python_folders():
    """Folders where packages of Python keep NVIDIA's libraries."""
    folders = site.getsitepackages() + [site.getusersitepackages()] + [path for path in sys.path if path]
    return sorted({inner for folder in folders for inner in glob.glob(os.path.join(folder, 'nvidia', '*'))})


def first(pattern, folders):
    """The first folder in which something matches."""
    return next((folder for folder in folders if glob.glob(os.path.join(folder, pattern))), None)


def loader_knows(library):
    answer = subprocess.run(['ldconfig', '-p'], capture_output=True, text=True, check=False)
    return library.replace('*', '') in answer.stdout


def lists(toolkit):
    """What has to be added to the compiler's and the loader's folders, and what was not found at all."""
    includes, libraries, missing = [], [], []
    packages = python_folders()
    for name, (header, library) in PARTS.items():
        if not os.path.exists(os.path.join(toolkit, 'include', header)) and not os.path.exists('/usr/include/' + header):
            found = first(header, [os.path.join(folder, 'include') for folder in packages])
            if found:
                includes.append(found)
            else:
                missing.append(f'{name} ({header})')
        if first(library, [os.path.join(toolkit, 'lib64'), os.path.join(toolkit, 'lib')]) or loader_knows(library):
            continue
        found = first(library, [os.path.join(folder, 'lib') for folder in packages])
        if found:
            libraries.append(found)
        else:
            missing.append(f'{name} ({library})')
    return list(dict.fromkeys(includes)), list(dict.fromkeys(libraries)), missing


def environment(toolkit):
    """The environment in which the backend is built and run, and what is missing of it."""
    includes, libraries, missing = lists(toolkit)
    changed = dict(os.environ)
    for variable, folders in (('CPATH', includes), ('LD_LIBRARY_PATH', libraries)):
        paths = folders + [path for path in changed.get(variable, '').split(':') if path]
        if paths:
            changed[variable] = ':'.join(paths)
    changed['PATH'] = changed.get('PATH', '') + ':' + os.path.join(toolkit, 'bin')
    return changed, missing


def gpus():
    """[(name, driver, compute capability), ...]"""
    tool = shutil.which('nvidia-smi') or shutil.which('nvidia-smi', path='/usr/local/nvidia/bin:/usr/bin')
    if tool is None:
        return []
    answer = subprocess.run([tool, '--query-gpu=name,driver_version,compute_cap', '--format=csv,noheader'],
                            capture_output=True, text=True, check=False)
    rows = [tuple(cell.strip() for cell in line.split(',')) for line in answer.stdout.splitlines() if line.strip()]
    return [row for row in rows if len(row) == 3] if answer.returncode == 0 else []


def visible(count):
    """Of so many GPUs, those that programs find."""
    listed = os.environ.get('CUDA_VISIBLE_DEVICES')
    return count if listed is None else min(count, len([word for word in listed.split(',') if word.strip()]))
