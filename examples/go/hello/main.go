// SPDX-License-Identifier: Apache-2.0

// The smallest useful program: a network with one hidden layer learns from 1000 rows of 10 numbers.
package main

import (
	"context"
	"fmt"
	"log"
	"math/rand"

	"tutti.org/tutti"
)

// One model for one global batch; the strategy divides the batch over the replicas.
func model(g *tutti.Graph, mode tutti.Mode) error {
	hidden := g.LayerDense(g.Feature("x"), 16, &tutti.LayerDenseOptions{Activation: tutti.ActivationReLU})
	logits := g.LayerDense(hidden, 2, nil)
	g.SetOutput("class", g.Argmax(logits, nil))
	if mode != tutti.ModePredict {
		y := g.Label("y")
		g.MetricAccuracy("accuracy", logits, y, nil)
		g.SetLoss(g.LossSparseSoftmaxCrossEntropy(logits, y, nil))
		g.OptimizerAdam(g.ScheduleConstant(1e-3), nil)
	}
	return nil
}

func main() {
	rows, labels := make([]float32, 1000*10), make([]int32, 1000)
	for i := range rows {
		rows[i] = rand.Float32()
	}
	for i := range labels {
		labels[i] = rand.Int31n(2)
	}
	pipeline := tutti.NewPipeline(nil)
	tutti.AddSlices(pipeline, "x", tutti.Feature, rows, 1000, 10)
	tutti.AddSlices(pipeline, "y", tutti.Label, labels)
	dataset, err := pipeline.Shuffle(1000, nil).Repeat(nil).Batch(64, nil).Build()
	if err != nil {
		log.Fatal(err)
	}
	estimator, err := tutti.NewEstimator(model, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer estimator.Close()
	result, err := estimator.Train(context.Background(), dataset, &tutti.TrainOptions{Steps: 100})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("step %d, loss %.4f\n", result.Step, result.Loss)
}
