// SPDX-License-Identifier: Apache-2.0

package tutti

import "fmt"

const scenarioClasses, scenarioLength, scenarioHidden, scenarioSide = 3, 3, 5, 2

// scenarioBlocks is a model with the layers that the run option Params names: tests/bindings/scenarios.txt.
func scenarioBlocks(g *Graph, mode Mode) error {
	layer, ok := scenarioBlock[g.Params()]
	if !ok {
		return fmt.Errorf("there is no layer %q", g.Params())
	}
	z := layer(g, g.Feature("x"))
	g.SetOutput("z", z)
	if mode != ModePredict {
		g.SetLoss(g.LossSparseSoftmaxCrossEntropy(z, g.Label("y"), nil))
		g.OptimizerSGD(g.ScheduleConstant(0.25), nil)
	}
	return nil
}

var scenarioBlock = map[string]func(g *Graph, x Value) Value{
	"constrained": func(g *Graph, x Value) Value {
		z := g.LayerDense(x, scenarioClasses, &LayerDenseOptions{KernelConstraint: "max_norm(0.5)"})
		g.ParameterConstraint("*bias", "non_negative")
		return z
	},
	"given": scenarioGiven,
	"weight_norm": func(g *Graph, x Value) Value {
		return g.LayerDense(x, scenarioClasses,
			&LayerDenseOptions{KernelNormalization: KernelNormalizationWeightNorm})
	},
	"spectral_norm": func(g *Graph, x Value) Value {
		return g.LayerDense(x, scenarioClasses,
			&LayerDenseOptions{KernelNormalization: KernelNormalizationSpectralNorm})
	},
	"encoder": func(g *Graph, x Value) Value {
		placed := g.LayerSinusoidalPositions(scenarioSequence(g, x), nil)
		y := g.LayerTransformerEncoder(placed, 2, scenarioHidden,
			&LayerTransformerEncoderOptions{Activation: ActivationGELU})
		return g.LayerDense(g.LayerFlatten(y), scenarioClasses, nil)
	},
	"decoder": func(g *Graph, x Value) Value {
		placed := g.LayerLearnedPositions(scenarioSequence(g, x), scenarioLength,
			&LayerLearnedPositionsOptions{Initializer: "glorot_uniform"})
		y, _, _ := g.LayerTransformerDecoder(placed, 1, scenarioHidden,
			&LayerTransformerDecoderOptions{Activation: ActivationGELU, PreNorm: true, RotaryBase: 100})
		return g.LayerDense(g.LayerFlatten(g.LayerRotaryPositions(y, nil)), scenarioClasses, nil)
	},
	"norms": func(g *Graph, x Value) Value {
		y := g.LayerGroupNorm(scenarioSequence(g, x), 2, nil)
		y = g.LayerLayerNorm(g.LayerInstanceNorm(g.Tanh(y), nil), nil)
		y = g.LayerMultiHeadAttention(g.LayerRMSNorm(g.Tanh(y), nil), 2, nil)
		return g.LayerDense(g.LayerFlatten(y), scenarioClasses, nil)
	},
	"residual": func(g *Graph, x Value) Value {
		channels := g.Dims(x)[1] / (scenarioSide * scenarioSide)
		image := g.Reshape(x, []int64{DimBatch, scenarioSide, scenarioSide, channels})
		y := g.LayerResidualBlock2D(image, channels, &LayerResidualBlock2DOptions{KernelInitializer: "glorot_uniform"})
		return g.LayerDense(g.LayerFlatten(y), scenarioClasses, nil)
	},
}

// scenarioSequence is x as a sequence of three positions.
func scenarioSequence(g *Graph, x Value) Value {
	return g.Reshape(x, []int64{DimBatch, scenarioLength, g.Dims(x)[1] / scenarioLength})
}

func scenarioGiven(g *Graph, x Value) Value {
	z := g.LayerDense(x, scenarioClasses, nil)
	columns := g.Dims(x)[1]
	values := make([]float32, columns*scenarioClasses)
	for i := range values {
		values[i] = float32(i*5%7-3) / 8
	}
	kernel, err := NewTensor(values, columns, scenarioClasses)
	if err == nil {
		g.SetInitialValue("dense/kernel", kernel)
		kernel.Close()
	}
	return z
}
