#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A folder that Maven takes artifacts from, as a repository's: <url>file://FOLDER</url>

usage: maven_repository.py FOLDER VERSION POM [CLASSIFIER=SOURCE]...

SOURCE is a jar, or a folder or several, with commas between them, of which a jar is made. An empty CLASSIFIER is the main
artifact. Each file has its checksums beside it; the layout is that of Maven's repositories.
"""
import hashlib
import os
import sys
import time

import zip_archive

GROUP, ARTIFACT = 'org.tutti', 'tutti'
MANIFEST = ('META-INF/MANIFEST.MF', b'Manifest-Version: 1.0\n\n')


def place(path, data):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, 'wb') as file:
        file.write(data)
    for name in ('md5', 'sha1', 'sha256', 'sha512'):
        with open(f'{path}.{name}', 'w', encoding='ascii') as file:
            file.write(hashlib.new(name, data).hexdigest())


def jar_of(folders, scratch):
    entries = [entry for folder in folders.split(',') for entry in zip_archive.tree(folder)]
    zip_archive.write(scratch, [MANIFEST, *entries], first=[MANIFEST[0]])
    data = zip_archive.read(scratch)
    os.remove(scratch)
    return data


def metadata(version):
    moment = time.strftime('%Y%m%d%H%M%S', time.gmtime(zip_archive.epoch()))
    return ('<?xml version="1.0" encoding="UTF-8"?>\n<metadata>\n'
            f'  <groupId>{GROUP}</groupId>\n  <artifactId>{ARTIFACT}</artifactId>\n  <versioning>\n'
            f'    <latest>{version}</latest>\n    <release>{version}</release>\n    <versions>\n'
            f'      <version>{version}</version>\n    </versions>\n    <lastUpdated>{moment}</lastUpdated>\n'
            '  </versioning>\n</metadata>\n').encode()


def main(folder, version, pom, *pairs):
    artifact = os.path.join(folder, *GROUP.split('.'), ARTIFACT)
    stem = os.path.join(artifact, version, f'{ARTIFACT}-{version}')
    place(stem + '.pom', zip_archive.read(pom))
    for pair in pairs:
        classifier, source = pair.split('=', 1)
        is_jar = source.endswith('.jar')
        data = zip_archive.read(source) if is_jar else jar_of(source, os.path.join(folder, 'scratch.jar'))
        place(stem + (f'-{classifier}' if classifier else '') + '.jar', data)
    place(os.path.join(artifact, 'maven-metadata.xml'), metadata(version))
    return 0


if __name__ == '__main__':
    sys.exit(main(*sys.argv[1:]))
