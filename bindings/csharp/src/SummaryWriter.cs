// SPDX-License-Identifier: Apache-2.0
using System;

namespace Tutti
{
    /// <summary>Writes curves, histograms, images, texts and embeddings for TensorBoard into event files of a folder. A
    /// name has values of one kind only, and "/" between groups. Writing is no error of a call: if it fails, as on a
    /// full disk, the log says so once, and it is tried again. Serves any number of threads.</summary>
    public sealed class SummaryWriter : NativeObject
    {
        private static readonly Kind WriterKind = new Kind("SummaryWriter", Raw.summary_writer_unref);

        private delegate int Adder(IntPtr writer, IntPtr tensor, out IntPtr failure);

        // Takes the reference.
        internal SummaryWriter(IntPtr number) : base(new Handle(WriterKind, number))
        {
        }

        /// <summary>Writes a new event file in a folder, which is made with the first value;
        /// <paramref name="flushSeconds"/> is how long a value may wait to be written while others come. A context of
        /// null is the default one.</summary>
        public SummaryWriter(string folder, long flushSeconds = 10, Context context = null)
            : this(Create(folder, flushSeconds, context))
        {
        }

        private static IntPtr Create(string folder, long flushSeconds, Context context)
        {
            using (var use = new Uses())
            {
                IntPtr number, failure;
                Errors.Check(Raw.summary_writer_create(use.Of(context), folder, flushSeconds, out number, out failure),
                    failure);
                return number;
            }
        }

        private SummaryWriter Add(Tensor tensor, Adder add)
        {
            using (var use = new Uses())
            {
                IntPtr failure;
                Errors.Check(add(use.Of(this), use.Of(tensor), out failure), failure);
            }
            return this;
        }

        /// <summary>Where the event files are.</summary>
        public string Folder
        {
            get
            {
                using (var use = new Uses())
                    return Raw.summary_writer_get_folder(use.Of(this));
            }
        }

        /// <summary>Writes what waits.</summary>
        public void Flush()
        {
            Add(null, (IntPtr writer, IntPtr none, out IntPtr failure) =>
                Raw.summary_writer_flush(writer, out failure));
        }

        /// <summary>Adds a point of a curve.</summary>
        public SummaryWriter AddScalar(string name, double value, long step)
        {
            return Add(null, (IntPtr writer, IntPtr none, out IntPtr failure) =>
                Raw.summary_writer_add_scalar(writer, name, value, step, out failure));
        }

        /// <summary>Shows how the elements of a tensor are distributed.</summary>
        public SummaryWriter AddHistogram(string name, Tensor values, long step)
        {
            return Add(values, (IntPtr writer, IntPtr tensor, out IntPtr failure) =>
                Raw.summary_writer_add_histogram(writer, name, tensor, step, out failure));
        }

        /// <summary>Shows the first images, <paramref name="most"/> of them, of [images, height, width, channels] of
        /// bytes, or of floating point numbers from 0 to 1.</summary>
        public SummaryWriter AddImage(string name, Tensor images, long step, long most = 3)
        {
            return Add(images, (IntPtr writer, IntPtr tensor, out IntPtr failure) =>
                Raw.summary_writer_add_image(writer, name, tensor, most, step, out failure));
        }

        /// <summary>Shows a text in Markdown.</summary>
        public SummaryWriter AddText(string name, string text, long step)
        {
            return Add(null, (IntPtr writer, IntPtr none, out IntPtr failure) =>
                Raw.summary_writer_add_text(writer, name, text, step, out failure));
        }

        /// <summary>Shows precision and recall over thresholds: labels are truth values, predictions numbers from 0 to
        /// 1, and weights, which may be null, those of the examples.</summary>
        public SummaryWriter AddPrCurve(string name, Tensor labels, Tensor predictions, long step,
            Tensor weights = null, long thresholds = 201)
        {
            using (var use = new Uses())
            {
                IntPtr failure;
                Errors.Check(Raw.summary_writer_add_pr_curve(use.Of(this), name, use.Need(labels, "labels"),
                    use.Need(predictions, "predictions"), use.Of(weights), thresholds, step, out failure), failure);
            }
            return this;
        }

        /// <summary>Shows points [points, dimensions] in TensorBoard's projector. The metadata say what each is: null
        /// for nothing, a line for each, or a table with tabs between columns, whose first line has their
        /// names.</summary>
        public SummaryWriter AddEmbedding(string name, Tensor points, string metadata = null)
        {
            return Add(points, (IntPtr writer, IntPtr tensor, out IntPtr failure) =>
                Raw.summary_writer_add_embedding(writer, name, tensor, metadata, out failure));
        }

        /// <summary>Shows settings of a run, a JSON object of numbers, truth values and texts, in TensorBoard's table
        /// of runs, beside the newest values of the curves that a JSON array names.</summary>
        public SummaryWriter AddHyperparameters(string settingsJson, string metricsJson = null)
        {
            return Add(null, (IntPtr writer, IntPtr none, out IntPtr failure) =>
                Raw.summary_writer_add_hyperparameters(writer, settingsJson, metricsJson, out failure));
        }
    }
}
