// SPDX-License-Identifier: Apache-2.0
package org.tutti;

/** What kind of error it is: the canonical codes, as gRPC and Abseil number them. */
public enum Code {
    /** The call was cancelled. */
    CANCELLED(Raw.CANCELLED),
    /** An error of no known kind. */
    UNKNOWN(Raw.UNKNOWN),
    /** An argument is wrong, whatever the state. */
    INVALID_ARGUMENT(Raw.INVALID_ARGUMENT),
    /** The deadline passed. */
    DEADLINE_EXCEEDED(Raw.DEADLINE_EXCEEDED),
    /** There is no such thing. */
    NOT_FOUND(Raw.NOT_FOUND),
    /** There is such a thing already. */
    ALREADY_EXISTS(Raw.ALREADY_EXISTS),
    /** The system does not permit it. */
    PERMISSION_DENIED(Raw.PERMISSION_DENIED),
    /** Memory or another resource does not suffice. */
    RESOURCE_EXHAUSTED(Raw.RESOURCE_EXHAUSTED),
    /** The state does not allow the call. */
    FAILED_PRECONDITION(Raw.FAILED_PRECONDITION),
    /** A callback failed, or the call was given up. */
    ABORTED(Raw.ABORTED),
    /** Something lies outside its bounds. */
    OUT_OF_RANGE(Raw.OUT_OF_RANGE),
    /** The library cannot do that. */
    UNIMPLEMENTED(Raw.UNIMPLEMENTED),
    /** An error of the library. */
    INTERNAL(Raw.INTERNAL),
    /** Something is not there at present. */
    UNAVAILABLE(Raw.UNAVAILABLE),
    /** Data are damaged. */
    DATA_LOSS(Raw.DATA_LOSS),
    /** Who calls is not known. */
    UNAUTHENTICATED(Raw.UNAUTHENTICATED);

    private final int number;

    Code(int number) {
        this.number = number;
    }

    int number() {
        return number;
    }

    static Code of(int number) {
        for (Code value : values()) {
            if (value.number == number) {
                return value;
            }
        }
        return UNKNOWN;
    }
}
