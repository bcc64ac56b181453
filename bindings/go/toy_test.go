// SPDX-License-Identifier: Apache-2.0

package tutti

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"time"
)

// The toy: 200 rows of 5 numbers in 3 classes, and a network with one hidden layer. bindings/figures/toy.c is the
// same in C.
const toyRows, toyColumns, toyBatch = 200, 5, 32

var background = context.Background()

func must[T any](t testing.TB) func(T, error) T {
	return func(value T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return value
	}
}

func toyData() (x []float32, y []int32) {
	state := uint32(7)
	for i := 0; i < toyRows; i++ {
		class := i % 3
		y = append(y, int32(class))
		for j := 0; j < toyColumns; j++ {
			state = state*1664525 + 1013904223
			value := float32(state>>8) / (1 << 24)
			if j == class {
				value += 0.5
			}
			x = append(x, value)
		}
	}
	return x, y
}

func toyPipeline() *Pipeline {
	x, y := toyData()
	p := NewPipeline(nil)
	AddSlices(p, "x", Feature, x, toyRows, toyColumns)
	return AddSlices(p, "y", Label, y)
}

func toyDataset(t testing.TB) *Dataset {
	t.Helper()
	return must[*Dataset](t)(toyPipeline().Shuffle(toyRows, nil).Repeat(nil).Batch(toyBatch, nil).Build())
}

func toyTestset(t testing.TB) *Dataset {
	t.Helper()
	return must[*Dataset](t)(toyPipeline().Batch(toyBatch, nil).Build())
}

func toyModel(g *Graph, mode Mode) error {
	hidden := g.LayerDense(g.Feature("x"), 8, &LayerDenseOptions{Activation: ActivationReLU})
	logits := g.LayerDense(hidden, 3, nil)
	g.SetOutput("class", g.Argmax(logits, nil))
	if mode != ModePredict {
		y := g.Label("y")
		g.MetricAccuracy("accuracy", logits, y, nil)
		g.SetLoss(g.LossSparseSoftmaxCrossEntropy(logits, y, nil))
		g.OptimizerAdam(g.ScheduleConstant(0.01), nil)
	}
	return nil
}

func toyEstimator(t testing.TB, run RunOptions) *Estimator {
	t.Helper()
	return must[*Estimator](t)(NewEstimator(toyModel, &EstimatorOptions{RunOptions: run}))
}

// live fails the test when the library has more objects at its end than it had at its beginning.
func live(t *testing.T) {
	before := LiveObjects("")
	t.Cleanup(func() {
		for i := 0; i < 500 && LiveObjects("") > before; i++ {
			runtime.GC() // what the test forgot
			time.Sleep(10 * time.Millisecond)
		}
		if now := LiveObjects(""); now > before {
			t.Errorf("%d objects are left", now-before)
		}
	})
}

func closed(t testing.TB, objects ...interface{ Close() error }) {
	t.Cleanup(func() {
		for _, object := range objects {
			if err := object.Close(); err != nil {
				t.Error(err)
			}
		}
	})
}

func TestFiguresAreThoseOfC(t *testing.T) {
	program := os.Getenv("TUTTI_TOY_FIGURES")
	if program == "" {
		t.Skip("TUTTI_TOY_FIGURES names no program")
	}
	live(t)
	var got strings.Builder
	strategy := must[*Strategy](t)(Mirrored(nil))
	train, test := toyDataset(t), toyTestset(t)
	estimator := must[*Estimator](t)(NewEstimator(toyModel, &EstimatorOptions{
		Strategy: strategy, RunOptions: RunOptions{Seed: 3, Determinism: "invariant"}}))
	closed(t, estimator, train, test, strategy)
	must[*Result](t)(estimator.Train(background, train, &TrainOptions{Steps: 20},
		Hook{EverySteps: 1, Call: func(e *Event) error {
			if e.Kind == EventStep {
				fmt.Fprintf(&got, "%.17g\n", e.Loss)
			}
			return nil
		}}))
	evaluated := must[*Result](t)(estimator.Evaluate(background, test, 0))
	fmt.Fprintf(&got, "%.17g\n%.17g\n", evaluated.Loss, evaluated.Metrics["accuracy"])
	predictor := must[*Predictor](t)(estimator.Predictor(nil))
	batch := must[*Batch](t)(predictor.RunAll(background, test))
	closed(t, batch, predictor)
	for _, class := range must[[]int64](t)(Output[int64](batch, "class")) {
		fmt.Fprintln(&got, class)
	}
	wanted, err := exec.Command(program).Output()
	if err != nil {
		t.Fatal(err)
	}
	if got.String() != string(wanted) {
		t.Errorf("Go gives\n%s\nC gives\n%s", got.String(), wanted)
	}
	if strings.Count(got.String(), "\n") != 20+2+toyRows {
		t.Errorf("%d lines", strings.Count(got.String(), "\n"))
	}
}

func TestTrainingLearns(t *testing.T) {
	live(t)
	estimator, train, test := toyEstimator(t, RunOptions{Seed: 1}), toyDataset(t), toyTestset(t)
	closed(t, estimator, train, test)
	result := must[*Result](t)(estimator.TrainAndEvaluate(background, train, test, 50, &TrainOptions{Steps: 200}))
	if result.Metrics["accuracy"] < 0.8 || result.Step != 200 || estimator.GlobalStep() != 200 {
		t.Errorf("%+v", result)
	}
}

func TestSessionIsTheSameTraining(t *testing.T) {
	live(t)
	losses := func(train func(e *Estimator, d *Dataset, hook Hook)) (values []float64) {
		estimator, dataset := toyEstimator(t, RunOptions{Seed: 5, Determinism: "repeatable"}), toyDataset(t)
		defer estimator.Close()
		defer dataset.Close()
		train(estimator, dataset, Hook{EverySteps: 1, Call: func(e *Event) error {
			if e.Kind == EventStep {
				values = append(values, e.Loss)
			}
			return nil
		}})
		return values
	}
	whole := losses(func(e *Estimator, d *Dataset, hook Hook) {
		must[*Result](t)(e.Train(background, d, &TrainOptions{Steps: 9}, hook))
	})
	pieces := losses(func(e *Estimator, d *Dataset, hook Hook) {
		session := must[*Session](t)(e.OpenSession(background, d, &TrainOptions{Steps: 9}, hook))
		defer session.Close()
		for {
			if result := must[*Result](t)(session.Run(4)); result.Reason != ReasonUnfinished {
				break
			}
		}
		if result := must[*Result](t)(session.Finish()); result.Step != 9 || result.Reason != ReasonMaxSteps {
			t.Errorf("%+v", result)
		}
	})
	if len(whole) != 9 || fmt.Sprint(whole) != fmt.Sprint(pieces) {
		t.Errorf("whole %v, in pieces %v", whole, pieces)
	}
}

func TestHostScalarsAndVariables(t *testing.T) {
	live(t)
	dataset := toyDataset(t)
	estimator := must[*Estimator](t)(NewEstimator(func(g *Graph, mode Mode) error {
		g.Scope("size", func() {
			w := g.Variable("w", Float32, []int64{toyColumns}, &VariableOptions{Initializer: "ones"})
			g.SetLoss(g.ReduceMean(g.Mul(g.Feature("x"), w), nil))
		})
		g.OptimizerSGD(g.HostScalar("rate", 0), nil)
		return nil
	}, &EstimatorOptions{RunOptions: RunOptions{KeepGradients: true}}))
	closed(t, estimator, dataset)
	estimate := must[*MemoryEstimate](t)(estimator.EstimateMemory(dataset, 7))
	if estimate.BatchSize != 7 || len(estimate.Devices) == 0 || estimate.Total <= 0 || !estimate.Fits {
		t.Error("an estimate for 7 rows:", estimate.JSON())
	}
	if rows := must[int64](t)(estimator.FindBatchSize(dataset, 50)); rows != 50 {
		t.Error("50 rows fit, not only", rows)
	}
	if _, err := estimator.FindBatchSize(dataset, 0); err == nil || !strings.Contains(err.Error(), "'most' must be") {
		t.Error("no batch has 0 rows:", err)
	}
	session := must[*Session](t)(estimator.OpenSession(background, dataset, nil))
	closed(t, session)
	read := func() []float32 {
		tensor := must[*Tensor](t)(estimator.ReadVariable("size/w"))
		defer tensor.Close()
		return must[[]float32](t)(Values[float32](tensor))
	}
	must[*Result](t)(session.Run(1))
	if got := read(); fmt.Sprint(got) != "[1 1 1 1 1]" {
		t.Error("a rate of 0 changes nothing:", got)
	}
	if err := session.SetScalar("rate", 0.5); err != nil {
		t.Fatal(err)
	}
	must[*Result](t)(session.Run(1))
	gradient := must[*Tensor](t)(estimator.ReadGradient("size/w"))
	defer gradient.Close()
	for i, slope := range must[[]float32](t)(Values[float32](gradient)) {
		if got, wanted := read()[i], 1-0.5*slope; got-wanted > 1e-6 || wanted-got > 1e-6 {
			t.Errorf("variable %d is %v, not %v", i, got, wanted)
		}
	}
	zeros := must[*Tensor](t)(Zeros(Float32, toyColumns))
	defer zeros.Close()
	if err := estimator.WriteVariable("size/w", zeros); err != nil || fmt.Sprint(read()) != "[0 0 0 0 0]" {
		t.Error(err, read())
	}
	if names := estimator.VariableNames(); len(names) == 0 || names[0] != "size/w" {
		t.Error(names)
	}
}

// A session that is closed without Finish leaves its steps: whatever comes then is what comes behind one that finished.
func TestAClosedSessionLeavesItsSteps(t *testing.T) {
	live(t)
	train, test := toyDataset(t), toyTestset(t)
	closed(t, train, test)
	inPieces := func(end func(session *Session) error) (story []string) {
		estimator := toyEstimator(t, RunOptions{Seed: 4, Determinism: "repeatable"})
		defer estimator.Close()
		for piece := int64(1); piece <= 2; piece++ {
			session := must[*Session](t)(estimator.OpenSession(background, train, nil))
			must[*Result](t)(session.Run(5))
			if err := end(session); err != nil {
				t.Error(err)
			}
			if step := estimator.GlobalStep(); step != 5*piece {
				t.Errorf("step %d", step)
			}
			bias := must[*Tensor](t)(estimator.ReadVariable("dense_1/bias"))
			result := must[*Result](t)(estimator.Evaluate(background, test, 0))
			story = append(story, fmt.Sprint(result.Step, result.Loss, must[[]float32](t)(Values[float32](bias))))
			bias.Close()
		}
		result := must[*Result](t)(estimator.Train(background, train, &TrainOptions{Steps: 3}))
		return append(story, fmt.Sprint(result.Step, result.Loss))
	}
	dropped := inPieces(func(session *Session) error { return session.Close() })
	finished := inPieces(func(session *Session) error {
		_, err := session.Finish()
		return err
	})
	if fmt.Sprint(dropped) != fmt.Sprint(finished) || len(dropped) != 3 || dropped[0] == dropped[1] {
		t.Errorf("%v behind Close, %v behind Finish", dropped, finished)
	}
}
