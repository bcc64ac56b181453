// SPDX-License-Identifier: Apache-2.0

package tutti

import (
	"context"
	"fmt"

	"tutti.org/tutti/internal/raw"
)

// elementCall is one call of a function of the program over elements: what it gets, and what it gives.
type elementCall struct {
	state, element []*Tensor
	pass, index    int64 // which element a generator is asked for
	newState       []*Tensor
	outputs        []*Tensor
	answer         bool
	dataset        *Dataset
}

// elementFunction computes a call.
type elementFunction func(ctx context.Context, call *elementCall) error

// withFunction sets a function of the program by `set`, which gives the queue of its calls.
func (p *Pipeline) withFunction(isNil bool, set func() uintptr, function elementFunction) *Pipeline {
	return p.with(nil, func(uintptr) {
		if isNil {
			p.keep(invalid("the function is nil"))
			return
		}
		queue := set()
		if queue == 0 {
			p.keep(&Error{Code: ResourceExhausted, Domain: "tutti", Message: "no memory for a function"})
			return
		}
		go serveCalls(queue, func(queue, number uintptr) { serveCall(queue, number, function) })
	})
}

// serveCalls takes calls until the library has released the function. The library waits for each, so that there are
// never more goroutines than it makes calls at a time.
func serveCalls(queue uintptr, serve func(queue, number uintptr)) {
	defer raw.Call_queue_unref(queue)
	for {
		number := raw.Call_queue_take(queue)
		if number == 0 {
			return
		}
		go serve(queue, number)
	}
}

// serveCall computes one call and finishes it in every case, also when the function ends the goroutine.
func serveCall(queue, number uintptr, function elementFunction) {
	var call elementCall
	ctx := &elementContext{token: raw.Call_get_cancel(number)}
	var err error = &Error{Code: Aborted, Domain: "user", Message: "the function ended its goroutine"}
	defer func() {
		ctx.end()
		call.finish(queue, number, err)
	}()
	states := raw.Element_call_get_state_count(number)
	for i := int64(0); i < raw.Element_call_get_count(number); i++ {
		tensor := sharedTensor(raw.Element_call_get_tensor(number, i))
		if i < states {
			call.state = append(call.state, tensor)
		} else {
			call.element = append(call.element, tensor)
		}
	}
	call.pass, call.index = raw.Element_call_get_pass(number), raw.Element_call_get_index(number)
	err = guarded(func() error { return function(ctx, &call) })
}

func (c *elementCall) finish(queue, number uintptr, err error) {
	var use uses
	defer use.leave()
	if err == nil && len(c.newState) != len(c.state) {
		err = invalid(fmt.Sprintf("the function gives a state of %d tensors, not of %d", len(c.newState), len(c.state)))
	}
	tensors := append(append([]*Tensor(nil), c.newState...), c.outputs...)
	numbers := make([]uintptr, len(tensors))
	for i, tensor := range tensors {
		numbers[i] = use.of(tensor.ref())
	}
	dataset := use.of(c.dataset.ref())
	if err == nil {
		err = use.err
	}
	closeAll(c.state) // those in use end when this function leaves them
	closeAll(c.element)
	closeAll(tensors)
	code, failure := answer(err)
	raw.Element_call_finish(queue, number, numbers, c.answer, dataset, code, failure)
}

func closeAll(tensors []*Tensor) {
	for _, tensor := range tensors {
		if tensor != nil {
			tensor.Close()
		}
	}
}
