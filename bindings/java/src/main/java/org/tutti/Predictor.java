// SPDX-License-Identifier: Apache-2.0
package org.tutti;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;

/**
 * A trained model that answers. Any number of threads may ask one at the same time; each call uses all devices, and
 * rows come back in the order in which they went in.
 */
public final class Predictor extends NativeObject {
    Predictor(long number) {
        super(new Handle("Predictor", number, Raw::predictor_unref));
    }

    /** Opens a checkpoint, or the newest good checkpoint of a model directory, on all devices of the default context.
     *
     * @param path where it is
     * @return the predictor
     */
    public static Predictor open(String path) {
        return open(null, path, null, null);
    }

    /** Opens a checkpoint, or the newest good checkpoint of a model directory.
     *
     * @param context to which it belongs; null = the default one
     * @param path where it is
     * @param strategy on which devices; null = all of the context
     * @param options how it predicts; null = the defaults
     * @return the predictor
     */
    public static Predictor open(Context context, String path, Strategy strategy, PredictorOptions options) {
        try (Use use = new Use(); Options.Native o = new Options.Native(options)) {
            long[] out = new long[1];
            long[] failure = new long[1];
            TuttiException.check(Raw.predictor_open(use.of(context), path, use.of(strategy), o.number, out, failure),
                failure);
            return new Predictor(out[0]);
        }
    }

    /** Changes to the weights of another checkpoint of the same model. Calls in flight finish on the old ones. On
     * failure those stay.
     *
     * @param path where it is, or a directory with several, of which the newest good one is taken; null = the newest
     *     weights of where the predictor came from, its estimator or the path it was opened with
     */
    public void reload(String path) {
        try (Use use = new Use(); Call call = Call.begin()) {
            long[] failure = new long[1];
            call.check(Raw.predictor_reload(use.of(this), path, call.token(), failure), failure);
        }
    }

    /** The training step of the weights in use.
     *
     * @return the step
     */
    public long step() {
        try (Use use = new Use()) {
            return Raw.predictor_get_step(use.of(this));
        }
    }

    /** Names, types and shapes of inputs and outputs.
     *
     * @return the JSON text
     */
    public String signature() {
        try (Use use = new Use()) {
            return Raw.predictor_get_signature(use.of(this));
        }
    }

    /** How so many rows are computed on the first device.
     *
     * @param rows how many
     * @param timedRuns with more than 0, how often the time is taken
     * @return the JSON text
     */
    public synchronized String describePlan(long rows, long timedRuns) {
        try (Use use = new Use(); Call call = Call.begin()) {
            long[] failure = new long[1];
            String text = Raw.predictor_describe_plan(use.of(this), rows, timedRuns, call.token(), failure);
            if (failure[0] != 0) {
                call.check(Raw.error_get_code(failure[0]), failure);
            }
            return text;
        }
    }

    /** Predicts rows.
     *
     * @param inputs the model's features by name; they share their first dimension
     * @return the answers, to be closed
     */
    public Batch run(Map<String, Tensor> inputs) {
        try (Use use = new Use(); Call call = Call.begin()) {
            long number = use.of(this);
            List<String> names = new ArrayList<>(inputs.keySet());
            long[] tensors = new long[names.size()];
            for (int i = 0; i < tensors.length; i++) {
                tensors[i] = use.of(inputs.get(names.get(i)));
            }
            long[] out = new long[1];
            long[] failure = new long[1];
            call.check(Raw.predictor_run(number, Text.list(names), tensors, call.token(), out, failure), failure);
            return new Batch(out[0]);
        }
    }

    /** Predicts rows on another thread. Cancelling the future cancels the call.
     *
     * @param inputs the model's features by name, which must stay open
     * @return the answers
     */
    public CompletableFuture<Batch> runAsync(Map<String, Tensor> inputs) {
        return AsyncCall.start(() -> run(inputs));
    }

    /** Predicts a whole dataset into one batch.
     *
     * @param dataset what on
     * @return the answers, to be closed
     */
    public Batch runAll(Dataset dataset) {
        try (Use use = new Use(); Call call = Call.begin()) {
            long[] out = new long[1];
            long[] failure = new long[1];
            call.check(Raw.predictor_run_all(use.of(this), use.of(dataset), call.token(), out, failure), failure);
            return new Batch(out[0]);
        }
    }

    /** Predicts a whole dataset on another thread. Cancelling the future cancels the call.
     *
     * @param dataset what on
     * @return the answers
     */
    public CompletableFuture<Batch> runAllAsync(Dataset dataset) {
        return AsyncCall.start(() -> runAll(dataset));
    }

    /** Starts to predict a dataset batch by batch, a few batches ahead of the reader.
     *
     * @param dataset what on
     * @return the batches, to be closed
     */
    public PredictionStream stream(Dataset dataset) {
        try (Use use = new Use()) {
            long[] out = new long[1];
            long[] failure = new long[1];
            TuttiException.check(Raw.prediction_stream_open(use.of(this), use.of(dataset), out, failure), failure);
            return new PredictionStream(out[0], dataset);
        }
    }
}
