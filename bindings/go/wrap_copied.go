// SPDX-License-Identifier: Apache-2.0

//go:build !go1.21

package tutti

// Wrap makes a tensor of the elements of a slice; without dimensions it is a vector. Since Go 1.21 the tensor borrows
// the slice's memory and nothing is copied. Before, memory of Go cannot be lent beyond a call: the elements are copied
// once, into memory of the library's, as NewTensor does. Zeros with Update fills such memory without a copy, and
// WrapMemory borrows memory that is not Go's.
func Wrap[T Element](data []T, dims ...int64) (*Tensor, error) { return NewTensor(data, dims...) }
