// SPDX-License-Identifier: Apache-2.0
package org.tutti;

/** Every metric under its name (tests/bindings/scenarios.txt). */
final class ScenarioMetrics implements ModelFunction {
    @Override
    public void build(Graph g, Mode mode) {
        Value x = g.feature("x");
        Value shift = g.variable("shift", DType.FLOAT32, new long[] {3}, new VariableOptions().initializer("ones"));
        Value four = g.constant(DType.FLOAT32, 4);
        Value three = g.constant(DType.FLOAT32, 3);
        Value z = g.add(g.sub(g.mul(x, four), three), shift);
        g.output("z", z);
        if (mode != Mode.PREDICT) {
            Value y = g.label("y");
            Value hot = g.oneHot(y, 3);
            classes(g, z, y, hot);
            numbers(g, z, y, hot);
            g.loss(g.lossMeanSquaredError(z, hot));
            g.optimizerSgd(g.scheduleConstant(0.5));
        }
    }

    private static void classes(Graph g, Value z, Value y, Value hot) {
        g.metricAccuracy("accuracy", z, y);
        g.metricTopKAccuracy("top_k_accuracy", z, y, 2);
        MetricBinaryAccuracyOptions logits = new MetricBinaryAccuracyOptions().threshold(0.75).fromLogits(true);
        g.metricBinaryAccuracy("binary_accuracy", z, hot, logits);
        MetricPrecisionOptions macro = new MetricPrecisionOptions().average(MetricPrecisionAverage.MACRO);
        g.metricPrecision("precision", z, y, macro);
        g.metricRecall("recall", z, hot, new MetricRecallOptions().fromLogits(true));
        MetricFBetaOptions weighted = new MetricFBetaOptions().beta(2).average(MetricFBetaAverage.WEIGHTED);
        g.metricFBeta("f_beta", z, y, weighted);
        MetricSpecificityOptions each = new MetricSpecificityOptions().average(MetricSpecificityAverage.NONE);
        g.metricSpecificity("specificity", z, y, each);
        g.nameClasses("specificity", "low", "middle", "high");
        g.metricBalancedAccuracy("balanced_accuracy", z, y, new MetricBalancedAccuracyOptions().adjusted(true));
        g.metricMatthewsCorrelation("matthews_correlation", z, y);
        g.metricMeanIou("mean_iou", z, y);
        g.metricConfusionMatrix("confusion_matrix", z, y);
        MetricAucOptions thresholds = new MetricAucOptions().thresholds(0.25, 0.5, 0.75).fromLogits(true);
        g.metricAuc("auc", z, hot, thresholds);
    }

    private static void numbers(Graph g, Value z, Value y, Value hot) {
        g.metricMean("mean", z);
        g.metricMeanSquaredError("mean_squared_error", z, hot);
        g.metricRootMeanSquaredError("root_mean_squared_error", z, hot);
        g.metricMeanAbsoluteError("mean_absolute_error", z, hot);
        MetricMeanAbsolutePercentageErrorOptions half = new MetricMeanAbsolutePercentageErrorOptions().epsilon(0.5);
        g.metricMeanAbsolutePercentageError("mean_absolute_percentage_error", z, hot, half);
        g.metricRSquared("r_squared", z, hot);
        g.metricLogLoss("log_loss", z, y, new MetricLogLossOptions().fromLogits(true));
        g.metricBinaryLogLoss("binary_log_loss", z, hot, new MetricBinaryLogLossOptions().fromLogits(true));
        g.metricPerplexity("perplexity", z, y, new MetricPerplexityOptions().fromLogits(true));
        g.metricCosineSimilarity("cosine_similarity", z, hot);
    }
}
