// SPDX-License-Identifier: Apache-2.0
package org.tutti;

import java.util.ArrayList;
import java.util.List;

/** A batch of answers: named tensors with the same number of rows. Immutable. */
public final class Batch extends NativeObject {
    Batch(long number) {
        super(Handle.ofData("Batch", number, Raw::batch_unref, size(number)));
    }

    private static long size(long number) {
        long size = Tensor.OVERHEAD;
        for (long i = 0; i < Raw.batch_get_output_count(number); i++) {
            size += Raw.tensor_get_size_bytes(Raw.batch_get_output(number, Raw.batch_get_output_name(number, i)));
        }
        return size;
    }

    /** The position of the first row in the dataset.
     *
     * @return counted from 0
     */
    public long firstRow() {
        try (Use use = new Use()) {
            return Raw.batch_get_first_row(use.of(this));
        }
    }

    /** The number of rows.
     *
     * @return the rows
     */
    public long rows() {
        try (Use use = new Use()) {
            return Raw.batch_get_row_count(use.of(this));
        }
    }

    @Override
    String details() {
        return " of " + rows() + " rows from " + firstRow() + ": " + names();
    }

    /** The names of the outputs.
     *
     * @return all names
     */
    public List<String> names() {
        try (Use use = new Use()) {
            long number = use.of(this);
            List<String> names = new ArrayList<>();
            for (long i = 0; i < Raw.batch_get_output_count(number); i++) {
                names.add(Raw.batch_get_output_name(number, i));
            }
            return names;
        }
    }

    /** An output; it lives on when the batch is closed.
     *
     * @param name which one
     * @return the output, to be closed
     */
    public Tensor output(String name) {
        try (Use use = new Use()) {
            Tensor tensor = Tensor.share(Raw.batch_get_output(use.of(this), name));
            if (tensor == null) {
                throw TuttiException.ofTutti(Code.NOT_FOUND,
                        "the batch has no output '" + name + "'; known: " + String.join(", ", names()));
            }
            return tensor;
        }
    }

    /** A copy of an output of type FLOAT32.
     *
     * @param name which one
     * @return its elements
     */
    public float[] floats(String name) {
        try (Tensor tensor = output(name)) {
            return tensor.toFloats();
        }
    }

    /** A copy of an output of type INT64.
     *
     * @param name which one
     * @return its elements
     */
    public long[] longs(String name) {
        try (Tensor tensor = output(name)) {
            return tensor.toLongs();
        }
    }
}
