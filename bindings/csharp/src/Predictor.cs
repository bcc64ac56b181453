// SPDX-License-Identifier: Apache-2.0
using System;
using System.Collections.Generic;
using System.Linq;
using System.Threading;
using System.Threading.Tasks;

namespace Tutti
{
    /// <summary>A trained model that answers. Any number of threads may ask one at the same time; each call uses all
    /// devices, and rows come back in the order in which they went in.</summary>
    public sealed class Predictor : NativeObject
    {
        private static readonly Kind PredictorKind = new Kind("Predictor", Raw.predictor_unref, true);
        private readonly object plan = new object(); // the text is lent until the next call

        internal Predictor(IntPtr number) : base(new Handle(PredictorKind, number))
        {
        }

        /// <summary>Opens a checkpoint, or the newest good checkpoint of a model directory; null = all devices of the
        /// context, the default context.</summary>
        public Predictor(string path, PredictorOptions options = null, Strategy strategy = null, Context context = null)
            : this(Open(path, options, strategy, context))
        {
        }

        private static IntPtr Open(string path, PredictorOptions options, Strategy strategy, Context context)
        {
            using (var use = new Uses())
            using (var native = new NativeOptions(options ?? new PredictorOptions()))
            {
                IntPtr owner = use.Of(context), devices = use.Of(strategy), number, failure;
                Errors.Check(Raw.predictor_open(owner, path, devices, native.Number, out number, out failure), failure);
                return number;
            }
        }

        /// <summary>Changes to the weights of another checkpoint of the same model, or of the newest good checkpoint of
        /// a directory; null = the newest weights of where the predictor came from, its estimator or the path it was
        /// opened with. Calls in flight finish on the old ones. On failure those stay.</summary>
        public void Reload(string path, CancellationToken cancellationToken = default(CancellationToken))
        {
            using (var use = new Uses())
            using (var call = new Call(cancellationToken))
            {
                IntPtr failure;
                call.Check(Raw.predictor_reload(use.Of(this), path, call.Token, out failure), failure);
            }
        }

        /// <summary><see cref="Reload"/> on a thread of the pool.</summary>
        public Task ReloadAsync(string path, CancellationToken cancellationToken = default(CancellationToken))
        {
            return Call.OnPool(() => Reload(path, cancellationToken), cancellationToken);
        }

        /// <summary>The training step of the weights in use.</summary>
        public long Step
        {
            get
            {
                using (var use = new Uses())
                    return Raw.predictor_get_step(use.Of(this));
            }
        }

        internal override string Describe()
        {
            return " " + Signature;
        }

        /// <summary>Names, types and shapes of inputs and outputs.</summary>
        public Signature Signature
        {
            get
            {
                using (var use = new Uses())
                    return new Signature(Raw.predictor_get_signature(use.Of(this)));
            }
        }

        /// <summary>How so many rows are computed on the first device; with timed runs, in which time.</summary>
        public PredictionPlan DescribePlan(long rows, long timedRuns = 0,
            CancellationToken cancellationToken = default(CancellationToken))
        {
            lock (plan)
            using (var use = new Uses())
            using (var call = new Call(cancellationToken))
            {
                IntPtr failure;
                string text = Raw.predictor_describe_plan(use.Of(this), rows, timedRuns, call.Token, out failure);
                if (failure != IntPtr.Zero)
                    call.Check(Raw.error_get_code(failure), failure);
                return new PredictionPlan(text);
            }
        }

        /// <summary>Predicts the rows of named tensors, which share their first dimension.</summary>
        public Batch Run(IReadOnlyDictionary<string, Tensor> inputs,
            CancellationToken cancellationToken = default(CancellationToken))
        {
            if (inputs == null)
                throw new ArgumentNullException("inputs");
            using (var use = new Uses())
            using (var call = new Call(cancellationToken))
            {
                IntPtr number = use.Of(this), batch, failure;
                byte[] names = Text.Joined(inputs.Keys.ToArray());
                IntPtr[] tensors = use.NeedAll(inputs.Values.ToArray(), "inputs");
                call.Check(Raw.predictor_run(number, names, names.Length, tensors, tensors.Length, call.Token,
                    out batch, out failure), failure);
                return new Batch(batch);
            }
        }

        /// <summary>Predicts the rows of one named tensor.</summary>
        public Batch Run(string name, Tensor input, CancellationToken cancellationToken = default(CancellationToken))
        {
            return Run(new Dictionary<string, Tensor> { { name, input } }, cancellationToken);
        }

        /// <summary>Run on a thread of the pool.</summary>
        public Task<Batch> RunAsync(IReadOnlyDictionary<string, Tensor> inputs,
            CancellationToken cancellationToken = default(CancellationToken))
        {
            return Call.OnPool(() => Run(inputs, cancellationToken), cancellationToken);
        }

        /// <summary>Predicts the rows of one named tensor, on a thread of the pool.</summary>
        public Task<Batch> RunAsync(string name, Tensor input,
            CancellationToken cancellationToken = default(CancellationToken))
        {
            return Call.OnPool(() => Run(name, input, cancellationToken), cancellationToken);
        }

        /// <summary>Predicts a whole dataset into one batch.</summary>
        public Batch RunAll(Dataset dataset, CancellationToken cancellationToken = default(CancellationToken))
        {
            using (var use = new Uses())
            using (var call = new Call(cancellationToken))
            {
                IntPtr number = use.Of(this), data = use.Need(dataset, "dataset"), batch, failure;
                call.Check(Raw.predictor_run_all(number, data, call.Token, out batch, out failure), failure);
                return new Batch(batch);
            }
        }

        /// <summary><see cref="RunAll"/> on a thread of its own.</summary>
        public Task<Batch> RunAllAsync(Dataset dataset,
            CancellationToken cancellationToken = default(CancellationToken))
        {
            return Call.OnThread(() => RunAll(dataset, cancellationToken), cancellationToken);
        }

        /// <summary>Starts to predict a dataset, a few batches ahead of the reader.</summary>
        public PredictionStream OpenStream(Dataset dataset)
        {
            using (var use = new Uses())
            {
                IntPtr number = use.Of(this), data = use.Need(dataset, "dataset"), stream, failure;
                Errors.Check(Raw.prediction_stream_open(number, data, out stream, out failure), failure);
                return new PredictionStream(stream);
            }
        }

        /// <summary>Predicts a dataset batch by batch, in order, as they are asked for. The end of the loop closes the
        /// stream; the batches are the caller's.</summary>
        public IEnumerable<Batch> Predict(Dataset dataset,
            CancellationToken cancellationToken = default(CancellationToken))
        {
            using (PredictionStream stream = OpenStream(dataset))
            {
                Batch batch;
                while ((batch = stream.Next(cancellationToken)) != null)
                    yield return batch;
            }
        }

#if NETCOREAPP
        /// <summary><see cref="Predict"/> for <c>await foreach</c>; the waiting is done on threads of the
        /// pool.</summary>
        public IAsyncEnumerable<Batch> PredictAsync(Dataset dataset,
            CancellationToken cancellationToken = default(CancellationToken))
        {
            return new AsyncSequence<Batch>(token => Predict(dataset, token), cancellationToken);
        }
#endif
    }

    /// <summary>The predictions of a dataset, batch by batch, in order. Serves one thread at a time.</summary>
    public sealed class PredictionStream : NativeObject
    {
        private static readonly Kind StreamKind = new Kind("PredictionStream", Raw.prediction_stream_unref, true);

        internal PredictionStream(IntPtr number) : base(new Handle(StreamKind, number))
        {
        }

        /// <summary>The next batch; null at the end. After a cancelled call the next one goes on and no row is lost;
        /// any other error ends the stream, behind all batches that stand before it.</summary>
        public Batch Next(CancellationToken cancellationToken = default(CancellationToken))
        {
            using (var use = new Uses())
            {
                IntPtr number = use.Of(this), batch, failure;
                using (var call = new Call(cancellationToken, Handle))
                    call.Check(Raw.prediction_stream_next(number, call.Token, out batch, out failure), failure);
                return batch == IntPtr.Zero ? null : new Batch(batch);
            }
        }

        /// <summary>Ends the stream early and waits until it stands; closing it does not wait.</summary>
        public void Stop(CancellationToken cancellationToken = default(CancellationToken))
        {
            using (var use = new Uses())
            using (var call = new Call(cancellationToken))
            {
                IntPtr failure;
                call.Check(Raw.prediction_stream_close(use.Of(this), call.Token, out failure), failure);
            }
        }
    }

    /// <summary>A batch of results: named tensors with the same number of rows. Immutable.</summary>
    public sealed class Batch : NativeObject
    {
        private static readonly Kind BatchKind = new Kind("Batch", Raw.batch_unref);

        internal Batch(IntPtr number) : base(new Handle(BatchKind, number, SizeOf(number)))
        {
        }

        private static long SizeOf(IntPtr number)
        {
            long size = 0;
            for (long i = 0; i < Raw.batch_get_output_count(number); i++)
            {
                string name = Raw.batch_get_output_name(number, i);
                size += Raw.tensor_get_size_bytes(Raw.batch_get_output(number, name));
            }
            return size;
        }

        /// <summary>The position of the first row in the dataset.</summary>
        public long FirstRow
        {
            get
            {
                using (var use = new Uses())
                    return Raw.batch_get_first_row(use.Of(this));
            }
        }

        /// <summary>The number of rows.</summary>
        public long RowCount
        {
            get
            {
                using (var use = new Uses())
                    return Raw.batch_get_row_count(use.Of(this));
            }
        }

        internal override string Describe()
        {
            return " of " + RowCount + " rows: " + string.Join(", ", Names);
        }

        /// <summary>The names of the outputs.</summary>
        public IReadOnlyList<string> Names
        {
            get
            {
                using (var use = new Uses())
                {
                    IntPtr number = use.Of(this);
                    var names = new string[Raw.batch_get_output_count(number)];
                    for (int i = 0; i < names.Length; i++)
                        names[i] = Raw.batch_get_output_name(number, i);
                    return names;
                }
            }
        }

        /// <summary>An output by name; it lives on when the batch is closed.</summary>
        public Tensor GetOutput(string name)
        {
            using (var use = new Uses())
            {
                IntPtr tensor = Raw.batch_get_output(use.Of(this), name);
                if (tensor == IntPtr.Zero)
                    throw TuttiException.Ours(ErrorCode.NotFound, "the batch has no output '" + name + "'; known: " +
                                              string.Join(", ", Names));
                return Tensor.Shared(tensor);
            }
        }

        /// <summary>A copy of an output's elements.</summary>
        public T[] ToArray<T>(string name) where T : struct
        {
            using (Tensor tensor = GetOutput(name))
                return tensor.ToArray<T>();
        }
    }
}
