// SPDX-License-Identifier: Apache-2.0
package org.tutti;

import java.nio.file.Path;
import java.util.function.LongConsumer;
import org.tutti.ElementCalls.Given;

/**
 * How a dataset is written: sources, then transforms, then {@link #build}, which ends it. What is wrong with them is
 * reported by build; what is wrong with the objects handed over, at once. It serves one thread at a time.
 */
public final class Pipeline extends PipelineSources {
    /** A pipeline of the default context. */
    public Pipeline() {
        this(create(null));
    }

    /** A pipeline.
     *
     * @param context to which it belongs
     */
    public Pipeline(Context context) {
        this(create(context));
    }

    private Pipeline(long number) {
        super(new Handle("Pipeline", number, Raw::pipeline_unref));
    }

    private static long create(@Nullable Context context) {
        try (Use use = new Use()) {
            long[] out = new long[1];
            long[] failure = new long[1];
            TuttiException.check(Raw.pipeline_create(use.of(context), out, failure), failure);
            return out[0];
        }
    }

    @Override
    Pipeline self() {
        return this;
    }

    private synchronized Pipeline with(LongConsumer function) {
        try (Use use = new Use()) {
            function.accept(use.of(this));
        }
        return this;
    }

    /** Adds a component to the source: element i is row i of every tensor added.
     *
     * @param name its name
     * @param role what it is for
     * @param tensor the rows; it is shared, not copied, and may be closed
     * @return this pipeline
     */
    public Pipeline addSlices(String name, Role role, Tensor tensor) {
        try (Use use = new Use()) {
            long rows = use.of(tensor);
            return with(pipeline -> Raw.pipeline_add_slices(pipeline, name, role.number(), rows));
        }
    }

    /** Adds a component from an array.
     *
     * @param name its name
     * @param role what it is for
     * @param data the elements, which are copied
     * @param dims its shape, rows first; none for a vector
     * @return this pipeline
     */
    public Pipeline addSlices(String name, Role role, float[] data, long... dims) {
        try (Tensor tensor = Tensor.of(data, dims)) {
            return addSlices(name, role, tensor);
        }
    }

    /** Adds a component from an array.
     *
     * @param name its name
     * @param role what it is for
     * @param data the elements, which are copied
     * @param dims its shape, rows first; none for a vector
     * @return this pipeline
     */
    public Pipeline addSlices(String name, Role role, int[] data, long... dims) {
        try (Tensor tensor = Tensor.of(data, dims)) {
            return addSlices(name, role, tensor);
        }
    }

    /** Adds a component from an array.
     *
     * @param name its name
     * @param role what it is for
     * @param data the elements, which are copied
     * @param dims its shape, rows first; none for a vector
     * @return this pipeline
     */
    public Pipeline addSlices(String name, Role role, long[] data, long... dims) {
        try (Tensor tensor = Tensor.of(data, dims)) {
            return addSlices(name, role, tensor);
        }
    }

    /** Adds a component to a source of exactly one element: the tensor as a whole.
     *
     * @param name its name
     * @param role what it is for
     * @param tensor the value; it is shared, not copied, and may be closed
     * @return this pipeline
     */
    public Pipeline addTensor(String name, Role role, Tensor tensor) {
        try (Use use = new Use()) {
            long value = use.of(tensor);
            return with(pipeline -> Raw.pipeline_add_tensor(pipeline, name, role.number(), value));
        }
    }

    /** Adds a component from an IDX file (plain or gzip), as the MNIST family uses.
     *
     * @param name its name
     * @param role what it is for
     * @param path where the file is
     * @return this pipeline
     */
    public Pipeline addIdx(String name, Role role, String path) {
        return with(pipeline -> Raw.pipeline_add_idx(pipeline, name, role.number(), path));
    }

    /** Adds a component from an IDX file (plain or gzip), as the MNIST family uses.
     *
     * @param name its name
     * @param role what it is for
     * @param path where the file is
     * @return this pipeline
     */
    public Pipeline addIdx(String name, Role role, Path path) {
        return addIdx(name, role, PathText.of(path));
    }

    /** Gives what {@code arrow}, called next, reads.
     *
     * @param address that of an ArrowArrayStream of the Arrow C stream interface, which is moved from there in every
     *     case
     * @return this pipeline
     */
    public Pipeline setArrowStream(long address) {
        return with(pipeline -> Raw.pipeline_set_arrow_stream(pipeline, address));
    }

    /** Starts from what a feed receives.
     *
     * @param feed the feed
     * @return this pipeline
     */
    public Pipeline addFeed(Feed feed) {
        try (Use use = new Use()) {
            long source = use.of(feed);
            sources.add(feed);
            return with(pipeline -> Raw.pipeline_add_feed(pipeline, source));
        }
    }

    /** Starts from an existing dataset.
     *
     * @param dataset the dataset
     * @return this pipeline
     */
    public Pipeline addDataset(Dataset dataset) {
        try (Use use = new Use()) {
            long source = use.of(dataset);
            sources.add(dataset);
            return with(pipeline -> Raw.pipeline_add_dataset(pipeline, source));
        }
    }

    /** Maps each element by a graph, as many at a time as is best; else as {@link #mapGraph(long, GraphFunction)}.
     *
     * @param build writes the graph, at once; it must not use the pipeline
     * @return this pipeline
     */
    public Pipeline mapGraph(GraphFunction build) {
        return mapGraph(0, build);
    }

    /** Maps each element by a graph: a component that exists is replaced, a new one is added as a feature.
     *
     * @param parallelism how many elements at a time; 0 = automatic
     * @param build writes the graph, at once; it must not use the pipeline
     * @return this pipeline
     */
    public Pipeline mapGraph(long parallelism, GraphFunction build) {
        return withGraph(build, (pipeline, token) -> Raw.pipeline_map_graph(pipeline, token, parallelism));
    }

    /** Maps batches by a graph as {@link #mapGraph} does, and asks that devices with memory of their own do it: what
     * goes into the map is copied to them, and they run it. It comes behind batch, with nothing but prefetch and
     * options behind it. Where a device cannot do it the host does, with the same results, and the log says why.
     *
     * @param build writes the graph, at once; it must not use the pipeline
     * @return this pipeline
     */
    public Pipeline mapGraphOnDevice(GraphFunction build) {
        return withGraph(build, (pipeline, token) -> {
            Raw.pipeline_begin(pipeline, "map", 1);
            try {
                Raw.pipeline_set_bool(pipeline, "on_device", true);
                Raw.pipeline_set_graph(pipeline, token);
            } finally {
                Raw.pipeline_end(pipeline);
            }
        });
    }

    /** Keeps the elements for which a graph's one output is true.
     *
     * @param build writes the graph, at once; it must not use the pipeline
     * @return this pipeline
     */
    public Pipeline filterGraph(GraphFunction build) {
        return withGraph(build, Raw::pipeline_filter_graph);
    }

    /** Ends before the first element for which a graph's one output is false.
     *
     * @param build writes the graph, at once; it must not use the pipeline
     * @return this pipeline
     */
    public Pipeline takeWhileGraph(GraphFunction build) {
        return withGraph(build, (pipeline, token) -> {
            Raw.pipeline_begin(pipeline, "take_while", 1);
            Raw.pipeline_set_graph(pipeline, token);
            Raw.pipeline_end(pipeline);
        });
    }

    private interface GraphCall {
        void run(long pipeline, long token);
    }

    private Pipeline withGraph(GraphFunction build, GraphCall call) {
        long token = Callbacks.keep(build);
        try {
            return with(pipeline -> call.run(pipeline, token));
        } finally {
            Callbacks.drop(token);
        }
    }

    /** Maps each element by a function of Java, on threads of its own; the order stays. What it throws is the cause of
     * what the call that wanted the element throws. The function is held until the dataset, and all that was made of
     * it, is closed. Each element costs the way to another thread and back, some ten microseconds: map batches where
     * you can, and where {@link #mapGraph} can say it, that is faster.
     *
     * @param function the function
     * @return this pipeline
     */
    public Pipeline map(MapFunction function) {
        return map(function, new MapOptions());
    }

    /** Maps each element by a function of Java, else as {@link #map(MapFunction)}.
     *
     * @param parallelism how many elements at a time; 0 = automatic
     * @param function the function
     * @return this pipeline
     */
    public Pipeline map(long parallelism, MapFunction function) {
        return map(function, new MapOptions().parallelism(parallelism));
    }

    /** Maps each element by a function of Java, else as {@link #map(MapFunction)}.
     *
     * @param function the function
     * @param options how many elements at a time, and what the function gives
     * @return this pipeline
     */
    public Pipeline map(MapFunction function, MapOptions options) {
        requireFunction(function);
        return apply("map_callback", 1, null, options, pipeline -> ElementCalls.start(
            Raw.pipeline_set_map(pipeline),
            (state, element, pass, index) -> Given.tensors(function.map(element))));
    }

    private static void requireFunction(@Nullable Object function) {
        if (function == null) {
            throw TuttiException.ofTutti(Code.INVALID_ARGUMENT, "the function is null");
        }
    }

    /** Keeps the elements for which a function of Java says yes. What {@link #map} says of its function holds here too,
     * but there is one call at a time; {@link #filterGraph} is faster.
     *
     * @param predicate the function
     * @return this pipeline
     */
    public Pipeline filter(ElementPredicate predicate) {
        return withPredicate("filter_callback", predicate);
    }

    /** Ends before the first element for which a function of Java says no; otherwise as {@link #filter}.
     *
     * @param predicate the function
     * @return this pipeline
     */
    public Pipeline takeWhile(ElementPredicate predicate) {
        return withPredicate("take_while_callback", predicate);
    }

    private Pipeline withPredicate(String transform, ElementPredicate predicate) {
        requireFunction(predicate);
        return apply(transform, 1, null, null, pipeline -> ElementCalls.start(Raw.pipeline_set_predicate(pipeline),
            (state, element, pass, index) -> Given.answer(predicate.test(element))));
    }

    /** Carries a state from element to element by a function of Java; the elements stay of their kind. What
     * {@link #map} says of its function holds here too, but there is one call at a time; {@link #scanGraph} is faster.
     *
     * @param function the function
     * @param state what is carried, with its value before the first element of each pass
     * @return this pipeline
     */
    public Pipeline scan(ScanFunction function, ScanState... state) {
        return scan(function, new Attributes(), state);
    }

    /** Carries a state from element to element by a function of Java that may give other components, else as
     * {@link #scan(ScanFunction, ScanState...)}.
     *
     * @param function the function
     * @param like has the components that the scan gives
     * @param state what is carried, with its value before the first element of each pass
     * @return this pipeline
     */
    public Pipeline scan(ScanFunction function, Dataset like, ScanState... state) {
        return scan(function, new Attributes().set("like", like), state);
    }

    private Pipeline scan(ScanFunction function, Attributes options, ScanState... state) {
        requireFunction(function);
        return apply("scan_callback", 1, null, options, pipeline -> {
            setState(pipeline, state);
            ElementCalls.start(Raw.pipeline_set_scan(pipeline), (carried, element, pass, index) -> {
                ScanFunction.Step step = function.scan(carried, element);
                return Given.step(step.state(), step.element());
            });
        });
    }

    /** Carries a state from element to element by a graph, which reads the state like a feature and gives it anew
     * under its name; its other outputs are as in {@link #mapGraph}. What it does not give anew stays.
     *
     * @param build writes the graph, at once; it must not use the pipeline
     * @param state what is carried, with its value before the first element of each pass
     * @return this pipeline
     */
    public Pipeline scanGraph(GraphFunction build, ScanState... state) {
        return withGraph(build, (pipeline, token) -> {
            Raw.pipeline_begin(pipeline, "scan", 1);
            try {
                setState(pipeline, state);
                Raw.pipeline_set_graph(pipeline, token);
            } finally {
                Raw.pipeline_end(pipeline);
            }
        });
    }

    private static void setState(long pipeline, ScanState... state) {
        try (Use use = new Use()) {
            for (ScanState component : state) {
                Raw.pipeline_set_state(pipeline, component.name(), use.of(component.initial()));
            }
        }
    }

    /** Gives all elements of the dataset that a function of Java makes of the first element, then those of the second,
     * and so on. What {@link #map} says of its function holds here too, but there is one call at a time.
     *
     * @param function the function
     * @param options what else it is told
     * @return this pipeline
     */
    public Pipeline flatMap(ExpandFunction function, FlatMapOptions options) {
        return withDatasets("flat_map", function, options);
    }

    /** Gives all elements of the datasets of the elements; as {@link #flatMap(ExpandFunction, FlatMapOptions)}.
     *
     * @param function the function
     * @return this pipeline
     */
    public Pipeline flatMap(ExpandFunction function) {
        return flatMap(function, new FlatMapOptions());
    }

    /** Takes turns among the datasets that a function of Java makes of the elements, as interleave does. What
     * {@link #map} says of its function holds here too, but there is one call at a time.
     *
     * @param function the function
     * @param options what else it is told
     * @return this pipeline
     */
    public Pipeline interleaveMap(ExpandFunction function, InterleaveMapOptions options) {
        return withDatasets("interleave_callback", function, options);
    }

    /** Takes turns among the datasets of the elements; as
     * {@link #interleaveMap(ExpandFunction, InterleaveMapOptions)}.
     *
     * @param function the function
     * @return this pipeline
     */
    public Pipeline interleaveMap(ExpandFunction function) {
        return interleaveMap(function, new InterleaveMapOptions());
    }

    private Pipeline withDatasets(String transform, ExpandFunction function, Attributes options) {
        requireFunction(function);
        return apply(transform, 1, null, options, pipeline -> ElementCalls.start(Raw.pipeline_set_expand(pipeline),
            (state, element, pass, index) -> Given.dataset(function.expand(element))));
    }

    /** Starts from what a function of Java gives. Unlike a feed, a generator can be gone through again and resumed.
     * What {@link #map} says of its function holds here too, but there is one call at a time.
     *
     * @param function the function
     * @param components the tensors of each element
     * @return this pipeline
     */
    public Pipeline addGenerator(GeneratorFunction function, Feed.Component... components) {
        requireFunction(function);
        return with(pipeline -> {
            for (Feed.Component c : components) {
                Raw.pipeline_declare(pipeline, c.name(), c.role().number(), c.dtype().number(), c.dims());
            }
            ElementCalls.start(Raw.pipeline_add_generator(pipeline),
                (state, element, pass, index) -> Given.tensors(function.next(pass, index)));
        });
    }

    /** Makes the dataset, or throws the first error that the pipeline met. The pipeline is closed in both cases.
     *
     * @return the dataset
     */
    public synchronized Dataset build() {
        long[] out = new long[1];
        long[] failure = new long[1];
        try (Use use = new Use(); Call call = Call.begin()) {
            long pipeline = use.of(this);
            Raw.pipeline_set_cancel(pipeline, call.token());
            call.check(Raw.pipeline_build(pipeline, out, failure), failure);
        } finally {
            close();
        }
        return new Dataset(out[0], sources.toArray());
    }
}
