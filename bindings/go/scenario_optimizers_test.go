// SPDX-License-Identifier: Apache-2.0

package tutti

import "fmt"

// scenarioOptimizers is a model whose optimizer the run option Params names: tests/bindings/scenarios.txt.
func scenarioOptimizers(g *Graph, mode Mode) error {
	z := g.LayerDense(g.Feature("x"), 3, nil)
	g.SetOutput("z", z)
	if mode == ModePredict {
		return nil
	}
	g.SetLoss(g.LossSparseSoftmaxCrossEntropy(z, g.Label("y"), nil))
	set, ok := optimizers[g.Params()]
	if !ok {
		return fmt.Errorf("there is no optimizer %q", g.Params())
	}
	set(g)
	return nil
}

var (
	tenth, fifth, half, beta, epsilon = 0.1, 0.2, 0.5, 0.8, 0.01
	momentumDecay, ratePower, fall    = 2.0, -0.25, -0.5
)

var optimizers = map[string]func(g *Graph){
	"sgd": func(g *Graph) {
		g.OptimizerSGD(g.ScheduleConstant(0.25), &OptimizerSGDOptions{Momentum: 0.9, Nesterov: true, WeightDecay: 0.1})
	},
	"adam": func(g *Graph) {
		g.OptimizerAdam(g.ScheduleConstant(0.25), &OptimizerAdamOptions{Beta1: &beta, Beta2: &half, Epsilon: &epsilon,
			AMSGrad: true})
	},
	"adamw": func(g *Graph) {
		g.OptimizerAdamW(g.ScheduleConstant(0.25), &OptimizerAdamWOptions{WeightDecay: &tenth, Beta1: &beta,
			Beta2: &half, Epsilon: &epsilon, AMSGrad: true})
	},
	"adagrad": func(g *Graph) {
		g.OptimizerAdagrad(g.ScheduleConstant(0.5), &OptimizerAdagradOptions{RateDecay: 0.5, InitialSum: 0.1,
			Epsilon: &epsilon, WeightDecay: 0.1})
	},
	"adadelta": func(g *Graph) {
		g.OptimizerAdadelta(g.ScheduleConstant(2), &OptimizerAdadeltaOptions{Rho: &beta, Epsilon: &epsilon,
			WeightDecay: 0.1})
	},
	"rmsprop": func(g *Graph) {
		g.OptimizerRMSProp(g.ScheduleConstant(0.125), &OptimizerRMSPropOptions{Rho: &beta, Momentum: 0.5,
			Centered: true, Epsilon: &epsilon, WeightDecay: 0.1})
	},
	"adamax": func(g *Graph) {
		g.OptimizerAdaMax(g.ScheduleConstant(0.25), &OptimizerAdaMaxOptions{Beta1: &beta, Beta2: &half,
			Epsilon: &epsilon, WeightDecay: 0.1})
	},
	"nadam": func(g *Graph) {
		g.OptimizerNAdam(g.ScheduleConstant(0.25), &OptimizerNAdamOptions{Beta1: &beta, Beta2: &half, Epsilon: &epsilon,
			MomentumDecay: &momentumDecay, WeightDecay: 0.1})
	},
	"lion": func(g *Graph) {
		g.OptimizerLion(g.ScheduleConstant(0.125), &OptimizerLionOptions{Beta1: &beta, Beta2: &half, WeightDecay: 0.1})
	},
	"ftrl": func(g *Graph) {
		g.OptimizerFTRL(g.ScheduleConstant(0.5), &OptimizerFTRLOptions{RatePower: &ratePower, InitialSum: &fifth,
			L1: 0.05, L2: 0.1, L2Shrinkage: 0.02, Beta: 0.5})
	},
	"lamb": func(g *Graph) {
		g.OptimizerLAMB(g.ScheduleConstant(0.25), &OptimizerLAMBOptions{Beta1: &beta, Beta2: &half, Epsilon: &epsilon,
			WeightDecay: 0.1})
	},
	"lars": func(g *Graph) {
		g.OptimizerLARS(g.ScheduleConstant(1), &OptimizerLARSOptions{Momentum: &half, Nesterov: true, Trust: 0.1,
			Epsilon: 0.01, WeightDecay: 0.1})
	},
	"muon": func(g *Graph) {
		g.OptimizerMuon(g.ScheduleConstant(0.25), &OptimizerMuonOptions{Momentum: &beta, WithoutNesterov: true,
			Rounds: 3, Scale: MuonScaleLikeAdam, VectorRate: &half, Beta1: &beta, Beta2: &half, Epsilon: &epsilon,
			WeightDecay: 0.1})
	},
	"adafactor": func(g *Graph) {
		g.OptimizerAdafactor(g.ScheduleConstant(0.75), nil)
	},
	"adafactor_fixed": func(g *Graph) {
		g.OptimizerAdafactor(g.ScheduleConstant(0.75), &OptimizerAdafactorOptions{Beta2Decay: &fall, Epsilon: 0.01,
			AddsEpsilon: true, LeastScale: &half, ClipThreshold: 0.5, KeepsRate: true, WeightDecay: 0.1})
	},
	"rows_and_columns": setRowsAndColumns,
	"groups": func(g *Graph) {
		g.ParameterGroup("*bias", &ParameterGroupOptions{LearningRate: g.ScheduleConstant(0.125), WithoutDecay: true})
		g.ParameterGroup("dens?/*", &ParameterGroupOptions{RateFactor: &half, WeightDecay: 0.2})
		g.OptimizerSGD(g.ScheduleConstant(1), &OptimizerSGDOptions{WeightDecay: 0.1})
	},
	"frozen": func(g *Graph) {
		g.ParameterGroup("*bias", &ParameterGroupOptions{Frozen: true})
		g.OptimizerAdagrad(g.ScheduleConstant(0.5), nil)
	},
	"vectors": func(g *Graph) {
		g.ParameterGroup("*", &ParameterGroupOptions{AsVectors: true})
		g.OptimizerMuon(g.ScheduleConstant(0.125), nil)
	},
}

// setRowsAndColumns is for vectors w - rate g; for matrices w - rate g r c, where r = r / 2 + the sum of the squares of
// a row of g, and c that of a column.
func setRowsAndColumns(g *Graph) {
	rate := g.ScheduleConstant(2)
	g.UpdateRule(rate, nil, func(u VariableUpdate) (Value, []Value) {
		return g.Sub(u.Weight, g.Mul(u.LearningRate, u.Gradient)), nil
	})
	options := &UpdateRuleOptions{Stacks: true, Slots: []Slot{
		{Name: "rows", Initial: 0.25, Per: SlotPerRow}, {Name: "columns", Initial: 0.5, Per: SlotPerColumn}}}
	g.UpdateRule(rate, options, func(u VariableUpdate) (Value, []Value) {
		squares := g.Square(u.Gradient)
		follow := func(slot Value, axis int64) Value {
			sum := g.ReduceSum(squares, &ReduceSumOptions{Axes: []int64{axis}})
			return g.Add(g.Mul(slot, g.Constant(Float32, 0.5)), sum)
		}
		rows, columns := follow(u.Slots[0], 2), follow(u.Slots[1], 1)
		step := g.Einsum([]Value{u.Gradient, rows, columns}, "mrc,mr,mc->mrc")
		return g.Sub(u.Weight, g.Mul(u.LearningRate, step)), []Value{rows, columns}
	})
}
