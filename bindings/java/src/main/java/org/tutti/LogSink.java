// SPDX-License-Identifier: Apache-2.0
package org.tutti;

/** Receives the log of a context. */
@FunctionalInterface
public interface LogSink {
    /**
     * May be called on any thread, one call at a time; it must not call the library.
     *
     * @param severity how grave it is
     * @param text one line
     * @throws Exception whatever went wrong; {@link Context#logError} gives it
     */
    void log(Severity severity, String text) throws Exception;
}
