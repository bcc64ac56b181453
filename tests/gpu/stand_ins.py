# SPDX-License-Identifier: Apache-2.0
"""For tests of what run.sh is made of: a folder of their own, and a machine that has a GPU and a toolkit by name alone."""
import os
import shutil
import subprocess
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))


class InFolder(unittest.TestCase):
    def setUp(self):
        kept = tempfile.TemporaryDirectory(prefix='tutti-gpu-test-')
        self.addCleanup(kept.cleanup)
        self.folder = os.path.join(kept.name, 'results')
        os.makedirs(self.folder)

    def file(self, name, text=''):
        path = os.path.join(self.folder, name)
        with open(path, 'w', encoding='utf-8') as file:
            file.write(text)
        return path

    def program(self, name, text):
        os.chmod(self.file(name, '#!/bin/sh\n' + text + '\n'), 0o755)

    def bare_machine(self, *tools):
        """With a GPU and a toolkit, and with hardly anything else; its environment. Headers are where CPATH says."""
        self.program('nvidia-smi', 'echo "a GPU, 1.0, 9.0"')
        self.program('nvcc', 'exit 1')
        self.program('c++', 'header=$(sed -n "s/.*<\\(.*\\)>.*/\\1/p")\n'
                     'for folder in $(echo "$CPATH" | tr : " "); do test -e "$folder/$header" && exit 0; done\nexit 1')
        for name in ('python3', 'sh', 'dirname', 'sed', 'basename', 'grep', 'ldconfig', 'tr', *tools):
            found = shutil.which(name, path='/usr/bin:/bin:/usr/sbin:/sbin')
            if found:
                os.symlink(found, os.path.join(self.folder, name))
        # Nothing is asked of an index on the way.
        self.pip('import sys\nsys.exit(1)\n')
        return {'PATH': self.folder, 'PYTHONPATH': self.folder, 'TUTTI_RESULTS': self.folder,
                'TUTTI_PACKAGES': os.path.join(self.folder, 'packages'), 'TUTTI_BUILD_DIR': os.path.join(self.folder, 'build'),
                'TUTTI_FASHION_MNIST': os.path.join(self.folder, 'nowhere'),
                'TUTTI_GPU_BUILD': os.path.join(self.folder, 'no-build')}

    def pip(self, text):
        os.makedirs(os.path.join(self.folder, 'pip'), exist_ok=True)
        self.file(os.path.join('pip', '__init__.py'))
        self.file(os.path.join('pip', '__main__.py'), text)

    def run_sh(self, environment, *words):
        return subprocess.run(['/bin/sh', os.path.join(HERE, 'run.sh'), *words], capture_output=True, text=True, check=False,
                              env=environment)
