// SPDX-License-Identifier: Apache-2.0
package org.tutti;

import java.util.List;

/** Every loss under its name as a metric, and their sum as the loss (tests/bindings/scenarios.txt). */
final class ScenarioLosses implements ModelFunction {
    private static final double[] BY_CLASS = {1, 2, 3};

    /** What reports the losses of one graph and adds them up. */
    private static final class Sum {
        private final Graph g;
        private Value value;

        Sum(Graph g, String name, Value first) {
            this.g = g;
            g.metric(name, first);
            value = first;
        }

        void report(String name, Value loss) {
            g.metric(name, loss);
            value = g.add(value, loss);
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
            Value hot = g.oneHot(y, 3);
            Sum sum = new Sum(g, "l2_penalty", g.lossL2Penalty(shift, 0.1));
            numbers(g, z, hot, sum);
            binary(g, z, hot, sum);
            classes(g, z, y, hot, sum);
            vectors(g, x, z, y, hot, sum);
            g.loss(sum.value);
            g.optimizerSgd(g.scheduleConstant(0.01));
        }
    }

    private static void numbers(Graph g, Value z, Value hot, Sum sum) {
        sum.report("mean_absolute_error", g.lossMeanAbsoluteError(z, hot));
        sum.report("mean_squared_error", g.lossMeanSquaredError(z, hot));
        LossHuberOptions each = new LossHuberOptions().delta(0.5).reduction(Reduction.NONE);
        sum.report("huber", g.reduceMean(g.lossHuber(z, hot, each)));
        sum.report("log_cosh", g.lossLogCosh(z, hot));
        sum.report("quantile", g.lossQuantile(z, hot, 0.25));
        sum.report("poisson", g.lossPoisson(z, hot, new LossPoissonOptions().logPredictions(true)));
    }

    private static void binary(Graph g, Value z, Value hot, Sum sum) {
        Value q = g.sigmoid(z);
        LossBinaryCrossEntropyOptions smooth = new LossBinaryCrossEntropyOptions().labelSmoothing(0.1);
        sum.report("binary_cross_entropy", g.lossBinaryCrossEntropy(q, hot, smooth));
        LossSigmoidCrossEntropyOptions positive = new LossSigmoidCrossEntropyOptions().positiveWeights(2, 1, 0.5);
        sum.report("sigmoid_cross_entropy", g.lossSigmoidCrossEntropy(z, hot, positive));
        sum.report("sigmoid_focal", g.lossSigmoidFocal(z, hot, new LossSigmoidFocalOptions().alpha(0.25)));
        sum.report("hinge", g.lossHinge(z, hot, new LossHingeOptions().margin(0.5)));
        LossSquaredHingeOptions weighted = new LossSquaredHingeOptions().classWeights(0.5, 2);
        sum.report("squared_hinge", g.lossSquaredHinge(z, hot, weighted));
        sum.report("dice", g.lossDice(q, hot, new LossDiceOptions().smooth(1)));
    }

    private static void classes(Graph g, Value z, Value y, Value hot, Sum sum) {
        Value p = g.softmax(z);
        LossCategoricalCrossEntropyOptions weighted = new LossCategoricalCrossEntropyOptions().classWeights(BY_CLASS);
        sum.report("categorical_cross_entropy", g.lossCategoricalCrossEntropy(p, hot, weighted));
        sum.report("sparse_categorical_cross_entropy", g.lossSparseCategoricalCrossEntropy(p, y));
        LossSoftmaxCrossEntropyOptions dense =
            new LossSoftmaxCrossEntropyOptions().classWeights(BY_CLASS).reduction(Reduction.WEIGHTED_MEAN);
        sum.report("softmax_cross_entropy", g.lossSoftmaxCrossEntropy(z, hot, dense));
        LossSparseSoftmaxCrossEntropyOptions smooth = new LossSparseSoftmaxCrossEntropyOptions().labelSmoothing(0.1);
        sum.report("sparse_softmax_cross_entropy", g.lossSparseSoftmaxCrossEntropy(z, y, smooth));
        sum.report("softmax_focal", g.lossSoftmaxFocal(z, hot, new LossSoftmaxFocalOptions().gamma(0.5)));
        sum.report("sparse_softmax_focal", g.lossSparseSoftmaxFocal(z, y));
        sum.report("categorical_hinge", g.lossCategoricalHinge(z, hot));
        sum.report("multi_margin", g.lossMultiMargin(z, y, new LossMultiMarginOptions().squared(true)));
    }

    private static void vectors(Graph g, Value x, Value z, Value y, Value hot, Sum sum) {
        Value r = g.softmax(x);
        LossKullbackLeiblerOptions logits = new LossKullbackLeiblerOptions().form(LossKullbackLeiblerForm.LOGITS);
        sum.report("kullback_leibler", g.lossKullbackLeibler(z, r, logits));
        sum.report("cosine_similarity", g.lossCosineSimilarity(z, hot));
        Value similar = g.minimum(g.cast(y, DType.FLOAT32), g.constant(DType.FLOAT32, 1));
        sum.report("contrastive", g.lossContrastive(z, x, similar, new LossContrastiveOptions().margin(3)));
        sum.report("triplet", g.lossTriplet(z, x, r, new LossTripletOptions().margin(0.2).swap(true)));
        // Two frames, the label 1 where y is not 0, which has no frame and no label.
        Value both = g.concat(List.of(z, x), new ConcatOptions().axis(1));
        Value frames = g.reshape(both, new long[] {Graph.DIM_BATCH, 2, 3});
        Value count = g.cast(similar, DType.INT32);
        LossCtcOptions last = new LossCtcOptions()
            .inputLengths(g.cast(g.add(similar, similar), DType.INT32)).labelLengths(count).blank(2);
        sum.report("ctc", g.lossCtc(frames, g.reshape(count, new long[] {Graph.DIM_BATCH, 1}), last));
    }
}
