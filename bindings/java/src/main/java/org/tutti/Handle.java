// SPDX-License-Identifier: Apache-2.0
package org.tutti;

import java.util.ArrayList;
import java.util.List;
import java.util.function.LongConsumer;

/**
 * One reference of the library's. A call enters it and leaves it, so that closing never takes it away from a call: the
 * last one out drops the reference. It is the state that outlives the object whose handle it is, and the action of that
 * object's cleaner.
 */
final class Handle implements Runnable {
    private final String kind;
    private final long number;
    private final LongConsumer unref;
    /** That of C memory of data, which Java's collector does not see. */
    private final long size;
    private final boolean isData;
    /** Calls that close ends; all others finish. */
    private final List<Call> waiting = new ArrayList<>(1);
    private int calls;
    private boolean closed;
    private boolean dropped;

    private Handle(String kind, long number, LongConsumer unref, long size, boolean isData) {
        this.kind = kind;
        this.number = number;
        this.unref = unref;
        this.size = size;
        this.isData = isData;
        Memory.grow(size);
    }

    /** Takes a reference to data, behind which no callbacks are. */
    static Handle ofData(String kind, long number, LongConsumer unref, long size) {
        return new Handle(kind, number, unref, size, true);
    }

    /** Takes a reference to an object of another kind, behind which callbacks may be. */
    Handle(String kind, long number, LongConsumer unref) {
        this(kind, number, unref, 0, false);
    }

    String kind() {
        return kind;
    }

    boolean isData() {
        return isData;
    }

    synchronized long enter() {
        if (closed) {
            throw new ClosedException(kind);
        }
        calls++;
        return number;
    }

    void leave() {
        boolean last;
        synchronized (this) {
            last = --calls == 0 && closed;
        }
        if (last) {
            drop();
        }
    }

    /** From now on close ends the call. */
    synchronized void add(Call call) {
        waiting.add(call);
        if (closed) {
            call.request(Raw.CANCEL_CANCEL);
        }
    }

    synchronized void remove(Call call) {
        waiting.remove(call);
    }

    synchronized boolean isClosed() {
        return closed;
    }

    /** What the collector does: it waits for nobody. */
    @Override
    public void run() {
        end(false);
    }

    private void end(boolean cancels) {
        boolean last;
        synchronized (this) {
            last = !closed && calls == 0;
            if (!closed && cancels) {
                for (Call call : waiting) {
                    call.request(Raw.CANCEL_CANCEL);
                }
            }
            closed = true;
        }
        if (last) {
            drop();
        }
    }

    /** Ends calls that wait, and waits until all have left; not where they might wait for the calling thread. */
    void close() {
        end(true);
        if (!Use.isInside()) {
            awaitDrop();
        }
    }

    private synchronized void awaitDrop() {
        while (!dropped) {
            try {
                wait();
            } catch (InterruptedException interrupted) {
                Thread.currentThread().interrupt();
                return;
            }
        }
    }

    private void drop() {
        unref.accept(number);
        Memory.shrink(size);
        if (!isData) {
            Callbacks.reap();
        }
        synchronized (this) {
            dropped = true;
            notifyAll();
        }
    }
}
