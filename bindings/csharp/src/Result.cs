// SPDX-License-Identifier: Apache-2.0
using System;
using System.Collections.Generic;
using System.Globalization;
using System.Linq;

namespace Tutti
{
    /// <summary>Why training returned.</summary>
    public enum Reason
    {
        /// <summary>Training has not ended: a session has more to do. Also of an evaluation.</summary>
        Unfinished = 0,
        /// <summary>The limit of steps is reached.</summary>
        MaxSteps = Raw.REASON_MAX_STEPS,
        /// <summary>The number of epochs is reached.</summary>
        Epochs = Raw.REASON_EPOCHS,
        /// <summary>The dataset has ended.</summary>
        EndOfInput = Raw.REASON_END_OF_INPUT,
        /// <summary>A hook or a token asked to stop.</summary>
        Stopped = Raw.REASON_STOPPED,
        /// <summary>The limit of seconds is reached.</summary>
        MaxSeconds = Raw.REASON_MAX_SECONDS,
    }

    /// <summary>What training or evaluating gave.</summary>
    public sealed class Result
    {
        private Result(IntPtr number)
        {
            Reason = (Reason)Raw.result_get_reason(number);
            Step = Raw.result_get_step(number);
            Examples = Raw.result_get_examples(number);
            Seconds = Raw.result_get_seconds(number);
            Loss = Raw.result_get_loss(number);
            InputWait = Raw.result_get_input_wait(number);
            InputReport = InputReport.Read(Raw.result_get_input_report(number));
            StepReport = StepReport.Read(Raw.result_get_step_report(number));
            var metrics = new Dictionary<string, double>();
            var tensors = new Dictionary<string, Tensor>();
            for (long i = 0; i < Raw.result_get_metric_count(number); i++)
            {
                string name = Raw.result_get_metric_name(number, i);
                double value = Raw.result_get_metric(number, name);
                Tensor tensor = double.IsNaN(value) ? ReadTensor(number, name) : null;
                if (tensor == null)
                    metrics[name] = value;
                else
                    tensors[name] = tensor;
            }
            Metrics = metrics;
            Tensors = tensors;
        }

        // A metric that is no single number; null for one that is.
        private static Tensor ReadTensor(IntPtr number, string name)
        {
            IntPtr tensor, failure;
            Errors.Check(Raw.result_read_metric(number, name, out tensor, out failure), failure);
            var read = new Tensor(tensor);
            if (read.Dims.Length > 0)
                return read;
            read.Dispose();
            return null;
        }

        // Reads a C result and drops it; null when there is none.
        internal static Result Take(IntPtr number)
        {
            if (number == IntPtr.Zero)
                return null;
            try
            {
                return new Result(number);
            }
            finally
            {
                Raw.result_unref(number);
            }
        }

        /// <summary>Why training returned.</summary>
        public Reason Reason { get; private set; }

        /// <summary>Completed steps.</summary>
        public long Step { get; private set; }

        /// <summary>Examples that were gone through.</summary>
        public long Examples { get; private set; }

        /// <summary>How long it took.</summary>
        public double Seconds { get; private set; }

        /// <summary>Seconds that training steps waited for their input.</summary>
        public double InputWait { get; private set; }

        /// <summary>What the newest walk over the training data has cost, as DatasetIterator.Report gives it; null for
        /// an evaluation and for one run of a session.</summary>
        public InputReport InputReport { get; private set; }

        /// <summary>Where the time of training steps went and how idle each device was; null for an evaluation and for
        /// one run of a session.</summary>
        public StepReport StepReport { get; private set; }

        /// <summary>The loss of the last step, or of the whole dataset; NaN when the model has none.</summary>
        public double Loss { get; private set; }

        /// <summary>Metrics by name.</summary>
        public IReadOnlyDictionary<string, double> Metrics { get; private set; }

        /// <summary>Metrics that are no single number, such as a confusion matrix, by name.</summary>
        public IReadOnlyDictionary<string, Tensor> Tensors { get; private set; }

        /// <summary>Such as "step 100, loss 0.25, accuracy 0.9 (MaxSteps)".</summary>
        public override string ToString()
        {
            string numbers = string.Concat(Metrics.Select(metric => ", " + metric.Key + " " + Shown(metric.Value)));
            string loss = double.IsNaN(Loss) || Metrics.ContainsKey("loss") ? "" : ", loss " + Shown(Loss);
            return "step " + Step + loss + numbers + (Reason == Reason.Unfinished ? "" : " (" + Reason + ")");
        }

        private static string Shown(double number)
        {
            return number.ToString("G6", CultureInfo.InvariantCulture);
        }
    }
}
