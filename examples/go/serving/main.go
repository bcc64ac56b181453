// SPDX-License-Identifier: Apache-2.0

// Answers over HTTP, many requests at a time from one predictor: POST rows of numbers, one row a line, to /predict, and
// get the number of the largest in each row, which the network learned. Argument: PORT, 0 for a free one.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"math/rand"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"

	"tutti.org/tutti"
)

const columns = 4

func must[T any](value T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return value
}

func model(g *tutti.Graph, mode tutti.Mode) error {
	hidden := g.LayerDense(g.Feature("x"), 32, &tutti.LayerDenseOptions{Activation: tutti.ActivationReLU})
	logits := g.LayerDense(hidden, columns, nil)
	g.SetOutput("class", g.Argmax(logits, nil))
	if mode != tutti.ModePredict {
		g.SetLoss(g.LossSparseSoftmaxCrossEntropy(logits, g.Label("y"), nil))
		g.OptimizerAdam(g.ScheduleConstant(1e-2), nil)
	}
	return nil
}

func trained() *tutti.Predictor {
	random, rows, labels := rand.New(rand.NewSource(1)), make([]float32, 1000*columns), make([]int32, 1000)
	for i := range rows {
		row, column := i/columns, i%columns
		if rows[i] = random.Float32(); rows[i] > rows[row*columns+int(labels[row])] {
			labels[row] = int32(column)
		}
	}
	pipeline := tutti.AddSlices(tutti.NewPipeline(nil), "x", tutti.Feature, rows, 1000, columns)
	tutti.AddSlices(pipeline, "y", tutti.Label, labels)
	dataset := must(pipeline.Shuffle(1000, nil).Repeat(nil).Batch(64, nil).Build())
	estimator := must(tutti.NewEstimator(model, &tutti.EstimatorOptions{RunOptions: tutti.RunOptions{Seed: 1}}))
	must(estimator.Train(context.Background(), dataset, &tutti.TrainOptions{Steps: 500}))
	return must(estimator.Predictor(nil))
}

func predict(ctx context.Context, predictor *tutti.Predictor, text string) ([]int64, error) {
	words := strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == ' ' || r == '\n' })
	rows := make([]float32, len(words))
	for i, word := range words {
		number, err := strconv.ParseFloat(word, 32)
		if err != nil {
			return nil, err
		}
		rows[i] = float32(number)
	}
	x, err := tutti.NewTensor(rows, int64(len(rows)/columns), columns)
	if err != nil {
		return nil, err
	}
	defer x.Close()
	batch, err := predictor.Run(ctx, map[string]*tutti.Tensor{"x": x})
	if err != nil {
		return nil, err
	}
	defer batch.Close()
	return tutti.Output[int64](batch, "class")
}

func main() {
	predictor := trained() // which lives as long as the server
	http.HandleFunc("/predict", func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		var classes []int64
		if err == nil {
			classes, err = predict(r.Context(), predictor, string(body))
		}
		if errors.Is(err, tutti.InvalidArgument) || errors.Is(err, strconv.ErrSyntax) {
			http.Error(w, err.Error(), http.StatusBadRequest)
		} else if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
		}
		for _, class := range classes {
			fmt.Fprintln(w, class)
		}
	})
	listener := must(net.Listen("tcp", "127.0.0.1:"+os.Args[1]))
	fmt.Println("listening on port", listener.Addr().(*net.TCPAddr).Port)
	log.Fatal(http.Serve(listener, nil))
}
