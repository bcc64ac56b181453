// SPDX-License-Identifier: Apache-2.0
package org.tutti;

/** How grave a line of the log is. */
public enum Severity {
    /** For those who look for a mistake. */
    DEBUG(Raw.LOG_DEBUG),
    /** What goes on. */
    INFO(Raw.LOG_INFO),
    /** What may be wrong. */
    WARNING(Raw.LOG_WARNING),
    /** What went wrong. */
    ERROR(Raw.LOG_ERROR);

    private final int number;

    Severity(int number) {
        this.number = number;
    }

    int number() {
        return number;
    }

    static Severity of(int number) {
        for (Severity value : values()) {
            if (value.number == number) {
                return value;
            }
        }
        return ERROR;
    }
}
