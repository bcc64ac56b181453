// SPDX-License-Identifier: Apache-2.0

package tutti

// The models of the scenarios: tests/bindings/scenarios.txt says what they are.

var scenarioModels = map[string]ModelFunc{
	"classifier": scenarioClassifier, "regression": scenarioRegression,
	"averages": scenarioAverages, "images": scenarioImages,
	"wrong": func(g *Graph, mode Mode) error {
		x := g.GetFeature("x")
		g.SetLoss(g.Matmul(x, x))
		return nil
	},
	"failing": func(g *Graph, mode Mode) error {
		return &Error{Code: Unavailable, Message: "the model is at lunch"}
	},
}

func scenarioClassifier(g *Graph, mode Mode) error {
	hidden := g.LayerDense(g.GetFeature("x"), 8, LayerDenseOptions{Activation: LayerDenseActivationRelu})
	logits := g.LayerDense(g.LayerDropout(hidden, 0.25), 3)
	g.SetOutput("class", g.Argmax(logits))
	g.SetOutput("probability", g.Softmax(logits))
	if mode != ModePredict {
		y := g.GetLabel("y")
		g.MetricAccuracy("accuracy", logits, y)
		g.MetricTopKAccuracy("top_2", logits, y, 2)
		g.SetLoss(g.LossSparseSoftmaxCrossEntropy(logits, y))
		g.OptimizerAdam(g.ScheduleConstant(0.01))
	}
	return nil
}

func scenarioRegression(g *Graph, mode Mode) error {
	x := g.GetFeature("x")
	var line Value
	g.Scope("line", func() {
		dims := []int64{g.Dims(x)[1], 1}
		line = g.Matmul(x, g.Variable("slope", Float32, dims, VariableOptions{Initializer: "zeros"}))
	})
	g.SetOutput("y", line)
	if mode != ModePredict {
		target := g.Reshape(g.Cast(g.GetLabel("y"), Float32), []int64{DimBatch, 1})
		g.MetricMean("target", target)
		g.SetLoss(g.LossMeanSquaredError(line, target))
		rate := g.ScheduleExponential(0.05, 0.5, 4, ScheduleExponentialOptions{Staircase: true})
		g.OptimizerSgd(rate, OptimizerSgdOptions{Momentum: 0.9, Nesterov: true})
	}
	return nil
}

func scenarioAverages(g *Graph, mode Mode) error {
	x := g.GetFeature("x")
	dims := []int64{g.Dims(x)[1], 1}
	line := g.Matmul(x, g.Variable("line/slope", Float32, dims, VariableOptions{Initializer: "zeros"}))
	g.SetOutput("y", line)
	if mode != ModePredict {
		target := g.Reshape(g.Cast(g.GetLabel("y"), Float32), []int64{DimBatch, 1})
		g.SetLoss(g.LossMeanSquaredError(line, target))
		g.OptimizerSgd(g.ScheduleConstant(0.5), OptimizerSgdOptions{
			ClipValue: 0.2, ClipNorm: 0.3, AverageDecay: 0.8, AverageRamp: true, AverageStart: 1})
	}
	return nil
}

func scenarioImages(g *Graph, mode Mode) error {
	momentum, decay := 0.5, 0.1
	x := g.Reshape(g.GetFeature("x"), []int64{DimBatch, 6, 6, 1})
	x = g.LayerConv2d(x, 4, 3, LayerConv2dOptions{WithoutBias: true})
	x = g.LayerMaxPool2d(g.Relu(g.LayerBatchNorm(x, LayerBatchNormOptions{Momentum: &momentum})), 2)
	logits := g.LayerDense(g.LayerFlatten(x), 3)
	g.SetOutput("class", g.Argmax(logits))
	if mode != ModePredict {
		y := g.GetLabel("y")
		g.MetricAccuracy("accuracy", logits, y)
		g.SetLoss(g.LossSparseSoftmaxCrossEntropy(logits, y))
		g.SetGradientClipNorm(1)
		g.OptimizerAdamw(g.ScheduleConstant(0.02), OptimizerAdamwOptions{WeightDecay: &decay})
	}
	return nil
}
