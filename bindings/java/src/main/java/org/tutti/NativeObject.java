// SPDX-License-Identifier: Apache-2.0
package org.tutti;

import java.lang.ref.Cleaner;

/**
 * What every object of the library has in common: it is closed when it is no longer needed.
 *
 * <p>Closing is allowed at any time, from any thread, in any order and more than once. Calls that are running finish
 * first, and {@code close} waits for them; those that may wait long (training, reading a dataset or a stream, pushing)
 * are cancelled. Inside a callback, or in a function to which memory is lent, {@code close} does not wait. Later calls
 * throw {@link ClosedException}. What was forgotten the garbage collector closes, at a time of its own choosing.
 */
public abstract class NativeObject implements AutoCloseable {
    private final Handle handle;
    private final Cleaner.Cleanable cleanable;
    /** Java objects that must be closed by the collector after this one only. */
    private final Object[] kept;

    NativeObject(Handle handle, Object... kept) {
        this.handle = handle;
        this.kept = kept;
        this.cleanable = (handle.isData() ? Memory.DATA : Memory.OBJECTS).register(this, handle);
    }

    final Handle handle() {
        return handle;
    }

    /** Whether the object is closed.
     *
     * @return true after {@link #close}
     */
    public final boolean isClosed() {
        return handle.isClosed();
    }

    /** Closes the object, as the head of this page says. */
    @Override
    public void close() {
        handle.close();
        cleanable.clean();
    }

    /** A short text for people, which may change with any release.
     *
     * @return what kind of object it is, and a little about it
     */
    @Override
    public final String toString() {
        try {
            return handle.kind() + details();
        } catch (ClosedException closed) {
            return "closed " + handle.kind();
        }
    }

    /** What the text says behind the kind. */
    String details() {
        if (isClosed()) {
            throw new ClosedException(handle.kind());
        }
        return "";
    }
}
