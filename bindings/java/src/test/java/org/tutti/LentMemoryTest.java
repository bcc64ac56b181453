// SPDX-License-Identifier: Apache-2.0
package org.tutti;

import static org.junit.Assert.assertArrayEquals;
import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertTrue;
import static org.junit.Assume.assumeTrue;

import java.io.IOException;
import java.lang.ref.WeakReference;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.MappedByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.Rule;
import org.junit.Test;
import org.junit.rules.TemporaryFolder;

/** Tensors over the memory of direct buffers. */
public class LentMemoryTest {
    @Rule public Leaks leaks = new Leaks();
    @Rule public TemporaryFolder folder = new TemporaryFolder();

    private static ByteBuffer direct(int size) {
        return ByteBuffer.allocateDirect(size).order(ByteOrder.nativeOrder());
    }

    private static ByteBuffer longs(long... values) {
        ByteBuffer buffer = direct(8 * values.length);
        buffer.asLongBuffer().put(values);
        return buffer;
    }

    @Test
    public void memoryIsBorrowedUntilItsLastUserIsGone() {
        AtomicInteger released = new AtomicInteger();
        ByteBuffer data = longs(0, 2, 3);
        Tensor tensor = Tensor.wrap(DType.INT64, data, released::incrementAndGet, 3);
        data.putLong(0, 1); // shows, for nothing has been copied
        assertArrayEquals(new long[] {1, 2, 3}, tensor.toLongs());
        Dataset dataset = new Pipeline().addSlices("n", Role.FEATURE, tensor).build();
        tensor.close();
        DatasetIterator iterator = dataset.iterator(0);
        dataset.close();
        Tensor element = iterator.read()[0];
        iterator.close();
        data.putLong(0, 7);
        assertArrayEquals(new long[] {7}, element.toLongs());
        assertEquals(Code.FAILED_PRECONDITION, Toy.failure(() -> {
            element.update(memory -> {});
            return null;
        }).code());
        assertEquals(0, released.get());
        element.close();
        assertTrue(Leaks.until(() -> released.get() == 1));
        assertEquals(0, LentMemory.count());
    }

    private static Tensor overForgottenBuffer(List<WeakReference<ByteBuffer>> buffers) {
        ByteBuffer data = longs(1, 2, 3);
        buffers.add(new WeakReference<>(data));
        return Tensor.wrap(DType.INT64, data, 3);
    }

    @Test
    public void theTensorHoldsTheBuffer() {
        List<WeakReference<ByteBuffer>> buffers = new ArrayList<>();
        try (Tensor tensor = overForgottenBuffer(buffers)) {
            for (int i = 0; i < 5; i++) {
                System.gc();
            }
            assertArrayEquals(new long[] {1, 2, 3}, tensor.toLongs());
            assertTrue(buffers.get(0).get() != null);
        }
        overForgottenBuffer(buffers); // the tensor is forgotten, too
        assertTrue(Leaks.collectUntil(() -> buffers.get(0).get() == null && buffers.get(1).get() == null));
        assertTrue(Leaks.until(() -> LentMemory.count() == 0));
    }

    /** Threads of the library read ahead, and are the last that let go. */
    @Test
    public void memoryComesBackFromThreadsOfTheLibrary() {
        AtomicInteger released = new AtomicInteger();
        int many = 100;
        for (int i = 0; i < many; i++) {
            try (Tensor tensor = Tensor.wrap(DType.INT64, direct(8000), () -> {
                     Tensor.scalar(DType.INT32, 1).close(); // the library may be called
                     released.incrementAndGet();
                 }, 1000);
                 Dataset dataset =
                     new Pipeline().addSlices("n", Role.FEATURE, tensor).batch(7).repeat().prefetch().build();
                 DatasetIterator iterator = dataset.iterator(0)) {
                Tensor.closeAll(iterator.read());
            }
        }
        assertTrue(Leaks.until(() -> released.get() == many));
        assertEquals(0, LentMemory.count());
    }

    @Test
    public void partsOfBuffersAndFiles() throws IOException {
        ByteBuffer data = longs(5, 6, 7, 8);
        data.position(8).limit(24);
        try (Tensor tensor = Tensor.wrap(DType.INT64, data, 2);
             Tensor last = Tensor.wrap(DType.INT64, data.slice(16, 8).order(ByteOrder.nativeOrder()).asReadOnlyBuffer()
                 .order(ByteOrder.nativeOrder()));
             Tensor none = Tensor.wrap(DType.FLOAT32, direct(0), 0, 7)) {
            assertEquals(8, data.position());
            assertArrayEquals(new long[] {6, 7}, tensor.toLongs());
            assertArrayEquals(new long[] {7}, last.toLongs());
            assertEquals(0, last.dims().length);
            assertEquals(0, none.toFloats().length);
        }
        Path path = folder.newFile().toPath();
        Files.write(path, new byte[] {1, 2, 3});
        try (FileChannel file = FileChannel.open(path, StandardOpenOption.READ)) {
            MappedByteBuffer bytes = file.map(FileChannel.MapMode.READ_ONLY, 0, 3);
            try (Tensor tensor = Tensor.wrap(DType.UINT8, bytes, 3)) { // one byte has no order
                assertArrayEquals(new byte[] {1, 2, 3}, tensor.toBytes());
            }
        }
        assertTrue(Leaks.until(() -> LentMemory.count() == 0));
    }

    private static void refused(String reason, ByteBuffer data, long... dims) {
        AtomicInteger released = new AtomicInteger();
        TuttiException error =
            Toy.failure(() -> Tensor.wrap(DType.INT64, data, released::incrementAndGet, dims));
        assertEquals(Code.INVALID_ARGUMENT, error.code());
        assertTrue(error.getMessage(), error.getMessage().contains(reason));
        assertTrue(Leaks.until(() -> released.get() == 1));
    }

    @Test
    public void buffersThatCannotBeBorrowed() {
        refused("of the heap", ByteBuffer.allocate(8), 1);
        refused("BIG_ENDIAN", ByteBuffer.allocateDirect(8).order(ByteOrder.BIG_ENDIAN), 1);
        refused("needs 16 bytes, got 8", direct(8), 2);
        refused("not aligned to 8 bytes", direct(16).slice(4, 8).order(ByteOrder.nativeOrder()), 1);
        refused("-1", direct(8), -1);
        assertTrue(Leaks.until(() -> LentMemory.count() == 0));
    }

    /** The most memory that the process has held since `restart`, where that can be said. */
    private static long peakBytes(boolean restart) throws IOException {
        Path status = Path.of("/proc/self/status");
        assumeTrue(Files.exists(status));
        try {
            if (restart) {
                Files.writeString(Path.of("/proc/self/clear_refs"), "5");
            }
        } catch (IOException unknown) {
            // else it is the peak since the beginning
        }
        String line = Files.readAllLines(status).stream().filter(l -> l.startsWith("VmHWM:")).findAny().orElse(null);
        assumeTrue(line != null);
        return Long.parseLong(line.replaceAll("\\D", "")) << 10;
    }

    @Test
    public void borrowedDataTakeNoMemoryOfTheirOwn() throws IOException {
        int rows = 48 << 10;
        int size = rows * 4096;
        ByteBuffer data = direct(size); // zeros, which are written
        for (int i = 0; i < size; i += 4096) {
            data.putFloat(i, 1);
        }
        long before = peakBytes(true);
        double sum = 0;
        try (Tensor tensor = Tensor.wrap(DType.FLOAT32, data, rows, 1024);
             Dataset dataset = new Pipeline().addSlices("x", Role.FEATURE, tensor).batch(64).prefetch().build();
             DatasetIterator iterator = dataset.iterator(0)) {
            for (Tensor[] element = iterator.read(); element != null; element = iterator.read()) {
                int n = (int) element[0].dims()[0];
                sum += element[0].view(memory -> {
                    double part = 0;
                    for (int i = 0; i < n; i++) {
                        part += memory.getFloat(i * 4096);
                    }
                    return part;
                });
                Tensor.closeAll(element);
            }
        }
        assertEquals(rows, sum, 0);
        long grown = peakBytes(false) - before;
        assertTrue("reading " + size + " bytes took " + grown + " more", grown < size / 10 + (48 << 20));
    }

    /** Leaves while the library holds borrowed memory and reads it. */
    public static final class Leaver {
        public static void main(String[] arguments) {
            Tensor tensor = Tensor.wrap(DType.INT64, direct(8000), () -> System.out.println("released"), 1000);
            Dataset dataset =
                new Pipeline().addSlices("n", Role.FEATURE, tensor).batch(7).repeat().prefetch().build();
            Tensor.closeAll(dataset.iterator(0).read());
            tensor.close();
            System.out.println("leaving");
        }
    }

    @Test
    public void theProcessEndsWhileMemoryIsLent() throws Exception {
        String library = "-Djava.library.path=" + System.getProperty("java.library.path");
        assertEquals("leaving", StressTest.child(0, List.of(library), Leaver.class).strip());
    }
}
