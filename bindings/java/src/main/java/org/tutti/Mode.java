// SPDX-License-Identifier: Apache-2.0
package org.tutti;

/** What a model is built for. */
public enum Mode {
    /** To learn. */
    TRAIN(Raw.MODE_TRAIN),
    /** To be measured. */
    EVAL(Raw.MODE_EVAL),
    /** To answer: there are no labels. */
    PREDICT(Raw.MODE_PREDICT);

    private final int number;

    Mode(int number) {
        this.number = number;
    }

    int number() {
        return number;
    }

    static Mode of(int number) {
        for (Mode value : values()) {
            if (value.number == number) {
                return value;
            }
        }
        return PREDICT;
    }
}
