// SPDX-License-Identifier: Apache-2.0

package tutti

import (
	"time"

	"tutti.org/tutti/internal/raw"
)

// I64 and F64 are for optional numbers that may be zero: tutti.RepeatOptions{Count: tutti.I64(3)}.
func I64(value int64) *int64 { return &value }

// F64 is for optional numbers that may be zero.
func F64(value float64) *float64 { return &value }

// given is the options of a caller, or those that mean the defaults.
func given[T any](options *T) T {
	if options == nil {
		var none T
		return none
	}
	return *options
}

// milliseconds is a time as the library takes it, rounded up, because 0 may have a meaning of its own.
func milliseconds(duration time.Duration) int64 {
	return int64((duration + time.Millisecond - 1) / time.Millisecond)
}

// Options are ContextOptions, RunOptions, TrainOptions, PredictorOptions or ClusterOptions.
type Options interface {
	schema() string
	fill(handle uintptr)
}

// newOptions makes a C object of a struct; the caller drops it.
func newOptions(values Options) (uintptr, error) {
	if mismatch != nil {
		return 0, mismatch
	}
	var out, failure uintptr
	if code := raw.Options_create(values.schema(), &out, &failure); code != 0 {
		return 0, fromC(code, failure)
	}
	values.fill(out)
	if code := raw.Options_check(out, &failure); code != 0 {
		raw.Options_unref(out)
		return 0, fromC(code, failure)
	}
	return out, nil
}

// ResolvedOptions are the values in force of all options of a struct, by their keys (OptionKey.Key).
func ResolvedOptions(options Options) (map[string]OptionValue, error) {
	handle, err := newOptions(options)
	if err != nil {
		return nil, err
	}
	defer raw.Options_unref(handle)
	var values map[string]OptionValue
	err = exactly([]byte(raw.Options_get_json(handle)), &values)
	return values, err
}

// OptionKeys describes what options of a kind there are: OptionKeys(tutti.RunOptions{}).
func OptionKeys(options Options) ([]*OptionKey, error) {
	var keys []*OptionKey
	for i := int64(0); i < raw.Options_count_keys(options.schema()); i++ {
		key, err := decode[OptionKey](raw.Options_describe_key(options.schema(), i))
		if err != nil {
			return nil, err
		}
		keys = append(keys, key)
	}
	return keys, nil
}
