// SPDX-License-Identifier: Apache-2.0

package tutti

import (
	"context"
	"runtime"
	"runtime/cgo"
	"sync"

	"tutti.org/tutti/internal/raw"
)

// Role is what a component of a dataset is for.
type Role int32

// The roles.
const (
	Feature Role = raw.ROLE_FEATURE
	Label   Role = raw.ROLE_LABEL
	Weight  Role = raw.ROLE_WEIGHT
)

var roleNames = map[Role]string{Feature: "feature", Label: "label", Weight: "weight"}

// String is the role's name, such as "label".
func (r Role) String() string { return nameOf(roleNames, "Role", r) }

// Pipeline is how a dataset is written: sources, then transforms, then Build. Errors are kept and reported by Build.
type Pipeline struct {
	mutex   sync.Mutex
	handle  uintptr // 0 after Build and Close
	err     error
	opening *call // ends the looking at files; nil = nothing does
}

// NewPipeline starts a pipeline of a context; nil = the default one.
func NewPipeline(context *Context) *Pipeline {
	p := &Pipeline{}
	var use uses
	defer use.leave()
	number := use.of(context.ref())
	if p.err = use.err; p.err != nil {
		return p
	}
	var out, failure uintptr
	if code := raw.Pipeline_create(number, &out, &failure); code != 0 {
		p.err = fromC(code, failure)
		return p
	}
	p.handle = out
	runtime.SetFinalizer(p, func(p *Pipeline) { _ = p.Close() })
	return p
}

// Close drops a pipeline that was not built. Build closes it too.
func (p *Pipeline) Close() error {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.drop()
	return nil
}

// drop lets go of what the pipeline holds, under the lock.
func (p *Pipeline) drop() {
	raw.Pipeline_unref(p.handle)
	p.handle = 0
	p.follow(nil)
}

func (p *Pipeline) follow(opening *call) {
	if p.opening != nil {
		p.opening.end()
	}
	p.opening = opening
}

// WithContext lets a context end the looking at files from now on, until Build: sources list directories and open their
// files when they are added. Build reports the context's error then. Iterators follow the context they are given.
func (p *Pipeline) WithContext(ctx context.Context) *Pipeline {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if p.handle == 0 {
		return p // which Build reports
	}
	opening, err := begin(ctx, nil, nil)
	if err != nil {
		p.keep(err)
		return p
	}
	raw.Pipeline_set_cancel(p.handle, opening.token)
	p.follow(opening)
	return p
}

func (p *Pipeline) keep(err error) {
	if p.err == nil {
		p.err = err
	}
}

// with calls a function with another object's handle, under the lock.
func (p *Pipeline) with(h *handle, function func(number uintptr)) *Pipeline {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	var use uses
	defer use.leave()
	number := use.of(h)
	if use.err != nil {
		p.keep(use.err)
		return p
	}
	function(number)
	return p
}

func (p *Pipeline) setDataset(key string, dataset *Dataset) {
	var use uses
	defer use.leave()
	number := use.of(dataset.ref())
	p.keepFirst(use.err)
	raw.Pipeline_set_dataset(p.handle, key, number)
}

func (p *Pipeline) keepFirst(err error) {
	if err != nil {
		p.keep(err)
	}
}

func (p *Pipeline) end() { raw.Pipeline_end(p.handle) }

// AddSlices adds a component: element i is row i of every tensor added. The tensor is shared, not copied, and may be
// closed.
func (p *Pipeline) AddSlices(name string, role Role, tensor *Tensor) *Pipeline {
	return p.with(tensor.ref(), func(number uintptr) { raw.Pipeline_add_slices(p.handle, name, int32(role), number) })
}

// AddSlices adds a component from a slice, which is copied: its rows are elements of the other dimensions.
func AddSlices[T Element](p *Pipeline, name string, role Role, data []T, dims ...int64) *Pipeline {
	tensor, err := NewTensor(data, dims...)
	if err != nil {
		p.mutex.Lock()
		defer p.mutex.Unlock()
		p.keep(err)
		return p
	}
	defer tensor.Close()
	return p.AddSlices(name, role, tensor)
}

// AddTensor adds a component to a source of exactly one element: the tensor as a whole. It is shared, not copied, and
// may be closed.
func (p *Pipeline) AddTensor(name string, role Role, tensor *Tensor) *Pipeline {
	return p.with(tensor.ref(), func(number uintptr) { raw.Pipeline_add_tensor(p.handle, name, int32(role), number) })
}

// AddIDX adds a component from an IDX file (plain or gzip), as the MNIST family uses.
func (p *Pipeline) AddIDX(name string, role Role, path string) *Pipeline {
	return p.with(nil, func(uintptr) { raw.Pipeline_add_idx(p.handle, name, int32(role), path) })
}

// SetArrowStream gives what Arrow, called next, reads: the address of an ArrowArrayStream of the Arrow C stream
// interface, which is moved from there in every case.
func (p *Pipeline) SetArrowStream(address uintptr) *Pipeline {
	return p.with(nil, func(uintptr) { raw.Pipeline_set_arrow_stream(p.handle, address) })
}

// AddFeed starts from what a feed receives.
func (p *Pipeline) AddFeed(feed *Feed) *Pipeline {
	return p.with(feed.ref(), func(number uintptr) { raw.Pipeline_add_feed(p.handle, number) })
}

// AddDataset starts from an existing dataset.
func (p *Pipeline) AddDataset(dataset *Dataset) *Pipeline {
	return p.with(dataset.ref(), func(number uintptr) { raw.Pipeline_add_dataset(p.handle, number) })
}

// MapGraph maps each element by a graph, which reads components with Feature and Label and gives components with
// SetOutput: a name that exists is replaced, a new one is added as a feature. The function runs once, at once; it must
// not use the pipeline. Parallelism 0 = automatic.
func (p *Pipeline) MapGraph(parallelism int64, build func(g *Graph) error) *Pipeline {
	return p.with(nil, func(uintptr) {
		token := cgo.NewHandle(build)
		defer token.Delete()
		raw.Pipeline_map_graph(p.handle, int64(token), parallelism)
	})
}

// MapGraphOnDevice maps batches by a graph as MapGraph does, and asks that devices with memory of their own do it: what
// goes into the map is copied to them, and they run it. It comes behind Batch, with nothing but Prefetch and
// SetOptions behind it. Where a device cannot do it the host does, with the same results, and the log says why.
func (p *Pipeline) MapGraphOnDevice(build func(g *Graph) error) *Pipeline {
	return p.withGraph("map", build, func() { raw.Pipeline_set_bool(p.handle, "on_device", true) })
}

// FilterGraph keeps the elements for which the graph's one output is true. The function is as that of MapGraph.
func (p *Pipeline) FilterGraph(build func(g *Graph) error) *Pipeline {
	return p.with(nil, func(uintptr) {
		token := cgo.NewHandle(build)
		defer token.Delete()
		raw.Pipeline_filter_graph(p.handle, int64(token))
	})
}

// TakeWhileGraph ends before the first element for which the graph's one output is false. The function is as that of
// MapGraph.
func (p *Pipeline) TakeWhileGraph(build func(g *Graph) error) *Pipeline {
	return p.withGraph("take_while", build, func() {})
}

// withGraph applies a transform that takes a graph, with settings that are made before.
func (p *Pipeline) withGraph(transform string, build func(g *Graph) error, settings func()) *Pipeline {
	return p.with(nil, func(uintptr) {
		token := cgo.NewHandle(build)
		defer token.Delete()
		raw.Pipeline_begin(p.handle, transform, 1)
		settings()
		raw.Pipeline_set_graph(p.handle, int64(token))
		p.end()
	})
}

// Build makes the dataset, or reports the first error that the pipeline met. The pipeline is closed in both cases.
func (p *Pipeline) Build() (*Dataset, error) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	defer p.drop()
	if p.err != nil {
		return nil, p.err
	}
	if p.handle == 0 {
		return nil, closedError("Pipeline")
	}
	if p.opening != nil {
		if err := p.opening.ended(); err != nil {
			return nil, err
		}
	}
	var out, failure uintptr
	code := raw.Pipeline_build(p.handle, &out, &failure)
	if code != 0 && p.opening != nil {
		return nil, p.opening.result(code, failure)
	}
	if code != 0 {
		return nil, fromC(code, failure)
	}
	return wrapDataset(out), nil
}
