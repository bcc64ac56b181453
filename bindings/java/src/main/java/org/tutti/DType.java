// SPDX-License-Identifier: Apache-2.0
package org.tutti;

/** The type of a tensor's elements. */
public enum DType {
    /** Real numbers of 32 bits: {@code float}. */
    FLOAT32(Raw.DTYPE_F32, "f32", 4),
    /** Real numbers of 64 bits: {@code double}. */
    FLOAT64(Raw.DTYPE_F64, "f64", 8),
    /** Integers of 32 bits: {@code int}. */
    INT32(Raw.DTYPE_I32, "i32", 4),
    /** Integers of 64 bits: {@code long}. */
    INT64(Raw.DTYPE_I64, "i64", 8),
    /** Integers of 8 bits without a sign: the bits of {@code byte}. */
    UINT8(Raw.DTYPE_U8, "u8", 1),
    /** Truth values: {@code boolean}. */
    BOOL(Raw.DTYPE_BOOL, "boolean", 1),
    /** Real numbers of 16 bits: the bits of {@code short}. */
    FLOAT16(Raw.DTYPE_F16, "f16", 2),
    /** Real numbers of 16 bits with the exponent of 32: the bits of {@code short}. */
    BFLOAT16(Raw.DTYPE_BF16, "bf16", 2),
    /** Integers of 8 bits: {@code byte}. */
    INT8(Raw.DTYPE_I8, "i8", 1),
    /** Integers of 16 bits: {@code short}. */
    INT16(Raw.DTYPE_I16, "i16", 2),
    /** Integers of 16 bits without a sign: the bits of {@code short}. */
    UINT16(Raw.DTYPE_U16, "u16", 2),
    /** Integers of 32 bits without a sign: the bits of {@code int}. */
    UINT32(Raw.DTYPE_U32, "u32", 4),
    /** Integers of 64 bits without a sign: the bits of {@code long}. */
    UINT64(Raw.DTYPE_U64, "u64", 8),
    /** Pieces of bytes, such as texts, of any length. */
    BYTES(Raw.DTYPE_BYTES, "bytes", 0);

    private final int number;
    private final String text;
    private final int sizeBytes;

    DType(int number, String text, int sizeBytes) {
        this.number = number;
        this.text = text;
        this.sizeBytes = sizeBytes;
    }

    /** The size of one element.
     *
     * @return its bytes; 0 when elements have no fixed size
     */
    public int sizeBytes() {
        return sizeBytes;
    }

    int number() {
        return number;
    }

    /** By the name that reports have. */
    static DType of(String text) {
        for (DType value : values()) {
            if (value.text.equals(text)) {
                return value;
            }
        }
        throw TuttiException.ofTutti(Code.INTERNAL, "no type is called '" + text + "'");
    }

    static @Nullable DType of(int number) {
        for (DType value : values()) {
            if (value.number == number) {
                return value;
            }
        }
        return null;
    }
}
