// SPDX-License-Identifier: Apache-2.0

package tutti

import (
	"context"
	"sync"
	"time"

	"tutti.org/tutti/internal/raw"
)

// contextRest is how often Done looks whether a call has ended: the library tells it to who asks.
const contextRest = 5 * time.Millisecond

// elementContext is the context.Context of a function over elements: it ends with the call that wants the element, and
// when the function has returned.
type elementContext struct {
	mutex sync.Mutex
	token uintptr // of the call; 0 = nothing ends it, and behind end
	err   error
	done  chan struct{} // nil until somebody wants to wait
}

func (c *elementContext) Deadline() (deadline time.Time, ok bool) { return time.Time{}, false }

func (c *elementContext) Value(any) any { return nil }

func (c *elementContext) Err() error {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if c.err == nil && c.token != 0 && raw.Cancel_get_state(c.token) == raw.CANCEL_CANCEL {
		c.cancel()
	}
	return c.err
}

func (c *elementContext) Done() <-chan struct{} {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if c.done == nil {
		c.done = make(chan struct{})
		if c.err != nil {
			close(c.done)
		} else if c.token != 0 {
			go c.watch()
		}
	}
	return c.done
}

func (c *elementContext) watch() {
	look := time.NewTicker(contextRest)
	defer look.Stop()
	for c.Err() == nil {
		<-look.C
	}
}

// cancel ends it, under the mutex.
func (c *elementContext) cancel() {
	c.err = context.Canceled
	if c.done != nil {
		close(c.done)
	}
}

// end is for when the function has returned, before the library takes the token back.
func (c *elementContext) end() {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.token = 0
	if c.err == nil {
		c.cancel()
	}
}
