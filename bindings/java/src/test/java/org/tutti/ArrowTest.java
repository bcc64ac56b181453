// SPDX-License-Identifier: Apache-2.0
package org.tutti;

import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertNotEquals;

import java.lang.reflect.Field;
import java.lang.reflect.Method;
import org.junit.After;
import org.junit.Before;
import org.junit.Rule;
import org.junit.Test;

/** Arrow C streams by their addresses, as those of arrow-java's ArrowArrayStream.memoryAddress. */
public class ArrowTest {
    /** An ArrowArrayStream: get_schema, get_next, get_last_error, release, private_data. */
    private static final long SIZE = 5 * 8;
    private static final long RELEASE = 3 * 8;

    @Rule public Leaks leaks = new Leaks();
    private long stream;

    /** Calls sun.misc.Unsafe, which the compiler does not want to see by its name. */
    private static Object unsafe(String name, Object... arguments) {
        Class<?>[] types = new Class<?>[arguments.length];
        java.util.Arrays.fill(types, long.class);
        try {
            Class<?> type = Class.forName("sun.misc.Unsafe");
            Field instance = type.getDeclaredField("theUnsafe");
            instance.setAccessible(true);
            Method method = type.getMethod(name, types);
            return method.invoke(instance.get(null), arguments);
        } catch (ReflectiveOperationException error) {
            throw new AssertionError(error);
        }
    }

    private long release() {
        return (long) unsafe("getLong", stream + RELEASE);
    }

    @Before
    public void allocate() {
        stream = (long) unsafe("allocateMemory", SIZE);
        unsafe("putLong", stream + RELEASE, 0L);
    }

    @After
    public void free() {
        assertEquals("a stream is not released", 0, release());
        unsafe("freeMemory", stream);
    }

    @Test
    public void streamsGoOutAndIn() {
        try (Dataset dataset = new Pipeline().addSlices("n", Role.FEATURE, Toy.count(5)).build()) {
            dataset.toArrow(0, 2, stream);
            assertNotEquals(0, release());
            try (Dataset again = new Pipeline().setArrowStream(stream).arrow().build()) {
                assertEquals(0, release());
                assertEquals("[[0], [1], [2], [3], [4]]", Toy.rows(again).toString());
                assertEquals("[[0], [1], [2], [3], [4]]", Toy.rows(again).toString());
            }
            dataset.toArrow(0, 2, stream);
            try (Dataset label = new Pipeline().setArrowStream(stream)
                    .arrow(new ArrowOptions().columns("n").labels("n")).batch(3).build()) {
                assertEquals(Role.LABEL, label.components().get(0).role());
                assertEquals("[[0, 1, 2], [3, 4]]", Toy.rows(label).toString());
            }
        }
    }

    @Test
    public void streamsOfBatches() {
        try (Dataset dataset = new Pipeline().addSlices("n", Role.FEATURE, Toy.count(5)).batch(2).build()) {
            dataset.toArrow(0, 100, stream); // a record batch for each batch
            try (Dataset again = new Pipeline().setArrowStream(stream).arrow().batch(5).build()) {
                assertEquals("[[0, 1, 2, 3, 4]]", Toy.rows(again).toString());
            }
        }
    }

    @Test
    public void aStreamThatNobodyReadsIsReleased() {
        try (Dataset dataset = new Pipeline().addSlices("n", Role.FEATURE, Toy.count(5)).build();
             Pipeline pipeline = new Pipeline()) {
            dataset.toArrow(0, 2, stream);
            pipeline.setArrowStream(stream);
            assertEquals(0, release()); // moved; the test's rule finds what is left of it
        }
    }

    @Test
    public void wrongStreams() {
        try (Dataset dataset = new Pipeline().addSlices("n", Role.FEATURE, Toy.count(5)).build()) {
            assertEquals(Code.INVALID_ARGUMENT, Toy.failure(() -> {
                dataset.toArrow(0, 0, stream);
                return null;
            }).code());
            Toy.failure(() -> new Pipeline().setArrowStream(stream).arrow().build()); // it is released already
            Toy.failure(() -> new Pipeline().setArrowStream(0).arrow().build());
            dataset.toArrow(0, 2, stream);
            Toy.failure(() -> new Pipeline().setArrowStream(stream).arrow(new ArrowOptions().columns("none")).build());
        }
    }
}
