// SPDX-License-Identifier: Apache-2.0

package tutti

import (
	"fmt"
	"math"
	"sort"
	"time"

	"tutti.org/tutti/internal/raw"
)

// Reason is why training returned.
type Reason int32

// The reasons. ReasonUnfinished is that of an evaluation, and of a session that has more to do.
const (
	ReasonUnfinished Reason = 0
	ReasonMaxSteps   Reason = raw.REASON_MAX_STEPS
	ReasonEpochs     Reason = raw.REASON_EPOCHS
	ReasonEndOfInput Reason = raw.REASON_END_OF_INPUT
	ReasonStopped    Reason = raw.REASON_STOPPED
	ReasonMaxSeconds Reason = raw.REASON_MAX_SECONDS
)

var reasonNames = map[Reason]string{
	ReasonUnfinished: "unfinished", ReasonMaxSteps: "max steps", ReasonEpochs: "epochs",
	ReasonEndOfInput: "end of input", ReasonStopped: "stopped", ReasonMaxSeconds: "max seconds",
}

// String is the reason's name, such as "end of input".
func (r Reason) String() string { return nameOf(reasonNames, "Reason", r) }

// Result is what training or evaluating gave.
type Result struct {
	Reason   Reason             // why training returned
	Step     int64              // completed steps, of all trainings
	Examples int64              // that this call has trained on, or evaluated
	Elapsed  time.Duration      // how long that took
	Loss     float64            // of the last step, or of the whole dataset; NaN when the model has none
	Metrics  map[string]float64 // by name, without the loss
	Tensors  map[string]*Tensor // metrics that are no single number, such as a confusion matrix; nil without any

	// How long training steps waited for their input.
	InputWait time.Duration
	// What the newest walk over the training data has cost; nil for an evaluation and for a run of a session, whose
	// Finish has it.
	InputReport *InputReport
	// Where the time of training steps went; nil where the input report is.
	StepReport *StepReport
}

// String is the result on one line, such as "step 100, loss 0.1234, accuracy 0.9, 6400 examples in 1.2s, max steps".
func (r *Result) String() string {
	text := fmt.Sprintf("step %d", r.Step)
	if !math.IsNaN(r.Loss) {
		text += fmt.Sprintf(", loss %.4g", r.Loss)
	}
	names := make([]string, 0, len(r.Metrics))
	for name := range r.Metrics {
		if name != "loss" {
			names = append(names, name)
		}
	}
	sort.Strings(names)
	for _, name := range names {
		text += fmt.Sprintf(", %s %.4g", name, r.Metrics[name])
	}
	text += fmt.Sprintf(", %d examples in %v", r.Examples, r.Elapsed.Round(time.Millisecond))
	if r.Reason != ReasonUnfinished {
		text += ", " + r.Reason.String()
	}
	return text
}

// takeResult reads a C result and drops it; nil when there is none.
func takeResult(handle uintptr) *Result {
	if handle == 0 {
		return nil
	}
	defer raw.Result_unref(handle)
	result := &Result{
		Reason:   Reason(raw.Result_get_reason(handle)),
		Step:     raw.Result_get_step(handle),
		Examples: raw.Result_get_examples(handle),
		Elapsed:  seconds(raw.Result_get_seconds(handle)),
		Loss:     raw.Result_get_loss(handle),
		Metrics:  make(map[string]float64),

		InputWait:   seconds(raw.Result_get_input_wait(handle)),
		InputReport: decodeIfAny[InputReport](raw.Result_get_input_report(handle)),
		StepReport:  decodeIfAny[StepReport](raw.Result_get_step_report(handle)),
	}
	for i := int64(0); i < raw.Result_get_metric_count(handle); i++ {
		name := raw.Result_get_metric_name(handle, i)
		value := raw.Result_get_metric(handle, name)
		if tensor := metricTensor(handle, name, value); tensor == nil {
			result.Metrics[name] = value
		} else if result.Tensors == nil {
			result.Tensors = map[string]*Tensor{name: tensor}
		} else {
			result.Tensors[name] = tensor
		}
	}
	return result
}

// metricTensor is a metric that is no single number, whose value is NaN then; nil for one that is.
func metricTensor(handle uintptr, name string, value float64) *Tensor {
	var out, failure uintptr
	if !math.IsNaN(value) {
		return nil
	}
	if code := raw.Result_read_metric(handle, name, &out, &failure); code != 0 {
		raw.Error_unref(failure)
		return nil
	}
	if raw.Tensor_get_rank(out) == 0 {
		raw.Tensor_unref(out)
		return nil
	}
	return wrapTensor(out)
}
