// SPDX-License-Identifier: Apache-2.0
namespace Tutti.Tests
{
    // Every metric under its name (tests/bindings/scenarios.txt).
    internal static class ScenarioMetrics
    {
        public static void Build(Graph g, Mode mode)
        {
            Value x = g.GetFeature("x");
            Value shift = g.Variable("shift", DType.Float32, new[] { 3L }, "ones");
            Value four = g.Constant(DType.Float32, 4), three = g.Constant(DType.Float32, 3);
            Value z = g.Add(g.Sub(g.Mul(x, four), three), shift);
            g.SetOutput("z", z);
            if (mode == Mode.Predict)
                return;
            Value y = g.GetLabel("y"), hot = g.OneHot(y, 3);
            Classes(g, z, y, hot);
            Numbers(g, z, y, hot);
            g.SetLoss(g.LossMeanSquaredError(z, hot));
            g.OptimizerSgd(g.ScheduleConstant(0.5));
        }

        private static void Classes(Graph g, Value z, Value y, Value hot)
        {
            g.MetricAccuracy("accuracy", z, y);
            g.MetricTopKAccuracy("top_k_accuracy", z, y, 2);
            var logits = new MetricBinaryAccuracyOptions { Threshold = 0.75, FromLogits = true };
            g.MetricBinaryAccuracy("binary_accuracy", z, hot, logits);
            g.MetricPrecision("precision", z, y, new MetricPrecisionOptions { Average = MetricPrecisionAverage.Macro });
            g.MetricRecall("recall", z, hot, new MetricRecallOptions { FromLogits = true });
            var weighted = new MetricFBetaOptions { Beta = 2, Average = MetricFBetaAverage.Weighted };
            g.MetricFBeta("f_beta", z, y, weighted);
            var each = new MetricSpecificityOptions { Average = MetricSpecificityAverage.None };
            g.MetricSpecificity("specificity", z, y, each);
            g.NameClasses("specificity", "low", "middle", "high");
            g.MetricBalancedAccuracy("balanced_accuracy", z, y, new MetricBalancedAccuracyOptions { Adjusted = true });
            g.MetricMatthewsCorrelation("matthews_correlation", z, y);
            g.MetricMeanIou("mean_iou", z, y);
            g.MetricConfusionMatrix("confusion_matrix", z, y);
            var thresholds = new MetricAucOptions { Thresholds = new[] { 0.25, 0.5, 0.75 }, FromLogits = true };
            g.MetricAuc("auc", z, hot, thresholds);
        }

        private static void Numbers(Graph g, Value z, Value y, Value hot)
        {
            g.MetricMean("mean", z);
            g.MetricMeanSquaredError("mean_squared_error", z, hot);
            g.MetricRootMeanSquaredError("root_mean_squared_error", z, hot);
            g.MetricMeanAbsoluteError("mean_absolute_error", z, hot);
            var half = new MetricMeanAbsolutePercentageErrorOptions { Epsilon = 0.5 };
            g.MetricMeanAbsolutePercentageError("mean_absolute_percentage_error", z, hot, half);
            g.MetricRSquared("r_squared", z, hot);
            g.MetricLogLoss("log_loss", z, y, new MetricLogLossOptions { FromLogits = true });
            g.MetricBinaryLogLoss("binary_log_loss", z, hot, new MetricBinaryLogLossOptions { FromLogits = true });
            g.MetricPerplexity("perplexity", z, y, new MetricPerplexityOptions { FromLogits = true });
            g.MetricCosineSimilarity("cosine_similarity", z, hot);
        }
    }
}
