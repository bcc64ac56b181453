// SPDX-License-Identifier: Apache-2.0

package tutti

import "strings"

// The models of the scenarios: tests/bindings/scenarios.txt says what they are.

var scenarioModels = map[string]ModelFunc{
	"classifier": scenarioClassifier, "regression": scenarioRegression,
	"averages": scenarioAverages, "images": scenarioImages, "losses": scenarioLosses,
	"optimizers": scenarioOptimizers,
	"tables":     scenarioTables,
	"functions":  scenarioFunctions,
	"ops":        scenarioOps,
	"layers":     scenarioLayers,
	"blocks":     scenarioBlocks,
	"metrics":    scenarioMetrics,
	"schedules":  scenarioSchedules,
	"wrong": func(g *Graph, mode Mode) error {
		x := g.Feature("x")
		g.SetLoss(g.Matmul(x, x, nil))
		return nil
	},
	"failing": func(g *Graph, mode Mode) error {
		return &Error{Code: Unavailable, Message: "the model is at lunch"}
	},
}

func scenarioClassifier(g *Graph, mode Mode) error {
	hidden := g.LayerDense(g.Feature("x"), 8, &LayerDenseOptions{Activation: ActivationReLU})
	logits := g.LayerDense(g.LayerDropout(hidden, 0.25), 3, nil)
	g.SetOutput("class", g.Argmax(logits, nil))
	g.SetOutput("probability", g.Softmax(logits, nil))
	if mode != ModePredict {
		y := g.Label("y")
		g.MetricAccuracy("accuracy", logits, y, nil)
		g.MetricTopKAccuracy("top_2", logits, y, 2, nil)
		g.SetLoss(g.LossSparseSoftmaxCrossEntropy(logits, y, nil))
		g.OptimizerAdam(g.ScheduleConstant(0.01), nil)
	}
	return nil
}

func scenarioRegression(g *Graph, mode Mode) error {
	x := g.Feature("x")
	var line Value
	g.Scope("line", func() {
		dims := []int64{g.Dims(x)[1], 1}
		line = g.Matmul(x, g.Variable("slope", Float32, dims, &VariableOptions{Initializer: "zeros"}), nil)
	})
	g.SetOutput("y", line)
	if mode != ModePredict {
		target := g.Reshape(g.Cast(g.Label("y"), Float32), []int64{DimBatch, 1})
		g.MetricMean("target", target, nil)
		g.SetLoss(g.LossMeanSquaredError(line, target, nil))
		rate := g.ScheduleExponential(0.05, 0.5, 4, &ScheduleExponentialOptions{Staircase: true})
		g.OptimizerSGD(rate, &OptimizerSGDOptions{Momentum: 0.9, Nesterov: true})
	}
	return nil
}

func scenarioAverages(g *Graph, mode Mode) error {
	x := g.Feature("x")
	dims := []int64{g.Dims(x)[1], 1}
	line := g.Matmul(x, g.Variable("line/slope", Float32, dims, &VariableOptions{Initializer: "zeros"}), nil)
	g.SetOutput("y", line)
	if mode != ModePredict {
		target := g.Reshape(g.Cast(g.Label("y"), Float32), []int64{DimBatch, 1})
		g.SetLoss(g.LossMeanSquaredError(line, target, nil))
		g.OptimizerSGD(g.ScheduleConstant(0.5), &OptimizerSGDOptions{
			ClipValue: 0.2, ClipNorm: 0.3, AverageDecay: 0.8, AverageRamp: true, AverageStart: 1})
	}
	return nil
}

func scenarioImages(g *Graph, mode Mode) error {
	momentum, decay := 0.5, 0.1
	x := g.Reshape(g.Feature("x"), []int64{DimBatch, 6, 6, 1})
	x = g.LayerConv2D(x, 4, 3, &LayerConv2DOptions{WithoutBias: true})
	x = g.LayerMaxPool2D(g.ReLU(g.LayerBatchNorm(x, &LayerBatchNormOptions{Momentum: &momentum})), 2, nil)
	logits := g.LayerDense(g.LayerFlatten(x), 3, nil)
	g.SetOutput("class", g.Argmax(logits, nil))
	if mode != ModePredict {
		y := g.Label("y")
		g.MetricAccuracy("accuracy", logits, y, nil)
		g.SetLoss(g.LossSparseSoftmaxCrossEntropy(logits, y, nil))
		g.SetGradientClipNorm(1)
		g.OptimizerAdamW(g.ScheduleConstant(0.02), &OptimizerAdamWOptions{WeightDecay: &decay})
	}
	return nil
}

// Every loss under its name as a metric, and their sum as the loss.
func scenarioLosses(g *Graph, mode Mode) error {
	x := g.Feature("x")
	shift := g.Variable("shift", Float32, []int64{3}, &VariableOptions{Initializer: "ones"})
	z := g.Add(g.Sub(g.Mul(x, g.Constant(Float32, 4)), g.Constant(Float32, 3)), shift)
	g.SetOutput("z", z)
	if mode != ModePredict {
		y := g.Label("y")
		sum := g.LossL2Penalty(shift, 0.1)
		g.AddMetric("l2_penalty", sum)
		report := func(name string, loss Value) {
			g.AddMetric(name, loss)
			sum = g.Add(sum, loss)
		}
		hot := g.OneHot(y, 3, nil)
		reportNumberLosses(g, z, hot, report)
		reportBinaryLosses(g, z, hot, report)
		reportClassLosses(g, z, y, hot, report)
		reportVectorLosses(g, x, z, y, hot, report)
		g.SetLoss(sum)
		g.OptimizerSGD(g.ScheduleConstant(0.01), nil)
	}
	return nil
}

func reportNumberLosses(g *Graph, z, hot Value, report func(string, Value)) {
	report("mean_absolute_error", g.LossMeanAbsoluteError(z, hot, nil))
	report("mean_squared_error", g.LossMeanSquaredError(z, hot, nil))
	each := g.LossHuber(z, hot, &LossHuberOptions{Delta: 0.5, Reduction: ReductionNone})
	report("huber", g.ReduceMean(each, nil))
	report("log_cosh", g.LossLogCosh(z, hot, nil))
	report("quantile", g.LossQuantile(z, hot, 0.25, nil))
	report("poisson", g.LossPoisson(z, hot, &LossPoissonOptions{LogPredictions: true}))
}

func reportBinaryLosses(g *Graph, z, hot Value, report func(string, Value)) {
	q, half := g.Sigmoid(z), 0.5
	smooth := &LossBinaryCrossEntropyOptions{LabelSmoothing: 0.1}
	report("binary_cross_entropy", g.LossBinaryCrossEntropy(q, hot, smooth))
	positive := &LossSigmoidCrossEntropyOptions{PositiveWeights: []float64{2, 1, 0.5}}
	report("sigmoid_cross_entropy", g.LossSigmoidCrossEntropy(z, hot, positive))
	report("sigmoid_focal", g.LossSigmoidFocal(z, hot, &LossSigmoidFocalOptions{Alpha: 0.25}))
	report("hinge", g.LossHinge(z, hot, &LossHingeOptions{Margin: &half}))
	report("squared_hinge", g.LossSquaredHinge(z, hot, &LossSquaredHingeOptions{ClassWeights: []float64{0.5, 2}}))
	report("dice", g.LossDice(q, hot, &LossDiceOptions{Smooth: 1}))
}

func reportClassLosses(g *Graph, z, y, hot Value, report func(string, Value)) {
	p, half, byClass := g.Softmax(z, nil), 0.5, []float64{1, 2, 3}
	weighted := &LossCategoricalCrossEntropyOptions{ClassWeights: byClass}
	report("categorical_cross_entropy", g.LossCategoricalCrossEntropy(p, hot, weighted))
	report("sparse_categorical_cross_entropy", g.LossSparseCategoricalCrossEntropy(p, y, nil))
	dense := &LossSoftmaxCrossEntropyOptions{ClassWeights: byClass, Reduction: ReductionWeightedMean}
	report("softmax_cross_entropy", g.LossSoftmaxCrossEntropy(z, hot, dense))
	smooth := &LossSparseSoftmaxCrossEntropyOptions{LabelSmoothing: 0.1}
	report("sparse_softmax_cross_entropy", g.LossSparseSoftmaxCrossEntropy(z, y, smooth))
	report("softmax_focal", g.LossSoftmaxFocal(z, hot, &LossSoftmaxFocalOptions{Gamma: &half}))
	report("sparse_softmax_focal", g.LossSparseSoftmaxFocal(z, y, nil))
	report("categorical_hinge", g.LossCategoricalHinge(z, hot, nil))
	report("multi_margin", g.LossMultiMargin(z, y, &LossMultiMarginOptions{Squared: true}))
}

func reportVectorLosses(g *Graph, x, z, y, hot Value, report func(string, Value)) {
	r, far, near := g.Softmax(x, nil), 3.0, 0.2
	report("kullback_leibler", g.LossKullbackLeibler(z, r, &LossKullbackLeiblerOptions{Form: FormLogits}))
	report("cosine_similarity", g.LossCosineSimilarity(z, hot, nil))
	similar := g.Minimum(g.Cast(y, Float32), g.Constant(Float32, 1))
	report("contrastive", g.LossContrastive(z, x, similar, &LossContrastiveOptions{Margin: &far}))
	report("triplet", g.LossTriplet(z, x, r, &LossTripletOptions{Margin: &near, Swap: true}))
	// Two frames, the label 1 where y is not 0, which has no frame and no label.
	frames := g.Reshape(g.Concat([]Value{z, x}, &ConcatOptions{Axis: 1}), []int64{DimBatch, 2, 3})
	count := g.Cast(similar, Int32)
	last := &LossCTCOptions{InputLengths: g.Cast(g.Add(similar, similar), Int32), LabelLengths: count, Blank: 2}
	report("ctc", g.LossCTC(frames, g.Reshape(count, []int64{DimBatch, 1}), last))
}

func scenarioSchedules(g *Graph, mode Mode) error {
	x := g.Feature("x")
	dims := []int64{g.Dims(x)[1], 1}
	line := g.Matmul(x, g.Variable("line/slope", Float32, dims, &VariableOptions{Initializer: "zeros"}), nil)
	g.SetOutput("y", line)
	if mode != ModePredict {
		target := g.Reshape(g.Cast(g.Label("y"), Float32), []int64{DimBatch, 1})
		g.SetLoss(g.LossMeanSquaredError(line, target, nil))
		g.OptimizerSGD(allSchedules(g), nil)
	}
	return nil
}

// Every schedule under its name as a metric; the last, a switch between two others.
func allSchedules(g *Graph) Value {
	report := func(name string, rate Value) Value {
		g.AddMetric(name, rate)
		return rate
	}
	half := 0.5
	report("constant", g.ScheduleConstant(0.3))
	decay := report("exponential", g.ScheduleExponential(0.1, 0.5, 10, nil))
	report("natural_exponential", g.ScheduleNaturalExponential(0.1, 0.5, 10, nil))
	report("inverse_time", g.ScheduleInverseTime(0.1, 0.5, 3, &ScheduleInverseTimeOptions{Staircase: true}))
	steps := report("step", g.ScheduleStep(0.1, 5, 0.5))
	report("polynomial", g.SchedulePolynomial(0.1, 20, &SchedulePolynomialOptions{FinalValue: 0.02, Power: 2}))
	report("cosine", g.ScheduleCosine(0.1, 20, &ScheduleCosineOptions{WarmupSteps: 6}))
	growing := &ScheduleCosineRestartsOptions{PeriodFactor: 2, ValueFactor: &half}
	waves := report("cosine_restarts", g.ScheduleCosineRestarts(0.1, 4, growing))
	report("one_cycle", g.ScheduleOneCycle(0.1, 20, &ScheduleOneCycleOptions{Anneal: AnnealLinear}))
	report("piecewise", g.SchedulePiecewise([]int64{3, 9}, []float64{0.1, 0.05, 0.01}))
	report("warmup", g.ScheduleWarmup(decay, 8, &ScheduleWarmupOptions{StartFraction: 0.25, Shifted: true}))
	report("own", g.Rsqrt(g.Add(g.CompletedSteps(), g.Constant(Float32, 1))))
	return report("switch", g.ScheduleSwitch(steps, waves, 7, &ScheduleSwitchOptions{Shifted: true}))
}

// Every metric under its name.
func scenarioMetrics(g *Graph, mode Mode) error {
	x := g.Feature("x")
	shift := g.Variable("shift", Float32, []int64{3}, &VariableOptions{Initializer: "ones"})
	four, three := g.Constant(Float32, 4), g.Constant(Float32, 3)
	z := g.Add(g.Sub(g.Mul(x, four), three), shift)
	g.SetOutput("z", z)
	if mode != ModePredict {
		y := g.Label("y")
		hot := g.OneHot(y, 3, nil)
		classMetrics(g, z, y, hot)
		numberMetrics(g, z, y, hot)
		g.SetLoss(g.LossMeanSquaredError(z, hot, nil))
		g.OptimizerSGD(g.ScheduleConstant(0.5), nil)
	}
	return nil
}

func classMetrics(g *Graph, z, y, hot Value) {
	g.MetricAccuracy("accuracy", z, y, nil)
	g.MetricTopKAccuracy("top_k_accuracy", z, y, 2, nil)
	threshold, beta := 0.75, 2.0
	logits := &MetricBinaryAccuracyOptions{Threshold: &threshold, FromLogits: true}
	g.MetricBinaryAccuracy("binary_accuracy", z, hot, logits)
	g.MetricPrecision("precision", z, y, &MetricPrecisionOptions{Average: AverageMacro})
	g.MetricRecall("recall", z, hot, &MetricRecallOptions{FromLogits: true})
	g.MetricFBeta("f_beta", z, y, &MetricFBetaOptions{Beta: &beta, Average: AverageWeighted})
	g.MetricSpecificity("specificity", z, y, &MetricSpecificityOptions{Average: AverageNone})
	g.NameClasses("specificity", "low", "middle", "high")
	g.MetricBalancedAccuracy("balanced_accuracy", z, y, &MetricBalancedAccuracyOptions{Adjusted: true})
	g.MetricMatthewsCorrelation("matthews_correlation", z, y, nil)
	g.MetricMeanIOU("mean_iou", z, y, nil)
	g.MetricConfusionMatrix("confusion_matrix", z, y, nil)
	thresholds := &MetricAUCOptions{Thresholds: []float64{0.25, 0.5, 0.75}, FromLogits: true}
	g.MetricAUC("auc", z, hot, thresholds)
}

func numberMetrics(g *Graph, z, y, hot Value) {
	g.MetricMean("mean", z, nil)
	g.MetricMeanSquaredError("mean_squared_error", z, hot, nil)
	g.MetricRootMeanSquaredError("root_mean_squared_error", z, hot, nil)
	g.MetricMeanAbsoluteError("mean_absolute_error", z, hot, nil)
	half := &MetricMeanAbsolutePercentageErrorOptions{Epsilon: 0.5}
	g.MetricMeanAbsolutePercentageError("mean_absolute_percentage_error", z, hot, half)
	g.MetricRSquared("r_squared", z, hot, nil)
	g.MetricLogLoss("log_loss", z, y, &MetricLogLossOptions{FromLogits: true})
	g.MetricBinaryLogLoss("binary_log_loss", z, hot, &MetricBinaryLogLossOptions{FromLogits: true})
	g.MetricPerplexity("perplexity", z, y, &MetricPerplexityOptions{FromLogits: true})
	g.MetricCosineSimilarity("cosine_similarity", z, hot, nil)
}

// scenarioTables looks rows of a table up; the run option Params names the optimizer, lazy or not.
func scenarioTables(g *Graph, mode Mode) error {
	x := g.Feature("x")
	z := g.LayerEmbedding(g.Argmax(x, nil), g.Dims(x)[1], 3, &LayerEmbeddingOptions{TableInitializer: "ones"})
	g.SetOutput("z", z)
	if mode == ModePredict {
		return nil
	}
	g.SetLoss(g.LossSparseSoftmaxCrossEntropy(z, g.Label("y"), nil))
	isLazy := strings.HasPrefix(g.Params(), "lazy_")
	switch strings.TrimPrefix(g.Params(), "lazy_") {
	case "adam":
		g.OptimizerAdam(g.ScheduleConstant(0.25), &OptimizerAdamOptions{Lazy: isLazy})
	case "sgd":
		g.OptimizerSGD(g.ScheduleConstant(0.25), &OptimizerSGDOptions{Momentum: 0.9, Lazy: isLazy})
	case "rule":
		lazyRule(g)
	}
	return nil
}

// lazyRule is w - 0.125 m with m = m / 2 + g, of the rows that a step looks up.
func lazyRule(g *Graph) {
	options := &UpdateRuleOptions{Slots: []Slot{{Name: "m"}}, Lazy: true}
	g.UpdateRule(g.ScheduleConstant(0.125), options, func(u VariableUpdate) (Value, []Value) {
		m := g.Add(g.Mul(u.Slots[0], g.Constant(Float32, 0.5)), u.Gradient)
		return g.Sub(u.Weight, g.Mul(u.LearningRate, m)), []Value{m}
	})
}
