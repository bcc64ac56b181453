// SPDX-License-Identifier: Apache-2.0

package tutti

import (
	"fmt"
	"unsafe"

	"tutti.org/tutti/internal/raw"
)

// DType is the type of a tensor's elements.
type DType int32

// The element types.
const (
	Float32   DType = raw.DTYPE_F32
	Float64   DType = raw.DTYPE_F64
	Int32     DType = raw.DTYPE_I32
	Int64     DType = raw.DTYPE_I64
	Uint8     DType = raw.DTYPE_U8
	Boolean   DType = raw.DTYPE_BOOL
	Float16   DType = raw.DTYPE_F16
	BFloat16  DType = raw.DTYPE_BF16
	Int8      DType = raw.DTYPE_I8
	Int16     DType = raw.DTYPE_I16
	Uint16    DType = raw.DTYPE_U16
	Uint32    DType = raw.DTYPE_U32
	Uint64    DType = raw.DTYPE_U64
	ByteArray DType = raw.DTYPE_BYTES
)

var dtypeNames = map[DType]string{
	Float32: "float32", Float64: "float64", Int32: "int32", Int64: "int64", Uint8: "uint8",
	Boolean: "bool", Float16: "float16", BFloat16: "bfloat16", Int8: "int8", Int16: "int16", Uint16: "uint16",
	Uint32: "uint32", Uint64: "uint64", ByteArray: "bytes",
}

// String is the type's name in Go, where it has one.
func (d DType) String() string { return nameOf(dtypeNames, "DType", d) }

// Element are the Go types that a tensor's elements can have. Float16 and BFloat16 are read and written as bytes.
type Element interface {
	float32 | float64 | int32 | int64 | uint8 | bool | int8 | int16 | uint16 | uint32 | uint64
}

// DTypeOf is the type of a tensor with such elements.
func DTypeOf[T Element]() DType {
	var zero T
	switch any(zero).(type) {
	case float32:
		return Float32
	case float64:
		return Float64
	case int32:
		return Int32
	case int64:
		return Int64
	case uint8:
		return Uint8
	case bool:
		return Boolean
	case int8:
		return Int8
	case int16:
		return Int16
	case uint16:
		return Uint16
	case uint32:
		return Uint32
	default:
		return Uint64
	}
}

// Tensor is a dense, row-major array in host memory. Several goroutines may read one; a writer must be alone.
type Tensor struct{ object }

func (t *Tensor) ref() *handle {
	if t == nil {
		return nil
	}
	return t.handle
}

// tensorOverhead is about what a tensor costs the library beside its elements.
const tensorOverhead = 512

func wrapTensor(number uintptr) *Tensor {
	return wrapWeighing(number, raw.Tensor_get_size_bytes(number))
}

// wrapWeighing takes how much memory the tensor holds that Go's collector does not see.
func wrapWeighing(number uintptr, unseenBytes int64) *Tensor {
	t := &Tensor{object{newHandle("Tensor", number, raw.Tensor_unref)}}
	t.handle.weigh(unseenBytes + tensorOverhead)
	return t
}

// sharedTensor wraps a tensor that the library lends; nil when there is none.
func sharedTensor(number uintptr) *Tensor {
	if number == 0 {
		return nil
	}
	raw.Tensor_ref(number)
	return wrapTensor(number)
}

// NewTensor makes a tensor with a copy of the elements; without dimensions it is a vector.
func NewTensor[T Element](data []T, dims ...int64) (*Tensor, error) {
	if len(dims) == 0 {
		dims = []int64{int64(len(data))}
	}
	return NewTensorFromBytes(DTypeOf[T](), bytesOf(data), dims...)
}

// NewTextTensor makes a tensor of type ByteArray with copies of the texts, whose bytes may be any; without dimensions
// it is a vector.
func NewTextTensor(texts []string, dims ...int64) (*Tensor, error) {
	if len(dims) == 0 {
		dims = []int64{int64(len(texts))}
	}
	// First where each element begins and the last ends, counted from the beginning, then the elements.
	data := make([]byte, 8*(len(texts)+1))
	for i, text := range texts {
		*(*int64)(unsafe.Pointer(&data[8*i])) = int64(len(data))
		data = append(data, text...)
	}
	*(*int64)(unsafe.Pointer(&data[8*len(texts)])) = int64(len(data))
	return NewTensorFromBytes(ByteArray, data, dims...)
}

// Texts is a copy of the elements of a tensor of type ByteArray, row-major; their bytes may be any.
func Texts(t *Tensor) ([]string, error) {
	if err := t.check(ByteArray); err != nil {
		return nil, err
	}
	var use uses
	defer use.leave()
	number := use.of(t.ref())
	if use.err != nil {
		return nil, use.err
	}
	count := raw.Tensor_get_element_count(number)
	if count < 0 {
		return nil, invalid("not a tensor")
	}
	texts := make([]string, count)
	for i := range texts {
		size := raw.Tensor_get_element_size(number, int64(i))
		texts[i] = string(raw.Bytes(raw.Tensor_get_element_data(number, int64(i)), size))
	}
	return texts, nil
}

// NewScalar makes a tensor of rank 0.
func NewScalar[T Element](value T) (*Tensor, error) {
	return NewTensorFromBytes(DTypeOf[T](), bytesOf([]T{value}))
}

// NewTensorFromBytes makes a tensor of any type with a copy of its memory; without dimensions it is a scalar.
func NewTensorFromBytes(dtype DType, data []byte, dims ...int64) (*Tensor, error) {
	if mismatch != nil {
		return nil, mismatch
	}
	var out, failure uintptr
	if code := raw.Tensor_from_data(int32(dtype), dims, data, &out, &failure); code != 0 {
		return nil, fromC(code, failure)
	}
	return wrapTensor(out), nil
}

// Zeros makes a tensor filled with zeros. Update writes into it without a copy.
func Zeros(dtype DType, dims ...int64) (*Tensor, error) {
	if mismatch != nil {
		return nil, mismatch
	}
	var out, failure uintptr
	if code := raw.Tensor_create(int32(dtype), dims, &out, &failure); code != 0 {
		return nil, fromC(code, failure)
	}
	return wrapTensor(out), nil
}

// TensorFromDLPack takes the DLManagedTensorVersioned at an address, in every case: its deleter runs when the tensor is
// closed, or at once on failure.
func TensorFromDLPack(address uintptr) (*Tensor, error) {
	if mismatch != nil {
		return nil, mismatch
	}
	var out, failure uintptr
	if code := raw.Tensor_take_dlpack(address, &out, &failure); code != 0 {
		return nil, fromC(code, failure)
	}
	return wrapTensor(out), nil
}

// DLPack gives the address of a DLManagedTensorVersioned over the tensor's memory. The caller must call its deleter.
func (t *Tensor) DLPack() (uintptr, error) {
	var use uses
	defer use.leave()
	number := use.of(t.ref())
	if use.err != nil {
		return 0, use.err
	}
	var out, failure uintptr
	code := raw.Tensor_to_dlpack(number, &out, &failure)
	return out, fromC(code, failure)
}

// String is the type and the shape, such as "float32[2 3]".
func (t *Tensor) String() string {
	dtype := t.DType()
	if dtype == 0 {
		return "closed tensor"
	}
	if dims := t.Dims(); len(dims) > 0 {
		return fmt.Sprintf("%v%v", dtype, dims)
	}
	return dtype.String()
}

// DType is the type of the elements; 0 when the tensor is closed.
func (t *Tensor) DType() DType {
	var use uses
	defer use.leave()
	return DType(raw.Tensor_get_dtype(use.of(t.ref())))
}

// Dims are the sizes of the dimensions; nil for a scalar and when the tensor is closed.
func (t *Tensor) Dims() []int64 {
	var use uses
	defer use.leave()
	number := use.of(t.ref())
	var dims []int64
	for axis := int64(0); axis < raw.Tensor_get_rank(number); axis++ {
		dims = append(dims, raw.Tensor_get_dim(number, axis))
	}
	return dims
}

// Len is the number of elements; -1 when the tensor is closed.
func (t *Tensor) Len() int64 {
	var use uses
	defer use.leave()
	return raw.Tensor_get_element_count(use.of(t.ref()))
}

// ViewBytes lends the tensor's memory, without a copy, to a function that reads it; the slice is not valid after it.
// For elements of type ByteArray see Texts.
func (t *Tensor) ViewBytes(read func(data []byte) error) error {
	var use uses
	defer use.leave()
	number := use.of(t.ref())
	if use.err != nil {
		return use.err
	}
	size := raw.Tensor_get_size_bytes(number)
	if size < 0 {
		return invalid("not a tensor")
	}
	return read(raw.Bytes(raw.Tensor_get_data(number), size))
}

// UpdateBytes lends the tensor's memory, without a copy, to a function that writes it; the slice is not valid after it.
func (t *Tensor) UpdateBytes(write func(data []byte) error) error {
	var use uses
	defer use.leave()
	number := use.of(t.ref())
	if use.err != nil {
		return use.err
	}
	var address, failure uintptr
	if code := raw.Tensor_get_mutable_data(number, &address, &failure); code != 0 {
		return fromC(code, failure)
	}
	return write(raw.Bytes(address, raw.Tensor_get_size_bytes(number)))
}

// View lends the tensor's elements, without a copy, to a function that reads them; the slice is not valid after it.
func View[T Element](t *Tensor, read func(data []T) error) error {
	if err := t.check(DTypeOf[T]()); err != nil {
		return err
	}
	return t.ViewBytes(func(data []byte) error { return read(elementsOf[T](data)) })
}

// Update lends the tensor's elements, without a copy, to a function that writes them; the slice is not valid after it.
func Update[T Element](t *Tensor, write func(data []T) error) error {
	if err := t.check(DTypeOf[T]()); err != nil {
		return err
	}
	return t.UpdateBytes(func(data []byte) error { return write(elementsOf[T](data)) })
}

// Values is a copy of the tensor's elements, row-major.
func Values[T Element](t *Tensor) ([]T, error) {
	var values []T
	err := View(t, func(data []T) error {
		values = append(values, data...)
		return nil
	})
	return values, err
}

func (t *Tensor) check(wanted DType) error {
	if found := t.DType(); found != 0 && found != wanted {
		return invalid("the tensor's elements are %v, not %v", found, wanted)
	}
	return nil
}

func bytesOf[T Element](data []T) []byte {
	if len(data) == 0 {
		return nil
	}
	return unsafe.Slice((*byte)(unsafe.Pointer(&data[0])), uintptr(len(data))*unsafe.Sizeof(data[0]))
}

func elementsOf[T Element](data []byte) []T {
	if len(data) == 0 {
		return nil
	}
	var zero T
	return unsafe.Slice((*T)(unsafe.Pointer(&data[0])), uintptr(len(data))/unsafe.Sizeof(zero))
}
