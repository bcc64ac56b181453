// SPDX-License-Identifier: Apache-2.0

//go:build go1.21

package tutti

import (
	"runtime"
	"sync/atomic"
	"testing"
)

func TestWrapBorrowsTheSlice(t *testing.T) {
	live(t)
	becomes(t, "the end of what others lent", func() bool { runtime.GC(); return lentCount() == 0 })
	var collected int32
	data := new([1 << 20]float32)
	runtime.SetFinalizer(data, func(*[1 << 20]float32) { atomic.AddInt32(&collected, 1) })
	tensor := must[*Tensor](t)(Wrap(data[:]))
	data[5] = 7 // shows, for nothing has been copied
	data = nil
	for i := 0; i < 10; i++ {
		runtime.GC()
	}
	values := must[[]float32](t)(Values[float32](tensor))
	if values[5] != 7 || atomic.LoadInt32(&collected) != 0 || lentCount() != 1 {
		t.Error(values[5], collected, lentCount())
	}
	tensor.Close()
	becomes(t, "the collection", func() bool { runtime.GC(); return atomic.LoadInt32(&collected) == 1 })
	if _, err := Wrap(make([]int64, 6), 4); err == nil {
		t.Error("a shape that does not fit")
	}
	becomes(t, "an empty list", func() bool { return lentCount() == 0 })
}

func TestWrappedSlicesTakeNoMemoryOfTheirOwn(t *testing.T) {
	if !memoryIsMeasurable {
		t.Skip("the race detector has memory of its own")
	}
	live(t)
	const rows, size = 64 << 10, 256 << 20 // rows of 1024 numbers
	data := make([]float32, size/4)
	for i := 0; i < len(data); i += 1024 {
		data[i] = 1
	}
	if sum := readAllHolding(t, must[*Tensor](t)(Wrap(data, rows, 1024)), size); sum != rows {
		t.Error(sum)
	}
}
