// SPDX-License-Identifier: Apache-2.0
package org.tutti;

import java.io.IOException;
import java.io.InputStream;

/**
 * What a jar of natives provides: the native libraries for one kind of machine. A module that uses this one finds it by
 * itself, on the class path as on the module path; programs need not call it.
 */
public interface NativeFiles {
    /** The kind of machine.
     *
     * @return such as "linux-x86_64"
     */
    String platform();

    /** Opens a file of the jar. "files.txt" lists the libraries in the order in which they are to be loaded, and as
     * "beside NAME" those that these need, and plug-ins.
     *
     * @param name of the file
     * @return its contents, to be closed; null when there is none of the name
     * @throws IOException when it cannot be read
     */
    @Nullable
    InputStream open(String name) throws IOException;
}
