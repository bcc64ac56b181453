// SPDX-License-Identifier: Apache-2.0
package org.tutti;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.Arrays;

/** Measures what Java adds: a hook for each step, and pushing batches of 1 MB. A program, not a test. */
final class Overhead {
    private static final int STEPS = 20_000;
    private static final int BATCHES = 2_000;
    private static final int FLOATS = 1 << 18;

    private Overhead() {}

    public static void main(String[] arguments) throws Exception {
        for (int round = 0; round < 5; round++) {
            double hooked = secondsOfTraining(Hook.onStep(1, event -> { }));
            double plain = secondsOfTraining();
            System.out.printf("training: %.2f us a step with a hook, %.2f us without%n", hooked * 1e6 / STEPS,
                plain * 1e6 / STEPS);
        }
        System.out.printf("upcall: %.2f us%n", secondsOfUpcalls() * 1e6);
        for (int round = 0; round < 5; round++) {
            System.out.printf("1 MB: push %.0f MB/s from an array, %.0f MB/s from a direct buffer, copy %.0f MB/s%n",
                BATCHES / secondsOfPushes(false), BATCHES / secondsOfPushes(true), BATCHES / secondsOfCopies());
        }
    }

    private static double secondsOfTraining(Hook... hooks) {
        try (Dataset dataset = Toy.dataset(); Estimator estimator = Toy.estimator()) {
            estimator.train(dataset, new TrainOptions().steps(1000), hooks);
            return estimator.train(dataset, new TrainOptions().steps(STEPS), hooks).seconds();
        }
    }

    /** The event's getters and the way up and down; the library's side is not in it. */
    private static double secondsOfUpcalls() {
        long token = Callbacks.keep(Hook.onStep(1, event -> { }));
        int calls = 1_000_000;
        long start = 0;
        for (int i = -calls; i < calls; i++) {
            if (i == 0) {
                start = System.nanoTime();
            }
            Callbacks.hook(token, 0);
        }
        Callbacks.drop(token);
        return (System.nanoTime() - start) * 1e-9 / calls;
    }

    private static double secondsOfPushes(boolean isDirect) throws Exception {
        float[] data = new float[FLOATS];
        Arrays.fill(data, 1);
        ByteBuffer buffer = ByteBuffer.allocateDirect(FLOATS * Float.BYTES).order(ByteOrder.nativeOrder());
        buffer.asFloatBuffer().put(data);
        Feed.Component x = new Feed.Component("x", Role.FEATURE, DType.FLOAT32, FLOATS);
        try (Feed feed = new Feed(4, x); Dataset dataset = new Pipeline().addFeed(feed).build();
             DatasetIterator iterator = dataset.iterator(0)) {
            Thread reader = new Thread(() -> iterator.forEachRemaining(Tensor::closeAll));
            reader.start();
            long start = System.nanoTime();
            for (int i = 0; i < BATCHES; i++) {
                try (Tensor tensor = isDirect ? Tensor.of(DType.FLOAT32, buffer, FLOATS) : Tensor.of(data)) {
                    feed.push(tensor);
                }
            }
            double seconds = (System.nanoTime() - start) * 1e-9;
            feed.finish();
            reader.join();
            return seconds;
        }
    }

    /** Copies between the same two places, which the cache may hold. */
    private static double secondsOfCopies() {
        float[] data = new float[FLOATS];
        Arrays.fill(data, 1);
        float[] into = new float[FLOATS];
        long start = System.nanoTime();
        for (int i = 0; i < BATCHES; i++) {
            System.arraycopy(data, 0, into, 0, FLOATS);
        }
        return (System.nanoTime() - start) * 1e-9;
    }
}
