// SPDX-License-Identifier: Apache-2.0

package tutti

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
)

// The pipelines that scenarios read: tests/bindings/scenarios.txt says what they are.

func scenarioPipeline(owner *Context, name, folder string) (*Dataset, error) {
	p, err := scenarioNumbers(owner, name)
	if err == nil && p == nil {
		p = scenarioFiles(owner, name, folder)
	}
	if err != nil {
		return nil, err
	}
	return p.Build()
}

// addToSum is a step of a scan.
func addToSum(_ context.Context, state, element []*Tensor) (newState, output []*Tensor, err error) {
	sum := value(state[0]) + value(element[0])
	return []*Tensor{scalar(sum)}, []*Tensor{scalar(sum)}, nil
}

// scenarioNumbers are the pipelines without files; nil for another name.
func scenarioNumbers(owner *Context, name string) (*Pipeline, error) {
	numbers := func(start, stop int64) *Pipeline {
		return NewPipeline(owner).Range(stop, &RangeOptions{Start: start})
	}
	zero, err := NewScalar(int64(0))
	if err != nil {
		return nil, err
	}
	defer zero.Close()
	sum := []ScanState{{"sum", zero}}
	switch name {
	case "turns":
		return withOthers([]*Pipeline{numbers(10, 15), numbers(20, 22)}, func(others []*Dataset) *Pipeline {
			return numbers(0, 3).Interleave(others, &InterleaveOptions{CycleLength: 2, BlockLength: 2})
		})
	case "sample":
		return withOthers([]*Pipeline{numbers(100, 108)}, func(others []*Dataset) *Pipeline {
			return numbers(0, 5).SampleFrom(others, &SampleFromOptions{Weights: []float64{1, 3}})
		})
	case "sums":
		return numbers(0, 6).Scan(sum, addToSum, nil), nil
	case "sums_graph":
		return numbers(0, 6).ScanGraph(sum, func(g *Graph) error {
			next := g.Add(g.Feature("sum"), g.Feature("value"))
			g.SetOutput("sum", next)
			g.SetOutput("value", next)
			return nil
		}), nil
	case "below":
		return numbers(0, 10).TakeWhileGraph(func(g *Graph) error {
			g.SetOutput("goes_on", g.Less(g.Feature("value"), g.Constant(Int64, 4)))
			return nil
		}), nil
	case "odd":
		odd := func(_ context.Context, element []*Tensor) (bool, error) { return value(element[0])%2 == 1, nil }
		below := func(_ context.Context, element []*Tensor) (bool, error) { return value(element[0]) < 6, nil }
		return numbers(0, 8).Filter(odd).TakeWhile(below), nil
	case "pairs":
		return numbers(0, 3).FlatMap(func(_ context.Context, element []*Tensor) (*Dataset, error) {
			return numbers(10*value(element[0]), 10*value(element[0])+2).Build()
		}, nil), nil
	case "passes":
		return NewPipeline(owner).AddGenerator(func(_ context.Context, pass, index int64) ([]*Tensor, error) {
			if index == 3 {
				return nil, io.EOF
			}
			return []*Tensor{scalar(100*pass + index)}, nil
		}, FeedComponent{"value", Feature, Int64, nil}).Repeat(&RepeatOptions{Count: I64(2)}), nil
	}
	return nil, nil
}

// withOthers builds the datasets for as long as a pipeline is written with them.
func withOthers(pipelines []*Pipeline, write func(others []*Dataset) *Pipeline) (*Pipeline, error) {
	var others []*Dataset
	for _, pipeline := range pipelines {
		dataset, err := pipeline.Build()
		if err != nil {
			return nil, err
		}
		defer dataset.Close()
		others = append(others, dataset)
	}
	return write(others), nil
}

func scenarioFiles(context *Context, name, folder string) *Pipeline {
	p := NewPipeline(context)
	lines := []string{filepath.Join(folder, "lines.txt")}
	switch name {
	case "buckets":
		p.TextLines(lines, nil).BucketByLength("text", []int64{2, 4}, []int64{2}, nil)
	case "cached":
		p.TextLines(lines, nil).Cache(&CacheOptions{Path: filepath.Join(folder, "lines.elements")})
	case "snapshot":
		p.TextLines(lines, nil).Snapshot(filepath.Join(folder, "snapshots"), nil)
	case "snapshot_files":
		p.ElementFiles([]string{filepath.Join(folder, "snapshots", "*")})
	case "csv":
		p.CSV([]string{filepath.Join(folder, "people.csv")}, &CSVOptions{
			Columns: []string{"name: bytes", "age: i64 = -1", "weight: f32 = 0.25"}, Labels: []string{"age"},
			Missing: []string{"NA"}})
	case "examples":
		p.TFRecord([]string{filepath.Join(folder, "examples.tfrecord")}, nil).
			ParseExample([]string{"id: i64", "box: f32[2] = 0.5", "words: bytes[?]"}, nil)
	case "sequences":
		p.TFRecord([]string{filepath.Join(folder, "sequences.tfrecord")}, nil).ParseSequenceExample(
			[]string{"frames: f32[2]", "tags: bytes[?]"}, &ParseSequenceExampleOptions{Context: []string{"id: i64"}})
	case "images":
		p.TFRecord([]string{filepath.Join(folder, "images.tfrecord")}, nil).
			ParseExample([]string{"id: i64", "image: bytes"}, nil).MapGraph(2, func(g *Graph) error {
			area := &ResizeOptions{Method: InterpolationArea}
			pixels := g.Resize(g.DecodePNG(g.Feature("image"), nil), []int64{2, 3}, area)
			g.SetOutput("image", g.RandomFlip(pixels, &RandomFlipOptions{Key: 7}))
			return nil
		})
	case "text_ops":
		p.TextLines(lines, nil).MapGraph(2, scenarioTextOps)
	case "image_ops":
		imageFiles(p, folder, "image: bytes", "photo: bytes").MapGraph(2, scenarioImageOps)
	case "image_mixes":
		imageFiles(p, folder, "id: i64", "photo: bytes").MapGraph(2, scenarioPlainImages).Batch(2, nil).
			MapGraph(1, scenarioMixes)
	}
	return p
}

// imageFiles gives of each example the number id, the PNG file image and the JPEG file photo, where they are asked for.
func imageFiles(p *Pipeline, folder string, features ...string) *Pipeline {
	return p.TFRecord([]string{filepath.Join(folder, "images.tfrecord")}, nil).ParseExample(features, nil)
}

// readElements walks over a dataset and gives a line for each element.
func readElements(dataset *Dataset, seed int64, print func(line string)) error {
	iterator, err := dataset.Iterator(seed)
	if err != nil {
		return err
	}
	defer iterator.Close()
	components := dataset.Components()
	for {
		element, err := iterator.Next(background)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		var shown []string
		for i, tensor := range element {
			values, err := shownValues(tensor)
			if err != nil {
				return err
			}
			shown = append(shown, components[i].Name+values)
		}
		closeAll(element)
		print(strings.Join(shown, " | "))
	}
}

// shownValues are the shape, if there is one, and the values of a tensor.
func shownValues(tensor *Tensor) (text string, err error) {
	if dims := tensor.Dims(); len(dims) > 0 {
		text = " " + fmt.Sprint(dims)
	}
	switch tensor.DType() {
	case Int64:
		err = View(tensor, func(data []int64) error { text += shownAs(" %d", data); return nil })
	case Uint8:
		err = View(tensor, func(data []uint8) error { text += shownAs(" %d", data); return nil })
	case Float32:
		err = View(tensor, func(data []float32) error { text += shownAs(" %.5f", data); return nil })
	default:
		var texts []string
		texts, err = Texts(tensor)
		text += shownAs(" \"%s\"", texts)
	}
	return text, err
}

func shownAs[T any](format string, values []T) (text string) {
	for _, value := range values {
		text += fmt.Sprintf(format, value)
	}
	return text
}
