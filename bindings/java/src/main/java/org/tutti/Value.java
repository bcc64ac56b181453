// SPDX-License-Identifier: Apache-2.0
package org.tutti;

/**
 * An output of an op in one graph. A call that cannot work gives an invalid value, which later calls pass through: a
 * model function need not look, for the call that needs the model reports the first error.
 */
public final class Value {
    /** No value: an optional input left out. */
    static final Value NONE = new Value(0);

    private final long id;

    Value(long id) {
        this.id = id;
    }

    long id() {
        return id;
    }

    /** Whether there is a value.
     *
     * @return false for an optional component that the dataset lacks, and after an error
     */
    public boolean isValid() {
        return id > 0;
    }

    static long[] ids(Value... values) {
        long[] ids = new long[values.length];
        for (int i = 0; i < ids.length; i++) {
            ids[i] = values[i].id;
        }
        return ids;
    }

    static Value[] of(long... ids) {
        Value[] values = new Value[ids.length];
        for (int i = 0; i < ids.length; i++) {
            values[i] = new Value(ids[i]);
        }
        return values;
    }

    @Override
    public String toString() {
        return "value " + id;
    }
}
