// SPDX-License-Identifier: Apache-2.0
package org.tutti;

import java.util.ArrayList;
import java.util.List;
import java.util.function.LongConsumer;

/** What the transforms of a pipeline are made of. */
abstract class PipelineCalls extends NativeObject {
    /** What the dataset needs for as long as it lives. */
    final List<Object> sources = new ArrayList<>();

    PipelineCalls(Handle handle) {
        super(handle);
    }

    abstract Pipeline self();

    /** Adds a transform. */
    final Pipeline apply(String name, int revision, @Nullable Attributes required,
        @Nullable Attributes options) {
        return apply(name, revision, required, options, pipeline -> {});
    }

    /** Adds a transform for which more must be set than values. */
    final synchronized Pipeline apply(String name, int revision, @Nullable Attributes required,
        @Nullable Attributes options, LongConsumer more) {
        try (Use use = new Use(); Call call = Call.begin()) {
            Setter setter = new Setter(use, use.of(this));
            Raw.pipeline_set_cancel(setter.pipeline, call.token());
            Raw.pipeline_begin(setter.pipeline, name, revision);
            try {
                Attributes.fill(required, setter);
                Attributes.fill(options, setter);
                more.accept(setter.pipeline);
            } finally {
                Raw.pipeline_end(setter.pipeline);
                Raw.pipeline_set_cancel(setter.pipeline, 0);
            }
        }
        return self();
    }

    private final class Setter implements Attributes.Target {
        private final Use use;
        private final long pipeline;

        private Setter(Use use, long pipeline) {
            this.use = use;
            this.pipeline = pipeline;
        }

        @Override
        public void set(String key, boolean value) {
            Raw.pipeline_set_bool(pipeline, key, value);
        }

        @Override
        public void set(String key, long value) {
            Raw.pipeline_set_i64(pipeline, key, value);
        }

        @Override
        public void set(String key, double value) {
            Raw.pipeline_set_f64(pipeline, key, value);
        }

        @Override
        public void set(String key, String value) {
            Raw.pipeline_set_string(pipeline, key, value);
        }

        @Override
        public void set(String key, long[] values) {
            Raw.pipeline_set_i64s(pipeline, key, values);
        }

        @Override
        public void set(String key, double[] values) {
            Raw.pipeline_set_f64s(pipeline, key, values);
        }

        @Override
        public void set(String key, Dataset dataset) {
            Raw.pipeline_set_dataset(pipeline, key, use.of(dataset));
            sources.add(dataset);
        }
    }
}
