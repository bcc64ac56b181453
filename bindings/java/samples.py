# SPDX-License-Identifier: Apache-2.0
"""The samples in the documentation compile, as programs outside of the package do: those of Javadoc (<pre>{@code ...}</pre>)
and those of the README (```java).

A sample is a whole file, members of a class, or statements. Members and statements see what Given declares.
"""
import glob
import os
import re
import subprocess
import textwrap

HERE = os.path.dirname(os.path.abspath(__file__))
IMPORTS = '''import java.nio.*;
import java.nio.channels.FileChannel;
import java.nio.file.*;
import java.util.*;
import java.util.stream.Stream;
import org.tutti.*;

'''
GIVEN = IMPORTS + '''class Given {
    static final Dataset dataset = null;
    static final Dataset addresses = null;
    static final Estimator estimator = null;
    static final Predictor predictor = null;
    static final ModelFunction model = null;
    static final Pipeline pipeline = null;
    static final FileChannel file = null;
    static final float[] rows = null;
    static final int[] labels = null;

    static boolean hasArrived(Tensor[] element) {
        return true;
    }
}
'''
# That a sample which does not compile is found: it calls what only the package may.
BROKEN = 'Tensor.share(0L);'


def javadoc_samples(path):
    with open(path, encoding='utf-8') as file:
        text = file.read()
    for match in re.finditer(r'<pre>\{@code\n(.*?)\}</pre>', text, re.S):
        lines = [re.sub(r'^\s*\* ?', '', line) for line in match.group(1).split('\n')]
        yield textwrap.dedent('\n'.join(lines))


def readme_samples(path):
    with open(path, encoding='utf-8') as file:
        return re.findall(r'```java\n(.*?)```', file.read(), re.S)


def source_of(sample, name):
    """The name and text of a file with the sample."""
    whole = re.search(r'^public class (\w+)', sample, re.M)
    if whole:
        return whole.group(1), sample
    is_member = re.match(r'(?:/\*\*.*?\*/\s*)?static ', sample, re.S)
    body = sample if is_member else f'    static void run() throws Exception {{\n{sample}\n    }}\n'
    return name, IMPORTS + f'class {name} extends Given {{\n{body}}}\n'


def compiles(folder, java_home, jar, samples):
    """Whether all do; prints what the compiler says."""
    sources = [('Given', GIVEN)] + [source_of(sample, f'Sample{i}') for i, sample in enumerate(samples)]
    for name, text in sources:
        with open(os.path.join(folder, name + '.java'), 'w', encoding='utf-8') as file:
            file.write(text)
    command = [os.path.join(java_home, 'bin', 'javac'), '--release', '17', '-proc:none', '-encoding', 'UTF-8', '-cp', jar, '-d', folder]
    done = subprocess.run(command + [os.path.join(folder, name + '.java') for name, _ in sources], check=False,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    print(done.stdout)
    return done.returncode == 0


def documented(generated):
    """All samples: of the package, and of the READMEs."""
    sources = glob.glob(os.path.join(HERE, 'src', 'main', 'java', '**', '*.java'), recursive=True)
    sources += glob.glob(os.path.join(generated, '**', '*.java'), recursive=True)
    samples = [sample for path in sorted(sources) for sample in javadoc_samples(path)]
    for readme in (os.path.join(HERE, 'README.md'), os.path.join(HERE, '..', '..', 'README.md')):
        samples += readme_samples(readme)
    return samples
