// SPDX-License-Identifier: Apache-2.0
package org.tutti;

import java.util.List;

/** What the builders of ops and layers are made of. */
abstract class GraphCalls {
    private static final long MOST_RESULTS = 1 << 16;

    private final Thread thread = Thread.currentThread();
    private volatile long number;

    GraphCalls(long number) {
        this.number = number;
    }

    /** The graph's number; it has one during the callback, on the callback's thread. */
    final long number() {
        if (number == 0) {
            throw new ClosedException("Graph: it is valid during its function only");
        }
        if (Thread.currentThread() != thread) {
            throw TuttiException.ofTutti(Code.FAILED_PRECONDITION, "a graph belongs to the thread that was given it");
        }
        return number;
    }

    final void end() {
        number = 0;
    }

    static Value[] inputs(Value... values) {
        return values;
    }

    static Value[] inputs(List<Value> values) {
        return values.toArray(new Value[0]);
    }

    final Value op(String name, int revision, @Nullable Attributes required, @Nullable Attributes options,
        Value... inputs) {
        return ops(1, name, revision, required, options, inputs)[0];
    }

    /** Adds an op with so many outputs. */
    final Value[] ops(int outputs, String name, int revision, @Nullable Attributes required,
        @Nullable Attributes options, Value... inputs) {
        long graph = number();
        Raw.graph_begin(graph, name, revision);
        for (Value input : inputs) {
            Raw.graph_add_input(graph, input.id());
        }
        Setter setter = new Setter(graph);
        Attributes.fill(required, setter);
        Attributes.fill(options, setter);
        long[] more = new long[outputs - 1];
        Value[] values = new Value[outputs];
        values[0] = new Value(Raw.graph_end(graph, more));
        System.arraycopy(Value.of(more), 0, values, 1, more.length);
        return values;
    }

    /** Adds a function that gives so many results. A number that no function takes is an error of the graph. */
    final List<Value> results(long count, String name, int revision, @Nullable Attributes required,
        @Nullable Attributes options, Value... inputs) {
        boolean isTaken = count >= 1 && count <= MOST_RESULTS;
        return List.of(ops(isTaken ? (int) count : 1, name, revision, required, options, inputs));
    }

    /** What takes the attributes of the op that is being added. */
    record Setter(long graph) implements Attributes.Target {
        @Override
        public void set(String key, boolean value) {
            Raw.graph_set_bool(graph, key, value);
        }

        @Override
        public void set(String key, long value) {
            Raw.graph_set_i64(graph, key, value);
        }

        @Override
        public void set(String key, double value) {
            Raw.graph_set_f64(graph, key, value);
        }

        @Override
        public void set(String key, String value) {
            Raw.graph_set_string(graph, key, value);
        }

        @Override
        public void set(String key, long[] values) {
            Raw.graph_set_i64s(graph, key, values);
        }

        @Override
        public void set(String key, double[] values) {
            Raw.graph_set_f64s(graph, key, values);
        }
    }
}
