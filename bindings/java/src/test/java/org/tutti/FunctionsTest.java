// SPDX-License-Identifier: Apache-2.0
package org.tutti;

import static org.junit.Assert.assertArrayEquals;
import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertNull;
import static org.junit.Assert.assertTrue;

import java.util.List;
import java.util.concurrent.Callable;
import java.util.function.Function;
import org.junit.Rule;
import org.junit.Test;

/** Functions of Java over elements, but for maps. */
public class FunctionsTest {
    @Rule public Leaks leaks = new Leaks();

    private static final Feed.Component NUMBER = new Feed.Component("n", Role.FEATURE, DType.INT64);

    private static Pipeline numbers(int count) {
        return new Pipeline().addSlices("n", Role.FEATURE, Toy.count(count));
    }

    private static long value(Tensor tensor) {
        return tensor.toLongs()[0];
    }

    private static Tensor[] tensors(long value) {
        return new Tensor[] {Tensor.scalar(DType.INT64, value)};
    }

    private static void gives(String wanted, Pipeline pipeline) {
        try (Dataset dataset = pipeline.build()) {
            assertEquals(wanted, Toy.rows(dataset).toString());
            assertEquals(wanted, Toy.rows(dataset).toString());
        }
    }

    @Test
    public void predicates() {
        gives("[[1], [3], [5]]", numbers(7).filter(element -> value(element[0]) % 2 == 1));
        gives("[[0, 1, 2]]", numbers(7).takeWhile(element -> value(element[0]) < 3).batch(3));
    }

    private static ScanFunction.Step runningSum(Tensor[] state, Tensor[] element) {
        long sum = value(state[0]) + value(element[0]);
        return new ScanFunction.Step(tensors(sum), tensors(sum));
    }

    @Test
    public void scans() {
        try (Tensor zero = Tensor.scalar(DType.INT64, 0);
             Dataset two = numbers(1).addSlices("square", Role.FEATURE, Toy.count(1)).build()) {
            ScanState sum = new ScanState("sum", zero);
            gives("[[0], [1], [3], [6], [10]]", numbers(5).scan(FunctionsTest::runningSum, sum));
            gives("[[0], [1], [3], [6], [10]]", numbers(5).scanGraph(g -> {
                Value next = g.add(g.feature("sum"), g.feature("n"));
                g.output("sum", next);
                g.output("n", next);
            }, sum));
            gives("[[0], [1], [4], [9]]", numbers(4).scan((state, element) -> {
                long n = value(element[0]);
                return new ScanFunction.Step(state, tensors(n * n)[0], tensors(n)[0]);
            }, two, sum));
        }
    }

    /** A walk that goes on in the middle has the state of that place. */
    @Test
    public void scansGoOn() {
        try (Tensor zero = Tensor.scalar(DType.INT64, 0);
             Dataset dataset = numbers(6).scan(FunctionsTest::runningSum, new ScanState("sum", zero)).build();
             DatasetIterator iterator = dataset.iterator(0);
             DatasetIterator again = dataset.iterator(0)) {
            for (int i = 0; i < 4; i++) {
                Tensor.closeAll(iterator.next());
            }
            again.restore(iterator.save());
            Tensor[] element = again.next();
            assertEquals(0 + 1 + 2 + 3 + 4, value(element[0]));
            Tensor.closeAll(element);
        }
    }

    private static Dataset three(Tensor[] element) {
        long base = 10 * value(element[0]);
        return new Pipeline().addSlices("n", Role.FEATURE, new long[] {base, base + 1, base + 2}).build();
    }

    @Test
    public void datasetsOfElements() {
        gives("[[0], [1], [2], [10], [11], [12]]", numbers(2).flatMap(FunctionsTest::three));
        gives("[[0], [1], [2], [10], [11], [12]]",
            numbers(2).flatMap(FunctionsTest::three, new FlatMapOptions().readAhead(true)));
        gives("[[0], [1], [10], [11], [2], [12], [20], [21], [22]]",
            numbers(3).interleaveMap(FunctionsTest::three, new InterleaveMapOptions().cycleLength(2).blockLength(2)));
        try (Dataset shared = new Pipeline().addSlices("text", Role.LABEL, new float[] {1, 2}).build();
             Dataset dataset = numbers(2).flatMap(e -> shared, new FlatMapOptions().like(shared)).build();
             DatasetIterator iterator = dataset.iterator(0)) {
            assertEquals(Role.LABEL, dataset.spec().component("text").role());
            for (float wanted : new float[] {1, 2, 1, 2}) {
                Tensor[] element = iterator.next();
                assertArrayEquals(new float[] {wanted}, element[0].toFloats(), 0);
                Tensor.closeAll(element);
            }
            assertNull(iterator.read());
        }
    }

    private static Tensor[] ofPass(long pass, long index) {
        return index == 3 ? null : tensors(10 * pass + index);
    }

    @Test
    public void generators() {
        gives("[[0], [1], [2], [10], [11], [12]]",
            new Pipeline().addGenerator(FunctionsTest::ofPass, NUMBER).repeat(new RepeatOptions().count(2)));
        try (Dataset dataset = new Pipeline().addGenerator(FunctionsTest::ofPass, NUMBER).build();
             DatasetIterator iterator = dataset.iterator(0);
             DatasetIterator again = dataset.iterator(0)) {
            Tensor.closeAll(iterator.next());
            again.restore(iterator.save());
            Tensor[] element = again.next();
            assertEquals(1, value(element[0]));
            Tensor.closeAll(element);
        }
    }

    private static Object read(Pipeline pipeline) {
        try (Dataset dataset = pipeline.build(); DatasetIterator iterator = dataset.iterator(0)) {
            return iterator.read();
        }
    }

    private static void breaks(String name, Function<Callable<?>, Pipeline> way) {
        for (Throwable thrown : ErrorsTest.throwables()) {
            TuttiException exception = Toy.failure(() -> read(way.apply(() -> {
                ErrorsTest.<RuntimeException>raise(thrown);
                return null;
            })));
            assertTrue(name + ": " + thrown.getClass() + " is lost", Toy.isCausedBy(exception, thrown));
        }
    }

    @Test
    public void functionsFail() {
        try (Tensor zero = Tensor.scalar(DType.INT64, 0)) {
            ScanState sum = new ScanState("sum", zero);
            breaks("filter", fail -> numbers(3).filter(element -> fail.call() == null));
            breaks("takeWhile", fail -> numbers(3).takeWhile(element -> fail.call() == null));
            breaks("scan", fail -> numbers(3).scan((state, element) -> (ScanFunction.Step) fail.call(), sum));
            breaks("flatMap", fail -> numbers(3).flatMap(element -> (Dataset) fail.call()));
            breaks("interleaveMap", fail -> numbers(3).interleaveMap(element -> (Dataset) fail.call()));
            breaks("generator", fail -> new Pipeline().addGenerator((pass, i) -> (Tensor[]) fail.call(), NUMBER));
        }
    }

    @Test
    public void functionsGiveWhatTheyMustNot() {
        try (Tensor zero = Tensor.scalar(DType.INT64, 0)) {
            ScanState sum = new ScanState("sum", zero);
            Toy.failure(() -> read(numbers(3).scan((state, element) ->
                new ScanFunction.Step(new Tensor[0], state[0], element[0]), sum)));
            Toy.failure(() -> read(numbers(3).scan((state, element) -> new ScanFunction.Step(state), sum)));
        }
        Toy.failure(() -> read(numbers(3).filter(null)));
        Toy.failure(() -> read(numbers(3).scan(null)));
        Toy.failure(() -> read(numbers(3).scan(FunctionsTest::runningSum)));
        Toy.failure(() -> read(numbers(3).scan(FunctionsTest::runningSum, new ScanState("sum", null))));
        Toy.failure(() -> read(numbers(3).flatMap(element -> null)));
        Toy.failure(() -> read(numbers(3).flatMap(element -> {
            Dataset closed = three(element);
            closed.close();
            return closed;
        })));
        Toy.failure(() -> read(new Pipeline().addGenerator((pass, index) -> new Tensor[0], NUMBER)));
    }
}
