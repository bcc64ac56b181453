// SPDX-License-Identifier: Apache-2.0
package org.tutti;

import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Executor;

/**
 * A trained model that answers. Any number of threads may ask one at the same time; each call uses all devices, and
 * rows come back in the order in which they went in.
 */
public final class Predictor extends NativeObject {
    Predictor(long number) {
        super(new Handle("Predictor", number, Raw::predictor_unref));
    }

    /** What a predictor is made of beside its checkpoint; {@link #open} opens it.
     *
     * <pre>{@code
     * Predictor predictor = Predictor.builder("models/digits").strategy(Strategy.oneDevice("cpu:0")).open();
     * }</pre>
     */
    public static final class Builder {
        private final String path;
        private @Nullable Context context;
        private @Nullable Strategy strategy;
        private @Nullable PredictorOptions options;

        private Builder(String path) {
            this.path = path;
        }

        /** To which context it belongs. Default: the default context.
         *
         * @param owner the context
         * @return this builder
         */
        public Builder context(Context owner) {
            context = owner;
            return this;
        }

        /** On which devices it predicts. Default: all of the context.
         *
         * @param devices the strategy
         * @return this builder
         */
        public Builder strategy(Strategy devices) {
            strategy = devices;
            return this;
        }

        /** How it predicts.
         *
         * @param how the options
         * @return this builder
         */
        public Builder options(PredictorOptions how) {
            options = how;
            return this;
        }

        /** Opens a predictor, and another one each time.
         *
         * @return the predictor, to be closed
         */
        public Predictor open() {
            try (Use use = new Use(); Options.Native o = new Options.Native(options)) {
                long[] out = new long[1];
                long[] failure = new long[1];
                TuttiException.check(
                    Raw.predictor_open(use.of(context), path, use.of(strategy), o.number, out, failure), failure);
                return new Predictor(out[0]);
            }
        }
    }

    /** Opens a checkpoint, or the newest good checkpoint of a model directory, on all devices of the default context.
     *
     * @param path where it is
     * @return the predictor
     */
    public static Predictor open(String path) {
        return builder(path).open();
    }

    /** Opens a checkpoint, or the newest good checkpoint of a model directory, on all devices of the default context.
     *
     * @param path where it is
     * @return the predictor
     */
    public static Predictor open(Path path) {
        return builder(path).open();
    }

    /** Begins a predictor of which more is to be said than its checkpoint.
     *
     * @param path a checkpoint, or a model directory, of which the newest good checkpoint is opened
     * @return a builder
     */
    public static Builder builder(String path) {
        return new Builder(path);
    }

    /** Begins a predictor of which more is to be said than its checkpoint.
     *
     * @param path a checkpoint, or a model directory, of which the newest good checkpoint is opened
     * @return a builder
     */
    public static Builder builder(Path path) {
        return builder(PathText.of(path));
    }

    @Override
    String details() {
        return " of step " + step();
    }

    /** Changes to the newest weights of where the predictor came from: its estimator, or the path it was opened with.
     * Calls in flight finish on the old ones. On failure those stay.
     */
    public void reload() {
        reload("");
    }

    /** Changes to the weights of another checkpoint of the same model, as {@link #reload(String)}.
     *
     * @param path where it is, or a directory with several
     */
    public void reload(Path path) {
        reload(PathText.of(path));
    }

    /** Changes to the weights of another checkpoint of the same model. Calls in flight finish on the old ones. On
     * failure those stay.
     *
     * @param path where it is, or a directory with several, of which the newest good one is taken
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
     * @return what it takes and gives
     */
    public Signature signature() {
        try (Use use = new Use()) {
            return Signature.of(Raw.predictor_get_signature(use.of(this)));
        }
    }

    /** How so many rows are computed on the first device.
     *
     * @param rows how many
     * @param timedRuns with more than 0, how often the time is taken
     * @return the plan
     */
    public synchronized PredictionPlan describePlan(long rows, long timedRuns) {
        try (Use use = new Use(); Call call = Call.begin()) {
            long[] failure = new long[1];
            String text = Raw.predictor_describe_plan(use.of(this), rows, timedRuns, call.token(), failure);
            if (failure[0] != 0) {
                call.check(Raw.error_get_code(failure[0]), failure);
            }
            return PredictionPlan.of(text);
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

    /** Predicts rows on a thread of the package. Cancelling the future cancels the call.
     *
     * @param inputs the model's features by name, which must stay open
     * @return the answers
     */
    public CompletableFuture<Batch> runAsync(Map<String, Tensor> inputs) {
        return AsyncCall.start(() -> run(inputs));
    }

    /** Predicts rows on a thread of an executor. Cancelling the future cancels the call.
     *
     * @param executor has the thread
     * @param inputs the model's features by name, which must stay open
     * @return the answers
     */
    public CompletableFuture<Batch> runAsync(Executor executor, Map<String, Tensor> inputs) {
        return AsyncCall.start(executor, () -> run(inputs));
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

    /** Predicts a whole dataset on a thread of the package. Cancelling the future cancels the call.
     *
     * @param dataset what on
     * @return the answers
     */
    public CompletableFuture<Batch> runAllAsync(Dataset dataset) {
        return AsyncCall.start(() -> runAll(dataset));
    }

    /** Predicts a whole dataset on a thread of an executor. Cancelling the future cancels the call.
     *
     * @param executor has the thread
     * @param dataset what on
     * @return the answers
     */
    public CompletableFuture<Batch> runAllAsync(Executor executor, Dataset dataset) {
        return AsyncCall.start(executor, () -> runAll(dataset));
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
