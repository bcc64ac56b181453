// SPDX-License-Identifier: Apache-2.0
package org.tutti;

import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertNotNull;
import static org.junit.Assert.assertTrue;

import java.lang.ref.WeakReference;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Callable;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Executors;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.After;
import org.junit.Rule;
import org.junit.Test;

public class CloseTest {
    @Rule public Leaks leaks = new Leaks();
    private final ExecutorService other = Executors.newCachedThreadPool();

    @After
    public void endThreads() throws Exception {
        other.shutdown();
        assertTrue(other.awaitTermination(60, TimeUnit.SECONDS));
    }

    static <T> T within(Future<T> future) throws Exception {
        return future.get(60, TimeUnit.SECONDS);
    }

    static void await(CountDownLatch latch) throws Exception {
        assertTrue(latch.await(60, TimeUnit.SECONDS));
    }

    @Test
    public void useAfterClose() {
        Dataset dataset = Toy.dataset();
        Estimator estimator = Toy.estimator();
        Strategy strategy = Strategy.mirrored();
        Tensor tensor = Tensor.of(new float[1]);
        Feed feed = new Feed(1, new Feed.Component("x", Role.FEATURE, DType.FLOAT32));
        DatasetIterator iterator = dataset.iterator(0);
        Session session = estimator.openSession(dataset);
        session.run(1);
        session.close();
        estimator.train(dataset, new TrainOptions().steps(1));
        Predictor predictor = estimator.predictor();
        PredictionStream stream = predictor.stream(dataset);
        Batch batch = stream.read();
        Context context = new Context();
        Pipeline pipeline = Toy.pipeline();
        for (NativeObject object : List.of(dataset, estimator, strategy, tensor, feed, iterator, session, predictor,
            stream, batch, context, pipeline)) {
            object.close();
            object.close();
            assertTrue(object.isClosed());
        }
        Map<String, Callable<?>> calls = new LinkedHashMap<>();
        calls.put("train", () -> estimator.train(dataset));
        calls.put("evaluate", () -> estimator.evaluate(dataset));
        calls.put("step", estimator::globalStep);
        calls.put("dataset", () -> dataset.iterator(0));
        calls.put("components", dataset::components);
        calls.put("iterator", iterator::next);
        calls.put("strategy", strategy::context);
        calls.put("tensor", tensor::toFloats);
        calls.put("dims", tensor::dims);
        calls.put("view", () -> tensor.view(memory -> 0));
        calls.put("feed", () -> {
            feed.push();
            return null;
        });
        calls.put("session", () -> session.run(1));
        calls.put("finish", session::finish);
        calls.put("run", () -> predictor.run(Map.of()));
        calls.put("stream", stream::next);
        calls.put("batch", () -> batch.output("class"));
        calls.put("devices", context::devices);
        calls.put("build", pipeline::build);
        calls.put("transform", () -> pipeline.batch(1));
        calls.put("of context", () -> new Pipeline(context));
        calls.put("slices", () -> new Pipeline().addSlices("x", Role.FEATURE, tensor));
        calls.put("zip", () -> Toy.pipeline().zip(dataset));
        calls.forEach((name, call) -> {
            TuttiException exception = Toy.failure(call);
            assertTrue(name + ": " + exception, exception instanceof ClosedException);
            assertEquals(Code.FAILED_PRECONDITION, exception.code());
        });
    }

    private static void isEndedByClose(String kind, TuttiException exception) {
        assertEquals(Code.CANCELLED, exception.code());
        Throwable last = exception;
        while (last.getCause() != null) {
            last = last.getCause();
        }
        assertTrue(String.valueOf(last), last instanceof ClosedException);
        assertEquals("the " + kind + " was closed during the call", ((ClosedException) last).reason());
    }

    @Test
    public void closingCancelsTraining() throws Exception {
        try (Dataset dataset = Toy.dataset()) {
            Estimator estimator = Toy.estimator();
            CountDownLatch runs = new CountDownLatch(1);
            Future<TuttiException> train = other.submit(() ->
                Toy.failure(() -> estimator.train(dataset, Hook.onStep(1, event -> runs.countDown()))));
            await(runs);
            estimator.close(); // waits until the training has ended
            isEndedByClose("Estimator", within(train));
            assertTrue(Toy.failure(estimator::globalStep) instanceof ClosedException);
        }
    }

    @Test
    public void closingInsideAHookDoesNotWait() {
        Dataset dataset = Toy.dataset();
        Estimator estimator = Toy.estimator();
        TuttiException exception = Toy.failure(() -> estimator.train(dataset, Hook.onStep(1, event -> {
            dataset.close();
            estimator.close();
            System.gc();
        })));
        isEndedByClose("Estimator", exception);
    }

    @Test
    public void closingTheDatasetLetsTrainingFinish() {
        Dataset dataset = Toy.dataset();
        try (Estimator estimator = Toy.estimator()) {
            Hook closing = Hook.onStep(5, event -> dataset.close());
            Result result = estimator.train(dataset, new TrainOptions().steps(20), closing);
            assertEquals(20, result.step());
        }
    }

    @Test
    public void closingASessionCancelsItsRun() throws Exception {
        try (Dataset dataset = Toy.dataset(); Estimator estimator = Toy.estimator()) {
            CountDownLatch runs = new CountDownLatch(1);
            Session session = estimator.openSession(dataset, Hook.onStep(1, event -> runs.countDown()));
            Future<TuttiException> run = other.submit(() -> Toy.failure(() -> session.run(Integer.MAX_VALUE)));
            await(runs);
            session.close();
            assertEquals(Code.CANCELLED, within(run).code());
            estimator.train(dataset, new TrainOptions().steps(1));
        }
    }

    @Test
    public void closingEndsReadsAndPushes() throws Exception {
        Feed feed = new Feed(1, new Feed.Component("x", Role.FEATURE, DType.FLOAT32));
        Dataset dataset = new Pipeline().addFeed(feed).build();
        DatasetIterator iterator = dataset.iterator(0);
        CountDownLatch reads = new CountDownLatch(1);
        Future<TuttiException> read = other.submit(() -> {
            reads.countDown();
            return Toy.failure(iterator::read);
        });
        await(reads);
        iterator.close(); // before or in the read
        TuttiException ended = within(read);
        assertTrue(ended.toString(), ended instanceof ClosedException || ended.code() == Code.CANCELLED);
        dataset.close();
        feed.close();

        Feed full = new Feed(1, new Feed.Component("x", Role.FEATURE, DType.FLOAT32));
        try (Tensor tensor = Tensor.scalar(DType.FLOAT32, 1)) {
            full.push(tensor);
            CountDownLatch pushes = new CountDownLatch(1);
            Future<TuttiException> push = other.submit(() -> {
                pushes.countDown();
                return Toy.failure(() -> {
                    full.push(tensor);
                    return null;
                });
            });
            await(pushes);
            full.close();
            ended = within(push);
            assertTrue(ended.toString(), ended instanceof ClosedException || ended.code() == Code.CANCELLED);
        }
    }

    @Test
    public void closingWhileMemoryIsLent() throws Exception {
        Tensor tensor = Tensor.of(new float[] {1, 2});
        CountDownLatch lent = new CountDownLatch(1);
        CountDownLatch closing = new CountDownLatch(1);
        Future<Float> value = other.submit(() -> tensor.view(memory -> {
            lent.countDown();
            try {
                await(closing);
            } catch (Exception failure) {
                throw new AssertionError(failure);
            }
            assertTrue(Leaks.until(tensor::isClosed));
            return memory.getFloat(4);
        }));
        await(lent);
        closing.countDown();
        tensor.close(); // waits for the view
        assertEquals(2, within(value), 0);
        assertEquals(0, (int) Tensor.of(new float[1]).view(memory -> {
            tensor.close();
            return 0;
        }));
    }

    /** Objects are made, used and closed by many threads at once while the collector runs without pause. */
    @Test
    public void closingRaces() throws Exception {
        AtomicInteger running = new AtomicInteger(4);
        try (Dataset dataset = Toy.testset()) {
            Future<?>[] workers = new Future<?>[4];
            for (int i = 0; i < workers.length; i++) {
                workers[i] = other.submit(() -> {
                    for (int round = 0; round < 40; round++) {
                        race(dataset, round);
                    }
                    running.decrementAndGet();
                    return null;
                });
            }
            while (running.get() > 0 && !workers[0].isDone()) {
                System.gc();
            }
            for (Future<?> worker : workers) {
                within(worker);
            }
        }
    }

    private void race(Dataset dataset, int round) throws Exception {
        Tensor tensor = Tensor.of(new float[1000]);
        Future<?> closer = other.submit(tensor::close);
        for (int i = 0; i < 3; i++) {
            try {
                assertEquals(1000, tensor.toFloats().length);
            } catch (ClosedException closed) {
                assertTrue(tensor.isClosed());
            }
        }
        within(closer);
        Tensor[] element = dataset.iterator(round).read(); // both are left to the collector
        assertNotNull(element);
        Tensor.of(new float[100]).toFloats(); // in use when it is unreachable
    }

    private static List<WeakReference<int[]>> heldByCallbacks() {
        int[] inModel = new int[1 << 16];
        int[] inHook = new int[1 << 16];
        try (Dataset dataset = Toy.dataset()) {
            Estimator[] ring = new Estimator[1];
            ring[0] = new Estimator((g, mode) -> {
                inModel[0] += ring.length;
                Toy.model(g, mode);
            });
            ring[0].train(dataset, new TrainOptions().steps(1), Hook.onStep(1, event -> inHook[0]++));
            ring[0].close();
        }
        return List.of(new WeakReference<>(inModel), new WeakReference<>(inHook));
    }

    /** A model function holds what holds the estimator: the collector takes the whole ring once it is closed. */
    @Test
    public void callbacksAreReleased() {
        List<WeakReference<int[]>> held = heldByCallbacks();
        assertTrue(Leaks.collectUntil(() -> held.stream().allMatch(reference -> reference.get() == null)));
    }
}
