// SPDX-License-Identifier: Apache-2.0

package tutti

import (
	"errors"
	"fmt"
	"math"
	"testing"
)

// toyBatchOf is the first rows of the toy.
func toyBatchOf(t *testing.T, rows int) []*Tensor {
	t.Helper()
	x, y := toyData()
	batch := []*Tensor{
		must[*Tensor](t)(NewTensor(x[:rows*toyColumns], int64(rows), toyColumns)),
		must[*Tensor](t)(NewTensor(y[:rows])),
	}
	closed(t, batch[0], batch[1])
	return batch
}

func toyLoop(t *testing.T) (*Estimator, *Session) {
	t.Helper()
	c := must[*Context](t)(NewContext(&ContextOptions{LogicalDevices: 2, Backend: "reference"}))
	closed(t, c)
	both := must[*Strategy](t)(Mirrored(c))
	closed(t, both)
	estimator := must[*Estimator](t)(NewEstimator(toyModel, &EstimatorOptions{Context: c, Strategy: both}))
	closed(t, estimator)
	x, y := toyData()
	p := NewPipeline(c)
	AddSlices(p, "x", Feature, x, toyRows, toyColumns)
	dataset := must[*Dataset](t)(AddSlices(p, "y", Label, y).Batch(toyBatch, nil).Build())
	closed(t, dataset)
	for name, mode := range map[string]Mode{"again": ModeTrain, "probe": ModePredict} {
		if err := estimator.AddStepFunction(name, mode, toyModel, dataset); err != nil {
			t.Fatal(err)
		}
	}
	if err := estimator.AddStepFunction("none", ModeEval, nil, nil); err == nil {
		t.Error("a step function that is nil was added")
	}
	session := must[*Session](t)(estimator.OpenSession(background, dataset, nil))
	closed(t, session)
	return estimator, session
}

func TestStepFunctions(t *testing.T) {
	live(t)
	estimator, session := toyLoop(t)
	must[*Result](t)(session.Run(1))
	again := must[*ReplicaValues](t)(session.RunStepFunction("again", toyBatchOf(t, 5)...))
	closed(t, again)
	if r := again.Result(); r.Step != 2 || r.Examples != 5 || !(r.Loss > 0) || estimator.GlobalStep() != 2 {
		t.Error(r)
	}
	probe := must[*ReplicaValues](t)(session.RunStepFunction("probe", toyBatchOf(t, 7)...))
	closed(t, probe)
	if r := probe.Result(); r.Step != 2 || r.Examples != 7 || !math.IsNaN(r.Loss) {
		t.Error(r)
	}
	if got := fmt.Sprint(probe.ReplicaCount(), probe.Names()); got != "2 [class]" {
		t.Error(got)
	}
	whole := must[*Tensor](t)(probe.Gather("class", 0))
	mean := must[*Tensor](t)(probe.Mean("class", 0))
	sum := must[*Tensor](t)(probe.Sum("class", 0))
	first := must[*Tensor](t)(probe.Local("class", 0))
	closed(t, whole, mean, sum, first)
	var total int64
	for _, class := range must[[]int64](t)(Values[int64](whole)) {
		total += class
	}
	if got := must[[]int64](t)(Values[int64](sum))[0]; got != total {
		t.Error(got, total)
	}
	if got := must[[]float64](t)(Values[float64](mean))[0]; math.Abs(got-float64(total)/7) > 1e-12 {
		t.Error(got, total)
	}
	if fmt.Sprint(first.Dims(), whole.Dims()) != "[4] [7]" {
		t.Error(first.Dims(), whole.Dims())
	}
	if none := must[*Tensor](t)(probe.Local("class", 2)); none != nil {
		t.Error("there is a third replica")
	}
}

func TestStepFunctionMistakes(t *testing.T) {
	live(t)
	_, session := toyLoop(t)
	if _, err := session.RunStepFunction("prob", toyBatchOf(t, 2)...); !errors.Is(err, NotFound) {
		t.Error(err)
	}
	if _, err := session.RunStepFunction("probe", toyBatchOf(t, 2)[:1]...); !errors.Is(err, InvalidArgument) {
		t.Error(err)
	}
	probe := must[*ReplicaValues](t)(session.RunStepFunction("probe", toyBatchOf(t, 3)...))
	if _, err := probe.Mean("class", AcrossReplicas); !errors.Is(err, InvalidArgument) {
		t.Error("pieces of two shapes were added up:", err)
	}
	closed(t, probe)
}
