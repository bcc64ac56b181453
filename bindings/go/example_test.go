// SPDX-License-Identifier: Apache-2.0

package tutti_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"sync/atomic"

	"tutti.org/tutti"
)

func must[T any](value T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return value
}

// numbers gives a pipeline of 0, 1, ..., n - 1, one integer each.
func numbers(n int64) *tutti.Pipeline { return tutti.NewPipeline(nil).Range(n, nil) }

// show prints what a dataset of one component gives.
func show(dataset *tutti.Dataset) {
	dataset.All(context.Background(), 0)(func(element []*tutti.Tensor, err error) bool {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(must(tutti.Values[int64](element[0])))
		element[0].Close()
		return true
	})
}

// line learns a straight line: a model of one weight and one bias.
func line(g *tutti.Graph, mode tutti.Mode) error {
	y := g.LayerDense(g.Feature("x"), 1, nil)
	g.SetOutput("y", y)
	if mode != tutti.ModePredict {
		g.SetLoss(g.LossMeanSquaredError(y, g.Label("y"), nil))
		g.OptimizerSGD(g.ScheduleConstant(0.1), &tutti.OptimizerSGDOptions{Momentum: 0.9})
	}
	return nil
}

// points are on the line y = 2 x + 1.
func points() *tutti.Dataset {
	p := tutti.AddSlices(tutti.NewPipeline(nil), "x", tutti.Feature, []float32{-1, 0, 1, 2}, 4, 1)
	p = tutti.AddSlices(p, "y", tutti.Label, []float32{-1, 1, 3, 5}, 4, 1)
	return must(p.Repeat(nil).Batch(4, nil).Build())
}

func Example() {
	dataset := points()
	defer dataset.Close()
	estimator := must(tutti.NewEstimator(line, &tutti.EstimatorOptions{RunOptions: tutti.RunOptions{Seed: 1}}))
	defer estimator.Close()
	result := must(estimator.Train(context.Background(), dataset, &tutti.TrainOptions{Steps: 300}))
	fmt.Println(result.Step, "steps,", result.Reason)

	predictor := must(estimator.Predictor(nil))
	defer predictor.Close()
	x := must(tutti.NewTensor([]float32{10, 100}, 2, 1))
	defer x.Close()
	batch := must(predictor.Run(context.Background(), map[string]*tutti.Tensor{"x": x}))
	defer batch.Close()
	fmt.Printf("%.1f\n", must(tutti.Output[float32](batch, "y")))
	// Output:
	// 300 steps, max steps
	// [21.0 201.0]
}

func ExamplePipeline() {
	dataset := must(numbers(10).Skip(1).Batch(4, &tutti.BatchOptions{DropRemainder: true}).Build())
	defer dataset.Close()
	show(dataset)
	// Output:
	// [1 2 3 4]
	// [5 6 7 8]
}

func ExamplePipeline_Map() {
	double := func(ctx context.Context, element []*tutti.Tensor) ([]*tutti.Tensor, error) {
		values, err := tutti.Values[int64](element[0])
		if err != nil {
			return nil, err
		}
		doubled, err := tutti.NewScalar(2 * values[0])
		return []*tutti.Tensor{doubled}, err
	}
	dataset := must(numbers(4).Map(2, double, nil).Batch(4, nil).Build())
	defer dataset.Close()
	show(dataset)
	// Output:
	// [0 2 4 6]
}

func ExamplePipeline_MapGraph() {
	square := func(g *tutti.Graph) error {
		g.SetOutput("value", g.Square(g.Feature("value")))
		return nil
	}
	dataset := must(numbers(4).MapGraph(0, square).Batch(4, nil).Build())
	defer dataset.Close()
	show(dataset)
	// Output:
	// [0 1 4 9]
}

func ExamplePipeline_AddGenerator() {
	countdown := func(ctx context.Context, pass, index int64) ([]*tutti.Tensor, error) {
		if index == 3 {
			return nil, io.EOF
		}
		number, err := tutti.NewScalar(3 - index)
		return []*tutti.Tensor{number}, err
	}
	component := tutti.FeedComponent{Name: "n", Role: tutti.Feature, DType: tutti.Int64}
	dataset := must(tutti.NewPipeline(nil).AddGenerator(countdown, component).Batch(3, nil).Build())
	defer dataset.Close()
	show(dataset)
	// Output:
	// [3 2 1]
}

func ExampleFeed() {
	feed := must(tutti.NewFeed(nil, 2, tutti.FeedComponent{Name: "n", Role: tutti.Feature, DType: tutti.Int64}))
	defer feed.Close()
	dataset := must(tutti.NewPipeline(nil).AddFeed(feed).Build())
	defer dataset.Close()
	go func() {
		for i := int64(1); i <= 3; i++ {
			number := must(tutti.NewScalar(i * i))
			if err := feed.Push(context.Background(), number); err != nil {
				log.Fatal(err)
			}
			number.Close()
		}
		feed.Finish()
	}()
	show(dataset)
	// Output:
	// [1]
	// [4]
	// [9]
}

func ExampleDataset_Spec() {
	dataset := points()
	defer dataset.Close()
	spec := must(dataset.Spec())
	for _, component := range spec.Components {
		fmt.Println(component.Role, component.Name, component.DType, component.Dims[1])
	}
	fmt.Println(spec.BatchSize, "rows in a batch")
	// Output:
	// feature x float32 1
	// label y float32 1
	// 4 rows in a batch
}

func ExampleIterator_Save() {
	dataset := must(numbers(5).Build())
	defer dataset.Close()
	iterator := must(dataset.Iterator(0))
	defer iterator.Close()
	for i := 0; i < 3; i++ {
		must(iterator.Next(context.Background()))[0].Close()
	}
	position := must(iterator.Save())
	later := must(dataset.Iterator(0))
	defer later.Close()
	if err := later.Restore(position); err != nil {
		log.Fatal(err)
	}
	element := must(later.Next(context.Background()))
	fmt.Println(must(tutti.Values[int64](element[0])))
	element[0].Close()
	// Output:
	// [3]
}

func ExampleEstimator_OpenSession() {
	dataset := points()
	defer dataset.Close()
	estimator := must(tutti.NewEstimator(line, nil))
	defer estimator.Close()
	session := must(estimator.OpenSession(context.Background(), dataset, &tutti.TrainOptions{Steps: 20}))
	for {
		result := must(session.Run(8))
		fmt.Println("step", result.Step, result.Reason)
		if result.Reason != tutti.ReasonUnfinished {
			break
		}
	}
	must(session.Finish())
	// Output:
	// step 8 unfinished
	// step 16 unfinished
	// step 20 max steps
}

func ExampleHook() {
	dataset := points()
	defer dataset.Close()
	estimator := must(tutti.NewEstimator(line, nil))
	defer estimator.Close()
	var seen atomic.Int64
	enough := tutti.OnStep(5, func(e *tutti.Event) error {
		if seen.Add(1) == 3 {
			return tutti.ErrStop
		}
		return nil
	})
	result := must(estimator.Train(context.Background(), dataset, nil, enough))
	fmt.Println(result.Step, result.Reason)
	// Output:
	// 15 stopped
}

func ExampleError() {
	_, err := tutti.OpenPredictor("/no/such/model", nil)
	var failure *tutti.Error
	if errors.As(err, &failure) && errors.Is(err, tutti.NotFound) {
		fmt.Println(failure.Code)
	}
	// Output:
	// NOT_FOUND
}

func ExamplePanicError() {
	dataset := points()
	defer dataset.Close()
	estimator := must(tutti.NewEstimator(func(*tutti.Graph, tutti.Mode) error { panic("no idea") }, nil))
	defer estimator.Close()
	_, err := estimator.Train(context.Background(), dataset, nil)
	var panicked *tutti.PanicError
	if errors.As(err, &panicked) {
		fmt.Println(panicked.Value, panicked.Place != "")
	}
	// Output:
	// no idea true
}

func ExampleView() {
	tensor := must(tutti.NewTensor([]float32{1, 2, 3, 4, 5, 6}, 2, 3))
	defer tensor.Close()
	err := tutti.View(tensor, func(data []float32) error {
		fmt.Println(tensor, data[3:])
		return nil
	})
	if err != nil {
		log.Fatal(err)
	}
	// Output:
	// float32[2 3] [4 5 6]
}

func ExampleOptionKeys() {
	for _, key := range must(tutti.OptionKeys(tutti.TrainOptions{}))[:2] {
		fmt.Println(key.Key, key.Type)
	}
	// Output:
	// steps i64
	// max_steps i64
}
