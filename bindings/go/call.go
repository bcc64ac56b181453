// SPDX-License-Identifier: Apache-2.0

package tutti

import (
	"context"
	"errors"

	"tutti.org/tutti/internal/raw"
)

// call is one call that can wait: its token, and the goroutine that asks the token when the context ends.
type call struct {
	ctx      context.Context
	token    uintptr         // 0 = nothing can end the call
	closed   <-chan struct{} // closed when the object is
	finished chan struct{}
	watcher  chan struct{}
}

// begin prepares a call. A nil context is context.Background; `stop` asks politely; `closed` is closed when the object
// is.
func begin(ctx context.Context, stop, closed <-chan struct{}) (*call, error) {
	if ctx == nil {
		ctx = context.Background()
	}
	c := &call{ctx: ctx, closed: closed}
	if err := c.ended(); err != nil {
		return nil, err
	}
	if ctx.Done() == nil && stop == nil && closed == nil {
		return c, nil
	}
	var token, failure uintptr
	if code := raw.Cancel_create(&token, &failure); code != 0 {
		return nil, fromC(code, failure)
	}
	c.token = token
	c.finished, c.watcher = make(chan struct{}), make(chan struct{})
	go c.watch(stop)
	return c, nil
}

func (c *call) watch(stop <-chan struct{}) {
	defer close(c.watcher)
	for {
		select {
		case <-c.ctx.Done():
			raw.Cancel_request(c.token, raw.CANCEL_CANCEL, nil)
			return
		case <-c.closed:
			raw.Cancel_request(c.token, raw.CANCEL_CANCEL, nil)
			return
		case <-stop:
			raw.Cancel_request(c.token, raw.CANCEL_STOP, nil)
			stop = nil // a CANCEL may follow
		case <-c.finished:
			return
		}
	}
}

// ended is the error of a context that has ended, which the watcher may have yet to see.
func (c *call) ended() error {
	if c.ctx.Err() == nil {
		return nil
	}
	return c.explain(&Error{Code: Cancelled, Domain: "tutti", Message: "the context has ended"})
}

// end waits for the watcher and drops the token.
func (c *call) end() {
	if c.token != 0 {
		close(c.finished)
		<-c.watcher
		raw.Cancel_unref(c.token)
		c.token = 0
	}
}

// result makes a Go error of what the C function gave.
func (c *call) result(code int32, failure uintptr) error {
	err := fromC(code, failure)
	var ours *Error
	if errors.As(err, &ours) && ours == err {
		return c.explain(ours)
	}
	return err
}

// cause is what has ended the call: the context's error, or ErrClosed; nil when nothing has, or there is no
// call.
func (c *call) cause() error {
	if c == nil {
		return nil
	}
	if err := c.ctx.Err(); err != nil {
		return err
	}
	select {
	case <-c.closed:
		return ErrClosed
	default:
		return nil
	}
}

// explain puts what has ended the call, as the first cause, into its error.
func (c *call) explain(err *Error) error {
	cause := c.cause()
	if cause == nil || err.Code != Cancelled {
		return err
	}
	last := err
	for next, ok := last.Cause.(*Error); ok; next, ok = last.Cause.(*Error) {
		last = next
	}
	if last.Cause != nil {
		return err // a callback's error
	}
	last.Cause = cause
	if errors.Is(cause, context.DeadlineExceeded) {
		err.Code = DeadlineExceeded
	}
	return err
}
