// SPDX-License-Identifier: Apache-2.0

package tutti

// scenarioOps has each op that no other model uses as a metric, and a tenth of their sum as the loss.
func scenarioOps(g *Graph, mode Mode) error {
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
	reportCurves(g, z, report)
	reportPairs(g, x, z, report)
	reportAnswers(g, z, report)
	reportExtremes(g, z, shift, report)
	reportShapes(g, x, z, report)
	reportPixels(g, x, z, shift, report)
	if mode == ModeTrain {
		reportBatchNorm(g, x, z, shift, report)
	}
	reportNorms(g, x, z, shift, report)
	reportAttention(g, x, z, report)
	reportEntropies(g, x, y, z, report)
	reportDraws(g, report)
	g.SetLoss(g.Mul(sum, g.Constant(Float32, 0.1)))
	g.OptimizerSGD(g.ScheduleConstant(0.1), nil)
	return nil
}

// sideBySide has the columns of x, then those of z: [rows, 6].
func sideBySide(g *Graph, x, z Value) Value {
	return g.Concat([]Value{x, z}, &ConcatOptions{Axis: 1})
}

func reportCurves(g *Graph, z Value, report func(string, Value)) {
	half, quarter, power := 0.5, 0.25, g.Exp(z)
	report("identity", g.Identity(z))
	report("stop_gradient", g.Mul(z, g.StopGradient(z)))
	report("abs", g.Abs(z))
	report("sign", g.Sign(z))
	report("log1p", g.Log1p(power))
	report("expm1", g.Expm1(z))
	report("sqrt", g.Sqrt(power))
	report("sin", g.Sin(z))
	report("cos", g.Cos(z))
	report("gelu", g.GELU(z, nil))
	report("silu", g.SiLU(z))
	report("softplus", g.Softplus(z))
	report("elu", g.ELU(z, &ELUOptions{Alpha: &half}))
	report("leaky_relu", g.LeakyReLU(z, &LeakyReLUOptions{Alpha: &quarter}))
	report("floor", g.Floor(z))
	report("ceil", g.Ceil(z))
	report("round", g.Round(z))
	report("erf", g.Erf(z))
}

func reportPairs(g *Graph, x, z Value, report func(string, Value)) {
	above := g.Add(x, g.Constant(Float32, 1))
	report("pow", g.Pow(above, z))
	report("maximum", g.Maximum(z, x))
	report("select", g.Select(g.Greater(z, g.Constant(Float32, 0)), z, x))
	report("mod", g.Mod(z, above))
	report("floor_divide", g.FloorDivide(z, above))
}

func reportAnswers(g *Graph, z Value, report func(string, Value)) {
	floor, nearest, ceiling := g.Floor(z), g.Round(z), g.Ceil(z)
	isPositive, isDown := g.Greater(z, g.Constant(Float32, 0)), g.Equal(nearest, floor)
	report("is_finite", g.IsFinite(g.Log(z)))
	report("logical_not", g.LogicalNot(isPositive))
	report("logical_and", g.LogicalAnd(isPositive, isDown))
	report("logical_or", g.LogicalOr(isPositive, isDown))
	report("logical_xor", g.LogicalXor(isPositive, isDown))
	report("equal", isDown)
	report("not_equal", g.NotEqual(nearest, ceiling))
	report("less_equal", g.LessEqual(ceiling, nearest))
	report("greater_equal", g.GreaterEqual(floor, nearest))
}

func reportExtremes(g *Graph, z, shift Value, report func(string, Value)) {
	last := []int64{1}
	report("reduce_min", g.ReduceMin(z, &ReduceMinOptions{Axes: last}))
	report("reduce_prod", g.ReduceProd(z, &ReduceProdOptions{Axes: last}))
	report("argmin", g.Argmin(z, nil))
	good, bad := g.AllFinite(shift), g.AllFinite(g.Log(g.Neg(shift)))
	report("all_finite", g.Sub(g.Cast(good, Float32), g.Cast(bad, Float32)))
}

func reportShapes(g *Graph, x, z Value, report func(string, Value)) {
	both := g.Reshape(sideBySide(g, x, z), []int64{DimBatch, 2, 3})
	rising := &IotaOptions{DType: Float32}
	turned := g.Transpose(both, &TransposeOptions{Permutation: []int64{0, 2, 1}})
	report("transpose", g.Mul(turned, g.Iota([]int64{2}, rising)))
	spread := g.BroadcastTo(g.Reshape(z, []int64{DimBatch, 3, 1}), []int64{DimBatch, 3, 2})
	report("broadcast_to", g.Mul(spread, g.Iota([]int64{3, 2}, rising)))
	report("gather", g.Gather(z, g.Iota([]int64{2}, nil), &GatherOptions{Axis: 1}))
	padded := g.Pad(z, []int64{0, 1}, []int64{0, 2}, &PadOptions{Value: 0.5})
	report("pad", g.Mul(padded, g.Iota([]int64{6}, rising)))
}

func reportPixels(g *Graph, x, z, shift Value, report func(string, Value)) {
	image := g.Reshape(sideBySide(g, x, z), []int64{DimBatch, 2, 3, 1})
	kernel := g.Reshape(shift, []int64{1, 3, 1, 1})
	report("conv2d", g.Conv2D(image, kernel, &Conv2DOptions{Dilation: [2]int64{1, 2}}))
	report("max_pool2d", g.MaxPool2D(image, []int64{2, 2}, &MaxPool2DOptions{Stride: []int64{1, 1}}))
	report("avg_pool2d", g.AvgPool2D(image, []int64{2, 2}, &AvgPool2DOptions{Padding: PaddingSame}))
}

// reportBatchNorm is over the rows of the batch, and so only for training.
func reportBatchNorm(g *Graph, x, z, shift Value, report func(string, Value)) {
	tenth, half := 0.1, g.Mul(shift, g.Constant(Float32, 0.5))
	normal, _, _ := g.BatchNormTraining(z, shift, half, &BatchNormTrainingOptions{Epsilon: &tenth})
	report("batch_norm_training", g.Mul(normal, x))
}

func reportNorms(g *Graph, x, z, shift Value, report func(string, Value)) {
	tenth, half := 0.1, g.Mul(shift, g.Constant(Float32, 0.5))
	report("batch_norm_inference", g.BatchNormInference(z, shift, half, shift, g.Exp(half), nil))
	normal, _, _ := g.LayerNorm(z, shift, half, nil)
	report("layer_norm", g.Mul(normal, x))
	normal, _ = g.RMSNorm(z, shift, &RMSNormOptions{Epsilon: &tenth})
	report("rms_norm", normal)
	sequence := g.Reshape(sideBySide(g, x, z), []int64{DimBatch, 2, 3})
	normal, _, _ = g.GroupNorm(sequence, shift, half, 3, nil)
	report("group_norm", g.Mul(normal, sequence))
}

func reportAttention(g *Graph, x, z Value, report func(string, Value)) {
	dims := []int64{DimBatch, 3, 1, 1}
	queries, keys := g.Reshape(z, dims), g.Reshape(x, dims)
	seen, _ := g.Attention(queries, keys, queries, &AttentionOptions{Causal: true, Scale: 0.5})
	report("attention", seen)
}

func reportEntropies(g *Graph, x, y, z Value, report func(string, Value)) {
	hot := g.OneHot(y, 3, nil)
	smooth := &SparseSoftmaxCrossEntropyOptions{LabelSmoothing: 0.1}
	report("log_softmax", g.Mul(g.LogSoftmax(z, nil), x))
	report("sparse_softmax_cross_entropy", g.SparseSoftmaxCrossEntropy(z, y, smooth))
	report("softmax_cross_entropy", g.SoftmaxCrossEntropy(z, hot, nil))
	report("sigmoid_cross_entropy", g.SigmoidCrossEntropy(z, hot))
	report("in_top_k", g.InTopK(z, y, &InTopKOptions{K: 2}))
}

// reportDraws reports what is certain of so many draws: of what is kept or dropped the range, of others the number that
// all of them are next to.
func reportDraws(g *Graph, report func(string, Value)) {
	report64 := func(name string, value Value) {
		along := []int64{1}
		highest, lowest := &ReduceMaxOptions{Axes: along}, &ReduceMinOptions{Axes: along}
		report(name, g.Sub(g.ReduceMax(value, highest), g.ReduceMin(value, lowest)))
	}
	high, narrow, cut := 4.0, 0.05, 0.2
	one, draws := g.Constant(Float32, 1), []int64{DimBatch, 64}
	report64("dropout", g.Dropout(g.BroadcastTo(one, draws), 0.25, nil))
	key := g.BroadcastTo(one, []int64{DimBatch, 1, 1, 1})
	kept, _ := g.DropoutAttention(g.BroadcastTo(one, []int64{DimBatch, 64, 1, 1}), key, key, 0.25, nil)
	report64("dropout_attention", kept)
	report("random_uniform", g.Floor(g.RandomUniform(draws, &RandomUniformOptions{Low: 3, High: &high})))
	report("random_normal", g.Round(g.RandomNormal(draws, &RandomNormalOptions{Mean: 5, Stddev: &narrow})))
	within := &RandomTruncatedNormalOptions{Mean: 4, Stddev: &cut}
	report("random_truncated_normal", g.Round(g.RandomTruncatedNormal(draws, within)))
}
