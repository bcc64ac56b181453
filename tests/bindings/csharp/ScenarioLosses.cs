// SPDX-License-Identifier: Apache-2.0
using System;

namespace Tutti.Tests
{
    // Every loss under its name as a metric, and their sum as the loss (tests/bindings/scenarios.txt).
    internal static class ScenarioLosses
    {
        private static readonly double[] ByClass = { 1, 2, 3 };

        public static void Build(Graph g, Mode mode)
        {
            Value x = g.GetFeature("x");
            Value shift = g.Variable("shift", DType.Float32, new[] { 3L }, "ones");
            Value four = g.Constant(DType.Float32, 4), three = g.Constant(DType.Float32, 3);
            Value z = g.Add(g.Sub(g.Mul(x, four), three), shift);
            g.SetOutput("z", z);
            if (mode == Mode.Predict)
                return;
            Value y = g.GetLabel("y"), hot = g.OneHot(y, 3), sum = g.LossL2Penalty(shift, 0.1);
            g.AddMetric("l2_penalty", sum);
            Action<string, Value> report = (name, loss) =>
            {
                g.AddMetric(name, loss);
                sum = g.Add(sum, loss);
            };
            Numbers(g, z, hot, report);
            Binary(g, z, hot, report);
            Classes(g, z, y, hot, report);
            Vectors(g, x, z, y, hot, report);
            g.SetLoss(sum);
            g.OptimizerSgd(g.ScheduleConstant(0.01));
        }

        private static void Numbers(Graph g, Value z, Value hot, Action<string, Value> report)
        {
            report("mean_absolute_error", g.LossMeanAbsoluteError(z, hot));
            report("mean_squared_error", g.LossMeanSquaredError(z, hot));
            var each = new LossHuberOptions { Delta = 0.5, Reduction = Reduction.None };
            report("huber", g.ReduceMean(g.LossHuber(z, hot, each)));
            report("log_cosh", g.LossLogCosh(z, hot));
            report("quantile", g.LossQuantile(z, hot, 0.25));
            report("poisson", g.LossPoisson(z, hot, new LossPoissonOptions { LogPredictions = true }));
        }

        private static void Binary(Graph g, Value z, Value hot, Action<string, Value> report)
        {
            Value q = g.Sigmoid(z);
            var smooth = new LossBinaryCrossEntropyOptions { LabelSmoothing = 0.1 };
            report("binary_cross_entropy", g.LossBinaryCrossEntropy(q, hot, smooth));
            var positive = new LossSigmoidCrossEntropyOptions { PositiveWeights = new[] { 2, 1, 0.5 } };
            report("sigmoid_cross_entropy", g.LossSigmoidCrossEntropy(z, hot, positive));
            report("sigmoid_focal", g.LossSigmoidFocal(z, hot, new LossSigmoidFocalOptions { Alpha = 0.25 }));
            report("hinge", g.LossHinge(z, hot, new LossHingeOptions { Margin = 0.5 }));
            var weighted = new LossSquaredHingeOptions { ClassWeights = new[] { 0.5, 2 } };
            report("squared_hinge", g.LossSquaredHinge(z, hot, weighted));
            report("dice", g.LossDice(q, hot, new LossDiceOptions { Smooth = 1 }));
        }

        private static void Classes(Graph g, Value z, Value y, Value hot, Action<string, Value> report)
        {
            Value p = g.Softmax(z);
            var weighted = new LossCategoricalCrossEntropyOptions { ClassWeights = ByClass };
            report("categorical_cross_entropy", g.LossCategoricalCrossEntropy(p, hot, weighted));
            report("sparse_categorical_cross_entropy", g.LossSparseCategoricalCrossEntropy(p, y));
            var dense = new LossSoftmaxCrossEntropyOptions { ClassWeights = ByClass };
            dense.Reduction = Reduction.WeightedMean;
            report("softmax_cross_entropy", g.LossSoftmaxCrossEntropy(z, hot, dense));
            var smooth = new LossSparseSoftmaxCrossEntropyOptions { LabelSmoothing = 0.1 };
            report("sparse_softmax_cross_entropy", g.LossSparseSoftmaxCrossEntropy(z, y, smooth));
            report("softmax_focal", g.LossSoftmaxFocal(z, hot, new LossSoftmaxFocalOptions { Gamma = 0.5 }));
            report("sparse_softmax_focal", g.LossSparseSoftmaxFocal(z, y));
            report("categorical_hinge", g.LossCategoricalHinge(z, hot));
            report("multi_margin", g.LossMultiMargin(z, y, new LossMultiMarginOptions { Squared = true }));
        }

        private static void Vectors(Graph g, Value x, Value z, Value y, Value hot, Action<string, Value> report)
        {
            Value r = g.Softmax(x);
            var logits = new LossKullbackLeiblerOptions { Form = LossKullbackLeiblerForm.Logits };
            report("kullback_leibler", g.LossKullbackLeibler(z, r, logits));
            report("cosine_similarity", g.LossCosineSimilarity(z, hot));
            Value similar = g.Minimum(g.Cast(y, DType.Float32), g.Constant(DType.Float32, 1));
            report("contrastive", g.LossContrastive(z, x, similar, new LossContrastiveOptions { Margin = 3 }));
            report("triplet", g.LossTriplet(z, x, r, new LossTripletOptions { Margin = 0.2, Swap = true }));
            // Two frames, the label 1 where y is not 0, which has no frame and no label.
            Value frames = g.Concat(new[] { z, x }, new ConcatOptions { Axis = 1 });
            Value count = g.Cast(similar, DType.Int32);
            var last = new LossCtcOptions { LabelLengths = count, Blank = 2 };
            last.InputLengths = g.Cast(g.Add(similar, similar), DType.Int32);
            frames = g.Reshape(frames, new[] { Graph.DimBatch, 2L, 3L });
            report("ctc", g.LossCtc(frames, g.Reshape(count, new[] { Graph.DimBatch, 1L }), last));
        }
    }
}
