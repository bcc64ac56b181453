// SPDX-License-Identifier: Apache-2.0
package org.tutti;

import static org.junit.Assert.assertArrayEquals;
import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertThrows;
import static org.junit.Assert.assertTrue;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.ReadOnlyBufferException;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import org.junit.Rule;
import org.junit.Test;

/** Memory that is lent is never read behind its function, whatever the program keeps. */
public class TensorMemoryTest {
    @Rule public Leaks leaks = new Leaks();

    private static List<Runnable> uses(TensorMemory memory) {
        ByteBuffer one = ByteBuffer.allocate(4);
        return List.of(() -> memory.getFloat(0), () -> memory.putFloat(0, 1), () -> memory.get(0, one),
            () -> memory.put(0, one), () -> memory.get(0, new float[1], 0, 1), () -> memory.put(0, new int[1], 0, 1),
            memory::size, memory::isWritable);
    }

    @Test
    public void memoryThatIsKeptIsClosed() {
        List<TensorMemory> kept = new ArrayList<>();
        Tensor tensor = Tensor.of(new float[1 << 20]);
        tensor.view(kept::add);
        tensor.update(kept::add);
        for (int closed = 0; closed < 2; closed++) {
            for (TensorMemory memory : kept) {
                uses(memory).forEach(use -> assertThrows(ClosedException.class, use::run));
            }
            tensor.close(); // whose memory is given back
        }
    }

    @Test
    public void memoryThatAFunctionThrewWithIsClosed() {
        List<TensorMemory> kept = new ArrayList<>();
        try (Tensor tensor = Tensor.of(new float[1])) {
            assertThrows(IllegalStateException.class, () -> tensor.view(memory -> {
                kept.add(memory);
                throw new IllegalStateException("on purpose");
            }));
            assertThrows(ClosedException.class, kept.get(0)::size);
        }
    }

    @Test
    public void memoryBelongsToItsThread() throws Exception {
        try (Tensor tensor = Tensor.of(new float[] {1, 2})) {
            tensor.view(memory -> {
                for (Runnable use : uses(memory)) {
                    ExecutionException thrown =
                        assertThrows(ExecutionException.class, () -> CompletableFuture.runAsync(use).get());
                    assertEquals(Code.FAILED_PRECONDITION, ((TuttiException) thrown.getCause()).code());
                }
                return null;
            });
        }
    }

    @Test
    public void memoryStaysWhileItsFunctionRuns() {
        Tensor tensor = Tensor.of(new float[] {1, 2});
        assertEquals(2f, tensor.view(memory -> {
            tensor.close();
            return memory.getFloat(4);
        }), 0);
        assertTrue(tensor.isClosed());
    }

    @Test
    public void placesOutsideAreErrors() {
        try (Tensor tensor = Tensor.of(new float[] {1, 2})) {
            for (int place : new int[] {-1, 5, 8, Integer.MAX_VALUE}) {
                assertThrows(IndexOutOfBoundsException.class, () -> tensor.view(memory -> memory.getFloat(place)));
                assertThrows(IndexOutOfBoundsException.class, () -> tensor.view(memory -> {
                    memory.get(place, new float[1], 0, 1);
                    return null;
                }));
            }
            assertThrows(ArithmeticException.class, () -> tensor.view(memory -> {
                memory.get(0, new float[1], 0, 1 << 30);
                return null;
            }));
            assertThrows(ReadOnlyBufferException.class, () -> tensor.view(memory -> {
                memory.putFloat(0, 3);
                return null;
            }));
        }
    }

    @Test
    public void elementsOfEveryType() {
        try (Tensor tensor = Tensor.zeros(DType.UINT8, 64)) {
            tensor.update(memory -> {
                memory.putByte(0, (byte) -1);
                memory.putShort(2, (short) -2);
                memory.putInt(4, -3);
                memory.putLong(8, -4);
                memory.putFloat(16, -5.5f);
                memory.putDouble(24, -6.5);
                memory.put(32, new byte[] {9, 1, 2}, 1, 2);
                memory.put(34, new short[] {3}, 0, 1);
                memory.put(36, new int[] {4}, 0, 1);
                memory.put(40, new long[] {5}, 0, 1);
                memory.put(48, new float[] {0, 6}, 1, 1);
                memory.put(56, new double[] {7}, 0, 1);
            });
            tensor.view(memory -> {
                assertEquals(64, memory.size());
                assertEquals(-1, memory.getByte(0));
                assertEquals(-2, memory.getShort(2));
                assertEquals(-3, memory.getInt(4));
                assertEquals(-4, memory.getLong(8));
                assertEquals(-5.5f, memory.getFloat(16), 0);
                assertEquals(-6.5, memory.getDouble(24), 0);
                arrays(memory);
                return null;
            });
        }
    }

    private static void arrays(TensorMemory memory) {
        byte[] bytes = new byte[3];
        memory.get(32, bytes, 1, 2);
        assertArrayEquals(new byte[] {0, 1, 2}, bytes);
        short[] shorts = new short[1];
        memory.get(34, shorts, 0, 1);
        int[] ints = new int[1];
        memory.get(36, ints, 0, 1);
        long[] longs = new long[1];
        memory.get(40, longs, 0, 1);
        float[] floats = new float[1];
        memory.get(48, floats, 0, 1);
        double[] doubles = new double[1];
        memory.get(56, doubles, 0, 1);
        assertEquals("3 4 5 6.0 7.0", shorts[0] + " " + ints[0] + " " + longs[0] + " " + floats[0] + " " + doubles[0]);
    }

    @Test
    public void copiesOutliveTheirTensor() {
        Tensor tensor = Tensor.of(new float[] {1, 2, 3});
        ByteBuffer copy = tensor.toBuffer();
        ByteBuffer part = ByteBuffer.allocate(4).order(ByteOrder.nativeOrder());
        tensor.view(memory -> {
            memory.get(4, part);
            return null;
        });
        tensor.close();
        assertEquals(12, copy.remaining());
        assertEquals(3, copy.getFloat(8), 0);
        assertEquals(2, part.getFloat(0), 0);
    }
}
