// SPDX-License-Identifier: Apache-2.0

package tutti

// scenarioFunctions has every function of ops as a metric, and their sum as the loss.
func scenarioFunctions(g *Graph, mode Mode) error {
	x := g.Feature("x")
	shift := g.Variable("shift", Float32, []int64{3}, &VariableOptions{Initializer: "ones"})
	z := g.Add(g.Sub(g.Mul(x, g.Constant(Float32, 4)), g.Constant(Float32, 3)), shift)
	g.SetOutput("z", z)
	if mode == ModePredict {
		return nil
	}
	y, sum := g.Label("y"), g.Constant(Float32, 0)
	report := func(name string, value Value) {
		mean := g.ReduceMean(g.Cast(value, Float32), nil)
		g.AddMetric(name, mean)
		sum = g.Add(sum, mean)
	}
	reportActivations(g, z, shift, report)
	reportAngles(g, x, z, report)
	reportReductions(g, y, z, report)
	reportPlaces(g, x, z, report)
	reportMatrices(g, x, z, report)
	reportRows(g, y, shift, report)
	reportWindows(g, z, shift, report)
	reportImages(g, z, shift, report)
	g.SetLoss(sum)
	g.OptimizerSGD(g.ScheduleConstant(0.01), nil)
	return nil
}

func reportActivations(g *Graph, z, shift Value, report func(string, Value)) {
	report("clip", g.Clip(z, -1, 1))
	report("relu6", g.ReLU6(z))
	report("selu", g.SELU(z))
	report("mish", g.Mish(z))
	report("hard_sigmoid", g.HardSigmoid(z))
	report("hard_swish", g.HardSwish(z))
	report("softsign", g.Softsign(z))
	report("log_sigmoid", g.LogSigmoid(z))
	report("prelu", g.PReLU(z, shift))
	report("is_nan", g.IsNaN(g.Log(z)))
	report("is_inf", g.IsInf(g.Reciprocal(g.ReLU(z))))
}

func reportAngles(g *Graph, x, z Value, report func(string, Value)) {
	above, inner := g.Add(x, g.Constant(Float32, 1)), g.Tanh(z)
	report("log2", g.Log2(above))
	report("log10", g.Log10(above))
	report("tan", g.Tan(inner))
	report("sinh", g.Sinh(z))
	report("cosh", g.Cosh(z))
	report("atan", g.Atan(z))
	report("atan2", g.Atan2(z, x))
	report("asin", g.Asin(inner))
	report("acos", g.Acos(inner))
}

func reportReductions(g *Graph, y, z Value, report func(string, Value)) {
	last, isPositive := []int64{1}, g.Greater(z, g.Constant(Float32, 0))
	report("logsumexp", g.Logsumexp(z, &LogsumexpOptions{Axes: last}))
	report("norm", g.Norm(z, &NormOptions{Axes: last, Order: NormOrderInfinity}))
	report("l2_normalize", g.L2Normalize(z, nil))
	report("reduce_any", g.ReduceAny(isPositive, &ReduceAnyOptions{Axes: last}))
	report("reduce_all", g.ReduceAll(isPositive, &ReduceAllOptions{Axes: last, KeepDims: true}))
	labels := g.Reshape(y, []int64{DimBatch, 1})
	report("bincount", g.Bincount(labels, 2, &BincountOptions{ByRow: true}))
}

func reportPlaces(g *Graph, x, z Value, report func(string, Value)) {
	last := []int64{1}
	pieces := g.Split(z, 2, &GraphSplitOptions{Axis: -1, Sizes: []int64{1, 2}})
	report("split", g.Mul(pieces[0], pieces[1]))
	columns := g.Unstack(z, 3, &UnstackOptions{Axis: 1})
	report("unstack", g.Mul(columns[0], columns[2]))
	both := g.Stack([]Value{z, x}, &StackOptions{Axis: 1})
	report("stack", g.LowerTriangle(both, &LowerTriangleOptions{Diagonal: -1}))
	report("tile", g.Cumsum(g.Tile(z, []int64{1, 2}), &CumsumOptions{Axis: 1}))
	report("roll", g.Mul(g.Roll(z, last, last), x))
	report("reverse", g.Mul(g.Reverse(z, last), x))
	report("cumsum", g.Cumsum(z, &CumsumOptions{Axis: 1, Exclusive: true, Backward: true}))
	report("cumprod", g.Cumprod(z, &CumprodOptions{Axis: 1}))
	report("sort", g.Mul(g.Sort(z, nil), x))
	order := g.Argsort(z, &ArgsortOptions{Descending: true})
	report("argsort", g.Mul(g.Cast(order, Float32), x))
}

func reportMatrices(g *Graph, x, z Value, report func(string, Value)) {
	var none, one int64 = 0, 1
	outer := g.Einsum([]Value{z, x}, "bi,bj->bij")
	report("einsum", g.Einsum([]Value{outer, z}, "bij,bj->bi"))
	report("band_part", g.BandPart(outer, &BandPartOptions{Lower: &none, Upper: &one}))
	report("lower_triangle", g.LowerTriangle(outer, &LowerTriangleOptions{Diagonal: 1}))
	report("upper_triangle", g.UpperTriangle(outer, nil))
	report("band_mask", g.BandMask(2, 3, &BandMaskOptions{Upper: &none}))
}

func reportRows(g *Graph, y, shift Value, report func(string, Value)) {
	report("gather_nd", g.GatherND(shift, g.Reshape(y, []int64{DimBatch, 1})))
	rows := g.Iota([]int64{2}, &IotaOptions{DType: Int32})
	parts := g.Split(shift, 2, &GraphSplitOptions{Sizes: []int64{1, 2}})
	report("scatter_add", g.ScatterAdd(shift, rows, parts[1]))
	longer := g.Mul(shift, g.Constant(Float32, 1.5))
	report("scatter_max", g.ScatterMax(longer, rows, g.Cumsum(parts[1], nil)))
	report("scatter_replace", g.ScatterReplace(shift, rows, g.Exp(parts[1])))
}

func reportWindows(g *Graph, z, shift Value, report func(string, Value)) {
	sequence := g.Reshape(z, []int64{DimBatch, 3, 1})
	report("conv1d", g.Conv1D(sequence, g.Reshape(shift, []int64{3, 1, 1}), nil))
	report("max_pool1d", g.MaxPool1D(sequence, 2, &MaxPool1DOptions{Stride: 1}))
	report("avg_pool1d", g.AvgPool1D(sequence, 2, &AvgPool1DOptions{Padding: PaddingSame}))
}

func reportImages(g *Graph, z, shift Value, report func(string, Value)) {
	sequence, image := g.Reshape(z, []int64{DimBatch, 3, 1}), g.Reshape(z, []int64{DimBatch, 1, 3, 1})
	volume := g.Reshape(z, []int64{DimBatch, 3, 1, 1, 1})
	byTwo := &Conv1DTransposeOptions{Stride: 2}
	report("conv1d_transpose", g.Conv1DTranspose(sequence, g.Reshape(shift, []int64{3, 1, 1}), byTwo))
	wide := &Conv2DTransposeOptions{Stride: [2]int64{1, 2}, Padding: PaddingValid}
	report("conv2d_transpose", g.Conv2DTranspose(image, g.Reshape(shift, []int64{1, 3, 1, 1}), wide))
	inside := &Conv3DOptions{Padding: PaddingValid}
	deep := g.Reshape(shift, []int64{3, 1, 1, 1, 1})
	report("conv3d", g.Conv3D(volume, deep, inside))
	report("conv3d_transpose", g.Conv3DTranspose(volume, deep, nil))
	report("max_pool3d", g.MaxPool3D(volume, []int64{2, 1, 1}, &MaxPool3DOptions{Stride: [3]int64{1, 1, 1}}))
	report("avg_pool3d", g.AvgPool3D(volume, []int64{3, 1, 1}, nil))
	report("resize2d", g.Resize2D(image, []int64{1, 2}, nil))
}
