// SPDX-License-Identifier: Apache-2.0
package org.tutti;

import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicLong;

/**
 * What the library calls (java_upcalls.h names the four functions), and the functions of programs behind the tokens.
 * The library's C side notes when it is done with a token, and {@link #reap} drops it: the library never enters Java to
 * free something. This class is loaded before the native library is ready and calls nothing of it by itself.
 */
final class Callbacks {
    private static final Map<Long, Object> functions = new ConcurrentHashMap<>();
    private static final AtomicLong lastToken = new AtomicLong();

    /** A function that C called, and that may throw anything. */
    private interface Body {
        long run() throws Throwable;
    }

    private Callbacks() {}

    static long keep(Object function) {
        long token = lastToken.incrementAndGet();
        functions.put(token, function);
        return token;
    }

    static void drop(long token) {
        functions.remove(token);
    }

    /** Drops the tokens that the library has released. */
    static void reap() {
        long[] tokens = new long[64];
        long count;
        do {
            count = Raw.callback_take_released(tokens);
            for (int i = 0; i < count; i++) {
                drop(tokens[i]);
            }
        } while (count == tokens.length);
    }

    /** Runs a callback; what it throws becomes an error, because C frames are below it. */
    private static long guarded(Body body) {
        try {
            return body.run();
        } catch (Throwable thrown) {
            return ThrownErrors.toC(thrown);
        } finally {
            Call.rearm();
        }
    }

    /** Builds a graph; the answer is what the function threw, or else the graph's first error. */
    private static long build(long number, GraphFunction function) {
        return guarded(() -> {
            Graph graph = new Graph(number);
            try {
                function.build(graph);
            } finally {
                graph.end();
            }
            long[] failure = new long[1];
            return Raw.graph_check(number, failure) == Raw.OK ? Raw.OK : failure[0];
        });
    }

    static long model(long token, long graph, int mode) {
        return build(graph, g -> ((ModelFunction) functions.get(token)).build(g, Mode.of(mode)));
    }

    static long map(long token, long graph) {
        return build(graph, g -> ((GraphFunction) functions.get(token)).build(g));
    }

    static long hook(long token, long number) {
        return guarded(() -> {
            Event event = new Event(number);
            try {
                ((Hook) functions.get(token)).call(event);
            } finally {
                event.end();
            }
            return event.isStopped() ? Raw.HOOK_STOP : Raw.OK;
        });
    }

    static void log(long token, int severity, byte[] text) {
        ((Context.Log) functions.get(token)).write(Severity.of(severity), Text.fromC(text));
    }
}
