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
	hidden := g.LayerDense(g.GetFeature("x"), 16, tutti.LayerDenseOptions{Activation: tutti.LayerDenseActivationRelu})
	logits := g.LayerDense(hidden, 2)
	g.SetOutput("class", g.Argmax(logits))
	if mode != tutti.ModePredict {
		y := g.GetLabel("y")
		g.MetricAccuracy("accuracy", logits, y)
		g.SetLoss(g.LossSparseSoftmaxCrossEntropy(logits, y))
		g.OptimizerAdam(g.ScheduleConstant(1e-3))
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
	dataset, err := pipeline.Shuffle(1000).Repeat().Batch(64).Build()
	if err != nil {
		log.Fatal(err)
	}
	estimator, err := tutti.NewEstimator(model, tutti.EstimatorOptions{})
	if err != nil {
		log.Fatal(err)
	}
	defer estimator.Close()
	result, err := estimator.Train(context.Background(), dataset, tutti.TrainOptions{Steps: 100})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("step %d, loss %.4f\n", result.Step, result.Loss)
}
