// SPDX-License-Identifier: Apache-2.0
package org.tutti;

import java.util.List;

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
