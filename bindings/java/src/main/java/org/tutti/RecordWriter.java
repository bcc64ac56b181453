// SPDX-License-Identifier: Apache-2.0
package org.tutti;

import java.nio.ByteBuffer;
import java.nio.file.Path;
import java.util.Locale;

/**
 * Writes a TFRecord file, byte by byte what TensorFlow writes; a pipeline's source {@code tfrecord} reads it. The file
 * is there, complete, once {@link #finish} has succeeded; without it, or after an error, there is none. It serves one
 * thread at a time.
 */
public final class RecordWriter extends NativeObject {
    /** How a file of records is compressed. */
    public enum Compression implements Choice {
        /** Not at all. */
        NONE,
        /** As gzip files are. */
        GZIP,
        /** By zlib. */
        ZLIB;

        @Override
        public String text() {
            return name().toLowerCase(Locale.ROOT);
        }
    }

    /** A writer of a file that is not compressed, in the default context.
     *
     * @param path of the file
     */
    public RecordWriter(String path) {
        this(create(0, path, Compression.NONE));
    }

    /** A writer of a file that is not compressed, in the default context.
     *
     * @param path of the file
     */
    public RecordWriter(Path path) {
        this(PathText.of(path));
    }

    /** A writer of a file in the default context.
     *
     * @param path of the file
     * @param compression how it is compressed
     */
    public RecordWriter(Path path, Compression compression) {
        this(create(0, PathText.of(path), compression));
    }

    /** A writer of a file.
     *
     * @param context to which it belongs
     * @param path of the file
     * @param compression how it is compressed
     */
    public RecordWriter(Context context, String path, Compression compression) {
        this(create(context, path, compression));
    }

    private RecordWriter(long number) {
        super(new Handle("RecordWriter", number, Raw::record_writer_unref));
    }

    private static long create(Context context, String path, Compression compression) {
        try (Use use = new Use()) {
            return create(use.of(context), path, compression);
        }
    }

    private static long create(long context, String path, Compression compression) {
        long[] out = new long[1];
        long[] failure = new long[1];
        TuttiException.check(Raw.record_writer_create(context, path, compression.text(), out, failure), failure);
        return out[0];
    }

    /** Writes a record.
     *
     * @param record its bytes, of which there may be none
     */
    public void write(byte[] record) {
        ByteBuffer direct = ByteBuffer.allocateDirect(record.length).put(record).flip();
        try (Use use = new Use()) {
            long[] failure = new long[1];
            TuttiException.check(Raw.record_writer_write(use.of(this), direct, failure), failure);
        }
    }

    /** Adds a feature to the tf.train.Example that is written next: texts become a bytes list, floats a float list,
     * integers and truth values an int64 list.
     *
     * @param name of the feature
     * @param tensor its values; it may be closed
     * @return this writer
     */
    public RecordWriter addFeature(String name, Tensor tensor) {
        try (Use use = new Use()) {
            long[] failure = new long[1];
            long number = use.of(this);
            TuttiException.check(Raw.record_writer_add_feature(number, name, use.of(tensor), failure), failure);
        }
        return this;
    }

    /** Writes the features added since the last example as one record. */
    public void writeExample() {
        try (Use use = new Use()) {
            long[] failure = new long[1];
            TuttiException.check(Raw.record_writer_write_example(use.of(this), failure), failure);
        }
    }

    /** Adds a feature list to the tf.train.SequenceExample that is written next: each row of the tensor is a step.
     *
     * @param name its name
     * @param tensor the steps; it may be closed
     * @return this writer
     */
    public RecordWriter addFeatureList(String name, Tensor tensor) {
        return addSteps(name, tensor, null);
    }

    /** Adds a feature list whose steps have different numbers of values.
     *
     * @param name its name
     * @param tensor the steps, one behind the other; it may be closed
     * @param lengths how many rows of its own each step has, as integers
     * @return this writer
     */
    public RecordWriter addFeatureList(String name, Tensor tensor, Tensor lengths) {
        return addSteps(name, tensor, lengths);
    }

    private RecordWriter addSteps(String name, Tensor tensor, @Nullable Tensor lengths) {
        try (Use use = new Use()) {
            long[] failure = new long[1];
            long number = use.of(this);
            long steps = use.of(tensor);
            TuttiException.check(
                Raw.record_writer_add_feature_list(number, name, steps, use.of(lengths), failure), failure);
        }
        return this;
    }

    /** Writes one record of the feature lists added since the last one, with the features as its context. */
    public void writeSequenceExample() {
        try (Use use = new Use()) {
            long[] failure = new long[1];
            TuttiException.check(Raw.record_writer_write_sequence_example(use.of(this), failure), failure);
        }
    }

    /** Writes what is left and puts the file into place. Once; the writer takes no records afterwards. */
    public void finish() {
        try (Use use = new Use()) {
            long[] failure = new long[1];
            TuttiException.check(Raw.record_writer_close(use.of(this), failure), failure);
        }
    }
}
