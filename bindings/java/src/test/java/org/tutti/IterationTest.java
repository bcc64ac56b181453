// SPDX-License-Identifier: Apache-2.0
package org.tutti;

import static org.junit.Assert.assertArrayEquals;
import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertFalse;
import static org.junit.Assert.assertNull;
import static org.junit.Assert.assertTrue;

import java.util.ArrayList;
import java.util.List;
import java.util.stream.Stream;
import org.junit.Rule;
import org.junit.Test;

/** Datasets in loops and streams of Java. */
public class IterationTest {
    @Rule public Leaks leaks = new Leaks();

    private static Dataset numbers(int count) {
        return new Pipeline().addSlices("n", Role.LABEL, Toy.count(count)).build();
    }

    private static long valueOf(Tensor[] element) {
        try {
            return element[0].toLongs()[0];
        } finally {
            Tensor.closeAll(element);
        }
    }

    @Test
    public void aLoopGoesThroughAndAgain() {
        long iterators = Tutti.liveObjects("iterator");
        try (Dataset dataset = numbers(4)) {
            for (int pass = 0; pass < 2; pass++) {
                List<Long> values = new ArrayList<>();
                for (Tensor[] element : dataset) {
                    values.add(valueOf(element));
                }
                assertEquals(List.of(0L, 1L, 2L, 3L), values);
                assertEquals("a loop closes what it went through", iterators, Tutti.liveObjects("iterator"));
            }
        }
    }

    @Test
    public void anIteratorAtItsEndStaysThere() {
        try (Dataset dataset = numbers(1); DatasetIterator iterator = dataset.iterator();
             DatasetIterator seeded = dataset.iterator(3)) {
            assertEquals(0, valueOf(iterator.next()));
            assertFalse(iterator.hasNext());
            assertFalse(iterator.hasNext());
            assertNull(iterator.read());
            assertTrue(iterator.isClosed());
            assertEquals(0, valueOf(seeded.next()));
            assertNull(seeded.read());
            assertFalse(seeded.isClosed());
            assertEquals(1, seeded.report().stages().get(0).elements());
        }
    }

    @Test
    public void streamsAreLazyAndClose() {
        long iterators = Tutti.liveObjects("iterator");
        try (Dataset dataset = new Pipeline().addSlices("n", Role.LABEL, Toy.count(5)).repeat().build();
             Stream<Tensor[]> elements = dataset.stream()) {
            assertArrayEquals(new long[] {0, 1, 2, 3, 4, 0, 1},
                elements.limit(7).mapToLong(IterationTest::valueOf).toArray());
        }
        assertEquals(iterators, Tutti.liveObjects("iterator"));
    }

    @Test
    public void aSeedShuffles() {
        try (Dataset dataset = new Pipeline().addSlices("n", Role.LABEL, Toy.count(50)).shuffle(50).build()) {
            List<List<Long>> orders = new ArrayList<>();
            for (long seed : new long[] {0, 7, 7}) {
                try (Stream<Tensor[]> elements = dataset.stream(seed)) {
                    orders.add(elements.map(IterationTest::valueOf).toList());
                }
            }
            assertEquals(orders.get(1), orders.get(2));
            assertFalse(orders.get(0).equals(orders.get(1)));
        }
    }
}
