// SPDX-License-Identifier: Apache-2.0

package tutti

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
)

func TestCodesAndDetails(t *testing.T) {
	live(t)
	dataset, estimator := toyDataset(t), toyEstimator(t, RunOptions{})
	closed(t, dataset, estimator)
	cases := []struct {
		name string
		code Code
		call func() error
	}{
		{"wrong option", InvalidArgument, func() error {
			_, err := NewEstimator(toyModel, &EstimatorOptions{RunOptions: RunOptions{Determinism: "perhaps"}})
			return err
		}},
		{"missing file", NotFound, func() error {
			_, err := NewPipeline(nil).AddIDX("x", Feature, "no/such/Größe.gz").Build()
			return err
		}},
		{"untrained", FailedPrecondition, func() error {
			_, err := estimator.Evaluate(background, dataset, 1)
			return err
		}},
		{"no such device", NotFound, func() error { _, err := OneDevice(nil, "cpu:9999"); return err }},
		{"NULL", InvalidArgument, func() error {
			_, err := estimator.Train(background, nil, nil)
			return err
		}},
		{"wrong size", InvalidArgument, func() error { _, err := NewTensor([]float32{1, 2, 3}, 2, 2); return err }},
		{"wrong type", InvalidArgument, func() error {
			tensor := must[*Tensor](t)(NewTensor([]float32{1}))
			defer tensor.Close()
			_, err := Values[int32](tensor)
			return err
		}},
	}
	for _, c := range cases {
		err := c.call()
		var ours *Error
		if !errors.Is(err, c.code) || !errors.As(err, &ours) || ours.Message == "" {
			t.Errorf("%s: %v is not %v", c.name, err, c.code)
		}
	}
	_, err := NewPipeline(nil).AddIDX("x", Feature, "no/such/Größe.gz").Build()
	if !strings.Contains(err.Error(), "Größe") {
		t.Error("the path is not in:", err)
	}
	text := string(must[[]byte](t)(json.Marshal(&Error{Code: Aborted, Domain: "user", Message: "a \"b\"", Subcode: 7,
		Details: []Detail{{"step", "3"}}, Cause: errors.New("why")})))
	if text != `{"code":"ABORTED","domain":"user","message":"a \"b\"","subcode":7,"details":{"step":"3"},`+
		`"cause":{"code":"ABORTED","domain":"user","message":"why"}}` {
		t.Error(text)
	}
	if text = string(must[[]byte](t)(json.Marshal(err))); !strings.Contains(text, `"code":"NOT_FOUND"`) {
		t.Error(text)
	}
	var unknown Code = 99
	if Cancelled.Error() != "CANCELLED" || unknown.Error() != "UNKNOWN" {
		t.Error(Cancelled, unknown)
	}
}

// nothing is an error whose nil pointer has no text.
type nothing struct{ text string }

func (n *nothing) Error() string { return n.text }

var errMine = errors.New("mine")

// brokenBy gives a function's ways to fail, and what must be found in the error of the call.
func brokenBy(t *testing.T, run func(t *testing.T, fail func() error) error) {
	t.Helper()
	_, file, line, _ := runtime.Caller(0)
	place := map[string]string{ // lines of the map below
		"panic":         fmt.Sprintf("%s:%d: ouch", file, line+8),
		"panic error":   fmt.Sprintf("%s:%d: mine", file, line+9),
		"runtime panic": fmt.Sprintf("%s:%d: runtime error: index out of range", file, line+13),
	}
	ways := map[string]func() error{
		"error":         func() error { return fmt.Errorf("around: %w", errMine) },
		"panic":         func() error { panic("ouch") },
		"panic error":   func() error { panic(errMine) },
		"no text":       func() error { return errors.New("") },
		"bad text":      func() error { return errors.New("\xff\x00\n") },
		"nil pointer":   func() error { return (*nothing)(nil) },
		"runtime panic": func() error { var none []int; return fmt.Errorf("%d", none[len(none)]) },
	}
	for name, fail := range ways {
		err := run(t, fail)
		var panicked *PanicError
		var typed *nothing
		if err == nil || (name == "nil pointer") != errors.As(err, &typed) {
			t.Errorf("%s: the error is lost", name)
		}
		if strings.Contains(name, "error") && !errors.Is(err, errMine) {
			t.Errorf("%s: the error is not in %v", name, err)
		}
		if strings.Contains(name, "panic") && (!errors.As(err, &panicked) || len(panicked.Stack) == 0) {
			t.Errorf("%s: the panic is not in %v", name, err)
		}
		if strings.Contains(name, "panic") && !strings.Contains(err.Error(), place[name]) {
			t.Errorf("%s: %s is not in %v", name, place[name], err)
		}
	}
}

func TestModelFunctionFails(t *testing.T) {
	live(t)
	dataset := toyDataset(t)
	closed(t, dataset)
	brokenBy(t, func(t *testing.T, fail func() error) error {
		estimator := must[*Estimator](t)(NewEstimator(func(*Graph, Mode) error { return fail() }, nil))
		defer estimator.Close()
		_, err := estimator.Train(background, dataset, &TrainOptions{Steps: 1})
		return err
	})
	estimator := must[*Estimator](t)(NewEstimator(func(g *Graph, mode Mode) error {
		g.SetLoss(g.LayerDense(g.Feature("nothing"), 3, nil))
		return nil
	}, nil))
	closed(t, estimator)
	_, err := estimator.Train(background, dataset, &TrainOptions{Steps: 1})
	if err == nil || !strings.Contains(err.Error(), "nothing") {
		t.Error(err)
	}
}

func TestHookFails(t *testing.T) {
	live(t)
	dataset, estimator := toyDataset(t), toyEstimator(t, RunOptions{})
	closed(t, dataset, estimator)
	brokenBy(t, func(t *testing.T, fail func() error) error {
		_, err := estimator.Train(background, dataset, &TrainOptions{Steps: 5},
			Hook{EverySteps: 1, Call: func(e *Event) error {
				if e.Kind == EventStep {
					return fail()
				}
				return nil
			}})
		return err
	})
	must[*Result](t)(estimator.Train(background, dataset, &TrainOptions{Steps: 2})) // and it is as good as before
	_, err := estimator.Train(background, dataset, &TrainOptions{Steps: 1}, Hook{})
	if !errors.Is(err, InvalidArgument) {
		t.Error(err)
	}
}

func TestMapGraphFails(t *testing.T) {
	live(t)
	brokenBy(t, func(t *testing.T, fail func() error) error {
		_, err := toyPipeline().MapGraph(1, func(*Graph) error { return fail() }).Build()
		return err
	})
	brokenBy(t, func(t *testing.T, fail func() error) error {
		_, err := toyPipeline().FilterGraph(func(*Graph) error { return fail() }).Build()
		return err
	})
}

// What another goroutine makes of a graph gives nothing, and the caller of the function is told.
func TestAGraphBelongsToItsGoroutine(t *testing.T) {
	live(t)
	elsewhere := func(g *Graph) {
		values := make(chan Value)
		go func() { values <- g.Feature("x") }()
		if (<-values).IsValid() {
			t.Error("another goroutine has a feature")
		}
	}
	_, err := toyPipeline().MapGraph(1, func(g *Graph) error { elsewhere(g); return nil }).Build()
	if !errors.Is(err, FailedPrecondition) || !strings.Contains(err.Error(), "used on another thread") {
		t.Error(err)
	}
	dataset := toyDataset(t)
	estimator := must[*Estimator](t)(NewEstimator(func(g *Graph, mode Mode) error { elsewhere(g); return nil }, nil))
	closed(t, dataset, estimator)
	_, err = estimator.Train(background, dataset, &TrainOptions{Steps: 1})
	if !errors.Is(err, FailedPrecondition) || !strings.Contains(err.Error(), "used on another thread") {
		t.Error(err)
	}
}

func TestFeedFails(t *testing.T) {
	live(t)
	brokenBy(t, func(t *testing.T, fail func() error) error {
		feed := must[*Feed](t)(NewFeed(nil, 2, FeedComponent{"x", Feature, Float32, nil}))
		defer feed.Close()
		dataset := must[*Dataset](t)(NewPipeline(nil).AddFeed(feed).Build())
		defer dataset.Close()
		iterator := must[*Iterator](t)(dataset.Iterator(0))
		defer iterator.Close()
		pushed := make(chan error)
		go func() {
			pushed <- feed.PushAll(background, func(context.Context) ([]*Tensor, error) { return nil, fail() })
		}()
		_, err := iterator.Next(background)
		if <-pushed == nil {
			t.Error("PushAll tells nothing")
		}
		var ours *Error
		if errors.As(err, &ours) && ours.Code != Aborted { // the code of hooks and model functions, too
			t.Error(err)
		}
		return err
	})
}

func TestLogSinkPanics(t *testing.T) {
	live(t)
	c := must[*Context](t)(NewContext(&ContextOptions{LogicalDevices: 1}))
	closed(t, c)
	if err := c.SetLog(LogDebug, func(Severity, string) { panic(errMine) }); err != nil {
		t.Fatal(err)
	}
	x, y := toyData()
	p := AddSlices(NewPipeline(c), "x", Feature, x, toyRows, toyColumns)
	dataset := must[*Dataset](t)(AddSlices(p, "y", Label, y).Batch(8, nil).Build())
	estimator := must[*Estimator](t)(NewEstimator(toyModel, &EstimatorOptions{
		Context: c, RunOptions: RunOptions{LogStepCountSteps: I64(1)}}))
	closed(t, dataset, estimator)
	must[*Result](t)(estimator.Train(background, dataset, &TrainOptions{Steps: 3}))
	if err := c.LogError(); !errors.Is(err, errMine) {
		t.Error(err)
	}
	var mutex sync.Mutex
	var lines []string
	if err := c.SetLog(LogInfo, func(severity Severity, text string) {
		mutex.Lock()
		defer mutex.Unlock()
		lines = append(lines, text)
	}); err != nil {
		t.Fatal(err)
	}
	must[*Result](t)(estimator.Train(background, dataset, &TrainOptions{Steps: 3}))
	mutex.Lock()
	defer mutex.Unlock()
	if len(lines) == 0 || c.LogError() != nil {
		t.Error(lines, c.LogError())
	}
	if err := c.SetLog(LogInfo, nil); err != nil {
		t.Error(err)
	}
}

func TestUseAfterClose(t *testing.T) {
	live(t)
	dataset, estimator := toyDataset(t), toyEstimator(t, RunOptions{})
	strategy, tensor := must[*Strategy](t)(Mirrored(nil)), must[*Tensor](t)(NewTensor([]float32{1}))
	feed := must[*Feed](t)(NewFeed(nil, 1, FeedComponent{"x", Feature, Float32, nil}))
	iterator := must[*Iterator](t)(dataset.Iterator(0))
	session := must[*Session](t)(estimator.OpenSession(background, dataset, nil))
	must[*Result](t)(session.Run(1))
	session.Close()
	must[*Result](t)(estimator.Train(background, dataset, &TrainOptions{Steps: 1}))
	predictor := must[*Predictor](t)(estimator.Predictor(nil))
	stream := must[*PredictionStream](t)(predictor.Stream(dataset))
	batch := must[*Batch](t)(stream.Next(background))
	objects := []interface{ Close() error }{
		dataset, estimator, strategy, tensor, feed, iterator, session, predictor, stream, batch,
	}
	for _, object := range objects {
		if object.Close() != nil || object.Close() != nil {
			t.Errorf("%T: closing twice fails", object)
		}
	}
	calls := map[string]func() error{
		"train":    func() error { _, err := estimator.Train(background, dataset, nil); return err },
		"evaluate": func() error { _, err := estimator.Evaluate(background, dataset, 0); return err },
		"dataset":  func() error { _, err := dataset.Iterator(0); return err },
		"iterator": func() error { _, err := iterator.Next(background); return err },
		"strategy": func() error { _, err := strategy.Context(); return err },
		"tensor":   func() error { _, err := Values[float32](tensor); return err },
		"update":   func() error { return Update(tensor, func([]float32) error { return nil }) },
		"feed":     func() error { return feed.Push(background) },
		"session":  func() error { _, err := session.Run(1); return err },
		"finish":   func() error { _, err := session.Finish(); return err },
		"run":      func() error { _, err := predictor.Run(background, nil); return err },
		"stream":   func() error { _, err := stream.Next(background); return err },
		"batch":    func() error { _, err := batch.Output("class"); return err },
		"slices":   func() error { _, err := NewPipeline(nil).AddSlices("x", Feature, tensor).Build(); return err },
		"zip":      func() error { _, err := toyPipeline().Zip(dataset).Build(); return err },
	}
	for name, call := range calls {
		if err := call(); !errors.Is(err, ErrClosed) || !errors.Is(err, FailedPrecondition) {
			t.Errorf("%s: %v", name, err)
		}
	}
	pipeline := toyPipeline()
	pipeline.Close()
	if _, err := pipeline.Batch(3, nil).Build(); !errors.Is(err, ErrClosed) {
		t.Error(err)
	}
	if estimator.GlobalStep() != -1 || tensor.Len() != -1 || batch.Rows() != -1 || dataset.Components() != nil {
		t.Error("getters of closed objects")
	}
}

func TestObjectsThatWereNeverMade(t *testing.T) {
	live(t)
	dataset, estimator := toyDataset(t), toyEstimator(t, RunOptions{})
	closed(t, dataset, estimator)
	calls := map[string]func() error{
		"texts":   func() error { _, err := Texts(nil); return err },
		"values":  func() error { _, err := Values[int32](nil); return err },
		"session": func() error { _, err := (&Session{}).Run(1); return err },
		"finish":  func() error { _, err := (&Session{}).Finish(); return err },
		"feed":    func() error { return (&Feed{}).Push(background) },
		"train":   func() error { _, err := estimator.Train(background, nil, nil); return err },
		"run":     func() error { _, err := (*Predictor)(nil).Run(background, nil); return err },
		"hook": func() error {
			_, err := estimator.Train(background, dataset, &TrainOptions{Steps: 1}, OnStep(1, nil))
			return err
		},
	}
	for name, call := range calls {
		if err := call(); !errors.Is(err, InvalidArgument) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestCancelledByContext(t *testing.T) {
	live(t)
	dataset, estimator := toyDataset(t), toyEstimator(t, RunOptions{})
	closed(t, dataset, estimator)
	ctx, cancel := context.WithCancel(background)
	_, err := estimator.Train(ctx, dataset, nil, Hook{EverySteps: 10, Call: func(e *Event) error {
		if e.Kind == EventStep {
			cancel()
		}
		return nil
	}})
	if !errors.Is(err, context.Canceled) || !errors.Is(err, Cancelled) {
		t.Error(err)
	}
	if _, err = estimator.Train(ctx, dataset, &TrainOptions{Steps: 1}); !errors.Is(err, context.Canceled) {
		t.Error("an ended context:", err)
	}
	ctx, cancel = context.WithTimeout(background, 30*time.Millisecond)
	defer cancel()
	_, err = estimator.Train(ctx, dataset, nil)
	if !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, DeadlineExceeded) {
		t.Error(err)
	}
	feed := must[*Feed](t)(NewFeed(nil, 1, FeedComponent{"x", Feature, Float32, nil}))
	waiting := must[*Dataset](t)(NewPipeline(nil).AddFeed(feed).Build())
	iterator := must[*Iterator](t)(waiting.Iterator(0))
	closed(t, feed, waiting, iterator)
	ctx, cancel = context.WithTimeout(background, 30*time.Millisecond)
	defer cancel()
	if _, err = iterator.Next(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
}

func TestStopped(t *testing.T) {
	live(t)
	dataset, estimator := toyDataset(t), toyEstimator(t, RunOptions{})
	closed(t, dataset, estimator)
	stop := make(chan struct{})
	stopping := OnStep(5, func(e *Event) error {
		if e.Step == 5 {
			close(stop)
		}
		return nil
	})
	result := must[*Result](t)(estimator.Train(background, dataset, &TrainOptions{Stop: stop}, stopping))
	if result.Reason != ReasonStopped || result.Step < 5 {
		t.Errorf("%+v", result)
	}
	before := result.Step
	result = must[*Result](t)(estimator.Train(background, dataset, nil,
		Hook{EverySteps: 3, Call: func(e *Event) error {
			if e.Kind == EventStep {
				return fmt.Errorf("enough: %w", ErrStop)
			}
			return nil
		}}))
	if result.Reason != ReasonStopped || result.Step <= before {
		t.Errorf("%+v", result)
	}
	before = result.Step
	// A learning rate that stays the same is best at the first step.
	early := TrainOptions{EarlyStopping: "learning_rate", EarlyStoppingPatienceSteps: 4, EarlyStoppingEverySteps: 1}
	result = must[*Result](t)(estimator.Train(background, dataset, &early))
	if result.Reason != ReasonStopped || result.Step != before+5 {
		t.Errorf("%+v", result)
	}
}

func TestTrainingInsideAHookIsAnError(t *testing.T) {
	live(t)
	dataset, estimator := toyDataset(t), toyEstimator(t, RunOptions{})
	closed(t, dataset, estimator)
	var inside error
	must[*Result](t)(estimator.Train(background, dataset, &TrainOptions{Steps: 1},
		Hook{EverySteps: 1, Call: func(e *Event) error {
			if e.Kind == EventStep {
				_, inside = estimator.Train(background, dataset, &TrainOptions{Steps: 1})
			}
			return nil
		}}))
	if !errors.Is(inside, FailedPrecondition) {
		t.Error(inside)
	}
}
