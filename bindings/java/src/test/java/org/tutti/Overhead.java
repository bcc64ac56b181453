// SPDX-License-Identifier: Apache-2.0
package org.tutti;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.Arrays;

/**
 * Measures what Java adds: a hook for each step, pushing batches of 1 MB, and reading a tensor of 400 MB. A program, no
 * test.
 */
final class Overhead {
    private static final int STEPS = 20_000;
    private static final int BATCHES = 2_000;
    private static final int FLOATS = 1 << 18;
    private static final int CAPACITY = 4;

    private static final int LARGE = 100 << 20;

    private Overhead() {}

    public static void main(String[] arguments) throws Exception {
        readLarge();
        for (int round = 0; round < 5; round++) {
            double hooked = secondsOfTraining(Hook.onStep(1, event -> { }));
            double plain = secondsOfTraining();
            System.out.printf("training: %.2f us a step with a hook, %.2f us without%n", hooked * 1e6 / STEPS,
                plain * 1e6 / STEPS);
        }
        System.out.printf("one call of a hook: %.2f us, %.2f us of it in Java%n", secondsOfHooks() * 1e6,
            secondsOfUpcalls() * 1e6);
        for (int round = 0; round < 5; round++) {
            double small = secondsOfPushes(false, 1);
            System.out.printf("1 MB: push %.1f us from an array, %.1f us from a direct buffer, copy %.1f us;"
                + " 4 bytes, for the wake-up: push %.1f us%n", secondsOfPushes(false, FLOATS) * 1e6 / BATCHES,
                secondsOfPushes(true, FLOATS) * 1e6 / BATCHES, secondsOfCopies() * 1e6 / BATCHES,
                small * 1e6 / BATCHES);
        }
    }

    /** Elements one by one, by lent memory and by a buffer that nobody guards; and all in one go, and a copy. */
    private static void readLarge() {
        float[] all = new float[LARGE];
        try (Tensor tensor = Tensor.zeros(DType.FLOAT32, LARGE); Use use = new Use()) {
            ByteBuffer bare = Raw.java_buffer(Raw.tensor_get_data(use.of(tensor)), 4L * LARGE);
            bare.order(ByteOrder.nativeOrder());
            for (int round = 0; round < 5; round++) {
                double lent = seconds(() -> tensor.view(Overhead::sum));
                double buffer = seconds(() -> sum(bare));
                double bulk = seconds(() -> tensor.view(memory -> {
                    memory.get(0, all, 0, LARGE);
                    return 0;
                }));
                double array = seconds(() -> bare.asFloatBuffer().get(0, all));
                double copy = seconds(tensor::toBuffer);
                System.out.printf("400 MB: summed in %.0f ms by lent memory, %.0f ms by a bare buffer; into an array in"
                    + " %.0f ms, %.0f ms; a copy of it all %.0f ms%n", lent * 1e3, buffer * 1e3, bulk * 1e3,
                    array * 1e3, copy * 1e3);
            }
        }
    }

    private static double sum(TensorMemory memory) {
        double sum = 0;
        for (int i = 0; i < LARGE; i++) {
            sum += memory.getFloat(4 * i);
        }
        return sum;
    }

    private static double sum(ByteBuffer memory) {
        double sum = 0;
        for (int i = 0; i < LARGE; i++) {
            sum += memory.getFloat(4 * i);
        }
        return sum;
    }

    private static double seconds(Runnable function) {
        long start = System.nanoTime();
        function.run();
        return (System.nanoTime() - start) * 1e-9;
    }

    private static double secondsOfTraining(Hook... hooks) {
        try (Dataset dataset = Toy.dataset(); Estimator estimator = Toy.estimator()) {
            estimator.train(dataset, new TrainOptions().steps(1000), hooks);
            return estimator.train(dataset, new TrainOptions().steps(STEPS), hooks).seconds();
        }
    }

    /** From one call of a hook to the next one of the same event, the library's side included. */
    private static double secondsOfHooks() {
        int count = 100;
        long[] first = new long[1];
        long[] sum = new long[1];
        Hook[] hooks = new Hook[count];
        Arrays.fill(hooks, Hook.onStep(1, event -> { }));
        hooks[0] = Hook.onStep(1, event -> first[0] = System.nanoTime());
        hooks[count - 1] = Hook.onStep(1, event -> sum[0] += System.nanoTime() - first[0]);
        try (Dataset dataset = Toy.dataset(); Estimator estimator = Toy.estimator()) {
            estimator.train(dataset, new TrainOptions().steps(1000), hooks);
            sum[0] = 0;
            estimator.train(dataset, new TrainOptions().steps(STEPS), hooks);
        }
        return sum[0] * 1e-9 / STEPS / (count - 1);
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

    private static double secondsOfPushes(boolean isDirect, int floats) throws Exception {
        float[] data = new float[floats];
        Arrays.fill(data, 1);
        ByteBuffer buffer = ByteBuffer.allocateDirect(floats * Float.BYTES).order(ByteOrder.nativeOrder());
        buffer.asFloatBuffer().put(data);
        Feed.Component x = new Feed.Component("x", Role.FEATURE, DType.FLOAT32, floats);
        try (Feed feed = new Feed(CAPACITY, x); Dataset dataset = new Pipeline().addFeed(feed).build();
             DatasetIterator iterator = dataset.iterator(0)) {
            Thread reader = new Thread(() -> iterator.forEachRemaining(Tensor::closeAll));
            reader.start();
            long start = System.nanoTime();
            for (int i = 0; i < BATCHES; i++) {
                try (Tensor tensor = isDirect ? Tensor.of(DType.FLOAT32, buffer, floats) : Tensor.of(data)) {
                    feed.push(tensor);
                }
            }
            double seconds = (System.nanoTime() - start) * 1e-9;
            feed.finish();
            reader.join();
            return seconds;
        }
    }

    /** Into one place of a ring after the other, as a feed's batches lie. */
    private static double secondsOfCopies() {
        float[] data = new float[FLOATS];
        Arrays.fill(data, 1);
        float[][] ring = new float[CAPACITY + 2][FLOATS];
        long start = System.nanoTime();
        for (int i = 0; i < BATCHES; i++) {
            System.arraycopy(data, 0, ring[i % ring.length], 0, FLOATS);
        }
        return (System.nanoTime() - start) * 1e-9;
    }
}
