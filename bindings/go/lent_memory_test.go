// SPDX-License-Identifier: Apache-2.0

package tutti

import (
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// mapped gives memory that is not Go's, and counts how often it was given back.
func mapped(t *testing.T, size int) (data []byte, release func(), count *int32) {
	t.Helper()
	data = must[[]byte](t)(syscall.Mmap(-1, 0, size, syscall.PROT_READ|syscall.PROT_WRITE,
		syscall.MAP_ANON|syscall.MAP_PRIVATE))
	count = new(int32)
	return data, func() {
		atomic.AddInt32(count, 1)
		if err := syscall.Munmap(data); err != nil {
			t.Error(err)
		}
	}, count
}

// becomes waits for what another goroutine brings about.
func becomes(t *testing.T, what string, claim func() bool) {
	t.Helper()
	for end := time.Now().Add(60 * time.Second); !claim(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal(what, "does not come about")
		}
	}
}

func lentCount() int {
	lending.mutex.Lock()
	defer lending.mutex.Unlock()
	return len(lending.release)
}

func TestMemoryIsBorrowedUntilItsLastUserIsGone(t *testing.T) {
	live(t)
	data, release, released := mapped(t, 8*6)
	numbers := elementsOf[int64](data)
	tensor := must[*Tensor](t)(WrapMemory(Int64, data, release, 6))
	copy(numbers, []int64{1, 2, 3, 4, 5, 6}) // shows, for nothing has been copied
	dataset := must[*Dataset](t)(NewPipeline(nil).AddSlices("n", Feature, tensor).Build())
	tensor.Close()
	if got := fmt.Sprint(rows(t, dataset)); got != "[[1] [2] [3] [4] [5] [6]]" {
		t.Error(got)
	}
	iterator := must[*Iterator](t)(dataset.Iterator(0))
	dataset.Close()
	element := must[[]*Tensor](t)(iterator.Next(background))
	iterator.Close()
	if err := View(element[0], func(view []int64) error {
		if &view[0] != &numbers[0] {
			t.Error("the element is a copy")
		}
		numbers[0] = 7
		return nil
	}); err != nil {
		t.Error(err)
	}
	time.Sleep(20 * time.Millisecond)
	if *released != 0 {
		t.Fatal("the element's memory is gone")
	}
	if values := must[[]int64](t)(Values[int64](element[0])); values[0] != 7 {
		t.Error(values)
	}
	if err := Update(element[0], func([]int64) error { return nil }); !errors.Is(err, FailedPrecondition) {
		t.Error("borrowed memory was written:", err)
	}
	element[0].Close()
	becomes(t, "the release", func() bool { return atomic.LoadInt32(released) == 1 })
}

// Threads of the library read ahead, and are the last that let go.
func TestMemoryComesBackFromThreadsOfTheLibrary(t *testing.T) {
	live(t)
	var released int32
	const many = 50
	for i := 0; i < many; i++ {
		data := make([]byte, 0)
		tensor := must[*Tensor](t)(WrapMemory(Int64, data, func() { atomic.AddInt32(&released, 1) }, 0))
		_ = tensor // forgotten
		data, release, _ := mapped(t, 8*1000)
		tensor = must[*Tensor](t)(WrapMemory(Int64, data, func() {
			release()
			atomic.AddInt32(&released, 1)
			NewScalar(1.5) // the library may be called, for this is a goroutine like any other
		}, 1000))
		dataset := must[*Dataset](t)(NewPipeline(nil).AddSlices("n", Feature, tensor).Batch(7, nil).Repeat(nil).
			Prefetch(nil).Build())
		iterator := must[*Iterator](t)(dataset.Iterator(0))
		must[[]*Tensor](t)(iterator.Next(background))
		iterator.Close()
		dataset.Close()
		tensor.Close()
	}
	becomes(t, "the end of all", func() bool { runtime.GC(); return atomic.LoadInt32(&released) == 2*many })
	becomes(t, "an empty list", func() bool { return lentCount() == 0 })
}

func TestMemoryThatCannotBeBorrowed(t *testing.T) {
	live(t)
	data, unmap, _ := mapped(t, 64)
	defer unmap()
	var released int32
	release := func() { atomic.AddInt32(&released, 1) }
	cases := []struct {
		data  []byte
		dims  []int64
		wrong string
	}{
		{data, []int64{7}, "needs 56 bytes, got 64"},
		{data[4:12], []int64{1}, "not aligned to 8 bytes"},
		{data, []int64{-8}, "-8"},
		{nil, []int64{1}, "needs 8 bytes, got 0"},
	}
	for i, c := range cases {
		_, err := WrapMemory(Int64, c.data, release, c.dims...)
		if !errors.Is(err, InvalidArgument) || !strings.Contains(err.Error(), c.wrong) {
			t.Error(c.wrong, err)
		}
		becomes(t, "the release", func() bool { return atomic.LoadInt32(&released) == int32(i+1) })
	}
	if tensor, err := WrapMemory(Float64, data[8:16], nil); err != nil || tensor.Len() != 1 || tensor.Dims() != nil {
		t.Error(err)
	}
}

func TestWrappedSlices(t *testing.T) {
	live(t)
	truths := must[*Tensor](t)(Wrap([]bool{true, false}))
	empty := must[*Tensor](t)(Wrap([]float32(nil), 0, 7))
	grid := must[*Tensor](t)(Wrap(count(6), 2, 3))
	closed(t, truths, empty, grid)
	runtime.GC()
	if fmt.Sprint(must[[]bool](t)(Values[bool](truths)), empty.Dims(), grid.Dims()) != "[true false] [0 7] [2 3]" {
		t.Error(truths, empty.Dims(), grid.Dims())
	}
	if got := must[[]int64](t)(Values[int64](grid)); fmt.Sprint(got) != "[0 1 2 3 4 5]" {
		t.Error(got)
	}
	if _, err := Wrap(count(6), 4); !errors.Is(err, InvalidArgument) {
		t.Error(err)
	}
}

// peak is the most memory that the process has held since `restart`, where that can be said.
func peak(t *testing.T, restart bool) (bytes int64) {
	t.Helper()
	if restart {
		_ = os.WriteFile("/proc/self/clear_refs", []byte("5"), 0) // else it is the peak since the beginning
	}
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Skip(err)
	}
	at := strings.Index(string(status), "VmHWM:")
	if at < 0 {
		t.Skip("/proc tells no peak")
	}
	fmt.Sscan(string(status[at+len("VmHWM:"):]), &bytes)
	return bytes << 10
}

// readAll sums the first component of a pass; it must not hold more than a tenth of the data, and a little.
func readAllHolding(t *testing.T, tensor *Tensor, size int64) (sum float64) {
	t.Helper()
	const little = 48 << 20
	before := peak(t, true)
	dataset := must[*Dataset](t)(NewPipeline(nil).AddSlices("x", Feature, tensor).Batch(64, nil).Prefetch(nil).Build())
	iterator := must[*Iterator](t)(dataset.Iterator(0))
	closed(t, tensor, dataset, iterator)
	for {
		element, err := iterator.Next(background)
		if errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		err = View(element[0], func(data []float32) error {
			for i := 0; i < len(data); i += 1024 {
				sum += float64(data[i])
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		element[0].Close()
	}
	if grown := peak(t, false) - before; grown > size/10+little {
		t.Errorf("reading %d bytes took %d more", size, grown)
	}
	return sum
}

func TestBorrowedDataTakeNoMemoryOfTheirOwn(t *testing.T) {
	if !memoryIsMeasurable {
		t.Skip("the race detector has memory of its own")
	}
	live(t)
	const rows, size = 64 << 10, 256 << 20 // rows of 1024 numbers
	data, release, _ := mapped(t, size)
	for i, numbers := 0, elementsOf[float32](data); i < len(numbers); i += 1024 {
		numbers[i] = 1
	}
	before := peak(t, true)
	tensor := must[*Tensor](t)(WrapMemory(Float32, data, release, rows, 1024))
	if grown := peak(t, false) - before; grown > 16<<20 {
		t.Errorf("borrowing took %d bytes", grown)
	}
	if sum := readAllHolding(t, tensor, size); sum != rows {
		t.Error(sum)
	}
}
