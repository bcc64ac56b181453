// SPDX-License-Identifier: Apache-2.0

package tutti

import (
	"context"
	"fmt"
	"io"
	"strings"
	"sync"

	"tutti.org/tutti/internal/raw"
)

// Predictor is a trained model that answers. Any number of goroutines may ask one at the same time; each call uses all
// devices, and rows come back in the order in which they went in.
type Predictor struct {
	object
	plan sync.Mutex // the text is lent until the next call
}

func (p *Predictor) ref() *handle {
	if p == nil {
		return nil
	}
	return p.handle
}

func wrapPredictor(number uintptr) *Predictor {
	return &Predictor{object: object{newHandle("Predictor", number, raw.Predictor_unref)}}
}

// OpenPredictorOptions are what OpenPredictor may be told; the zero value means the defaults.
type OpenPredictorOptions struct {
	Context  *Context  // nil = the default one
	Strategy *Strategy // nil = all devices of the context
	PredictorOptions
}

// OpenPredictor opens a checkpoint, or the newest good checkpoint of a model directory.
func OpenPredictor(path string, options *OpenPredictorOptions) (*Predictor, error) {
	var use uses
	defer use.leave()
	o := given(options)
	owner, strategy := use.of(o.Context.ref()), use.of(o.Strategy.ref())
	if use.err != nil {
		return nil, use.err
	}
	settings, err := newOptions(o.PredictorOptions)
	if err != nil {
		return nil, err
	}
	defer raw.Options_unref(settings)
	var out, failure uintptr
	if code := raw.Predictor_open(owner, path, strategy, settings, &out, &failure); code != 0 {
		return nil, fromC(code, failure)
	}
	return wrapPredictor(out), nil
}

// Predictor answers from the estimator's present weights, on its strategy.
func (e *Estimator) Predictor(options *PredictorOptions) (*Predictor, error) {
	var use uses
	defer use.leave()
	number := use.of(e.ref())
	if use.err != nil {
		return nil, use.err
	}
	o, err := newOptions(given(options))
	if err != nil {
		return nil, err
	}
	defer raw.Options_unref(o)
	var out, failure uintptr
	if code := raw.Predictor_from_estimator(number, o, &out, &failure); code != 0 {
		return nil, fromC(code, failure)
	}
	return wrapPredictor(out), nil
}

// Reload changes to the weights of another checkpoint of the same model, or of the newest good checkpoint of a
// directory; "" = the newest weights of where the predictor came from, its estimator or the path it was opened with.
// Calls in flight finish on the old ones. On failure those stay.
func (p *Predictor) Reload(ctx context.Context, path string) error {
	_, err := p.wait(ctx, func(number, token uintptr, _, failure *uintptr) int32 {
		return raw.Predictor_reload(number, path, token, failure)
	})
	return err
}

// Step is the training step of the weights in use; -1 when the predictor is closed.
func (p *Predictor) Step() int64 {
	var use uses
	defer use.leave()
	return raw.Predictor_get_step(use.of(p.ref()))
}

// Signature tells names, types and shapes of inputs and outputs.
func (p *Predictor) Signature() (*Signature, error) {
	var use uses
	defer use.leave()
	number := use.of(p.ref())
	if use.err != nil {
		return nil, use.err
	}
	return decode[Signature](raw.Predictor_get_signature(number))
}

// DescribePlan tells how so many rows are computed on the first device; with timedRuns > 0, in which time.
func (p *Predictor) DescribePlan(ctx context.Context, rows, timedRuns int64) (*Plan, error) {
	if p != nil {
		p.plan.Lock()
		defer p.plan.Unlock()
	}
	var text string
	_, err := p.wait(ctx, func(number, token uintptr, _, failure *uintptr) int32 {
		if text = raw.Predictor_describe_plan(number, rows, timedRuns, token, failure); *failure != 0 {
			return raw.Error_get_code(*failure)
		}
		return 0
	})
	if err != nil {
		return nil, err
	}
	return decode[Plan](text)
}

// Run predicts the rows of named tensors, which share their first dimension.
func (p *Predictor) Run(ctx context.Context, inputs map[string]*Tensor) (*Batch, error) {
	var use uses
	defer use.leave()
	var names []string
	var tensors []uintptr
	for name, tensor := range inputs {
		names = append(names, name)
		tensors = append(tensors, use.of(tensor.ref()))
	}
	if use.err != nil {
		return nil, use.err
	}
	batch, err := p.wait(ctx, func(number, token uintptr, out, failure *uintptr) int32 {
		return raw.Predictor_run(number, joined(names), tensors, token, out, failure)
	})
	return wrapBatch(batch), err
}

// RunAll predicts a whole dataset into one batch.
func (p *Predictor) RunAll(ctx context.Context, dataset *Dataset) (*Batch, error) {
	var use uses
	defer use.leave()
	data := use.of(dataset.ref())
	if use.err != nil {
		return nil, use.err
	}
	batch, err := p.wait(ctx, func(number, token uintptr, out, failure *uintptr) int32 {
		return raw.Predictor_run_all(number, data, token, out, failure)
	})
	return wrapBatch(batch), err
}

// wait makes one call that can wait.
func (p *Predictor) wait(ctx context.Context,
	function func(number, token uintptr, out, failure *uintptr) int32) (uintptr, error) {
	var use uses
	defer use.leave()
	number := use.of(p.ref())
	if use.err != nil {
		return 0, use.err
	}
	c, err := begin(ctx, nil, nil)
	if err != nil {
		return 0, err
	}
	defer c.end()
	var out, failure uintptr
	code := function(number, c.token, &out, &failure)
	return out, c.result(code, failure)
}

// PredictionStream gives the predictions of a dataset batch by batch, in order. It serves one goroutine at a time.
type PredictionStream struct{ object }

func (s *PredictionStream) ref() *handle {
	if s == nil {
		return nil
	}
	return s.handle
}

// Stream starts to predict a dataset, a few batches ahead of the reader.
func (p *Predictor) Stream(dataset *Dataset) (*PredictionStream, error) {
	var use uses
	defer use.leave()
	number, data := use.of(p.ref()), use.of(dataset.ref())
	if use.err != nil {
		return nil, use.err
	}
	var out, failure uintptr
	if code := raw.Prediction_stream_open(number, data, &out, &failure); code != 0 {
		return nil, fromC(code, failure)
	}
	return &PredictionStream{object{newHandle("PredictionStream", out, raw.Prediction_stream_unref)}}, nil
}

// Next gives the next batch; io.EOF at the end. After an error that ended the context the next call goes on and no row
// is lost; any other error ends the stream, behind all batches that stand before it.
func (s *PredictionStream) Next(ctx context.Context) (*Batch, error) {
	var use uses
	defer use.leave()
	number := use.of(s.ref())
	if use.err != nil {
		return nil, use.err
	}
	c, err := begin(ctx, nil, nil)
	if err != nil {
		return nil, err
	}
	defer c.end()
	var out, failure uintptr
	if code := raw.Prediction_stream_next(number, c.token, &out, &failure); code != 0 {
		return nil, c.result(code, failure)
	}
	if out == 0 {
		return nil, io.EOF
	}
	return wrapBatch(out), nil
}

// Stop ends the stream early and waits until it stands; Close does not wait.
func (s *PredictionStream) Stop(ctx context.Context) error {
	var use uses
	defer use.leave()
	number := use.of(s.ref())
	if use.err != nil {
		return use.err
	}
	c, err := begin(ctx, nil, nil)
	if err != nil {
		return err
	}
	defer c.end()
	var failure uintptr
	code := raw.Prediction_stream_close(number, c.token, &failure)
	return c.result(code, failure)
}

// Batch is a batch of results: named tensors with the same number of rows. Immutable.
type Batch struct{ object }

func (b *Batch) ref() *handle {
	if b == nil {
		return nil
	}
	return b.handle
}

func wrapBatch(number uintptr) *Batch {
	if number == 0 {
		return nil
	}
	b := &Batch{object{newHandle("Batch", number, raw.Batch_unref)}}
	var size int64 = tensorOverhead
	for i := int64(0); i < raw.Batch_get_output_count(number); i++ {
		size += raw.Tensor_get_size_bytes(raw.Batch_get_output(number, raw.Batch_get_output_name(number, i)))
	}
	b.handle.weigh(size)
	return b
}

// String is the number of rows and the outputs, such as "3 rows of [class probability]".
func (b *Batch) String() string { return fmt.Sprintf("%d rows of %v", b.Rows(), b.Names()) }

// FirstRow is the position of the first row in the dataset; -1 when the batch is closed.
func (b *Batch) FirstRow() int64 {
	var use uses
	defer use.leave()
	return raw.Batch_get_first_row(use.of(b.ref()))
}

// Rows is the number of rows; -1 when the batch is closed.
func (b *Batch) Rows() int64 {
	var use uses
	defer use.leave()
	return raw.Batch_get_row_count(use.of(b.ref()))
}

// Names are the names of the outputs; nil when the batch is closed.
func (b *Batch) Names() []string {
	var use uses
	defer use.leave()
	return outputsOf(use.of(b.ref()))
}

func outputsOf(number uintptr) []string {
	var names []string
	for i := int64(0); i < raw.Batch_get_output_count(number); i++ {
		names = append(names, raw.Batch_get_output_name(number, i))
	}
	return names
}

// Output is an output by name; it lives on when the batch is closed.
func (b *Batch) Output(name string) (*Tensor, error) {
	var use uses
	defer use.leave()
	number := use.of(b.ref())
	if use.err != nil {
		return nil, use.err
	}
	tensor := sharedTensor(raw.Batch_get_output(number, name))
	if tensor == nil {
		return nil, &Error{Code: NotFound, Domain: "tutti", Message: "the batch has no output '" + name +
			"'; known: " + strings.Join(outputsOf(number), ", ")}
	}
	return tensor, nil
}

// Output is a copy of an output's elements.
func Output[T Element](b *Batch, name string) ([]T, error) {
	tensor, err := b.Output(name)
	if err != nil {
		return nil, err
	}
	defer tensor.Close()
	return Values[T](tensor)
}
