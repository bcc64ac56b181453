// SPDX-License-Identifier: Apache-2.0

// As hello.c, in Go.
package main

import (
	"context"
	"fmt"
	"log"
	"os"

	"tutti.org/tutti"
)

const rows, features = 512, 4

func makeRows() ([]float32, []int32) {
	numbers, labels, state := make([]float32, rows*features), make([]int32, rows), uint32(1)
	for i := range numbers {
		state = state*1664525 + 1013904223
		numbers[i] = float32(state>>8) / (1 << 24)
	}
	for i := range labels {
		if numbers[i*features]+numbers[i*features+1] > 1 {
			labels[i] = 1
		}
	}
	return numbers, labels
}

func model(g *tutti.Graph, mode tutti.Mode) error {
	hidden := g.LayerDense(g.Feature("x"), 16, &tutti.LayerDenseOptions{Activation: tutti.ActivationReLU})
	logits := g.LayerDense(hidden, 2, nil)
	g.SetOutput("logits", logits)
	if mode != tutti.ModePredict {
		g.SetLoss(g.LossSparseSoftmaxCrossEntropy(logits, g.Label("y"), nil))
		g.OptimizerAdam(g.ScheduleConstant(0.02), nil)
	}
	return nil
}

func must[T any](value T, err error) T {
	if err != nil {
		log.Fatal("hello: ", err)
	}
	return value
}

func train(on *tutti.Context, strategy *tutti.Strategy, directory string) *tutti.Predictor {
	numbers, labels := makeRows()
	pipeline := tutti.NewPipeline(on)
	tutti.AddSlices(pipeline, "x", tutti.Feature, numbers, rows, features)
	tutti.AddSlices(pipeline, "y", tutti.Label, labels)
	dataset := must(pipeline.Repeat(nil).Batch(64, nil).Build())
	run := tutti.RunOptions{ModelDir: directory}
	estimator := must(tutti.NewEstimator(model, &tutti.EstimatorOptions{Context: on, Strategy: strategy, RunOptions: run}))
	must(estimator.Train(context.Background(), dataset, &tutti.TrainOptions{Steps: 300}))
	return must(estimator.Predictor(nil))
}

func main() {
	numbers, labels := makeRows()
	on := must(tutti.NewContext(&tutti.ContextOptions{LogicalDevices: 2}))
	var strategy *tutti.Strategy
	if os.Args[1] == "workers" {
		strategy = must(tutti.MultiWorkerFromEnvironment(on, nil))
	} else {
		strategy = must(tutti.Mirrored(on))
	}
	var predictor *tutti.Predictor
	if os.Args[1] == "predict" {
		predictor = must(tutti.OpenPredictor(os.Args[2], &tutti.OpenPredictorOptions{Context: on, Strategy: strategy}))
	} else {
		predictor = train(on, strategy, os.Args[2])
	}
	x := must(tutti.NewTensor(numbers, rows, features))
	batch := must(predictor.Run(context.Background(), map[string]*tutti.Tensor{"x": x}))
	logits := must(tutti.Output[float32](batch, "logits"))
	right, sum := 0, 0.0
	for i, label := range labels {
		if (logits[2*i+1] > logits[2*i]) == (label == 1) {
			right++
		}
		sum += float64(logits[2*i] + logits[2*i+1])
	}
	fmt.Printf("%d of %d right, sum %.3f\n", right, rows, sum)
	if right <= rows*9/10 {
		os.Exit(1)
	}
}
