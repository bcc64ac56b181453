// SPDX-License-Identifier: Apache-2.0
package org.tutti;

import java.util.List;

/** Every function of ops as a metric, and their sum as the loss (tests/bindings/scenarios.txt). */
final class ScenarioFunctions implements ModelFunction {
    private static final long[] LAST = {1};

    /** What reports the functions of one graph and adds them up. */
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
            activations(g, z, shift, sum);
            angles(g, x, z, sum);
            reductions(g, y, z, sum);
            places(g, x, z, sum);
            matrices(g, x, z, sum);
            rows(g, y, shift, sum);
            windows(g, z, shift, sum);
            images(g, z, shift, sum);
            g.loss(sum.value);
            g.optimizerSgd(g.scheduleConstant(0.01));
        }
    }

    private static void activations(Graph g, Value z, Value shift, Sum sum) {
        sum.report("clip", g.clip(z, -1, 1));
        sum.report("relu6", g.relu6(z));
        sum.report("selu", g.selu(z));
        sum.report("mish", g.mish(z));
        sum.report("hard_sigmoid", g.hardSigmoid(z));
        sum.report("hard_swish", g.hardSwish(z));
        sum.report("softsign", g.softsign(z));
        sum.report("log_sigmoid", g.logSigmoid(z));
        sum.report("prelu", g.prelu(z, shift));
        sum.report("is_nan", g.isNan(g.log(z)));
        sum.report("is_inf", g.isInf(g.reciprocal(g.relu(z))));
    }

    private static void angles(Graph g, Value x, Value z, Sum sum) {
        Value above = g.add(x, g.constant(DType.FLOAT32, 1));
        Value inner = g.tanh(z);
        sum.report("log2", g.log2(above));
        sum.report("log10", g.log10(above));
        sum.report("tan", g.tan(inner));
        sum.report("sinh", g.sinh(z));
        sum.report("cosh", g.cosh(z));
        sum.report("atan", g.atan(z));
        sum.report("atan2", g.atan2(z, x));
        sum.report("asin", g.asin(inner));
        sum.report("acos", g.acos(inner));
    }

    private static void reductions(Graph g, Value y, Value z, Sum sum) {
        Value isPositive = g.greater(z, g.constant(DType.FLOAT32, 0));
        sum.report("logsumexp", g.logsumexp(z, new LogsumexpOptions().axes(1)));
        sum.report("norm", g.norm(z, new NormOptions().axes(1).order(NormOrder.INFINITY)));
        sum.report("l2_normalize", g.l2Normalize(z));
        sum.report("reduce_any", g.reduceAny(isPositive, new ReduceAnyOptions().axes(1)));
        sum.report("reduce_all", g.reduceAll(isPositive, new ReduceAllOptions().axes(1).keepDims(true)));
        Value labels = g.reshape(y, new long[] {Graph.DIM_BATCH, 1});
        sum.report("bincount", g.bincount(labels, 2, new BincountOptions().byRow(true)));
    }

    private static void places(Graph g, Value x, Value z, Sum sum) {
        List<Value> pieces = g.split(z, 2, new GraphSplitOptions().axis(-1).sizes(1, 2));
        sum.report("split", g.mul(pieces.get(0), pieces.get(1)));
        List<Value> columns = g.unstack(z, 3, new UnstackOptions().axis(1));
        sum.report("unstack", g.mul(columns.get(0), columns.get(2)));
        Value both = g.stack(List.of(z, x), new StackOptions().axis(1));
        sum.report("stack", g.lowerTriangle(both, new LowerTriangleOptions().diagonal(-1)));
        sum.report("tile", g.cumsum(g.tile(z, new long[] {1, 2}), new CumsumOptions().axis(1)));
        sum.report("roll", g.mul(g.roll(z, LAST, LAST), x));
        sum.report("reverse", g.mul(g.reverse(z, LAST), x));
        sum.report("cumsum", g.cumsum(z, new CumsumOptions().axis(1).exclusive(true).backward(true)));
        sum.report("cumprod", g.cumprod(z, new CumprodOptions().axis(1)));
        sum.report("sort", g.mul(g.sort(z), x));
        Value order = g.argsort(z, new ArgsortOptions().descending(true));
        sum.report("argsort", g.mul(g.cast(order, DType.FLOAT32), x));
    }

    private static void matrices(Graph g, Value x, Value z, Sum sum) {
        Value outer = g.einsum(List.of(z, x), "bi,bj->bij");
        sum.report("einsum", g.einsum(List.of(outer, z), "bij,bj->bi"));
        sum.report("band_part", g.bandPart(outer, new BandPartOptions().lower(0).upper(1)));
        sum.report("lower_triangle", g.lowerTriangle(outer, new LowerTriangleOptions().diagonal(1)));
        sum.report("upper_triangle", g.upperTriangle(outer));
        sum.report("band_mask", g.bandMask(2, 3, new BandMaskOptions().upper(0)));
    }

    private static void rows(Graph g, Value y, Value shift, Sum sum) {
        sum.report("gather_nd", g.gatherNd(shift, g.reshape(y, new long[] {Graph.DIM_BATCH, 1})));
        Value rows = g.iota(new long[] {2}, new IotaOptions().dtype(DType.INT32));
        Value updates = g.split(shift, 2, new GraphSplitOptions().sizes(1, 2)).get(1);
        sum.report("scatter_add", g.scatterAdd(shift, rows, updates));
        Value longer = g.mul(shift, g.constant(DType.FLOAT32, 1.5));
        sum.report("scatter_max", g.scatterMax(longer, rows, g.cumsum(updates)));
        sum.report("scatter_replace", g.scatterReplace(shift, rows, g.exp(updates)));
    }

    private static void windows(Graph g, Value z, Value shift, Sum sum) {
        Value sequence = g.reshape(z, new long[] {Graph.DIM_BATCH, 3, 1});
        sum.report("conv1d", g.conv1d(sequence, g.reshape(shift, new long[] {3, 1, 1})));
        sum.report("max_pool1d", g.maxPool1d(sequence, 2, new MaxPool1dOptions().stride(1)));
        sum.report("avg_pool1d", g.avgPool1d(sequence, 2, new AvgPool1dOptions().padding(Padding.SAME)));
    }

    private static void images(Graph g, Value z, Value shift, Sum sum) {
        Value sequence = g.reshape(z, new long[] {Graph.DIM_BATCH, 3, 1});
        Value image = g.reshape(z, new long[] {Graph.DIM_BATCH, 1, 3, 1});
        Value volume = g.reshape(z, new long[] {Graph.DIM_BATCH, 3, 1, 1, 1});
        Conv1dTransposeOptions byTwo = new Conv1dTransposeOptions().stride(2);
        sum.report("conv1d_transpose", g.conv1dTranspose(sequence, g.reshape(shift, new long[] {3, 1, 1}), byTwo));
        Conv2dTransposeOptions wide = new Conv2dTransposeOptions().stride(1, 2).padding(Padding.VALID);
        sum.report("conv2d_transpose", g.conv2dTranspose(image, g.reshape(shift, new long[] {1, 3, 1, 1}), wide));
        Conv3dOptions inside = new Conv3dOptions().padding(Padding.VALID);
        Value deep = g.reshape(shift, new long[] {3, 1, 1, 1, 1});
        sum.report("conv3d", g.conv3d(volume, deep, inside));
        sum.report("conv3d_transpose", g.conv3dTranspose(volume, deep));
        MaxPool3dOptions byOne = new MaxPool3dOptions().stride(1, 1, 1);
        sum.report("max_pool3d", g.maxPool3d(volume, new long[] {2, 1, 1}, byOne));
        sum.report("avg_pool3d", g.avgPool3d(volume, new long[] {3, 1, 1}));
        sum.report("resize2d", g.resize2d(image, new long[] {1, 2}));
    }
}
