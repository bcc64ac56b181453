// SPDX-License-Identifier: Apache-2.0

package tutti

import (
	"encoding/json"
	"fmt"
	"time"
)

// InputReport tells what a walk over a dataset has cost, stage by stage, and which stage limits it.
type InputReport struct {
	document
	Elapsed time.Duration `json:"elapsed_ms"` // since the walk began
	Stages  []StageReport // from the last transform to the sources
	Limit   InputLimit    // what should become faster first
	Text    string        // all of it, for people
}

// String is the report for people.
func (r *InputReport) String() string { return r.Text }

// InputLimit says what limits a walk.
type InputLimit struct {
	Stage  string // its name, or "consumer" when the walk waits for who takes the elements
	Reason string // why, in words
}

// StageReport is what one transform or source has cost. A stage whose work another one does in one go with its own is
// not counted, and has a name and a level only.
type StageReport struct {
	Stage     string        // the transform or source: "batch", "map #2 of 3", "flat_map/map"
	Level     int64         // how many stages lie behind it, towards who takes the elements
	IsCounted bool          `json:"is_counted"` // whether the numbers below are there
	Calls     int64         // how often it was asked
	Elements  int64         // how many elements it gave, those that failed included
	Failures  int64         // how many failed
	Bytes     int64         // how much it gave
	Time      time.Duration `json:"time_ms"`     // how long it was waited for, its inputs included
	Busy      time.Duration `json:"busy_ms"`     // its own work; with threads of its own, that of one
	WaitIn    time.Duration `json:"wait_in_ms"`  // how long it waited for its inputs; a feed: for a push
	WaitOut   time.Duration `json:"wait_out_ms"` // how long nobody asked it, or its buffer was full
	Threads   int64         // of its own
	MeanDepth float64       `json:"mean_depth"` // elements that lay ready when one was taken; 0 without a buffer
	Ignored   int64         // elements that IgnoreErrors has left out
	// The first errors that IgnoreErrors has left out.
	IgnoredErrors []string `json:"ignored_errors"`
}

// StepReport tells where the time of training steps went: shares of it from 0 to 1. Of several workers each tells what
// its own replicas do.
type StepReport struct {
	document
	Steps         int64          // that are counted; those that programs were built for are not
	Replicas      int64          // of all workers
	Programs      int64          // built for training until now; more only where a shape is new
	StepTime      time.Duration  `json:"step_seconds"` // of one step
	Compute       float64        // computing
	Input         float64        // waiting for input
	Communication float64        // adding up gradients, and waiting for slower workers
	Imbalance     float64        // waiting for slower replicas
	Efficiency    float64        // their speed over that of as many that wait for nothing; 0 with one replica
	Devices       []DeviceShares // of this process
}

// String is the report on one line.
func (r *StepReport) String() string {
	return fmt.Sprintf("%d steps of %v on %d replicas: compute %.0f %%, input %.0f %%, communication %.0f %%, "+
		"imbalance %.0f %%", r.Steps, r.StepTime, r.Replicas, 100*r.Compute, 100*r.Input, 100*r.Communication,
		100*r.Imbalance)
}

// DeviceShares are shares of the time of training steps on one device.
type DeviceShares struct {
	Device        string  // its name
	Utilisation   float64 // computing
	Idle          float64 // the sum of the three below
	Input         float64 // waiting for input
	Communication float64 // waiting for other devices to exchange gradients
	Imbalance     float64 // waiting for slower devices
}

// MemoryEstimate is what a training will take of the devices' memory, in bytes.
type MemoryEstimate struct {
	document
	BatchSize int64          `json:"batch_size"` // rows of a batch
	Devices   []DeviceMemory // of the strategy
	Total     int64          // on all devices
	Fits      bool           // whether all devices have that much
}

// String is the estimate on one line.
func (m *MemoryEstimate) String() string {
	fits := "which fits"
	if !m.Fits {
		fits = "which does not fit"
	}
	return fmt.Sprintf("%d bytes on %d devices for batches of %d, %s", m.Total, len(m.Devices), m.BatchSize, fits)
}

// DeviceMemory is what a training takes of one device's memory, in bytes.
type DeviceMemory struct {
	Device    string // its name
	Weights   int64  // variables
	Slots     int64  // of the optimizer
	Gradients int64  // where they are stored
	Workspace int64  // what lies between inputs and results
	Input     int64  // batches on their way
	Outputs   int64  // what RunOptions.KeepOutputs keeps
	Total     int64  // the sum
	Memory    string // the name of the memory, which devices may share
	Available int64  // what is free there now
}

// Plan tells how a model computes so many rows on a device. For people and tools: names and layouts may change with any
// release.
type Plan struct {
	document
	Step           int64         // of the weights
	Rows           int64         // that were asked for
	Device         string        // its name
	ComputedRows   int64         `json:"computed_rows"`   // what the rows are rounded up to
	WorkspaceBytes int64         `json:"workspace_bytes"` // for what lies between inputs and results
	Time           time.Duration `json:"seconds"`         // of the fastest run; 0 when none was timed
	Kernels        []PlanKernel  // in the order in which they run
	Others         []Plan        // on one device of each other kind
}

// String is a line for the device and one for each kernel.
func (p *Plan) String() string {
	text := fmt.Sprintf("%d rows on %s, %d computed, workspace %d bytes", p.Rows, p.Device, p.ComputedRows,
		p.WorkspaceBytes)
	if p.Time > 0 {
		text += fmt.Sprintf(", %v", p.Time)
	}
	return text + "\n" + onePerLine(p.Kernels)
}

// PlanKernel is one kernel of a plan.
type PlanKernel struct {
	Node   string        // what of the model it computes
	Op     string        // the op of that node
	Kernel string        // the implementation
	Layout string        // how its result lies in memory
	Bytes  int64         // of its result
	Time   time.Duration `json:"seconds"` // of the fastest run; 0 when none was timed
}

// String is the kernel on one line.
func (k PlanKernel) String() string {
	if k.Time > 0 {
		return fmt.Sprintf("%s: %s by %s, %d bytes, %v", k.Node, k.Op, k.Kernel, k.Bytes, k.Time)
	}
	return fmt.Sprintf("%s: %s by %s, %d bytes", k.Node, k.Op, k.Kernel, k.Bytes)
}

// Profile tells how busy devices were, what steps waited for and what layers cost, from the first to the last step that
// was recorded.
type Profile struct {
	document
	Time      time.Duration    `json:"seconds"` // from the first step to the last
	Steps     int64            // that were recorded
	Devices   []DeviceProfile  // that did anything
	Replicas  []ReplicaProfile // that made steps
	Layers    []LayerProfile   // the dearest first
	Forgotten int64            // events that did not fit into memory
	Text      string           // all of it as a table, for people
}

// String is the profile for people.
func (p *Profile) String() string { return p.Text }

// DeviceProfile is how busy a device was; shares are from 0 to 1.
type DeviceProfile struct {
	Device      string  // its name
	Utilisation float64 // share of the time in which it computed or copied
	Idle        float64 // the rest
	Kernels     int64   // that it ran
}

// ReplicaProfile is where the time of a replica's steps went: means over the steps.
type ReplicaProfile struct {
	Replica       string        // its name
	Steps         int64         // that it made
	Step          time.Duration `json:"step_ms"`          // a whole step
	Compute       time.Duration `json:"compute_ms"`       // its device computed
	Input         time.Duration `json:"input_ms"`         // it waited for its batch
	Communication time.Duration `json:"communication_ms"` // it waited for other replicas
	Host          time.Duration `json:"host_ms"`          // the rest
}

// LayerProfile is what a layer took of a step.
type LayerProfile struct {
	Layer    string        // its scope
	Forward  time.Duration `json:"forward_ms"`  // its results
	Backward time.Duration `json:"backward_ms"` // its gradients
	Update   time.Duration `json:"update_ms"`   // of its variables
	Share    float64       // of all layers, from 0 to 1
}

// Device describes a device of a context.
type Device struct {
	document
	Name        string // such as "cpu:0", as strategies take it
	Backend     string // "cpu", "cuda", ...
	Kind        string // what the backend calls its devices
	MemoryBytes int64  `json:"memory_bytes"` // 0 = not limited
	Description string // for people
	// Devices whose memory it reads without the host's help; nil where all share the host's.
	Reaches []string
	Links   map[string]DeviceLink // how each of these, where it is another GPU, is connected
	Memory  string                // the name of its memory; devices with equal ones share it
	PCI     string                // its address on the bus; "" = not known
	// The node of the host's memory that is nearest; -1 = not known.
	NUMANode int64 `json:"numa_node"`
	// What its backend makes use of: by name a version, or "is missing: " and why.
	Libraries map[string]string
}

// String is the name and the description.
func (d *Device) String() string { return d.Name + ": " + d.Description }

// UnmarshalJSON reads what the fields tell.
func (d *Device) UnmarshalJSON(data []byte) error {
	type plain Device
	read := plain{NUMANode: -1}
	err := json.Unmarshal(data, &read)
	*d = Device(read)
	return err
}

// DeviceLink is a connection between two GPUs.
type DeviceLink struct {
	Rank    int64 // 0 for the fastest kind of connection that there is in the machine, more for slower ones
	Atomics bool  // whether atomic operations work across it
}

// Build describes how the library was built.
type Build struct {
	document
	Version  string   // such as "0.1.0"
	ABI      string   // of the C interface, such as "1.0"
	BuildID  string   `json:"build_id"` // of the sources
	Compiler string   // and its version
	Backends []string // that are linked in
}

// String is the version and the backends.
func (b *Build) String() string { return fmt.Sprintf("tutti %s with %v", b.Version, b.Backends) }

// OptionKey describes one option of the library, for programs that offer all of them.
type OptionKey struct {
	document
	Key           string   // what ResolvedOptions calls it
	Type          string   // "bool", "i64", "f64" or "string"
	Default       any      // a number is a json.Number; nil where it depends on others
	Minimum       *float64 // nil = none
	Maximum       *float64 // nil = none
	Values        []string // that it may have; nil = any
	Documentation string   // in the words of the C interface
	Secret        bool     // whether ResolvedOptions hides it
	Environment   string   // the variable that it may be read from, such as "TPU_LIBRARY_PATH"; "" = none
}

// String is the key and its documentation.
func (k *OptionKey) String() string { return k.Key + ": " + k.Documentation }

// OptionValue is the value of an option that is in force.
type OptionValue struct {
	Value  any    // a number is a json.Number; "(hidden)" for a secret that was set
	Origin string // "set", "environment" or "default"
}
