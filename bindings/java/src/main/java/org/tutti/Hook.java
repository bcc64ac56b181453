// SPDX-License-Identifier: Apache-2.0
package org.tutti;

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

    private final long everySteps;
    private final boolean onlySteps;
    private final Handler handler;

    private Hook(long everySteps, boolean onlySteps, Handler handler) {
        if (handler == null) {
            throw TuttiException.ofTutti(Code.INVALID_ARGUMENT, "a hook has no handler");
        }
        this.everySteps = everySteps;
        this.onlySteps = onlySteps;
        this.handler = handler;
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
                int code = Raw.hooks_add(number, Callbacks.keep(hook), hook.everySteps, failure);
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
