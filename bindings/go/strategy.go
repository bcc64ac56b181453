// SPDX-License-Identifier: Apache-2.0

package tutti

import (
	"strings"

	"tutti.org/tutti/internal/raw"
)

// Strategy says on which devices a model runs. The model that training gives does not depend on it; only the time does.
type Strategy struct{ object }

func (s *Strategy) ref() *handle {
	if s == nil {
		return nil
	}
	return s.handle
}

func makeStrategy(context *Context, create func(number uintptr, out, failure *uintptr) int32) (*Strategy, error) {
	var use uses
	defer use.leave()
	number := use.of(context.ref())
	if use.err != nil {
		return nil, use.err
	}
	var out, failure uintptr
	if code := create(number, &out, &failure); code != 0 {
		return nil, fromC(code, failure)
	}
	return &Strategy{object{newHandle("Strategy", out, raw.Strategy_unref)}}, nil
}

// OneDevice runs everything on one device, such as "cpu:0"; "" = the context's first.
func OneDevice(context *Context, device string) (*Strategy, error) {
	return makeStrategy(context, func(number uintptr, out, failure *uintptr) int32 {
		return raw.Strategy_create_one_device(number, device, out, failure)
	})
}

// Auto runs on the devices that train fastest, as far as the library can tell: one replica on each GPU or other device
// with memory of its own; without such devices one with one thread on each processor core, or, if a batch has fewer
// than 32 rows for each of them, fewer replicas with more threads each. batchSize is the number of rows of a global
// batch; 0 = not known. The choice is logged with its reason.
func Auto(context *Context, batchSize int64) (*Strategy, error) {
	return makeStrategy(context, func(number uintptr, out, failure *uintptr) int32 {
		return raw.Strategy_create_auto(number, batchSize, out, failure)
	})
}

// Mirrored runs one replica on each device and keeps them equal; without devices, on all of the context. Devices of
// several backends, such as those of a context whose Backend is "cuda,cpu", predict and evaluate together, however much
// their speeds differ; they do not train.
func Mirrored(context *Context, devices ...string) (*Strategy, error) {
	return makeStrategy(context, func(number uintptr, out, failure *uintptr) int32 {
		return raw.Strategy_create_mirrored(number, joined(devices), int64(len(devices)), out, failure)
	})
}

// CentralStorage is Mirrored, but variables, optimizer slots and averages are stored in one place, and updated there
// once per step: on the device storage, such as "cpu:0", or if that is "" on the first of devices. It needs less memory
// on the other devices, and more time; see tutti/strategy.h. Without devices, it runs on every GPU of the context, or
// on every device if it has none.
func CentralStorage(context *Context, storage string, devices ...string) (*Strategy, error) {
	return makeStrategy(context, func(number uintptr, out, failure *uintptr) int32 {
		return raw.Strategy_create_central_storage(number, storage, joined(devices), int64(len(devices)), out, failure)
	})
}

// MultiWorker trains in several processes: P workers with k devices each give the weights that one process gives with
// P * k. Each worker makes the same strategy, with its own number; tutti/strategy.h says what all must have in common.
// Workers may have devices of several backends, and others than each other; these predict and evaluate, and do not
// train.
func MultiWorker(context *Context, options *ClusterOptions) (*Strategy, error) {
	return makeMultiWorker(context, options, raw.Strategy_create_multi_worker)
}

// MultiWorkerFromEnvironment is MultiWorker where the launcher (TF_CONFIG, torchrun, mpirun, srun) says who they are.
func MultiWorkerFromEnvironment(context *Context, options *ClusterOptions) (*Strategy, error) {
	return makeMultiWorker(context, options, raw.Strategy_create_multi_worker_from_environment)
}

func makeMultiWorker(context *Context, options *ClusterOptions,
	create func(number, options uintptr, out, failure *uintptr) int32) (*Strategy, error) {
	o, err := newOptions(given(options))
	if err != nil {
		return nil, err
	}
	defer raw.Options_unref(o)
	return makeStrategy(context, func(number uintptr, out, failure *uintptr) int32 {
		return create(number, o, out, failure)
	})
}

// joined is a list of texts as the C layer takes it: a zero byte ends each. One inside a text becomes SUBSTITUTE, as in
// all text that goes to C.
func joined(texts []string) []byte {
	var bytes []byte
	for _, text := range texts {
		bytes = append(append(bytes, strings.ReplaceAll(text, "\x00", "\x1a")...), 0)
	}
	return bytes
}

// Devices are the devices of the replicas of this process; nil when the strategy is closed.
func (s *Strategy) Devices() []string {
	var use uses
	defer use.leave()
	number := use.of(s.ref())
	var devices []string
	for i := int64(0); i*raw.Strategy_get_worker_count(number) < raw.Strategy_get_replica_count(number); i++ {
		devices = append(devices, raw.Strategy_get_device(number, i))
	}
	return devices
}

// ReplicaCount is the number of replicas of all workers; -1 when the strategy is closed.
func (s *Strategy) ReplicaCount() int64 {
	var use uses
	defer use.leave()
	return raw.Strategy_get_replica_count(use.of(s.ref()))
}

// WorkerCount is the number of processes that train together, 1 unless the strategy is one of several; -1 when it is
// closed.
func (s *Strategy) WorkerCount() int64 {
	var use uses
	defer use.leave()
	return raw.Strategy_get_worker_count(use.of(s.ref()))
}

// WorkerIndex is the number of this process among the workers.
func (s *Strategy) WorkerIndex() int64 {
	var use uses
	defer use.leave()
	return raw.Strategy_get_worker_index(use.of(s.ref()))
}

// InputPipelineCount tells how many inputs the run reads, and InputPipelineID which of them this process reads; -1 when
// the strategy is closed. What a process reads is shared among all of its replicas: Pipeline.Shard by these two, before
// shuffle and batch, gives each element to exactly one process. Sharding by the number of replicas would lose elements.
// 1 and 0 unless workers have input of their own.
func (s *Strategy) InputPipelineCount() int64 {
	var use uses
	defer use.leave()
	return raw.Strategy_get_input_pipeline_count(use.of(s.ref()))
}

// InputPipelineID is the number of the input that this process reads; see InputPipelineCount.
func (s *Strategy) InputPipelineID() int64 {
	var use uses
	defer use.leave()
	return raw.Strategy_get_input_pipeline_id(use.of(s.ref()))
}

// PerReplicaBatchSize is the most rows of a batch of so many rows that a replica gets; -1 when the strategy is closed.
func (s *Strategy) PerReplicaBatchSize(globalBatchSize int64) int64 {
	var use uses
	defer use.leave()
	return raw.Strategy_get_per_replica_batch_size(use.of(s.ref()), globalBatchSize)
}

// Distribute makes a dataset of batches for the replicas of this strategy. Estimators of the strategy take it like
// `dataset`, and do not distribute it twice; its iterators also give the pieces of the replicas. If the strategy
// divides datasets among workers (ClusterOptions.WorkerInput), it is the part of this one.
func (s *Strategy) Distribute(dataset *Dataset) (*Dataset, error) {
	var use uses
	defer use.leave()
	number, whole := use.of(s.ref()), use.of(dataset.ref())
	if use.err != nil {
		return nil, use.err
	}
	var out, failure uintptr
	if code := raw.Strategy_distribute_dataset(number, whole, &out, &failure); code != 0 {
		return nil, fromC(code, failure)
	}
	return wrapDataset(out), nil
}

// Context is a context whose default strategy is this one: what is made from it uses the strategy without being told.
func (s *Strategy) Context() (*Context, error) {
	var use uses
	defer use.leave()
	number := use.of(s.ref())
	if use.err != nil {
		return nil, use.err
	}
	context := raw.Strategy_get_context(number)
	if context == 0 {
		return nil, invalid("not a strategy")
	}
	raw.Context_ref(context)
	return wrapContext(context), nil
}
