// SPDX-License-Identifier: Apache-2.0
using System.Collections.Generic;
using System.Globalization;

namespace Tutti
{
    /// <summary>What the library reports of something. Later releases may report more, which <see cref="Json"/> has
    /// then.</summary>
    public abstract class Report
    {
        internal Report(string json)
        {
            Json = json;
        }

        /// <summary>The report as the library gives it: a JSON object.</summary>
        public string Json { get; private set; }

        // In the invariant culture, with at most three decimals.
        internal static string Shown(double number)
        {
            return number.ToString("0.###", CultureInfo.InvariantCulture);
        }

        internal static string Percent(double share)
        {
            return Shown(100 * share) + " %";
        }
    }

    /// <summary>How a device of this process spent the time of training steps: shares of it.</summary>
    public sealed class DeviceShares
    {
        internal DeviceShares(JsonValue json)
        {
            Device = json.Get("device").Text;
            Utilisation = json.Get("utilisation").Number;
            Idle = json.Get("idle").Number;
            Input = json.Get("input").Number;
            Communication = json.Get("communication").Number;
            Imbalance = json.Get("imbalance").Number;
        }

        /// <summary>The name of the device.</summary>
        public string Device { get; private set; }

        /// <summary>Computing.</summary>
        public double Utilisation { get; private set; }

        /// <summary>Waiting: the sum of the three behind it.</summary>
        public double Idle { get; private set; }

        /// <summary>Waiting for input.</summary>
        public double Input { get; private set; }

        /// <summary>Waiting for communication.</summary>
        public double Communication { get; private set; }

        /// <summary>Waiting for slower replicas.</summary>
        public double Imbalance { get; private set; }

        /// <summary>The device and its shares, on one line.</summary>
        public override string ToString()
        {
            return Device + ": busy " + Report.Percent(Utilisation) + ", idle " + Report.Percent(Idle);
        }
    }

    /// <summary>Where the time of training steps went: the time of a step, and shares of it. Steps that programs were
    /// built for do not count. Of several workers each tells what its own replicas do, and waiting for slower workers
    /// is communication.</summary>
    public sealed class StepReport : Report
    {
        private StepReport(string text) : base(text)
        {
            JsonValue json = JsonValue.Parse(text, "the step report");
            Steps = json.Get("steps").Integer;
            ReplicaCount = json.Get("replicas").Integer;
            Programs = json.Get("programs").Integer;
            StepSeconds = json.Get("step_seconds").Number;
            Compute = json.Get("compute").Number;
            Input = json.Get("input").Number;
            Communication = json.Get("communication").Number;
            Imbalance = json.Get("imbalance").Number;
            Efficiency = json.Get("efficiency", one => (double?)one.Number);
            Devices = json.Get("devices").List(one => new DeviceShares(one));
        }

        // null for the empty text, where there is no report.
        internal static StepReport Read(string text)
        {
            return string.IsNullOrEmpty(text) ? null : new StepReport(text);
        }

        /// <summary>The number of steps.</summary>
        public long Steps { get; private set; }

        /// <summary>The number of replicas of all workers.</summary>
        public long ReplicaCount { get; private set; }

        /// <summary>How many programs were built for training until now; more only where a shape is new.</summary>
        public long Programs { get; private set; }

        /// <summary>How long a step took.</summary>
        public double StepSeconds { get; private set; }

        /// <summary>Computing.</summary>
        public double Compute { get; private set; }

        /// <summary>Waiting for input.</summary>
        public double Input { get; private set; }

        /// <summary>Waiting for communication.</summary>
        public double Communication { get; private set; }

        /// <summary>Waiting for slower replicas.</summary>
        public double Imbalance { get; private set; }

        /// <summary>The speed of several replicas over that of as many which wait for nothing; null for one.</summary>
        public double? Efficiency { get; private set; }

        /// <summary>The devices of this process.</summary>
        public IReadOnlyList<DeviceShares> Devices { get; private set; }

        /// <summary>The time of a step and its shares, on one line.</summary>
        public override string ToString()
        {
            return Steps + " steps of " + Shown(1000 * StepSeconds) + " ms: compute " + Percent(Compute) + ", input " +
                Percent(Input) + ", communication " + Percent(Communication) + ", imbalance " + Percent(Imbalance);
        }
    }

    /// <summary>What a transform or source of a walk has cost. Numbers of a stage that is not counted are 0.</summary>
    public sealed class StageReport
    {
        internal StageReport(JsonValue json)
        {
            Name = json.Get("stage").Text;
            Level = json.Get("level").Integer;
            IsCounted = json.Get("is_counted").Flag;
            Elements = json.Get("elements", one => one.Integer);
            Failures = json.Get("failures", one => one.Integer);
            Bytes = json.Get("bytes", one => one.Integer);
            Threads = json.Get("threads", one => one.Integer);
            TimeMilliseconds = json.Get("time_ms", one => one.Number);
            BusyMilliseconds = json.Get("busy_ms", one => one.Number);
            WaitInMilliseconds = json.Get("wait_in_ms", one => one.Number);
            WaitOutMilliseconds = json.Get("wait_out_ms", one => one.Number);
            MeanDepth = json.Get("mean_depth", one => (double?)one.Number);
            Ignored = json.Get("ignored", one => one.Integer);
            IgnoredErrors = json.Get("ignored_errors", list => list.List(one => one.Text), new string[0]);
        }

        /// <summary>What the transform or source is called: "map", or "map #2 of 3" (counted from the sources) where
        /// there are several of a kind.</summary>
        public string Name { get; private set; }

        /// <summary>How many stages stand between it and the end of the pipeline.</summary>
        public long Level { get; private set; }

        /// <summary>Whether it is counted by itself; if not, another stage does its work in one go with its
        /// own.</summary>
        public bool IsCounted { get; private set; }

        /// <summary>Elements that it gave.</summary>
        public long Elements { get; private set; }

        /// <summary>How often it failed.</summary>
        public long Failures { get; private set; }

        /// <summary>The bytes of its elements.</summary>
        public long Bytes { get; private set; }

        /// <summary>Threads of its own.</summary>
        public long Threads { get; private set; }

        /// <summary>How long it was waited for, its inputs included.</summary>
        public double TimeMilliseconds { get; private set; }

        /// <summary>Its own work, in one of its threads.</summary>
        public double BusyMilliseconds { get; private set; }

        /// <summary>How long it waited for its inputs; a feed: for a push.</summary>
        public double WaitInMilliseconds { get; private set; }

        /// <summary>How long it stood still since nobody asked, or its buffer was full.</summary>
        public double WaitOutMilliseconds { get; private set; }

        /// <summary>Elements that lay ready when one was taken; null for a stage that keeps none.</summary>
        public double? MeanDepth { get; private set; }

        /// <summary>How many errors IgnoreErrors has left out.</summary>
        public long Ignored { get; private set; }

        /// <summary>The texts of some of these.</summary>
        public IReadOnlyList<string> IgnoredErrors { get; private set; }

        /// <summary>The stage and its own work, on one line.</summary>
        public override string ToString()
        {
            return IsCounted ? Name + ": " + Elements + " elements, " + Report.Shown(BusyMilliseconds) + " ms" : Name;
        }
    }

    /// <summary>What a walk over a dataset has cost, stage by stage, and which stage limits it.</summary>
    public sealed class InputReport : Report
    {
        private InputReport(string text) : base(text)
        {
            JsonValue json = JsonValue.Parse(text, "the input report");
            ElapsedMilliseconds = json.Get("elapsed_ms").Number;
            Stages = json.Get("stages").List(one => new StageReport(one));
            LimitingStage = json.Get("limit").Get("stage").Text;
            Reason = json.Get("limit").Get("reason").Text;
            Text = json.Get("text").Text;
        }

        // null for the empty text, where there is no report.
        internal static InputReport Read(string text)
        {
            return string.IsNullOrEmpty(text) ? null : new InputReport(text);
        }

        /// <summary>The time since the walk began.</summary>
        public double ElapsedMilliseconds { get; private set; }

        /// <summary>The stages, from the last transform to the sources.</summary>
        public IReadOnlyList<StageReport> Stages { get; private set; }

        /// <summary>The name of the stage that limits the walk; "consumer" where the pipeline is the faster
        /// one.</summary>
        public string LimitingStage { get; private set; }

        /// <summary>Why that one.</summary>
        public string Reason { get; private set; }

        /// <summary>All that for people, in several lines.</summary>
        public string Text { get; private set; }

        /// <summary>What limits the walk, on one line.</summary>
        public override string ToString()
        {
            return LimitingStage + " limits: " + Reason;
        }
    }

    /// <summary>Bytes that training takes of a device's memory.</summary>
    public sealed class DeviceMemory
    {
        internal DeviceMemory(JsonValue json)
        {
            Device = json.Get("device").Text;
            Weights = json.Get("weights").Integer;
            Slots = json.Get("slots").Integer;
            Gradients = json.Get("gradients").Integer;
            Workspace = json.Get("workspace").Integer;
            Input = json.Get("input").Integer;
            Outputs = json.Get("outputs").Integer;
            Total = json.Get("total").Integer;
            Memory = json.Get("memory").Text;
            Available = json.Get("available").Integer;
        }

        /// <summary>The name of the device.</summary>
        public string Device { get; private set; }

        /// <summary>Of the weights.</summary>
        public long Weights { get; private set; }

        /// <summary>Of what the optimizer keeps.</summary>
        public long Slots { get; private set; }

        /// <summary>Of gradients.</summary>
        public long Gradients { get; private set; }

        /// <summary>Of what lies between input and results.</summary>
        public long Workspace { get; private set; }

        /// <summary>Of batches.</summary>
        public long Input { get; private set; }

        /// <summary>Of what the option KeepOutputs keeps.</summary>
        public long Outputs { get; private set; }

        /// <summary>The sum.</summary>
        public long Total { get; private set; }

        /// <summary>The name of the memory, which devices may share.</summary>
        public string Memory { get; private set; }

        /// <summary>What is free there now.</summary>
        public long Available { get; private set; }

        /// <summary>The device and its total, on one line.</summary>
        public override string ToString()
        {
            return Device + ": " + Total + " of " + Available + " bytes of '" + Memory + "'";
        }
    }

    /// <summary>What training will take of the devices' memory. What drivers and libraries take for themselves is not
    /// counted.</summary>
    public sealed class MemoryEstimate : Report
    {
        internal MemoryEstimate(string text) : base(text)
        {
            JsonValue json = JsonValue.Parse(text, "the estimate of memory");
            BatchSize = json.Get("batch_size").Integer;
            Devices = json.Get("devices").List(one => new DeviceMemory(one));
            Total = json.Get("total").Integer;
            Fits = json.Get("fits").Flag;
        }

        /// <summary>The rows of a batch.</summary>
        public long BatchSize { get; private set; }

        /// <summary>Each device.</summary>
        public IReadOnlyList<DeviceMemory> Devices { get; private set; }

        /// <summary>The bytes of all devices.</summary>
        public long Total { get; private set; }

        /// <summary>Whether all fits into what is free.</summary>
        public bool Fits { get; private set; }

        /// <summary>The total, on one line.</summary>
        public override string ToString()
        {
            return Total + " bytes for batches of " + BatchSize + (Fits ? ", which fit" : ", which do not fit");
        }
    }
}
