// SPDX-License-Identifier: Apache-2.0
package org.tutti;

import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.StringJoiner;

/** Named values that were set, of an op, a transform or a schema of options. What is not set has its default. */
class Attributes {
    /** What takes such values. */
    interface Target {
        void set(String key, boolean value);

        void set(String key, long value);

        void set(String key, double value);

        void set(String key, String value);

        default void set(String key, long[] values) {
            throw new AssertionError(key);
        }

        default void set(String key, double[] values) {
            throw new AssertionError(key);
        }

        default void set(String key, Dataset dataset) {
            throw new AssertionError(key);
        }
    }

    private final Map<String, Object> values = new LinkedHashMap<>();

    Attributes() {}

    /** Sets a value; null takes it away. */
    final Attributes set(String key, @Nullable Object value) {
        if (value == null) {
            values.remove(key);
        } else {
            values.put(key, value);
        }
        return this;
    }

    /** What was set, for people; secrets are not shown. */
    final String values() {
        StringJoiner text = new StringJoiner(", ", "{", "}");
        values.forEach((key, value) -> text.add(key + "=" + (key.contains("secret") ? "(hidden)" : shown(value))));
        return text.toString();
    }

    private static String shown(Object value) {
        if (value instanceof Choice choice) {
            return choice.text();
        }
        String text = Arrays.deepToString(new Object[] {value});
        return text.substring(1, text.length() - 1);
    }

    @Override
    public String toString() {
        return values();
    }

    /** The value of a graph under a name; none when it is not set. */
    static Value input(@Nullable Attributes options, String key) {
        Object value = options == null ? null : options.values.get(key);
        return value instanceof Value input ? input : Value.NONE;
    }

    /** Hands everything but values of a graph, which are inputs, to the target. */
    static void fill(@Nullable Attributes attributes, Target target) {
        if (attributes != null) {
            attributes.values.forEach((key, value) -> hand(target, key, value));
        }
    }

    private static void hand(Target target, String key, Object value) {
        if (value instanceof Boolean truth) {
            target.set(key, truth.booleanValue());
        } else if (value instanceof Long number) {
            target.set(key, number.longValue());
        } else if (value instanceof Double number) {
            target.set(key, number.doubleValue());
        } else if (value instanceof String text) {
            target.set(key, text);
        } else if (value instanceof DType dtype) {
            target.set(key, dtype.number());
        } else if (value instanceof Choice choice) {
            target.set(key, choice.text());
        } else if (value instanceof long[] numbers) {
            target.set(key, numbers);
        } else if (value instanceof double[] numbers) {
            target.set(key, numbers);
        } else if (value instanceof String[] texts) {
            for (String text : texts) {
                target.set(key, text);
            }
        } else if (value instanceof Dataset dataset) {
            target.set(key, dataset);
        } else if (value instanceof java.util.List<?> datasets) {
            datasets.forEach(one -> target.set(key, (Dataset) one));
        } else if (!(value instanceof Value)) {
            throw new AssertionError(key);
        }
    }
}
