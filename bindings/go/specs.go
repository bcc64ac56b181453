// SPDX-License-Identifier: Apache-2.0

package tutti

import (
	"encoding/json"
	"fmt"
)

// TensorSpec is what is known of a tensor before it is there.
type TensorSpec struct {
	Name  string // of the component, input or output
	DType DType  // of the elements; 0 when it is not told
	Dims  []Dim  // nil for scalars, and when they are not told
}

// String is the name, the type and the shape, such as "x float32[batch 10]".
func (s TensorSpec) String() string {
	text := s.Name
	if s.DType != 0 {
		text += " " + s.DType.String()
	}
	if len(s.Dims) > 0 {
		text += fmt.Sprint(s.Dims)
	}
	return text
}

// UnmarshalJSON reads {"name", "dtype", "dims"}, or a name alone.
func (s *TensorSpec) UnmarshalJSON(data []byte) error {
	if len(data) > 0 && data[0] == '"' {
		*s = TensorSpec{}
		return json.Unmarshal(data, &s.Name)
	}
	var read struct {
		Name  string
		DType string
		Dims  []Dim
	}
	err := json.Unmarshal(data, &read)
	*s = TensorSpec{Name: read.Name, DType: dtypeOfRegistry[read.DType], Dims: read.Dims}
	return err
}

// The library's names of types.
var dtypeOfRegistry = map[string]DType{
	"f32": Float32, "f64": Float64, "i32": Int32, "i64": Int64, "u8": Uint8, "bool": Boolean, "f16": Float16,
	"bf16": BFloat16, "i8": Int8, "i16": Int16, "u16": Uint16, "u32": Uint32, "u64": Uint64, "bytes": ByteArray,
}

// ComponentSpec is what is known of a component of a dataset.
type ComponentSpec struct {
	TensorSpec
	Role Role // what it is for
}

// UnmarshalJSON reads {"name", "role", "dtype", "dims"}.
func (s *ComponentSpec) UnmarshalJSON(data []byte) error {
	var read struct{ Role string }
	if err := json.Unmarshal(data, &read); err != nil {
		return err
	}
	for role, name := range roleNames {
		if name == read.Role {
			s.Role = role
		}
	}
	return s.TensorSpec.UnmarshalJSON(data)
}

// DatasetSpec is what the elements of a dataset are made of.
type DatasetSpec struct {
	document
	Components []ComponentSpec // in their order
	BatchSize  int64           `json:"batch_size"` // 0 when elements are no batches
}

// String is a line for each component.
func (s *DatasetSpec) String() string { return onePerLine(s.Components) }

// Signature is what a model takes and what it gives.
type Signature struct {
	document
	Inputs  []TensorSpec // what it takes for each row
	Outputs []TensorSpec // what it gives for each row
}

// String is a line for what the model takes, and one for what it gives.
func (s *Signature) String() string {
	return fmt.Sprintf("takes %v\ngives %v\n", s.Inputs, s.Outputs)
}

func onePerLine[T fmt.Stringer](items []T) string {
	text := ""
	for _, item := range items {
		text += item.String() + "\n"
	}
	return text
}
