// SPDX-License-Identifier: Apache-2.0
package org.tutti;

import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.function.BiFunction;
import java.util.function.Function;
import java.util.function.Supplier;
import java.util.function.UnaryOperator;

/**
 * Where a model function writes the model, for the global batch: how many replicas share it is not its business. It is
 * valid during the function, on its thread.
 */
public final class Graph extends GraphLayers {
    /** In a shape: the number of rows of the batch. */
    public static final long DIM_BATCH = Raw.DIM_BATCH;

    Graph(long number) {
        super(number);
    }

    /** A component of the dataset, with the batch as first dimension.
     *
     * @param name its name
     * @return its value
     */
    public Value feature(String name) {
        return new Value(Raw.graph_get_feature(number(), name));
    }

    /** A label of the dataset.
     *
     * @param name its name
     * @return its value
     */
    public Value label(String name) {
        return new Value(Raw.graph_get_label(number(), name));
    }

    /** A component of weights, one per example.
     *
     * @param name its name
     * @return its value; none when the dataset has no such, and when predicting
     */
    public Value sampleWeight(String name) {
        return new Value(Raw.graph_get_sample_weight(number(), name));
    }

    /** What the model is built for.
     *
     * @return the mode
     */
    public Mode mode() {
        return Mode.of(Raw.graph_get_mode(number()));
    }

    /** The run option params of the estimator whose model this is.
     *
     * @return the text
     */
    public String params() {
        return Raw.graph_get_params(number());
    }

    /** Names a prediction: what predict gives for each row.
     *
     * @param name its name
     * @param value its value
     */
    public void output(String name, Value value) {
        Raw.graph_set_output(number(), name, value.id());
    }

    /** Says what is to be made small.
     *
     * @param loss a scalar
     */
    public void loss(Value loss) {
        Raw.graph_set_loss(number(), loss.id());
    }

    /** Names a scalar that train and evaluate report, exact over all examples.
     *
     * @param name its name
     * @param value its value
     */
    public void metric(String name, Value value) {
        Raw.graph_add_metric(number(), name, value.id());
    }

    /** Names the classes of a metric that is a tensor and was added before: its elements become metrics, too. Of shape
     * [classes] they are called "recall/cat" and so on, of [classes, classes] "confusion/cat/dog" for the row cat and
     * the column dog.
     *
     * @param metric its name
     * @param classes a name for each
     */
    public void nameClasses(String metric, String... classes) {
        Raw.graph_name_classes(number(), metric, Text.list(List.of(classes)), classes.length);
    }

    /** Shows a number in TensorBoard, at the steps of the run option {@code saveSummarySteps} and for each evaluation.
     * Names of summaries may have "/" between groups, and differ from those of metrics. In mode PREDICT there are no
     * summaries.
     *
     * @param name its name
     * @param value its value
     */
    public void summaryScalar(String name, Value value) {
        Raw.summary_scalar(number(), name, value.id());
    }

    /** Shows how the elements of a value are distributed, over all rows of the batch or evaluation.
     *
     * @param name its name
     * @param value its value
     */
    public void summaryHistogram(String name, Value value) {
        Raw.summary_histogram(number(), name, value.id());
    }

    /** Shows images [images, height, width, channels] of bytes, or of floating point numbers from 0 to 1.
     *
     * @param name their name
     * @param images their values
     * @param most the first ones that are shown; 0 = 3
     */
    public void summaryImage(String name, Value images, long most) {
        Raw.summary_image(number(), name, images.id(), most);
    }

    /** Shows a text.
     *
     * @param name its name
     * @param text in Markdown
     */
    public void summaryText(String name, String text) {
        Raw.summary_text(number(), name, text);
    }

    /** Limits the global norm of all gradients before the update.
     *
     * @param norm the largest norm
     */
    public void gradientClipNorm(double norm) {
        Raw.graph_set_gradient_clip_norm(number(), norm);
    }

    /** Calls everything that a function adds "name/...".
     *
     * @param name the scope
     * @param build the function
     */
    public void scope(String name, Runnable build) {
        Raw.graph_push_scope(number(), name);
        try {
            build.run();
        } finally {
            Raw.graph_pop_scope(number());
        }
    }

    /** A scalar constant.
     *
     * @param dtype its type
     * @param value its value
     * @return the constant
     */
    public Value constant(DType dtype, double value) {
        return new Value(Raw.graph_constant(number(), dtype.number(), value));
    }

    /** A constant with a tensor's contents.
     *
     * @param tensor the contents, which are shared
     * @return the constant
     */
    public Value constant(Tensor tensor) {
        try (Use use = new Use()) {
            return new Value(Raw.graph_constant_tensor(number(), use.of(tensor)));
        }
    }

    /** A scalar that {@link Session#setScalar} changes while training.
     *
     * @param name its name
     * @param initial its first value
     * @return the scalar
     */
    public Value hostScalar(String name, double initial) {
        return new Value(Raw.graph_host_scalar(number(), name, initial));
    }

    /** A variable of zeros that the optimizer changes.
     *
     * @param name is put behind the scope; reusing one is an error
     * @param dtype its type
     * @param dims its shape
     * @return the variable
     */
    public Value variable(String name, DType dtype, long... dims) {
        return variable(name, dtype, dims, new VariableOptions());
    }

    /** A variable.
     *
     * @param name is put behind the scope; reusing one is an error
     * @param dtype its type
     * @param dims its shape
     * @param options how it begins, and whether the optimizer changes it
     * @return the variable
     */
    public Value variable(String name, DType dtype, long[] dims, VariableOptions options) {
        return new Value(Raw.graph_variable(number(), name, dtype.number(), dims, options.initializer,
            options.parameter, options.trainable));
    }

    /** Says which values a variable made before begins with, in place of its initializer.
     *
     * @param variable its full name, with scopes, so that it may be one of a layer, such as dense/kernel
     * @param value the values, of its type and shape
     */
    public void initialValue(String variable, Tensor value) {
        try (Use use = new Use()) {
            Raw.graph_set_initial_value(number(), variable, use.of(value));
        }
    }

    /** Adds a saved model as a part of this one, such as for training it on: its only output, or the only one of
     * floating point, as a checkpoint predicts it. It is computed from features of the graph with the names and shapes
     * of the saved ones. Its variables are those of the checkpoint, in the scope model, model_1 and so on, as in
     * model/dense/kernel; they begin with the saved weights. Of layers there is what they do in predictions: no
     * dropout, and batch normalization by its averages, which stay. The checkpoint is read each time a graph is built,
     * to evaluate and to resume, too, so it has to stay.
     *
     * @param path a checkpoint, or a directory of them, whose newest one is meant
     * @return the output
     */
    public Value addSavedModel(Path path) {
        return addSavedModel(path, "");
    }

    /** The same with one of several outputs.
     *
     * @param path a checkpoint, or a directory of them, whose newest one is meant
     * @param output the name of the output
     * @return the output
     */
    public Value addSavedModel(Path path, String output) {
        return new Value(Raw.graph_add_saved_model(number(), PathText.of(path), "", 0, output));
    }

    /** The same with a value in the place of a feature.
     *
     * @param path a checkpoint, or a directory of them, whose newest one is meant
     * @param output the name of the output
     * @param input what stands for a feature of the saved model
     * @param feature which one; "" for the only one
     * @return the output
     */
    public Value addSavedModel(Path path, String output, Value input, String feature) {
        return new Value(Raw.graph_add_saved_model(number(), PathText.of(path), feature, input.id(), output));
    }

    /** Says what a variable's next value is, stored when the step is complete.
     *
     * @param variable the variable
     * @param value its next value
     */
    public void assign(Value variable, Value value) {
        Raw.graph_assign(number(), variable.id(), value.id());
    }

    /** The gradients of a value.
     *
     * @param target a scalar
     * @param of what it depends on
     * @return d(target)/d(of) for each; invalid where there is no path
     */
    public List<Value> gradients(Value target, List<Value> of) {
        long[] out = new long[of.size()];
        Raw.gradients(number(), target.id(), Value.ids(inputs(of)), out);
        return List.of(Value.of(out));
    }

    /** Gives the optimizer these gradients in place of those of the loss.
     *
     * @param variables what is trained
     * @param gradients one for each variable, and shaped like it
     */
    public void applyGradients(List<Value> variables, List<Value> gradients) {
        if (variables.size() != gradients.size()) {
            throw TuttiException.ofTutti(Code.INVALID_ARGUMENT, "there must be one gradient for each variable");
        }
        Raw.apply_gradients(number(), Value.ids(inputs(variables)), Value.ids(inputs(gradients)));
    }

    /** The number of completed steps.
     *
     * @return a FLOAT32 scalar, 0 in the first step; a learning rate may be computed from it
     */
    public Value completedSteps() {
        return new Value(Raw.graph_get_completed_steps(number()));
    }

    /** A loop over the first axis of the sequences; see the other form.
     *
     * @param states what the first element meets
     * @param sequences what is walked over
     * @param body from the states and one element of each sequence to the next states and elements of what is stacked
     * @return the last states, and what is stacked
     */
    public Scanned scan(List<Value> states, List<Value> sequences, BiFunction<List<Value>, List<Value>, Scanned> body) {
        return scan(states, sequences, 0, false, body);
    }

    /** A loop over an axis of the sequences, all of which have the same length there, which only the data may tell.
     *
     * @param states what the first element meets
     * @param sequences what is walked over
     * @param axis of the sequences and of what is stacked
     * @param reverse from the last index to the first
     * @param body from the states and one element of each sequence, without the axis, to the next states and elements
     *     of what is stacked; called once, to write the graph, and free to use values from outside
     * @return the last states, and what is stacked
     */
    public Scanned scan(List<Value> states, List<Value> sequences, long axis, boolean reverse,
        BiFunction<List<Value>, List<Value>, Scanned> body) {
        List<Value> inputs = new ArrayList<>(states);
        inputs.addAll(sequences);
        beginRegions("scan", inputs);
        Raw.graph_set_i64(number(), "states", states.size());
        Raw.graph_set_i64(number(), "sequences", sequences.size());
        Raw.graph_set_i64(number(), "axis", axis);
        Raw.graph_set_bool(number(), "reverse", reverse);
        List<Value> parameters = beginRegion(inputs.size());
        Scanned step = body.apply(parameters.subList(0, states.size()),
            parameters.subList(states.size(), inputs.size()));
        List<Value> results = new ArrayList<>(step.states());
        results.addAll(step.results());
        endRegion(results);
        List<Value> outputs = endRegions(results.size());
        return new Scanned(outputs.subList(0, step.states().size()),
            outputs.subList(step.states().size(), outputs.size()));
    }

    /** A choice. Both functions are called once, and give values of the same types and shapes.
     *
     * @param predicate a boolean scalar
     * @param then writes what runs if it is true
     * @param otherwise writes what runs if it is not
     * @return the results of what runs
     */
    public List<Value> cond(Value predicate, Supplier<List<Value>> then, Supplier<List<Value>> otherwise) {
        beginRegions("cond", List.of(predicate));
        beginRegion(0);
        List<Value> results = then.get();
        endRegion(results);
        beginRegion(0);
        endRegion(otherwise.get());
        return endRegions(results.size());
    }

    /** A part of the model that the backward pass computes again, so that its values need no memory in between.
     *
     * @param inputs what it gets
     * @param body writes it
     * @return its results
     */
    public List<Value> call(List<Value> inputs, UnaryOperator<List<Value>> body) {
        beginRegions("call", inputs);
        List<Value> results = body.apply(beginRegion(inputs.size()));
        endRegion(results);
        return endRegions(results.size());
    }

    /** Gradients of one's own.
     *
     * @param inputs from which a function goes
     * @param outputs to which it goes
     * @param gradients of the outputs
     */
    public record Backward(List<Value> inputs, List<Value> outputs, List<Value> gradients) {}

    /** A function with a gradient of its own. The functions use nothing but what they get.
     *
     * @param inputs what it gets
     * @param forward writes the function
     * @param backward writes its gradient: one value for each input, and shaped like it
     * @return its results
     */
    public List<Value> customGradient(List<Value> inputs, UnaryOperator<List<Value>> forward,
        Function<Backward, List<Value>> backward) {
        beginRegions("custom_gradient", inputs);
        List<Value> results = forward.apply(beginRegion(inputs.size()));
        endRegion(results);
        int n = inputs.size();
        int m = results.size();
        List<Value> all = beginRegion(n + 2 * m);
        Backward given = new Backward(all.subList(0, n), all.subList(n, n + m), all.subList(n + m, n + 2 * m));
        endRegion(backward.apply(given));
        return endRegions(m);
    }

    /** An optimizer of one's own, which keeps nothing from update to update; see the other form.
     *
     * @param learningRate a schedule, or any scalar computed from schedules, constants and host scalars
     * @param rule from what a variable has to its new weight
     */
    public void updateRule(Value learningRate, Function<VariableUpdate, UpdatedVariable> rule) {
        updateRule(learningRate, new UpdateRuleOptions(), rule);
    }

    /** An optimizer of one's own.
     *
     * @param learningRate a schedule, or any scalar computed from schedules, constants and host scalars
     * @param options the slots, and what else an optimizer may be told
     * @param rule from what a variable has to its new weight and slots; called once, to write the graph for all
     *     variables of the type, whatever their shapes, and free to use values from outside that are computed from
     *     constants, schedules and host scalars
     */
    public void updateRule(Value learningRate, UpdateRuleOptions options,
        Function<VariableUpdate, UpdatedVariable> rule) {
        beginRegions("update_rule", List.of(learningRate));
        Attributes.fill(options, new Setter(number()));
        int fixed = 5;
        List<Value> given = beginRegion(fixed + options.slots());
        UpdatedVariable updated = rule.apply(new VariableUpdate(given.get(0), given.get(1), given.get(2), given.get(3),
            given.get(4), given.subList(fixed, given.size())));
        List<Value> results = new ArrayList<>(List.of(updated.weight()));
        results.addAll(updated.slots());
        endRegion(results);
        endRegions(0);
    }

    private void beginRegions(String op, List<Value> values) {
        Raw.graph_begin(number(), op, 1);
        for (Value value : values) {
            Raw.graph_add_input(number(), value.id());
        }
    }

    private List<Value> beginRegion(int count) {
        long[] parameters = new long[count];
        Raw.graph_begin_region(number(), parameters);
        return List.of(Value.of(parameters));
    }

    private void endRegion(List<Value> results) {
        Raw.graph_end_region(number(), Value.ids(inputs(results)));
    }

    private List<Value> endRegions(int count) {
        long[] more = new long[Math.max(count, 1) - 1];
        long[] all = new long[more.length + 1];
        all[0] = Raw.graph_end(number(), more);
        System.arraycopy(more, 0, all, 1, more.length);
        return List.of(Value.of(all)).subList(0, count);
    }

    /** A value's type.
     *
     * @param value the value
     * @return its type; null for an invalid value
     */
    public @Nullable DType dtype(Value value) {
        return DType.of(Raw.graph_get_dtype(number(), value.id()));
    }

    /** A value's shape, as far as known.
     *
     * @param value the value
     * @return its sizes, where -1 stands for the batch or another unknown size; null for an invalid value
     */
    public long @Nullable [] dims(Value value) {
        long rank = Raw.graph_get_rank(number(), value.id());
        if (rank < 0) {
            return null;
        }
        long[] dims = new long[(int) rank];
        for (int axis = 0; axis < rank; axis++) {
            dims[axis] = Raw.graph_get_dim(number(), value.id(), axis);
        }
        return dims;
    }

    /** Throws the first error so far, if there is one. */
    public void check() {
        long[] failure = new long[1];
        TuttiException.check(Raw.graph_check(number(), failure), failure);
    }
}
