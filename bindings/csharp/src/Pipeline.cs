// SPDX-License-Identifier: Apache-2.0
using System;
using System.Collections.Generic;
using System.Runtime.ExceptionServices;
using System.Threading;

namespace Tutti
{
    /// <summary>How a dataset is written: sources, then transforms, then <see cref="Build"/>. Methods give the pipeline
    /// itself; errors are kept and thrown by Build. Serves one thread at a time.</summary>
    public sealed partial class Pipeline : NativeObject
    {
        private static readonly Kind PipelineKind = new Kind("Pipeline", Raw.pipeline_unref);
        private readonly List<FeedPusher> pushers = new List<FeedPusher>();
        private ExceptionDispatchInfo error; // with where it was thrown
        private Call opening; // ends the looking at files; null = nothing does

        /// <summary>Starts a pipeline of a context; null = the default one.</summary>
        public Pipeline(Context context = null) : base(new Handle(PipelineKind, Create(context)))
        {
        }

        private static IntPtr Create(Context context)
        {
            using (var use = new Uses())
            {
                IntPtr number, failure;
                Errors.Check(Raw.pipeline_create(use.Of(context), out number, out failure), failure);
                return number;
            }
        }

        /// <summary>Adds a component: element i is row i of every tensor added. The tensor is shared, not copied, and
        /// may be closed.</summary>
        public Pipeline AddSlices(string name, Role role, Tensor tensor)
        {
            return With(tensor, "tensor", (number, other) => Raw.pipeline_add_slices(number, name, (int)role, other));
        }

        /// <summary>Adds a component from an array, which is copied: its rows are elements of the other
        /// dimensions.</summary>
        public Pipeline AddSlices<T>(string name, Role role, T[] data, params long[] dims) where T : struct
        {
            using (Tensor tensor = Tensor.From(data, dims))
                return AddSlices(name, role, tensor);
        }

        /// <summary>Adds a component from the rows of a matrix, which is copied.</summary>
        public Pipeline AddSlices<T>(string name, Role role, T[,] data) where T : struct
        {
            using (Tensor tensor = Tensor.From(data))
                return AddSlices(name, role, tensor);
        }

        /// <summary>Adds a component to a source of exactly one element: the tensor as a whole, which is shared, not
        /// copied, and may be closed.</summary>
        public Pipeline AddTensor(string name, Role role, Tensor tensor)
        {
            return With(tensor, "tensor", (number, other) => Raw.pipeline_add_tensor(number, name, (int)role, other));
        }

        /// <summary>Adds a component from an IDX file (plain or gzip), as the MNIST family uses.</summary>
        public Pipeline AddIdx(string name, Role role, string path)
        {
            return With(number => Raw.pipeline_add_idx(number, name, (int)role, path));
        }

        /// <summary>Gives what Arrow, called next, reads: the address of an ArrowArrayStream of the Arrow C stream
        /// interface, which is moved from there in every case.</summary>
        public Pipeline SetArrowStream(IntPtr address)
        {
            return With(number => Raw.pipeline_set_arrow_stream(number, address));
        }

        /// <summary>Starts from what a feed receives.</summary>
        public Pipeline AddFeed(Feed feed)
        {
            return With(feed, "feed", Raw.pipeline_add_feed);
        }

        /// <summary>Starts from an existing dataset.</summary>
        public Pipeline AddDataset(Dataset dataset)
        {
            return With(dataset, "dataset", Raw.pipeline_add_dataset);
        }

        /// <summary>Starts from elements that the program makes: a thread of its own goes through them once, at most
        /// <paramref name="capacity"/> ahead of the reader, and closes each one's tensors. Their enumerator is closed
        /// when they end, when the reader is gone, and when the dataset that <see cref="Build"/> gives is closed. An
        /// exception of theirs comes back from the call that reads.</summary>
        public Pipeline AddElements(IEnumerable<Tensor[]> elements, long capacity, params FeedComponent[] components)
        {
            if (elements == null)
                throw new ArgumentNullException("elements");
            var feed = new Feed(capacity, components);
            pushers.Add(new FeedPusher(feed, elements));
            return AddFeed(feed);
        }

        /// <summary>Maps each element by a graph, which reads components with GetFeature and GetLabel and gives
        /// components with SetOutput: a name that exists is replaced, a new one is added as a feature. The function
        /// runs once, at once. Parallelism 0 = automatic.</summary>
        public Pipeline MapGraph(Action<Graph> build, long parallelism = 1)
        {
            return WithGraph(build, (number, token) => Raw.pipeline_map_graph(number, token, parallelism));
        }

        /// <summary>Maps batches by a graph as <see cref="MapGraph"/> does, and asks that devices with memory of their
        /// own do it: what goes into the map is copied to them, and they run it. It comes behind Batch, with nothing
        /// but Prefetch and Options behind it. Where a device cannot do it the host does, with the same results, and
        /// the log says why.</summary>
        public Pipeline MapGraphOnDevice(Action<Graph> build)
        {
            return WithGraph(build, "map", number => Raw.pipeline_set_bool(number, "on_device", true));
        }

        /// <summary>Keeps the elements for which the graph's one output is true. The function runs once, at
        /// once.</summary>
        public Pipeline FilterGraph(Action<Graph> build)
        {
            return WithGraph(build, Raw.pipeline_filter_graph);
        }

        /// <summary>Ends before the first element for which the graph's one output is false. The function runs once, at
        /// once.</summary>
        public Pipeline TakeWhileGraph(Action<Graph> build)
        {
            return WithGraph(build, "take_while", number => { });
        }

        /// <summary>Lets a token end the looking at files from now on, until <see cref="Build"/>: sources list
        /// directories and open their files when they are added. Build throws an <see
        /// cref="OperationCanceledException"/> then. Iterators follow the tokens they are given.</summary>
        public Pipeline WithCancellation(CancellationToken cancellationToken)
        {
            return With(number =>
            {
                var next = new Call(cancellationToken);
                Raw.pipeline_set_cancel(number, next.Token);
                Follow(next);
            });
        }

        /// <summary>Makes the dataset, or throws the first error that the pipeline met. The pipeline is closed in both
        /// cases.</summary>
        public Dataset Build()
        {
            try
            {
                using (var use = new Uses())
                {
                    IntPtr number = use.Of(this), dataset, failure;
                    if (error != null)
                        error.Throw();
                    int code = Raw.pipeline_build(number, out dataset, out failure);
                    if (opening != null)
                        opening.Check(code, failure);
                    Errors.Check(code, failure);
                    if (pushers.Count == 0)
                        return new Dataset(dataset);
                    FeedPusher[] started = pushers.ToArray();
                    pushers.Clear();
                    foreach (FeedPusher pusher in started)
                        pusher.Start();
                    return new Dataset(dataset, () => Array.ForEach(started, pusher => pusher.Stop()));
                }
            }
            finally
            {
                pushers.ForEach(pusher => pusher.Stop());
                Follow(null);
                Dispose();
            }
        }

        private void Follow(Call next)
        {
            if (opening != null)
                opening.Dispose();
            opening = next;
        }

        // Calls a function with the handle; what it throws waits for Build.
        private Pipeline With(Action<IntPtr> function)
        {
            try
            {
                using (var use = new Uses())
                    function(use.Of(this));
            }
            catch (Exception e)
            {
                error = error ?? ExceptionDispatchInfo.Capture(e);
            }
            return this;
        }

        private Pipeline With(NativeObject other, string name, Action<IntPtr, IntPtr> function)
        {
            return With(number =>
            {
                using (var use = new Uses())
                    function(number, use.Need(other, name));
            });
        }

        private Pipeline WithGraph(Action<Graph> build, Action<IntPtr, long> function)
        {
            if (build == null)
                throw new ArgumentNullException("build");
            return With(number =>
            {
                long token = Callbacks.Hold(build);
                try
                {
                    function(number, token);
                }
                finally
                {
                    Callbacks.Forget(token);
                }
            });
        }

        // A transform that takes a graph, with settings that are made before.
        private Pipeline WithGraph(Action<Graph> build, string transform, Action<IntPtr> settings)
        {
            return WithGraph(build, (number, token) => Write(number, transform, () =>
            {
                settings(number);
                Raw.pipeline_set_graph(number, token);
            }));
        }

        private static void Write(IntPtr number, string transform, Action settings)
        {
            Raw.pipeline_begin(number, transform, 1);
            try
            {
                settings();
            }
            finally
            {
                Raw.pipeline_end(number);
            }
        }

        private static void SetDataset(IntPtr number, string key, Dataset dataset)
        {
            using (var use = new Uses())
                Raw.pipeline_set_dataset(number, key, use.Need(dataset, key));
        }
    }
}
