// SPDX-License-Identifier: Apache-2.0

package tutti

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
)

func contains(err error, text string) bool { return err != nil && strings.Contains(err.Error(), text) }

// The worker processes of the tests are this program, told to run this test alone.
func TestServeMap(t *testing.T) {
	if flag.Arg(0) != "serve" {
		t.Skip("this is the process of TestMapProcess")
	}
	err := ServeMap(nil, func(_ context.Context, element []*Tensor) ([]*Tensor, error) {
		values, err := Values[int64](element[0])
		if err != nil {
			return nil, err
		}
		fmt.Println("element", values[0])
		if values[0] == 3 {
			return nil, errors.New("three is not allowed")
		}
		if values[0] == 5 {
			panic("five")
		}
		tensor, err := NewScalar(float64(values[0]) / 2)
		return []*Tensor{tensor}, err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestMapProcess(t *testing.T) {
	live(t)
	program, err := os.Executable()
	if err != nil {
		t.Skip(err)
	}
	half := must[*Tensor](t)(NewScalar(0.5))
	defer half.Close()
	like := must[*Dataset](t)(NewPipeline(nil).AddTensor("half", Feature, half).Build())
	closed(t, like)
	command := []string{program, "-test.run=^TestServeMap$", "serve"}
	dataset := must[*Dataset](t)(upTo(8).MapProcess(command, &MapProcessOptions{Processes: 2, Like: like}).Build())
	closed(t, dataset)
	iterator := must[*Iterator](t)(dataset.Iterator(0))
	defer iterator.Close()
	for i := 0; i < 8; i++ {
		element, err := iterator.Next(background)
		if i == 3 || i == 5 {
			if text := map[int]string{3: "three is not allowed", 5: "five"}[i]; !contains(err, text) {
				t.Errorf("element %d: %v", i, err)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		values, err := Values[float64](element[0])
		if err != nil || values[0] != float64(i)/2 {
			t.Errorf("element %d is %v, %v", i, values, err)
		}
		closeAll(element)
	}
	if err := ServeMap(nil, nil); !contains(err, "the function is nil") {
		t.Error(err)
	}
}
