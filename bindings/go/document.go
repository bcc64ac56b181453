// SPDX-License-Identifier: Apache-2.0

package tutti

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// document is the JSON that a report is made of.
type document struct{ text string }

// JSON is the report as the library gives it, with what this release of the package has no field for.
func (d document) JSON() string { return d.text }

// MarshalJSON gives the same.
func (d document) MarshalJSON() ([]byte, error) {
	if d.text == "" {
		return []byte("null"), nil
	}
	return []byte(d.text), nil
}

func (d *document) keep(text string) { d.text = text }

// report is a struct of which JSON is the contents.
type report interface{ keep(text string) }

// decode makes a report of JSON; members that it has no field for are left out. Times, whose unit the name of a member
// tells, become what time.Duration is.
func decode[T any, P interface {
	*T
	report
}](text string) (*T, error) {
	out := new(T)
	tree, err := parsed(text)
	if err == nil {
		err = fill(tree, out)
	}
	if err != nil {
		return nil, &Error{Code: Internal, Domain: "tutti", Message: "a report is not what was expected", Cause: err}
	}
	P(out).keep(text)
	return out, nil
}

// decodeIfAny is for reports that may not be there; nil then.
func decodeIfAny[T any, P interface {
	*T
	report
}](text string) *T {
	if text == "" {
		return nil
	}
	out, err := decode[T, P](text)
	if err != nil {
		return nil // JSON of the library's own, which tests read
	}
	return out
}

func fill(tree any, out any) error {
	data, err := json.Marshal(tree)
	if err != nil {
		return err
	}
	return exactly(data, out)
}

// exactly reads JSON; where the type is open, numbers keep all their digits.
func exactly(data []byte, out any) error {
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber()
	return decoder.Decode(out)
}

// parsed is JSON as a tree in which times are nanoseconds.
func parsed(text string) (tree any, err error) {
	if err := exactly([]byte(text), &tree); err != nil {
		return nil, err
	}
	return withTimes("", tree), nil
}

func withTimes(name string, tree any) any {
	switch tree := tree.(type) {
	case map[string]any:
		for name, member := range tree {
			tree[name] = withTimes(name, member)
		}
	case []any:
		for i, element := range tree {
			tree[i] = withTimes("", element)
		}
	case json.Number:
		if unit := unitOf(name); unit != 0 {
			return inNanoseconds(tree, unit)
		}
	}
	return tree
}

func unitOf(name string) time.Duration {
	switch {
	case strings.HasSuffix(name, "_ms"):
		return time.Millisecond
	case name == "seconds" || strings.HasSuffix(name, "_seconds"):
		return time.Second
	}
	return 0
}

func inNanoseconds(number json.Number, unit time.Duration) json.Number {
	value, err := number.Float64()
	if err != nil {
		return number
	}
	return json.Number(strconv.FormatInt(int64(math.Round(value*float64(unit))), 10))
}

// seconds is a time of the library's; 0 when it is not known.
func seconds(value float64) time.Duration {
	if math.IsNaN(value) || math.IsInf(value, 0) {
		return 0
	}
	return time.Duration(math.Round(value * float64(time.Second)))
}

// Dim is a dimension of a shape.
type Dim struct {
	Size int64  // -1 when only the data tell it
	Name string // of a size that only the data tell, such as "batch"; else ""
}

// String is the size, or its name.
func (d Dim) String() string {
	if d.Size < 0 {
		return d.Name
	}
	return strconv.FormatInt(d.Size, 10)
}

// UnmarshalJSON reads a number or a name.
func (d *Dim) UnmarshalJSON(data []byte) error {
	if len(data) > 0 && data[0] == '"' {
		d.Size = -1
		return json.Unmarshal(data, &d.Name)
	}
	d.Name = ""
	return json.Unmarshal(data, &d.Size)
}

// nameOf is an enumeration's name for a value, or its type and number.
func nameOf[T ~int32](names map[T]string, kind string, value T) string {
	if name, ok := names[value]; ok {
		return name
	}
	return fmt.Sprintf("%s(%d)", kind, int32(value))
}
