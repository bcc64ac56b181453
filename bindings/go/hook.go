// SPDX-License-Identifier: Apache-2.0

package tutti

import (
	"errors"
	"fmt"
	"time"

	"tutti.org/tutti/internal/raw"
)

// EventKind is what happened in a training.
type EventKind int32

// The kinds of events; there may be more in later releases.
const (
	EventBegin           EventKind = raw.EVENT_BEGIN
	EventStep            EventKind = raw.EVENT_STEP
	EventCheckpointSaved EventKind = raw.EVENT_CHECKPOINT_SAVED
	EventEpochEnd        EventKind = raw.EVENT_EPOCH_END
	EventEvaluated       EventKind = raw.EVENT_EVALUATED
	EventEnd             EventKind = raw.EVENT_END
	EventError           EventKind = raw.EVENT_ERROR
)

var eventNames = map[EventKind]string{
	EventBegin: "begin", EventStep: "step", EventCheckpointSaved: "checkpoint saved", EventEpochEnd: "epoch end",
	EventEvaluated: "evaluated", EventEnd: "end", EventError: "error",
}

// String is the kind's name, such as "checkpoint saved".
func (k EventKind) String() string { return nameOf(eventNames, "EventKind", k) }

// ErrStop, returned by a hook, ends training politely after this step.
var ErrStop = errors.New("stop training")

const hookStop = -1

// Hook sees the events of one training: a step every EverySteps steps (0 = none), and all others. It runs on the
// goroutine that trains. An error that it returns ends the training, and is found in what Train returns. It may use
// getters and cancel; training from inside it is an error.
type Hook struct {
	EverySteps int64                                      // how often it sees a step; 0 = never
	Call       func(e *Event) error                       // gets each event, which is valid until it returns
	ready      func(list uintptr, failure *uintptr) int32 // adds a hook of the library
}

// OnStep is a hook that sees a step every so many steps, and nothing else.
func OnStep(every int64, call func(e *Event) error) Hook {
	if call == nil {
		return Hook{EverySteps: every} // which the training call refuses
	}
	return Hook{EverySteps: every, Call: func(e *Event) error {
		if e.Kind != EventStep {
			return nil
		}
		return call(e)
	}}
}

// ProgressStyle is how Progress shows a training.
type ProgressStyle int32

// The styles of Progress.
const (
	ProgressAuto  ProgressStyle = raw.PROGRESS_AUTO  // a bar where standard error is a terminal, lines elsewhere
	ProgressBar   ProgressStyle = raw.PROGRESS_BAR   // a line with a bar, written again four times a second
	ProgressLines ProgressStyle = raw.PROGRESS_LINES // a line every ten seconds
)

var progressNames = map[ProgressStyle]string{ProgressAuto: "auto", ProgressBar: "bar", ProgressLines: "lines"}

// String is the style's name, such as "bar".
func (s ProgressStyle) String() string { return nameOf(progressNames, "ProgressStyle", s) }

// Progress is a hook that shows on standard error how far the training is: step, loss, metrics, examples per second and
// time left; also each evaluation, and how long all took.
func Progress(style ProgressStyle) Hook {
	return Hook{ready: func(list uintptr, failure *uintptr) int32 {
		return raw.Hooks_add_progress(list, int32(style), failure)
	}}
}

// MetricsFormat is what MetricsFile writes.
type MetricsFormat int32

// The formats of MetricsFile.
const (
	MetricsCSV       MetricsFormat = raw.METRICS_CSV        // the first line names the columns
	MetricsJSONLines MetricsFormat = raw.METRICS_JSON_LINES // an object in each line
)

var metricsNames = map[MetricsFormat]string{MetricsCSV: "CSV", MetricsJSONLines: "JSON lines"}

// String is the format's name, such as "CSV".
func (f MetricsFormat) String() string { return nameOf(metricsNames, "MetricsFormat", f) }

// MetricsFile is a hook that writes losses and metrics to a file: a line every so many steps (0 = none), for each
// evaluation and pass, and one at the end. A file that is there goes on, without what it has of later steps than the
// training begins with. If it cannot be written later, the log says so and the training goes on.
func MetricsFile(path string, format MetricsFormat, everySteps int64) Hook {
	return Hook{ready: func(list uintptr, failure *uintptr) int32 {
		return raw.Hooks_add_metrics_file(list, path, int32(format), everySteps, failure)
	}}
}

// Event is what a hook sees. Numbers that an event does not carry are 0 or NaN.
type Event struct {
	Kind              EventKind     // what happened
	Step              int64         // completed steps, of all trainings
	Epoch             int64         // the pass over the dataset, from 0; between two passes the one that has ended
	Loss              float64       // of the step, or of the evaluation
	ExamplesPerSecond float64       // the present speed
	Remaining         time.Duration // until the end at the present speed; 0 = not known
	handle            uintptr
}

func newEvent(handle uintptr) *Event {
	return &Event{
		Kind:              EventKind(raw.Hook_event_get_kind(handle)),
		Step:              raw.Hook_event_get_step(handle),
		Epoch:             raw.Hook_event_get_epoch(handle),
		Loss:              raw.Hook_event_get_loss(handle),
		ExamplesPerSecond: raw.Hook_event_get_examples_per_second(handle),
		Remaining:         seconds(raw.Hook_event_get_remaining_seconds(handle)),
		handle:            handle,
	}
}

// String is what happened, and at which step.
func (e *Event) String() string {
	return fmt.Sprintf("%v at step %d, loss %.4g", e.Kind, e.Step, e.Loss)
}

// Metric is a metric of the model; NaN when there is none of the name, and after the hook returned.
func (e *Event) Metric(name string) float64 { return raw.Hook_event_get_metric(e.handle, name) }

// Checkpoint is the directory of the checkpoint just saved; "" for other events, and after the hook returned.
func (e *Event) Checkpoint() string { return raw.Hook_event_get_checkpoint(e.handle) }

// SummaryWriter writes among the run's own summaries for TensorBoard; nil where the run writes none, and after the hook
// returned. It may be kept.
func (e *Event) SummaryWriter() *SummaryWriter {
	number := raw.Hook_event_get_summary_writer(e.handle)
	if number == 0 {
		return nil
	}
	raw.Summary_writer_ref(number)
	return ownSummaryWriter(number)
}

// newHooks makes a C list of hooks, 0 for none; the caller drops it.
func newHooks(hooks []Hook) (uintptr, error) {
	if len(hooks) == 0 {
		return 0, nil
	}
	var out, failure uintptr
	if code := raw.Hooks_create(&out, &failure); code != 0 {
		return 0, fromC(code, failure)
	}
	for _, hook := range hooks {
		if hook.Call == nil && hook.ready == nil {
			raw.Hooks_unref(out)
			return 0, invalid("a hook has no function")
		}
		if code := hook.addTo(out, &failure); code != 0 {
			raw.Hooks_unref(out)
			return 0, fromC(code, failure)
		}
	}
	return out, nil
}

func (h Hook) addTo(list uintptr, failure *uintptr) int32 {
	if h.ready != nil {
		return h.ready(list, failure)
	}
	return raw.Hooks_add(list, newToken(h.Call), h.EverySteps, failure)
}
