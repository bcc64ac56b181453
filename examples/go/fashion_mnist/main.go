// SPDX-License-Identifier: Apache-2.0

// Fashion-MNIST over every device: train, evaluate, predict. Arguments: DATASET_DIRECTORY OUTPUT_DIRECTORY EPOCHS
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"strconv"
	"tutti.org/tutti"
)

func must[T any](value T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return value
}

func model(g *tutti.Graph, mode tutti.Mode) error {
	convolution := &tutti.LayerConv2DOptions{Activation: tutti.ActivationReLU}
	x := g.LayerMaxPool2D(g.LayerConv2D(g.Feature("image"), 32, 3, convolution), 2, nil)
	x = g.LayerMaxPool2D(g.LayerConv2D(x, 64, 3, convolution), 2, nil)
	x = g.LayerDense(g.LayerFlatten(x), 128, &tutti.LayerDenseOptions{Activation: tutti.ActivationReLU})
	logits := g.LayerDense(x, 10, nil)
	g.SetOutput("class", g.Argmax(logits, nil))
	if mode != tutti.ModePredict {
		g.MetricAccuracy("accuracy", logits, g.Label("label"), nil)
		g.SetLoss(g.LossSparseSoftmaxCrossEntropy(logits, g.Label("label"), nil))
		g.OptimizerAdam(g.ScheduleConstant(1e-3), nil)
	}
	return nil
}

// images are u8 [28, 28] in the file and float [28, 28, 1] in [0, 1] for the model.
func images(path string, shuffle, epochs int64) *tutti.Dataset {
	p := tutti.NewPipeline(nil).AddIDX("image", tutti.Feature, path+"-images-idx3-ubyte.gz")
	p.AddIDX("label", tutti.Label, path+"-labels-idx1-ubyte.gz").Shuffle(shuffle, nil)
	return must(p.Repeat(&tutti.RepeatOptions{Count: &epochs}).Batch(128, nil).MapGraph(1, func(g *tutti.Graph) error {
		pixels := g.Reshape(g.Cast(g.Feature("image"), tutti.Float32), []int64{-1, 28, 28, 1})
		g.SetOutput("image", g.Mul(pixels, g.Constant(tutti.Float32, 1.0/255)))
		return nil
	}).Prefetch(nil).Build())
}

func main() {
	ctx, all := context.Background(), must(tutti.Mirrored(nil)) // all devices
	train := images(os.Args[1]+"/train", 60000, must(strconv.ParseInt(os.Args[3], 10, 64)))
	test := images(os.Args[1]+"/t10k", 1, 1)
	run := tutti.RunOptions{ModelDir: os.Args[2], Seed: 1}
	estimator := must(tutti.NewEstimator(model, &tutti.EstimatorOptions{Strategy: all, RunOptions: run}))
	trained := must(estimator.Train(ctx, train, nil, tutti.Progress(tutti.ProgressAuto)))
	evaluated := must(estimator.Evaluate(ctx, test, 0))
	predictor := must(estimator.Predictor(nil))
	fmt.Println("classes:", must(tutti.Output[int64](must(predictor.RunAll(ctx, test)), "class"))[:20])
	fmt.Printf("{\"test_accuracy\": %.4f, \"replicas\": %d, \"global_step\": %d, \"examples_per_second\": %.0f}\n",
		evaluated.Metrics["accuracy"], len(all.Devices()), trained.Step,
		float64(trained.Examples)/trained.Elapsed.Seconds())
}
