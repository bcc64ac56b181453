// SPDX-License-Identifier: Apache-2.0
package org.tutti;

import java.util.concurrent.atomic.AtomicInteger;

/**
 * The threads of one map: they take elements from the queue between the library and Java (map_queue.h), compute and
 * finish them, until the library has released the map. There is always one that waits for an element, and the library
 * waits for each that was taken, so that there is at most one more than it has threads in the map.
 */
final class MapThreads implements Runnable {
    private final long queue;
    private final MapFunction function;
    private final AtomicInteger alive = new AtomicInteger();
    private final AtomicInteger idle = new AtomicInteger();

    private MapThreads(long queue, MapFunction function) {
        this.queue = queue;
        this.function = function;
    }

    static void start(long queue, MapFunction function) {
        new MapThreads(queue, function).add();
    }

    private void add() {
        alive.incrementAndGet();
        idle.incrementAndGet();
        Thread thread = new Thread(this, "tutti-map");
        thread.setDaemon(true);
        thread.start();
    }

    @Override
    public void run() {
        try {
            for (long work = Raw.map_queue_take(queue); work != 0; work = Raw.map_queue_take(queue)) {
                serve(work);
                Thread.interrupted();
                idle.incrementAndGet();
            }
        } finally {
            if (alive.decrementAndGet() == 0) {
                Raw.map_queue_unref(queue);
            }
        }
    }

    /** Computes an element, and finishes it in every case. */
    private void serve(long work) {
        Tensor[] inputs = {};
        Tensor[] outputs = {};
        Throwable error = null;
        try {
            if (idle.decrementAndGet() == 0) {
                add();
            }
            inputs = inputs(work);
            outputs = function.map(inputs);
        } catch (Throwable thrown) {
            error = thrown;
        }
        finish(work, inputs, outputs == null ? new Tensor[0] : outputs, error);
    }

    private static Tensor[] inputs(long work) {
        Tensor[] inputs = new Tensor[(int) Raw.map_work_get_count(work)];
        for (int i = 0; i < inputs.length; i++) {
            inputs[i] = Tensor.share(Raw.map_work_get_input(work, i));
        }
        return inputs;
    }

    private void finish(long work, Tensor[] inputs, Tensor[] outputs, Throwable thrown) {
        Throwable error = thrown;
        try (Use use = new Use()) {
            long[] numbers = {};
            try {
                numbers = use.of((NativeObject[]) outputs);
            } catch (TuttiException closed) {
                error = error == null ? closed : error;
            }
            Tensor.closeAll(inputs); // those in use end when this use does
            Tensor.closeAll(outputs);
            int code = error == null ? Raw.OK : ThrownErrors.codeOf(error).number();
            Raw.map_queue_finish(queue, work, numbers, code, error == null ? 0 : ThrownErrors.toC(error));
        }
    }
}
