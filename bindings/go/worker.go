// SPDX-License-Identifier: Apache-2.0

package tutti

import (
	"context"

	"tutti.org/tutti/internal/raw"
)

// ServeMap is what the main function of a worker program calls, which Pipeline.MapProcess starts: it maps elements from
// standard input by a Go function until there are no more, and writes what it gives to standard output. Both are taken
// over: from the call on the program reads nothing from standard input, and what it prints goes to standard error. The
// function is as that of Pipeline.Map; it gives the components that MapProcess was told, one element at a time. An
// error or panic of it is that of its element. Once in a process.
func ServeMap(ctx context.Context, function MapFunc) error {
	if function == nil {
		return invalid("the function is nil")
	}
	c, err := begin(ctx, nil, nil)
	if err != nil {
		return err
	}
	defer c.end()
	queue := raw.Call_queue_create()
	if queue == 0 {
		return &Error{Code: ResourceExhausted, Domain: "tutti", Message: "no memory for a function"}
	}
	go serveCalls(queue, func(queue, number uintptr) {
		serveCall(queue, number, func(ctx context.Context, call *elementCall) (err error) {
			call.outputs, err = function(ctx, call.element)
			return err
		})
	})
	var failure uintptr
	return c.result(raw.Serve_map(queue, c.token, &failure), failure)
}
