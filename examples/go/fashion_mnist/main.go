// SPDX-License-Identifier: Apache-2.0

// Trains a network on Fashion-MNIST over every device, evaluates, predicts: DATASET_DIRECTORY OUTPUT_DIRECTORY [EPOCHS]
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
	relu := tutti.LayerConv2dOptions{Activation: tutti.LayerConv2dActivationRelu}
	x := g.LayerMaxPool2d(g.LayerConv2d(g.GetFeature("image"), 32, 3, relu), 2)
	x = g.LayerFlatten(g.LayerMaxPool2d(g.LayerConv2d(x, 64, 3, relu), 2))
	logits := g.LayerDense(g.LayerDense(x, 128, tutti.LayerDenseOptions{Activation: tutti.LayerDenseActivationRelu}), 10)
	g.SetOutput("class", g.Argmax(logits))
	if mode != tutti.ModePredict {
		g.MetricAccuracy("accuracy", logits, g.GetLabel("label"))
		g.SetLoss(g.LossSparseSoftmaxCrossEntropy(logits, g.GetLabel("label")))
		g.OptimizerAdam(g.ScheduleConstant(1e-3))
	}
	return nil
}

// images are u8 [28, 28] in the file and float [28, 28, 1] in [0, 1] for the model.
func images(path string, shuffle, epochs int64) *tutti.Dataset {
	p := tutti.NewPipeline(nil).AddIDX("image", tutti.Feature, path+"-images-idx3-ubyte.gz")
	p.AddIDX("label", tutti.Label, path+"-labels-idx1-ubyte.gz").Shuffle(shuffle).Repeat(tutti.RepeatOptions{Count: &epochs})
	return must(p.Batch(128).MapGraph(1, func(g *tutti.Graph) error {
		pixels := g.Mul(g.Cast(g.GetFeature("image"), tutti.Float32), g.Constant(tutti.Float32, 1.0/255))
		g.SetOutput("image", g.Reshape(pixels, []int64{-1, 28, 28, 1}))
		return nil
	}).Prefetch().Build())
}

func main() {
	ctx, all, epochs := context.Background(), must(tutti.Mirrored(nil)), must(strconv.ParseInt(append(os.Args, "8")[3], 10, 64))
	train, test := images(os.Args[1]+"/train", 60000, epochs), images(os.Args[1]+"/t10k", 1, 1)
	run := tutti.RunOptions{ModelDir: os.Args[2], Seed: 1}
	estimator := must(tutti.NewEstimator(model, tutti.EstimatorOptions{Strategy: all, RunOptions: run}))
	trained := must(estimator.Train(ctx, train, tutti.TrainOptions{}))
	evaluated := must(estimator.Evaluate(ctx, test, 0))
	predicted := must(must(estimator.Predictor(tutti.PredictorOptions{})).RunAll(ctx, test))
	fmt.Println("class of the first image:", must(tutti.Output[int64](predicted, "class"))[0])
	fmt.Printf("{\"test_accuracy\": %.4f, \"replicas\": %d, \"global_step\": %d, \"examples_per_second\": %.0f}\n",
		evaluated.Metrics["accuracy"], len(all.Devices()), trained.Step, float64(trained.Examples)/trained.Seconds)
}
