// SPDX-License-Identifier: Apache-2.0

//go:build go1.23

package tutti

import (
	"fmt"
	"testing"
)

// The loops of iteration_test.go as they are written since Go 1.23.
func TestRangeOverDatasets(t *testing.T) {
	live(t)
	dataset := must[*Dataset](t)(upTo(5).Build())
	it := must[*Iterator](t)(dataset.Iterator(0))
	closed(t, dataset, it)
	iterators := LiveObjects("iterator")
	var values []int64
	for element, err := range dataset.All(background, 0) {
		if err != nil {
			t.Fatal(err)
		}
		values = append(values, value(element[0]))
		closeAll(element)
		if len(values) == 3 {
			break
		}
	}
	if fmt.Sprint(values) != "[0 1 2]" || LiveObjects("iterator") != iterators {
		t.Error(values)
	}
	for pass := 0; pass < 2; pass++ {
		for element, err := range it.All(background) {
			if err != nil {
				t.Fatal(err)
			}
			values = append(values, value(element[0]))
			closeAll(element)
			if pass == 0 {
				break
			}
		}
	}
	if fmt.Sprint(values) != "[0 1 2 0 1 2 3 4]" {
		t.Error(values)
	}
}
