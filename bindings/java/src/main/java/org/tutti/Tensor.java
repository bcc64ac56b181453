// SPDX-License-Identifier: Apache-2.0
package org.tutti;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.function.Consumer;
import java.util.function.Function;

/**
 * A dense, row-major array in host memory. Several threads may read one; a writer must be alone.
 *
 * <p>Arrays are copied both ways; {@link #wrap(DType, ByteBuffer, long...) wrap} borrows the memory of a direct buffer.
 * {@link #view} and {@link #update} lend the memory itself, without a copy, to a function.
 */
public final class Tensor extends NativeObject {
    /** About what a tensor costs the library beside its elements. */
    static final long OVERHEAD = 512;
    /** Buffers hold less than 2 GB; larger tensors are copied in parts of so many bytes. */
    private static final int PART = 1 << 30;

    /** Copies elements between part of the memory and an array. */
    private interface Copy {
        void part(ByteBuffer memory, int first, int count);
    }

    private Tensor(long number) {
        super(Handle.ofData("Tensor", number, Raw::tensor_unref, Raw.tensor_get_size_bytes(number) + OVERHEAD));
    }

    /** Takes a reference. */
    static Tensor wrap(long number) {
        return new Tensor(number);
    }

    /** A tensor that the library lends; null when there is none. */
    static @Nullable Tensor share(long number) {
        if (number == 0) {
            return null;
        }
        Raw.tensor_ref(number);
        return wrap(number);
    }

    /** Closes all tensors of an element.
     *
     * @param tensors which ones; null where there is none
     */
    public static void closeAll(@Nullable Tensor... tensors) {
        for (Tensor tensor : tensors) {
            if (tensor != null) {
                tensor.close();
            }
        }
    }

    /** A tensor filled with zeros; {@link #update} writes into it without a copy.
     *
     * @param dtype its type
     * @param dims its shape; none for a scalar
     * @return the tensor
     */
    public static Tensor zeros(DType dtype, long... dims) {
        long[] out = new long[1];
        long[] failure = new long[1];
        TuttiException.check(Raw.tensor_create(dtype.number(), dims, out, failure), failure);
        return wrap(out[0]);
    }

    /** A tensor with a copy of a buffer.
     *
     * @param dtype its type
     * @param data the elements, from position to limit, in the machine's byte order, which must be its order
     * @param dims its shape; none for a scalar
     * @return the tensor
     */
    public static Tensor of(DType dtype, ByteBuffer data, long... dims) {
        String problem = LentMemory.orderProblem(dtype, data);
        if (problem != null) {
            throw TuttiException.ofTutti(Code.INVALID_ARGUMENT, problem);
        }
        ByteBuffer direct = data.slice();
        if (!data.isDirect()) {
            direct = ByteBuffer.allocateDirect(data.remaining()).put(data.duplicate());
        }
        long[] out = new long[1];
        long[] failure = new long[1];
        TuttiException.check(Raw.tensor_from_data(dtype.number(), dims, direct, out, failure), failure);
        return wrap(out[0]);
    }

    /** A tensor over the memory of a direct buffer, from position to limit, without a copy.
     *
     * <p>The buffer is held until the tensor and all that was made of it (datasets, iterators, their elements) are
     * closed; the program may forget it before. What is written into it meanwhile shows, so that nothing should be
     * while anybody reads. It may be read-only or of a file ({@link java.nio.channels.FileChannel#map}). Memory of type
     * BYTES is checked here alone, and must not change at all.
     *
     * @param dtype its type
     * @param data the elements, in the machine's byte order, beginning at a multiple of their size
     * @param dims its shape; none for a scalar
     * @return the tensor
     */
    public static Tensor wrap(DType dtype, ByteBuffer data, long... dims) {
        return wrap(dtype, data, () -> {}, dims);
    }

    /** A tensor over the memory of a direct buffer that somebody takes back, else as
     * {@link #wrap(DType, ByteBuffer, long...)}.
     *
     * @param dtype its type
     * @param data the elements, in the machine's byte order, beginning at a multiple of their size
     * @param release called once when nobody needs the memory any more, on a thread of the package, or on this one when
     *     the buffer is none to be borrowed; also when this fails
     * @param dims its shape; none for a scalar
     * @return the tensor
     */
    public static Tensor wrap(DType dtype, ByteBuffer data, Runnable release, long... dims) {
        String problem = LentMemory.orderProblem(dtype, data);
        if (!data.isDirect()) {
            problem = "a tensor borrows the memory of a direct buffer, got one of the heap; Tensor.of copies it";
        }
        if (problem != null) {
            LentMemory.end(release);
            throw TuttiException.ofTutti(Code.INVALID_ARGUMENT, problem);
        }
        long[] out = new long[1];
        long[] failure = new long[1];
        long token = LentMemory.lend(data, release);
        TuttiException.check(
            Raw.tensor_take_memory(token, dtype.number(), dims, data.slice(), out, failure), failure);
        return wrap(out[0]);
    }

    /** A tensor of type FLOAT32.
     *
     * @param data the elements, which are copied
     * @param dims its shape; none for a vector
     * @return the tensor
     */
    public static Tensor of(float[] data, long... dims) {
        return copied(DType.FLOAT32, data, data.length, dims);
    }

    /** A tensor of type FLOAT64.
     *
     * @param data the elements, which are copied
     * @param dims its shape; none for a vector
     * @return the tensor
     */
    public static Tensor of(double[] data, long... dims) {
        return copied(DType.FLOAT64, data, data.length, dims);
    }

    /** A tensor of type INT32.
     *
     * @param data the elements, which are copied
     * @param dims its shape; none for a vector
     * @return the tensor
     */
    public static Tensor of(int[] data, long... dims) {
        return of(DType.INT32, data, dims);
    }

    /** A tensor of type INT64.
     *
     * @param data the elements, which are copied
     * @param dims its shape; none for a vector
     * @return the tensor
     */
    public static Tensor of(long[] data, long... dims) {
        return of(DType.INT64, data, dims);
    }

    /** A tensor of type BOOL.
     *
     * @param data the elements, which are copied
     * @param dims its shape; none for a vector
     * @return the tensor
     */
    public static Tensor of(boolean[] data, long... dims) {
        return copied(DType.BOOL, data, data.length, dims);
    }

    /** A tensor of type BYTES.
     *
     * @param data the elements, which are copied
     * @param dims its shape; none for a vector
     * @return the tensor
     */
    public static Tensor of(byte[][] data, long... dims) {
        return of(DType.BYTES, BytesElements.pack(data), dims.length == 0 ? new long[] {data.length} : dims);
    }

    /** A tensor of type BYTES, the texts in UTF-8.
     *
     * @param data the elements, which are copied
     * @param dims its shape; none for a vector
     * @return the tensor
     */
    public static Tensor of(String[] data, long... dims) {
        byte[][] texts = new byte[data.length][];
        for (int i = 0; i < data.length; i++) {
            texts[i] = data[i].getBytes(StandardCharsets.UTF_8);
        }
        return of(texts, dims);
    }

    /** A copy of the elements of a tensor of type BYTES.
     *
     * @return the elements, row-major
     */
    public byte[][] toByteArrays() {
        byte[][] values = new byte[length(DType.BYTES)][];
        try (Use use = new Use()) {
            long number = use.of(this);
            for (int i = 0; i < values.length; i++) {
                values[i] = BytesElements.copy(number, i);
            }
        }
        return values;
    }

    /** A copy of the elements of a tensor of type BYTES, read as UTF-8.
     *
     * @return the elements, row-major
     */
    public String[] toTexts() {
        byte[][] values = toByteArrays();
        String[] texts = new String[values.length];
        for (int i = 0; i < values.length; i++) {
            texts[i] = new String(values[i], StandardCharsets.UTF_8);
        }
        return texts;
    }

    /** A tensor of a type whose elements have one byte.
     *
     * @param dtype INT8 or UINT8
     * @param data the elements' bits, which are copied
     * @param dims its shape; none for a vector
     * @return the tensor
     */
    public static Tensor of(DType dtype, byte[] data, long... dims) {
        check(dtype, DType.INT8, DType.UINT8);
        return copied(dtype, data, data.length, dims);
    }

    /** A tensor of a type whose elements have two bytes.
     *
     * @param dtype INT16, UINT16, FLOAT16 or BFLOAT16
     * @param data the elements' bits, which are copied
     * @param dims its shape; none for a vector
     * @return the tensor
     */
    public static Tensor of(DType dtype, short[] data, long... dims) {
        check(dtype, DType.INT16, DType.UINT16, DType.FLOAT16, DType.BFLOAT16);
        return copied(dtype, data, data.length, dims);
    }

    /** A tensor of integers of four bytes.
     *
     * @param dtype INT32 or UINT32
     * @param data the elements' bits, which are copied
     * @param dims its shape; none for a vector
     * @return the tensor
     */
    public static Tensor of(DType dtype, int[] data, long... dims) {
        check(dtype, DType.INT32, DType.UINT32);
        return copied(dtype, data, data.length, dims);
    }

    /** A tensor of integers of eight bytes.
     *
     * @param dtype INT64 or UINT64
     * @param data the elements' bits, which are copied
     * @param dims its shape; none for a vector
     * @return the tensor
     */
    public static Tensor of(DType dtype, long[] data, long... dims) {
        check(dtype, DType.INT64, DType.UINT64);
        return copied(dtype, data, data.length, dims);
    }

    /** A tensor of rank 0 and any type with numbers.
     *
     * @param dtype its type; not one of 16 bits
     * @param value the element, converted to the type
     * @return the tensor
     */
    public static Tensor scalar(DType dtype, Number value) {
        Tensor tensor = zeros(dtype);
        tensor.update(to -> {
            switch (dtype) {
                case FLOAT32 -> to.putFloat(0, value.floatValue());
                case FLOAT64 -> to.putDouble(0, value.doubleValue());
                case INT8, UINT8, BOOL -> to.putByte(0, value.byteValue());
                case INT16, UINT16 -> to.putShort(0, value.shortValue());
                case INT32, UINT32 -> to.putInt(0, value.intValue());
                case INT64, UINT64 -> to.putLong(0, value.longValue());
                default -> throw wrongType(dtype);
            }
        });
        return tensor;
    }

    /** Takes the DLManagedTensorVersioned at an address, in every case: its deleter runs when the tensor is closed, or
     * at once on failure.
     *
     * @param address where it is
     * @return a tensor over its memory
     */
    public static Tensor ofDLPack(long address) {
        long[] out = new long[1];
        long[] failure = new long[1];
        TuttiException.check(Raw.tensor_take_dlpack(address, out, failure), failure);
        return wrap(out[0]);
    }

    /** The tensor as DLPack 1.x, without a copy.
     *
     * @return the address of a DLManagedTensorVersioned, whose deleter the caller must call
     */
    public long toDLPack() {
        try (Use use = new Use()) {
            long[] out = new long[1];
            long[] failure = new long[1];
            TuttiException.check(Raw.tensor_to_dlpack(use.of(this), out, failure), failure);
            return out[0];
        }
    }

    @Override
    String details() {
        return " " + dtype() + " " + Arrays.toString(dims());
    }

    /** The type of the elements.
     *
     * @return the type
     */
    public DType dtype() {
        try (Use use = new Use()) {
            return DType.of(Raw.tensor_get_dtype(use.of(this)));
        }
    }

    /** The shape.
     *
     * @return the sizes of the dimensions; none for a scalar
     */
    public long[] dims() {
        try (Use use = new Use()) {
            long number = use.of(this);
            long[] dims = new long[(int) Raw.tensor_get_rank(number)];
            for (int axis = 0; axis < dims.length; axis++) {
                dims[axis] = Raw.tensor_get_dim(number, axis);
            }
            return dims;
        }
    }

    /** The number of elements.
     *
     * @return the product of the dimensions
     */
    public long elementCount() {
        try (Use use = new Use()) {
            return Raw.tensor_get_element_count(use.of(this));
        }
    }

    /** The size of the memory.
     *
     * @return its bytes
     */
    public long sizeBytes() {
        try (Use use = new Use()) {
            return Raw.tensor_get_size_bytes(use.of(this));
        }
    }

    /** Lends the memory, without a copy, to a function that reads it.
     *
     * @param <T> what the function gives
     * @param read gets the memory, which is good until it returns
     * @return what the function returned
     */
    public <T> T view(Function<TensorMemory, T> read) {
        return view(0, wholeSize(), read);
    }

    /** Lends part of the memory, for tensors of 2 GB and more.
     *
     * @param <T> what the function gives
     * @param offset the first byte
     * @param size how many bytes
     * @param read gets the memory, which is good until it returns
     * @return what the function returned
     */
    public <T> T view(long offset, int size, Function<TensorMemory, T> read) {
        return use(offset, size, memory -> lend(memory.asReadOnlyBuffer(), read));
    }

    /** Lends the memory to a function that writes it.
     *
     * @param write gets the memory, which is good until it returns
     */
    public void update(Consumer<TensorMemory> write) {
        update(0, wholeSize(), write);
    }

    /** Lends part of the memory, for tensors of 2 GB and more.
     *
     * @param offset the first byte
     * @param size how many bytes
     * @param write gets the memory, which is good until it returns
     */
    public void update(long offset, int size, Consumer<TensorMemory> write) {
        try (Use use = new Use()) {
            long number = use.of(this);
            long[] address = new long[1];
            long[] failure = new long[1];
            TuttiException.check(Raw.tensor_get_mutable_data(number, address, failure), failure);
            lend(buffer(number, address[0], offset, size), memory -> {
                write.accept(memory);
                return null;
            });
        }
    }

    private static <T> T lend(ByteBuffer buffer, Function<TensorMemory, T> function) {
        TensorMemory memory = new TensorMemory(buffer);
        try {
            return function.apply(memory);
        } finally {
            memory.end();
        }
    }

    /** For functions of this package, which keep no buffer. */
    private <T> T use(long offset, int size, Function<ByteBuffer, T> read) {
        try (Use use = new Use()) {
            long number = use.of(this);
            return read.apply(buffer(number, Raw.tensor_get_data(number), offset, size));
        }
    }

    /** A copy of the memory.
     *
     * @return a direct buffer in the machine's byte order, which is the program's
     */
    public ByteBuffer toBuffer() {
        return use(0, wholeSize(), memory -> {
            ByteBuffer copy = ByteBuffer.allocateDirect(memory.remaining()).put(memory);
            return copy.flip().order(ByteOrder.nativeOrder());
        });
    }

    /** A copy of the elements of a tensor of type FLOAT32.
     *
     * @return the elements, row-major
     */
    public float[] toFloats() {
        float[] values = new float[length(DType.FLOAT32)];
        read(Float.BYTES, values.length, (from, i, n) -> from.asFloatBuffer().get(values, i, n));
        return values;
    }

    /** A copy of the elements of a tensor of type FLOAT64.
     *
     * @return the elements, row-major
     */
    public double[] toDoubles() {
        double[] values = new double[length(DType.FLOAT64)];
        read(Double.BYTES, values.length, (from, i, n) -> from.asDoubleBuffer().get(values, i, n));
        return values;
    }

    /** A copy of the elements of a tensor of type INT32 or UINT32.
     *
     * @return the elements' bits, row-major
     */
    public int[] toInts() {
        int[] values = new int[length(DType.INT32, DType.UINT32)];
        read(Integer.BYTES, values.length, (from, i, n) -> from.asIntBuffer().get(values, i, n));
        return values;
    }

    /** A copy of the elements of a tensor of type INT64 or UINT64.
     *
     * @return the elements' bits, row-major
     */
    public long[] toLongs() {
        long[] values = new long[length(DType.INT64, DType.UINT64)];
        read(Long.BYTES, values.length, (from, i, n) -> from.asLongBuffer().get(values, i, n));
        return values;
    }

    /** A copy of the elements of a tensor of type INT16, UINT16, FLOAT16 or BFLOAT16.
     *
     * @return the elements' bits, row-major
     */
    public short[] toShorts() {
        short[] values = new short[length(DType.INT16, DType.UINT16, DType.FLOAT16, DType.BFLOAT16)];
        read(Short.BYTES, values.length, (from, i, n) -> from.asShortBuffer().get(values, i, n));
        return values;
    }

    /** A copy of the elements of a tensor of type INT8 or UINT8.
     *
     * @return the elements' bits, row-major
     */
    public byte[] toBytes() {
        byte[] values = new byte[length(DType.INT8, DType.UINT8)];
        read(1, values.length, (from, i, n) -> from.get(values, i, n));
        return values;
    }

    /** A copy of the elements of a tensor of type BOOL.
     *
     * @return the elements, row-major
     */
    public boolean[] toBooleans() {
        boolean[] values = new boolean[length(DType.BOOL)];
        read(1, values.length, (from, i, n) -> {
            for (int j = 0; j < n; j++) {
                values[i + j] = from.get(j) != 0;
            }
        });
        return values;
    }

    private static TuttiException wrongType(DType dtype) {
        return TuttiException.ofTutti(Code.INVALID_ARGUMENT, "the tensor's elements are " + dtype);
    }

    private static void check(DType found, DType... wanted) {
        for (DType dtype : wanted) {
            if (found == dtype) {
                return;
            }
        }
        throw wrongType(found);
    }

    /** The length of an array of all elements. */
    private int length(DType... wanted) {
        check(dtype(), wanted);
        long count = elementCount();
        if (count > Integer.MAX_VALUE - 8) {
            throw TuttiException.ofTutti(Code.OUT_OF_RANGE, count + " elements are too many for an array; view parts");
        }
        return (int) count;
    }

    private int wholeSize() {
        long size = sizeBytes();
        if (size > Integer.MAX_VALUE) {
            throw TuttiException.ofTutti(Code.OUT_OF_RANGE,
                size + " bytes are too many for one buffer; take parts of it");
        }
        return (int) size;
    }

    private static ByteBuffer buffer(long number, long address, long offset, int size) {
        if (offset < 0 || size < 0 || offset > Raw.tensor_get_size_bytes(number) - size) {
            throw TuttiException.ofTutti(Code.OUT_OF_RANGE, "bytes " + offset + " to " + (offset + size)
                + " are not in the tensor");
        }
        ByteBuffer memory = size == 0 ? ByteBuffer.allocateDirect(0) : Raw.java_buffer(address + offset, size);
        return memory.order(ByteOrder.nativeOrder());
    }

    private static Tensor copied(DType dtype, Object array, int count, long[] dims) {
        long[] shape = dims.length == 0 ? new long[] {count} : dims;
        long[] out = new long[1];
        long[] failure = new long[1];
        long size = (long) count * dtype.sizeBytes();
        TuttiException.check(Raw.java_tensor(dtype.number(), shape, array, size, out, failure), failure);
        return wrap(out[0]);
    }

    private void read(int elementSize, int count, Copy copy) {
        int most = PART / elementSize;
        for (int i = 0; i < count; i += Math.min(most, count - i)) {
            int first = i;
            int n = Math.min(most, count - i);
            use((long) i * elementSize, n * elementSize, from -> {
                copy.part(from, first, n);
                return null;
            });
        }
    }
}
