// SPDX-License-Identifier: Apache-2.0

package tutti

import (
	"context"
	"errors"
	"fmt"
	"io"
	"testing"
)

// collect runs a loop by hand, up to `most` elements, and gives what came and the error that came.
func collect(all func(yield func([]*Tensor, error) bool), most int) (values []int64, failure error) {
	all(func(element []*Tensor, err error) bool {
		if err != nil {
			failure = err
			return true // it ends all the same
		}
		values = append(values, value(element[0]))
		closeAll(element)
		return len(values) < most
	})
	return values, failure
}

func expectLoop(t *testing.T, all func(yield func([]*Tensor, error) bool), most int, wanted string) {
	t.Helper()
	if values, err := collect(all, most); err != nil || fmt.Sprint(values) != wanted {
		t.Errorf("%v and %v, not %s", values, err, wanted)
	}
}

func TestLoopsOverDatasets(t *testing.T) {
	live(t)
	dataset := must[*Dataset](t)(upTo(5).Build())
	all := dataset.All(background, 0)
	iterators := LiveObjects("iterator")
	for pass := 0; pass < 2; pass++ { // each loop begins anew
		expectLoop(t, all, 100, "[0 1 2 3 4]")
		expectLoop(t, all, 2, "[0 1]")
		if now := LiveObjects("iterator"); now != iterators {
			t.Errorf("a loop has left %d iterators", now-iterators)
		}
	}
	func() {
		defer func() {
			if recover() != "the body" || LiveObjects("iterator") != iterators {
				t.Error("a panic leaves the iterator open")
			}
		}()
		all(func(element []*Tensor, _ error) bool {
			closeAll(element)
			panic("the body")
		})
	}()
	dataset.Close()
	if values, err := collect(all, 100); !errors.Is(err, ErrClosed) || values != nil {
		t.Error(values, err)
	}
}

func TestLoopsOverIteratorsGoOn(t *testing.T) {
	live(t)
	dataset := must[*Dataset](t)(upTo(6).Build())
	it := must[*Iterator](t)(dataset.Iterator(0))
	closed(t, dataset, it)
	all := it.All(background)
	expectLoop(t, all, 2, "[0 1]")
	place := must[string](t)(it.Save())
	expectLoop(t, all, 1, "[2]")
	ended, cancel := context.WithCancel(background)
	cancel()
	if values, err := collect(it.All(ended), 100); !errors.Is(err, context.Canceled) || values != nil {
		t.Error(values, err)
	}
	expectLoop(t, all, 100, "[3 4 5]") // nothing was lost
	expectLoop(t, all, 100, "[]")
	again := must[*Iterator](t)(dataset.Iterator(0))
	closed(t, again)
	if err := again.Restore(place); err != nil {
		t.Fatal(err)
	}
	expectLoop(t, again.All(background), 100, "[2 3 4 5]")
}

// An error is the last that a loop gives, also one that looks like the end; the next loop goes on behind its element.
func TestErrorsEndLoops(t *testing.T) {
	live(t)
	for _, failure := range []error{io.EOF, errors.New("no threes")} {
		dataset := must[*Dataset](t)(upTo(6).Map(1, func(_ context.Context, element []*Tensor) ([]*Tensor, error) {
			if value(element[0]) == 3 {
				return nil, failure
			}
			return element, nil
		}, nil).Build())
		it := must[*Iterator](t)(dataset.Iterator(0))
		values, err := collect(it.All(background), 100)
		if !errors.Is(err, failure) || fmt.Sprint(values) != "[0 1 2]" {
			t.Error(values, err)
		}
		expectLoop(t, it.All(background), 100, "[4 5]")
		it.Close()
		dataset.Close()
	}
}

func TestLoopsOverPredictions(t *testing.T) {
	live(t)
	estimator := toyEstimator(t, RunOptions{})
	data, test := toyDataset(t), toyTestset(t)
	closed(t, estimator, data, test)
	must[*Result](t)(estimator.Train(background, data, &TrainOptions{Steps: 1}))
	predictor := must[*Predictor](t)(estimator.Predictor(nil))
	stream := must[*PredictionStream](t)(predictor.Stream(test))
	closed(t, predictor, stream)
	rows := int64(0)
	body := func(most int64) func(batch *Batch, err error) bool {
		return func(batch *Batch, err error) bool {
			if err != nil || batch.FirstRow() != rows {
				t.Error(err, batch.FirstRow(), rows)
				return false
			}
			rows += batch.Rows()
			batch.Close()
			return rows < most
		}
	}
	stream.All(background)(body(toyBatch))
	if rows != toyBatch {
		t.Error(rows)
	}
	stream.All(background)(body(toyRows + 1))
	if rows != toyRows {
		t.Error(rows)
	}
}
