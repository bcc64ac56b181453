// SPDX-License-Identifier: Apache-2.0
package org.tutti;

import java.util.List;
import java.util.stream.Stream;

/**
 * Where examples come from and how they are transformed. Immutable; an iterator owns all progress.
 *
 * <pre>{@code
 * try (Stream<Tensor[]> elements = dataset.stream()) {
 *     elements.limit(3).forEach(element -> {
 *         System.out.println(element[0]);
 *         Tensor.closeAll(element);
 *     });
 * }
 * }</pre>
 */
public final class Dataset extends NativeObject implements Iterable<Tensor[]> {
    /** What {@link #cardinality} says of a dataset without an end. */
    public static final long INFINITE = Raw.CARDINALITY_INFINITE;
    /** What {@link #cardinality} says when that is known only after going through. */
    public static final long UNKNOWN = Raw.CARDINALITY_UNKNOWN;

    /** The different texts of a component.
     *
     * @param texts the most frequent first, and those that came equally often in the order of their bytes: a
     *     vocabulary for {@link Graph#lookup}, by {@link Graph#constant(Tensor)}
     * @param counts how often each came
     */
    public record TextCounts(Tensor texts, long[] counts) implements AutoCloseable {
        @Override
        public void close() {
            texts.close();
        }
    }

    Dataset(long number, Object... sources) {
        super(new Handle("Dataset", number, Raw::dataset_unref), sources);
    }

    /** How many elements one pass gives.
     *
     * @return their number, {@link #INFINITE} or {@link #UNKNOWN}
     */
    public long cardinality() {
        try (Use use = new Use()) {
            return Raw.dataset_get_cardinality(use.of(this));
        }
    }

    /** The tensors of each element.
     *
     * @return all components, in order
     */
    public List<DatasetSpec.Component> components() {
        return spec().components();
    }

    /** Names, roles, types and shapes of the components, and the size of batches.
     *
     * @return what the elements are
     */
    public DatasetSpec spec() {
        try (Use use = new Use()) {
            return DatasetSpec.of(Raw.dataset_get_spec(use.of(this)));
        }
    }

    @Override
    String details() {
        return " of " + spec();
    }

    /** Well-known mistakes in the order of transforms.
     *
     * @return each of them, with what is better
     */
    public List<String> lint() {
        try (Use use = new Use()) {
            return Raw.dataset_get_lint(use.of(this)).lines().toList();
        }
    }

    /** Two datasets: the first elements, and the rest.
     *
     * @param count how many the first has
     * @return both
     */
    public List<Dataset> split(long count) {
        try (Use use = new Use()) {
            long[] first = new long[1];
            long[] rest = new long[1];
            long[] failure = new long[1];
            TuttiException.check(Raw.dataset_split(use.of(this), count, first, rest, failure), failure);
            return List.of(new Dataset(first[0], this), new Dataset(rest[0], this));
        }
    }

    /** How often each class comes, of as many classes as there are. Goes twice through the dataset.
     *
     * @param component the label: an integer from 0 on
     * @return the number of elements, or rows of batches, of each class
     */
    public long[] countClasses(String component) {
        long[] needed = new long[1];
        countClasses(component, null, needed);
        return needed[0] == 0 ? new long[0] : countClasses(component, (int) needed[0]);
    }

    /** How often each class comes. Goes once through the dataset.
     *
     * @param component the label: an integer from 0 on
     * @param classes how many classes there are; a label of none of them is an error of code OUT_OF_RANGE
     * @return the number of elements, or rows of batches, of each class
     */
    public long[] countClasses(String component, int classes) {
        if (classes < 1) {
            throw TuttiException.ofTutti(Code.INVALID_ARGUMENT, "the number of classes must be 1 or more");
        }
        long[] counts = new long[classes];
        countClasses(component, counts, null);
        return counts;
    }

    private void countClasses(String component, long @Nullable [] counts, long @Nullable [] needed) {
        try (Use use = new Use(); Call call = Call.begin()) {
            long[] failure = new long[1];
            call.check(Raw.dataset_count_classes(use.of(this), component, counts == null ? 0 : counts.length,
                call.token(), counts, needed, failure), failure);
        }
    }

    /** How often each text comes, of all texts. Goes once through the dataset.
     *
     * @param component one of type BYTES, of any shape
     * @return all texts, to be closed
     */
    public TextCounts countTexts(String component) {
        return countTexts(component, new TextCountOptions());
    }

    /** How often each text comes. Goes once through the dataset.
     *
     * @param component one of type BYTES, of any shape
     * @param options which texts
     * @return the texts, to be closed
     */
    public TextCounts countTexts(String component, TextCountOptions options) {
        try (Use use = new Use(); Call call = Call.begin()) {
            long[] texts = new long[1];
            long[] counts = new long[1];
            long[] failure = new long[1];
            call.check(Raw.dataset_count_texts(use.of(this), component, options.mostTexts, options.leastCount,
                options.memoryBytes, call.token(), texts, counts, failure), failure);
            try (Tensor all = Tensor.wrap(counts[0])) {
                return new TextCounts(Tensor.wrap(texts[0]), all.toLongs());
            }
        }
    }

    /** A walk over the dataset as a stream of record batches.
     *
     * @param seed that of shuffling
     * @param batchRows elements of a record batch, where elements are single examples
     * @param address where an ArrowArrayStream of the Arrow C stream interface is written; the caller must call its
     *     release
     */
    public void toArrow(long seed, long batchRows, long address) {
        try (Use use = new Use()) {
            long[] failure = new long[1];
            int code = Raw.dataset_to_arrow(use.of(this), seed, batchRows, 0, address, failure);
            TuttiException.check(code, failure);
        }
    }

    /** Goes through the dataset from its beginning, with the seed 0; a loop over the dataset does. Who asked for the
     * iterator closes it; that of a loop closes itself at its end, and the collector one that a loop has left.
     *
     * @return an iterator
     */
    @Override
    public DatasetIterator iterator() {
        return iterator(0, true);
    }

    /** The elements as a stream of Java, read lazily, with the seed 0; closing it ends the walk.
     *
     * @return the stream, whose tensors are to be closed
     */
    public Stream<Tensor[]> stream() {
        return stream(0);
    }

    /** The elements as a stream of Java, read lazily; closing it ends the walk.
     *
     * @param seed that of shuffling
     * @return the stream, whose tensors are to be closed
     */
    public Stream<Tensor[]> stream(long seed) {
        return iterator(seed).stream();
    }

    /** Goes through the dataset from its beginning.
     *
     * @param seed that of shuffling
     * @return an iterator, which must be closed
     */
    public DatasetIterator iterator(long seed) {
        return iterator(seed, false);
    }

    private DatasetIterator iterator(long seed, boolean closesAtEnd) {
        try (Use use = new Use()) {
            long number = use.of(this);
            long[] out = new long[1];
            long[] failure = new long[1];
            TuttiException.check(Raw.iterator_create(number, seed, out, failure), failure);
            return new DatasetIterator(out[0], (int) Raw.dataset_get_component_count(number), this, closesAtEnd);
        }
    }
}
