// SPDX-License-Identifier: Apache-2.0

package tutti

import (
	"context"
	"errors"
	"sync"

	"tutti.org/tutti/internal/raw"
)

// call is one call that can wait, and its token, which is asked to cancel when the context ends. No goroutine waits for
// that but the one that `watch` may have for all calls of a context.
type call struct {
	ctx      context.Context
	life     context.Context // of the object; it ends with Close. nil = the call goes on
	token    uintptr         // 0 = nothing can end the call
	mutex    sync.Mutex      // guards the token against `request`
	unwatch  [2]func()       // of the context and of the life, where they can end
	finished chan struct{}   // closed by end; nil without stop
}

// begin prepares a call. A nil context is context.Background; `stop` asks politely; `life` ends with the object.
func begin(ctx context.Context, stop <-chan struct{}, life context.Context) (*call, error) {
	if mismatch != nil {
		return nil, mismatch
	}
	if ctx == nil {
		ctx = context.Background()
	}
	c := &call{ctx: ctx, life: life}
	if err := c.ended(); err != nil {
		return nil, err
	}
	if ctx.Done() == nil && stop == nil && life == nil {
		return c, nil
	}
	var token, failure uintptr
	if code := raw.Cancel_create(&token, &failure); code != 0 {
		return nil, fromC(code, failure)
	}
	c.token = token
	c.watch(stop)
	return c, nil
}

func (c *call) watch(stop <-chan struct{}) {
	for i, ending := range [...]context.Context{c.ctx, c.life} {
		if ending != nil && ending.Done() != nil {
			c.unwatch[i] = watch(ending, c)
		}
	}
	if stop == nil {
		return
	}
	finished := make(chan struct{})
	c.finished = finished
	go func() {
		select {
		case <-stop:
			c.request(raw.CANCEL_STOP)
		case <-finished:
		}
	}()
}

func (c *call) cancel() { c.request(raw.CANCEL_CANCEL) }

// request asks the token, unless the call is over.
func (c *call) request(strength int32) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if c.token != 0 {
		raw.Cancel_request(c.token, strength, nil)
	}
}

// ended is the error of a context that has ended, which the token may have yet to hear.
func (c *call) ended() error {
	if c.ctx.Err() == nil {
		return nil
	}
	return c.explain(&Error{Code: Cancelled, Domain: "tutti", Message: "the context has ended"})
}

// end drops the token.
func (c *call) end() {
	for i, unwatch := range c.unwatch {
		if unwatch != nil {
			unwatch()
		}
		c.unwatch[i] = nil
	}
	if c.finished != nil {
		close(c.finished)
		c.finished = nil
	}
	if c.token == 0 {
		return
	}
	c.mutex.Lock()
	defer c.mutex.Unlock()
	raw.Cancel_unref(c.token)
	c.token = 0
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
	if c.life != nil && c.life.Err() != nil {
		return ErrClosed
	}
	return nil
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
