// SPDX-License-Identifier: Apache-2.0
using System;
using System.Threading;

namespace Tutti
{
    /// <summary>What Pipeline.FlatMap may be told; null means the default.</summary>
    public sealed class FlatMapOptions
    {
        /// <summary>Has the components of the datasets that the function gives. Default: those of the
        /// pipeline.</summary>
        public Dataset Like { get; set; }

        /// <summary>A thread reads the dataset ahead. Default: false.</summary>
        public bool? ReadAhead { get; set; }
    }

    /// <summary>What Pipeline.InterleaveMap may be told; null means the default.</summary>
    public sealed class InterleaveMapOptions
    {
        /// <summary>Has the components of the datasets that the function gives. Default: those of the
        /// pipeline.</summary>
        public Dataset Like { get; set; }

        /// <summary>Datasets open at a time. Default: 8.</summary>
        public long? CycleLength { get; set; }

        /// <summary>Elements of a turn. Default: 1.</summary>
        public long? BlockLength { get; set; }

        /// <summary>Datasets read ahead, each by a thread of its own; 1 = none, 0 = all of the cycle. Default:
        /// 1.</summary>
        public long? Parallelism { get; set; }
    }

    /// <summary>A component of what a scan carries from element to element. Numbers of a fixed shape, at most 64 KiB in
    /// all, for the state is saved with every position of an iterator.</summary>
    public sealed class ScanState
    {
        /// <summary>Names a component and gives its value before the first element of each pass, which is shared, not
        /// copied, and may be closed behind the call that takes it.</summary>
        public ScanState(string name, Tensor initial)
        {
            Name = name;
            Initial = initial;
        }

        /// <summary>Its name.</summary>
        public string Name { get; private set; }

        /// <summary>Its value before the first element of each pass.</summary>
        public Tensor Initial { get; private set; }
    }

    // Functions of the program over elements.
    public sealed partial class Pipeline
    {
        /// <summary>Maps each element by a function of the program: it gets one tensor for each component, and gives as
        /// many, of the same types and shapes, or those of the components of <paramref name="like"/>. Up to
        /// <paramref name="parallelism"/> elements are computed at a time (0
        /// = automatic), on threads of the program; their order stays. It must be a pure function of its element, for a
        /// dataset can be gone through again and resumed. The tensors that it gets and gives are closed when it has
        /// returned. An exception of it comes back from the call that wanted the element. It is held until the dataset,
        /// and all that was made of it, is closed. Each element costs the way to another thread and back: where
        /// <see cref="MapGraph"/> can say it, that is faster.</summary>
        public Pipeline Map(Func<Tensor[], Tensor[]> function, long parallelism = 0, Dataset like = null)
        {
            Need(function, "function");
            return Map(parallelism, like, queue => ElementCall.Begin(queue,
                call => call.Outputs = function(call.Element)));
        }

        /// <summary>Maps each element by a function that also gets the token of the call for which it computes: it is
        /// cancelled when that call is (its token was, its time is over, or its object was closed), and then whatever
        /// the function throws is the end of the call, not an error of the element, which comes again. Every function
        /// over elements has such a form. It is told within some milliseconds.</summary>
        public Pipeline Map(Func<Tensor[], CancellationToken, Tensor[]> function, long parallelism = 0,
            Dataset like = null)
        {
            Need(function, "function");
            return Map(parallelism, like, queue => ElementCall.BeginWithToken(queue,
                call => call.Outputs = function(call.Element, call.Token)));
        }

        /// <summary>Keeps the elements for which a function of the program says true. What <c>Map</c> says of
        /// its function holds here too, but there is one call at a time; <see cref="FilterGraph"/> is faster.</summary>
        public Pipeline Filter(Func<Tensor[], bool> predicate)
        {
            return WithPredicate("filter_callback", predicate);
        }

        /// <summary>The same with the token of the call, as <c>Map</c> passes it.</summary>
        public Pipeline Filter(Func<Tensor[], CancellationToken, bool> predicate)
        {
            return WithPredicate("filter_callback", predicate);
        }

        /// <summary>Ends before the first element for which a function of the program says false; otherwise as
        /// <c>Filter</c>.</summary>
        public Pipeline TakeWhile(Func<Tensor[], bool> predicate)
        {
            return WithPredicate("take_while_callback", predicate);
        }

        /// <summary>The same with the token of the call, as <c>Map</c> passes it.</summary>
        public Pipeline TakeWhile(Func<Tensor[], CancellationToken, bool> predicate)
        {
            return WithPredicate("take_while_callback", predicate);
        }

        /// <summary>Carries a state from element to element: a function of the program gets the state and an element,
        /// one tensor for each component, and gives the new state and a new element. What <c>Map</c> says of its
        /// function holds here too, but there is one call at a time; <see cref="ScanGraph"/> is faster. An exception
        /// consumes the element and leaves the state as it was.</summary>
        /// <param name="function">The function.</param>
        /// <param name="state">What is carried.</param>
        public Pipeline Scan(Func<Tensor[], Tensor[], (Tensor[] State, Tensor[] Element)> function,
            params ScanState[] state)
        {
            return Scan(function, null, state);
        }

        /// <summary>Carries a state from element to element, as the other form of it.</summary>
        /// <param name="function">The function.</param>
        /// <param name="like">Has the components that the scan gives; null: they are as those it gets.</param>
        /// <param name="state">What is carried.</param>
        public Pipeline Scan(Func<Tensor[], Tensor[], (Tensor[] State, Tensor[] Element)> function, Dataset like,
            params ScanState[] state)
        {
            Need(function, "function");
            return Scan(like, state, queue => ElementCall.Begin(queue,
                call => call.Give(function(call.State, call.Element))));
        }

        /// <summary>The same with the token of the call, as <c>Map</c> passes it.</summary>
        /// <param name="function">The function.</param>
        /// <param name="like">Has the components that the scan gives; null: they are as those it gets.</param>
        /// <param name="state">What is carried.</param>
        public Pipeline Scan(
            Func<Tensor[], Tensor[], CancellationToken, (Tensor[] State, Tensor[] Element)> function, Dataset like,
            params ScanState[] state)
        {
            Need(function, "function");
            return Scan(like, state, queue => ElementCall.BeginWithToken(queue,
                call => call.Give(function(call.State, call.Element, call.Token))));
        }

        /// <summary>Carries a state from element to element by a graph, which reads the state like a feature and gives
        /// it anew under its name; its other outputs are as in <see cref="MapGraph"/>. What it does not give anew
        /// stays.</summary>
        public Pipeline ScanGraph(Action<Graph> build, params ScanState[] state)
        {
            return WithGraph(build, "scan", number => SetState(number, state));
        }

        /// <summary>Gives all elements of the dataset that a function of the program makes of the first element, then
        /// those of the second, and so on. The dataset stays the program's: what nobody closes the collector closes. It
        /// must not read a feed, for the function is called again when a walk is resumed. What <c>Map</c> says
        /// of its function holds here too, but there is one call at a time.</summary>
        public Pipeline FlatMap(Func<Tensor[], Dataset> function, FlatMapOptions options = null)
        {
            Need(function, "function");
            return FlatMap(options, queue => ElementCall.Begin(queue, call => call.Dataset = function(call.Element)));
        }

        /// <summary>The same with the token of the call, as <c>Map</c> passes it.</summary>
        public Pipeline FlatMap(Func<Tensor[], CancellationToken, Dataset> function, FlatMapOptions options = null)
        {
            Need(function, "function");
            return FlatMap(options, queue => ElementCall.BeginWithToken(queue,
                call => call.Dataset = function(call.Element, call.Token)));
        }

        /// <summary>Takes turns among the datasets that a function of the program makes of the elements, as Interleave
        /// does. The function is as that of <c>FlatMap</c>.</summary>
        public Pipeline InterleaveMap(Func<Tensor[], Dataset> function, InterleaveMapOptions options = null)
        {
            Need(function, "function");
            return InterleaveMap(options, queue => ElementCall.Begin(queue,
                call => call.Dataset = function(call.Element)));
        }

        /// <summary>The same with the token of the call, as <c>Map</c> passes it.</summary>
        public Pipeline InterleaveMap(Func<Tensor[], CancellationToken, Dataset> function,
            InterleaveMapOptions options = null)
        {
            Need(function, "function");
            return InterleaveMap(options, queue => ElementCall.BeginWithToken(queue,
                call => call.Dataset = function(call.Element, call.Token)));
        }

        /// <summary>Starts from what a function of the program gives: for the numbers of a pass and of an element in
        /// it, one tensor for each component, and null behind the last element. It is asked for 0, 1, 2, ..., in each
        /// pass anew; a walk that was restored begins with the number that comes next. What <c>Map</c> says of
        /// its function holds here too, but there is one call at a time. Unlike a feed, a generator can be gone through
        /// again and resumed.</summary>
        public Pipeline AddGenerator(Func<long, long, Tensor[]> function, params FeedComponent[] components)
        {
            Need(function, "function");
            return AddGenerator(components, queue => ElementCall.Begin(queue,
                call => call.GiveElement(function(call.Pass, call.Index))));
        }

        /// <summary>The same with the token of the call, as <c>Map</c> passes it.</summary>
        public Pipeline AddGenerator(Func<long, long, CancellationToken, Tensor[]> function,
            params FeedComponent[] components)
        {
            Need(function, "function");
            return AddGenerator(components, queue => ElementCall.BeginWithToken(queue,
                call => call.GiveElement(function(call.Pass, call.Index, call.Token))));
        }

        // These take what serves the queue of the function.
        private Pipeline Map(long parallelism, Dataset like, Action<IntPtr> serve)
        {
            return With(number => Write(number, "map_callback", () =>
            {
                Raw.pipeline_set_i64(number, "parallelism", parallelism);
                SetLike(number, like);
                serve(Raw.pipeline_set_map(number));
            }));
        }

        private Pipeline Scan(Dataset like, ScanState[] state, Action<IntPtr> serve)
        {
            return With(number => Write(number, "scan_callback", () =>
            {
                SetState(number, state);
                SetLike(number, like);
                serve(Raw.pipeline_set_scan(number));
            }));
        }

        private Pipeline FlatMap(FlatMapOptions options, Action<IntPtr> serve)
        {
            options = options ?? new FlatMapOptions();
            return WithDatasets("flat_map", serve, options.Like, number =>
            {
                if (options.ReadAhead != null)
                    Raw.pipeline_set_bool(number, "read_ahead", options.ReadAhead.Value);
            });
        }

        private Pipeline InterleaveMap(InterleaveMapOptions options, Action<IntPtr> serve)
        {
            options = options ?? new InterleaveMapOptions();
            return WithDatasets("interleave_callback", serve, options.Like, number =>
            {
                if (options.CycleLength != null)
                    Raw.pipeline_set_i64(number, "cycle_length", options.CycleLength.Value);
                if (options.BlockLength != null)
                    Raw.pipeline_set_i64(number, "block_length", options.BlockLength.Value);
                if (options.Parallelism != null)
                    Raw.pipeline_set_i64(number, "parallelism", options.Parallelism.Value);
            });
        }

        private Pipeline AddGenerator(FeedComponent[] components, Action<IntPtr> serve)
        {
            return With(number =>
            {
                foreach (FeedComponent c in components)
                    Raw.pipeline_declare(number, c.Name, (int)c.Role, (int)c.DType, c.Dims, c.Dims.Length);
                serve(Raw.pipeline_add_generator(number));
            });
        }

        private Pipeline WithPredicate(string transform, Func<Tensor[], bool> predicate)
        {
            Need(predicate, "predicate");
            return With(number => Write(number, transform, () => ElementCall.Begin(
                Raw.pipeline_set_predicate(number), call => call.Answer = predicate(call.Element))));
        }

        private Pipeline WithPredicate(string transform, Func<Tensor[], CancellationToken, bool> predicate)
        {
            Need(predicate, "predicate");
            return With(number => Write(number, transform, () => ElementCall.BeginWithToken(
                Raw.pipeline_set_predicate(number), call => call.Answer = predicate(call.Element, call.Token))));
        }

        private Pipeline WithDatasets(string transform, Action<IntPtr> serve, Dataset like, Action<IntPtr> settings)
        {
            return With(number => Write(number, transform, () =>
            {
                SetLike(number, like);
                settings(number);
                serve(Raw.pipeline_set_expand(number));
            }));
        }

        private static void Need(object function, string name)
        {
            if (function == null)
                throw new ArgumentNullException(name);
        }

        private static void SetLike(IntPtr number, Dataset like)
        {
            if (like != null)
                SetDataset(number, "like", like);
        }

        private static void SetState(IntPtr number, ScanState[] state)
        {
            foreach (ScanState component in state)
            {
                using (var use = new Uses())
                    Raw.pipeline_set_state(number, component.Name, use.Need(component.Initial, "Initial"));
            }
        }
    }
}
