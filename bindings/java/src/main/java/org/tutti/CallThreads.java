// SPDX-License-Identifier: Apache-2.0
package org.tutti;

import java.util.concurrent.atomic.AtomicInteger;

/**
 * The threads of one function, or of one file system: they take calls from the queue between the library and Java
 * (call_queue.h) and serve them, until the library has released it. There is always one that waits for a call, and the
 * library waits for each that was taken, so that there is at most one more than it makes calls at a time.
 */
abstract class CallThreads implements Runnable {
    /** The token of what the function is for that this thread runs; 0 = none. */
    private static final ThreadLocal<Long> current = ThreadLocal.withInitial(() -> 0L);

    final long queue;
    private final AtomicInteger alive = new AtomicInteger();
    private final AtomicInteger idle = new AtomicInteger();

    /** Takes the reference of the queue. */
    CallThreads(long queue) {
        this.queue = queue;
    }

    static long currentToken() {
        return current.get();
    }

    /** Serves a call, given by its address, and finishes it in every case; begins with {@link #standBy}. */
    abstract void serve(long call);

    final void start() {
        add();
    }

    private void add() {
        alive.incrementAndGet();
        idle.incrementAndGet();
        Thread thread = new Thread(this, "tutti-function");
        thread.setDaemon(true);
        try {
            thread.start();
        } catch (Throwable none) {
            alive.decrementAndGet();
            idle.decrementAndGet();
            throw none;
        }
    }

    @Override
    public final void run() {
        try {
            for (long call = Raw.call_queue_take(queue); call != 0; call = Raw.call_queue_take(queue)) {
                current.set(Raw.call_get_cancel(call));
                serve(call);
                current.set(0L);
                Thread.interrupted();
                idle.incrementAndGet();
            }
        } finally {
            if (alive.decrementAndGet() == 0) {
                Raw.call_queue_unref(queue);
            }
        }
    }

    /** There shall be another thread that waits. */
    final void standBy() {
        if (idle.decrementAndGet() == 0) {
            add();
        }
    }
}
