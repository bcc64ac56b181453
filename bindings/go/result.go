// SPDX-License-Identifier: Apache-2.0

package tutti

import "tutti.org/tutti/internal/raw"

// Reason is why training returned: ReasonNotEnded for an evaluation, and while a session has more to do.
type Reason int32

// The reasons.
const (
	ReasonNotEnded   Reason = 0
	ReasonMaxSteps   Reason = raw.REASON_MAX_STEPS
	ReasonEpochs     Reason = raw.REASON_EPOCHS
	ReasonEndOfInput Reason = raw.REASON_END_OF_INPUT
	ReasonStopped    Reason = raw.REASON_STOPPED
)

// Result is what training or evaluating gave.
type Result struct {
	Reason   Reason             // why training returned
	Step     int64              // completed steps, of all trainings
	Examples int64              // that this call has trained on, or evaluated
	Seconds  float64            // that it took
	Loss     float64            // of the last step, or of the whole dataset; NaN when the model has none
	Metrics  map[string]float64 // by name, without the loss

	// Seconds that training steps waited for their input.
	InputWait float64
	// What the newest walk over the training data has cost, as Iterator.Report gives it; not after a run of a session.
	InputReport string
	// Where the time of training steps went and how idle each device was, as JSON; not after a run of a session.
	StepReport string
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
		Seconds:  raw.Result_get_seconds(handle),
		Loss:     raw.Result_get_loss(handle),
		Metrics:  make(map[string]float64),

		InputWait:   raw.Result_get_input_wait(handle),
		InputReport: raw.Result_get_input_report(handle),
		StepReport:  raw.Result_get_step_report(handle),
	}
	for i := int64(0); i < raw.Result_get_metric_count(handle); i++ {
		name := raw.Result_get_metric_name(handle, i)
		result.Metrics[name] = raw.Result_get_metric(handle, name)
	}
	return result
}
