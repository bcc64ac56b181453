// SPDX-License-Identifier: Apache-2.0

package tutti

import (
	"strings"

	"tutti.org/tutti/internal/raw"
)

// ClusterResolver says which processes ("workers") train a model together, and which of them this one is. All sources
// give the same object, which MultiWorkerFromResolver takes.
//
// TPUs are used in four calls, each of which returns an error before the one in front of it was made: TPUCluster says
// which machines the TPUs are attached to, Connect lets the workers meet, Initialize opens the library for TPUs and
// finds their devices, and TPU makes a strategy over them, whose Context has them.
type ClusterResolver struct{ object }

// Cluster is what a ClusterResolver knows of its workers.
type Cluster struct {
	document
	Workers         []string // addresses; "" where the launcher tells only that of worker 0
	Index           int64    // of this worker; 0 for an evaluator
	Task            string   // "worker", "chief" or "evaluator"
	Origin          string   // where it is from, such as "TF_CONFIG" or "metadata"
	AcceleratorType string   `json:"accelerator_type"` // of TPUs, such as "v5litepod-8"; "" = not known
	ChipsPerWorker  int64    `json:"chips_per_worker"` // of TPUs; 0 = not known
}

// String is the workers and where they are from.
func (c *Cluster) String() string { return c.Origin + ": " + strings.Join(c.Workers, ", ") }

func (r *ClusterResolver) ref() *handle {
	if r == nil {
		return nil
	}
	return r.handle
}

func makeResolver(create func(out, failure *uintptr) int32) (*ClusterResolver, error) {
	if mismatch != nil {
		return nil, mismatch
	}
	var out, failure uintptr
	if code := create(&out, &failure); code != 0 {
		return nil, fromC(code, failure)
	}
	return &ClusterResolver{object{newHandle("ClusterResolver", out, raw.Cluster_resolver_unref)}}, nil
}

// ClusterOf is a cluster of the workers with these addresses, "host:port", of which this process is the one at index.
func ClusterOf(index int64, workers ...string) (*ClusterResolver, error) {
	return makeResolver(func(out, failure *uintptr) int32 {
		return raw.Cluster_resolver_create_list(strings.Join(workers, ","), index, out, failure)
	})
}

// TFConfigCluster is the cluster of a TF_CONFIG variable with this text. Errors name the key.
func TFConfigCluster(text string) (*ClusterResolver, error) {
	return makeResolver(func(out, failure *uintptr) int32 {
		return raw.Cluster_resolver_create_tf_config(text, out, failure)
	})
}

// ClusterFromEnvironment is what a launcher has set in the environment: "TF_CONFIG", "torchrun", "mpirun", "Slurm" or
// "GKE"; "" = the first of these that is there.
func ClusterFromEnvironment(launcher string) (*ClusterResolver, error) {
	return makeResolver(func(out, failure *uintptr) int32 {
		return raw.Cluster_resolver_create_from_environment(launcher, out, failure)
	})
}

// TPUCluster is the workers of a TPU: "local" for the chips of this machine, addresses such as "grpc://192.0.2.2:8470",
// or a name, whose workers are in the metadata of its machines; tutti/cluster_resolver.h says what these look like.
// Nothing is requested over the network.
func TPUCluster(tpu, metadata string) (*ClusterResolver, error) {
	return makeResolver(func(out, failure *uintptr) int32 {
		return raw.Cluster_resolver_create_tpu(tpu, metadata, out, failure)
	})
}

// Cluster is what the resolver knows.
func (r *ClusterResolver) Cluster() (*Cluster, error) {
	var use uses
	defer use.leave()
	number := use.of(r.ref())
	if use.err != nil {
		return nil, use.err
	}
	return decode[Cluster](raw.Cluster_resolver_get_json(number))
}

// Connect returns when all workers have called it. Options are those of a strategy of several workers, without Workers
// and Worker; nil = defaults. An error names the worker that does not come. A worker alone opens no connection.
func (r *ClusterResolver) Connect(options *ClusterOptions) error {
	return r.withOptions(given(options), raw.Cluster_resolver_connect)
}

// Initialize opens the library that the option PJRTPlugin names, such as libtpu.so, and finds the devices of this
// worker. Without a TPU, or its library, the error has the code Unavailable and says what there is instead.
func (r *ClusterResolver) Initialize(options *ContextOptions) error {
	return r.withOptions(given(options), raw.Cluster_resolver_initialize)
}

// InitializeFromEnvironment is Initialize with the library that the environment variable TPU_LIBRARY_PATH names, unless
// options name one.
func (r *ClusterResolver) InitializeFromEnvironment(options *ContextOptions) error {
	return r.withOptions(given(options), func(number, options uintptr, failure *uintptr) int32 {
		raw.Options_set_from_environment(options)
		return raw.Cluster_resolver_initialize(number, options, failure)
	})
}

func (r *ClusterResolver) withOptions(options Options,
	call func(number, options uintptr, failure *uintptr) int32) error {
	var use uses
	defer use.leave()
	number := use.of(r.ref())
	if use.err != nil {
		return use.err
	}
	o, err := newOptions(options)
	if err != nil {
		return err
	}
	defer raw.Options_unref(o)
	var failure uintptr
	return fromC(call(number, o, &failure), failure)
}

// Context is the context with the devices of this worker.
func (r *ClusterResolver) Context() (*Context, error) {
	var use uses
	defer use.leave()
	number := use.of(r.ref())
	if use.err != nil {
		return nil, use.err
	}
	context := raw.Cluster_resolver_get_context(number)
	if context == 0 {
		return nil, invalid("the cluster resolver is not initialized")
	}
	raw.Context_ref(context)
	return wrapContext(context), nil
}

// TPU is a strategy over TPUs, or other devices with a PJRT plug-in: mirrored over the devices of this worker, and over
// the workers of a resolver that was connected and initialized.
func TPU(resolver *ClusterResolver) (*Strategy, error) {
	return withResolver(resolver, raw.Strategy_create_tpu)
}

// MultiWorkerFromResolver is MultiWorker with the workers of a resolver. Options without Workers and Worker; nil =
// defaults.
func MultiWorkerFromResolver(context *Context, resolver *ClusterResolver, options *ClusterOptions) (*Strategy, error) {
	return makeMultiWorker(context, options, func(number, options uintptr, out, failure *uintptr) int32 {
		var use uses
		defer use.leave()
		return raw.Strategy_create_multi_worker_from_resolver(number, use.of(resolver.ref()), options, out, failure)
	})
}

func withResolver(resolver *ClusterResolver,
	create func(number uintptr, out, failure *uintptr) int32) (*Strategy, error) {
	var use uses
	defer use.leave()
	number := use.of(resolver.ref())
	if use.err != nil {
		return nil, use.err
	}
	return makeStrategy(nil, func(_ uintptr, out, failure *uintptr) int32 { return create(number, out, failure) })
}
