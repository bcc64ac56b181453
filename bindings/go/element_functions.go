// SPDX-License-Identifier: Apache-2.0

package tutti

import (
	"context"
	"errors"
	"io"

	"tutti.org/tutti/internal/raw"
)

// MapFunc computes what becomes of an element. Its context ends when nobody waits for the element any more, because the
// context of the call that wanted it has ended or its iterator is closed, and when the function has returned. What the
// function returns then is no error of the element: a walk that goes on asks for the element again. A function that
// takes long looks at the context, for nobody else ends it.
type MapFunc func(ctx context.Context, element []*Tensor) ([]*Tensor, error)

// PredicateFunc says something of an element; its context is as that of MapFunc.
type PredicateFunc func(ctx context.Context, element []*Tensor) (bool, error)

// ScanFunc computes the next state and what becomes of an element; its context is as that of MapFunc.
type ScanFunc func(ctx context.Context, state, element []*Tensor) (newState, output []*Tensor, err error)

// ExpandFunc makes a dataset of an element; its context is as that of MapFunc.
type ExpandFunc func(ctx context.Context, element []*Tensor) (*Dataset, error)

// GenerateFunc makes element number `index` of a pass, or gives io.EOF; its context is as that of MapFunc.
type GenerateFunc func(ctx context.Context, pass, index int64) ([]*Tensor, error)

// MapOptions are what Map may be told.
type MapOptions struct {
	// Has the components that the map gives; nil: they are as those it gets.
	Like *Dataset
}

// Map maps each element by a Go function: it gets one tensor for each component, and gives as many, of the same types
// and shapes, or those of the dataset that the options name. Up to `parallelism` elements are computed at a time (0 =
// automatic), each on a goroutine of its own; their order stays. The function must be a pure function of its element,
// for a dataset can be gone through again and resumed.
//
// The tensors that it gets and gives are closed when it has returned; it may give those that it got. An error or panic
// of the function comes back from the call that wanted the element. The function is held until the dataset, and all
// that was made of it, is closed. Each element costs the way to another thread and back, some ten microseconds: map
// batches where you can, and where MapGraph can say it, MapGraph is faster.
func (p *Pipeline) Map(parallelism int64, function MapFunc, options *MapOptions) *Pipeline {
	set := func() uintptr {
		raw.Pipeline_begin(p.handle, "map_callback", 1)
		defer p.end()
		raw.Pipeline_set_i64(p.handle, "parallelism", parallelism)
		p.setLike(given(options).Like)
		return raw.Pipeline_set_map(p.handle)
	}
	return p.withFunction(function == nil, set, func(ctx context.Context, call *elementCall) (err error) {
		call.outputs, err = function(ctx, call.element)
		return err
	})
}

// Filter keeps the elements for which a Go function says true. What Map says of its function holds here too, but there
// is one call at a time; FilterGraph is faster.
func (p *Pipeline) Filter(function PredicateFunc) *Pipeline {
	return p.withPredicate("filter_callback", function)
}

// TakeWhile ends before the first element for which a Go function says false. The function is as that of Filter.
func (p *Pipeline) TakeWhile(function PredicateFunc) *Pipeline {
	return p.withPredicate("take_while_callback", function)
}

func (p *Pipeline) withPredicate(transform string, function PredicateFunc) *Pipeline {
	set := func() uintptr {
		raw.Pipeline_begin(p.handle, transform, 1)
		defer p.end()
		return raw.Pipeline_set_predicate(p.handle)
	}
	return p.withFunction(function == nil, set, func(ctx context.Context, call *elementCall) (err error) {
		call.answer, err = function(ctx, call.element)
		return err
	})
}

// ScanState is a component of what a scan carries from element to element: its name, and its value before the first
// element of each pass. Numbers of a fixed shape, at most 64 KiB in all, for it is saved with every position of an
// iterator. The tensor is shared, not copied, and may be closed after the call.
type ScanState struct {
	Name    string  // of the component
	Initial *Tensor // its value before the first element
}

// ScanOptions are what Scan may be told.
type ScanOptions struct {
	// Has the components that the scan gives; nil: they are as those it gets.
	Like *Dataset
}

// Scan carries a state from element to element: a Go function gets the state and an element, and gives the new state
// and a new element. An error consumes the element and leaves the state as it was. What Map says of its
// function holds here too, but there is one call at a time; ScanGraph is faster.
func (p *Pipeline) Scan(state []ScanState, function ScanFunc, options *ScanOptions) *Pipeline {
	set := func() uintptr {
		raw.Pipeline_begin(p.handle, "scan_callback", 1)
		defer p.end()
		p.setState(state)
		p.setLike(given(options).Like)
		return raw.Pipeline_set_scan(p.handle)
	}
	return p.withFunction(function == nil, set, func(ctx context.Context, call *elementCall) (err error) {
		call.newState, call.outputs, err = function(ctx, call.state, call.element)
		return err
	})
}

// ScanGraph carries a state from element to element by a graph. It reads the state like a feature and gives it anew
// under its name with SetOutput; what it does else with SetOutput is as in MapGraph. What it does not give anew stays.
func (p *Pipeline) ScanGraph(state []ScanState, build func(g *Graph) error) *Pipeline {
	return p.withGraph("scan", build, func() { p.setState(state) })
}

func (p *Pipeline) setState(state []ScanState) {
	for _, component := range state {
		var use uses
		initial := use.of(component.Initial.ref())
		p.keepFirst(use.err)
		raw.Pipeline_set_state(p.handle, component.Name, initial)
		use.leave()
	}
}

func (p *Pipeline) setLike(dataset *Dataset) {
	if dataset != nil {
		p.setDataset("like", dataset)
	}
}

// FlatMapOptions are what FlatMap may be told; the zero value means the defaults.
type FlatMapOptions struct {
	// Has the components of the datasets that the function gives; nil: they are those of the pipeline.
	Like *Dataset
	// A thread reads the dataset ahead.
	ReadAhead bool
}

// FlatMap gives all elements of the dataset that a Go function makes of the first element, then those of the second,
// and so on. The dataset stays the program's: what nobody closes the collector closes. The function is as that of
// Filter; it is called again for the same element when a walk is resumed, so its dataset must not come from a feed.
func (p *Pipeline) FlatMap(function ExpandFunc, options *FlatMapOptions) *Pipeline {
	o := given(options)
	return p.withDatasets("flat_map", function, o.Like, func() {
		if o.ReadAhead {
			raw.Pipeline_set_bool(p.handle, "read_ahead", true)
		}
	})
}

// InterleaveMapOptions are what InterleaveMap may be told; the zero value means the defaults.
type InterleaveMapOptions struct {
	// Has the components of the datasets that the function gives; nil: they are those of the pipeline.
	Like *Dataset
	// Datasets open at a time. Default: 8.
	CycleLength int64
	// Elements of a turn. Default: 1.
	BlockLength int64
	// Datasets read ahead, each by a thread of its own; 1 = none, 0 = all of the cycle. Default: 1.
	Parallelism *int64
}

// InterleaveMap takes turns among the datasets that a Go function makes of the elements, as Interleave does. The
// function is as that of FlatMap.
func (p *Pipeline) InterleaveMap(function ExpandFunc,
	options *InterleaveMapOptions) *Pipeline {
	o := given(options)
	return p.withDatasets("interleave_callback", function, o.Like, func() {
		if o.CycleLength != 0 {
			raw.Pipeline_set_i64(p.handle, "cycle_length", o.CycleLength)
		}
		if o.BlockLength != 0 {
			raw.Pipeline_set_i64(p.handle, "block_length", o.BlockLength)
		}
		if o.Parallelism != nil {
			raw.Pipeline_set_i64(p.handle, "parallelism", *o.Parallelism)
		}
	})
}

func (p *Pipeline) withDatasets(transform string, function ExpandFunc, like *Dataset,
	settings func()) *Pipeline {
	set := func() uintptr {
		raw.Pipeline_begin(p.handle, transform, 1)
		defer p.end()
		p.setLike(like)
		settings()
		return raw.Pipeline_set_expand(p.handle)
	}
	return p.withFunction(function == nil, set, func(ctx context.Context, call *elementCall) (err error) {
		call.dataset, err = function(ctx, call.element)
		return err
	})
}

// AddGenerator starts from what a Go function gives: element `index` of pass `pass`, a tensor for each component, and
// io.EOF behind the last one. It is asked for 0, 1, 2, ..., in each pass anew; a walk that was restored begins with
// the number that comes next. What Map says of its function holds here too, but there is one call at a time. Unlike a
// feed, a generator can be gone through again and resumed.
func (p *Pipeline) AddGenerator(next GenerateFunc, components ...FeedComponent) *Pipeline {
	set := func() uintptr {
		for _, c := range components {
			raw.Pipeline_declare(p.handle, c.Name, int32(c.Role), int32(c.DType), c.Dims)
		}
		return raw.Pipeline_add_generator(p.handle)
	}
	return p.withFunction(next == nil, set, func(ctx context.Context, call *elementCall) (err error) {
		call.outputs, err = next(ctx, call.pass, call.index)
		call.answer = !errors.Is(err, io.EOF)
		if !call.answer {
			err = nil
		}
		return err
	})
}
