#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A folder that Go takes modules from: GOPROXY=file://FOLDER go get tutti.org/tutti@v0.1.0

usage: go_proxy.py SOURCE VERSION FOLDER

SOURCE: the sources of tutti. The form is that of https://go.dev/ref/mod#goproxy-protocol.
"""
import json
import os
import sys
import time

import zip_archive

LEFT_OUT = ('.py', '.build', '.txt')


def main(source, version, folder):
    module = os.path.join(source, 'bindings', 'go')
    with open(os.path.join(module, 'go.mod'), encoding='utf-8') as file:
        description = file.read()
    name, tag = description.split()[1], 'v' + version
    entries = [(path, data) for path, data in zip_archive.tree(module) if not path.endswith(LEFT_OUT)]
    entries.append(('LICENSE', zip_archive.read(os.path.join(source, 'LICENSE'))))
    place = os.path.join(folder, name, '@v')
    zip_archive.write(os.path.join(place, tag + '.zip'), [(f'{name}@{tag}/{path}', data) for path, data in entries])
    moment = time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime(zip_archive.epoch()))
    for suffix, text in {
        tag + '.mod': description,
        tag + '.info': json.dumps({'Version': tag, 'Time': moment}) + '\n',
        'list': tag + '\n',
    }.items():
        with open(os.path.join(place, suffix), 'w', encoding='utf-8') as file:
            file.write(text)
    return 0


if __name__ == '__main__':
    sys.exit(main(*sys.argv[1:]))
