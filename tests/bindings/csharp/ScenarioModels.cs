// SPDX-License-Identifier: Apache-2.0
using System;

namespace Tutti.Tests
{
    // The models of the scenarios; tests/bindings/scenarios.txt says what they are.
    internal static class ScenarioModels
    {
        public static ModelFunction Of(string name)
        {
            switch (name)
            {
                case "classifier":
                    return Classifier;
                case "regression":
                    return Regression;
                case "averages":
                    return Averages;
                case "images":
                    return Images;
                case "losses":
                    return ScenarioLosses.Build;
                case "metrics":
                    return ScenarioMetrics.Build;
                case "optimizers":
                    return ScenarioOptimizers.Build;
                case "blocks":
                    return ScenarioBlocks.Build;
                case "functions":
                    return ScenarioFunctions.Build;
                case "ops":
                    return ScenarioOps.Build;
                case "layers":
                    return ScenarioLayers.Build;
                case "schedules":
                    return ScenarioSchedules.Build;
                case "tables":
                    return Tables;
                case "wrong":
                    return (g, mode) => g.SetLoss(g.Matmul(g.GetFeature("x"), g.GetFeature("x")));
                case "failing":
                    return (g, mode) => throw new TuttiException(ErrorCode.Unavailable, "the model is at lunch");
                default:
                    throw new ArgumentException(name);
            }
        }

        private static void Classifier(Graph g, Mode mode)
        {
            var relu = new LayerDenseOptions { Activation = Activation.Relu };
            Value hidden = g.LayerDense(g.GetFeature("x"), 8, relu);
            Value logits = g.LayerDense(g.LayerDropout(hidden, 0.25), 3);
            g.SetOutput("class", g.Argmax(logits));
            g.SetOutput("probability", g.Softmax(logits));
            if (mode == Mode.Predict)
                return;
            Value y = g.GetLabel("y");
            g.MetricAccuracy("accuracy", logits, y);
            g.MetricTopKAccuracy("top_2", logits, y, 2);
            g.SetLoss(g.LossSparseSoftmaxCrossEntropy(logits, y));
            g.OptimizerAdam(g.ScheduleConstant(0.01));
        }

        private static void Tables(Graph g, Mode mode)
        {
            Value x = g.GetFeature("x");
            var ones = new LayerEmbeddingOptions { TableInitializer = "ones" };
            Value z = g.LayerEmbedding(g.Argmax(x), x.Dims[1], 3, ones);
            g.SetOutput("z", z);
            if (mode == Mode.Predict)
                return;
            g.SetLoss(g.LossSparseSoftmaxCrossEntropy(z, g.GetLabel("y")));
            Value rate = g.ScheduleConstant(0.25);
            bool isLazy = g.Params.StartsWith("lazy_", StringComparison.Ordinal);
            switch (g.Params)
            {
                case "adam":
                case "lazy_adam":
                    g.OptimizerAdam(rate, new OptimizerAdamOptions { Lazy = isLazy });
                    break;
                case "sgd":
                case "lazy_sgd":
                    g.OptimizerSgd(rate, new OptimizerSgdOptions { Momentum = 0.9, Lazy = isLazy });
                    break;
                case "lazy_rule":
                    LazyRule(g);
                    break;
                default:
                    throw new ArgumentException(g.Params);
            }
        }

        // w - 0.125 m with m = m / 2 + g, of the rows that a step looks up.
        private static void LazyRule(Graph g)
        {
            var options = new UpdateRuleOptions { Slots = new[] { new Slot("m") }, Lazy = true };
            g.UpdateRule(g.ScheduleConstant(0.125), u =>
            {
                Value m = g.Add(g.Mul(u.Slots[0], g.Constant(DType.Float32, 0.5)), u.Gradient);
                return new UpdatedVariable(g.Sub(u.Weight, g.Mul(u.LearningRate, m)), m);
            }, options);
        }

        private static void Regression(Graph g, Mode mode)
        {
            Value x = g.GetFeature("x"), line;
            using (g.Scope("line"))
                line = g.Matmul(x, g.Variable("slope", DType.Float32, new[] { x.Dims[1], 1 }));
            g.SetOutput("y", line);
            if (mode == Mode.Predict)
                return;
            Value target = g.Reshape(g.Cast(g.GetLabel("y"), DType.Float32), new[] { Graph.DimBatch, 1 });
            g.MetricMean("target", target);
            g.SetLoss(g.LossMeanSquaredError(line, target));
            var steps = new ScheduleExponentialOptions { Staircase = true };
            g.OptimizerSgd(g.ScheduleExponential(0.05, 0.5, 4, steps),
                new OptimizerSgdOptions { Momentum = 0.9, Nesterov = true });
        }

        private static void Averages(Graph g, Mode mode)
        {
            Value x = g.GetFeature("x");
            Value line = g.Matmul(x, g.Variable("line/slope", DType.Float32, new[] { x.Dims[1], 1 }));
            g.SetOutput("y", line);
            if (mode == Mode.Predict)
                return;
            Value target = g.Reshape(g.Cast(g.GetLabel("y"), DType.Float32), new[] { Graph.DimBatch, 1 });
            g.SetLoss(g.LossMeanSquaredError(line, target));
            g.OptimizerSgd(g.ScheduleConstant(0.5), new OptimizerSgdOptions
            {
                ClipValue = 0.2,
                ClipNorm = 0.3,
                AverageDecay = 0.8,
                AverageRamp = true,
                AverageStart = 1
            });
        }

        private static void Images(Graph g, Mode mode)
        {
            Value x = g.Reshape(g.GetFeature("x"), new[] { Graph.DimBatch, 6, 6, 1 });
            x = g.LayerConv2d(x, 4, 3, new LayerConv2dOptions { WithoutBias = true });
            x = g.Relu(g.LayerBatchNorm(x, new LayerBatchNormOptions { Momentum = 0.5 }));
            Value logits = g.LayerDense(g.LayerFlatten(g.LayerMaxPool2d(x, 2)), 3);
            g.SetOutput("class", g.Argmax(logits));
            if (mode == Mode.Predict)
                return;
            Value y = g.GetLabel("y");
            g.MetricAccuracy("accuracy", logits, y);
            g.SetLoss(g.LossSparseSoftmaxCrossEntropy(logits, y));
            g.SetGradientClipNorm(1);
            g.OptimizerAdamw(g.ScheduleConstant(0.02), new OptimizerAdamwOptions { WeightDecay = 0.1 });
        }
    }
}
