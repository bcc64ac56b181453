// SPDX-License-Identifier: Apache-2.0
package org.tutti;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;

/** The elements of tensors of type BYTES, in and out of the library's form. */
final class BytesElements {
    private BytesElements() {}

    /** First where each element begins and the last ends, counted from the beginning, then the elements. */
    static ByteBuffer pack(byte[][] data) {
        long size = 8L * (data.length + 1);
        for (byte[] one : data) {
            size += one.length;
        }
        if (size > Integer.MAX_VALUE) {
            throw TuttiException.ofTutti(Code.OUT_OF_RANGE, size + " bytes are too many for one buffer");
        }
        ByteBuffer memory = ByteBuffer.allocateDirect((int) size).order(ByteOrder.nativeOrder());
        int end = 8 * (data.length + 1);
        for (int i = 0; i < data.length; i++) {
            memory.putLong(8 * i, end).position(end);
            memory.put(data[i]);
            end += data[i].length;
        }
        memory.putLong(8 * data.length, end).position(0);
        return memory;
    }

    /** A copy of element `index` of a tensor that is in use. */
    static byte[] copy(long tensor, int index) {
        long size = Raw.tensor_get_element_size(tensor, index);
        if (size > Integer.MAX_VALUE - 8) {
            throw TuttiException.ofTutti(Code.OUT_OF_RANGE, size + " bytes are too many for an array");
        }
        byte[] value = new byte[(int) size];
        if (size > 0) {
            Raw.java_buffer(Raw.tensor_get_element_data(tensor, index), size).get(value);
        }
        return value;
    }
}
