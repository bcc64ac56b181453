// SPDX-License-Identifier: Apache-2.0
package org.tutti;

import java.nio.file.FileSystems;
import java.nio.file.Path;
import java.util.List;

/** Paths as the library takes them: it opens files itself, so they are of the machine's file system. */
final class PathText {
    private PathText() {}

    static String of(Path path) {
        if (path.getFileSystem() != FileSystems.getDefault()) {
            throw TuttiException.ofTutti(Code.INVALID_ARGUMENT, "the path " + path + " is of the file system "
                + path.getFileSystem().provider().getScheme() + ", and the library reads those of the machine");
        }
        return path.toString();
    }

    static String[] of(List<Path> paths) {
        return paths.stream().map(PathText::of).toArray(String[]::new);
    }
}
