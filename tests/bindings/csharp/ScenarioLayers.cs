// SPDX-License-Identifier: Apache-2.0
using System;

namespace Tutti.Tests
{
    // Layers of convolution, pooling, shapes and embeddings as metrics, and their sum as the loss
    // (tests/bindings/scenarios.txt).
    internal static class ScenarioLayers
    {
        private const string Ones = "ones";

        // z as a sequence, an image, a volume, and as channels of one position.
        private sealed class Shapes
        {
            public Value Sequence, Image, Volume, Point, Pixel;
        }

        public static void Build(Graph g, Mode mode)
        {
            Value x = g.GetFeature("x");
            Value shift = g.Variable("shift", DType.Float32, new[] { 3L }, Ones);
            Value four = g.Constant(DType.Float32, 4), three = g.Constant(DType.Float32, 3);
            Value z = g.Add(g.Sub(g.Mul(x, four), three), shift);
            g.SetOutput("z", z);
            if (mode == Mode.Predict)
                return;
            Value sum = g.Constant(DType.Float32, 0);
            Action<string, Value> report = (name, value) =>
            {
                Value mean = g.ReduceMean(value);
                g.AddMetric(name, mean);
                sum = g.Add(sum, mean);
            };
            var s = new Shapes
            {
                Sequence = g.Reshape(z, new[] { Graph.DimBatch, 3L, 1L }),
                Image = g.Reshape(z, new[] { Graph.DimBatch, 1L, 3L, 1L }),
                Volume = g.Reshape(z, new[] { Graph.DimBatch, 3L, 1L, 1L, 1L }),
                Point = g.Reshape(z, new[] { Graph.DimBatch, 1L, 3L }),
                Pixel = g.Reshape(z, new[] { Graph.DimBatch, 1L, 1L, 3L }),
            };
            Convolutions(g, s, report);
            Transposes(g, s, report);
            Pools(g, s, report);
            GlobalPools(g, s, report);
            Sizes(g, s, report);
            Embeddings(g, x, z, report);
            g.SetLoss(sum);
            g.OptimizerSgd(g.ScheduleConstant(0.01));
        }

        private static void Convolutions(Graph g, Shapes s, Action<string, Value> report)
        {
            var causal = new LayerConv1dOptions { Padding = Padding.Causal, KernelInitializer = Ones };
            report("conv1d", g.LayerConv1d(s.Sequence, 1, 2, causal));
            var flat = new LayerConv2dOptions
            {
                Sizes = new[] { 1L, 2L }, Padding = Padding.Valid, KernelInitializer = Ones,
            };
            report("conv2d", g.LayerConv2d(s.Image, 1, 1, flat));
            var deep = new LayerConv3dOptions
            {
                Sizes = new[] { 3L, 0L, 0L }, Padding = Padding.Valid, WithoutBias = true, KernelInitializer = Ones,
            };
            report("conv3d", g.LayerConv3d(s.Volume, 1, 1, deep));
            var each = new LayerDepthwiseConv1dOptions { KernelInitializer = Ones };
            report("depthwise_conv1d", g.LayerDepthwiseConv1d(s.Point, 1, each));
            var eachPixel = new LayerDepthwiseConv2dOptions { KernelInitializer = Ones };
            report("depthwise_conv2d", g.LayerDepthwiseConv2d(s.Pixel, 1, eachPixel));
            var both = new LayerSeparableConv1dOptions { KernelInitializer = Ones };
            report("separable_conv1d", g.LayerSeparableConv1d(s.Point, 1, 1, both));
            var bothPixel = new LayerSeparableConv2dOptions { KernelInitializer = Ones };
            report("separable_conv2d", g.LayerSeparableConv2d(s.Pixel, 1, 1, bothPixel));
        }

        private static void Transposes(Graph g, Shapes s, Action<string, Value> report)
        {
            var twice = new LayerConv1dTransposeOptions { Stride = 2, KernelInitializer = Ones };
            report("conv1d_transpose", g.LayerConv1dTranspose(s.Sequence, 1, 2, twice));
            var wide = new LayerConv2dTransposeOptions
            {
                Strides = new[] { 1L, 2L },
                Padding = Padding.Valid,
                Extra = new[] { 0L, 1L },
                KernelInitializer = Ones,
            };
            report("conv2d_transpose", g.LayerConv2dTranspose(s.Image, 1, 1, wide));
            var deep = new LayerConv3dTransposeOptions
            {
                Sizes = new[] { 2L, 0L, 0L }, Padding = Padding.Valid, KernelInitializer = Ones,
            };
            report("conv3d_transpose", g.LayerConv3dTranspose(s.Volume, 1, 1, deep));
        }

        private static void Pools(Graph g, Shapes s, Action<string, Value> report)
        {
            report("max_pool1d", g.LayerMaxPool1d(s.Sequence, 2, new LayerMaxPool1dOptions { Stride = 1 }));
            var same = new LayerAveragePool1dOptions { Padding = Padding.Same };
            report("average_pool1d", g.LayerAveragePool1d(s.Sequence, 2, same));
            var wide = new LayerMaxPool2dOptions { Sizes = new[] { 1L, 3L } };
            report("max_pool2d", g.LayerMaxPool2d(s.Image, 1, wide));
            var pairs = new LayerAveragePool2dOptions { Sizes = new[] { 1L, 2L }, Strides = new[] { 1L, 1L } };
            report("average_pool2d", g.LayerAveragePool2d(s.Image, 1, pairs));
            var deep = new LayerMaxPool3dOptions { Stride = 1, Sizes = new[] { 2L, 0L, 0L } };
            report("max_pool3d", g.LayerMaxPool3d(s.Volume, 1, deep));
            var padded = new LayerAveragePool3dOptions
            {
                Sizes = new[] { 2L, 0L, 0L },
                Padding = Padding.Explicit,
                Pads = new[] { 1L, 0L, 0L, 0L, 0L, 0L },
                CountIncludePadding = true,
            };
            report("average_pool3d", g.LayerAveragePool3d(s.Volume, 1, padded));
        }

        private static void GlobalPools(Graph g, Shapes s, Action<string, Value> report)
        {
            report("global_average_pool1d", g.LayerGlobalAveragePool1d(s.Sequence));
            report("global_max_pool1d", g.LayerGlobalMaxPool1d(s.Sequence));
            report("global_average_pool2d", g.LayerGlobalAveragePool2d(s.Image));
            report("global_max_pool2d", g.LayerGlobalMaxPool2d(s.Image));
            report("global_average_pool3d", g.LayerGlobalAveragePool3d(s.Volume));
            report("global_max_pool3d", g.LayerGlobalMaxPool3d(s.Volume));
        }

        private static void Sizes(Graph g, Shapes s, Action<string, Value> report)
        {
            Value longer = g.LayerUpSampling1d(s.Sequence, 2);
            report("up_sampling1d", g.LayerCropping1d(longer, new[] { 0L, 1L }));
            var smooth = new LayerUpSampling2dOptions
            {
                Factors = new[] { 1L, 0L }, Method = LayerUpSampling2dMethod.Bilinear,
            };
            Value wider = g.LayerUpSampling2d(s.Image, 2, smooth);
            report("up_sampling2d", g.LayerCropping2d(wider, new[] { 0L, 0L, 0L, 3L }));
            var twice = new LayerUpSampling3dOptions { Factors = new[] { 2L, 0L, 0L } };
            Value deeper = g.LayerUpSampling3d(s.Volume, 1, twice);
            report("up_sampling3d", g.LayerCropping3d(deeper, new[] { 0L, 1L, 0L, 0L, 0L, 0L }));
            report("zero_padding1d", g.LayerZeroPadding1d(s.Sequence, new[] { 1L, 2L }));
            report("zero_padding2d", g.LayerZeroPadding2d(s.Image, new[] { 0L, 1L, 1L, 0L }));
            report("zero_padding3d", g.LayerZeroPadding3d(s.Volume, new[] { 1L, 1L, 0L, 0L, 0L, 0L }));
            report("cropping1d", g.LayerCropping1d(s.Sequence, new[] { 1L, 0L }));
            report("cropping2d", g.LayerCropping2d(s.Image, new[] { 0L, 0L, 1L, 1L }));
            report("cropping3d", g.LayerCropping3d(s.Volume, new[] { 0L, 2L, 0L, 0L, 0L, 0L }));
        }

        private static void Embeddings(Graph g, Value x, Value z, Action<string, Value> report)
        {
            Value y = g.GetLabel("y");
            var padded = new LayerEmbeddingOptions { PaddingId = 0, TableInitializer = Ones };
            report("embedding", g.LayerEmbedding(y, 3, 2, padded));
            var weighed = new LayerEmbeddingBagOptions
            {
                Weights = x,
                Lengths = y,
                Combiner = LayerEmbeddingBagCombiner.Sum,
                TableInitializer = Ones,
            };
            report("embedding_bag", g.LayerEmbeddingBag(g.Argsort(z), 3, 2, weighed));
        }
    }
}
