// SPDX-License-Identifier: Apache-2.0
package org.tutti;

import java.util.Locale;

/** What a component of a dataset is for. */
public enum Role {
    /** What the model reads. */
    FEATURE(Raw.ROLE_FEATURE),
    /** What it shall give. */
    LABEL(Raw.ROLE_LABEL),
    /** How much an example counts. */
    WEIGHT(Raw.ROLE_WEIGHT);

    private final int number;

    Role(int number) {
        this.number = number;
    }

    int number() {
        return number;
    }

    /** By the name that reports have. */
    static Role of(String text) {
        return valueOf(text.toUpperCase(Locale.ROOT));
    }

    static Role of(int number) {
        for (Role value : values()) {
            if (value.number == number) {
                return value;
            }
        }
        return FEATURE;
    }
}
