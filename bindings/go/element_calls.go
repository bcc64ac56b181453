// SPDX-License-Identifier: Apache-2.0

package tutti

import "tutti.org/tutti/internal/raw"

// Map maps each element by a Go function: it gets one tensor for each component, and gives as many, of the same types
// and shapes. Up to `parallelism` elements are computed at a time (0 = automatic), each on a goroutine of its own;
// their order stays. The function must be a pure function of its element, for a dataset can be gone through again and
// resumed.
//
// The tensors that it gets and gives are closed when it has returned; it may give those that it got. An error or
// panic of the function comes back from the call that wanted the element. The function is held until the dataset, and
// all that was made of it, is closed. Each element costs the way to another thread and back, some ten microseconds:
// map batches where you can, and where MapGraph can say it, MapGraph is faster.
func (p *Pipeline) Map(parallelism int64, function func(element []*Tensor) ([]*Tensor, error)) *Pipeline {
	return p.with(nil, func(uintptr) {
		if function == nil {
			p.keep(invalid("the function of the map is nil"))
			return
		}
		queue := raw.Pipeline_map(p.handle, parallelism)
		if queue == 0 {
			p.keep(&Error{Code: ResourceExhausted, Domain: "tutti", Message: "no memory for a map"})
			return
		}
		go serveMap(queue, function)
	})
}

// serveMap takes elements until the library has released the map. The library waits for each, so that there are never
// more goroutines than it has threads in the map.
func serveMap(queue uintptr, function func([]*Tensor) ([]*Tensor, error)) {
	defer raw.Map_queue_unref(queue)
	for {
		work := raw.Map_queue_take(queue)
		if work == 0 {
			return
		}
		go serveElement(queue, work, function)
	}
}

// serveElement computes one element and finishes it in every case, also when the function ends the goroutine.
func serveElement(queue, work uintptr, function func([]*Tensor) ([]*Tensor, error)) {
	var inputs, outputs []*Tensor
	var err error = &Error{Code: Aborted, Domain: "user", Message: "the function of the map ended its goroutine"}
	defer func() { finishElement(queue, work, inputs, outputs, err) }()
	for i := int64(0); i < raw.Map_work_get_count(work); i++ {
		inputs = append(inputs, sharedTensor(raw.Map_work_get_input(work, i)))
	}
	err = guarded(func() (err error) {
		outputs, err = function(inputs)
		return err
	})
}

func finishElement(queue, work uintptr, inputs, outputs []*Tensor, err error) {
	var use uses
	defer use.leave()
	numbers := make([]uintptr, len(outputs))
	for i, tensor := range outputs {
		numbers[i] = use.of(tensor.ref())
	}
	if err == nil {
		err = use.err
	}
	closeAll(inputs) // those in use end when this function leaves them
	closeAll(outputs)
	code, failure := answer(err)
	raw.Map_queue_finish(queue, work, numbers, code, failure)
}

func closeAll(tensors []*Tensor) {
	for _, tensor := range tensors {
		if tensor != nil {
			tensor.Close()
		}
	}
}
