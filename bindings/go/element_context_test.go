// SPDX-License-Identifier: Apache-2.0

package tutti

import (
	"context"
	"errors"
	"runtime"
	"sync/atomic"
	"testing"
	"time"
)

// A function that waits for its context is let go when the call's ends; its element comes with the next call.
func TestFunctionsKnowWhenTheirCallEnds(t *testing.T) {
	live(t)
	var waits atomic.Bool
	waits.Store(true)
	wait := func(ctx context.Context) error {
		if !waits.Load() {
			return ctx.Err()
		}
		<-ctx.Done()
		return ctx.Err()
	}
	pipelines := map[string]*Pipeline{
		"map": upTo(3).Map(1, func(ctx context.Context, element []*Tensor) ([]*Tensor, error) {
			return element, wait(ctx)
		}, nil),
		"filter": upTo(3).Filter(func(ctx context.Context, element []*Tensor) (bool, error) {
			return true, wait(ctx)
		}),
		"scan": upTo(3).Scan(scanZero(t), func(ctx context.Context, state, element []*Tensor) (
			newState, output []*Tensor, err error) {
			return state, element, wait(ctx)
		}, nil),
		"generator": NewPipeline(nil).AddGenerator(func(ctx context.Context, pass, index int64) ([]*Tensor, error) {
			return []*Tensor{scalar(index)}, wait(ctx)
		}, FeedComponent{"n", Feature, Int64, nil}),
	}
	for name, pipeline := range pipelines {
		t.Run(name, func(t *testing.T) {
			waits.Store(true)
			dataset := must[*Dataset](t)(pipeline.Build())
			iterator := must[*Iterator](t)(dataset.Iterator(0))
			closed(t, dataset, iterator)
			ctx, cancel := context.WithTimeout(background, 30*time.Millisecond)
			defer cancel()
			if _, err := iterator.Next(ctx); !errors.Is(err, context.DeadlineExceeded) {
				t.Fatal(err)
			}
			waits.Store(false)
			for i := int64(0); i < 3; i++ {
				element := must[[]*Tensor](t)(iterator.Next(background))
				if got := value(element[0]); got != i {
					t.Errorf("element %d, not %d", got, i)
				}
				closeAll(element)
			}
		})
	}
}

// Threads that work ahead are for the iterator: closing it lets their functions go.
func TestFunctionsAheadKnowWhenTheIteratorIsClosed(t *testing.T) {
	live(t)
	goroutines := runtime.NumGoroutine()
	begun, ended := make(chan struct{}, 10), make(chan struct{}, 10)
	dataset := must[*Dataset](t)(upTo(3).Map(2, func(ctx context.Context, element []*Tensor) ([]*Tensor, error) {
		begun <- struct{}{}
		<-ctx.Done()
		ended <- struct{}{}
		return nil, ctx.Err()
	}, nil).Prefetch(nil).Build())
	iterator := must[*Iterator](t)(dataset.Iterator(0))
	ctx, cancel := context.WithTimeout(background, 20*time.Millisecond)
	defer cancel()
	if _, err := iterator.Next(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
	<-begun
	iterator.Close()
	<-ended
	dataset.Close()
	becomes(t, "the end of the goroutines", func() bool { return runtime.NumGoroutine() <= goroutines })
}

// The context of a function ends with the function, whoever still holds it.
func TestContextsEndWithTheirFunctions(t *testing.T) {
	live(t)
	var kept context.Context
	dataset := must[*Dataset](t)(upTo(1).Map(1, func(ctx context.Context, element []*Tensor) ([]*Tensor, error) {
		if _, hasDeadline := ctx.Deadline(); hasDeadline || ctx.Err() != nil || ctx.Value("key") != nil {
			t.Error(ctx.Err())
		}
		kept = ctx
		child, cancel := context.WithCancel(ctx)
		defer cancel()
		return element, child.Err()
	}, nil).Build())
	closed(t, dataset)
	rows(t, dataset)
	if <-kept.Done(); !errors.Is(kept.Err(), context.Canceled) {
		t.Error(kept.Err())
	}
}
