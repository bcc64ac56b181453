// SPDX-License-Identifier: Apache-2.0

package tutti

import "tutti.org/tutti/internal/raw"

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
