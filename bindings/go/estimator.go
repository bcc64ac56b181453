// SPDX-License-Identifier: Apache-2.0

package tutti

import (
	"context"
	"sync"

	"tutti.org/tutti/internal/raw"
)

// ModelFunc writes a model for one mode. It is called once per mode, on the goroutine whose call needs it. The
// variables of ModeEval and ModePredict must be among those of ModeTrain. What it returns, and a panic in it, comes
// back from that call.
type ModelFunc func(g *Graph, mode Mode) error

// Estimator is a model function and run options, trained on datasets by a strategy. One Train at a time, beside any
// number of Evaluate and predictions.
type Estimator struct {
	object
	names    sync.Mutex // the library lends them until the list changes, and looks when it is asked
	estimate sync.Mutex // the text is lent until the next call
}

func (e *Estimator) ref() *handle {
	if e == nil {
		return nil
	}
	return e.handle
}

// EstimatorOptions are what NewEstimator may be told; the zero value means the defaults.
type EstimatorOptions struct {
	Context  *Context  // nil = the default one
	Strategy *Strategy // nil = the context's default one: Auto, unless the context is a strategy's
	RunOptions
}

// NewEstimator makes an estimator; nil options are the defaults.
func NewEstimator(model ModelFunc, options *EstimatorOptions) (*Estimator, error) {
	if model == nil {
		return nil, invalid("the model function is nil")
	}
	o := given(options)
	var use uses
	defer use.leave()
	owner, strategy := use.of(o.Context.ref()), use.of(o.Strategy.ref())
	if use.err != nil {
		return nil, use.err
	}
	run, err := newOptions(o.RunOptions)
	if err != nil {
		return nil, err
	}
	defer raw.Options_unref(run)
	defer reap()
	var out, failure uintptr
	if code := raw.Estimator_create(owner, newToken(model), strategy, run, &out, &failure); code != 0 {
		return nil, fromC(code, failure)
	}
	return &Estimator{object: object{newHandle("Estimator", out, raw.Estimator_unref)}}, nil
}

// training is what the calls that train have in common: handles, options, hooks and a token.
type training struct {
	uses
	call                               *call
	estimator, dataset, options, hooks uintptr
}

func (t *training) prepare(ctx context.Context, e *Estimator, dataset *Dataset, options *TrainOptions,
	hooks []Hook) error {
	t.estimator, t.dataset = t.of(e.ref()), t.of(dataset.ref())
	if t.err != nil {
		return t.err
	}
	var err error
	o := given(options)
	if t.options, err = newOptions(o); err != nil {
		return err
	}
	if t.hooks, err = newHooks(hooks); err != nil {
		return err
	}
	t.call, err = begin(ctx, o.Stop, nil)
	return err
}

func (t *training) done() {
	if t.call != nil {
		t.call.end()
	}
	raw.Hooks_unref(t.hooks)
	raw.Options_unref(t.options)
	t.leave()
	reap()
}

// Train trains until the options' limit, or until the input ends. It goes on from the newest checkpoint in the model
// directory, in the middle of an epoch if need be.
func (e *Estimator) Train(
	ctx context.Context, dataset *Dataset, options *TrainOptions, hooks ...Hook,
) (*Result, error) {
	var t training
	defer t.done()
	if err := t.prepare(ctx, e, dataset, options, hooks); err != nil {
		return nil, err
	}
	var out, failure uintptr
	code := raw.Estimator_train(t.estimator, t.dataset, t.options, t.hooks, t.call.token, &out, &failure)
	return takeResult(out), t.call.result(code, failure)
}

// InputContext is what a function that makes a dataset gets.
type InputContext struct {
	Params                              string // the run option Params
	InputPipelineID, InputPipelineCount int64  // which input this process reads, for Pipeline.Shard; see Strategy
}

// InputFunction makes the dataset of one call, which is closed after it.
type InputFunction func(input InputContext) (*Dataset, error)

func (e *Estimator) makeInput(mode Mode, input InputFunction) (*Dataset, error) {
	var use uses
	defer use.leave()
	number := use.of(e.ref())
	if use.err != nil {
		return nil, use.err
	}
	dataset, err := input(InputContext{
		Params:             raw.Estimator_get_params(number),
		InputPipelineID:    raw.Estimator_get_input_pipeline_id(number, int32(mode)),
		InputPipelineCount: raw.Estimator_get_input_pipeline_count(number, int32(mode)),
	})
	if err == nil && dataset == nil {
		err = invalid("the input function made no dataset")
	}
	return dataset, err
}

// TrainFunc is Train with the dataset that a function makes; it is called once.
func (e *Estimator) TrainFunc(
	ctx context.Context, input InputFunction, options *TrainOptions, hooks ...Hook,
) (*Result, error) {
	dataset, err := e.makeInput(ModeTrain, input)
	if err != nil {
		return nil, err
	}
	defer dataset.Close()
	return e.Train(ctx, dataset, options, hooks...)
}

// EvaluateFunc is Evaluate with the dataset that a function makes; it is called once.
func (e *Estimator) EvaluateFunc(ctx context.Context, input InputFunction, steps int64) (*Result, error) {
	dataset, err := e.makeInput(ModeEval, input)
	if err != nil {
		return nil, err
	}
	defer dataset.Close()
	return e.Evaluate(ctx, dataset, steps)
}

// SetEvaluationStrategy lets evaluations, those of TrainAndEvaluate too, use other devices from the next one on; nil =
// the strategy that trains.
func (e *Estimator) SetEvaluationStrategy(strategy *Strategy) error {
	var use uses
	defer use.leave()
	number, devices := use.of(e.ref()), use.of(strategy.ref())
	if use.err != nil {
		return use.err
	}
	var failure uintptr
	return fromC(raw.Estimator_set_evaluation_strategy(number, devices, &failure), failure)
}

// Initialize makes the variables before the first training, without a step: initial values, or those of the newest
// checkpoint. The dataset says what the model gets. Unless it is "", `weights` is a checkpoint, a directory of
// checkpoints or a file in the safetensors format, whose tensors become the variables of those names.
func (e *Estimator) Initialize(ctx context.Context, dataset *Dataset, weights string) error {
	var use uses
	defer use.leave()
	estimator, data := use.of(e.ref()), use.of(dataset.ref())
	if use.err != nil {
		return use.err
	}
	c, err := begin(ctx, nil, nil)
	if err != nil {
		return err
	}
	defer c.end()
	var failure uintptr
	code := raw.Estimator_initialize(estimator, data, weights, c.token, &failure)
	return c.result(code, failure)
}

// Evaluate gives loss and metrics over the dataset, or over its first `steps` batches (0 = all).
func (e *Estimator) Evaluate(ctx context.Context, dataset *Dataset, steps int64) (*Result, error) {
	var use uses
	defer use.leave()
	estimator, data := use.of(e.ref()), use.of(dataset.ref())
	if use.err != nil {
		return nil, use.err
	}
	c, err := begin(ctx, nil, nil)
	if err != nil {
		return nil, err
	}
	defer c.end()
	var out, failure uintptr
	code := raw.Estimator_evaluate(estimator, data, steps, c.token, &out, &failure)
	return takeResult(out), c.result(code, failure)
}

// TrainAndEvaluate trains, and evaluates after every so many steps and at the end; the result is of the last
// evaluation.
func (e *Estimator) TrainAndEvaluate(ctx context.Context, dataset, evaluation *Dataset, everySteps int64,
	options *TrainOptions, hooks ...Hook) (*Result, error) {
	var t training
	defer t.done()
	test := t.of(evaluation.ref())
	if err := t.prepare(ctx, e, dataset, options, hooks); err != nil {
		return nil, err
	}
	var out, failure uintptr
	code := raw.Estimator_train_and_evaluate(t.estimator, t.dataset, test, everySteps, t.options, t.hooks, t.call.token,
		&out, &failure)
	return takeResult(out), t.call.result(code, failure)
}

// Save writes a checkpoint of the present weights into `directory`/checkpoint-<step>.
func (e *Estimator) Save(ctx context.Context, directory string) error {
	var use uses
	defer use.leave()
	number := use.of(e.ref())
	if use.err != nil {
		return use.err
	}
	c, err := begin(ctx, nil, nil)
	if err != nil {
		return err
	}
	defer c.end()
	var failure uintptr
	code := raw.Estimator_save(number, directory, c.token, &failure)
	return c.result(code, failure)
}

// GlobalStep is the number of completed steps; -1 when the estimator is closed.
func (e *Estimator) GlobalStep() int64 {
	var use uses
	defer use.leave()
	return raw.Estimator_get_global_step(use.of(e.ref()))
}

// VariableNames are weights, running statistics and, as "<variable>/<slot>", the slots of the optimizer.
func (e *Estimator) VariableNames() []string {
	return e.namesOf(raw.Estimator_get_variable_count, raw.Estimator_get_variable_name)
}

// TrainableNames are the variables that the optimizer changes, in the order in which the model makes them: no running
// statistics, and nothing that is frozen. They are known once the model was built for training, by Train, OpenSession
// or Initialize; nil before.
func (e *Estimator) TrainableNames() []string {
	return e.namesOf(raw.Estimator_get_trainable_count, raw.Estimator_get_trainable_name)
}

func (e *Estimator) namesOf(count func(uintptr) int64, name func(uintptr, int64) string) []string {
	var use uses
	defer use.leave()
	number := use.of(e.ref())
	if number == 0 {
		return nil
	}
	e.names.Lock()
	defer e.names.Unlock()
	var names []string
	for i := int64(0); i < count(number); i++ {
		names = append(names, name(number, i))
	}
	return names
}

// ReadVariable is a copy of a variable's value.
func (e *Estimator) ReadVariable(name string) (*Tensor, error) {
	return e.read(name, raw.Estimator_read_variable)
}

// ReadGradient is a copy of the last step's gradient for a variable; it needs the option KeepGradients.
func (e *Estimator) ReadGradient(variable string) (*Tensor, error) {
	return e.read(variable, raw.Estimator_read_gradient)
}

// ReadOutput is a copy of what the model set as output `name` in ModeTrain, for each row of the last step: the rows of
// all replicas of this process, in the order of the batch, computed with the weights before the step. It needs the
// option KeepOutputs.
func (e *Estimator) ReadOutput(name string) (*Tensor, error) {
	return e.read(name, raw.Estimator_read_output)
}

func (e *Estimator) read(name string, get func(uintptr, string, *uintptr, *uintptr) int32) (*Tensor, error) {
	var use uses
	defer use.leave()
	number := use.of(e.ref())
	if use.err != nil {
		return nil, use.err
	}
	var out, failure uintptr
	if code := get(number, name, &out, &failure); code != 0 {
		return nil, fromC(code, failure)
	}
	return wrapTensor(out), nil
}

// WriteVariable sets a variable; same type and shape. Training goes on with it from the next step.
func (e *Estimator) WriteVariable(name string, value *Tensor) error {
	var use uses
	defer use.leave()
	number, tensor := use.of(e.ref()), use.of(value.ref())
	if use.err != nil {
		return use.err
	}
	var failure uintptr
	code := raw.Estimator_write_variable(number, name, tensor, &failure)
	return fromC(code, failure)
}

// EstimateMemory tells what training on batches of batchSize rows (0 = the dataset's) will take of the devices' memory,
// and whether it fits. Programs are compiled for that, but nothing is trained.
func (e *Estimator) EstimateMemory(dataset *Dataset, batchSize int64) (*MemoryEstimate, error) {
	var use uses
	defer use.leave()
	number, data := use.of(e.ref()), use.of(dataset.ref())
	if use.err != nil {
		return nil, use.err
	}
	e.estimate.Lock()
	defer e.estimate.Unlock()
	var failure uintptr
	if text := raw.Estimator_estimate_memory(number, data, batchSize, &failure); failure == 0 {
		return decode[MemoryEstimate](text)
	}
	return nil, fromC(raw.Error_get_code(failure), failure)
}

// FindBatchSize is the largest batch size from 1 to most that fits by that estimate.
func (e *Estimator) FindBatchSize(dataset *Dataset, most int64) (int64, error) {
	var use uses
	defer use.leave()
	number, data := use.of(e.ref()), use.of(dataset.ref())
	if use.err != nil {
		return 0, use.err
	}
	var failure uintptr
	if rows := raw.Estimator_find_batch_size(number, data, most, &failure); failure == 0 {
		return rows, nil
	}
	return 0, fromC(raw.Error_get_code(failure), failure)
}

// SetTrainable freezes or frees the variables whose name matches a pattern with * and ?. Before the first training.
func (e *Estimator) SetTrainable(pattern string, trainable bool) error {
	var use uses
	defer use.leave()
	number := use.of(e.ref())
	if use.err != nil {
		return use.err
	}
	var failure uintptr
	code := raw.Estimator_set_trainable(number, pattern, trainable, &failure)
	return fromC(code, failure)
}
