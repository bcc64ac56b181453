// SPDX-License-Identifier: Apache-2.0
using System;

namespace Tutti.Tests
{
    // Each op that no other model uses as a metric, a tenth of their sum as the loss (tests/bindings/scenarios.txt).
    internal static class ScenarioOps
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
            Value y = g.GetLabel("y"), sum = g.Constant(DType.Float32, 0);
            Action<string, Value> report = (name, value) =>
            {
                Value mean = g.ReduceMean(g.Cast(value, DType.Float32));
                g.AddMetric(name, mean);
                sum = g.Add(sum, mean);
            };
            Curves(g, z, report);
            Pairs(g, x, z, report);
            Answers(g, z, report);
            Extremes(g, z, shift, report);
            Shapes(g, x, z, report);
            Pixels(g, x, z, shift, report);
            if (mode == Mode.Train)
                BatchNorm(g, x, z, shift, report);
            Norms(g, x, z, shift, report);
            Attention(g, x, z, report);
            Entropies(g, x, y, z, report);
            Draws(g, report);
            g.SetLoss(g.Mul(sum, g.Constant(DType.Float32, 0.1)));
            g.OptimizerSgd(g.ScheduleConstant(0.1));
        }

        // x and z, one after the other, [rows, 6].
        private static Value Both(Graph g, Value x, Value z)
        {
            return g.Concat(new[] { x, z }, new ConcatOptions { Axis = 1 });
        }

        private static void Curves(Graph g, Value z, Action<string, Value> report)
        {
            Value power = g.Exp(z);
            report("identity", g.Identity(z));
            report("stop_gradient", g.Mul(z, g.StopGradient(z)));
            report("abs", g.Abs(z));
            report("sign", g.Sign(z));
            report("log1p", g.Log1p(power));
            report("expm1", g.Expm1(z));
            report("sqrt", g.Sqrt(power));
            report("sin", g.Sin(z));
            report("cos", g.Cos(z));
            report("gelu", g.Gelu(z));
            report("silu", g.Silu(z));
            report("softplus", g.Softplus(z));
            report("elu", g.Elu(z, new EluOptions { Alpha = 0.5 }));
            report("leaky_relu", g.LeakyRelu(z, new LeakyReluOptions { Alpha = 0.25 }));
            report("floor", g.Floor(z));
            report("ceil", g.Ceil(z));
            report("round", g.Round(z));
            report("erf", g.Erf(z));
        }

        private static void Pairs(Graph g, Value x, Value z, Action<string, Value> report)
        {
            Value above = g.Add(x, g.Constant(DType.Float32, 1));
            report("pow", g.Pow(above, z));
            report("maximum", g.Maximum(z, x));
            report("select", g.Select(g.Greater(z, g.Constant(DType.Float32, 0)), z, x));
            report("mod", g.Mod(z, above));
            report("floor_divide", g.FloorDivide(z, above));
        }

        private static void Answers(Graph g, Value z, Action<string, Value> report)
        {
            Value floor = g.Floor(z), nearest = g.Round(z), ceiling = g.Ceil(z);
            Value isPositive = g.Greater(z, g.Constant(DType.Float32, 0)), isDown = g.Equal(nearest, floor);
            report("is_finite", g.IsFinite(g.Log(z)));
            report("logical_not", g.LogicalNot(isPositive));
            report("logical_and", g.LogicalAnd(isPositive, isDown));
            report("logical_or", g.LogicalOr(isPositive, isDown));
            report("logical_xor", g.LogicalXor(isPositive, isDown));
            report("equal", isDown);
            report("not_equal", g.NotEqual(nearest, ceiling));
            report("less_equal", g.LessEqual(ceiling, nearest));
            report("greater_equal", g.GreaterEqual(floor, nearest));
        }

        private static void Extremes(Graph g, Value z, Value shift, Action<string, Value> report)
        {
            long[] last = new[] { 1L };
            report("reduce_min", g.ReduceMin(z, new ReduceMinOptions { Axes = last }));
            report("reduce_prod", g.ReduceProd(z, new ReduceProdOptions { Axes = last }));
            report("argmin", g.Argmin(z));
            Value good = g.AllFinite(shift), bad = g.AllFinite(g.Log(g.Neg(shift)));
            report("all_finite", g.Sub(g.Cast(good, DType.Float32), g.Cast(bad, DType.Float32)));
        }

        private static void Shapes(Graph g, Value x, Value z, Action<string, Value> report)
        {
            Value both = g.Reshape(Both(g, x, z), new[] { Graph.DimBatch, 2L, 3L });
            var rising = new IotaOptions { Dtype = DType.Float32 };
            Value turned = g.Transpose(both, new TransposeOptions { Permutation = new[] { 0L, 2L, 1L } });
            report("transpose", g.Mul(turned, g.Iota(new[] { 2L }, rising)));
            Value column = g.Reshape(z, new[] { Graph.DimBatch, 3L, 1L });
            Value spread = g.BroadcastTo(column, new[] { Graph.DimBatch, 3L, 2L });
            report("broadcast_to", g.Mul(spread, g.Iota(new[] { 3L, 2L }, rising)));
            report("gather", g.Gather(z, g.Iota(new[] { 2L }), new GatherOptions { Axis = 1 }));
            Value padded = g.Pad(z, new[] { 0L, 1L }, new[] { 0L, 2L }, new PadOptions { Value = 0.5 });
            report("pad", g.Mul(padded, g.Iota(new[] { 6L }, rising)));
        }

        private static void Pixels(Graph g, Value x, Value z, Value shift, Action<string, Value> report)
        {
            Value image = g.Reshape(Both(g, x, z), new[] { Graph.DimBatch, 2L, 3L, 1L });
            Value kernel = g.Reshape(shift, new[] { 1L, 3L, 1L, 1L });
            report("conv2d", g.Conv2d(image, kernel, new Conv2dOptions { Dilation = new[] { 1L, 2L } }));
            var byOne = new MaxPool2dOptions { Stride = new[] { 1L, 1L } };
            report("max_pool2d", g.MaxPool2d(image, new[] { 2L, 2L }, byOne));
            report("avg_pool2d", g.AvgPool2d(image, new[] { 2L, 2L }, new AvgPool2dOptions { Padding = Padding.Same }));
        }

        // Over the rows of the batch, and so only for training.
        private static void BatchNorm(Graph g, Value x, Value z, Value shift, Action<string, Value> report)
        {
            Value half = g.Mul(shift, g.Constant(DType.Float32, 0.5));
            Value normal = g.BatchNormTraining(z, shift, half, new BatchNormTrainingOptions { Epsilon = 0.1 }).Y;
            report("batch_norm_training", g.Mul(normal, x));
        }

        private static void Norms(Graph g, Value x, Value z, Value shift, Action<string, Value> report)
        {
            Value half = g.Mul(shift, g.Constant(DType.Float32, 0.5));
            report("batch_norm_inference", g.BatchNormInference(z, shift, half, shift, g.Exp(half)));
            Value normal = g.LayerNorm(z, shift, half).Y;
            report("layer_norm", g.Mul(normal, x));
            normal = g.RmsNorm(z, shift, new RmsNormOptions { Epsilon = 0.1 }).Y;
            report("rms_norm", normal);
            Value sequence = g.Reshape(Both(g, x, z), new[] { Graph.DimBatch, 2L, 3L });
            normal = g.GroupNorm(sequence, shift, half, 3).Y;
            report("group_norm", g.Mul(normal, sequence));
        }

        private static void Attention(Graph g, Value x, Value z, Action<string, Value> report)
        {
            long[] dims = { Graph.DimBatch, 3L, 1L, 1L };
            Value queries = g.Reshape(z, dims), keys = g.Reshape(x, dims);
            Value seen = g.Attention(queries, keys, queries, new AttentionOptions { Causal = true, Scale = 0.5 }).Y;
            report("attention", seen);
        }

        private static void Entropies(Graph g, Value x, Value y, Value z, Action<string, Value> report)
        {
            Value hot = g.OneHot(y, 3);
            var smooth = new SparseSoftmaxCrossEntropyOptions { LabelSmoothing = 0.1 };
            report("log_softmax", g.Mul(g.LogSoftmax(z), x));
            report("sparse_softmax_cross_entropy", g.SparseSoftmaxCrossEntropy(z, y, smooth));
            report("softmax_cross_entropy", g.SoftmaxCrossEntropy(z, hot));
            report("sigmoid_cross_entropy", g.SigmoidCrossEntropy(z, hot));
            report("in_top_k", g.InTopK(z, y, new InTopKOptions { K = 2 }));
        }

        // Of random numbers the whole number that all of them are next to.
        private static void Draws(Graph g, Action<string, Value> report)
        {
            Value one = g.Constant(DType.Float32, 1);
            long[] draws = { Graph.DimBatch, 64L };
            report("dropout", Range(g, g.Dropout(g.BroadcastTo(one, draws), 0.25)));
            Value key = g.BroadcastTo(one, new[] { Graph.DimBatch, 1L, 1L, 1L });
            Value queries = g.BroadcastTo(one, new[] { Graph.DimBatch, 64L, 1L, 1L });
            Value kept = g.DropoutAttention(queries, key, key, 0.25).Y;
            report("dropout_attention", Range(g, kept));
            report("random_uniform", g.Floor(g.RandomUniform(draws, new RandomUniformOptions { Low = 3, High = 4 })));
            var narrow = new RandomNormalOptions { Mean = 5, Stddev = 0.05 };
            report("random_normal", g.Round(g.RandomNormal(draws, narrow)));
            var within = new RandomTruncatedNormalOptions { Mean = 4, Stddev = 0.2 };
            report("random_truncated_normal", g.Round(g.RandomTruncatedNormal(draws, within)));
        }

        // What is certain of so many values that are kept or dropped: the largest less the smallest.
        private static Value Range(Graph g, Value value)
        {
            Value highest = g.ReduceMax(value, new ReduceMaxOptions { Axes = new[] { 1L } });
            return g.Sub(highest, g.ReduceMin(value, new ReduceMinOptions { Axes = new[] { 1L } }));
        }
    }
}
