// SPDX-License-Identifier: Apache-2.0
package org.tutti;

/** Layers of convolution, pooling, shapes and embeddings, and their sum as the loss (tests/bindings/scenarios.txt). */
final class ScenarioLayers implements ModelFunction {
    private static final String ONES = "ones";

    /** z in several shapes, and what reports the layers of one graph and adds them up. */
    private static final class Shapes {
        private final Graph g;
        private final Value sequence;
        private final Value image;
        private final Value volume;
        private final Value point;
        private final Value pixel;
        private Value sum;

        Shapes(Graph g, Value z) {
            this.g = g;
            sequence = g.reshape(z, new long[] {Graph.DIM_BATCH, 3, 1});
            image = g.reshape(z, new long[] {Graph.DIM_BATCH, 1, 3, 1});
            volume = g.reshape(z, new long[] {Graph.DIM_BATCH, 3, 1, 1, 1});
            point = g.reshape(z, new long[] {Graph.DIM_BATCH, 1, 3});
            pixel = g.reshape(z, new long[] {Graph.DIM_BATCH, 1, 1, 3});
            sum = g.constant(DType.FLOAT32, 0);
        }

        void report(String name, Value result) {
            Value mean = g.reduceMean(result);
            g.metric(name, mean);
            sum = g.add(sum, mean);
        }
    }

    @Override
    public void build(Graph g, Mode mode) {
        Value x = g.feature("x");
        Value shift = g.variable("shift", DType.FLOAT32, new long[] {3}, new VariableOptions().initializer(ONES));
        Value four = g.constant(DType.FLOAT32, 4);
        Value z = g.add(g.sub(g.mul(x, four), g.constant(DType.FLOAT32, 3)), shift);
        g.output("z", z);
        if (mode != Mode.PREDICT) {
            Shapes s = new Shapes(g, z);
            convolutions(g, s);
            transposes(g, s);
            pools(g, s);
            globalPools(g, s);
            sizes(g, s);
            embeddings(g, s, x, z);
            g.loss(s.sum);
            g.optimizerSgd(g.scheduleConstant(0.01));
        }
    }

    private static void convolutions(Graph g, Shapes s) {
        LayerConv1dOptions causal = new LayerConv1dOptions().padding(Padding.CAUSAL).kernelInitializer(ONES);
        s.report("conv1d", g.layerConv1d(s.sequence, 1, 2, causal));
        LayerConv2dOptions flat =
                new LayerConv2dOptions().sizes(1, 2).padding(Padding.VALID).kernelInitializer(ONES);
        s.report("conv2d", g.layerConv2d(s.image, 1, 1, flat));
        LayerConv3dOptions deep = new LayerConv3dOptions()
                .sizes(3, 0, 0)
                .padding(Padding.VALID)
                .withoutBias(true)
                .kernelInitializer(ONES);
        s.report("conv3d", g.layerConv3d(s.volume, 1, 1, deep));
        LayerDepthwiseConv1dOptions each = new LayerDepthwiseConv1dOptions().kernelInitializer(ONES);
        s.report("depthwise_conv1d", g.layerDepthwiseConv1d(s.point, 1, each));
        LayerDepthwiseConv2dOptions eachPixel = new LayerDepthwiseConv2dOptions().kernelInitializer(ONES);
        s.report("depthwise_conv2d", g.layerDepthwiseConv2d(s.pixel, 1, eachPixel));
        LayerSeparableConv1dOptions both = new LayerSeparableConv1dOptions().kernelInitializer(ONES);
        s.report("separable_conv1d", g.layerSeparableConv1d(s.point, 1, 1, both));
        LayerSeparableConv2dOptions bothPixel = new LayerSeparableConv2dOptions().kernelInitializer(ONES);
        s.report("separable_conv2d", g.layerSeparableConv2d(s.pixel, 1, 1, bothPixel));
    }

    private static void transposes(Graph g, Shapes s) {
        LayerConv1dTransposeOptions twice = new LayerConv1dTransposeOptions().stride(2).kernelInitializer(ONES);
        s.report("conv1d_transpose", g.layerConv1dTranspose(s.sequence, 1, 2, twice));
        LayerConv2dTransposeOptions wide = new LayerConv2dTransposeOptions()
                .strides(1, 2)
                .padding(Padding.VALID)
                .extra(0, 1)
                .kernelInitializer(ONES);
        s.report("conv2d_transpose", g.layerConv2dTranspose(s.image, 1, 1, wide));
        LayerConv3dTransposeOptions deep =
                new LayerConv3dTransposeOptions().sizes(2, 0, 0).padding(Padding.VALID).kernelInitializer(ONES);
        s.report("conv3d_transpose", g.layerConv3dTranspose(s.volume, 1, 1, deep));
    }

    private static void pools(Graph g, Shapes s) {
        s.report("max_pool1d", g.layerMaxPool1d(s.sequence, 2, new LayerMaxPool1dOptions().stride(1)));
        LayerAveragePool1dOptions same = new LayerAveragePool1dOptions().padding(Padding.SAME);
        s.report("average_pool1d", g.layerAveragePool1d(s.sequence, 2, same));
        s.report("max_pool2d", g.layerMaxPool2d(s.image, 1, new LayerMaxPool2dOptions().sizes(1, 3)));
        LayerAveragePool2dOptions pairs = new LayerAveragePool2dOptions().sizes(1, 2).strides(1, 1);
        s.report("average_pool2d", g.layerAveragePool2d(s.image, 1, pairs));
        LayerMaxPool3dOptions deep = new LayerMaxPool3dOptions().stride(1).sizes(2, 0, 0);
        s.report("max_pool3d", g.layerMaxPool3d(s.volume, 1, deep));
        LayerAveragePool3dOptions padded = new LayerAveragePool3dOptions()
                .sizes(2, 0, 0)
                .padding(Padding.EXPLICIT)
                .pads(1, 0, 0, 0, 0, 0)
                .countIncludePadding(true);
        s.report("average_pool3d", g.layerAveragePool3d(s.volume, 1, padded));
    }

    private static void globalPools(Graph g, Shapes s) {
        s.report("global_average_pool1d", g.layerGlobalAveragePool1d(s.sequence));
        s.report("global_max_pool1d", g.layerGlobalMaxPool1d(s.sequence));
        s.report("global_average_pool2d", g.layerGlobalAveragePool2d(s.image));
        s.report("global_max_pool2d", g.layerGlobalMaxPool2d(s.image));
        s.report("global_average_pool3d", g.layerGlobalAveragePool3d(s.volume));
        s.report("global_max_pool3d", g.layerGlobalMaxPool3d(s.volume));
    }

    private static void sizes(Graph g, Shapes s) {
        Value longer = g.layerUpSampling1d(s.sequence, 2);
        s.report("up_sampling1d", g.layerCropping1d(longer, new long[] {0, 1}));
        LayerUpSampling2dOptions smooth =
                new LayerUpSampling2dOptions().factors(1, 0).method(LayerUpSampling2dMethod.BILINEAR);
        Value wider = g.layerUpSampling2d(s.image, 2, smooth);
        s.report("up_sampling2d", g.layerCropping2d(wider, new long[] {0, 0, 0, 3}));
        Value deeper = g.layerUpSampling3d(s.volume, 1, new LayerUpSampling3dOptions().factors(2, 0, 0));
        s.report("up_sampling3d", g.layerCropping3d(deeper, new long[] {0, 1, 0, 0, 0, 0}));
        s.report("zero_padding1d", g.layerZeroPadding1d(s.sequence, new long[] {1, 2}));
        s.report("zero_padding2d", g.layerZeroPadding2d(s.image, new long[] {0, 1, 1, 0}));
        s.report("zero_padding3d", g.layerZeroPadding3d(s.volume, new long[] {1, 1, 0, 0, 0, 0}));
        s.report("cropping1d", g.layerCropping1d(s.sequence, new long[] {1, 0}));
        s.report("cropping2d", g.layerCropping2d(s.image, new long[] {0, 0, 1, 1}));
        s.report("cropping3d", g.layerCropping3d(s.volume, new long[] {0, 2, 0, 0, 0, 0}));
    }

    private static void embeddings(Graph g, Shapes s, Value x, Value z) {
        Value y = g.label("y");
        LayerEmbeddingOptions padded = new LayerEmbeddingOptions().paddingId(0).tableInitializer(ONES);
        s.report("embedding", g.layerEmbedding(y, 3, 2, padded));
        LayerEmbeddingBagOptions weighed = new LayerEmbeddingBagOptions()
                .weights(x)
                .lengths(y)
                .combiner(LayerEmbeddingBagCombiner.SUM)
                .tableInitializer(ONES);
        s.report("embedding_bag", g.layerEmbeddingBag(g.argsort(z), 3, 2, weighed));
    }
}
