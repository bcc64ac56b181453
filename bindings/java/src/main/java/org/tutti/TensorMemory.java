// SPDX-License-Identifier: Apache-2.0
package org.tutti;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;

/**
 * The memory of a tensor, without a copy, lent to the function of {@link Tensor#view} or {@link Tensor#update}. It is
 * good there, on the thread that runs the function: elsewhere, and once the function has returned, every call throws
 * and touches no memory. Places are bytes from the beginning of what is lent; elements of several bytes are in the
 * machine's order and may stand at any place. A place outside is an IndexOutOfBoundsException.
 *
 * <p>Reading or writing arrays is as fast as copying memory, single elements a little slower than in a buffer.
 */
public final class TensorMemory {
    private final ByteBuffer memory;
    private final Thread thread = Thread.currentThread();
    private boolean ended;

    TensorMemory(ByteBuffer memory) {
        this.memory = memory.order(ByteOrder.nativeOrder());
    }

    void end() {
        ended = true;
    }

    /** What ends it runs on the same thread, so nobody reads memory that is given back meanwhile. */
    private ByteBuffer lent() {
        if (Thread.currentThread() != thread || ended) {
            throw refusal();
        }
        return memory;
    }

    private TuttiException refusal() {
        if (Thread.currentThread() != thread) {
            return TuttiException.ofTutti(Code.FAILED_PRECONDITION, "lent memory belongs to the thread it was lent to");
        }
        return new ClosedException("TensorMemory: it is lent to its function only");
    }

    private ByteBuffer part(int place, int count, int size) {
        return lent().slice(place, Math.multiplyExact(count, size)).order(ByteOrder.nativeOrder());
    }

    /** How much is lent.
     *
     * @return its bytes
     */
    public int size() {
        return lent().limit();
    }

    /** Whether it may be written.
     *
     * @return true in the function of {@link Tensor#update}; elsewhere writing is a ReadOnlyBufferException
     */
    public boolean isWritable() {
        return !lent().isReadOnly();
    }

    /** Copies bytes into a buffer, from its position to its limit.
     *
     * @param place the first byte
     * @param into gets as many bytes as remain in it, whatever its byte order
     */
    public void get(int place, ByteBuffer into) {
        into.put(lent().slice(place, into.remaining()));
    }

    /** Copies the bytes of a buffer, from its position to its limit.
     *
     * @param place the first byte
     * @param from has the bytes
     */
    public void put(int place, ByteBuffer from) {
        lent().slice(place, from.remaining()).put(from);
    }

    /** An element of type INT8 or UINT8.
     *
     * @param place its first byte
     * @return the element
     */
    public byte getByte(int place) {
        return lent().get(place);
    }

    /** Sets an element of type INT8 or UINT8.
     *
     * @param place its first byte
     * @param value the element
     */
    public void putByte(int place, byte value) {
        lent().put(place, value);
    }

    /** Copies elements of type INT8 or UINT8.
     *
     * @param place the first byte
     * @param into gets them
     * @param first its first index that is written
     * @param count how many
     */
    public void get(int place, byte[] into, int first, int count) {
        part(place, count, Byte.BYTES).get(into, first, count);
    }

    /** Copies elements of type INT8 or UINT8 into the memory.
     *
     * @param place the first byte
     * @param from has them
     * @param first its first index that is read
     * @param count how many
     */
    public void put(int place, byte[] from, int first, int count) {
        part(place, count, Byte.BYTES).put(from, first, count);
    }

    /** An element of type INT16, UINT16, FLOAT16 or BFLOAT16.
     *
     * @param place its first byte
     * @return the element
     */
    public short getShort(int place) {
        return lent().getShort(place);
    }

    /** Sets an element of type INT16, UINT16, FLOAT16 or BFLOAT16.
     *
     * @param place its first byte
     * @param value the element
     */
    public void putShort(int place, short value) {
        lent().putShort(place, value);
    }

    /** Copies elements of type INT16, UINT16, FLOAT16 or BFLOAT16.
     *
     * @param place the first byte
     * @param into gets them
     * @param first its first index that is written
     * @param count how many
     */
    public void get(int place, short[] into, int first, int count) {
        part(place, count, Short.BYTES).asShortBuffer().get(into, first, count);
    }

    /** Copies elements of type INT16, UINT16, FLOAT16 or BFLOAT16 into the memory.
     *
     * @param place the first byte
     * @param from has them
     * @param first its first index that is read
     * @param count how many
     */
    public void put(int place, short[] from, int first, int count) {
        part(place, count, Short.BYTES).asShortBuffer().put(from, first, count);
    }

    /** An element of type INT32 or UINT32.
     *
     * @param place its first byte
     * @return the element
     */
    public int getInt(int place) {
        return lent().getInt(place);
    }

    /** Sets an element of type INT32 or UINT32.
     *
     * @param place its first byte
     * @param value the element
     */
    public void putInt(int place, int value) {
        lent().putInt(place, value);
    }

    /** Copies elements of type INT32 or UINT32.
     *
     * @param place the first byte
     * @param into gets them
     * @param first its first index that is written
     * @param count how many
     */
    public void get(int place, int[] into, int first, int count) {
        part(place, count, Integer.BYTES).asIntBuffer().get(into, first, count);
    }

    /** Copies elements of type INT32 or UINT32 into the memory.
     *
     * @param place the first byte
     * @param from has them
     * @param first its first index that is read
     * @param count how many
     */
    public void put(int place, int[] from, int first, int count) {
        part(place, count, Integer.BYTES).asIntBuffer().put(from, first, count);
    }

    /** An element of type INT64 or UINT64.
     *
     * @param place its first byte
     * @return the element
     */
    public long getLong(int place) {
        return lent().getLong(place);
    }

    /** Sets an element of type INT64 or UINT64.
     *
     * @param place its first byte
     * @param value the element
     */
    public void putLong(int place, long value) {
        lent().putLong(place, value);
    }

    /** Copies elements of type INT64 or UINT64.
     *
     * @param place the first byte
     * @param into gets them
     * @param first its first index that is written
     * @param count how many
     */
    public void get(int place, long[] into, int first, int count) {
        part(place, count, Long.BYTES).asLongBuffer().get(into, first, count);
    }

    /** Copies elements of type INT64 or UINT64 into the memory.
     *
     * @param place the first byte
     * @param from has them
     * @param first its first index that is read
     * @param count how many
     */
    public void put(int place, long[] from, int first, int count) {
        part(place, count, Long.BYTES).asLongBuffer().put(from, first, count);
    }

    /** An element of type FLOAT32.
     *
     * @param place its first byte
     * @return the element
     */
    public float getFloat(int place) {
        return lent().getFloat(place);
    }

    /** Sets an element of type FLOAT32.
     *
     * @param place its first byte
     * @param value the element
     */
    public void putFloat(int place, float value) {
        lent().putFloat(place, value);
    }

    /** Copies elements of type FLOAT32.
     *
     * @param place the first byte
     * @param into gets them
     * @param first its first index that is written
     * @param count how many
     */
    public void get(int place, float[] into, int first, int count) {
        part(place, count, Float.BYTES).asFloatBuffer().get(into, first, count);
    }

    /** Copies elements of type FLOAT32 into the memory.
     *
     * @param place the first byte
     * @param from has them
     * @param first its first index that is read
     * @param count how many
     */
    public void put(int place, float[] from, int first, int count) {
        part(place, count, Float.BYTES).asFloatBuffer().put(from, first, count);
    }

    /** An element of type FLOAT64.
     *
     * @param place its first byte
     * @return the element
     */
    public double getDouble(int place) {
        return lent().getDouble(place);
    }

    /** Sets an element of type FLOAT64.
     *
     * @param place its first byte
     * @param value the element
     */
    public void putDouble(int place, double value) {
        lent().putDouble(place, value);
    }

    /** Copies elements of type FLOAT64.
     *
     * @param place the first byte
     * @param into gets them
     * @param first its first index that is written
     * @param count how many
     */
    public void get(int place, double[] into, int first, int count) {
        part(place, count, Double.BYTES).asDoubleBuffer().get(into, first, count);
    }

    /** Copies elements of type FLOAT64 into the memory.
     *
     * @param place the first byte
     * @param from has them
     * @param first its first index that is read
     * @param count how many
     */
    public void put(int place, double[] from, int first, int count) {
        part(place, count, Double.BYTES).asDoubleBuffer().put(from, first, count);
    }
}
