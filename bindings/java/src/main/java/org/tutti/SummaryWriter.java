// SPDX-License-Identifier: Apache-2.0
package org.tutti;

import java.nio.file.Path;

/**
 * Writes curves, histograms, images, texts and embeddings for TensorBoard into event files of a folder. A name has
 * values of one kind only, and "/" between groups. Writing is no error of a call: if it fails, as on a full disk, the
 * log says so once, and it is tried again. Any number of threads may use it.
 */
public final class SummaryWriter extends NativeObject {
    private static final long USUAL_FLUSH_SECONDS = 10;

    /** Calls a function of the library with the writer and a tensor, 0 for none. */
    @FunctionalInterface
    private interface Adder {
        int add(long writer, long tensor, long[] failure);
    }

    /** Takes the reference. */
    SummaryWriter(long number) {
        super(new Handle("SummaryWriter", number, Raw::summary_writer_unref));
    }

    /** Writes a new event file, in the default context.
     *
     * @param folder which is made with the first value
     */
    public SummaryWriter(Path folder) {
        this(create(0, PathText.of(folder), USUAL_FLUSH_SECONDS));
    }

    /** Writes a new event file.
     *
     * @param context whose log hears of errors
     * @param folder which is made with the first value
     * @param flushSeconds how long a value may wait to be written while others come
     */
    public SummaryWriter(Context context, Path folder, long flushSeconds) {
        this(create(context, PathText.of(folder), flushSeconds));
    }

    private static long create(Context context, String folder, long flushSeconds) {
        try (Use use = new Use()) {
            return create(use.of(context), folder, flushSeconds);
        }
    }

    private static long create(long context, String folder, long flushSeconds) {
        long[] out = new long[1];
        long[] failure = new long[1];
        TuttiException.check(Raw.summary_writer_create(context, folder, flushSeconds, out, failure), failure);
        return out[0];
    }

    private SummaryWriter add(@Nullable Tensor tensor, Adder adder) {
        try (Use use = new Use()) {
            long[] failure = new long[1];
            long number = use.of(this);
            TuttiException.check(adder.add(number, use.of(tensor), failure), failure);
        }
        return this;
    }

    /** Where the event files are.
     *
     * @return the folder
     */
    public Path folder() {
        try (Use use = new Use()) {
            return Path.of(Raw.summary_writer_get_folder(use.of(this)));
        }
    }

    /** Writes what waits. */
    public void flush() {
        add(null, (writer, none, failure) -> Raw.summary_writer_flush(writer, failure));
    }

    /** Adds a point of a curve.
     *
     * @param name of the curve
     * @param value of the point
     * @param step of the point
     * @return this writer
     */
    public SummaryWriter addScalar(String name, double value, long step) {
        return add(null, (writer, none, failure) ->
                Raw.summary_writer_add_scalar(writer, name, value, step, failure));
    }

    /** Shows how the elements of a tensor are distributed.
     *
     * @param name what it is called
     * @param values of numbers or truth values
     * @param step when it was so
     * @return this writer
     */
    public SummaryWriter addHistogram(String name, Tensor values, long step) {
        return add(values, (writer, tensor, failure) ->
                Raw.summary_writer_add_histogram(writer, name, tensor, step, failure));
    }

    /** Shows images [images, height, width, channels] of bytes, or of floating point numbers from 0 to 1.
     *
     * @param name what they are called
     * @param images with 1, 3 or 4 channels
     * @param most the first ones that are shown; 0 = 3
     * @param step when they were so
     * @return this writer
     */
    public SummaryWriter addImage(String name, Tensor images, long most, long step) {
        return add(images, (writer, tensor, failure) ->
                Raw.summary_writer_add_image(writer, name, tensor, most, step, failure));
    }

    /** Shows a text.
     *
     * @param name what it is called
     * @param text in Markdown
     * @param step when it was so
     * @return this writer
     */
    public SummaryWriter addText(String name, String text, long step) {
        return add(null, (writer, none, failure) ->
                Raw.summary_writer_add_text(writer, name, text, step, failure));
    }

    /** Shows precision and recall over thresholds.
     *
     * @param name of the curve
     * @param labels truth values
     * @param predictions numbers from 0 to 1
     * @param weights of the examples; null = 1 each
     * @param thresholds their number; 0 = 201
     * @param step when it was so
     * @return this writer
     */
    public SummaryWriter addPrCurve(
            String name, Tensor labels, Tensor predictions, @Nullable Tensor weights, long thresholds, long step) {
        try (Use use = new Use()) {
            long[] failure = new long[1];
            long number = use.of(this);
            long truths = use.of(labels);
            long scores = use.of(predictions);
            TuttiException.check(Raw.summary_writer_add_pr_curve(
                    number, name, truths, scores, use.of(weights), thresholds, step, failure), failure);
        }
        return this;
    }

    /** Shows points in TensorBoard's projector.
     *
     * @param name what they are called
     * @param points [points, dimensions]
     * @param metadata what each is: null for nothing, a line for each, or a table with tabs between columns, whose
     *     first line has their names
     * @return this writer
     */
    public SummaryWriter addEmbedding(String name, Tensor points, @Nullable String metadata) {
        return add(points, (writer, tensor, failure) ->
                Raw.summary_writer_add_embedding(writer, name, tensor, metadata, failure));
    }

    /** Shows settings of a run in TensorBoard's table of runs.
     *
     * @param settingsJson a JSON object of numbers, truth values and texts
     * @param metricsJson a JSON array of the names of curves whose newest values stand beside them; null = none
     * @return this writer
     */
    public SummaryWriter addHyperparameters(String settingsJson, @Nullable String metricsJson) {
        return add(null, (writer, none, failure) ->
                Raw.summary_writer_add_hyperparameters(writer, settingsJson, metricsJson, failure));
    }
}
