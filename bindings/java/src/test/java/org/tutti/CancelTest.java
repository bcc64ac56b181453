// SPDX-License-Identifier: Apache-2.0
package org.tutti;

import static org.junit.Assert.assertArrayEquals;
import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertFalse;
import static org.junit.Assert.assertTrue;

import java.nio.ByteBuffer;
import java.nio.channels.Pipe;
import java.time.Duration;
import java.util.Arrays;
import java.util.concurrent.CancellationException;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.Supplier;
import org.junit.After;
import org.junit.Rule;
import org.junit.Test;

public class CancelTest {
    @Rule public Leaks leaks = new Leaks();
    private final ExecutorService other = Executors.newCachedThreadPool();

    @After
    public void endThreads() throws Exception {
        other.shutdown();
        assertTrue(other.awaitTermination(60, TimeUnit.SECONDS));
    }

    private static void isInterrupted(TuttiException exception) {
        assertEquals(Code.CANCELLED, exception.code());
        Throwable last = exception;
        while (last.getCause() != null) {
            last = last.getCause();
        }
        assertTrue(exception.toString(), last instanceof InterruptedException);
    }

    @Test
    public void anInterruptCancelsTraining() throws Exception {
        try (Dataset dataset = Toy.dataset(); Estimator estimator = Toy.estimator()) {
            CountDownLatch runs = new CountDownLatch(1);
            AtomicReference<TuttiException> thrown = new AtomicReference<>();
            Thread thread = new Thread(() -> {
                thrown.set(Toy.failure(() -> estimator.train(dataset, Hook.onStep(1, event -> runs.countDown()))));
                assertTrue("the status is set", Thread.currentThread().isInterrupted());
            });
            thread.start();
            CloseTest.await(runs);
            thread.interrupt();
            thread.join(60_000);
            isInterrupted(thrown.get());
            estimator.train(dataset, new TrainOptions().steps(2)); // it can be used again
        }
    }

    @Test
    public void anInterruptBeforeTheCallCancelsIt() {
        try (Dataset dataset = Toy.dataset(); Estimator estimator = Toy.estimator()) {
            Thread.currentThread().interrupt();
            isInterrupted(Toy.failure(() -> estimator.train(dataset)));
            assertTrue(Thread.interrupted());
            estimator.train(dataset, new TrainOptions().steps(1));
        }
    }

    /** The hook takes the thread's slot for interrupts, and another call of the library does, too. */
    @Test
    public void anInterruptAfterAHookThatUsedChannels() throws Exception {
        try (Dataset dataset = Toy.dataset(); Estimator estimator = Toy.estimator()) {
            CountDownLatch runs = new CountDownLatch(3);
            AtomicReference<TuttiException> thrown = new AtomicReference<>();
            Pipe pipe = Pipe.open();
            Thread thread = new Thread(() -> thrown.set(Toy.failure(() ->
                estimator.train(dataset, Hook.onStep(1, event -> {
                    if (runs.getCount() > 0) {
                        pipe.sink().write(ByteBuffer.allocate(1));
                        pipe.source().read(ByteBuffer.allocate(1));
                        Tensor.closeAll(dataset.iterator(1).read());
                    }
                    runs.countDown();
                })))));
            thread.start();
            CloseTest.await(runs);
            thread.interrupt();
            thread.join(60_000);
            isInterrupted(thrown.get());
            pipe.sink().close();
            pipe.source().close();
        }
    }

    @Test
    public void aFutureOfAnExecutorCancels() throws Exception {
        try (Dataset dataset = Toy.dataset(); Estimator estimator = Toy.estimator()) {
            CountDownLatch runs = new CountDownLatch(1);
            CountDownLatch ended = new CountDownLatch(1);
            Future<?> future = other.submit(() -> {
                Toy.failure(() -> estimator.train(dataset, Hook.onStep(1, event -> runs.countDown())));
                ended.countDown();
            });
            CloseTest.await(runs);
            assertTrue(future.cancel(true));
            CloseTest.await(ended);
        }
    }

    @Test
    public void asynchronousCalls() throws Exception {
        try (Dataset dataset = Toy.dataset(); Dataset test = Toy.testset(); Estimator estimator = Toy.estimator()) {
            Result result = CloseTest.within(estimator.trainAsync(dataset, new TrainOptions().steps(3)));
            assertEquals(3, result.step());
            assertEquals(Toy.ROWS, CloseTest.within(estimator.evaluateAsync(test)).examples());
            CountDownLatch runs = new CountDownLatch(1);
            CountDownLatch ended = new CountDownLatch(1);
            TrainOptions endless = new TrainOptions();
            CompletableFuture<Result> future = estimator.trainAsync(dataset, endless, Hook.onEvent(1, event -> {
                if (event.kind() == EventKind.STEP) {
                    runs.countDown();
                } else if (event.kind() == EventKind.ERROR) {
                    ended.countDown();
                }
            }));
            CloseTest.await(runs);
            assertTrue(future.cancel(true));
            CloseTest.await(ended);
            try {
                future.get();
                throw new AssertionError();
            } catch (CancellationException wanted) {
                assertTrue(future.isCancelled());
            }
            try {
                CloseTest.within(estimator.evaluateAsync(null));
                throw new AssertionError();
            } catch (ExecutionException wanted) {
                assertEquals(Code.INVALID_ARGUMENT, ((TuttiException) wanted.getCause()).code());
            }
        }
    }

    @Test
    public void aFutureThatIsCancelledAtAnyMoment() {
        try (Dataset dataset = Toy.dataset(); Estimator estimator = Toy.estimator()) {
            estimator.train(dataset, new TrainOptions().steps(1));
            try (Predictor predictor = estimator.predictor(); Dataset test = Toy.testset()) {
                for (int i = 0; i < 200; i++) {
                    CompletableFuture<Batch> future = predictor.runAllAsync(test);
                    if (i % 3 > 0) {
                        assertTrue(Leaks.until(() -> future.isDone() || Tutti.liveObjects("cancel") > 0));
                    }
                    future.cancel(true);
                    if (!future.isCancelled()) {
                        future.join().close();
                    }
                }
            }
        }
    }

    /** A function of data sees that nobody waits for it any more, and gets its element again when the walk goes on. */
    @Test
    public void functionsSeeWhatEndsTheirCall() throws Exception {
        assertFalse(Cancellation.isRequested());
        Cancellation.check();
        AtomicInteger tries = new AtomicInteger();
        CountDownLatch waits = new CountDownLatch(1);
        MapFunction slow = element -> {
            if (tries.incrementAndGet() == 1) {
                waits.countDown();
                while (true) {
                    Cancellation.check();
                    Thread.sleep(1);
                }
            }
            assertFalse(Cancellation.isRequested());
            return element;
        };
        Cancellation cancellation = new Cancellation();
        try (Dataset dataset = Toy.pipeline().map(1, slow).build(); DatasetIterator iterator = dataset.iterator()) {
            Future<TuttiException> read = other.submit(() -> Toy.failure(() -> cancellation.call(iterator::read)));
            CloseTest.await(waits);
            cancellation.cancel();
            assertEquals(Code.CANCELLED, CloseTest.within(read).code());
            Tensor[] element = iterator.read();
            assertArrayEquals(Arrays.copyOf(Toy.features(), Toy.COLUMNS), element[0].toFloats(), 0);
            Tensor.closeAll(element);
            assertEquals(2, tries.get());
        }
    }

    /** A function that asks nothing, and cancels what reads in its third call. */
    private static final class SlowFunction implements MapFunction {
        private final AtomicInteger calls = new AtomicInteger();
        private volatile Cancellation cancellation;

        @Override
        public Tensor[] map(Tensor[] element) throws Exception {
            Cancellation reader = cancellation;
            if (calls.incrementAndGet() == 3 && reader != null) {
                reader.cancel();
            }
            if (reader != null) {
                Thread.sleep(20);
            }
            return element;
        }

        /** The call ends with the element under way, not with the batch. */
        void ends(Supplier<?> call) {
            calls.set(0);
            Cancellation reader = new Cancellation();
            cancellation = reader;
            assertEquals(Code.CANCELLED, Toy.failure(() -> reader.call(call)).code());
            cancellation = null;
            assertTrue(calls + " calls", calls.get() <= Toy.ROWS / 2);
        }
    }

    /** What was read is part of what the next call gives. */
    @Test
    public void slowFunctionsEndTheirCallWithTheElement() {
        SlowFunction slow = new SlowFunction();
        try (Dataset dataset = Toy.pipeline().map(1, slow).batch(Toy.ROWS).build();
             DatasetIterator iterator = dataset.iterator(); Estimator estimator = Toy.estimator()) {
            slow.ends(iterator::read);
            slow.ends(() -> estimator.train(dataset));
            slow.ends(() -> {
                try (Session session = estimator.openSession(dataset)) {
                    return session.run(1);
                }
            });
            Tensor[] element = iterator.read();
            assertArrayEquals(Toy.features(), element[0].toFloats(), 0);
            Tensor.closeAll(element);
            assertEquals(Toy.ROWS, estimator.train(dataset).examples());
        }
    }

    /** Hooks and file systems are for a call, too. */
    @Test
    public void hooksSeeWhatEndsTheirCall() {
        Cancellation cancellation = new Cancellation();
        boolean[] seen = new boolean[2];
        try (Dataset dataset = Toy.dataset(); Estimator estimator = Toy.estimator()) {
            Toy.failure(() -> cancellation.call(() -> estimator.train(dataset, Hook.onStep(1, event -> {
                seen[0] |= Cancellation.isRequested();
                cancellation.cancel();
                seen[1] |= Cancellation.isRequested();
            }))));
        }
        assertFalse(seen[0]);
        assertTrue(seen[1]);
    }

    @Test
    public void stopIsPolite() {
        Cancellation stop = new Cancellation();
        try (Dataset dataset = Toy.dataset(); Estimator estimator = Toy.estimator()) {
            Result result = stop.call(() -> estimator.train(dataset, Hook.onStep(1, event -> {
                if (event.step() == 5) {
                    stop.stop();
                }
            })));
            assertEquals(Reason.STOPPED, result.reason());
            assertTrue(result.step() >= 5);
            Result byHook = estimator.train(dataset, Hook.onStep(3, Event::stop));
            assertEquals(Reason.STOPPED, byHook.reason());
            assertTrue(byHook.step() > result.step());
        }
    }

    @Test
    public void cancelFromAnotherThread() throws Exception {
        Cancellation outer = new Cancellation();
        Cancellation inner = new Cancellation();
        try (Dataset dataset = Toy.dataset(); Estimator estimator = Toy.estimator()) {
            for (Cancellation cancellation : new Cancellation[] {outer, inner}) {
                CountDownLatch runs = new CountDownLatch(1);
                Future<?> cancel = other.submit(() -> {
                    CloseTest.await(runs);
                    cancellation.cancel();
                    return null;
                });
                TuttiException exception = Toy.failure(() -> new Cancellation().call(() -> cancellation.call(() ->
                    estimator.train(dataset, Hook.onStep(1, event -> runs.countDown())))));
                assertEquals(Code.CANCELLED, exception.code());
                CloseTest.within(cancel);
            }
            assertEquals(Code.CANCELLED, Toy.failure(() -> outer.call(() -> estimator.train(dataset))).code());
            estimator.train(dataset, new TrainOptions().steps(1));
        }
    }

    @Test
    public void deadlines() {
        Feed feed = new Feed(1, new Feed.Component("x", Role.FEATURE, DType.FLOAT32));
        try (feed; Dataset dataset = new Pipeline().addFeed(feed).build();
             DatasetIterator iterator = dataset.iterator(0);
             Tensor one = Tensor.scalar(DType.FLOAT32, 1)) {
            Cancellation late = new Cancellation();
            late.timeout(Duration.ofMillis(1));
            Cancellation later = new Cancellation();
            later.timeout(Duration.ofDays(1));
            assertEquals(Code.DEADLINE_EXCEEDED,
                Toy.failure(() -> later.call(() -> late.call(iterator::read))).code());
            feed.push(one);
            Tensor.closeAll(later.call(iterator::read)); // nothing is lost
            assertFalse(Thread.interrupted());
        }
        Cancellation running = new Cancellation();
        try (Dataset dataset = Toy.dataset(); Estimator estimator = Toy.estimator()) {
            assertEquals(Code.DEADLINE_EXCEEDED, Toy.failure(() -> running.call(() -> estimator.train(dataset,
                Hook.onStep(1, event -> running.timeout(Duration.ZERO))))).code());
        }
    }

    @Test
    public void aSessionHeedsInterruptsAndCancellations() {
        try (Dataset dataset = Toy.dataset(); Estimator estimator = Toy.estimator()) {
            try (Session session = estimator.openSession(dataset)) {
                session.run(2);
                Thread.currentThread().interrupt();
                isInterrupted(Toy.failure(() -> session.run(2)));
                assertTrue(Thread.interrupted());
            }
            Cancellation cancellation = new Cancellation();
            try (Session session = cancellation.call(() -> estimator.openSession(dataset))) {
                session.run(2);
                cancellation.stop();
                assertEquals(Reason.STOPPED, session.run(5).reason());
                session.finish();
            }
        }
    }

    /** Cancelled from elsewhere at any moment, an estimator leaves nothing behind and can be used again. */
    @Test
    public void cancellingAtAnyMoment() throws Exception {
        try (Dataset dataset = Toy.dataset(); Estimator estimator = Toy.estimator()) {
            for (int i = 0; i < 30; i++) {
                Cancellation cancellation = new Cancellation();
                Future<?> cancel = other.submit(cancellation::cancel);
                assertEquals(Code.CANCELLED,
                    Toy.failure(() -> cancellation.call(() -> estimator.train(dataset))).code());
                CloseTest.within(cancel);
            }
            estimator.train(dataset, new TrainOptions().steps(2));
        }
    }
}
