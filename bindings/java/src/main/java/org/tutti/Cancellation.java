// SPDX-License-Identifier: Apache-2.0
package org.tutti;

import java.time.Duration;
import java.util.ArrayList;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;
import java.util.function.Supplier;

/**
 * Ends calls of the library from any thread, politely or at once. The calls are those made within {@link #call} or
 * {@link #run}, on the same thread:
 *
 * <pre>{@code
 * Cancellation cancellation = new Cancellation();
 * Runtime.getRuntime().addShutdownHook(new Thread(cancellation::stop));
 * Result result = cancellation.call(() -> estimator.train(dataset));
 * }</pre>
 *
 * <p>{@link #stop} lets training end politely: the step is finished, the checkpoint written, and the reason is
 * {@link Reason#STOPPED}. {@link #cancel} ends it within one step, with {@link Code#CANCELLED}; so does an interrupt of
 * the thread, without any cancellation. A deadline ends it with {@link Code#DEADLINE_EXCEEDED}. For calls that do not
 * train, stopping is cancelling. What ends is the call: objects can be used again.
 *
 * <p>All functions may be called from any thread at any time. Cancellations may be nested; all of them hold then.
 */
public final class Cancellation {
    private static final ThreadLocal<List<Cancellation>> bound = ThreadLocal.withInitial(List::of);

    private final Set<Call> calls = new LinkedHashSet<>();
    private int strength = Raw.CANCEL_NONE;
    private volatile Long deadline;

    /** A cancellation that has not been asked for anything and has no deadline. */
    public Cancellation() {}

    /** Lets training end politely after the step under way. */
    public void stop() {
        request(Raw.CANCEL_STOP);
    }

    /** Ends the calls within one step. */
    public void cancel() {
        request(Raw.CANCEL_CANCEL);
    }

    /** Sets the deadline, for calls under way too.
     *
     * @param timeout from now on
     */
    public synchronized void timeout(Duration timeout) {
        deadline = System.nanoTime() + timeout.toNanos();
        for (Call call : calls) {
            call.heedDeadlines();
        }
    }

    /** Makes calls that this cancellation can end.
     *
     * @param <T> what they give
     * @param calls a function that makes them on this thread
     * @return what the function returned
     */
    public <T> T call(Supplier<T> calls) {
        List<Cancellation> before = bound.get();
        List<Cancellation> now = new ArrayList<>(before);
        now.add(this);
        return bind(now, calls);
    }

    /** Makes calls that this cancellation can end.
     *
     * @param calls a function that makes them on this thread
     */
    public void run(Runnable calls) {
        call(() -> {
            calls.run();
            return null;
        });
    }

    /** Whether nobody waits any more for what the running function is to do: the call that it is for was cancelled, or
     * its deadline has passed. Functions over elements, model functions, hooks and file systems that take long ask now
     * and then, on the thread that runs them. What a function throws then is the end of the call, not an error of its
     * element: when the walk goes on it gets the same element again.
     *
     * <pre>{@code
     * Pipeline pipeline = new Pipeline().addDataset(addresses).map(element -> {
     *     while (!hasArrived(element)) {
     *         Cancellation.check();
     *         Thread.sleep(10);
     *     }
     *     return element;
     * });
     * }</pre>
     *
     * @return false, too, outside of such functions
     */
    public static boolean isRequested() {
        long token = CallThreads.currentToken();
        return Raw.cancel_get_state(token != 0 ? token : Raw.cancel_get_current()) == Raw.CANCEL_CANCEL;
    }

    /** Ends a function for whose result nobody waits any more, by an exception of {@link Code#CANCELLED}; see
     * {@link #isRequested}. */
    public static void check() {
        if (isRequested()) {
            throw TuttiException.ofTutti(Code.CANCELLED, "what the function is for was cancelled");
        }
    }

    static List<Cancellation> inForce() {
        return bound.get();
    }

    static <T> T bind(List<Cancellation> cancellations, Supplier<T> function) {
        List<Cancellation> before = bound.get();
        bound.set(cancellations);
        try {
            return function.get();
        } finally {
            bound.set(before);
        }
    }

    synchronized void add(Call call) {
        calls.add(call);
        if (strength != Raw.CANCEL_NONE) {
            call.request(strength);
        }
    }

    synchronized void remove(Call call) {
        calls.remove(call);
    }

    /** Milliseconds until the deadline, 0 after it; -1 without one. */
    long remainingMs() {
        Long end = deadline;
        return end == null ? -1 : Math.max(0, (end - System.nanoTime() + 999_999) / 1_000_000);
    }

    private synchronized void request(int wanted) {
        strength = Math.max(strength, wanted);
        for (Call call : calls) {
            call.request(wanted);
        }
    }
}
