// SPDX-License-Identifier: Apache-2.0

package tutti

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"tutti.org/tutti/internal/raw"
)

// Calls that wait under one context cost no goroutine each, beside those that made them.
func TestCallsNeedNoGoroutines(t *testing.T) {
	live(t)
	const calls = 40
	feed := must[*Feed](t)(NewFeed(nil, 1, FeedComponent{"x", Feature, Float32, nil}))
	dataset := must[*Dataset](t)(NewPipeline(nil).AddFeed(feed).Build())
	closed(t, feed, dataset)
	element := must[*Tensor](t)(NewScalar(float32(1)))
	closed(t, element)
	if err := feed.Push(background, element); err != nil { // it is full now
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(background)
	defer cancel()
	before := runtime.NumGoroutine()
	failures := make(chan error)
	for i := 0; i < calls; i++ {
		go func() { failures <- feed.Push(ctx, element) }()
	}
	time.Sleep(50 * time.Millisecond)
	if now := runtime.NumGoroutine(); now > before+calls+4 {
		t.Errorf("%d goroutines for %d calls", now-before, calls)
	}
	cancel()
	for i := 0; i < calls; i++ {
		if err := <-failures; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	}
}

// One context ends the calls that run, at any moment, and later ones; others go on.
func TestContextsEndTheirCallsOnly(t *testing.T) {
	live(t)
	dataset := must[*Dataset](t)(upTo(1000).Repeat(nil).Build())
	closed(t, dataset)
	var group sync.WaitGroup
	for i := 0; i < 8; i++ {
		group.Add(1)
		go func(i int) {
			defer group.Done()
			iterator := must[*Iterator](t)(dataset.Iterator(int64(i)))
			defer iterator.Close()
			for round := 0; round < 20; round++ {
				ctx, cancel := context.WithTimeout(background, time.Duration(round*50)*time.Microsecond)
				var err error
				for err == nil {
					var element []*Tensor
					element, err = iterator.Next(ctx)
					closeAll(element)
				}
				cancel()
				if !errors.Is(err, context.DeadlineExceeded) {
					t.Error(err)
				}
			}
			closeAll(must[[]*Tensor](t)(iterator.Next(background)))
		}(i)
	}
	group.Wait()
}

func TestAClosedFeedEndsItsPushes(t *testing.T) {
	live(t)
	feed := must[*Feed](t)(NewFeed(nil, 1, FeedComponent{"x", Feature, Float32, nil}))
	dataset := must[*Dataset](t)(NewPipeline(nil).AddFeed(feed).Build())
	element := must[*Tensor](t)(NewScalar(float32(1)))
	closed(t, feed, dataset, element)
	ctx, cancel := context.WithCancel(background)
	defer cancel()
	if err := feed.Push(ctx, element); err != nil {
		t.Fatal(err)
	}
	failures := make(chan error)
	for _, ctx := range []context.Context{ctx, background, nil} {
		go func(ctx context.Context) { failures <- feed.Push(ctx, element) }(ctx)
	}
	time.Sleep(20 * time.Millisecond)
	feed.Close()
	for i := 0; i < 3; i++ {
		if err := <-failures; !errors.Is(err, ErrClosed) {
			t.Error(err)
		}
	}
}

// A library that does not fit is an error of each call that begins something, and no panic at the start of the program.
const fitting = raw.ABI_MAJOR<<16 + raw.ABI_MINOR

func TestALibraryThatDoesNotFit(t *testing.T) {
	if checkVersion(0) == nil || checkVersion(fitting+1<<16) == nil || checkVersion(fitting) != nil {
		t.Error(checkVersion(0))
	}
	mismatch = checkVersion(0)
	defer func() { mismatch = nil }()
	calls := map[string]func() error{
		"context":   func() error { _, err := NewContext(nil); return err },
		"tensor":    func() error { _, err := NewTensor([]float32{1}); return err },
		"zeros":     func() error { _, err := Zeros(Float32, 1); return err },
		"wrap":      func() error { _, err := WrapMemory(Float32, make([]byte, 4), nil); return err },
		"pipeline":  func() error { _, err := NewPipeline(nil).Build(); return err },
		"estimator": func() error { _, err := NewEstimator(toyModel, nil); return err },
		"predictor": func() error { _, err := OpenPredictor("none", nil); return err },
		"strategy":  func() error { _, err := Mirrored(nil); return err },
		"feed":      func() error { _, err := NewFeed(nil, 1); return err },
		"writer":    func() error { _, err := NewRecordWriter(nil, "none", ""); return err },
		"options":   func() error { _, err := ResolvedOptions(RunOptions{}); return err },
	}
	for name, call := range calls {
		if err := call(); !errors.Is(err, FailedPrecondition) || !strings.Contains(err.Error(), "does not fit") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func benchmarkNext(b *testing.B, ctx context.Context) {
	dataset := must[*Dataset](b)(upTo(1000).Repeat(nil).Build())
	iterator := must[*Iterator](b)(dataset.Iterator(0))
	closed(b, dataset, iterator)
	b.ResetTimer()
	for i := 0; i < b.N; i++ {
		closeAll(must[[]*Tensor](b)(iterator.Next(ctx)))
	}
}

// BenchmarkNext and BenchmarkNextCancellable show what it costs that a context can end a call.
func BenchmarkNext(b *testing.B) { benchmarkNext(b, background) }

func BenchmarkNextCancellable(b *testing.B) {
	ctx, cancel := context.WithCancel(background)
	defer cancel()
	benchmarkNext(b, ctx)
}

// BenchmarkCall is what a call takes beside what it does: its token, and that somebody knows of the context's end.
func BenchmarkCall(b *testing.B) {
	ctx, cancel := context.WithCancel(background)
	defer cancel()
	b.ReportAllocs()
	for i := 0; i < b.N; i++ {
		must[*call](b)(begin(ctx, nil, nil)).end()
	}
}
