// SPDX-License-Identifier: Apache-2.0

package tutti

import (
	"encoding/json"
	"time"

	"tutti.org/tutti/internal/raw"
)

// SummaryWriter writes curves, histograms, images, texts and embeddings for TensorBoard into event files of a folder.
// A name has values of one kind only, and "/" between groups. Writing is no error of a call: if it fails, as on a full
// disk, the log says so once, and it is tried again. Any number of goroutines may use it.
type SummaryWriter struct{ object }

func (w *SummaryWriter) ref() *handle {
	if w == nil {
		return nil
	}
	return w.handle
}

func ownSummaryWriter(number uintptr) *SummaryWriter {
	return &SummaryWriter{object{newHandle("SummaryWriter", number, raw.Summary_writer_unref)}}
}

// NewSummaryWriter writes a new event file in a folder, which is made with the first value. flush is how long a value
// may wait to be written while others come, in whole seconds. A context of nil is the default one.
func NewSummaryWriter(context *Context, folder string, flush time.Duration) (*SummaryWriter, error) {
	var use uses
	defer use.leave()
	number := use.of(context.ref())
	if use.err != nil {
		return nil, use.err
	}
	var out, failure uintptr
	if code := raw.Summary_writer_create(number, folder, int64(flush/time.Second), &out, &failure); code != 0 {
		return nil, fromC(code, failure)
	}
	return ownSummaryWriter(out), nil
}

// call calls a function with the writer's handle and those of tensors, 0 for nil.
func (w *SummaryWriter) call(function func(number uintptr, tensors []uintptr, failure *uintptr) int32,
	tensors ...*Tensor) error {
	var use uses
	defer use.leave()
	number := use.of(w.ref())
	numbers := make([]uintptr, len(tensors))
	for i, tensor := range tensors {
		numbers[i] = use.of(tensor.ref())
	}
	if use.err != nil {
		return use.err
	}
	var failure uintptr
	return fromC(function(number, numbers, &failure), failure)
}

// Folder is where the event files are.
func (w *SummaryWriter) Folder() (string, error) {
	var folder string
	err := w.call(func(number uintptr, _ []uintptr, _ *uintptr) int32 {
		folder = raw.Summary_writer_get_folder(number)
		return 0
	})
	return folder, err
}

// Flush writes what waits.
func (w *SummaryWriter) Flush() error {
	return w.call(func(number uintptr, _ []uintptr, failure *uintptr) int32 {
		return raw.Summary_writer_flush(number, failure)
	})
}

// AddScalar adds a point of a curve.
func (w *SummaryWriter) AddScalar(name string, value float64, step int64) error {
	return w.call(func(number uintptr, _ []uintptr, failure *uintptr) int32 {
		return raw.Summary_writer_add_scalar(number, name, value, step, failure)
	})
}

// AddHistogram shows how the elements of a tensor are distributed.
func (w *SummaryWriter) AddHistogram(name string, values *Tensor, step int64) error {
	return w.call(func(number uintptr, tensors []uintptr, failure *uintptr) int32 {
		return raw.Summary_writer_add_histogram(number, name, tensors[0], step, failure)
	}, values)
}

// AddImage shows the first images, most of them (0 = 3), of [images, height, width, channels] of UInt8, or of floating
// point numbers from 0 to 1.
func (w *SummaryWriter) AddImage(name string, images *Tensor, most, step int64) error {
	return w.call(func(number uintptr, tensors []uintptr, failure *uintptr) int32 {
		return raw.Summary_writer_add_image(number, name, tensors[0], most, step, failure)
	}, images)
}

// AddText shows a text in Markdown.
func (w *SummaryWriter) AddText(name, text string, step int64) error {
	return w.call(func(number uintptr, _ []uintptr, failure *uintptr) int32 {
		return raw.Summary_writer_add_text(number, name, text, step, failure)
	})
}

// AddPRCurve shows precision and recall over thresholds (0 = 201): labels are truth values, predictions numbers from 0
// to 1, and weights, which may be nil, those of the examples.
func (w *SummaryWriter) AddPRCurve(name string, labels, predictions, weights *Tensor, thresholds, step int64) error {
	return w.call(func(number uintptr, tensors []uintptr, failure *uintptr) int32 {
		return raw.Summary_writer_add_pr_curve(number, name, tensors[0], tensors[1], tensors[2], thresholds, step,
			failure)
	}, labels, predictions, weights)
}

// AddEmbedding shows points [points, dimensions] in TensorBoard's projector. metadata says what each is: "" for
// nothing, a line for each, or a table with tabs between columns, whose first line has their names.
func (w *SummaryWriter) AddEmbedding(name string, points *Tensor, metadata string) error {
	return w.call(func(number uintptr, tensors []uintptr, failure *uintptr) int32 {
		return raw.Summary_writer_add_embedding(number, name, tensors[0], metadata, failure)
	}, points)
}

// AddHyperparameters shows settings of a run, numbers, truth values and texts, in TensorBoard's table of runs, beside
// the newest values of the curves that metrics name.
func (w *SummaryWriter) AddHyperparameters(settings map[string]any, metrics ...string) error {
	values, err := json.Marshal(settings)
	if err != nil {
		return invalid("%v", err)
	}
	names, err := json.Marshal(append([]string{}, metrics...))
	if err != nil {
		return invalid("%v", err)
	}
	return w.call(func(number uintptr, _ []uintptr, failure *uintptr) int32 {
		return raw.Summary_writer_add_hyperparameters(number, string(values), string(names), failure)
	})
}

// Prometheus keeps the newest values of trainings for monitoring by Prometheus: a program gives Text to whoever asks
// for it, such as a handler of net/http at /metrics, with the content type "text/plain; version=0.0.4".
type Prometheus struct{ object }

// NewPrometheus has no values yet.
func NewPrometheus() (*Prometheus, error) {
	var out, failure uintptr
	if code := raw.Prometheus_create(&out, &failure); code != 0 {
		return nil, fromC(code, failure)
	}
	return &Prometheus{object{newHandle("Prometheus", out, raw.Prometheus_unref)}}, nil
}

// Hook keeps values of every so many steps (0 = none), each evaluation and pass, and the end.
func (p *Prometheus) Hook(everySteps int64) Hook {
	return Hook{ready: func(list uintptr, failure *uintptr) int32 {
		var use uses
		defer use.leave()
		// Of a closed one it is 0, which the call refuses.
		return raw.Hooks_add_prometheus(list, use.of(p.handle), everySteps, failure)
	}}
}

// Text is the newest values in Prometheus' text format. Safe at any time, also while a training runs.
func (p *Prometheus) Text() (string, error) {
	var use uses
	defer use.leave()
	number := use.of(p.handle)
	if use.err != nil {
		return "", use.err
	}
	var out, failure uintptr
	if code := raw.Prometheus_read(number, &out, &failure); code != 0 {
		return "", fromC(code, failure)
	}
	tensor := wrapTensor(out)
	defer tensor.Close()
	bytes, err := Values[uint8](tensor)
	return string(bytes), err
}
