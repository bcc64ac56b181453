// SPDX-License-Identifier: Apache-2.0
package org.tutti;

import java.util.List;

/**
 * A call on an object that was closed, or the cause of one that closing its object has ended. Its code is
 * {@link Code#FAILED_PRECONDITION}.
 */
public final class ClosedException extends TuttiException {
    private static final long serialVersionUID = 1;

    private ClosedException(Void own, String reason) {
        super(Code.FAILED_PRECONDITION, 0, "tutti", reason, List.of());
    }

    ClosedException(String kind) {
        this(null, "use of a closed " + kind);
    }

    /** What ended a call. */
    static ClosedException duringCall(String kind) {
        return new ClosedException(null, "the " + kind + " was closed during the call");
    }
}
