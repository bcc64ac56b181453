// SPDX-License-Identifier: Apache-2.0

package tutti

import (
	"strings"

	"tutti.org/tutti/internal/raw"
)

// CompletedSteps is the number of completed steps, a float32 scalar: 0 in the first step. A learning rate may be
// computed from it.
func (g *Graph) CompletedSteps() Value { return Value{raw.Graph_get_completed_steps(g.handle)} }

// LoopOptions are what Scan may be told; the zero value means the defaults.
type LoopOptions struct {
	Axis    int64 // of the sequences and of what is stacked
	Reverse bool  // from the last index to the first
}

// Scan is a loop over an axis of the sequences, all of which have the same length there, which only the data may tell.
// The body gets the states and one element of each sequence, without the axis, and gives the next states and one
// element of each result that is stacked. It is called once, to write the graph; values from outside may be used in it.
func (g *Graph) Scan(states, sequences []Value, options *LoopOptions,
	body func(states, elements []Value) (next, stacked []Value)) (last, all []Value) {
	o := given(options)
	g.beginRegions("scan", append(append([]Value{}, states...), sequences...))
	raw.Graph_set_i64(g.handle, "states", int64(len(states)))
	raw.Graph_set_i64(g.handle, "sequences", int64(len(sequences)))
	if o.Axis != 0 {
		raw.Graph_set_i64(g.handle, "axis", o.Axis)
	}
	if o.Reverse {
		raw.Graph_set_bool(g.handle, "reverse", true)
	}
	parameters := g.beginRegion(len(states) + len(sequences))
	next, stacked := body(parameters[:len(states)], parameters[len(states):])
	g.endRegion(append(append([]Value{}, next...), stacked...))
	outputs := g.endRegions(len(next) + len(stacked))
	return outputs[:len(next)], outputs[len(next):]
}

// Cond runs what the first function writes if the predicate, a boolean scalar, is true, else what the second one
// writes. Both are called once, and give values of the same types and shapes.
func (g *Graph) Cond(predicate Value, then, otherwise func() []Value) []Value {
	g.beginRegions("cond", []Value{predicate})
	g.beginRegion(0)
	results := then()
	g.endRegion(results)
	g.beginRegion(0)
	g.endRegion(otherwise())
	return g.endRegions(len(results))
}

// Call writes a part of the model that the backward pass computes again, so that its values need no memory in between.
func (g *Graph) Call(inputs []Value, body func(inputs []Value) []Value) []Value {
	g.beginRegions("call", inputs)
	results := body(g.beginRegion(len(inputs)))
	g.endRegion(results)
	return g.endRegions(len(results))
}

// CustomGradient writes a function with a gradient of its own: one for each input, the zero Value where there is none.
// The functions may use nothing but what they get.
func (g *Graph) CustomGradient(inputs []Value, forward func(inputs []Value) []Value,
	backward func(inputs, outputs, gradients []Value) []Value) []Value {
	g.beginRegions("custom_gradient", inputs)
	results := forward(g.beginRegion(len(inputs)))
	g.endRegion(results)
	n, m := len(inputs), len(results)
	all := g.beginRegion(n + 2*m)
	g.endRegion(backward(all[:n], all[n:n+m], all[n+m:]))
	return g.endRegions(m)
}

// SlotPer is what a slot has a value for.
type SlotPer string

// With UpdateRuleOptions.Stacks a slot may have a value for each row or column of a variable's matrices.
const (
	SlotPerElement SlotPer = "element" // the default
	SlotPerRow     SlotPer = "row"
	SlotPerColumn  SlotPer = "column"
)

// Slot is what a rule of update keeps of each variable, from update to update.
type Slot struct {
	Name    string  // behind that of the variable: <variable>/<name>
	Initial float64 // its first value
	Per     SlotPer // what it has a value for
}

// UpdateRuleOptions are what UpdateRule may be told; the zero value means the defaults.
type UpdateRuleOptions struct {
	// What is kept.
	Slots []Slot
	// Given to the rule, for variables whose parameter group has none of its own.
	WeightDecay float64
	// Of the variables that the rule is for: Float32, also for Float16 and BFloat16 ones, or Float64. Default:
	// Float32.
	DType DType
	// Only for variables with two axes or more, which come as matrices whose columns are the last axis. A rule
	// for the others comes first; its learning rate, limits and averages are those of both.
	Matrices bool
	// For the same variables in place of Matrices: a matrix of the last two axes for each index of the others, as an
	// array [matrices, rows, columns]. Slots may have a value for each row, [matrices, rows], or for each column,
	// [matrices, columns].
	Stacks bool
	// A variable that the model only looks up rows of, by indices of the batch, is updated in the rows that a step
	// looks up, whatever the rule does to the others. Not for rules that need more than an element at a time.
	Lazy bool
	// As Lazy, since the rule changes nothing where the gradient, and the weight decay, is 0.
	KeepsUnreached bool
	// Limits each element of the gradients to [-ClipValue, ClipValue], before anything else; 0 = off.
	ClipValue float64
	// Limits the Euclidean norm of each variable's gradient, after ClipValue and before Graph.SetGradientClipNorm
	// limits the global norm; 0 = off.
	ClipNorm float64
	// Keeps an exponential moving average of each weight, which evaluation and prediction use unless their option
	// RawWeights is set; less than 1; 0 = none.
	AverageDecay float64
	// Limits the decay to (1 + n) / (10 + n) at update n after AverageStart.
	AverageRamp bool
	// Until this update the average is equal to the weight; 0: it starts at the initial weight.
	AverageStart int64
}

// VariableUpdate is what a rule of update gets. Weight, Gradient and Slots are arrays of one axis, matrices or stacks
// of matrices.
type VariableUpdate struct {
	Weight       Value   // the variable
	Gradient     Value   // limited as the options say
	LearningRate Value   // a scalar, of the variable's parameter group
	WeightDecay  Value   // a scalar, of the variable's parameter group
	Count        Value   // the number of the update, an Int64 scalar, from 1
	Slots        []Value // what was kept, as in the options
}

// UpdateRule is an optimizer of one's own. The function, from what a variable has, gives its new weight and the new
// value of each slot. It is called once, to write the graph for all variables of the type, whatever their shapes.
// Values from outside may be used in it if they are computed from constants, schedules and host scalars. Variables of
// another type need a rule as well.
func (g *Graph) UpdateRule(learningRate Value, options *UpdateRuleOptions,
	rule func(u VariableUpdate) (weight Value, slots []Value)) {
	o := given(options)
	g.beginRegions("update_rule", []Value{learningRate})
	g.setUpdateRule(o)
	const fixed = 5
	p := g.beginRegion(fixed + len(o.Slots))
	weight, slots := rule(VariableUpdate{Weight: p[0], Gradient: p[1], LearningRate: p[2], WeightDecay: p[3],
		Count: p[4], Slots: p[fixed:]})
	g.endRegion(append([]Value{weight}, slots...))
	g.endRegions(0)
}

func (g *Graph) setUpdateRule(o UpdateRuleOptions) {
	var names, per []string
	var initial []float64
	for _, slot := range o.Slots {
		names, initial = append(names, slot.Name), append(initial, slot.Initial)
		if slot.Per == "" {
			slot.Per = SlotPerElement
		}
		per = append(per, string(slot.Per))
	}
	raw.Graph_set_string(g.handle, "slots", strings.Join(names, ", "))
	raw.Graph_set_string(g.handle, "slots_per", strings.Join(per, ", "))
	raw.Graph_set_f64s(g.handle, "initial", initial)
	raw.Graph_set_f64(g.handle, "weight_decay", o.WeightDecay)
	if o.DType != 0 {
		raw.Graph_set_i64(g.handle, "dtype", int64(o.DType))
	}
	if o.Stacks {
		raw.Graph_set_string(g.handle, "view", "stack")
	} else if o.Matrices {
		raw.Graph_set_string(g.handle, "view", "matrix")
	}
	raw.Graph_set_bool(g.handle, "lazy", o.Lazy)
	raw.Graph_set_bool(g.handle, "keeps_unreached", o.KeepsUnreached)
	raw.Graph_set_f64(g.handle, "clip_value", o.ClipValue)
	raw.Graph_set_f64(g.handle, "clip_norm", o.ClipNorm)
	raw.Graph_set_f64(g.handle, "average_decay", o.AverageDecay)
	raw.Graph_set_bool(g.handle, "average_ramp", o.AverageRamp)
	raw.Graph_set_i64(g.handle, "average_start", o.AverageStart)
}

func (g *Graph) beginRegions(op string, inputs []Value) {
	raw.Graph_begin(g.handle, op, 1)
	for _, input := range inputs {
		raw.Graph_add_input(g.handle, input.id)
	}
}

func (g *Graph) beginRegion(count int) []Value {
	ids := make([]int64, count)
	raw.Graph_begin_region(g.handle, ids)
	return valuesOf(ids)
}

func (g *Graph) endRegion(results []Value) { raw.Graph_end_region(g.handle, numbers(results)) }

func (g *Graph) endRegions(count int) []Value {
	all := make([]int64, count+1)
	all[0] = raw.Graph_end(g.handle, all[1:])
	return valuesOf(all[:count])
}

func valuesOf(ids []int64) []Value {
	values := make([]Value, len(ids))
	for i, id := range ids {
		values[i] = Value{id}
	}
	return values
}
