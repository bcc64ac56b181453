// SPDX-License-Identifier: Apache-2.0

package tutti

// layerShapes are z as a sequence, an image, a volume, and as channels of one position.
type layerShapes struct {
	sequence, image, volume, point, pixel Value
}

// scenarioLayers has layers of convolution, pooling, shapes and embeddings as metrics, and their sum as the loss.
func scenarioLayers(g *Graph, mode Mode) error {
	x := g.Feature("x")
	shift := g.Variable("shift", Float32, []int64{3}, &VariableOptions{Initializer: "ones"})
	z := g.Add(g.Sub(g.Mul(x, g.Constant(Float32, 4)), g.Constant(Float32, 3)), shift)
	g.SetOutput("z", z)
	if mode == ModePredict {
		return nil
	}
	sum := g.Constant(Float32, 0)
	report := func(name string, value Value) {
		mean := g.ReduceMean(value, nil)
		g.AddMetric(name, mean)
		sum = g.Add(sum, mean)
	}
	s := layerShapes{
		sequence: g.Reshape(z, []int64{DimBatch, 3, 1}),
		image:    g.Reshape(z, []int64{DimBatch, 1, 3, 1}),
		volume:   g.Reshape(z, []int64{DimBatch, 3, 1, 1, 1}),
		point:    g.Reshape(z, []int64{DimBatch, 1, 3}),
		pixel:    g.Reshape(z, []int64{DimBatch, 1, 1, 3}),
	}
	reportConvolutions(g, s, report)
	reportTransposes(g, s, report)
	reportPools(g, s, report)
	reportSizes(g, s, report)
	reportEmbeddings(g, x, z, report)
	g.SetLoss(sum)
	g.OptimizerSGD(g.ScheduleConstant(0.01), nil)
	return nil
}

func reportConvolutions(g *Graph, s layerShapes, report func(string, Value)) {
	causal := &LayerConv1DOptions{Padding: PaddingCausal, KernelInitializer: "ones"}
	report("conv1d", g.LayerConv1D(s.sequence, 1, 2, causal))
	flat := &LayerConv2DOptions{Sizes: [2]int64{1, 2}, Padding: PaddingValid, KernelInitializer: "ones"}
	report("conv2d", g.LayerConv2D(s.image, 1, 1, flat))
	deep := &LayerConv3DOptions{
		Sizes: [3]int64{3, 0, 0}, Padding: PaddingValid, WithoutBias: true, KernelInitializer: "ones",
	}
	report("conv3d", g.LayerConv3D(s.volume, 1, 1, deep))
	each := &LayerDepthwiseConv1DOptions{KernelInitializer: "ones"}
	report("depthwise_conv1d", g.LayerDepthwiseConv1D(s.point, 1, each))
	eachPixel := &LayerDepthwiseConv2DOptions{KernelInitializer: "ones"}
	report("depthwise_conv2d", g.LayerDepthwiseConv2D(s.pixel, 1, eachPixel))
	both := &LayerSeparableConv1DOptions{KernelInitializer: "ones"}
	report("separable_conv1d", g.LayerSeparableConv1D(s.point, 1, 1, both))
	bothPixel := &LayerSeparableConv2DOptions{KernelInitializer: "ones"}
	report("separable_conv2d", g.LayerSeparableConv2D(s.pixel, 1, 1, bothPixel))
}

func reportTransposes(g *Graph, s layerShapes, report func(string, Value)) {
	twice := &LayerConv1DTransposeOptions{Stride: 2, KernelInitializer: "ones"}
	report("conv1d_transpose", g.LayerConv1DTranspose(s.sequence, 1, 2, twice))
	wide := &LayerConv2DTransposeOptions{
		Strides: [2]int64{1, 2}, Padding: PaddingValid, Extra: [2]int64{0, 1}, KernelInitializer: "ones",
	}
	report("conv2d_transpose", g.LayerConv2DTranspose(s.image, 1, 1, wide))
	deep := &LayerConv3DTransposeOptions{
		Sizes: [3]int64{2, 0, 0}, Padding: PaddingValid, KernelInitializer: "ones",
	}
	report("conv3d_transpose", g.LayerConv3DTranspose(s.volume, 1, 1, deep))
}

func reportPools(g *Graph, s layerShapes, report func(string, Value)) {
	report("max_pool1d", g.LayerMaxPool1D(s.sequence, 2, &LayerMaxPool1DOptions{Stride: 1}))
	same := &LayerAveragePool1DOptions{Padding: PaddingSame}
	report("average_pool1d", g.LayerAveragePool1D(s.sequence, 2, same))
	report("max_pool2d", g.LayerMaxPool2D(s.image, 1, &LayerMaxPool2DOptions{Sizes: [2]int64{1, 3}}))
	pairs := &LayerAveragePool2DOptions{Sizes: [2]int64{1, 2}, Strides: [2]int64{1, 1}}
	report("average_pool2d", g.LayerAveragePool2D(s.image, 1, pairs))
	deep := &LayerMaxPool3DOptions{Stride: 1, Sizes: [3]int64{2, 0, 0}}
	report("max_pool3d", g.LayerMaxPool3D(s.volume, 1, deep))
	padded := &LayerAveragePool3DOptions{
		Sizes: [3]int64{2, 0, 0}, Padding: PaddingExplicit, Pads: [6]int64{1, 0, 0, 0, 0, 0},
		CountIncludePadding: true,
	}
	report("average_pool3d", g.LayerAveragePool3D(s.volume, 1, padded))
	report("global_average_pool1d", g.LayerGlobalAveragePool1D(s.sequence))
	report("global_max_pool1d", g.LayerGlobalMaxPool1D(s.sequence))
	report("global_average_pool2d", g.LayerGlobalAveragePool2D(s.image))
	report("global_max_pool2d", g.LayerGlobalMaxPool2D(s.image))
	report("global_average_pool3d", g.LayerGlobalAveragePool3D(s.volume))
	report("global_max_pool3d", g.LayerGlobalMaxPool3D(s.volume))
}

func reportSizes(g *Graph, s layerShapes, report func(string, Value)) {
	longer := g.LayerUpSampling1D(s.sequence, 2)
	report("up_sampling1d", g.LayerCropping1D(longer, []int64{0, 1}))
	smooth := &LayerUpSampling2DOptions{Factors: [2]int64{1, 0}, Method: InterpolationBilinear}
	wider := g.LayerUpSampling2D(s.image, 2, smooth)
	report("up_sampling2d", g.LayerCropping2D(wider, []int64{0, 0, 0, 3}))
	deeper := g.LayerUpSampling3D(s.volume, 1, &LayerUpSampling3DOptions{Factors: [3]int64{2, 0, 0}})
	report("up_sampling3d", g.LayerCropping3D(deeper, []int64{0, 1, 0, 0, 0, 0}))
	report("zero_padding1d", g.LayerZeroPadding1D(s.sequence, []int64{1, 2}))
	report("zero_padding2d", g.LayerZeroPadding2D(s.image, []int64{0, 1, 1, 0}))
	report("zero_padding3d", g.LayerZeroPadding3D(s.volume, []int64{1, 1, 0, 0, 0, 0}))
	report("cropping1d", g.LayerCropping1D(s.sequence, []int64{1, 0}))
	report("cropping2d", g.LayerCropping2D(s.image, []int64{0, 0, 1, 1}))
	report("cropping3d", g.LayerCropping3D(s.volume, []int64{0, 2, 0, 0, 0, 0}))
}

func reportEmbeddings(g *Graph, x, z Value, report func(string, Value)) {
	var none int64
	y := g.Label("y")
	padded := &LayerEmbeddingOptions{PaddingID: &none, TableInitializer: "ones"}
	report("embedding", g.LayerEmbedding(y, 3, 2, padded))
	weighed := &LayerEmbeddingBagOptions{
		Weights: x, Lengths: y, Combiner: CombinerSum, TableInitializer: "ones",
	}
	report("embedding_bag", g.LayerEmbeddingBag(g.Argsort(z, nil), 3, 2, weighed))
}
