// SPDX-License-Identifier: Apache-2.0

package tutti

import (
	"context"
	"io"
)

// The functions here are for loops of Go 1.23 and later:
//
//	for element, err := range dataset.All(ctx, seed) {
//		if err != nil {
//			return err
//		}
//		...
//	}
//
// Before that, call what All gives with the body of the loop, a function that says whether to go on.

// all gives what next gives until io.EOF. An error is given too, and then the loop ends.
func all[T any](next func() (T, error)) func(yield func(T, error) bool) {
	return func(yield func(T, error) bool) {
		for {
			value, err := next()
			if err == io.EOF { // not errors.Is: a function of the program may have failed with it
				return
			}
			if !yield(value, err) || err != nil {
				return
			}
		}
	}
}

// All gives the elements from the first on, one tensor for each component, which are the caller's. Each loop is a walk
// of its own and closes its iterator, however it ends. An error comes as the last pair of a loop; an Iterator's All can
// go on behind one.
func (d *Dataset) All(ctx context.Context, seed int64) func(yield func([]*Tensor, error) bool) {
	return func(yield func([]*Tensor, error) bool) {
		it, err := d.Iterator(seed)
		if err != nil {
			yield(nil, err)
			return
		}
		defer it.Close()
		it.All(ctx)(yield)
	}
}

// All gives the elements that are left, as Next does. An error comes as the last pair of a loop. The iterator stays
// where a loop has ended: the next loop goes on there, behind the element that failed if there was one.
func (it *Iterator) All(ctx context.Context) func(yield func([]*Tensor, error) bool) {
	return all(func() ([]*Tensor, error) { return it.Next(ctx) })
}

// All gives the batches that are left, as Next does, each the caller's. An error comes as the last pair of a loop. The
// stream stays where a loop has ended, and is to be closed.
func (s *PredictionStream) All(ctx context.Context) func(yield func(*Batch, error) bool) {
	return all(func() (*Batch, error) { return s.Next(ctx) })
}
