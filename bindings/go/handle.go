// SPDX-License-Identifier: Apache-2.0

package tutti

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"

	"tutti.org/tutti/internal/raw"
)

// handle owns one reference of the library's. A call enters it and leaves it, so that Close never takes it away from a
// call: the last one out drops the reference. The collector closes what was forgotten; it never waits.
type handle struct {
	mutex  sync.Mutex
	number uintptr
	kind   string
	unref  func(uintptr)
	calls  int
	closed bool
	size   int64 // bytes of C memory behind it that Go's collector does not see
	// For calls that end with the object; nil where these go on.
	life    context.Context // ends in closing
	closing func()          // called by close
}

func newHandle(kind string, number uintptr, unref func(uintptr)) *handle {
	h := &handle{kind: kind, number: number, unref: unref}
	runtime.SetFinalizer(h, (*handle).collect)
	return h
}

// collect is the finalizer. Data go at once; the end of other objects may take its time, on a goroutine of its own.
func (h *handle) collect() {
	if h.size > 0 {
		h.close()
	} else {
		go h.close()
	}
}

// holders are the kinds of objects behind which callbacks may be, so that their end may release tokens.
var holders = map[string]bool{
	"Context": true, "Estimator": true, "Predictor": true, "PredictionStream": true, "Session": true,
}

func (h *handle) enter() (uintptr, error) {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	if h.closed {
		return 0, closedError(h.kind)
	}
	h.calls++
	return h.number, nil
}

func (h *handle) leave() {
	h.mutex.Lock()
	h.calls--
	last := h.closed && h.calls == 0
	h.mutex.Unlock()
	if last {
		h.drop()
	}
}

func (h *handle) close() {
	h.mutex.Lock()
	if h.closed {
		h.mutex.Unlock()
		return
	}
	h.closed = true
	if h.closing != nil {
		h.closing()
	}
	last := h.calls == 0
	h.mutex.Unlock()
	if last {
		h.drop()
	}
}

func (h *handle) drop() {
	runtime.SetFinalizer(h, nil)
	h.unref(h.number)
	atomic.AddInt64(&unseen, -h.size)
	if holders[h.kind] {
		reap()
	}
}

// object is what every type of the package has in common.
type object struct{ handle *handle }

// Close drops the object. It may be called more than once, and while calls are running: it does not wait, and they go
// on to their end, as their contexts say. Only a feed's Close ends pushes that wait: their reader may be gone for good.
func (o *object) Close() error {
	if o.handle != nil {
		o.handle.close()
	}
	return nil
}

// uses are the handles that one call has entered.
type uses struct {
	entered []*handle
	err     error
}

// of enters a handle; a nil one is the C interface's NULL.
func (u *uses) of(h *handle) uintptr {
	if u.err == nil {
		u.err = mismatch
	}
	if h == nil || u.err != nil {
		return 0
	}
	number, err := h.enter()
	if err != nil {
		u.err = err
		return 0
	}
	u.entered = append(u.entered, h)
	return number
}

func (u *uses) leave() {
	for _, h := range u.entered {
		h.leave()
	}
}

// C memory that the collector does not see must not pile up behind small Go objects that were forgotten. When there is
// twice as much as the collector has left, and this much more at least, a goroutine asks for a collection; who made the
// object goes on.
const unseenLimit = 64 << 20

var (
	unseen       int64 // bytes behind objects
	unseenLeft   int64 // the least since the last collection
	isCollecting int32
)

// weigh accounts for C memory behind a handle, before anybody else sees it.
func (h *handle) weigh(size int64) {
	h.size = size
	now, left := atomic.AddInt64(&unseen, size), atomic.LoadInt64(&unseenLeft)
	if now < left {
		atomic.CompareAndSwapInt64(&unseenLeft, left, now)
		return
	}
	isDue := now-left > unseenLimit && now-left > left
	if isDue && atomic.CompareAndSwapInt32(&isCollecting, 0, 1) {
		atomic.StoreInt64(&unseenLeft, now)
		go func() {
			runtime.GC()
			atomic.StoreInt32(&isCollecting, 0)
		}()
	}
}

// LiveObjects is the number of the library's objects of a type ("tensor", "dataset", ...) that are alive; "" = of all
// types. For leak tests.
func LiveObjects(kind string) int64 { return raw.Debug_live_objects(kind) }
