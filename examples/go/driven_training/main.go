// SPDX-License-Identifier: Apache-2.0

// Training that the program drives: it runs 25 steps at a time, halves the learning rate when the loss stops falling,
// and ends when the rate is small.
package main

import (
	"context"
	"fmt"
	"log"
	"math"
	"math/rand"

	"tutti.org/tutti"
)

func must[T any](value T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return value
}

func model(g *tutti.Graph, mode tutti.Mode) error {
	line := g.LayerDense(g.Feature("x"), 1, nil)
	g.SetOutput("y", line)
	if mode != tutti.ModePredict {
		g.SetLoss(g.LossMeanSquaredError(line, g.Label("y"), nil))
		g.OptimizerSGD(g.HostScalar("rate", 0), nil)
	}
	return nil
}

func main() {
	x, y := make([]float32, 1000*2), make([]float32, 1000)
	for i := range y {
		x[2*i], x[2*i+1] = rand.Float32(), rand.Float32()
		y[i] = x[2*i] - 2*x[2*i+1] + 0.1*rand.Float32()
	}
	pipeline := tutti.AddSlices(tutti.NewPipeline(nil), "x", tutti.Feature, x, 1000, 2)
	dataset := must(tutti.AddSlices(pipeline, "y", tutti.Label, y, 1000, 1).Repeat(nil).Batch(100, nil).Build())
	estimator := must(tutti.NewEstimator(model, nil))
	session := must(estimator.OpenSession(context.Background(), dataset, nil))
	for best, rate := math.Inf(1), 0.4; rate > 1e-3; {
		if err := session.SetScalar("rate", rate); err != nil {
			log.Fatal(err)
		}
		result := must(session.Run(25))
		fmt.Printf("step %d, rate %.4f, loss %.6f\n", result.Step, rate, result.Loss)
		if result.Loss >= 0.9*best {
			rate /= 2
		}
		best = math.Min(best, result.Loss)
	}
	must(session.Finish())
}
