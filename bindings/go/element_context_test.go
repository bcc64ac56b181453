// SPDX-License-Identifier: Apache-2.0

package tutti

import (
	"context"
	"errors"
	"fmt"
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

// A function that never asks whether anybody waits: the call ends with the element under way, not with the batch, and
// what was read is part of what the next call gives.
func TestSlowFunctionsEndTheirCallWithTheElement(t *testing.T) {
	live(t)
	const batch = toyRows // of 20 ms each
	var calls atomic.Int64
	var cancel context.CancelFunc
	slow := func(_ context.Context, element []*Tensor) ([]*Tensor, error) {
		if calls.Add(1) == 3 {
			cancel()
		}
		if cancel != nil {
			time.Sleep(20 * time.Millisecond)
		}
		return element, nil
	}
	ends := func(name string, call func(ctx context.Context) error) {
		t.Helper()
		ctx, stop := context.WithCancel(background)
		calls.Store(0)
		cancel = stop
		err := call(ctx)
		cancel = nil
		if !errors.Is(err, context.Canceled) || calls.Load() > batch/2 {
			t.Errorf("%s: %v behind %d calls", name, err, calls.Load())
		}
	}
	numbers := must[*Dataset](t)(upTo(batch).Map(1, slow, nil).Batch(batch, nil).Build())
	iterator := must[*Iterator](t)(numbers.Iterator(0))
	rows := must[*Dataset](t)(toyPipeline().Map(1, slow, nil).Batch(batch, nil).Build())
	estimator := toyEstimator(t, RunOptions{Seed: 1})
	closed(t, numbers, iterator, rows, estimator)
	ends("Next", func(ctx context.Context) error {
		_, err := iterator.Next(ctx)
		return err
	})
	ends("Train", func(ctx context.Context) error {
		_, err := estimator.Train(ctx, rows, nil)
		return err
	})
	ends("Run", func(ctx context.Context) error {
		session := must[*Session](t)(estimator.OpenSession(ctx, rows, nil))
		defer session.Close()
		_, err := session.Run(1)
		return err
	})
	element := must[[]*Tensor](t)(iterator.Next(background))
	if got := must[[]int64](t)(Values[int64](element[0])); fmt.Sprint(got) != fmt.Sprint(count(batch)) {
		t.Error(got)
	}
	closeAll(element)
	if result := must[*Result](t)(estimator.Train(background, rows, nil)); result.Examples != toyRows {
		t.Errorf("%d examples", result.Examples)
	}
}
