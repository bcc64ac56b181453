// SPDX-License-Identifier: Apache-2.0
using System;

namespace Tutti.Tests
{
    // Every function of ops as a metric, and their sum as the loss (tests/bindings/scenarios.txt).
    internal static class ScenarioFunctions
    {
        private static readonly long[] Last = { 1 };

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
            Activations(g, z, shift, report);
            Angles(g, x, z, report);
            Reductions(g, y, z, report);
            Places(g, x, z, report);
            Matrices(g, x, z, report);
            Rows(g, y, shift, report);
            Windows(g, z, shift, report);
            Images(g, z, shift, report);
            g.SetLoss(sum);
            g.OptimizerSgd(g.ScheduleConstant(0.01));
        }

        private static void Activations(Graph g, Value z, Value shift, Action<string, Value> report)
        {
            report("clip", g.Clip(z, -1, 1));
            report("relu6", g.Relu6(z));
            report("selu", g.Selu(z));
            report("mish", g.Mish(z));
            report("hard_sigmoid", g.HardSigmoid(z));
            report("hard_swish", g.HardSwish(z));
            report("softsign", g.Softsign(z));
            report("log_sigmoid", g.LogSigmoid(z));
            report("prelu", g.Prelu(z, shift));
            report("is_nan", g.IsNan(g.Log(z)));
            report("is_inf", g.IsInf(g.Reciprocal(g.Relu(z))));
        }

        private static void Angles(Graph g, Value x, Value z, Action<string, Value> report)
        {
            Value above = g.Add(x, g.Constant(DType.Float32, 1)), inner = g.Tanh(z);
            report("log2", g.Log2(above));
            report("log10", g.Log10(above));
            report("tan", g.Tan(inner));
            report("sinh", g.Sinh(z));
            report("cosh", g.Cosh(z));
            report("atan", g.Atan(z));
            report("atan2", g.Atan2(z, x));
            report("asin", g.Asin(inner));
            report("acos", g.Acos(inner));
        }

        private static void Reductions(Graph g, Value y, Value z, Action<string, Value> report)
        {
            Value isPositive = g.Greater(z, g.Constant(DType.Float32, 0));
            report("logsumexp", g.Logsumexp(z, new LogsumexpOptions { Axes = Last }));
            report("norm", g.Norm(z, new NormOptions { Axes = Last, Order = NormOrder.Infinity }));
            report("l2_normalize", g.L2Normalize(z));
            report("reduce_any", g.ReduceAny(isPositive, new ReduceAnyOptions { Axes = Last }));
            report("reduce_all", g.ReduceAll(isPositive, new ReduceAllOptions { Axes = Last, KeepDims = true }));
            Value labels = g.Reshape(y, new[] { Graph.DimBatch, 1L });
            report("bincount", g.Bincount(labels, 2, new BincountOptions { ByRow = true }));
        }

        private static void Places(Graph g, Value x, Value z, Action<string, Value> report)
        {
            Value[] pieces = g.Split(z, 2, new GraphSplitOptions { Axis = -1, Sizes = new[] { 1L, 2L } });
            report("split", g.Mul(pieces[0], pieces[1]));
            Value[] columns = g.Unstack(z, 3, new UnstackOptions { Axis = 1 });
            report("unstack", g.Mul(columns[0], columns[2]));
            Value both = g.Stack(new[] { z, x }, new StackOptions { Axis = 1 });
            report("stack", g.LowerTriangle(both, new LowerTriangleOptions { Diagonal = -1 }));
            report("tile", g.Cumsum(g.Tile(z, new[] { 1L, 2L }), new CumsumOptions { Axis = 1 }));
            report("roll", g.Mul(g.Roll(z, Last, Last), x));
            report("reverse", g.Mul(g.Reverse(z, Last), x));
            report("cumsum", g.Cumsum(z, new CumsumOptions { Axis = 1, Exclusive = true, Backward = true }));
            report("cumprod", g.Cumprod(z, new CumprodOptions { Axis = 1 }));
            report("sort", g.Mul(g.Sort(z), x));
            Value order = g.Argsort(z, new ArgsortOptions { Descending = true });
            report("argsort", g.Mul(g.Cast(order, DType.Float32), x));
        }

        private static void Matrices(Graph g, Value x, Value z, Action<string, Value> report)
        {
            Value outer = g.Einsum(new[] { z, x }, "bi,bj->bij");
            report("einsum", g.Einsum(new[] { outer, z }, "bij,bj->bi"));
            report("band_part", g.BandPart(outer, new BandPartOptions { Lower = 0, Upper = 1 }));
            report("lower_triangle", g.LowerTriangle(outer, new LowerTriangleOptions { Diagonal = 1 }));
            report("upper_triangle", g.UpperTriangle(outer));
            report("band_mask", g.BandMask(2, 3, new BandMaskOptions { Upper = 0 }));
        }

        private static void Rows(Graph g, Value y, Value shift, Action<string, Value> report)
        {
            report("gather_nd", g.GatherNd(shift, g.Reshape(y, new[] { Graph.DimBatch, 1L })));
            Value rows = g.Iota(new[] { 2L }, new IotaOptions { Dtype = DType.Int32 });
            Value updates = g.Split(shift, 2, new GraphSplitOptions { Sizes = new[] { 1L, 2L } })[1];
            report("scatter_add", g.ScatterAdd(shift, rows, updates));
            Value longer = g.Mul(shift, g.Constant(DType.Float32, 1.5));
            report("scatter_max", g.ScatterMax(longer, rows, g.Cumsum(updates)));
            report("scatter_replace", g.ScatterReplace(shift, rows, g.Exp(updates)));
        }

        private static void Windows(Graph g, Value z, Value shift, Action<string, Value> report)
        {
            Value sequence = g.Reshape(z, new[] { Graph.DimBatch, 3L, 1L });
            report("conv1d", g.Conv1d(sequence, g.Reshape(shift, new[] { 3L, 1L, 1L })));
            report("max_pool1d", g.MaxPool1d(sequence, 2, new MaxPool1dOptions { Stride = 1 }));
            report("avg_pool1d", g.AvgPool1d(sequence, 2, new AvgPool1dOptions { Padding = Padding.Same }));
        }

        private static void Images(Graph g, Value z, Value shift, Action<string, Value> report)
        {
            Value sequence = g.Reshape(z, new[] { Graph.DimBatch, 3L, 1L });
            Value image = g.Reshape(z, new[] { Graph.DimBatch, 1L, 3L, 1L });
            Value volume = g.Reshape(z, new[] { Graph.DimBatch, 3L, 1L, 1L, 1L });
            var byTwo = new Conv1dTransposeOptions { Stride = 2 };
            report("conv1d_transpose", g.Conv1dTranspose(sequence, g.Reshape(shift, new[] { 3L, 1L, 1L }), byTwo));
            var wide = new Conv2dTransposeOptions { Stride = new[] { 1L, 2L }, Padding = Padding.Valid };
            report("conv2d_transpose", g.Conv2dTranspose(image, g.Reshape(shift, new[] { 1L, 3L, 1L, 1L }), wide));
            var inside = new Conv3dOptions { Padding = Padding.Valid };
            Value deep = g.Reshape(shift, new[] { 3L, 1L, 1L, 1L, 1L });
            report("conv3d", g.Conv3d(volume, deep, inside));
            report("conv3d_transpose", g.Conv3dTranspose(volume, deep));
            var byOne = new MaxPool3dOptions { Stride = new[] { 1L, 1L, 1L } };
            report("max_pool3d", g.MaxPool3d(volume, new[] { 2L, 1L, 1L }, byOne));
            report("avg_pool3d", g.AvgPool3d(volume, new[] { 3L, 1L, 1L }));
            report("resize2d", g.Resize2d(image, new[] { 1L, 2L }));
        }
    }
}
