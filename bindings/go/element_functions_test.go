// SPDX-License-Identifier: Apache-2.0

package tutti

import (
	"errors"
	"fmt"
	"math/rand"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

func doubled(element []*Tensor) ([]*Tensor, error) {
	values, err := Values[int64](element[0])
	if err != nil {
		return nil, err
	}
	tensor, err := NewScalar(values[0] * 2)
	return []*Tensor{tensor}, err
}

func TestMapInGo(t *testing.T) {
	live(t)
	goroutines := runtime.NumGoroutine()
	for _, parallelism := range []int64{0, 1, 4} {
		var running, most int64
		dataset := must[*Dataset](t)(AddSlices(NewPipeline(nil), "n", Feature, count(100)).
			Map(parallelism, func(element []*Tensor) ([]*Tensor, error) {
				if now := atomic.AddInt64(&running, 1); now > atomic.LoadInt64(&most) {
					atomic.StoreInt64(&most, now)
				}
				defer atomic.AddInt64(&running, -1)
				time.Sleep(time.Duration(rand.Intn(300)) * time.Microsecond)
				return doubled(element)
			}).Batch(100).Build())
		for pass := 0; pass < 2; pass++ {
			got := rows(t, dataset)
			for i, value := range got[0] {
				if value != int64(2*i) {
					t.Fatalf("element %d is %d", i, value)
				}
			}
		}
		if parallelism > 0 && most > parallelism {
			t.Errorf("%d elements at a time, not %d", most, parallelism)
		}
		dataset.Close()
	}
	for i := 0; i < 200 && runtime.NumGoroutine() > goroutines; i++ {
		time.Sleep(10 * time.Millisecond)
	}
	if now := runtime.NumGoroutine(); now > goroutines {
		t.Errorf("%d goroutines, before %d", now, goroutines)
	}
}

func TestMapInGoGivesItsInputs(t *testing.T) {
	live(t)
	var kept *Tensor
	dataset := must[*Dataset](t)(AddSlices(NewPipeline(nil), "n", Feature, count(3)).
		Map(1, func(element []*Tensor) ([]*Tensor, error) {
			kept = element[0]
			return element, nil
		}).Build())
	closed(t, dataset)
	if got := fmt.Sprint(rows(t, dataset)); got != "[[0] [1] [2]]" {
		t.Error(got)
	}
	if _, err := Values[int64](kept); !errors.Is(err, ErrClosed) {
		t.Error(err)
	}
}

func TestMapInGoFails(t *testing.T) {
	live(t)
	broken := func(function func([]*Tensor) ([]*Tensor, error)) error {
		dataset, err := AddSlices(NewPipeline(nil), "n", Feature, count(5)).Map(2, function).Build()
		if err != nil {
			return err
		}
		defer dataset.Close()
		iterator := must[*Iterator](t)(dataset.Iterator(0))
		defer iterator.Close()
		_, err = iterator.Next(background)
		return err
	}
	brokenBy(t, func(t *testing.T, fail func() error) error {
		return broken(func([]*Tensor) ([]*Tensor, error) { return nil, fail() })
	})
	wrong := map[string]func([]*Tensor) ([]*Tensor, error){
		"no tensors": func([]*Tensor) ([]*Tensor, error) { return nil, nil },
		"nil tensor": func([]*Tensor) ([]*Tensor, error) { return []*Tensor{nil}, nil },
		"closed tensor": func(element []*Tensor) ([]*Tensor, error) {
			element[0].Close()
			return element, nil
		},
		"other type": func([]*Tensor) ([]*Tensor, error) {
			tensor, err := NewScalar(float32(1))
			return []*Tensor{tensor}, err
		},
		"ended goroutine": func([]*Tensor) ([]*Tensor, error) { runtime.Goexit(); return nil, nil },
		"nil function":    nil,
	}
	for name, function := range wrong {
		var ours *Error
		if err := broken(function); !errors.As(err, &ours) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestTrainingWithAMapInGo(t *testing.T) {
	live(t)
	var calls int64
	train := must[*Dataset](t)(toyPipeline().Shuffle(toyRows).Map(2, func(element []*Tensor) ([]*Tensor, error) {
		atomic.AddInt64(&calls, 1)
		return element, nil
	}).Batch(toyBatch).Prefetch().Build())
	plain := must[*Dataset](t)(toyPipeline().Shuffle(toyRows).Batch(toyBatch).Build())
	closed(t, train, plain)
	loss := func(dataset *Dataset) float64 {
		estimator := toyEstimator(t, RunOptions{Seed: 4, Determinism: "repeatable"})
		defer estimator.Close()
		return must[*Result](t)(estimator.Train(background, dataset, TrainOptions{Epochs: 3})).Loss
	}
	if mapped, wanted := loss(train), loss(plain); mapped != wanted || calls < 3*toyRows {
		t.Errorf("loss %v, not %v, after %d calls", mapped, wanted, calls)
	}
	fail := func([]*Tensor) ([]*Tensor, error) { return nil, errMine }
	failing := must[*Dataset](t)(toyPipeline().Map(2, fail).Batch(8).Build())
	estimator := toyEstimator(t, RunOptions{})
	closed(t, failing, estimator)
	_, err := estimator.Train(background, failing, TrainOptions{})
	if !errors.Is(err, errMine) || !strings.Contains(err.Error(), "mine") {
		t.Error(err)
	}
}

func BenchmarkMapInGo(b *testing.B) {
	dataset := must[*Dataset](b)(AddSlices(NewPipeline(nil), "n", Feature, count(1000)).Repeat().
		Map(1, func(element []*Tensor) ([]*Tensor, error) { return element, nil }).Build())
	iterator := must[*Iterator](b)(dataset.Iterator(0))
	closed(b, dataset, iterator)
	b.ResetTimer()
	for i := 0; i < b.N; i++ {
		closeAll(must[[]*Tensor](b)(iterator.Next(background)))
	}
}
