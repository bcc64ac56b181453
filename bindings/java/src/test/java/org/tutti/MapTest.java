// SPDX-License-Identifier: Apache-2.0
package org.tutti;

import static org.junit.Assert.assertArrayEquals;
import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertTrue;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.junit.Rule;
import org.junit.Test;
import org.junit.rules.TemporaryFolder;

public class MapTest {
    @Rule public Leaks leaks = new Leaks();
    @Rule public TemporaryFolder folder = new TemporaryFolder();

    private static Pipeline numbers(int count) {
        return new Pipeline().addSlices("n", Role.FEATURE, Toy.count(count));
    }

    private static Tensor[] doubled(Tensor[] element) {
        return new Tensor[] {Tensor.scalar(DType.INT64, element[0].toLongs()[0] * 2)};
    }

    private static long mapThreads() {
        return Thread.getAllStackTraces().keySet().stream().filter(t -> t.getName().equals("tutti-function")).count();
    }

    @Test
    public void mapsInJava() {
        assertTrue(Leaks.until(() -> mapThreads() == 0));
        for (long parallelism : new long[] {0, 1, 4}) {
            AtomicInteger running = new AtomicInteger();
            AtomicInteger most = new AtomicInteger();
            MapFunction map = element -> {
                most.accumulateAndGet(running.incrementAndGet(), Math::max);
                for (long i = element[0].toLongs()[0] % 7; i > 0; i--) {
                    Thread.yield();
                }
                running.decrementAndGet();
                return doubled(element);
            };
            try (Dataset dataset = numbers(100).map(parallelism, map).batch(100).build()) {
                for (int pass = 0; pass < 2; pass++) {
                    List<Long> wanted = IntStream.range(0, 100).mapToObj(i -> 2L * i).toList();
                    assertEquals(List.of(wanted), Toy.rows(dataset));
                }
            }
            assertTrue(most + " at a time", parallelism == 0 || most.get() <= parallelism);
        }
        assertTrue("threads are left", Leaks.until(() -> mapThreads() == 0));
    }

    /** Lines of text become features and labels. */
    @Test
    public void mapsGiveOtherComponents() throws Exception {
        Path path = folder.newFile("pairs.txt").toPath();
        Files.writeString(path, "3 1\n4 0\n5 1\n");
        MapFunction parse = element -> {
            String[] parts = element[0].toTexts()[0].split(" ");
            long n = Long.parseLong(parts[0]);
            Tensor x = Tensor.scalar(DType.INT64, n);
            return n == 4 ? new Tensor[] {x}
                : new Tensor[] {x, Tensor.scalar(DType.INT64, Long.parseLong(parts[1]))};
        };
        try (Dataset two = numbers(1).addSlices("odd", Role.FEATURE, Toy.count(1)).build();
             Dataset dataset = new Pipeline().textLines(List.of(path))
                 .map(parse, new MapOptions().parallelism(2).like(two))
                 .select(new SelectOptions().features("x = n").labels("odd")).build();
             DatasetIterator iterator = dataset.iterator(0)) {
            assertEquals("[FEATURE x INT64 [], LABEL odd INT64 []]", dataset.components().toString());
            for (long wanted = 3; wanted <= 5; wanted++) {
                if (wanted == 4) {
                    assertTrue(Toy.story(Toy.failure(iterator::read)).contains("gives 1 tensors; expected 2"));
                    continue;
                }
                Tensor[] element = iterator.read();
                assertArrayEquals(new long[] {wanted}, element[0].toLongs());
                assertArrayEquals(new long[] {wanted % 2}, element[1].toLongs());
                Tensor.closeAll(element);
            }
        }
    }

    @Test
    public void elementsAreComputedAtTheSameTime() {
        CountDownLatch both = new CountDownLatch(2);
        try (Dataset dataset = numbers(2).map(2, element -> {
            both.countDown();
            CloseTest.await(both);
            return element;
        }).build()) {
            assertEquals("[[0], [1]]", Toy.rows(dataset).toString());
        }
    }

    @Test
    public void aMapGivesItsInputs() {
        List<Tensor> kept = Collections.synchronizedList(new ArrayList<>());
        try (Dataset dataset = numbers(3).map(1, element -> {
            kept.add(element[0]);
            return element;
        }).build()) {
            assertEquals("[[0], [1], [2]]", Toy.rows(dataset).toString());
            assertTrue(Toy.failure(() -> kept.get(0).toLongs()) instanceof ClosedException);
        }
    }

    private static Object read(MapFunction function) {
        try (Dataset dataset = numbers(5).map(2, function).build(); DatasetIterator iterator = dataset.iterator(0)) {
            return iterator.read();
        }
    }

    @Test
    public void mapsFail() {
        for (Throwable thrown : ErrorsTest.throwables()) {
            TuttiException exception = Toy.failure(() -> read(element -> {
                ErrorsTest.<RuntimeException>raise(thrown);
                return null;
            }));
            assertTrue(thrown.getClass() + " is lost", Toy.isCausedBy(exception, thrown));
        }
        Toy.failure(() -> read(element -> new Tensor[0]));
        Toy.failure(() -> read(element -> null));
        Toy.failure(() -> read(element -> new Tensor[] {null}));
        Toy.failure(() -> read(element -> new Tensor[] {Tensor.scalar(DType.FLOAT32, 1)}));
        Toy.failure(() -> read(element -> {
            element[0].close();
            return element;
        }));
        Toy.failure(() -> read(element -> {
            Thread.currentThread().interrupt();
            throw new InterruptedException();
        }));
    }

    private static double loss(Dataset dataset) {
        RunOptions run = new RunOptions().seed(4).determinism(Determinism.REPEATABLE);
        try (Estimator estimator = Estimator.builder(Toy::model).options(run).build()) {
            return estimator.train(dataset, new TrainOptions().epochs(3)).loss();
        }
    }

    @Test
    public void trainingWithAMapInJava() {
        AtomicInteger calls = new AtomicInteger();
        try (Dataset train = Toy.pipeline().shuffle(Toy.ROWS).map(2, element -> {
            calls.incrementAndGet();
            return element;
        }).batch(Toy.BATCH).prefetch().build();
             Dataset plain = Toy.pipeline().shuffle(Toy.ROWS).batch(Toy.BATCH).build()) {
            assertEquals(loss(plain), loss(train), 0);
            assertTrue(calls.get() >= 3 * Toy.ROWS);
        }
        Exception mine = new Exception("mine");
        try (Dataset failing = Toy.pipeline().map(2, element -> {
            throw mine;
        }).batch(8).build(); Estimator estimator = Toy.estimator()) {
            assertTrue(Toy.isCausedBy(Toy.failure(() -> estimator.train(failing)), mine));
        }
    }

    private static final Feed.Component NUMBER = new Feed.Component("n", Role.FEATURE, DType.INT64);

    private static Stream<Tensor[]> tensors(IntStream numbers) {
        return numbers.mapToObj(i -> new Tensor[] {Tensor.scalar(DType.INT64, i)});
    }

    @Test
    public void datasetsFromStreams() {
        CountDownLatch closed = new CountDownLatch(1);
        try (Feed feed = Feed.builder(2, NUMBER).buildFrom(tensors(IntStream.range(0, 7)).onClose(closed::countDown));
             Dataset dataset = new Pipeline().addFeed(feed).batch(3).build()) {
            assertEquals("[[0, 1, 2], [3, 4, 5], [6]]", Toy.rows(dataset).toString());
            assertTrue(Leaks.until(() -> closed.getCount() == 0));
        }
    }

    @Test
    public void aStreamThatFails() {
        IllegalStateException mine = new IllegalStateException("mine");
        Stream<Tensor[]> elements = Stream.generate(() -> {
            throw mine;
        });
        try (Feed feed = Feed.builder(2, NUMBER).buildFrom(elements);
             Dataset dataset = new Pipeline().addFeed(feed).build()) {
            assertTrue(Toy.isCausedBy(Toy.failure(() -> Toy.rows(dataset)), mine));
        }
    }

    @Test
    public void aStreamIsClosedWithItsFeed() throws Exception {
        CountDownLatch closed = new CountDownLatch(1);
        Stream<Tensor[]> endless = tensors(IntStream.iterate(0, i -> i + 1)).onClose(closed::countDown);
        Feed feed = Feed.builder(1, NUMBER).buildFrom(endless);
        feed.close();
        CloseTest.await(closed);

        CountDownLatch waiting = new CountDownLatch(1);
        CountDownLatch alsoClosed = new CountDownLatch(1);
        Stream<Tensor[]> never = Stream.generate(() -> {
            waiting.countDown();
            try {
                new CountDownLatch(1).await();
            } catch (InterruptedException interrupted) {
                throw new IllegalStateException(interrupted);
            }
            return new Tensor[0];
        });
        Feed another = Feed.builder(1, NUMBER).buildFrom(never.onClose(alsoClosed::countDown));
        CloseTest.await(waiting);
        another.close();
        CloseTest.await(alsoClosed);
    }

    /** The stream is endless; the feed, its dataset and its iterator are forgotten. */
    @Test
    public void aForgottenStreamIsClosed() {
        CountDownLatch closed = new CountDownLatch(1);
        forget(closed);
        assertTrue(Leaks.collectUntil(() -> closed.getCount() == 0));
    }

    private static void forget(CountDownLatch closed) {
        Stream<Tensor[]> elements = tensors(IntStream.iterate(0, i -> i + 1)).onClose(closed::countDown);
        DatasetIterator iterator =
            new Pipeline().addFeed(Feed.builder(1, NUMBER).buildFrom(elements)).build().iterator(0);
        for (long i = 0; i < 5; i++) {
            System.gc();
            Tensor[] element = iterator.next();
            assertArrayEquals(new long[] {i}, element[0].toLongs());
            Tensor.closeAll(element);
        }
    }

    @Test
    public void severalThreadsPush() {
        try (Feed feed = new Feed(3, NUMBER); Dataset dataset = new Pipeline().addFeed(feed).build()) {
            AtomicInteger left = new AtomicInteger(3);
            for (int i = 0; i < 3; i++) {
                new Thread(() -> {
                    for (int j = 0; j < 50; j++) {
                        try (Tensor tensor = Tensor.scalar(DType.INT64, j)) {
                            feed.push(tensor);
                        }
                    }
                    if (left.decrementAndGet() == 0) {
                        feed.finish();
                    }
                }).start();
            }
            assertEquals(150, Toy.rows(dataset).size());
            assertEquals(0, feed.position());
        }
    }

    private static void push(Feed feed, long number) {
        try (Tensor tensor = Tensor.scalar(DType.INT64, number)) {
            feed.push(tensor);
        }
    }

    private static void take(DatasetIterator iterator, long wanted) {
        Tensor[] element = iterator.read();
        assertEquals(wanted, element[0].toLongs()[0]);
        Tensor.closeAll(element);
    }

    /** Of a pool: who takes an element out may push the next, while another thread takes. */
    @Test
    public void threadsThatReadAndPushChange() throws Exception {
        ExecutorService pool = Executors.newFixedThreadPool(3);
        ExecutorService source = Executors.newSingleThreadExecutor();
        try (Feed feed = new Feed(1, NUMBER); Dataset dataset = new Pipeline().addFeed(feed).build();
             DatasetIterator iterator = dataset.iterator(0)) {
            push(feed, 0);
            take(iterator, 0);
            push(feed, 1); // it is full: this thread waits until another one takes
            Future<?> taken = pool.submit(() -> {
                Thread.sleep(20);
                take(iterator, 1);
                take(iterator, 2);
                return null;
            });
            push(feed, 2);
            CloseTest.within(taken);
            Future<?> pushes = source.submit(() -> {
                for (int i = 3; i < 300; i++) {
                    int number = i;
                    CloseTest.within(pool.submit(() -> push(feed, number)));
                }
                return null;
            });
            for (int i = 3; i < 300; i++) {
                int number = i;
                CloseTest.within(pool.submit(() -> take(iterator, number)));
            }
            CloseTest.within(pushes);
        } finally {
            pool.shutdown();
            source.shutdown();
        }
    }
}
