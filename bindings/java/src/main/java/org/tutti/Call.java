// SPDX-License-Identifier: Apache-2.0
package org.tutti;

import java.nio.channels.ClosedByInterruptException;
import java.nio.channels.AsynchronousCloseException;
import java.nio.channels.spi.AbstractInterruptibleChannel;
import java.util.List;

/**
 * One call that can wait, and its cancel token. It is ended by an interrupt of its thread, by the cancellations that
 * its thread runs in, and by closing the objects it was begun for.
 *
 * <p>Interrupts come by the way that Java has for channels: a thread has a slot for what is to be closed when it is
 * interrupted. A callback that uses channels or calls the library leaves the slot empty, so the call takes it again.
 */
final class Call implements AutoCloseable {
    private static final ThreadLocal<Call> current = new ThreadLocal<>();

    private final long token;
    private final Interruptor interruptor = new Interruptor();
    private final List<Cancellation> cancellations;
    private final Handle[] handles;
    private Call outer;

    /** A call that serves more than one native call, and is armed for each; drop ends it. */
    Call(Handle... handles) {
        long[] out = new long[1];
        long[] failure = new long[1];
        TuttiException.check(Raw.cancel_create(out, failure), failure);
        this.token = out[0];
        this.handles = handles;
        this.cancellations = Cancellation.inForce();
        for (Cancellation cancellation : cancellations) {
            cancellation.add(this);
        }
        heedDeadlines();
        for (Handle handle : handles) {
            handle.add(this);
        }
    }

    /** A call of the present thread, which close ends. */
    static Call begin(Handle... handles) {
        return new Call(handles).arm();
    }

    long token() {
        return token;
    }

    Call arm() {
        outer = current.get();
        current.set(this);
        interruptor.arm();
        return this;
    }

    void disarm() {
        interruptor.disarm();
        current.set(outer);
        rearm();
    }

    /** After a callback: the thread's innermost call has its slot again. */
    static void rearm() {
        Call call = current.get();
        if (call != null) {
            call.interruptor.arm();
        }
    }

    void drop() {
        for (Handle handle : handles) {
            handle.remove(this);
        }
        for (Cancellation cancellation : cancellations) {
            cancellation.remove(this);
        }
        Raw.cancel_unref(token);
    }

    @Override
    public void close() {
        disarm();
        drop();
    }

    void request(int strength) {
        Raw.cancel_request(token, strength, null);
    }

    /** Sets the earliest deadline of the cancellations. */
    void heedDeadlines() {
        long timeout = -1;
        for (Cancellation cancellation : cancellations) {
            long left = cancellation.remainingMs();
            timeout = timeout < 0 || left >= 0 && left < timeout ? left : timeout;
        }
        if (timeout >= 0) {
            Raw.cancel_set_deadline(token, timeout, null);
        }
    }

    /** Throws what the C function reported; an interrupt, or a close, is the cause of what it cancelled. */
    void check(int code, long[] failure) {
        if (code == Raw.OK) {
            return;
        }
        TuttiException exception = TuttiException.take(code, failure[0]);
        Throwable cause = exception.code() == Code.CANCELLED ? whatEnded() : null;
        if (cause != null) {
            Throwable last = exception;
            while (last.getCause() != null) {
                last = last.getCause();
            }
            if (last instanceof TuttiException) {
                last.initCause(cause);
            }
        }
        throw exception;
    }

    /** Null for a cancellation. */
    private Throwable whatEnded() {
        if (interruptor.fired) {
            return new InterruptedException("the thread was interrupted");
        }
        for (Handle handle : handles) {
            if (handle.isClosed()) {
                return ClosedException.duringCall(handle.kind());
            }
        }
        return null;
    }

    private final class Interruptor extends AbstractInterruptibleChannel {
        private volatile boolean fired;

        void arm() {
            begin();
        }

        void disarm() {
            try {
                end(true);
            } catch (ClosedByInterruptException interrupted) {
                // The thread's interrupt status stays set.
            } catch (AsynchronousCloseException closed) {
                throw new AssertionError(closed);
            }
        }

        @Override
        protected void implCloseChannel() {
            fired = true;
            request(Raw.CANCEL_CANCEL);
        }
    }
}
