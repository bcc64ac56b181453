// SPDX-License-Identifier: Apache-2.0
using System.Collections.Generic;

namespace Tutti
{
    /// <summary>How busy a device was while a profile ran.</summary>
    public sealed class DeviceProfile
    {
        internal DeviceProfile(JsonValue json)
        {
            Device = json.Get("device").Text;
            Utilisation = json.Get("utilisation").Number;
            Idle = json.Get("idle").Number;
            Kernels = json.Get("kernels").Integer;
        }

        /// <summary>The name of the device.</summary>
        public string Device { get; private set; }

        /// <summary>The share of the time in which it computed.</summary>
        public double Utilisation { get; private set; }

        /// <summary>The share in which it did not.</summary>
        public double Idle { get; private set; }

        /// <summary>How many kernels it ran.</summary>
        public long Kernels { get; private set; }

        /// <summary>The device and its share, on one line.</summary>
        public override string ToString()
        {
            return Device + ": busy " + Report.Percent(Utilisation) + ", " + Kernels + " kernels";
        }
    }

    /// <summary>What the steps of a replica waited for while a profile ran: means over steps.</summary>
    public sealed class ReplicaProfile
    {
        internal ReplicaProfile(JsonValue json)
        {
            Replica = json.Get("replica").Text;
            Steps = json.Get("steps").Integer;
            StepMilliseconds = json.Get("step_ms").Number;
            ComputeMilliseconds = json.Get("compute_ms").Number;
            InputMilliseconds = json.Get("input_ms").Number;
            CommunicationMilliseconds = json.Get("communication_ms").Number;
            HostMilliseconds = json.Get("host_ms").Number;
        }

        /// <summary>Its name.</summary>
        public string Replica { get; private set; }

        /// <summary>How many steps it did.</summary>
        public long Steps { get; private set; }

        /// <summary>A step.</summary>
        public double StepMilliseconds { get; private set; }

        /// <summary>Computing.</summary>
        public double ComputeMilliseconds { get; private set; }

        /// <summary>Waiting for input.</summary>
        public double InputMilliseconds { get; private set; }

        /// <summary>Waiting for communication.</summary>
        public double CommunicationMilliseconds { get; private set; }

        /// <summary>What the host did.</summary>
        public double HostMilliseconds { get; private set; }

        /// <summary>The replica and its step, on one line.</summary>
        public override string ToString()
        {
            return Replica + ": " + Steps + " steps of " + Report.Shown(StepMilliseconds) + " ms";
        }
    }

    /// <summary>What a layer cost while a profile ran: means over steps.</summary>
    public sealed class LayerProfile
    {
        internal LayerProfile(JsonValue json)
        {
            Layer = json.Get("layer").Text;
            ForwardMilliseconds = json.Get("forward_ms").Number;
            BackwardMilliseconds = json.Get("backward_ms").Number;
            UpdateMilliseconds = json.Get("update_ms").Number;
            Share = json.Get("share").Number;
        }

        /// <summary>Its name.</summary>
        public string Layer { get; private set; }

        /// <summary>Computing its results.</summary>
        public double ForwardMilliseconds { get; private set; }

        /// <summary>Computing its gradients.</summary>
        public double BackwardMilliseconds { get; private set; }

        /// <summary>Updating its variables.</summary>
        public double UpdateMilliseconds { get; private set; }

        /// <summary>Its share of what all layers cost.</summary>
        public double Share { get; private set; }

        /// <summary>The layer and its share, on one line.</summary>
        public override string ToString()
        {
            return Layer + ": " + Report.Percent(Share);
        }
    }

    /// <summary>What a profile has recorded, from the first to the last step.</summary>
    public sealed class ProfileReport : Report
    {
        internal ProfileReport(string text) : base(text)
        {
            JsonValue json = JsonValue.Parse(text, "the profile");
            Seconds = json.Get("seconds").Number;
            Steps = json.Get("steps").Integer;
            Devices = json.Get("devices").List(one => new DeviceProfile(one));
            Replicas = json.Get("replicas").List(one => new ReplicaProfile(one));
            Layers = json.Get("layers").List(one => new LayerProfile(one));
            Forgotten = json.Get("forgotten").Integer;
            Text = json.Get("text").Text;
        }

        /// <summary>How long it ran.</summary>
        public double Seconds { get; private set; }

        /// <summary>Steps of each replica.</summary>
        public long Steps { get; private set; }

        /// <summary>The devices that computed.</summary>
        public IReadOnlyList<DeviceProfile> Devices { get; private set; }

        /// <summary>The replicas.</summary>
        public IReadOnlyList<ReplicaProfile> Replicas { get; private set; }

        /// <summary>The layers, the dearest first.</summary>
        public IReadOnlyList<LayerProfile> Layers { get; private set; }

        /// <summary>Events that did not fit into memory.</summary>
        public long Forgotten { get; private set; }

        /// <summary>All of it as a table for people.</summary>
        public string Text { get; private set; }

        /// <summary>Its length, on one line.</summary>
        public override string ToString()
        {
            return Steps + " steps in " + Shown(Seconds) + " s";
        }
    }

    /// <summary>How an op of a plan is computed.</summary>
    public sealed class PlannedKernel
    {
        internal PlannedKernel(JsonValue json)
        {
            Node = json.Get("node", one => one.Text, "");
            Op = json.Get("op", one => one.Text, "");
            Kernel = json.Get("kernel", one => one.Text, "");
            Layout = json.Get("layout", one => one.Text, "");
            Bytes = json.Get("bytes", one => one.Integer);
            Seconds = json.Get("seconds", one => (double?)one.Number);
        }

        /// <summary>The node of the graph.</summary>
        public string Node { get; private set; }

        /// <summary>The op.</summary>
        public string Op { get; private set; }

        /// <summary>The implementation.</summary>
        public string Kernel { get; private set; }

        /// <summary>How its result lies in memory.</summary>
        public string Layout { get; private set; }

        /// <summary>The bytes of its result.</summary>
        public long Bytes { get; private set; }

        /// <summary>The fastest of the timed runs; null without these.</summary>
        public double? Seconds { get; private set; }

        /// <summary>The node and its kernel, on one line.</summary>
        public override string ToString()
        {
            return Node + ": " + Kernel;
        }
    }

    /// <summary>How a number of rows is computed on a device. Names and layouts may change with any release.</summary>
    public sealed class PredictionPlan : Report
    {
        internal PredictionPlan(string text) : base(text)
        {
            JsonValue json = JsonValue.Parse(text, "the plan");
            Step = json.Get("step").Integer;
            Rows = json.Get("rows").Integer;
            Device = json.Get("device").Text;
            ComputedRows = json.Get("computed_rows").Integer;
            WorkspaceBytes = json.Get("workspace_bytes").Integer;
            Seconds = json.Get("seconds", one => (double?)one.Number);
            Kernels = json.Get("kernels").List(one => new PlannedKernel(one));
        }

        /// <summary>The training step of the weights.</summary>
        public long Step { get; private set; }

        /// <summary>The rows asked about.</summary>
        public long Rows { get; private set; }

        /// <summary>The name of the device.</summary>
        public string Device { get; private set; }

        /// <summary>What the rows are rounded up to.</summary>
        public long ComputedRows { get; private set; }

        /// <summary>The bytes of what lies between input and results.</summary>
        public long WorkspaceBytes { get; private set; }

        /// <summary>The fastest of the timed runs; null without these.</summary>
        public double? Seconds { get; private set; }

        /// <summary>The kernels in the order in which they run.</summary>
        public IReadOnlyList<PlannedKernel> Kernels { get; private set; }

        /// <summary>Rows, kernels and device, on one line.</summary>
        public override string ToString()
        {
            return Rows + " rows by " + Kernels.Count + " kernels on " + Device;
        }
    }
}
