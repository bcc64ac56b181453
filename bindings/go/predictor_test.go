// SPDX-License-Identifier: Apache-2.0

package tutti

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

func trained(t testing.TB) (*Estimator, *Dataset) {
	estimator, train, test := toyEstimator(t, RunOptions{Seed: 2}), toyDataset(t), toyTestset(t)
	closed(t, estimator, train, test)
	must[*Result](t)(estimator.Train(background, train, &TrainOptions{Steps: 30}))
	return estimator, test
}

// A model function and weights, without a training.
func TestInitializedWithWeights(t *testing.T) {
	live(t)
	first, test := trained(t)
	folder := t.TempDir()
	if err := first.Save(background, folder); err != nil {
		t.Fatal(err)
	}
	second, train := toyEstimator(t, RunOptions{Seed: 3}), toyDataset(t)
	closed(t, second, train)
	if err := second.Initialize(background, train, folder); err != nil {
		t.Fatal(err)
	}
	var classes [2][]int64
	for i, estimator := range []*Estimator{first, second} {
		predictor := must[*Predictor](t)(estimator.Predictor(nil))
		batch := must[*Batch](t)(predictor.RunAll(background, test))
		classes[i] = must[[]int64](t)(Output[int64](batch, "class"))
		batch.Close()
		predictor.Close()
	}
	if len(classes[0]) != toyRows || fmt.Sprint(classes[0]) != fmt.Sprint(classes[1]) {
		t.Error(classes)
	}
	if err := second.Initialize(background, train, filepath.Join(folder, "none")); !errors.Is(err, NotFound) {
		t.Error(err)
	}
}

// A saved model as a part of another one says what it did.
func TestAddedSavedModel(t *testing.T) {
	live(t)
	first, test := trained(t)
	folder := t.TempDir()
	if err := first.Save(background, folder); err != nil {
		t.Fatal(err)
	}
	model := func(g *Graph, mode Mode) error {
		x := g.Feature("x")
		g.SetOutput("class", g.AddSavedModel(folder, SavedModel{}))
		g.SetOutput("same", g.AddSavedModel(folder, SavedModel{Input: x, Feature: "x", Output: "class"}))
		logits := g.LayerDense(x, 3, nil)
		if mode != ModePredict {
			g.SetLoss(g.LossSparseSoftmaxCrossEntropy(logits, g.Label("y"), nil))
			g.OptimizerSGD(g.ScheduleConstant(0.01), nil)
		}
		return nil
	}
	second, train := must[*Estimator](t)(NewEstimator(model, nil)), toyDataset(t)
	closed(t, second, train)
	if err := second.Initialize(background, train, ""); err != nil {
		t.Fatal(err)
	}
	if kernel := must[*Tensor](t)(second.ReadVariable("model_1/dense_1/kernel")); kernel != nil {
		kernel.Close()
	}
	predictor, expected := must[*Predictor](t)(second.Predictor(nil)), must[*Predictor](t)(first.Predictor(nil))
	batch := must[*Batch](t)(predictor.RunAll(background, test))
	whole := must[*Batch](t)(expected.RunAll(background, test))
	closed(t, predictor, expected, batch, whole)
	want := fmt.Sprint(must[[]int64](t)(Output[int64](whole, "class")))
	for _, output := range []string{"class", "same"} {
		if got := fmt.Sprint(must[[]int64](t)(Output[int64](batch, output))); got != want {
			t.Errorf("%s: %s, expected %s", output, got, want)
		}
	}
}

func TestStreamAndRunAreEqual(t *testing.T) {
	live(t)
	estimator, test := trained(t)
	predictor := must[*Predictor](t)(estimator.Predictor(nil))
	stream := must[*PredictionStream](t)(predictor.Stream(test))
	whole := must[*Batch](t)(predictor.RunAll(background, test))
	closed(t, predictor, stream, whole)
	var streamed []int64
	for {
		batch, err := stream.Next(background)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if batch.FirstRow() != int64(len(streamed)) {
			t.Errorf("row %d after %d rows", batch.FirstRow(), len(streamed))
		}
		streamed = append(streamed, must[[]int64](t)(Output[int64](batch, "class"))...)
		batch.Close()
	}
	got := must[[]int64](t)(Output[int64](whole, "class"))
	if len(got) != toyRows || fmt.Sprint(got) != fmt.Sprint(streamed) {
		t.Error(got, streamed)
	}
	if names := whole.Names(); len(names) != 1 || names[0] != "class" || whole.Rows() != toyRows {
		t.Error(names)
	}
	_, err := whole.Output("klass")
	if !errors.Is(err, NotFound) || !strings.Contains(err.Error(), "no output 'klass'; known: class") {
		t.Error(err)
	}
	early := must[*PredictionStream](t)(predictor.Stream(test))
	defer early.Close()
	if err := early.Stop(background); err != nil {
		t.Error(err)
	}
}

func TestPredictorServesManyGoroutines(t *testing.T) {
	live(t)
	estimator, _ := trained(t)
	predictor := must[*Predictor](t)(estimator.Predictor(nil))
	closed(t, predictor)
	x, _ := toyData()
	var group sync.WaitGroup
	var wrong int64
	answers := make([]string, 8)
	for i := range answers {
		group.Add(1)
		go func(i int) {
			defer group.Done()
			for round := 0; round < 20; round++ {
				input, err := NewTensor(x[:10*toyColumns], 10, toyColumns)
				if err != nil {
					atomic.AddInt64(&wrong, 1)
					return
				}
				batch, err := predictor.Run(background, map[string]*Tensor{"x": input})
				if err != nil {
					atomic.AddInt64(&wrong, 1)
					return
				}
				classes, err := Output[int64](batch, "class")
				if err != nil {
					atomic.AddInt64(&wrong, 1)
				}
				answers[i] = fmt.Sprint(classes)
				if round%2 == 0 { // the others are left to the collector
					batch.Close()
					input.Close()
				}
			}
		}(i)
	}
	group.Wait()
	for _, answer := range answers {
		if wrong != 0 || answer != answers[0] || len(answer) < 20 {
			t.Error(wrong, answer)
		}
	}
	runtime.GC()
}

func TestCheckpoints(t *testing.T) {
	live(t)
	directory := filepath.Join(t.TempDir(), "modèle")
	train := toyDataset(t)
	closed(t, train)
	estimator := toyEstimator(t, RunOptions{ModelDir: directory})
	var saved []string
	must[*Result](t)(estimator.Train(background, train, &TrainOptions{Steps: 4},
		Hook{EverySteps: 0, Call: func(e *Event) error {
			if e.Kind == EventCheckpointSaved {
				saved = append(saved, e.Checkpoint())
			}
			return nil
		}}))
	estimator.Close()
	if len(saved) == 0 || !strings.HasSuffix(saved[len(saved)-1], "modèle/checkpoint-4") {
		t.Fatal(saved)
	}
	again := toyEstimator(t, RunOptions{ModelDir: directory})
	closed(t, again)
	result := must[*Result](t)(again.Train(background, train, &TrainOptions{Steps: 3}))
	if result.Step != 7 {
		t.Errorf("%+v", result)
	}
	predictor := must[*Predictor](t)(OpenPredictor(saved[len(saved)-1], nil))
	closed(t, predictor)
	if predictor.Step() != 4 {
		t.Error(predictor.Step())
	}
	err := predictor.Reload(background, filepath.Join(directory, "checkpoint-7"))
	if err != nil || predictor.Step() != 7 {
		t.Error(err, predictor.Step())
	}
	other := t.TempDir()
	if err := again.Save(background, other); err != nil {
		t.Error(err)
	}
	if _, err := OpenPredictor(filepath.Join(other, "checkpoint-7"), nil); err != nil {
		t.Error(err)
	}
	_, err = OpenPredictor(filepath.Join(other, "checkpoint-8"), nil)
	if !errors.Is(err, NotFound) {
		t.Error(err)
	}
}

func TestClosingWhileCallsRun(t *testing.T) {
	live(t)
	train := toyDataset(t)
	estimator := toyEstimator(t, RunOptions{})
	closing := OnStep(1, func(e *Event) error {
		if e.Step == 10 {
			estimator.Close()
			train.Close()
		}
		runtime.GC()
		return nil
	})
	result := must[*Result](t)(estimator.Train(background, train, &TrainOptions{Steps: 50}, closing))
	if result.Step != 50 || estimator.GlobalStep() != -1 {
		t.Errorf("%+v", result)
	}
}

func TestDevicesOfSeveralBackends(t *testing.T) {
	if !HasFeature("backend:cpu") {
		t.Skip("there is one backend")
	}
	live(t)
	c := must[*Context](t)(NewContext(&ContextOptions{LogicalDevices: 2, Backend: "cpu,reference"}))
	mixed, all := must[*Strategy](t)(Mirrored(c, "reference:1", "cpu:0")), must[*Strategy](t)(Mirrored(c))
	closed(t, c, mixed, all)
	devices := must[[]string](t)(c.Devices())
	if got := fmt.Sprint(devices, mixed.Devices(), all.Devices()); got !=
		"[cpu:0 cpu:1 reference:0 reference:1] [reference:1 cpu:0] [cpu:0 cpu:1 reference:0 reference:1]" {
		t.Error(got)
	}
	// Workers on them are told that they do not train before they wait for others.
	workers := must[*Strategy](t)(MultiWorker(c, &ClusterOptions{Workers: "a.invalid:1,b.invalid:1", Worker: 1}))
	estimator := must[*Estimator](t)(NewEstimator(toyModel, &EstimatorOptions{Context: c, Strategy: workers}))
	x, y := toyData()
	p := AddSlices(NewPipeline(c), "x", Feature, x, toyRows, toyColumns)
	dataset := must[*Dataset](t)(AddSlices(p, "y", Label, y).Batch(toyBatch, nil).Build())
	closed(t, workers, estimator, dataset)
	if got := fmt.Sprint(workers.ReplicaCount(), workers.Devices()); got !=
		"8 [cpu:0 cpu:1 reference:0 reference:1]" {
		t.Error(got)
	}
	if _, err := estimator.Train(background, dataset, nil); !errors.Is(err, FailedPrecondition) ||
		!strings.Contains(err.Error(), "cannot train together") {
		t.Error(err)
	}
}

func TestCentralStorage(t *testing.T) {
	live(t)
	c := must[*Context](t)(NewContext(&ContextOptions{LogicalDevices: 3, Backend: "reference"}))
	second := must[*Strategy](t)(CentralStorage(c, "reference:1"))
	first := must[*Strategy](t)(CentralStorage(c, "", "reference:2", "reference:0"))
	if got := fmt.Sprint(second.Devices(), first.Devices()); got !=
		"[reference:1 reference:0 reference:2] [reference:2 reference:0]" {
		t.Error(got)
	}
	closed(t, second, first)
	if _, err := CentralStorage(c, "reference:7", "reference:0"); !errors.Is(err, NotFound) {
		t.Error(err)
	}
	if _, err := CentralStorage(c, "", "reference:0", "reference:0"); !errors.Is(err, InvalidArgument) {
		t.Error(err)
	}
	if _, err := CentralStorage(c, "reference:0\x00"); !errors.Is(err, NotFound) {
		t.Error(err)
	}
	closed(t, c)
}

func TestContextsAndStrategies(t *testing.T) {
	live(t)
	c := must[*Context](t)(NewContext(&ContextOptions{LogicalDevices: 3, Backend: "reference"}))
	strategy := must[*Strategy](t)(Mirrored(c, "reference:2", "reference:0"))
	scope := must[*Context](t)(strategy.Context())
	closed(t, c, strategy, scope)
	if devices := must[[]string](t)(c.Devices()); len(devices) != 3 || !strings.HasSuffix(devices[0], ":0") {
		t.Error(devices)
	}
	if count, id := strategy.InputPipelineCount(), strategy.InputPipelineID(); count != 1 || id != 0 {
		t.Error(count, id)
	}
	workers := must[*Strategy](t)(MultiWorker(c, &ClusterOptions{Workers: "a.invalid:1,b.invalid:1", Worker: 1,
		Devices: "reference:1", WorkerInput: WorkerInputOwn}))
	closed(t, workers)
	if got := fmt.Sprint(workers.ReplicaCount(), workers.WorkerCount(), workers.WorkerIndex(), workers.Devices(),
		workers.InputPipelineCount(), workers.InputPipelineID()); got != "2 2 1 [reference:1] 2 1" {
		t.Error(got)
	}
	if _, err := MultiWorker(c, &ClusterOptions{Workers: "a.invalid:1", Worker: 1}); !errors.Is(err, InvalidArgument) {
		t.Error(err)
	}
	t.Setenv("TF_CONFIG", `{"cluster": {"worker": ["a.invalid:1"]}, "task": {"type": "boss", "index": 0}}`)
	if _, err := MultiWorkerFromEnvironment(c, nil); err == nil ||
		!strings.Contains(err.Error(), "TF_CONFIG.task.type") {
		t.Error(err)
	}
	if got := fmt.Sprint(strategy.Devices()); got != "[reference:2 reference:0]" {
		t.Error(got)
	}
	if devices := must[[]*Device](t)(scope.DescribeDevices()); len(devices) != 3 {
		t.Error(devices)
	}
	if err := c.StartProfile(filepath.Join(t.TempDir(), "trace.json")); err != nil {
		t.Error(err)
	}
	if err := scope.StartProfile(""); !errors.Is(err, FailedPrecondition) {
		t.Error(err)
	}
	if profile := must[*Profile](t)(scope.StopProfile()); len(profile.Devices) != 0 {
		t.Error(profile)
	}
	if _, err := c.StopProfile(); !errors.Is(err, FailedPrecondition) {
		t.Error(err)
	}
	if first := must[*Strategy](t)(OneDevice(c, "")); len(first.Devices()) != 1 {
		t.Error(first.Devices())
	} else {
		first.Close()
	}
	if !HasFeature("backend:reference") || HasFeature("backend:nothing") || WhyUnavailable("nothing") == "" ||
		Version() == "" {
		t.Error(Version())
	}
}
