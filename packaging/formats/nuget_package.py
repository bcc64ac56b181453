#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""NuGet packages without the .NET SDK: a ZIP archive with a description (Open Packaging Conventions, ECMA-376 part 2).

usage: nuget_package.py ID VERSION FOLDER DESCRIPTION [--dependency ID] SOURCE=TARGET...

Writes FOLDER/ID.VERSION.nupkg with each file SOURCE at TARGET; a folder brings all its files. --dependency: a package of the
same version that this one needs.
"""
import argparse
import os
import sys
from xml.sax.saxutils import escape

import zip_archive

HEAD = '<?xml version="1.0" encoding="utf-8"?>\n'
PACKAGE = 'http://schemas.microsoft.com/packaging/2013/05/nuspec.xsd'
RELATIONS = 'http://schemas.openxmlformats.org/package/2006/relationships'
TYPES = 'http://schemas.openxmlformats.org/package/2006/content-types'
KNOWN = {'rels': 'application/vnd.openxmlformats-package.relationships+xml',
         'psmdcp': 'application/vnd.openxmlformats-package.core-properties+xml'}


def nuspec(arguments):
    needs = ''
    if arguments.dependency:
        needs = ('    <dependencies>\n      <group targetFramework=".NETStandard2.0">\n'
                 f'        <dependency id="{arguments.dependency}" version="[{arguments.version}]" />\n'
                 '      </group>\n    </dependencies>\n')
    return (f'{HEAD}<package xmlns="{PACKAGE}">\n  <metadata>\n    <id>{arguments.id}</id>\n'
            f'    <version>{arguments.version}</version>\n    <authors>The tutti authors</authors>\n'
            '    <requireLicenseAcceptance>false</requireLicenseAcceptance>\n'
            '    <license type="expression">Apache-2.0</license>\n'
            '    <licenseUrl>https://licenses.nuget.org/Apache-2.0</licenseUrl>\n    <readme>README.md</readme>\n'
            '    <projectUrl>https://tutti.org</projectUrl>\n'
            f'    <description>{escape(arguments.description)}</description>\n'
            f'    <tags>neural-networks machine-learning training</tags>\n{needs}  </metadata>\n</package>\n')


def core_properties(arguments):
    return (f'{HEAD}<coreProperties xmlns:dc="http://purl.org/dc/elements/1.1/" '
            'xmlns="http://schemas.openxmlformats.org/package/2006/metadata/core-properties">'
            f'<dc:creator>The tutti authors</dc:creator><dc:description>{escape(arguments.description)}</dc:description>'
            f'<dc:identifier>{arguments.id}</dc:identifier><version>{arguments.version}</version></coreProperties>\n')


def relations(arguments, properties):
    return (f'{HEAD}<Relationships xmlns="{RELATIONS}">'
            '<Relationship Type="http://schemas.microsoft.com/packaging/2010/07/manifest" '
            f'Target="/{arguments.id}.nuspec" Id="R1" />'
            '<Relationship Type="http://schemas.openxmlformats.org/package/2006/relationships/metadata/core-properties" '
            f'Target="/{properties}" Id="R2" /></Relationships>\n')


def content_types(names):
    """Each part needs a type, by its suffix or, where it has none, by its name."""
    suffixes = sorted({os.path.splitext(name)[1][1:] for name in names} - {''})
    bare = sorted(name for name in names if not os.path.splitext(name)[1])
    lines = [f'<Default Extension="{suffix}" ContentType="{KNOWN.get(suffix, "application/octet")}" />' for suffix in suffixes]
    lines += [f'<Override PartName="/{name}" ContentType="application/octet" />' for name in bare]
    return f'{HEAD}<Types xmlns="{TYPES}">{"".join(lines)}</Types>\n'


def contents(pairs):
    for pair in pairs:
        source, target = pair.split('=')
        if os.path.isdir(source):
            yield from zip_archive.tree(source, target.rstrip('/') + '/')
        else:
            yield target, zip_archive.read(source)


def main():
    parser = argparse.ArgumentParser()
    for name in ('id', 'version', 'folder', 'description'):
        parser.add_argument(name)
    parser.add_argument('files', nargs='+')
    parser.add_argument('--dependency')
    arguments = parser.parse_args()
    properties = 'package/services/metadata/core-properties/core.psmdcp'
    entries = list(contents(arguments.files))
    entries += [(f'{arguments.id}.nuspec', nuspec(arguments).encode()), (properties, core_properties(arguments).encode()),
                ('_rels/.rels', relations(arguments, properties).encode())]
    entries.append(('[Content_Types].xml', content_types([name for name, _ in entries]).encode()))
    zip_archive.write(os.path.join(arguments.folder, f'{arguments.id}.{arguments.version}.nupkg'), entries,
                      first=['[Content_Types].xml', '_rels/.rels', f'{arguments.id}.nuspec'])
    return 0


if __name__ == '__main__':
    sys.exit(main())
