// SPDX-License-Identifier: Apache-2.0
package org.tutti;

/** Why training returned, or that it has not ended. */
public enum Reason {
    /** Not ended: a session has more to do. Results of evaluations have it, too. */
    UNFINISHED(0),
    /** It has made the steps that were wanted. */
    MAX_STEPS(Raw.REASON_MAX_STEPS),
    /** It has made the epochs that were wanted. */
    EPOCHS(Raw.REASON_EPOCHS),
    /** The dataset came to its end. */
    END_OF_INPUT(Raw.REASON_END_OF_INPUT),
    /** It was stopped politely. */
    STOPPED(Raw.REASON_STOPPED),
    /** Its time was over. */
    MAX_SECONDS(Raw.REASON_MAX_SECONDS);

    private final int number;

    Reason(int number) {
        this.number = number;
    }

    int number() {
        return number;
    }

    static Reason of(int number) {
        for (Reason value : values()) {
            if (value.number == number) {
                return value;
            }
        }
        return UNFINISHED;
    }
}
