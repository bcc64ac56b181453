// SPDX-License-Identifier: Apache-2.0

package tutti

// The models of the scenarios: tests/bindings/scenarios.txt says what they are.

var scenarioModels = map[string]ModelFunc{
	"classifier": scenarioClassifier, "regression": scenarioRegression,
	"averages": scenarioAverages, "images": scenarioImages,
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
