// SPDX-License-Identifier: Apache-2.0

//go:build go1.21

package tutti

import "runtime"

// Wrap makes a tensor over the elements of a slice, which are not copied; without dimensions it is a vector.
//
// The tensor borrows the slice's memory, and holds it until the tensor and all that was made of it (datasets,
// iterators, their elements) are closed: the slice itself may be forgotten before. What is written into the slice
// meanwhile shows, so that nothing should be while anybody reads. The memory must be Go's; WrapMemory is for other.
// Before Go 1.21 memory of Go cannot be lent beyond a call, and Wrap is NewTensor.
func Wrap[T Element](data []T, dims ...int64) (*Tensor, error) {
	if len(data) == 0 {
		return NewTensor(data, dims...)
	}
	if len(dims) == 0 {
		dims = []int64{int64(len(data))}
	}
	pinner := new(runtime.Pinner)
	pinner.Pin(&data[0])
	number, err := takeMemory(DTypeOf[T](), bytesOf(data), pinner.Unpin, dims)
	if err != nil {
		return nil, err
	}
	return wrapWeighing(number, 0), nil
}
