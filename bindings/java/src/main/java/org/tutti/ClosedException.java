// SPDX-License-Identifier: Apache-2.0
package org.tutti;

import java.util.List;

/** A call on an object that was closed. Its code is {@link Code#FAILED_PRECONDITION}. */
public final class ClosedException extends TuttiException {
    private static final long serialVersionUID = 1;

    ClosedException(String kind) {
        super(Code.FAILED_PRECONDITION, 0, "tutti", "use of a closed " + kind, List.of());
    }
}
