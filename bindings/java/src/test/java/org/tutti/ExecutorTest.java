// SPDX-License-Identifier: Apache-2.0
package org.tutti;

import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertFalse;
import static org.junit.Assert.assertTrue;

import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.After;
import org.junit.Rule;
import org.junit.Test;

/** Calls on threads of the program's choosing. */
public class ExecutorTest {
    @Rule public Leaks leaks = new Leaks();
    private final AtomicReference<Thread> thread = new AtomicReference<>();
    private final ExecutorService mine = Executors.newSingleThreadExecutor(task -> {
        thread.set(new Thread(task, "mine"));
        return thread.get();
    });

    @After
    public void endThreads() throws Exception {
        mine.shutdown();
        assertTrue(mine.awaitTermination(60, TimeUnit.SECONDS));
    }

    @Test
    public void callsRunThere() throws Exception {
        AtomicInteger here = new AtomicInteger();
        Hook counting = Hook.onStep(1, event -> here.addAndGet(Thread.currentThread() == thread.get() ? 1 : 0));
        try (Dataset dataset = Toy.dataset(); Dataset test = Toy.testset(); Estimator estimator = Toy.estimator()) {
            CloseTest.within(estimator.trainAsync(mine, dataset, new TrainOptions().steps(3), counting));
            assertEquals(3, here.get());
            assertEquals(Toy.ROWS, CloseTest.within(estimator.evaluateAsync(mine, test)).examples());
            try (Predictor predictor = estimator.predictor();
                 Tensor rows = Tensor.of(Toy.features(), Toy.ROWS, Toy.COLUMNS);
                 Batch one = CloseTest.within(predictor.runAsync(mine, Map.of("x", rows)));
                 Batch all = CloseTest.within(predictor.runAllAsync(mine, test))) {
                assertEquals(one.rows(), all.rows());
            }
            CompletableFuture<Result> direct = estimator.evaluateAsync(Runnable::run, test);
            assertTrue(direct.isDone());
        }
    }

    @Test
    public void aCallThatWaitsForItsThreadCanBeCancelled() throws Exception {
        CountDownLatch busy = new CountDownLatch(1);
        mine.execute(() -> {
            try {
                CloseTest.await(busy);
            } catch (Exception failure) {
                throw new AssertionError(failure);
            }
        });
        try (Dataset test = Toy.testset(); Estimator estimator = Toy.estimator()) {
            CompletableFuture<Result> future = estimator.evaluateAsync(mine, test);
            assertTrue(future.cancel(true));
            busy.countDown();
            assertFalse("the thread is as it was", CloseTest.within(mine.submit(Thread::interrupted)));
        }
    }

    @Test
    public void cancellingInterruptsOnlyItsOwnCall() throws Exception {
        CountDownLatch runs = new CountDownLatch(1);
        try (Dataset dataset = Toy.dataset(); Estimator estimator = Toy.estimator()) {
            CompletableFuture<Result> future =
                estimator.trainAsync(mine, dataset, new TrainOptions(), Hook.onStep(1, event -> runs.countDown()));
            CloseTest.await(runs);
            assertTrue(future.cancel(true));
            assertFalse("the thread is free again", CloseTest.within(mine.submit(Thread::interrupted)));
        }
    }
}
