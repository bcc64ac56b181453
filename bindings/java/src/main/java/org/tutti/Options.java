// SPDX-License-Identifier: Apache-2.0
package org.tutti;

import java.util.ArrayList;
import java.util.List;

/** Options of one schema. What is not set has its default. They are copied by the call that gets them. */
public abstract class Options extends Attributes {
    private final String schema;

    Options(String schema) {
        this.schema = schema;
    }

    /** What was set. */
    @Override
    public String toString() {
        return schema + " options " + values();
    }

    /** All keys, as a JSON object, with the value in force and where it came from.
     *
     * @return the JSON text
     */
    public String toJson() {
        try (Native options = new Native(this)) {
            return Raw.options_get_json(options.number);
        }
    }

    /** What the options of a schema are.
     *
     * @param schema "context", "run", "train" or "predictor"
     * @return each of them
     */
    public static List<OptionKey> keys(String schema) {
        List<OptionKey> keys = new ArrayList<>();
        for (long i = 0; i < Raw.options_count_keys(schema); i++) {
            keys.add(OptionKey.of(Raw.options_describe_key(schema, i)));
        }
        return keys;
    }

    /** The C object of options, for one call; null options are C's NULL. */
    static final class Native implements AutoCloseable, Attributes.Target {
        final long number;

        Native(@Nullable Options options) {
            if (options == null) {
                number = 0;
                return;
            }
            long[] out = new long[1];
            long[] failure = new long[1];
            TuttiException.check(Raw.options_create(options.schema, out, failure), failure);
            number = out[0];
            fill(options, this);
            int code = Raw.options_check(number, failure);
            if (code != Raw.OK) {
                close();
                throw TuttiException.take(code, failure[0]);
            }
        }

        @Override
        public void set(String key, boolean value) {
            Raw.options_set_bool(number, key, value);
        }

        @Override
        public void set(String key, long value) {
            Raw.options_set_i64(number, key, value);
        }

        @Override
        public void set(String key, double value) {
            Raw.options_set_f64(number, key, value);
        }

        @Override
        public void set(String key, String value) {
            Raw.options_set_string(number, key, value);
        }

        @Override
        public void close() {
            Raw.options_unref(number);
        }
    }
}
