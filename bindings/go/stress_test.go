// SPDX-License-Identifier: Apache-2.0

package tutti

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"testing"
	"time"
)

// Objects are made, used and closed by many goroutines at once while the collector runs without pause.
func TestClosingRaces(t *testing.T) {
	live(t)
	dataset := toyTestset(t)
	closed(t, dataset)
	stop := make(chan struct{})
	var collector, group sync.WaitGroup
	collector.Add(1)
	go func() {
		defer collector.Done()
		for {
			select {
			case <-stop:
				return
			default:
				runtime.GC()
			}
		}
	}()
	for i := 0; i < 8; i++ {
		group.Add(1)
		go func() {
			defer group.Done()
			for round := 0; round < 30; round++ {
				tensor, err := NewTensor(make([]float32, 1000))
				if err != nil {
					t.Error(err)
					return
				}
				var inner sync.WaitGroup
				for j := 0; j < 3; j++ {
					inner.Add(1)
					go func(j int) {
						defer inner.Done()
						if j == 2 {
							tensor.Close()
							return
						}
						err := View(tensor, func(data []float32) error { _ = data[999]; return nil })
						if err != nil && !errors.Is(err, ErrClosed) {
							t.Error(err)
						}
					}(j)
				}
				inner.Wait()
				iterator, err := dataset.Iterator(int64(round))
				if err != nil {
					t.Error(err)
					return
				}
				if _, err := iterator.Next(background); err != nil {
					t.Error(err)
				}
			}
		}()
	}
	group.Wait()
	close(stop)
	collector.Wait()
}

// Estimators with hooks, cancelled from elsewhere at any moment, leave nothing behind and can be used again.
func TestCancellingAtAnyMoment(t *testing.T) {
	live(t)
	dataset, estimator := toyDataset(t), toyEstimator(t, RunOptions{})
	closed(t, dataset, estimator)
	for i := 0; i < 30; i++ {
		ctx, cancel := context.WithTimeout(background, time.Duration(i)*300*time.Microsecond)
		_, err := estimator.Train(ctx, dataset, nil, OnStep(1, func(*Event) error { return nil }))
		cancel()
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Fatal(err)
		}
	}
	must[*Result](t)(estimator.Train(background, dataset, &TrainOptions{Steps: 2}))
}

// A model function holds an object that holds the estimator: the collector takes the whole ring once it is closed.
func TestCallbacksAreReleased(t *testing.T) {
	live(t)
	released := make(chan struct{}, 2)
	func() {
		big := &struct{ data [1 << 20]byte }{}
		runtime.SetFinalizer(big, func(any) { released <- struct{}{} })
		other := &struct{ data [1 << 20]byte }{}
		runtime.SetFinalizer(other, func(any) { released <- struct{}{} })
		estimator := must[*Estimator](t)(NewEstimator(func(g *Graph, mode Mode) error {
			big.data[0]++
			return toyModel(g, mode)
		}, nil))
		dataset := toyDataset(t)
		must[*Result](t)(estimator.Train(background, dataset, &TrainOptions{Steps: 1}, OnStep(1, func(*Event) error {
			other.data[0]++
			return nil
		})))
		dataset.Close()
		estimator.Close()
	}()
	for i, seen := 0, 0; i < 200; i++ {
		runtime.GC()
		select {
		case <-released:
			if seen++; seen == 2 {
				return
			}
		case <-time.After(10 * time.Millisecond):
			reap()
		}
	}
	t.Error("the model function or the hook is still held")
}

// The process may end while training runs; this test calls itself as a program that does so.
func TestExitWhileTraining(t *testing.T) {
	if os.Getenv("TUTTI_EXIT_WHILE_TRAINING") != "" {
		go toyEstimator(t, RunOptions{}).Train(background, toyDataset(t), nil)
		time.Sleep(50 * time.Millisecond)
		os.Exit(0)
	}
	command := exec.Command(os.Args[0], "-test.run=^TestExitWhileTraining$")
	command.Env = append(os.Environ(), "TUTTI_EXIT_WHILE_TRAINING=yes")
	if output, err := command.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, output)
	}
}

// BenchmarkHook reports what one call of a hook takes: from the first to the last of 100 that see the same event.
func BenchmarkHook(b *testing.B) {
	const count = 100
	dataset, estimator := toyDataset(b), toyEstimator(b, RunOptions{})
	closed(b, dataset, estimator)
	var first time.Time
	var sum time.Duration
	hooks := make([]Hook, count)
	for i := range hooks {
		hooks[i] = OnStep(1, func(*Event) error { return nil })
	}
	hooks[0] = OnStep(1, func(*Event) error { first = time.Now(); return nil })
	hooks[count-1] = OnStep(1, func(*Event) error { sum += time.Since(first); return nil })
	b.ResetTimer()
	must[*Result](b)(estimator.Train(background, dataset, &TrainOptions{Steps: int64(b.N)}, hooks...))
	b.ReportMetric(float64(sum.Nanoseconds())/float64(b.N)/(count-1), "ns/hook")
}

const benchmarkCapacity = 4

// benchmarkPush pushes batches while another goroutine reads them.
func benchmarkPush(b *testing.B, floats int64) {
	component := FeedComponent{"x", Feature, Float32, []int64{floats}}
	feed := must[*Feed](b)(NewFeed(nil, benchmarkCapacity, component))
	dataset := must[*Dataset](b)(NewPipeline(nil).AddFeed(feed).Build())
	iterator := must[*Iterator](b)(dataset.Iterator(0))
	closed(b, feed, dataset, iterator)
	read := make(chan error)
	go func() {
		for {
			element, err := iterator.Next(background)
			if err != nil || element == nil {
				read <- err
				return
			}
			for _, tensor := range element {
				tensor.Close()
			}
		}
	}()
	data := make([]float32, floats)
	b.ResetTimer()
	for i := 0; i < b.N; i++ {
		tensor := must[*Tensor](b)(NewTensor(data))
		if err := feed.Push(background, tensor); err != nil {
			b.Fatal(err)
		}
		tensor.Close()
	}
	b.StopTimer()
	feed.Finish()
	<-read
}

func BenchmarkPush1MB(b *testing.B) {
	b.SetBytes(1 << 20)
	benchmarkPush(b, 1<<18)
}

// BenchmarkPush4Bytes is what a push takes beside its bytes: the wake-up of the reader.
func BenchmarkPush4Bytes(b *testing.B) { benchmarkPush(b, 1) }

// BenchmarkCopy1MB copies into one place of a ring after the other, as a feed's batches lie.
func BenchmarkCopy1MB(b *testing.B) {
	data, ring := make([]float32, 1<<18), [benchmarkCapacity + 2][]float32{}
	for i := range ring {
		ring[i] = make([]float32, 1<<18)
	}
	b.SetBytes(1 << 20)
	b.ResetTimer()
	for i := 0; i < b.N; i++ {
		copy(ring[i%len(ring)], data)
	}
}
