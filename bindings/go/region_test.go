// SPDX-License-Identifier: Apache-2.0

package tutti

import (
	"fmt"
	"math"
	"testing"
)

// regionModel is w x for rows x of three numbers, made of a loop, a choice, a part that is computed again and a
// function whose gradient is half of what it should be.
func regionModel(g *Graph, mode Mode) error {
	x := g.Feature("x")
	w := g.Variable("w", Float32, nil, &VariableOptions{Initializer: "constant", Parameter: 2})
	zero := g.Constant(Float32, 0)
	first := g.Mul(g.ReduceSum(x, &ReduceSumOptions{Axes: []int64{1}}), zero)
	last, all := g.Scan([]Value{first}, []Value{x}, &LoopOptions{Axis: 1},
		func(states, elements []Value) ([]Value, []Value) {
			next := g.Add(states[0], g.Mul(elements[0], w))
			return []Value{next}, []Value{next}
		})
	early := g.Less(g.CompletedSteps(), g.Constant(Float32, 1))
	chosen := g.Cond(early, func() []Value { return last }, func() []Value { return []Value{g.Neg(last[0])} })
	again := g.Call(chosen, func(inputs []Value) []Value { return []Value{g.Square(inputs[0])} })
	half := g.CustomGradient(again,
		func(inputs []Value) []Value { return []Value{g.Mul(inputs[0], g.Constant(Float32, 1))} },
		func(inputs, outputs, gradients []Value) []Value {
			return []Value{g.Mul(gradients[0], g.Constant(Float32, 0.5))}
		})
	g.SetOutput("p", half[0])
	g.SetOutput("sums", all[0])
	if mode != ModePredict {
		g.SetLoss(g.ReduceMean(half[0], nil))
		g.OptimizerSGD(g.Constant(Float32, 0.1), nil)
	}
	return nil
}

// Each recurrent layer gives outputs of all positions, and its last states.
func recurrentModel(g *Graph, mode Mode) error {
	x := g.Feature("x")
	lengths := g.Cast(g.Mul(g.ReduceMax(x, &ReduceMaxOptions{Axes: []int64{1, 2}}), g.Constant(Float32, 0)), Int32)
	rnn, _ := g.LayerRNN(x, 2, &LayerRNNOptions{Bidirectional: true})
	lstm, state, cell := g.LayerLSTM(rnn, 3, &LayerLSTMOptions{Layers: 2, Lengths: lengths})
	first := g.Slice(state, []int64{0, 1, 0}, []int64{-1, 1, -1}, nil)
	gru, last := g.LayerGRU(lstm, 3, &LayerGRUOptions{InitialState: first})
	g.SetOutput("gru", gru)
	g.SetOutput("last", last)
	g.SetOutput("cell", cell)
	if mode != ModePredict {
		g.SetLoss(g.ReduceMean(g.Square(gru), nil))
		g.OptimizerSGD(g.Constant(Float32, 0.1), nil)
	}
	return nil
}

func TestRecurrentLayers(t *testing.T) {
	live(t)
	estimator := must[*Estimator](t)(NewEstimator(recurrentModel, nil))
	closed(t, estimator)
	p := AddSlices(NewPipeline(nil), "x", Feature, []float32{1, 2, 3, 4, 5, 6, 7, 8}, 2, 4, 1)
	dataset := must[*Dataset](t)(p.Batch(2, nil).Build())
	closed(t, dataset)
	must[*Result](t)(estimator.Train(background, dataset, nil))
	predictor := must[*Predictor](t)(estimator.Predictor(nil))
	closed(t, predictor)
	batch := must[*Batch](t)(predictor.RunAll(background, dataset))
	closed(t, batch)
	for name, want := range map[string]string{"gru": "[2 4 3]", "last": "[2 1 3]", "cell": "[2 2 3]"} {
		output := must[*Tensor](t)(batch.Output(name))
		closed(t, output)
		if got := fmt.Sprint(output.Dims()); got != want {
			t.Error(name, got)
		}
	}
}

func TestRegions(t *testing.T) {
	live(t)
	estimator := must[*Estimator](t)(NewEstimator(regionModel, nil))
	closed(t, estimator)
	rows := []float32{1, 2, 3, -1, 0.5, 1}
	p := NewPipeline(nil)
	dataset := must[*Dataset](t)(AddSlices(p, "x", Feature, rows, 2, 3).Repeat(nil).Batch(2, nil).Build())
	closed(t, dataset)
	w := 2.0
	for step := int64(1); step <= 2; step++ {
		result := must[*Result](t)(estimator.Train(background, dataset, &TrainOptions{Steps: 1}))
		// The mean of (6 w)^2 and (w / 2)^2, and half of its gradient.
		if want := (36 + 0.25) / 2 * w * w; math.Abs(result.Loss-want) > 1e-4*want {
			t.Error(step, result.Loss, want)
		}
		w -= 0.1 * 0.5 * (36 + 0.25) * w
		variable := must[*Tensor](t)(estimator.ReadVariable("w"))
		if got := must[[]float32](t)(Values[float32](variable))[0]; math.Abs(float64(got)-w) > 1e-4 {
			t.Error(step, got, w)
		}
		variable.Close()
	}
}

// ruledModel has the loss w[0] x[0] + w[1] x[1], and as its optimizer momentum whose steps become shorter, for
// variables of one type.
func ruledModel(dtype DType) ModelFunc {
	return func(g *Graph, mode Mode) error {
		x := g.Cast(g.Feature("x"), dtype)
		w := g.Variable("w", dtype, []int64{2}, &VariableOptions{Initializer: "constant", Parameter: 2})
		y := g.ReduceSum(g.Mul(x, w), &ReduceSumOptions{Axes: []int64{1}})
		g.SetOutput("y", y)
		if mode == ModePredict {
			return nil
		}
		g.SetLoss(g.Cast(g.ReduceMean(y, nil), Float32))
		options := &UpdateRuleOptions{Slots: []Slot{{Name: "velocity", Initial: 1}}, WeightDecay: 0.25, DType: dtype,
			ClipValue: 8, ClipNorm: 5, AverageDecay: 0.5, AverageRamp: true, AverageStart: 1}
		g.UpdateRule(g.ScheduleConstant(0.1), options, func(u VariableUpdate) (Value, []Value) {
			velocity := g.Add(g.Mul(u.Slots[0], g.Constant(dtype, 0.5)), u.Gradient)
			decayed := g.Add(velocity, g.Mul(u.WeightDecay, u.Weight))
			rate := g.Div(u.LearningRate, g.Cast(u.Count, dtype))
			return g.Sub(u.Weight, g.Mul(rate, decayed)), []Value{velocity}
		})
		return nil
	}
}

func ruled[T float32 | float64](t *testing.T, dtype DType) {
	live(t)
	estimator := must[*Estimator](t)(NewEstimator(ruledModel(dtype), nil))
	closed(t, estimator)
	p := AddSlices(NewPipeline(nil), "x", Feature, []float32{5, 10, 7, 14}, 2, 2)
	dataset := must[*Dataset](t)(p.Repeat(nil).Batch(2, nil).Build())
	closed(t, dataset)
	must[*Result](t)(estimator.Train(background, dataset, &TrainOptions{Steps: 2}))
	// The gradient 6, 12 becomes 6, 8, and then 3, 4. The velocity is 3.5, 4.5 and 4.75, 6.25. The weight is first
	// 2 - 0.1 (3.5 + 0.5) = 1.6 and 2 - 0.1 (4.5 + 0.5) = 1.5, then 1.6 - 0.05 (4.75 + 0.4) and
	// 1.5 - 0.05 (6.25 + 0.375). The average is first the weight, and then has a decay of 2 / 11.
	for name, want := range map[string][2]float64{"w": {1.3425, 1.16875}, "w/velocity": {4.75, 6.25},
		"w/average": {(2*1.6 + 9*1.3425) / 11, (2*1.5 + 9*1.16875) / 11}} {
		variable := must[*Tensor](t)(estimator.ReadVariable(name))
		for i, got := range must[[]T](t)(Values[T](variable)) {
			if math.Abs(float64(got)-want[i]) > 1e-5 {
				t.Error(dtype, name, i, got, want[i])
			}
		}
		variable.Close()
	}
}

func TestUpdateRule(t *testing.T) {
	ruled[float32](t, Float32)
	ruled[float64](t, Float64)
}

// A rule without slots is plain descent: 2 - 0.1 * 6 and 2 - 0.1 * 12.
func TestUpdateRuleWithoutSlots(t *testing.T) {
	live(t)
	estimator := must[*Estimator](t)(NewEstimator(func(g *Graph, mode Mode) error {
		w := g.Variable("w", Float32, []int64{2}, &VariableOptions{Initializer: "constant", Parameter: 2})
		y := g.Mul(g.Feature("x"), w)
		g.SetOutput("y", y)
		if mode != ModePredict {
			g.SetLoss(g.Mul(g.ReduceMean(y, nil), g.Constant(Float32, 2)))
			g.UpdateRule(g.Constant(Float32, 0.1), nil, func(u VariableUpdate) (Value, []Value) {
				return g.Sub(u.Weight, g.Mul(u.LearningRate, u.Gradient)), nil
			})
		}
		return nil
	}, nil))
	closed(t, estimator)
	p := AddSlices(NewPipeline(nil), "x", Feature, []float32{5, 10, 7, 14}, 2, 2)
	dataset := must[*Dataset](t)(p.Batch(2, nil).Build())
	closed(t, dataset)
	must[*Result](t)(estimator.Train(background, dataset, nil))
	variable := must[*Tensor](t)(estimator.ReadVariable("w"))
	closed(t, variable)
	got := must[[]float32](t)(Values[float32](variable))
	if math.Abs(float64(got[0])-1.4) > 1e-6 || math.Abs(float64(got[1])-0.8) > 1e-6 {
		t.Error(got)
	}
}

// The rule for matrices is used where a variable is one: w - 0.1 * g (wt w) with w = 2 I, where g is 12 in the first
// row and 24 in the second.
func TestUpdateRuleForMatrices(t *testing.T) {
	live(t)
	estimator := must[*Estimator](t)(NewEstimator(func(g *Graph, mode Mode) error {
		w := g.Variable("w", Float32, []int64{2, 2}, &VariableOptions{Initializer: "identity(2)"})
		y := g.Matmul(g.Feature("x"), w, nil)
		g.SetOutput("y", y)
		if mode != ModePredict {
			g.SetLoss(g.Mul(g.ReduceMean(y, nil), g.Constant(Float32, 4)))
			rate := g.Constant(Float32, 0.1)
			g.UpdateRule(rate, nil, func(u VariableUpdate) (Value, []Value) { return u.Weight, nil })
			g.UpdateRule(rate, &UpdateRuleOptions{Matrices: true}, func(u VariableUpdate) (Value, []Value) {
				square := g.Matmul(u.Weight, u.Weight, &MatmulOptions{TransposeA: true})
				return g.Sub(u.Weight, g.Mul(u.LearningRate, g.Matmul(u.Gradient, square, nil))), nil
			})
		}
		return nil
	}, nil))
	closed(t, estimator)
	p := AddSlices(NewPipeline(nil), "x", Feature, []float32{5, 10, 7, 14}, 2, 2)
	dataset := must[*Dataset](t)(p.Batch(2, nil).Build())
	closed(t, dataset)
	must[*Result](t)(estimator.Train(background, dataset, nil))
	variable := must[*Tensor](t)(estimator.ReadVariable("w"))
	closed(t, variable)
	for i, got := range must[[]float32](t)(Values[float32](variable)) {
		if want := []float64{-2.8, -4.8, -9.6, -7.6}[i]; math.Abs(float64(got)-want) > 1e-5 {
			t.Error(i, got, want)
		}
	}
}
