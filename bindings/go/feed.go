// SPDX-License-Identifier: Apache-2.0

package tutti

import (
	"context"
	"errors"
	"io"

	"tutti.org/tutti/internal/raw"
)

// Feed is a bounded queue into which the program pushes elements; a pipeline that starts with AddFeed reads it, once.
// Several goroutines may push. Close ends pushes that wait, with ErrClosed.
type Feed struct {
	object
	token uintptr // asked to cancel when the feed is closed
}

func (f *Feed) ref() *handle {
	if f == nil {
		return nil
	}
	return f.handle
}

// life ends when the feed is closed; nil when it was never made.
func (f *Feed) life() context.Context {
	if f == nil || f.handle == nil {
		return nil
	}
	return f.handle.life
}

// FeedComponent declares one tensor of each element: its type and its shape, without a batch dimension; of a feed of
// batches, the shape of one row.
type FeedComponent struct {
	Name  string  // unique in the feed
	Role  Role    // what it is for
	DType DType   // of the tensor's elements
	Dims  []int64 // a negative one may differ from element to element; nil for scalars
}

// NewFeed makes a feed that holds at most `capacity` elements.
func NewFeed(context *Context, capacity int64, components ...FeedComponent) (*Feed, error) {
	number, err := declareFeed(context, capacity, components)
	if err != nil {
		return nil, err
	}
	return wrapFeed(number)
}

// NewBatchFeed makes a feed whose elements are batches of 1 to `mostRows` rows, which may differ from push to push: the
// first dimension of each tensor is the rows. Its pipeline needs no Batch: what is pushed is what a step of training
// takes, its rows split over the replicas. It holds at most `capacity` batches.
func NewBatchFeed(context *Context, capacity, mostRows int64, components ...FeedComponent) (*Feed, error) {
	number, err := declareFeed(context, capacity, components)
	if err != nil {
		return nil, err
	}
	var failure uintptr
	if code := raw.Feed_set_batch_size(number, mostRows, &failure); code != 0 {
		raw.Feed_unref(number)
		return nil, fromC(code, failure)
	}
	return wrapFeed(number)
}

func declareFeed(context *Context, capacity int64, components []FeedComponent) (uintptr, error) {
	var use uses
	defer use.leave()
	number := use.of(context.ref())
	if use.err != nil {
		return 0, use.err
	}
	var out, failure uintptr
	if code := raw.Feed_create(number, capacity, &out, &failure); code != 0 {
		return 0, fromC(code, failure)
	}
	for _, c := range components {
		if code := raw.Feed_declare(out, c.Name, int32(c.Role), int32(c.DType), c.Dims, &failure); code != 0 {
			raw.Feed_unref(out)
			return 0, fromC(code, failure)
		}
	}
	return out, nil
}

func wrapFeed(number uintptr) (*Feed, error) {
	var token, failure uintptr
	if code := raw.Cancel_create(&token, &failure); code != 0 {
		raw.Feed_unref(number)
		return nil, fromC(code, failure)
	}
	h := newHandle("Feed", number, func(number uintptr) {
		raw.Feed_unref(number)
		raw.Cancel_unref(token)
	})
	life, end := context.WithCancel(context.Background())
	h.life = life
	h.closing = func() {
		end()
		raw.Cancel_request(token, raw.CANCEL_CANCEL, nil)
	}
	return &Feed{object{h}, token}, nil
}

// Push adds one element, a tensor for each component; it waits while the feed is full. The tensors are shared, not
// copied, and may be closed.
func (f *Feed) Push(ctx context.Context, element ...*Tensor) error {
	var use uses
	defer use.leave()
	number := use.of(f.ref())
	tensors := make([]uintptr, len(element))
	for i, tensor := range element {
		tensors[i] = use.of(tensor.ref())
	}
	if use.err != nil {
		return use.err
	}
	var failure uintptr
	if number != 0 && (ctx == nil || ctx.Done() == nil) { // nothing but Close can end the call
		code := raw.Feed_push(number, tensors, f.token, &failure)
		return (&call{ctx: context.Background(), life: f.life()}).result(code, failure)
	}
	c, err := begin(ctx, nil, f.life())
	if err != nil {
		return err
	}
	defer c.end()
	code := raw.Feed_push(number, tensors, c.token, &failure)
	return c.result(code, failure)
}

// Finish says that no more elements will come.
func (f *Feed) Finish() error {
	return f.do(func(number uintptr, failure *uintptr) int32 { return raw.Feed_finish(number, failure) })
}

// Fail makes the reader fail; the error is found, by errors.Is and errors.As, in what the reading call returns.
func (f *Feed) Fail(reason error) error {
	if reason == nil {
		return invalid("the reason is nil")
	}
	_, text := describe(reason)
	return f.do(func(number uintptr, failure *uintptr) int32 {
		return raw.Feed_fail(number, feedNumber(reason), text, failure)
	})
}

func (f *Feed) do(function func(number uintptr, failure *uintptr) int32) error {
	var use uses
	defer use.leave()
	number := use.of(f.ref())
	if use.err != nil {
		return use.err
	}
	var failure uintptr
	code := function(number, &failure)
	return fromC(code, failure)
}

// Position is the number of the first element that the reader needs: 0, or where a resumed training goes on, which is
// known when its hooks get EventBegin. Training from a checkpoint fails where elements were pushed before that.
func (f *Feed) Position() int64 {
	var use uses
	defer use.leave()
	return raw.Feed_get_position(use.of(f.ref()))
}

// PushAll pushes what `next` gives, which gets the context, until io.EOF, then finishes the feed; another error, or a
// panic, fails it. The tensors are closed once pushed. It is meant for a goroutine of its own:
//
//	go feed.PushAll(ctx, next)
func (f *Feed) PushAll(ctx context.Context, next func(ctx context.Context) ([]*Tensor, error)) error {
	for {
		var element []*Tensor
		err := guarded(func() (err error) {
			element, err = next(ctx)
			return err
		})
		if errors.Is(err, io.EOF) {
			return f.Finish()
		}
		if err == nil {
			err = f.Push(ctx, element...)
		}
		closeAll(element)
		if err != nil {
			_ = f.Fail(err) // when the feed is closed or ended there is no reader to tell
			return err
		}
	}
}

// PushChannel pushes what a channel gives until it is closed; otherwise as PushAll.
func (f *Feed) PushChannel(ctx context.Context, elements <-chan []*Tensor) error {
	if ctx == nil {
		ctx = context.Background()
	}
	var closing <-chan struct{}
	if life := f.life(); life != nil {
		closing = life.Done()
	}
	return f.PushAll(ctx, func(ctx context.Context) ([]*Tensor, error) {
		select {
		case element, more := <-elements:
			if !more {
				return nil, io.EOF
			}
			return element, nil
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-closing:
			return nil, ErrClosed
		}
	})
}
