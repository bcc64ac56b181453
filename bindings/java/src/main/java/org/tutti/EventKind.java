// SPDX-License-Identifier: Apache-2.0
package org.tutti;

/** What happened in a training. */
public enum EventKind {
    /** Something that this release does not know. */
    OTHER(0),
    /** Training begins. */
    BEGIN(Raw.EVENT_BEGIN),
    /** A step is complete. */
    STEP(Raw.EVENT_STEP),
    /** A checkpoint was written. */
    CHECKPOINT_SAVED(Raw.EVENT_CHECKPOINT_SAVED),
    /** An epoch is complete. */
    EPOCH_END(Raw.EVENT_EPOCH_END),
    /** An evaluation is complete. */
    EVALUATED(Raw.EVENT_EVALUATED),
    /** Training ends. */
    END(Raw.EVENT_END),
    /** Training fails. */
    ERROR(Raw.EVENT_ERROR);

    private final int number;

    EventKind(int number) {
        this.number = number;
    }

    int number() {
        return number;
    }

    static EventKind of(int number) {
        for (EventKind value : values()) {
            if (value.number == number) {
                return value;
            }
        }
        return OTHER;
    }
}
