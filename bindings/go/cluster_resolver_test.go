// SPDX-License-Identifier: Apache-2.0

package tutti

import (
	"errors"
	"reflect"
	"testing"
)

func resolved(t *testing.T, resolver *ClusterResolver, err error) *ClusterResolver {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	closed(t, resolver)
	return resolver
}

func TestClusterResolverSources(t *testing.T) {
	live(t)
	list, err := ClusterOf(1, "a:2222", "b:2223")
	if got := must[*Cluster](t)(resolved(t, list, err).Cluster()); got.Index != 1 || got.Origin != "explicit" ||
		!reflect.DeepEqual(got.Workers, []string{"a:2222", "b:2223"}) {
		t.Errorf("%v, worker %d", got, got.Index)
	}
	config, err := TFConfigCluster(`{"cluster": {"worker": ["c:1"]}, "task": {"type": "worker", "index": 0}}`)
	resolved(t, config, err)
	t.Setenv("TPU_WORKER_HOSTNAMES", "d,e")
	t.Setenv("TPU_WORKER_ID", "1")
	gke, err := ClusterFromEnvironment("")
	if got := must[*Cluster](t)(resolved(t, gke, err).Cluster()); got.Index != 1 ||
		got.String() != "GKE: d:8482, e:8482" {
		t.Errorf("%v, worker %d", got, got.Index)
	}
	if _, err := ClusterFromEnvironment("Slurm"); !errors.Is(err, NotFound) {
		t.Error(err)
	}
	tpu, err := TPUCluster("mine", "ACCELERATOR_TYPE: 'v5litepod-4'\nCHIPS_PER_HOST_BOUNDS: '2,2,1'")
	if got := must[*Cluster](t)(resolved(t, tpu, err).Cluster()); got.AcceleratorType != "v5litepod-4" ||
		got.ChipsPerWorker != 4 {
		t.Errorf("%v: %d chips", got, got.ChipsPerWorker)
	}
	if _, err := TPUCluster("mine", ""); !errors.Is(err, InvalidArgument) || !contains(err, "is a name") {
		t.Error(err)
	}
}

// Without a TPU the calls say what to do first, and what there is instead.
func TestTPUIsNotThere(t *testing.T) {
	live(t)
	local, err := TPUCluster("local", "")
	resolver := resolved(t, local, err)
	if _, err := TPU(resolver); !errors.Is(err, FailedPrecondition) || !contains(err, "connect first") {
		t.Error(err)
	}
	if err := resolver.Connect(nil); err != nil {
		t.Fatal(err)
	}
	if _, err := resolver.Context(); !errors.Is(err, InvalidArgument) {
		t.Error(err)
	}
	if err := resolver.Initialize(nil); !errors.Is(err, Unavailable) || !contains(err, "the default context has") {
		t.Error(err)
	}
	t.Setenv("TPU_LIBRARY_PATH", "/nonexistent/libtpu.so")
	if err := resolver.InitializeFromEnvironment(nil); err == nil || contains(err, "no library for TPUs is named") {
		t.Error(err)
	}
	if _, err := TPU(resolver); !errors.Is(err, FailedPrecondition) || !contains(err, "initialize first") {
		t.Error(err)
	}
	context := must[*Context](t)(NewContext(&ContextOptions{LogicalDevices: 2, Backend: "reference"}))
	closed(t, context)
	workers := must[*Strategy](t)(MultiWorkerFromResolver(context, resolver, nil))
	closed(t, workers)
	if workers.ReplicaCount() != 2 || workers.WorkerCount() != 1 {
		t.Error(workers.ReplicaCount(), workers.WorkerCount())
	}
}
