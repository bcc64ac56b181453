// SPDX-License-Identifier: Apache-2.0
using System;
using System.Collections.Generic;
using System.Linq;

namespace Tutti
{
    /// <summary>What happened in a training. There may be more kinds in later releases.</summary>
    public enum EventKind
    {
        /// <summary>Training begins.</summary>
        Begin = Raw.EVENT_BEGIN,
        /// <summary>A step is complete.</summary>
        Step = Raw.EVENT_STEP,
        /// <summary>A checkpoint was written.</summary>
        CheckpointSaved = Raw.EVENT_CHECKPOINT_SAVED,
        /// <summary>An epoch is complete.</summary>
        EpochEnd = Raw.EVENT_EPOCH_END,
        /// <summary>An evaluation is complete.</summary>
        Evaluated = Raw.EVENT_EVALUATED,
        /// <summary>Training ends as it should.</summary>
        End = Raw.EVENT_END,
        /// <summary>Training is about to fail.</summary>
        Error = Raw.EVENT_ERROR,
    }

    /// <summary>What a hook sees. Numbers that an event does not carry are 0 or NaN.</summary>
    public sealed class HookEvent
    {
        private IntPtr number;

        internal HookEvent(IntPtr number)
        {
            this.number = number;
            Kind = (EventKind)Raw.hook_event_get_kind(number);
            Step = Raw.hook_event_get_step(number);
            Epoch = Raw.hook_event_get_epoch(number);
            Loss = Raw.hook_event_get_loss(number);
            ExamplesPerSecond = Raw.hook_event_get_examples_per_second(number);
            RemainingSeconds = Raw.hook_event_get_remaining_seconds(number);
        }

        /// <summary>What happened.</summary>
        public EventKind Kind { get; private set; }

        /// <summary>Completed steps.</summary>
        public long Step { get; private set; }

        /// <summary>The pass over the dataset, counted from 0; between two passes, as at the end of an epoch, the one
        /// that has ended.</summary>
        public long Epoch { get; private set; }

        /// <summary>The loss of the step, of the evaluation, or, at the end of an epoch or of training, of the last
        /// step.</summary>
        public double Loss { get; private set; }

        /// <summary>The present speed.</summary>
        public double ExamplesPerSecond { get; private set; }

        /// <summary>Seconds until the end at the present speed; NaN when the end is not known.</summary>
        public double RemainingSeconds { get; private set; }

        internal bool IsStopping { get; private set; }

        /// <summary>A metric of the model; NaN when there is none of the name, and after the hook returned.</summary>
        public double GetMetric(string name)
        {
            return Raw.hook_event_get_metric(number, name);
        }

        /// <summary>The directory of the checkpoint just saved; null for other events, and after the hook
        /// returned.</summary>
        public string Checkpoint
        {
            get { return Raw.hook_event_get_checkpoint(number); }
        }

        /// <summary>Writes among the run's own summaries for TensorBoard; null where the run writes none, and after the
        /// hook returned. It may be kept, and is disposed of as any writer is.</summary>
        public SummaryWriter GetSummaryWriter()
        {
            IntPtr writer = Raw.hook_event_get_summary_writer(number);
            if (writer == IntPtr.Zero)
                return null;
            Raw.summary_writer_ref(writer);
            return new SummaryWriter(writer);
        }

        /// <summary>Ends training politely after this step.</summary>
        public void StopTraining()
        {
            IsStopping = true;
        }

        /// <summary>What happened, and when.</summary>
        public override string ToString()
        {
            return Kind + " at step " + Step + (double.IsNaN(Loss) ? "" : ", loss " + Report.Shown(Loss));
        }

        internal void End()
        {
            number = IntPtr.Zero;
        }
    }

    /// <summary>How far a training has come.</summary>
    public sealed class TrainingProgress
    {
        internal TrainingProgress(HookEvent happened, IEnumerable<string> metrics)
        {
            Step = happened.Step;
            Epoch = happened.Epoch;
            Loss = happened.Loss;
            ExamplesPerSecond = happened.ExamplesPerSecond;
            RemainingSeconds = happened.RemainingSeconds;
            HasEnded = happened.Kind == EventKind.End;
            Metrics = metrics.Distinct().ToDictionary(name => name, happened.GetMetric);
        }

        /// <summary>Completed steps.</summary>
        public long Step { get; private set; }

        /// <summary>The pass over the dataset, counted from 0.</summary>
        public long Epoch { get; private set; }

        /// <summary>The loss of the last step.</summary>
        public double Loss { get; private set; }

        /// <summary>The present speed.</summary>
        public double ExamplesPerSecond { get; private set; }

        /// <summary>Seconds until the end at the present speed; NaN when the end is not known.</summary>
        public double RemainingSeconds { get; private set; }

        /// <summary>Whether training has ended.</summary>
        public bool HasEnded { get; private set; }

        /// <summary>The metrics that were asked for; NaN for a name that the model has not.</summary>
        public IReadOnlyDictionary<string, double> Metrics { get; private set; }

        /// <summary>Step, loss and speed, on one line.</summary>
        public override string ToString()
        {
            return "step " + Step + ", loss " + Report.Shown(Loss) + ", " + Report.Shown(ExamplesPerSecond) +
                " examples/s";
        }
    }

    /// <summary>How <see cref="Hook.ShowProgress"/> shows a training.</summary>
    public enum ProgressStyle
    {
        /// <summary>A bar where standard error is a terminal, lines elsewhere.</summary>
        Auto = Raw.PROGRESS_AUTO,
        /// <summary>A line with a bar, written again four times a second.</summary>
        Bar = Raw.PROGRESS_BAR,
        /// <summary>A line every ten seconds.</summary>
        Lines = Raw.PROGRESS_LINES,
    }

    /// <summary>What <see cref="Hook.WriteMetrics"/> writes.</summary>
    public enum MetricsFormat
    {
        /// <summary>The first line names the columns.</summary>
        Csv = Raw.METRICS_CSV,
        /// <summary>An object in each line.</summary>
        JsonLines = Raw.METRICS_JSON_LINES,
    }

    /// <summary>Sees the events of one training. It runs on the thread that trains. An exception of it ends the
    /// training, and is among the inner exceptions of what the call throws. It may use getters and cancel; training
    /// from inside it is an error.</summary>
    public sealed class Hook
    {
        // Adds the hook to a C list.
        private delegate int Adder(IntPtr list, out IntPtr failure);

        private readonly Adder add;

        private Hook(Adder add)
        {
            this.add = add;
        }

        /// <summary>A hook that sees a step every so many steps (0 = none), and all other events.</summary>
        public Hook(long everySteps, Action<HookEvent> call)
        {
            if (call == null)
                throw new ArgumentNullException("call");
            add = (IntPtr list, out IntPtr failure) =>
                Raw.hooks_add(list, Callbacks.Hold(call), everySteps, out failure);
        }

        /// <summary>A hook that shows on standard error how far the training is: step, loss, metrics, examples per
        /// second and time left; also each evaluation, and how long all took.</summary>
        public static Hook ShowProgress(ProgressStyle style = ProgressStyle.Auto)
        {
            return new Hook((IntPtr list, out IntPtr failure) =>
                Raw.hooks_add_progress(list, (int)style, out failure));
        }

        /// <summary>A hook that writes losses and metrics to a file: a line every so many steps (0 = none), for each
        /// evaluation and pass, and one at the end. A file that is there goes on, without what it has of later steps
        /// than the training begins with. If it cannot be written later, the log says so and the training goes
        /// on.</summary>
        public static Hook WriteMetrics(string path, MetricsFormat format, long everySteps)
        {
            if (path == null)
                throw new ArgumentNullException("path");
            return new Hook((IntPtr list, out IntPtr failure) =>
                Raw.hooks_add_metrics_file(list, path, (int)format, everySteps, out failure));
        }

        /// <summary>A hook that keeps the newest values of the training for Prometheus: of every so many steps (0 =
        /// none), each evaluation and pass, and the end.</summary>
        public static Hook KeepFor(Prometheus prometheus, long everySteps)
        {
            if (prometheus == null)
                throw new ArgumentNullException("prometheus");
            return new Hook((IntPtr list, out IntPtr failure) =>
            {
                using (var use = new Uses())
                    return Raw.hooks_add_prometheus(list, use.Of(prometheus), everySteps, out failure);
            });
        }

        /// <summary>A hook that sees a step every so many steps, and nothing else.</summary>
        public static Hook OnStep(long everySteps, Action<HookEvent> call)
        {
            if (call == null)
                throw new ArgumentNullException("call");
            return new Hook(everySteps, happened =>
            {
                if (happened.Kind == EventKind.Step)
                    call(happened);
            });
        }

        /// <summary>A hook that reports a step every so many steps, and the end of training, with the model's metrics
        /// of these names. What the receiver throws ends the training, as an exception of any hook does;
        /// <c>Progress</c>, which posts to another thread, throws nothing here.</summary>
        public static Hook ReportTo(IProgress<TrainingProgress> progress, long everySteps = 1, params string[] metrics)
        {
            if (progress == null)
                throw new ArgumentNullException("progress");
            metrics = metrics ?? new string[0];
            return new Hook(everySteps, happened =>
            {
                if (happened.Kind == EventKind.Step || happened.Kind == EventKind.End)
                    progress.Report(new TrainingProgress(happened, metrics));
            });
        }

        // A C list of hooks, 0 for none; the caller drops it.
        internal static IntPtr MakeList(IEnumerable<Hook> hooks)
        {
            IntPtr list = IntPtr.Zero, failure;
            foreach (Hook hook in hooks ?? new Hook[0])
            {
                if (list == IntPtr.Zero)
                    Errors.Check(Raw.hooks_create(out list, out failure), failure);
                int code = hook == null ? Raw.INVALID_ARGUMENT : Raw.OK;
                failure = IntPtr.Zero;
                if (hook != null)
                    code = hook.add(list, out failure);
                if (code == Raw.OK)
                    continue;
                Raw.hooks_unref(list);
                Callbacks.Reap();
                if (hook == null)
                    throw new ArgumentException("a hook is null", "hooks");
                throw Errors.FromC(code, failure);
            }
            return list;
        }
    }
}
