// SPDX-License-Identifier: Apache-2.0

package tutti

import "tutti.org/tutti/internal/raw"

// Mode is what a model is built for.
type Mode int32

// The modes.
const (
	ModeTrain   Mode = raw.MODE_TRAIN
	ModeEval    Mode = raw.MODE_EVAL
	ModePredict Mode = raw.MODE_PREDICT
)

var modeNames = map[Mode]string{ModeTrain: "train", ModeEval: "eval", ModePredict: "predict"}

// String is the mode's name, such as "train".
func (m Mode) String() string { return nameOf(modeNames, "Mode", m) }

// Value is an output of an op in one graph. The zero Value is none: an optional input left out.
type Value struct{ id int64 }

// IsValid tells whether the value is an output of an op: it is neither none nor what a call that failed has given.
func (v Value) IsValid() bool { return v.id > 0 }

// DimBatch, in a shape, is the number of rows of the batch.
const DimBatch int64 = -1 << 63

// Graph is where a model function writes the model, for the global batch: how many replicas share it is not its
// business. It is valid during the function, on its goroutine. A call that cannot work gives an invalid value, which
// later calls pass through; the function need not look, for its caller reports the first error.
type Graph struct{ handle uintptr }

// Feature is a component of the dataset, with the batch as first dimension.
func (g *Graph) Feature(name string) Value { return Value{raw.Graph_get_feature(g.handle, name)} }

// Label is a label of the dataset.
func (g *Graph) Label(name string) Value { return Value{raw.Graph_get_label(g.handle, name)} }

// SampleWeight is a component of weights, one per example; the zero Value when the dataset has none of the name, and
// when predicting.
func (g *Graph) SampleWeight(name string) Value {
	return Value{raw.Graph_get_sample_weight(g.handle, name)}
}

// Params is the run option Params of the estimator whose model this is.
func (g *Graph) Params() string { return raw.Graph_get_params(g.handle) }

// Mode is what the model is built for.
func (g *Graph) Mode() Mode { return Mode(raw.Graph_get_mode(g.handle)) }

// SetOutput names a prediction: what predict gives for each row.
func (g *Graph) SetOutput(name string, value Value) {
	raw.Graph_set_output(g.handle, name, value.id)
}

// SetLoss says which scalar to make small.
func (g *Graph) SetLoss(loss Value) { raw.Graph_set_loss(g.handle, loss.id) }

// NameClasses names the classes of a metric that is a tensor and was added before: its elements become metrics, too. Of
// shape [classes] they are called "recall/cat" and so on, of [classes, classes] "confusion/cat/dog" for the row cat and
// the column dog.
func (g *Graph) NameClasses(metric string, classes ...string) {
	raw.Graph_name_classes(g.handle, metric, joined(classes), int64(len(classes)))
}

// AddMetric names a scalar that train and evaluate report, exact over all examples.
func (g *Graph) AddMetric(name string, value Value) {
	raw.Graph_add_metric(g.handle, name, value.id)
}

// SummaryScalar shows a number in TensorBoard, at the steps of RunOptions.SaveSummarySteps and for each evaluation.
// Names of summaries may have "/" between groups, and differ from those of metrics. In mode Predict there are no
// summaries.
func (g *Graph) SummaryScalar(name string, value Value) { raw.Summary_scalar(g.handle, name, value.id) }

// SummaryHistogram shows how the elements of a value are distributed, over all rows of the batch or evaluation.
func (g *Graph) SummaryHistogram(name string, value Value) {
	raw.Summary_histogram(g.handle, name, value.id)
}

// SummaryImage shows the first images, most of them (0 = 3), of a value [images, height, width, channels] of UInt8, or
// of floating point numbers from 0 to 1.
func (g *Graph) SummaryImage(name string, images Value, most int64) {
	raw.Summary_image(g.handle, name, images.id, most)
}

// SummaryText shows a text in Markdown.
func (g *Graph) SummaryText(name, text string) { raw.Summary_text(g.handle, name, text) }

// SetGradientClipNorm limits the global norm of all gradients before the update.
func (g *Graph) SetGradientClipNorm(norm float64) { raw.Graph_set_gradient_clip_norm(g.handle, norm) }

// Scope calls everything that the function adds "<name>/...".
func (g *Graph) Scope(name string, build func()) {
	raw.Graph_push_scope(g.handle, name)
	defer raw.Graph_pop_scope(g.handle)
	build()
}

// Constant is a scalar constant.
func (g *Graph) Constant(dtype DType, value float64) Value {
	return Value{raw.Graph_constant(g.handle, int32(dtype), value)}
}

// ConstantTensor is a constant with the tensor's contents; invalid when the tensor is closed.
func (g *Graph) ConstantTensor(tensor *Tensor) Value {
	var use uses
	defer use.leave()
	return Value{raw.Graph_constant_tensor(g.handle, use.of(tensor.ref()))}
}

// HostScalar is a scalar that Session.SetScalar changes while training.
func (g *Graph) HostScalar(name string, initial float64) Value {
	return Value{raw.Graph_host_scalar(g.handle, name, initial)}
}

// VariableOptions are what Variable may be told; the zero value means the defaults.
type VariableOptions struct {
	// A name, or a name with arguments: zeros, ones, constant(value), random_normal(stddev, mean),
	// truncated_normal(stddev, mean), random_uniform(high, low), orthogonal(gain), identity(gain),
	// variance_scaling(scale, mode, distribution) and its special cases glorot_uniform, glorot_normal, he_uniform,
	// he_normal, lecun_uniform and lecun_normal. Default: zeros.
	Initializer string
	// The constant, the standard deviation, the bound or the gain of a name without arguments.
	Parameter float64
	// The optimizer leaves it as it is.
	Frozen bool
}

// Variable is a variable of the model; its name is put behind the scope, and reusing one is an error.
func (g *Graph) Variable(name string, dtype DType, dims []int64, options *VariableOptions) Value {
	o := given(options)
	if o.Initializer == "" {
		o.Initializer = "zeros"
	}
	return Value{raw.Graph_variable(g.handle, name, int32(dtype), dims, o.Initializer, o.Parameter, !o.Frozen)}
}

// SetInitialValue says which values a variable made before begins with, in place of its initializer: those of the
// tensor, which has its dtype and shape. The name is the full one, with scopes, so that it may be one of a layer, such
// as dense/kernel.
func (g *Graph) SetInitialValue(variable string, value *Tensor) {
	var use uses
	defer use.leave()
	raw.Graph_set_initial_value(g.handle, variable, use.of(value.ref()))
}

// SavedModel says what AddSavedModel takes of a saved model.
type SavedModel struct {
	Input   Value  // stands for one of its features; without, all are features of the graph with their names
	Feature string // which one that is; "" = the only one
	Output  string // "" = the only one, or the only one of floating point
}

// AddSavedModel adds a saved model as a part of this one, such as for training it on: an output as a checkpoint, or the
// newest one of a directory, predicts it. It is computed from features of the graph with the names and shapes of
// the saved ones. Its variables are those of the checkpoint, in the scope model, model_1 and so on, as in
// model/dense/kernel; they begin with the saved weights. Of layers there is what they do in predictions: no dropout,
// and batch normalization by its averages, which stay. The checkpoint is read each time a graph is built, to evaluate
// and to resume, too, so it has to stay.
func (g *Graph) AddSavedModel(path string, part SavedModel) Value {
	return Value{raw.Graph_add_saved_model(g.handle, path, part.Feature, part.Input.id, part.Output)}
}

// Assign says what a variable's next value is, stored when the step is complete.
func (g *Graph) Assign(variable, value Value) {
	raw.Graph_assign(g.handle, variable.id, value.id)
}

// Gradients are d(target)/d(of[i]) for each i; invalid where there is no path.
func (g *Graph) Gradients(target Value, of []Value) []Value {
	if len(of) == 0 {
		return nil
	}
	out := make([]int64, len(of))
	raw.Gradients(g.handle, target.id, numbers(of), &out[0])
	values := make([]Value, len(of))
	for i, id := range out {
		values[i] = Value{id}
	}
	return values
}

// ApplyGradients gives the optimizer these gradients, each shaped like its variable, in place of those of the loss.
func (g *Graph) ApplyGradients(variables, gradients []Value) {
	if len(variables) != len(gradients) || len(variables) == 0 {
		raw.Apply_gradients(g.handle, nil, make([]int64, 1)) // the library reports it, as it does all errors of a graph
		return
	}
	raw.Apply_gradients(g.handle, &numbers(variables)[0], numbers(gradients))
}

func numbers(values []Value) []int64 {
	ids := make([]int64, len(values))
	for i, value := range values {
		ids[i] = value.id
	}
	return ids
}

// DType is a value's type; 0 for an invalid one.
func (g *Graph) DType(value Value) DType { return DType(raw.Graph_get_dtype(g.handle, value.id)) }

// Dims is a value's shape as far as known: -1 stands for the batch or another unknown size. nil for an invalid value.
func (g *Graph) Dims(value Value) []int64 {
	rank := raw.Graph_get_rank(g.handle, value.id)
	if rank < 0 {
		return nil
	}
	dims := make([]int64, rank)
	for axis := range dims {
		dims[axis] = raw.Graph_get_dim(g.handle, value.id, int64(axis))
	}
	return dims
}

// Err is the first error so far.
func (g *Graph) Err() error {
	var failure uintptr
	code := raw.Graph_check(g.handle, &failure)
	return fromC(code, failure)
}

// mostResults is the largest number of results that a function gives.
const mostResults = 1 << 16

// endMany ends a function that gives so many results. A number that no function takes is an error of the graph.
func (g *Graph) endMany(count int64) []Value {
	if count < 1 || count > mostResults {
		count = 1
	}
	more := make([]int64, count-1)
	values := make([]Value, count)
	values[0] = Value{raw.Graph_end(g.handle, more)}
	for i, id := range more {
		values[i+1] = Value{id}
	}
	return values
}
