// SPDX-License-Identifier: Apache-2.0
package org.tutti;

import java.nio.file.Path;
import java.util.Arrays;

/** Sees the events of one training, on the thread that trains. */
public final class Hook {
    /** What a hook does. */
    @FunctionalInterface
    public interface Handler {
        /**
         * Gets an event. It may use getters and cancel; training from inside it is an error.
         *
         * @param event what happened
         * @throws Exception ends the training, and is the cause of what the training call throws
         */
        void handle(Event event) throws Exception;
    }

    /** Adds a hook to a C list. */
    @FunctionalInterface
    private interface Adder {
        int add(long list, long[] failure);
    }

    private final boolean onlySteps;
    private final Handler handler;
    private final Adder adder;

    private Hook(Adder adder) {
        this.onlySteps = false;
        this.handler = null;
        this.adder = adder;
    }

    private Hook(long everySteps, boolean onlySteps, Handler handler) {
        if (handler == null) {
            throw TuttiException.ofTutti(Code.INVALID_ARGUMENT, "a hook has no handler");
        }
        this.onlySteps = onlySteps;
        this.handler = handler;
        this.adder = (list, failure) -> Raw.hooks_add(list, Callbacks.keep(this), everySteps, failure);
    }

    /** A hook that sees a step every so many steps, and nothing else.
     *
     * @param everySteps how often
     * @param handler what it does
     * @return the hook
     */
    public static Hook onStep(long everySteps, Handler handler) {
        return new Hook(everySteps, true, handler);
    }

    /** A hook that sees all events, but a step every so many steps only.
     *
     * @param everySteps how often; 0 = no steps
     * @param handler what it does
     * @return the hook
     */
    public static Hook onEvent(long everySteps, Handler handler) {
        return new Hook(everySteps, false, handler);
    }

    /** How {@link #progress} shows a training. */
    public enum ProgressStyle {
        /** {@link #BAR} where standard error is a terminal, {@link #LINES} elsewhere. */
        AUTO(Raw.PROGRESS_AUTO),
        /** A line with a bar, written again four times a second. */
        BAR(Raw.PROGRESS_BAR),
        /** A line every ten seconds. */
        LINES(Raw.PROGRESS_LINES);

        private final int number;

        ProgressStyle(int number) {
            this.number = number;
        }
    }

    /** A hook that shows on standard error how far the training is: step, loss, metrics, examples per second and time
     * left; also each evaluation, and how long all took.
     *
     * @param style bar or lines
     * @return the hook
     */
    public static Hook progress(ProgressStyle style) {
        return new Hook((list, failure) -> Raw.hooks_add_progress(list, style.number, failure));
    }

    /** What {@link #metricsFile} writes. */
    public enum MetricsFormat {
        /** The first line names the columns. */
        CSV(Raw.METRICS_CSV),
        /** An object in each line. */
        JSON_LINES(Raw.METRICS_JSON_LINES);

        private final int number;

        MetricsFormat(int number) {
            this.number = number;
        }
    }

    /** A hook that writes losses and metrics to a file: a line every so many steps, for each evaluation and pass, and
     * one at the end. A file that is there goes on, without what it has of later steps than the training begins with.
     * If it cannot be written later, the log says so and the training goes on.
     *
     * @param path the file
     * @param format of the lines
     * @param everySteps how often; 0 = no steps
     * @return the hook
     */
    public static Hook metricsFile(Path path, MetricsFormat format, long everySteps) {
        String file = path.toString();
        return new Hook(
                (list, failure) -> Raw.hooks_add_metrics_file(list, file, format.number, everySteps, failure));
    }

    /** A hook that keeps the newest values of the training for Prometheus: of every so many steps, each evaluation and
     * pass, and the end.
     *
     * @param prometheus where it keeps them
     * @param everySteps how often; 0 = no steps
     * @return the hook
     */
    public static Hook prometheus(Prometheus prometheus, long everySteps) {
        return new Hook((list, failure) -> {
            try (Use use = new Use()) {
                return Raw.hooks_add_prometheus(list, use.of(prometheus), everySteps, failure);
            }
        });
    }

    void call(Event event) throws Exception {
        if (!onlySteps || event.kind() == EventKind.STEP) {
            handler.handle(event);
        }
    }

    /** The C list of hooks of one call, which drops it; 0 for none. */
    static final class Native implements AutoCloseable {
        final long number;

        Native(Hook... hooks) {
            if (hooks.length == 0) {
                number = 0;
                return;
            }
            if (Arrays.asList(hooks).contains(null)) {
                throw TuttiException.ofTutti(Code.INVALID_ARGUMENT, "a hook is null");
            }
            long[] out = new long[1];
            long[] failure = new long[1];
            TuttiException.check(Raw.hooks_create(out, failure), failure);
            number = out[0];
            for (Hook hook : hooks) {
                int code = hook.adder.add(number, failure);
                if (code != Raw.OK) {
                    close();
                    throw TuttiException.take(code, failure[0]);
                }
            }
        }

        @Override
        public void close() {
            Raw.hooks_unref(number);
            Callbacks.reap();
        }
    }
}
