// SPDX-License-Identifier: Apache-2.0

package tutti

import (
	"errors"
	"fmt"
	"testing"
)

func TestInputFunction(t *testing.T) {
	live(t)
	var said []string
	model := func(g *Graph, mode Mode) error {
		said = append(said, g.Params())
		return toyModel(g, mode)
	}
	estimator := must[*Estimator](t)(NewEstimator(model, &EstimatorOptions{RunOptions: RunOptions{Params: "7"}}))
	closed(t, estimator)
	rows := func(input InputContext) (*Dataset, error) {
		var size int64
		if _, err := fmt.Sscan(input.Params, &size); err != nil {
			return nil, err
		}
		said = append(said, fmt.Sprint(input.InputPipelineID, " of ", input.InputPipelineCount))
		return toyPipeline().Batch(size, nil).Build()
	}
	if trained := must[*Result](t)(estimator.TrainFunc(background, rows, &TrainOptions{Steps: 3})); trained.Step != 3 {
		t.Error(trained)
	}
	both := must[*Strategy](t)(Mirrored(nil))
	closed(t, both)
	var losses []float64
	for _, strategy := range []*Strategy{nil, both, nil} {
		if err := estimator.SetEvaluationStrategy(strategy); err != nil {
			t.Fatal(err)
		}
		losses = append(losses, must[*Result](t)(estimator.EvaluateFunc(background, rows, 0)).Loss)
	}
	if difference := losses[0] - losses[1]; difference > 1e-6 || difference < -1e-6 || losses[0] != losses[2] {
		t.Error(losses)
	}
	if got := fmt.Sprint(said); got != "[0 of 1 7 0 of 1 7 0 of 1 0 of 1]" {
		t.Error(got)
	}
	whole := must[*Dataset](t)(rows(InputContext{Params: "7"}))
	closed(t, whole)
	distributed := must[*Dataset](t)(both.Distribute(whole))
	closed(t, distributed)
	iterator := must[*Iterator](t)(distributed.Iterator(0))
	closed(t, iterator)
	element := must[[]*Tensor](t)(iterator.Next(background))
	var got int64
	for replica := int64(0); replica < both.ReplicaCount(); replica++ {
		piece := must[[]*Tensor](t)(iterator.Piece(replica))
		got += piece[1].Dims()[0]
		for _, tensor := range piece {
			closed(t, tensor)
		}
	}
	if got != element[1].Dims()[0] || both.PerReplicaBatchSize(7)*both.ReplicaCount() < 7 {
		t.Error(got, element[1].Dims())
	}
	for _, tensor := range element {
		closed(t, tensor)
	}
	if _, err := iterator.Piece(both.ReplicaCount()); !errors.Is(err, InvalidArgument) {
		t.Error(err)
	}
	small := must[*Strategy](t)(Auto(nil, 1))
	closed(t, small)
	if small.ReplicaCount() != 1 {
		t.Error(small.Devices())
	}
	broken := errors.New("no data")
	fails := func(InputContext) (*Dataset, error) { return nil, broken }
	if _, err := estimator.TrainFunc(background, fails, nil); err != broken {
		t.Error(err)
	}
	makesNone := func(InputContext) (*Dataset, error) { return nil, nil }
	if _, err := estimator.EvaluateFunc(background, makesNone, 0); !errors.Is(err, InvalidArgument) {
		t.Error(err)
	}
}
