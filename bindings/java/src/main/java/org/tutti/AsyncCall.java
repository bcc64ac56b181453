// SPDX-License-Identifier: Apache-2.0
package org.tutti;

import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Executor;
import java.util.concurrent.Executors;
import java.util.function.Supplier;

/** A call on another thread, and its future: cancelling that interrupts the thread, which cancels the call. */
final class AsyncCall<T> extends CompletableFuture<T> {
    private static final Executor threads = Executors.newCachedThreadPool(task -> {
        Thread thread = new Thread(task, "tutti-call");
        thread.setDaemon(true);
        return thread;
    });

    private @Nullable Thread thread;

    private AsyncCall() {}

    static <T> CompletableFuture<T> start(Supplier<T> function) {
        return start(threads, function);
    }

    /** The cancellations in force here hold there too. */
    static <T> CompletableFuture<T> start(Executor threads, Supplier<T> function) {
        AsyncCall<T> call = new AsyncCall<>();
        List<Cancellation> cancellations = Cancellation.inForce();
        threads.execute(() -> call.run(() -> Cancellation.bind(cancellations, function)));
        return call;
    }

    private void run(Supplier<T> function) {
        synchronized (this) {
            if (isDone()) {
                return;
            }
            thread = Thread.currentThread();
        }
        T value = null;
        Throwable error = null;
        try {
            value = function.get();
        } catch (Throwable thrown) {
            error = thrown;
        }
        synchronized (this) {
            thread = null;
        }
        if (isCancelled()) {
            Thread.interrupted(); // cancel set it; what others have set stays
        }
        finish(value, error);
    }

    private void finish(@Nullable T value, @Nullable Throwable error) {
        if (error != null) {
            completeExceptionally(error);
        } else if (!complete(value) && value instanceof NativeObject unwanted) {
            unwanted.close();
        }
    }

    @Override
    public boolean cancel(boolean mayInterruptIfRunning) {
        boolean cancelled = super.cancel(mayInterruptIfRunning);
        synchronized (this) {
            if (cancelled && thread != null) {
                thread.interrupt();
            }
        }
        return cancelled;
    }

    @Override
    public <U> CompletableFuture<U> newIncompleteFuture() {
        return new CompletableFuture<>();
    }
}
