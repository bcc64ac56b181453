// SPDX-License-Identifier: Apache-2.0

package tutti

import (
	"sync"

	"tutti.org/tutti/internal/raw"
)

// lending is the memory that tensors borrow: how to give back what stands behind each token. While there is any, a
// goroutine waits in C for what the library is done with, for the library never enters Go to free something.
var lending = struct {
	mutex   sync.Mutex
	release map[int64]func()
	last    int64
	waits   bool
}{release: map[int64]func(){}}

// lend notes memory, and sees to it that somebody waits for its end.
func lend(release func()) int64 {
	lending.mutex.Lock()
	defer lending.mutex.Unlock()
	lending.last++
	lending.release[lending.last] = release
	if !lending.waits {
		lending.waits = true
		go awaitReturns()
	}
	return lending.last
}

func awaitReturns() {
	for {
		token := raw.Memory_take_returned()
		lending.mutex.Lock()
		release := lending.release[token]
		delete(lending.release, token)
		lending.waits = len(lending.release) > 0
		waits := lending.waits
		lending.mutex.Unlock()
		release()
		if !waits {
			return
		}
	}
}

// WrapMemory makes a tensor over memory that Go did not allocate (a file by syscall.Mmap, memory of a C library),
// without a copy; Wrap is the same for slices of Go. Without dimensions it is a scalar. Elements must lie at multiples
// of their size.
//
// The memory must stay where it is until `release` is called: once, on a goroutine of the package, when the tensor and
// all that was made of it (datasets, iterators, their elements) are closed, and also when this function fails. What is
// written there meanwhile shows, so that nothing should be while anybody reads. `release` may be nil. Memory of type
// ByteArray is checked here alone, and must not change at all.
func WrapMemory(dtype DType, data []byte, release func(), dims ...int64) (*Tensor, error) {
	number, err := takeMemory(dtype, data, release, dims)
	if err != nil {
		return nil, err
	}
	return wrapTensor(number), nil
}

func takeMemory(dtype DType, data []byte, release func(), dims []int64) (uintptr, error) {
	if mismatch != nil {
		return 0, mismatch
	}
	if release == nil {
		release = func() {}
	}
	var out, failure uintptr
	code := raw.Tensor_take_memory(lend(release), int32(dtype), dims, data, &out, &failure)
	return out, fromC(code, failure)
}
