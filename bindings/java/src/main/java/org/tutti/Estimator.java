// SPDX-License-Identifier: Apache-2.0
package org.tutti;

import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Executor;

/**
 * A model function and run options, trained on datasets by a strategy. One training at a time, beside any number of
 * evaluations and predictions. Closing the estimator cancels a training.
 *
 * <pre>{@code
 * try (Estimator estimator = new Estimator(model);
 *      Dataset dataset = pipeline.shuffle(1000).repeat().batch(64).build()) {
 *     Result result = estimator.train(dataset, new TrainOptions().steps(100));
 *     System.out.println(result.loss());
 * }
 * }</pre>
 */
public final class Estimator extends NativeObject {
    /** What an estimator is made of beside its model function; {@link #build} makes it.
     *
     * <pre>{@code
     * Estimator estimator = Estimator.builder(model).strategy(Strategy.mirrored())
     *     .options(new RunOptions().seed(1)).build();
     * }</pre>
     */
    public static final class Builder {
        private final ModelFunction model;
        private @Nullable Context context;
        private @Nullable Strategy strategy;
        private @Nullable RunOptions options;

        private Builder(ModelFunction model) {
            this.model = model;
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

        /** On which devices it runs. Default: {@link Strategy#auto}, unless the context is a strategy's.
         *
         * @param devices the strategy
         * @return this builder
         */
        public Builder strategy(Strategy devices) {
            strategy = devices;
            return this;
        }

        /** How it trains.
         *
         * @param run the options
         * @return this builder
         */
        public Builder options(RunOptions run) {
            options = run;
            return this;
        }

        /** Makes an estimator, and another one each time.
         *
         * @return the estimator, to be closed
         */
        public Estimator build() {
            return new Estimator(create(context, model, strategy, options));
        }
    }

    /** An estimator on the default context and its default strategy, with all options as they are by default.
     *
     * @param model writes the model
     */
    public Estimator(ModelFunction model) {
        this(create(null, model, null, null));
    }

    private Estimator(long number) {
        super(new Handle("Estimator", number, Raw::estimator_unref));
    }

    /** Begins an estimator of which more is to be said than its model.
     *
     * @param model writes the model
     * @return a builder
     */
    public static Builder builder(ModelFunction model) {
        return new Builder(model);
    }

    private static long create(@Nullable Context context, ModelFunction model, @Nullable Strategy strategy,
        @Nullable RunOptions options) {
        if (model == null) {
            throw TuttiException.ofTutti(Code.INVALID_ARGUMENT, "the model function is null");
        }
        try (Use use = new Use(); Options.Native run = new Options.Native(options)) {
            long owner = use.of(context);
            long devices = use.of(strategy);
            long[] out = new long[1];
            long[] failure = new long[1];
            int code = Raw.estimator_create(owner, Callbacks.keep(model), devices, run.number, out, failure);
            Callbacks.reap();
            TuttiException.check(code, failure);
            return out[0];
        }
    }

    /** Adds a function that a session runs besides the model's own steps, over the same variables; before the first
     * training. In mode TRAIN it sets a loss and an optimizer, and changes what it trains; in EVAL and PREDICT it only
     * computes. Its variables must be among those that the model function makes in mode TRAIN. It is called when a
     * session opens.
     *
     * @param name what {@link Session#runStepFunction} calls it
     * @param mode what it is built for
     * @param function writes it
     * @param input a dataset with batches like those that it gets, of which nothing is read; null = that of the session
     */
    public void addStepFunction(String name, Mode mode, ModelFunction function, @Nullable Dataset input) {
        if (function == null) {
            throw TuttiException.ofTutti(Code.INVALID_ARGUMENT, "the step function is null");
        }
        try (Use use = new Use()) {
            long number = use.of(this);
            long of = use.of(input);
            long[] failure = new long[1];
            int code = Raw.estimator_add_step_function(number, name, mode.number(), Callbacks.keep(function), of,
                failure);
            Callbacks.reap();
            TuttiException.check(code, failure);
        }
    }

    /** Trains until the input ends.
     *
     * @param dataset what from
     * @param hooks what sees it
     * @return what it gave
     */
    public Result train(Dataset dataset, Hook... hooks) {
        return train(dataset, new TrainOptions(), hooks);
    }

    /** Trains until the options' limit, or until the input ends. It goes on from the newest checkpoint in the model
     * directory, in the middle of an epoch if need be.
     *
     * @param dataset what from
     * @param options how long
     * @param hooks what sees it
     * @return what it gave
     */
    public Result train(Dataset dataset, TrainOptions options, Hook... hooks) {
        try (Use use = new Use(); Options.Native o = new Options.Native(options);
             Hook.Native h = new Hook.Native(hooks); Call call = Call.begin(handle())) {
            long[] out = new long[1];
            long[] failure = new long[1];
            call.check(Raw.estimator_train(use.of(this), use.of(dataset), o.number, h.number, call.token(), out,
                failure), failure);
            return Result.take(out[0]);
        }
    }

    /** Trains on a thread of the package. Cancelling the future cancels the training.
     *
     * @param dataset what from
     * @param options how long
     * @param hooks what sees it, on that thread
     * @return what it gives
     */
    public CompletableFuture<Result> trainAsync(Dataset dataset, TrainOptions options, Hook... hooks) {
        return AsyncCall.start(() -> train(dataset, options, hooks));
    }

    /** Trains on a thread of an executor. Cancelling the future cancels the training, by an interrupt of that thread
     * while it trains.
     *
     * @param executor has the thread
     * @param dataset what from
     * @param options how long
     * @param hooks what sees it, on that thread
     * @return what it gives
     */
    public CompletableFuture<Result> trainAsync(Executor executor, Dataset dataset, TrainOptions options,
        Hook... hooks) {
        return AsyncCall.start(executor, () -> train(dataset, options, hooks));
    }

    /** Trains on the dataset that a function makes, which is called once. The dataset is closed afterwards.
     *
     * @param input makes it
     * @param options how long
     * @param hooks what sees it
     * @return what it gave
     */
    public Result train(InputFunction input, TrainOptions options, Hook... hooks) {
        try (Dataset dataset = makeInput(Mode.TRAIN, input)) {
            return train(dataset, options, hooks);
        }
    }

    /** Loss and metrics over the dataset that a function makes, which is called once. The dataset is closed
     * afterwards.
     *
     * @param input makes it
     * @param steps how many batches; 0 = all
     * @return what it gave
     */
    public Result evaluate(InputFunction input, long steps) {
        try (Dataset dataset = makeInput(Mode.EVAL, input)) {
            return evaluate(dataset, steps);
        }
    }

    private Dataset makeInput(Mode mode, InputFunction input) {
        InputContext context;
        try (Use use = new Use()) {
            long number = use.of(this);
            context = new InputContext(Raw.estimator_get_params(number),
                Raw.estimator_get_input_pipeline_id(number, mode.number()),
                Raw.estimator_get_input_pipeline_count(number, mode.number()));
        }
        Dataset dataset = input.make(context);
        if (dataset == null) {
            throw TuttiException.ofTutti(Code.INVALID_ARGUMENT, "the input function made no dataset");
        }
        return dataset;
    }

    /** Lets evaluations, those of {@link #trainAndEvaluate} too, use other devices from the next one on.
     *
     * @param strategy the devices; null = the strategy that trains
     */
    public void setEvaluationStrategy(@Nullable Strategy strategy) {
        try (Use use = new Use()) {
            long[] failure = new long[1];
            TuttiException.check(Raw.estimator_set_evaluation_strategy(use.of(this), use.of(strategy), failure),
                failure);
        }
    }

    /** Makes the variables before the first training, without a step: initial values, or those of the newest
     * checkpoint.
     *
     * @param dataset says what the model gets
     */
    public void initialize(Dataset dataset) {
        initialize(dataset, "");
    }

    /** Makes the variables before the first training, without a step, with weights that were trained before.
     *
     * @param dataset says what the model gets
     * @param weights a checkpoint, a directory of checkpoints or a file in the safetensors format, whose tensors become
     *     the variables of those names
     */
    public void initialize(Dataset dataset, String weights) {
        try (Use use = new Use(); Call call = Call.begin()) {
            long[] failure = new long[1];
            call.check(Raw.estimator_initialize(use.of(this), use.of(dataset), weights, call.token(), failure),
                failure);
        }
    }

    /** Makes the variables before the first training, with weights that were trained before, as
     * {@link #initialize(Dataset, String)}.
     *
     * @param dataset says what the model gets
     * @param weights a checkpoint, a directory of checkpoints or a file
     */
    public void initialize(Dataset dataset, Path weights) {
        initialize(dataset, PathText.of(weights));
    }

    /** Loss and metrics over a dataset.
     *
     * @param dataset what on
     * @return what it gave
     */
    public Result evaluate(Dataset dataset) {
        return evaluate(dataset, 0);
    }

    /** Loss and metrics over the first batches of a dataset.
     *
     * @param dataset what on
     * @param steps how many batches; 0 = all
     * @return what it gave
     */
    public Result evaluate(Dataset dataset, long steps) {
        try (Use use = new Use(); Call call = Call.begin()) {
            long[] out = new long[1];
            long[] failure = new long[1];
            call.check(Raw.estimator_evaluate(use.of(this), use.of(dataset), steps, call.token(), out, failure),
                failure);
            return Result.take(out[0]);
        }
    }

    /** Evaluates on a thread of the package. Cancelling the future cancels the evaluation.
     *
     * @param dataset what on
     * @return what it gives
     */
    public CompletableFuture<Result> evaluateAsync(Dataset dataset) {
        return AsyncCall.start(() -> evaluate(dataset));
    }

    /** Evaluates on a thread of an executor. Cancelling the future cancels the evaluation.
     *
     * @param executor has the thread
     * @param dataset what on
     * @return what it gives
     */
    public CompletableFuture<Result> evaluateAsync(Executor executor, Dataset dataset) {
        return AsyncCall.start(executor, () -> evaluate(dataset));
    }

    /** Trains until the input ends, and evaluates every so many steps and at the end.
     *
     * @param dataset what from
     * @param evaluation what it is evaluated on
     * @param everySteps how often; 0 = after each pass
     * @param hooks what sees it
     * @return what the last evaluation gave
     */
    public Result trainAndEvaluate(Dataset dataset, Dataset evaluation, long everySteps, Hook... hooks) {
        return trainAndEvaluate(dataset, evaluation, everySteps, new TrainOptions(), hooks);
    }

    /** Trains, and evaluates every so many steps and at the end.
     *
     * @param dataset what from
     * @param evaluation what it is evaluated on
     * @param everySteps how often; 0 = after each pass
     * @param options how long
     * @param hooks what sees it
     * @return what the last evaluation gave
     */
    public Result trainAndEvaluate(Dataset dataset, Dataset evaluation, long everySteps, TrainOptions options,
        Hook... hooks) {
        try (Use use = new Use(); Options.Native o = new Options.Native(options);
             Hook.Native h = new Hook.Native(hooks); Call call = Call.begin(handle())) {
            long[] out = new long[1];
            long[] failure = new long[1];
            call.check(Raw.estimator_train_and_evaluate(use.of(this), use.of(dataset), use.of(evaluation), everySteps,
                o.number, h.number, call.token(), out, failure), failure);
            return Result.take(out[0]);
        }
    }

    /** Opens a training that is made in pieces and has no end of its own but that of the input.
     *
     * @param dataset what from
     * @param hooks what sees it
     * @return the session, which must be closed
     */
    public Session openSession(Dataset dataset, Hook... hooks) {
        return openSession(dataset, new TrainOptions(), hooks);
    }

    /** Opens a training that is made in pieces. The estimator's one training until it is finished or closed.
     *
     * @param dataset what from
     * @param options how long
     * @param hooks what sees it
     * @return the session, which must be closed
     */
    public Session openSession(Dataset dataset, TrainOptions options, Hook... hooks) {
        return Session.open(this, dataset, options, hooks);
    }

    /** Writes a checkpoint of the present weights.
     *
     * @param directory gets it as checkpoint-STEP
     */
    public void save(String directory) {
        try (Use use = new Use(); Call call = Call.begin()) {
            long[] failure = new long[1];
            call.check(Raw.estimator_save(use.of(this), directory, call.token(), failure), failure);
        }
    }

    /** Writes a checkpoint of the present weights.
     *
     * @param directory gets it as checkpoint-STEP
     */
    public void save(Path directory) {
        save(PathText.of(directory));
    }

    /** The number of completed steps, also while another thread trains.
     *
     * @return the step
     */
    public long globalStep() {
        try (Use use = new Use()) {
            return Raw.estimator_get_global_step(use.of(this));
        }
    }

    /** Weights, running statistics and, as "variable/slot", the slots of the optimizer.
     *
     * @return their names
     */
    public synchronized List<String> variableNames() {
        try (Use use = new Use()) {
            long number = use.of(this);
            List<String> names = new ArrayList<>();
            for (long i = 0; i < Raw.estimator_get_variable_count(number); i++) {
                names.add(Raw.estimator_get_variable_name(number, i));
            }
            return names;
        }
    }

    /** The variables that the optimizer changes, in the order in which the model makes them: not running statistics,
     * slots, and what is frozen.
     *
     * @return their names; none before the model was built for training, as {@link #initialize(Dataset)} does
     */
    public List<String> trainableNames() {
        try (Use use = new Use()) {
            long number = use.of(this);
            List<String> names = new ArrayList<>();
            for (long i = 0; i < Raw.estimator_get_trainable_count(number); i++) {
                names.add(Raw.estimator_get_trainable_name(number, i));
            }
            return names;
        }
    }

    /** A copy of a variable's value.
     *
     * @param name which one
     * @return the value
     */
    public Tensor readVariable(String name) {
        try (Use use = new Use()) {
            long[] out = new long[1];
            long[] failure = new long[1];
            TuttiException.check(Raw.estimator_read_variable(use.of(this), name, out, failure), failure);
            return Tensor.wrap(out[0]);
        }
    }

    /** A copy of the last step's gradient for a variable; it needs the option keepGradients.
     *
     * @param variable which one
     * @return the gradient
     */
    public Tensor readGradient(String variable) {
        try (Use use = new Use()) {
            long[] out = new long[1];
            long[] failure = new long[1];
            TuttiException.check(Raw.estimator_read_gradient(use.of(this), variable, out, failure), failure);
            return Tensor.wrap(out[0]);
        }
    }

    /** What the model set as an output in mode TRAIN, for each row of the last step: a copy of the rows of all replicas
     * of this process, in the order of the batch. They were computed with the weights before the step. It needs the
     * option keepOutputs.
     *
     * @param name which one
     * @return a row for each row
     */
    public Tensor readOutput(String name) {
        try (Use use = new Use()) {
            long[] out = new long[1];
            long[] failure = new long[1];
            TuttiException.check(Raw.estimator_read_output(use.of(this), name, out, failure), failure);
            return Tensor.wrap(out[0]);
        }
    }

    /** What training will take of the devices' memory; nothing is trained.
     *
     * @param dataset what would be trained on
     * @param batchSize rows of a batch; 0 = the dataset's
     * @return the estimate
     */
    public synchronized MemoryEstimate estimateMemory(Dataset dataset, long batchSize) {
        try (Use use = new Use()) {
            long[] failure = new long[1];
            String text = Raw.estimator_estimate_memory(use.of(this), use.of(dataset), batchSize, failure);
            if (failure[0] != 0) {
                TuttiException.check(Raw.error_get_code(failure[0]), failure);
            }
            return MemoryEstimate.of(text);
        }
    }

    /** The largest batch size that fits by that estimate.
     *
     * @param dataset what would be trained on
     * @param most the largest that is tried
     * @return from 1 to most
     */
    public long findBatchSize(Dataset dataset, long most) {
        try (Use use = new Use()) {
            long[] failure = new long[1];
            long rows = Raw.estimator_find_batch_size(use.of(this), use.of(dataset), most, failure);
            if (failure[0] != 0) {
                TuttiException.check(Raw.error_get_code(failure[0]), failure);
            }
            return rows;
        }
    }

    /** Sets a variable. Training goes on with it from the next step.
     *
     * @param name which one
     * @param value its value, of the same type and shape
     */
    public void writeVariable(String name, Tensor value) {
        try (Use use = new Use()) {
            long[] failure = new long[1];
            TuttiException.check(Raw.estimator_write_variable(use.of(this), name, use.of(value), failure), failure);
        }
    }

    /** Freezes or frees variables. Before the first training.
     *
     * @param pattern names, with * and ?
     * @param trainable whether the optimizer changes them
     */
    public void setTrainable(String pattern, boolean trainable) {
        try (Use use = new Use()) {
            long[] failure = new long[1];
            TuttiException.check(Raw.estimator_set_trainable(use.of(this), pattern, trainable, failure), failure);
        }
    }

    /** A predictor of the present weights, on the estimator's strategy.
     *
     * @return the predictor
     */
    public Predictor predictor() {
        return predictor(new PredictorOptions());
    }

    /** A predictor of the present weights, on the estimator's strategy.
     *
     * @param options how it predicts
     * @return the predictor
     */
    public Predictor predictor(PredictorOptions options) {
        try (Use use = new Use(); Options.Native o = new Options.Native(options)) {
            long[] out = new long[1];
            long[] failure = new long[1];
            TuttiException.check(Raw.predictor_from_estimator(use.of(this), o.number, out, failure), failure);
            return new Predictor(out[0]);
        }
    }
}
