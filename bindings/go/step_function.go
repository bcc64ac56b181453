// SPDX-License-Identifier: Apache-2.0

package tutti

import "tutti.org/tutti/internal/raw"

// AddStepFunction adds a function that a session runs by RunStepFunction besides the model's own steps, over the same
// variables, before the first training. In ModeTrain it sets a loss and an optimizer, and changes what it trains; in
// ModeEval and ModePredict it only computes. Its variables must be among those that the model function makes in
// ModeTrain. The input is a dataset with batches like those that it gets, of which nothing is read; nil = that of the
// session. The function is called when a session opens.
func (e *Estimator) AddStepFunction(name string, mode Mode, function ModelFunc, input *Dataset) error {
	if function == nil {
		return invalid("the step function is nil")
	}
	var use uses
	defer use.leave()
	number, of := use.of(e.ref()), uintptr(0)
	if input != nil {
		of = use.of(input.ref())
	}
	if use.err != nil {
		return use.err
	}
	defer reap()
	var failure uintptr
	code := raw.Estimator_add_step_function(number, name, int32(mode), newToken(function), of, &failure)
	return fromC(code, failure)
}

// RunStepFunction runs one step of a step function on a batch: a tensor for each component of its input, with any
// number of rows, which the replicas share. With several workers all of them make this call at the same point. After an
// error the variables are those of the last complete step, and the session goes on.
func (s *Session) RunStepFunction(name string, batch ...*Tensor) (*ReplicaValues, error) {
	var use uses
	defer use.leave()
	number := use.of(s.ref())
	tensors := make([]uintptr, len(batch))
	for i, tensor := range batch {
		tensors[i] = use.of(tensor.ref())
	}
	if use.err != nil {
		return nil, use.err
	}
	var result, values, failure uintptr
	code := raw.Session_run_step_function(number, name, tensors, &result, &values, &failure)
	if code != 0 {
		return nil, s.call.result(code, failure)
	}
	return &ReplicaValues{
		object: object{newHandle("ReplicaValues", values, raw.Replica_values_unref)}, result: takeResult(result),
	}, nil
}

// ReplicaValues is what a step function gave in one step: its loss and metrics, and for each of its outputs the rows of
// each replica's piece of the batch. It does not change with later steps.
type ReplicaValues struct {
	object
	result *Result
}

func (v *ReplicaValues) ref() *handle {
	if v == nil {
		return nil
	}
	return v.handle
}

// Result is the loss, the metrics, and the rows of the step.
func (v *ReplicaValues) Result() *Result { return v.result }

// ReplicaCount is the number of replicas of this process; -1 when the values are closed.
func (v *ReplicaValues) ReplicaCount() int64 {
	var use uses
	defer use.leave()
	return raw.Replica_values_get_replica_count(use.of(v.ref()))
}

// Names are the names of the outputs; nil when the values are closed.
func (v *ReplicaValues) Names() []string {
	var use uses
	defer use.leave()
	number := use.of(v.ref())
	if use.err != nil {
		return nil
	}
	names := make([]string, raw.Replica_values_get_output_count(number))
	for i := range names {
		names[i] = raw.Replica_values_get_output_name(number, int64(i))
	}
	return names
}

// Local is the rows of an output that one replica of this process had, without a copy; nil when it had none, and when
// there is no such output or replica.
func (v *ReplicaValues) Local(output string, replica int64) (*Tensor, error) {
	var use uses
	defer use.leave()
	number := use.of(v.ref())
	if use.err != nil {
		return nil, use.err
	}
	return sharedTensor(raw.Replica_values_get_local(number, output, replica)), nil
}

// AcrossReplicas is no axis: the values of the replicas, which must have equal shapes, are combined element by element.
const AcrossReplicas int64 = -1

// Gather is an output of all replicas of all workers, one behind the other along an axis, in the order of the batch.
// With several workers all of them make this call at the same point, as they do Sum and Mean.
func (v *ReplicaValues) Gather(output string, axis int64) (*Tensor, error) {
	return v.combine(func(number uintptr, out, failure *uintptr) int32 {
		return raw.Replica_values_gather(number, output, axis, out, failure)
	})
}

// Sum is the sum of an output over an axis and over all replicas.
func (v *ReplicaValues) Sum(output string, axis int64) (*Tensor, error) {
	return v.reduce(output, raw.REDUCE_SUM, axis)
}

// Mean is the mean of an output over an axis and over all replicas; over axis 0 every row counts once. That of integers
// is of type Float64.
func (v *ReplicaValues) Mean(output string, axis int64) (*Tensor, error) {
	return v.reduce(output, raw.REDUCE_MEAN, axis)
}

func (v *ReplicaValues) reduce(output string, reduction int32, axis int64) (*Tensor, error) {
	return v.combine(func(number uintptr, out, failure *uintptr) int32 {
		return raw.Replica_values_reduce(number, output, reduction, axis, out, failure)
	})
}

func (v *ReplicaValues) combine(function func(number uintptr, out, failure *uintptr) int32) (*Tensor, error) {
	var use uses
	defer use.leave()
	number := use.of(v.ref())
	if use.err != nil {
		return nil, use.err
	}
	var out, failure uintptr
	if code := function(number, &out, &failure); code != 0 {
		return nil, fromC(code, failure)
	}
	return wrapTensor(out), nil
}
