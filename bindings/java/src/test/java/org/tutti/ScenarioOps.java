// SPDX-License-Identifier: Apache-2.0
package org.tutti;

import java.util.List;

/** Each op that no other model uses as a metric, a tenth of their sum as the loss (tests/bindings/scenarios.txt). */
final class ScenarioOps implements ModelFunction {
    /** What reports the ops of one graph and adds them up. */
    private static final class Sum {
        private final Graph g;
        private Value value;

        Sum(Graph g) {
            this.g = g;
            value = g.constant(DType.FLOAT32, 0);
        }

        void report(String name, Value result) {
            Value mean = g.reduceMean(g.cast(result, DType.FLOAT32));
            g.metric(name, mean);
            value = g.add(value, mean);
        }

        /** What is certain of so many values that are kept or dropped: the largest less the smallest. */
        void range(String name, Value result) {
            Value highest = g.reduceMax(result, new ReduceMaxOptions().axes(1));
            report(name, g.sub(highest, g.reduceMin(result, new ReduceMinOptions().axes(1))));
        }
    }

    @Override
    public void build(Graph g, Mode mode) {
        Value x = g.feature("x");
        Value shift = g.variable("shift", DType.FLOAT32, new long[] {3}, new VariableOptions().initializer("ones"));
        Value four = g.constant(DType.FLOAT32, 4);
        Value z = g.add(g.sub(g.mul(x, four), g.constant(DType.FLOAT32, 3)), shift);
        g.output("z", z);
        if (mode != Mode.PREDICT) {
            Value y = g.label("y");
            Sum sum = new Sum(g);
            curves(g, z, sum);
            pairs(g, x, z, sum);
            answers(g, z, sum);
            extremes(g, z, shift, sum);
            shapes(g, x, z, sum);
            pixels(g, x, z, shift, sum);
            if (mode == Mode.TRAIN) {
                batchNorm(g, x, z, shift, sum);
            }
            norms(g, x, z, shift, sum);
            attention(g, x, z, sum);
            entropies(g, x, y, z, sum);
            draws(g, sum);
            g.loss(g.mul(sum.value, g.constant(DType.FLOAT32, 0.1)));
            g.optimizerSgd(g.scheduleConstant(0.1));
        }
    }

    /** x and z, one after the other, [rows, 6]. */
    private static Value both(Graph g, Value x, Value z) {
        return g.concat(List.of(x, z), new ConcatOptions().axis(1));
    }

    private static void curves(Graph g, Value z, Sum sum) {
        Value power = g.exp(z);
        sum.report("identity", g.identity(z));
        sum.report("stop_gradient", g.mul(z, g.stopGradient(z)));
        sum.report("abs", g.abs(z));
        sum.report("sign", g.sign(z));
        sum.report("log1p", g.log1p(power));
        sum.report("expm1", g.expm1(z));
        sum.report("sqrt", g.sqrt(power));
        sum.report("sin", g.sin(z));
        sum.report("cos", g.cos(z));
        sum.report("gelu", g.gelu(z));
        sum.report("silu", g.silu(z));
        sum.report("softplus", g.softplus(z));
        sum.report("elu", g.elu(z, new EluOptions().alpha(0.5)));
        sum.report("leaky_relu", g.leakyRelu(z, new LeakyReluOptions().alpha(0.25)));
        sum.report("floor", g.floor(z));
        sum.report("ceil", g.ceil(z));
        sum.report("round", g.round(z));
        sum.report("erf", g.erf(z));
    }

    private static void pairs(Graph g, Value x, Value z, Sum sum) {
        Value above = g.add(x, g.constant(DType.FLOAT32, 1));
        sum.report("pow", g.pow(above, z));
        sum.report("maximum", g.maximum(z, x));
        sum.report("select", g.select(g.greater(z, g.constant(DType.FLOAT32, 0)), z, x));
        sum.report("mod", g.mod(z, above));
        sum.report("floor_divide", g.floorDivide(z, above));
    }

    private static void answers(Graph g, Value z, Sum sum) {
        Value floor = g.floor(z);
        Value nearest = g.round(z);
        Value ceiling = g.ceil(z);
        Value isPositive = g.greater(z, g.constant(DType.FLOAT32, 0));
        Value isDown = g.equal(nearest, floor);
        sum.report("is_finite", g.isFinite(g.log(z)));
        sum.report("logical_not", g.logicalNot(isPositive));
        sum.report("logical_and", g.logicalAnd(isPositive, isDown));
        sum.report("logical_or", g.logicalOr(isPositive, isDown));
        sum.report("logical_xor", g.logicalXor(isPositive, isDown));
        sum.report("equal", isDown);
        sum.report("not_equal", g.notEqual(nearest, ceiling));
        sum.report("less_equal", g.lessEqual(ceiling, nearest));
        sum.report("greater_equal", g.greaterEqual(floor, nearest));
    }

    private static void extremes(Graph g, Value z, Value shift, Sum sum) {
        sum.report("reduce_min", g.reduceMin(z, new ReduceMinOptions().axes(1)));
        sum.report("reduce_prod", g.reduceProd(z, new ReduceProdOptions().axes(1)));
        sum.report("argmin", g.argmin(z));
        Value good = g.allFinite(shift);
        Value bad = g.allFinite(g.log(g.neg(shift)));
        sum.report("all_finite", g.sub(g.cast(good, DType.FLOAT32), g.cast(bad, DType.FLOAT32)));
    }

    private static void shapes(Graph g, Value x, Value z, Sum sum) {
        Value rows = g.reshape(both(g, x, z), new long[] {Graph.DIM_BATCH, 2, 3});
        IotaOptions rising = new IotaOptions().dtype(DType.FLOAT32);
        Value turned = g.transpose(rows, new TransposeOptions().permutation(0, 2, 1));
        sum.report("transpose", g.mul(turned, g.iota(new long[] {2}, rising)));
        Value column = g.reshape(z, new long[] {Graph.DIM_BATCH, 3, 1});
        Value spread = g.broadcastTo(column, new long[] {Graph.DIM_BATCH, 3, 2});
        sum.report("broadcast_to", g.mul(spread, g.iota(new long[] {3, 2}, rising)));
        sum.report("gather", g.gather(z, g.iota(new long[] {2}), new GatherOptions().axis(1)));
        Value padded = g.pad(z, new long[] {0, 1}, new long[] {0, 2}, new PadOptions().value(0.5));
        sum.report("pad", g.mul(padded, g.iota(new long[] {6}, rising)));
    }

    private static void pixels(Graph g, Value x, Value z, Value shift, Sum sum) {
        Value image = g.reshape(both(g, x, z), new long[] {Graph.DIM_BATCH, 2, 3, 1});
        Value kernel = g.reshape(shift, new long[] {1, 3, 1, 1});
        sum.report("conv2d", g.conv2d(image, kernel, new Conv2dOptions().dilation(1, 2)));
        sum.report("max_pool2d", g.maxPool2d(image, new long[] {2, 2}, new MaxPool2dOptions().stride(1, 1)));
        sum.report("avg_pool2d", g.avgPool2d(image, new long[] {2, 2}, new AvgPool2dOptions().padding(Padding.SAME)));
    }

    /** Over the rows of the batch, and so only for training. */
    private static void batchNorm(Graph g, Value x, Value z, Value shift, Sum sum) {
        Value half = g.mul(shift, g.constant(DType.FLOAT32, 0.5));
        Value normal = g.batchNormTraining(z, shift, half, new BatchNormTrainingOptions().epsilon(0.1)).y();
        sum.report("batch_norm_training", g.mul(normal, x));
    }

    private static void norms(Graph g, Value x, Value z, Value shift, Sum sum) {
        Value half = g.mul(shift, g.constant(DType.FLOAT32, 0.5));
        sum.report("batch_norm_inference", g.batchNormInference(z, shift, half, shift, g.exp(half)));
        Value normal = g.layerNorm(z, shift, half).y();
        sum.report("layer_norm", g.mul(normal, x));
        normal = g.rmsNorm(z, shift, new RmsNormOptions().epsilon(0.1)).y();
        sum.report("rms_norm", normal);
        Value sequence = g.reshape(both(g, x, z), new long[] {Graph.DIM_BATCH, 2, 3});
        normal = g.groupNorm(sequence, shift, half, 3).y();
        sum.report("group_norm", g.mul(normal, sequence));
    }

    private static void attention(Graph g, Value x, Value z, Sum sum) {
        long[] dims = {Graph.DIM_BATCH, 3, 1, 1};
        Value queries = g.reshape(z, dims);
        Value keys = g.reshape(x, dims);
        Value seen = g.attention(queries, keys, queries, new AttentionOptions().causal(true).scale(0.5)).y();
        sum.report("attention", seen);
    }

    private static void entropies(Graph g, Value x, Value y, Value z, Sum sum) {
        Value hot = g.oneHot(y, 3);
        SparseSoftmaxCrossEntropyOptions smooth = new SparseSoftmaxCrossEntropyOptions().labelSmoothing(0.1);
        sum.report("log_softmax", g.mul(g.logSoftmax(z), x));
        sum.report("sparse_softmax_cross_entropy", g.sparseSoftmaxCrossEntropy(z, y, smooth));
        sum.report("softmax_cross_entropy", g.softmaxCrossEntropy(z, hot));
        sum.report("sigmoid_cross_entropy", g.sigmoidCrossEntropy(z, hot));
        sum.report("in_top_k", g.inTopK(z, y, new InTopKOptions().k(2)));
    }

    /** Of random numbers the whole number that all of them are next to. */
    private static void draws(Graph g, Sum sum) {
        Value one = g.constant(DType.FLOAT32, 1);
        long[] draws = {Graph.DIM_BATCH, 64};
        sum.range("dropout", g.dropout(g.broadcastTo(one, draws), 0.25));
        Value key = g.broadcastTo(one, new long[] {Graph.DIM_BATCH, 1, 1, 1});
        Value kept = g.dropoutAttention(g.broadcastTo(one, new long[] {Graph.DIM_BATCH, 64, 1, 1}), key, key, 0.25).y();
        sum.range("dropout_attention", kept);
        sum.report("random_uniform", g.floor(g.randomUniform(draws, new RandomUniformOptions().low(3).high(4))));
        sum.report("random_normal", g.round(g.randomNormal(draws, new RandomNormalOptions().mean(5).stddev(0.05))));
        RandomTruncatedNormalOptions within = new RandomTruncatedNormalOptions().mean(4).stddev(0.2);
        sum.report("random_truncated_normal", g.round(g.randomTruncatedNormal(draws, within)));
    }
}
