// SPDX-License-Identifier: Apache-2.0
package org.tutti;

import java.nio.channels.SeekableByteChannel;
import java.util.List;

/**
 * A file system of the program, for {@link Context#addFileSystem}. Its functions are called on threads of Java, several
 * at once. Nothing ends them but themselves: one that may wait for ever needs a limit of its own, or asks
 * {@link Cancellation#isRequested} whether anybody still waits for it.
 */
@FunctionalInterface
public interface FileSource {
    /**
     * Opens a file for reading.
     *
     * @param path the whole path, with its scheme, as the program wrote it
     * @return its bytes; read by one thread at a time, and closed
     * @throws Exception whatever went wrong: it is the cause of what the call that wanted the data throws. A
     *     NoSuchFileException or FileNotFoundException becomes an error of {@link Code#NOT_FOUND}
     */
    SeekableByteChannel open(String path) throws Exception;

    /**
     * The names in a directory, for patterns in paths and for image folders.
     *
     * @param directory its path, without "/" at the end but that of the scheme
     * @return the names, in any order; those of directories end in "/". null when this file system lists nothing: then
     *     patterns are errors
     * @throws Exception whatever went wrong, as for open
     */
    default @Nullable List<String> list(String directory) throws Exception {
        return null;
    }

    /**
     * What tells the contents of a file from others that were under its path: an entity tag, a generation, a hash. Only
     * with versions may caches and snapshots keep in a file what they read without a key: what is cached of another
     * version is never used. Asked for once, when the file has been opened.
     *
     * @param path the file's
     * @param file what open gave for it, to be left open
     * @return the version; null when it is not known
     * @throws Exception whatever went wrong, as for open
     */
    default @Nullable String version(String path, SeekableByteChannel file) throws Exception {
        return null;
    }
}
