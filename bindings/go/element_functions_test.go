// SPDX-License-Identifier: Apache-2.0

package tutti

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

func doubled(_ context.Context, element []*Tensor) ([]*Tensor, error) {
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
		dataset := must[*Dataset](t)(upTo(100).
			Map(parallelism, func(_ context.Context, element []*Tensor) ([]*Tensor, error) {
				if now := atomic.AddInt64(&running, 1); now > atomic.LoadInt64(&most) {
					atomic.StoreInt64(&most, now)
				}
				defer atomic.AddInt64(&running, -1)
				time.Sleep(time.Duration(rand.Intn(300)) * time.Microsecond)
				return doubled(background, element)
			}, nil).Batch(100, nil).Build())
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
		Map(1, func(_ context.Context, element []*Tensor) ([]*Tensor, error) {
			kept = element[0]
			return element, nil
		}, nil).Build())
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
	broken := func(function func(context.Context, []*Tensor) ([]*Tensor, error)) error {
		dataset, err := AddSlices(NewPipeline(nil), "n", Feature, count(5)).Map(2, function, nil).Build()
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
		return broken(func(context.Context, []*Tensor) ([]*Tensor, error) { return nil, fail() })
	})
	wrong := map[string]func(context.Context, []*Tensor) ([]*Tensor, error){
		"no tensors": func(context.Context, []*Tensor) ([]*Tensor, error) { return nil, nil },
		"nil tensor": func(context.Context, []*Tensor) ([]*Tensor, error) { return []*Tensor{nil}, nil },
		"closed tensor": func(_ context.Context, element []*Tensor) ([]*Tensor, error) {
			element[0].Close()
			return element, nil
		},
		"other type": func(context.Context, []*Tensor) ([]*Tensor, error) {
			tensor, err := NewScalar(float32(1))
			return []*Tensor{tensor}, err
		},
		"ended goroutine": func(context.Context, []*Tensor) ([]*Tensor, error) { runtime.Goexit(); return nil, nil },
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
	count := func(_ context.Context, element []*Tensor) ([]*Tensor, error) {
		atomic.AddInt64(&calls, 1)
		return element, nil
	}
	counted := toyPipeline().Shuffle(toyRows, nil).Map(2, count, nil)
	train := must[*Dataset](t)(counted.Batch(toyBatch, nil).Prefetch(nil).Build())
	plain := must[*Dataset](t)(toyPipeline().Shuffle(toyRows, nil).Batch(toyBatch, nil).Build())
	closed(t, train, plain)
	loss := func(dataset *Dataset) float64 {
		estimator := toyEstimator(t, RunOptions{Seed: 4, Determinism: "repeatable"})
		defer estimator.Close()
		return must[*Result](t)(estimator.Train(background, dataset, &TrainOptions{Epochs: 3})).Loss
	}
	if mapped, wanted := loss(train), loss(plain); mapped != wanted || calls < 3*toyRows {
		t.Errorf("loss %v, not %v, after %d calls", mapped, wanted, calls)
	}
	fail := func(context.Context, []*Tensor) ([]*Tensor, error) { return nil, errMine }
	failing := must[*Dataset](t)(toyPipeline().Map(2, fail, nil).Batch(8, nil).Build())
	estimator := toyEstimator(t, RunOptions{})
	closed(t, failing, estimator)
	_, err := estimator.Train(background, failing, nil)
	if !errors.Is(err, errMine) || !strings.Contains(err.Error(), "mine") {
		t.Error(err)
	}
}

func scalar(value int64) *Tensor {
	tensor, err := NewScalar(value)
	if err != nil {
		panic(err)
	}
	return tensor
}

func value(tensor *Tensor) int64 {
	values, err := Values[int64](tensor)
	if err != nil {
		panic(err)
	}
	return values[0]
}

func upTo(n int64) *Pipeline { return AddSlices(NewPipeline(nil), "n", Feature, count(n)) }

func gives(t *testing.T, pipeline *Pipeline, wanted string) {
	t.Helper()
	dataset := must[*Dataset](t)(pipeline.Build())
	defer dataset.Close()
	for pass := 0; pass < 2; pass++ {
		if got := fmt.Sprint(rows(t, dataset)); got != wanted {
			t.Errorf("%s, not %s", got, wanted)
		}
	}
}

func runningSum(_ context.Context, state, element []*Tensor) (newState, output []*Tensor, err error) {
	sum := value(state[0]) + value(element[0])
	return []*Tensor{scalar(sum)}, []*Tensor{scalar(sum)}, nil
}

func scanZero(t *testing.T) []ScanState {
	zero := scalar(0)
	closed(t, zero)
	return []ScanState{{"sum", zero}}
}

func TestPredicatesInGo(t *testing.T) {
	live(t)
	odd := func(_ context.Context, element []*Tensor) (bool, error) { return value(element[0])%2 == 1, nil }
	gives(t, upTo(7).Filter(odd), "[[1] [3] [5]]")
	below := func(_ context.Context, element []*Tensor) (bool, error) { return value(element[0]) < 3, nil }
	gives(t, upTo(7).TakeWhile(below).Batch(3, nil), "[[0 1 2]]")
}

func TestScanInGo(t *testing.T) {
	live(t)
	gives(t, upTo(5).Scan(scanZero(t), runningSum, nil), "[[0] [1] [3] [6] [10]]")
	gives(t, upTo(5).ScanGraph(scanZero(t), func(g *Graph) error {
		sum := g.Add(g.Feature("sum"), g.Feature("n"))
		g.SetOutput("sum", sum)
		g.SetOutput("n", sum)
		return nil
	}), "[[0] [1] [3] [6] [10]]")
	two := must[*Dataset](t)(AddSlices(upTo(1), "square", Feature, count(1)).Build())
	closed(t, two)
	wider := upTo(4).Scan(scanZero(t), func(_ context.Context, state, element []*Tensor) ([]*Tensor, []*Tensor, error) {
		n := value(element[0])
		return state, []*Tensor{scalar(n * n), scalar(n)}, nil
	}, &ScanOptions{Like: two})
	gives(t, wider, "[[0] [1] [4] [9]]")
}

// Lines of text become features and labels.
func TestMapToOtherComponentsInGo(t *testing.T) {
	live(t)
	path := filepath.Join(t.TempDir(), "pairs.txt")
	if err := os.WriteFile(path, []byte("3 1\n4 0\n5 1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	two := must[*Dataset](t)(AddSlices(upTo(1), "odd", Feature, count(1)).Build())
	closed(t, two)
	parse := func(_ context.Context, element []*Tensor) ([]*Tensor, error) {
		texts, err := Texts(element[0])
		if err != nil {
			return nil, err
		}
		var n, odd int64
		if _, err := fmt.Sscan(texts[0], &n, &odd); err != nil {
			return nil, err
		}
		if n == 4 {
			return []*Tensor{scalar(n)}, nil
		}
		return []*Tensor{scalar(n), scalar(odd)}, nil
	}
	pairs := NewPipeline(nil).TextLines([]string{path}, nil).Map(2, parse, &MapOptions{Like: two})
	pairs.Select(&SelectOptions{Features: []string{"x = n"}, Labels: []string{"odd"}})
	dataset := must[*Dataset](t)(pairs.Build())
	iterator := must[*Iterator](t)(dataset.Iterator(0))
	closed(t, dataset, iterator)
	wanted := fmt.Sprint([]Component{{"x", Feature}, {"odd", Label}})
	if components := fmt.Sprint(dataset.Components()); components != wanted {
		t.Error(components)
	}
	for _, wanted := range []int64{3, 4, 5} {
		element, err := iterator.Next(background)
		if wanted == 4 {
			if err == nil || !strings.Contains(err.Error(), "the function gives 1 tensors; expected 2") {
				t.Error(err)
			}
			continue
		}
		if err != nil || value(element[0]) != wanted || value(element[1]) != wanted%2 {
			t.Error(element, err)
		}
		closeAll(element)
	}
}

// A walk that goes on in the middle has the state of that place.
func TestScansGoOn(t *testing.T) {
	live(t)
	dataset := must[*Dataset](t)(upTo(6).Scan(scanZero(t), runningSum, nil).Build())
	iterator, again := must[*Iterator](t)(dataset.Iterator(0)), must[*Iterator](t)(dataset.Iterator(0))
	closed(t, dataset, iterator, again)
	for i := 0; i < 4; i++ {
		closeAll(must[[]*Tensor](t)(iterator.Next(background)))
	}
	if err := again.Restore(must[string](t)(iterator.Save())); err != nil {
		t.Fatal(err)
	}
	element := must[[]*Tensor](t)(again.Next(background))
	if sum := value(element[0]); sum != 0+1+2+3+4 {
		t.Error(sum)
	}
	closeAll(element)
}

// always gives one dataset for every element.
func always(dataset *Dataset) ExpandFunc {
	return func(context.Context, []*Tensor) (*Dataset, error) { return dataset, nil }
}

func TestDatasetsOfElementsInGo(t *testing.T) {
	live(t)
	expand := func(_ context.Context, element []*Tensor) (*Dataset, error) {
		base := 10 * value(element[0])
		return AddSlices(NewPipeline(nil), "n", Feature, []int64{base, base + 1, base + 2}).Build()
	}
	gives(t, upTo(2).FlatMap(expand, nil), "[[0] [1] [2] [10] [11] [12]]")
	gives(t, upTo(2).FlatMap(expand, &FlatMapOptions{ReadAhead: true}), "[[0] [1] [2] [10] [11] [12]]")
	gives(t, upTo(3).InterleaveMap(expand, &InterleaveMapOptions{CycleLength: 2, BlockLength: 2}),
		"[[0] [1] [10] [11] [2] [12] [20] [21] [22]]")
	shared := must[*Dataset](t)(AddSlices(NewPipeline(nil), "text", Label, []float32{1, 2}).Build())
	closed(t, shared)
	dataset := must[*Dataset](t)(upTo(3).FlatMap(always(shared), &FlatMapOptions{Like: shared}).Build())
	closed(t, dataset)
	if got := dataset.Components(); len(got) != 1 || got[0] != (Component{"text", Label}) {
		t.Error(got)
	}
	if got := fmt.Sprint(walk[float32](t, dataset)); got != "[[1] [2] [1] [2] [1] [2]]" {
		t.Error(got)
	}
}

func TestGeneratorsInGo(t *testing.T) {
	live(t)
	generator := func(_ context.Context, pass, index int64) ([]*Tensor, error) {
		if index == 3 {
			return nil, io.EOF
		}
		return []*Tensor{scalar(10*pass + index)}, nil
	}
	component := FeedComponent{"n", Feature, Int64, nil}
	gives(t, NewPipeline(nil).AddGenerator(generator, component).Repeat(&RepeatOptions{Count: I64(2)}),
		"[[0] [1] [2] [10] [11] [12]]")
	dataset := must[*Dataset](t)(NewPipeline(nil).AddGenerator(generator, component).Build())
	iterator, again := must[*Iterator](t)(dataset.Iterator(0)), must[*Iterator](t)(dataset.Iterator(0))
	closed(t, dataset, iterator, again)
	closeAll(must[[]*Tensor](t)(iterator.Next(background)))
	if err := again.Restore(must[string](t)(iterator.Save())); err != nil {
		t.Fatal(err)
	}
	element := must[[]*Tensor](t)(again.Next(background))
	if got := value(element[0]); got != 1 {
		t.Error(got)
	}
	closeAll(element)
}

func TestFunctionsInGoFail(t *testing.T) {
	live(t)
	broken := func(pipeline *Pipeline) error {
		dataset, err := pipeline.Build()
		if err != nil {
			return err
		}
		defer dataset.Close()
		iterator := must[*Iterator](t)(dataset.Iterator(0))
		defer iterator.Close()
		_, err = iterator.Next(background)
		return err
	}
	component := FeedComponent{"n", Feature, Int64, nil}
	ways := map[string]func(fail func() error) *Pipeline{
		"filter": func(fail func() error) *Pipeline {
			return upTo(3).Filter(func(context.Context, []*Tensor) (bool, error) { return true, fail() })
		},
		"take while": func(fail func() error) *Pipeline {
			return upTo(3).TakeWhile(func(context.Context, []*Tensor) (bool, error) { return true, fail() })
		},
		"scan": func(fail func() error) *Pipeline {
			scan := func(_ context.Context, state, element []*Tensor) ([]*Tensor, []*Tensor, error) {
				return state, element, fail()
			}
			return upTo(3).Scan(scanZero(t), scan, nil)
		},
		"flat map": func(fail func() error) *Pipeline {
			return upTo(3).FlatMap(func(context.Context, []*Tensor) (*Dataset, error) { return nil, fail() }, nil)
		},
		"interleave": func(fail func() error) *Pipeline {
			return upTo(3).InterleaveMap(func(context.Context, []*Tensor) (*Dataset, error) { return nil, fail() }, nil)
		},
		"generator": func(fail func() error) *Pipeline {
			next := func(context.Context, int64, int64) ([]*Tensor, error) { return nil, fail() }
			return NewPipeline(nil).AddGenerator(next, component)
		},
	}
	for name, pipeline := range ways {
		t.Run(name, func(t *testing.T) {
			brokenBy(t, func(t *testing.T, fail func() error) error { return broken(pipeline(fail)) })
		})
	}
	shut := must[*Dataset](t)(upTo(1).Build())
	shut.Close()
	wrong := map[string]*Pipeline{
		"nil predicate":     upTo(3).Filter(nil),
		"nil scan":          upTo(3).Scan(scanZero(t), nil, nil),
		"nil expand":        upTo(3).FlatMap(nil, nil),
		"nil generator":     NewPipeline(nil).AddGenerator(nil, component),
		"no state":          upTo(3).Scan(nil, runningSum, nil),
		"state of nil":      upTo(3).Scan([]ScanState{{"sum", nil}}, runningSum, nil),
		"no dataset":        upTo(3).FlatMap(always(nil), nil),
		"a closed dataset":  upTo(3).FlatMap(always(shut), nil),
		"like what is gone": upTo(3).FlatMap(always(shut), &FlatMapOptions{Like: shut}),
		"the state outside its place": upTo(3).Scan(scanZero(t),
			func(_ context.Context, state, element []*Tensor) ([]*Tensor, []*Tensor, error) {
				return nil, []*Tensor{state[0], element[0]}, nil
			}, nil),
		"a generator without tensors": NewPipeline(nil).AddGenerator(
			func(context.Context, int64, int64) ([]*Tensor, error) { return nil, nil }, component),
	}
	for name, pipeline := range wrong {
		err := broken(pipeline)
		var ours *Error
		if !errors.As(err, &ours) && !errors.Is(err, ErrClosed) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func BenchmarkMapInGo(b *testing.B) {
	dataset := must[*Dataset](b)(AddSlices(NewPipeline(nil), "n", Feature, count(1000)).Repeat(nil).
		Map(1, func(_ context.Context, element []*Tensor) ([]*Tensor, error) { return element, nil }, nil).Build())
	iterator := must[*Iterator](b)(dataset.Iterator(0))
	closed(b, dataset, iterator)
	b.ResetTimer()
	for i := 0; i < b.N; i++ {
		closeAll(must[[]*Tensor](b)(iterator.Next(background)))
	}
}
