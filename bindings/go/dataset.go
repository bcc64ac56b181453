// SPDX-License-Identifier: Apache-2.0

package tutti

import (
	"context"
	"io"
	"sync"

	"tutti.org/tutti/internal/raw"
)

// What Cardinality may say beside a number of elements.
const (
	CardinalityInfinite int64 = -1
	CardinalityUnknown  int64 = -2
)

// Dataset says where examples come from and how they are transformed. It is immutable; an Iterator owns all progress.
type Dataset struct{ object }

func (d *Dataset) ref() *handle {
	if d == nil {
		return nil
	}
	return d.handle
}

func wrapDataset(number uintptr) *Dataset {
	return &Dataset{object{newHandle("Dataset", number, raw.Dataset_unref)}}
}

// Cardinality is the number of elements of one pass, CardinalityInfinite or CardinalityUnknown.
func (d *Dataset) Cardinality() int64 {
	var use uses
	defer use.leave()
	return raw.Dataset_get_cardinality(use.of(d.ref()))
}

// Component is one tensor of each element.
type Component struct {
	Name string // unique in the dataset
	Role Role   // what it is for
}

// Components are the tensors of each element, in order; nil when the dataset is closed.
func (d *Dataset) Components() []Component {
	var use uses
	defer use.leave()
	number := use.of(d.ref())
	var components []Component
	for i := int64(0); i < raw.Dataset_get_component_count(number); i++ {
		name, role := raw.Dataset_get_component_name(number, i), raw.Dataset_get_component_role(number, i)
		components = append(components, Component{name, Role(role)})
	}
	return components
}

// Spec tells names, roles, types and shapes of the components.
func (d *Dataset) Spec() (*DatasetSpec, error) {
	var use uses
	defer use.leave()
	number := use.of(d.ref())
	if use.err != nil {
		return nil, use.err
	}
	return decode[DatasetSpec](raw.Dataset_get_spec(number))
}

// Lint tells well-known mistakes in the order of transforms, one per line.
func (d *Dataset) Lint() string {
	var use uses
	defer use.leave()
	return raw.Dataset_get_lint(use.of(d.ref()))
}

// Split gives two datasets: the first elements, and the rest.
func (d *Dataset) Split(count int64) (head, rest *Dataset, err error) {
	var use uses
	defer use.leave()
	number := use.of(d.ref())
	if use.err != nil {
		return nil, nil, use.err
	}
	var first, second, failure uintptr
	if code := raw.Dataset_split(number, count, &first, &second, &failure); code != 0 {
		return nil, nil, fromC(code, failure)
	}
	return wrapDataset(first), wrapDataset(second), nil
}

// CountClasses tells how often each class comes: number i of the result is how many elements, or rows of batches, have
// the integer i in a component. It goes once through the dataset; classes 0 means as many as come, and takes a second
// pass. A label that is none of the classes is an error that errors.Is knows as OutOfRange.
func (d *Dataset) CountClasses(ctx context.Context, component string, classes int64) ([]int64, error) {
	var use uses
	defer use.leave()
	number := use.of(d.ref())
	if use.err != nil {
		return nil, use.err
	}
	if classes < 0 {
		return nil, invalid("the number of classes must be 0 or more")
	}
	c, err := begin(ctx, nil, nil)
	if err != nil {
		return nil, err
	}
	defer c.end()
	if classes == 0 {
		var failure uintptr
		if code := raw.Dataset_count_classes(number, component, 0, c.token, nil, &classes, &failure); code != 0 {
			return nil, c.result(code, failure)
		}
		if classes == 0 {
			return nil, nil
		}
	}
	counts := make([]int64, classes)
	var failure uintptr
	if code := raw.Dataset_count_classes(number, component, classes, c.token, counts, nil, &failure); code != 0 {
		return nil, c.result(code, failure)
	}
	return counts, nil
}

// CountTextsOptions say which texts CountTexts gives, and how much it may hold.
type CountTextsOptions struct {
	// So many of the most frequent texts; 0 = all.
	MostTexts int64
	// Only texts that came so often.
	LeastCount int64
	// What all different texts may take, each its length and 64 bytes; 0 = 1 GiB. Going beyond is an error that
	// errors.Is knows as ResourceExhausted.
	MemoryBytes int64
}

// CountTexts tells how often each text of a component of type ByteArray comes: the most frequent first, and texts that
// came equally often in the order of their bytes. The tensor is a vocabulary for Lookup, by ConstantTensor; close it.
// It goes once through the dataset.
func (d *Dataset) CountTexts(
	ctx context.Context, component string, options *CountTextsOptions,
) (texts *Tensor, counts []int64, err error) {
	var use uses
	defer use.leave()
	number := use.of(d.ref())
	if use.err != nil {
		return nil, nil, use.err
	}
	c, err := begin(ctx, nil, nil)
	if err != nil {
		return nil, nil, err
	}
	defer c.end()
	o := given(options)
	var found, numbers, failure uintptr
	if code := raw.Dataset_count_texts(number, component, o.MostTexts, o.LeastCount, o.MemoryBytes, c.token, &found,
		&numbers, &failure); code != 0 {
		return nil, nil, c.result(code, failure)
	}
	texts, all := wrapTensor(found), wrapTensor(numbers)
	defer all.Close()
	if counts, err = Values[int64](all); err != nil {
		texts.Close()
		return nil, nil, err
	}
	return texts, counts, nil
}

// ToArrow writes a walk over the dataset as an ArrowArrayStream of the Arrow C stream interface to an address: a record
// batch for each batch of the dataset, or for batchRows elements where these are single examples. The caller must call
// its release.
func (d *Dataset) ToArrow(seed, batchRows int64, address uintptr) error {
	var use uses
	defer use.leave()
	number := use.of(d.ref())
	if use.err != nil {
		return use.err
	}
	var failure uintptr
	return fromC(raw.Dataset_to_arrow(number, seed, batchRows, 0, address, &failure), failure)
}

// Iterator goes once through a dataset. It serves one goroutine at a time.
type Iterator struct {
	object
	components int64
	busy       sync.Mutex // what the library lends is good until the next call
}

// lock keeps a second goroutine out, which gets an error.
func (it *Iterator) lock() error {
	if it != nil && !it.busy.TryLock() {
		message := "the iterator is in use by another goroutine"
		return &Error{Code: FailedPrecondition, Domain: "tutti", Message: message}
	}
	return nil
}

func (it *Iterator) unlock() {
	if it != nil {
		it.busy.Unlock()
	}
}

func (it *Iterator) ref() *handle {
	if it == nil {
		return nil
	}
	return it.handle
}

// Iterator starts at the dataset's beginning; the seed is that of shuffling.
func (d *Dataset) Iterator(seed int64) (*Iterator, error) {
	var use uses
	defer use.leave()
	number := use.of(d.ref())
	if use.err != nil {
		return nil, use.err
	}
	var out, failure uintptr
	if code := raw.Iterator_create(number, seed, &out, &failure); code != 0 {
		return nil, fromC(code, failure)
	}
	count := raw.Dataset_get_component_count(number)
	return &Iterator{object: object{newHandle("Iterator", out, raw.Iterator_unref)}, components: count}, nil
}

// Next gives the next element, one tensor for each component; io.EOF at the end. After an error that ended the context,
// and after any other, the next call goes on.
func (it *Iterator) Next(ctx context.Context) ([]*Tensor, error) {
	if err := it.lock(); err != nil {
		return nil, err
	}
	defer it.unlock()
	var use uses
	defer use.leave()
	number := use.of(it.ref())
	if use.err != nil {
		return nil, use.err
	}
	c, err := begin(ctx, nil, nil)
	if err != nil {
		return nil, err
	}
	defer c.end()
	var more bool
	var failure uintptr
	if code := raw.Iterator_next(number, c.token, &more, &failure); code != 0 {
		return nil, c.result(code, failure)
	}
	if !more {
		return nil, io.EOF
	}
	element := make([]*Tensor, it.components)
	for i := range element {
		element[i] = sharedTensor(raw.Iterator_get_component(number, int64(i)))
	}
	return element, nil
}

// Piece gives the rows of the element last given that a replica of this process gets, one tensor for each component,
// without a copy. The dataset is one of Strategy.Distribute.
func (it *Iterator) Piece(replica int64) ([]*Tensor, error) {
	if err := it.lock(); err != nil {
		return nil, err
	}
	defer it.unlock()
	var use uses
	defer use.leave()
	number := use.of(it.ref())
	if use.err != nil {
		return nil, use.err
	}
	piece := make([]*Tensor, it.components)
	for i := range piece {
		if piece[i] = sharedTensor(raw.Iterator_get_piece(number, replica, int64(i))); piece[i] == nil {
			return nil, invalid("there is no element, no such replica, or no strategy has distributed the dataset")
		}
	}
	return piece, nil
}

// Save gives the position after the element last given, a text for Restore.
func (it *Iterator) Save() (string, error) {
	if err := it.lock(); err != nil {
		return "", err
	}
	defer it.unlock()
	var use uses
	defer use.leave()
	number := use.of(it.ref())
	if use.err != nil {
		return "", use.err
	}
	var failure uintptr
	text := raw.Iterator_save(number, &failure)
	if failure != 0 {
		return "", fromC(raw.Error_get_code(failure), failure)
	}
	return text, nil
}

// Report tells what the walk has cost until now, stage by stage, and which stage limits it.
func (it *Iterator) Report() (*InputReport, error) {
	if err := it.lock(); err != nil {
		return nil, err
	}
	defer it.unlock()
	var use uses
	defer use.leave()
	number := use.of(it.ref())
	if use.err != nil {
		return nil, use.err
	}
	var failure uintptr
	text := raw.Iterator_get_report(number, &failure)
	if failure != 0 {
		return nil, fromC(raw.Error_get_code(failure), failure)
	}
	return decode[InputReport](text)
}

// Restore goes to a position that Save gave.
func (it *Iterator) Restore(state string) error {
	if err := it.lock(); err != nil {
		return err
	}
	defer it.unlock()
	var use uses
	defer use.leave()
	number := use.of(it.ref())
	if use.err != nil {
		return use.err
	}
	var failure uintptr
	code := raw.Iterator_restore(number, state, &failure)
	return fromC(code, failure)
}
