// SPDX-License-Identifier: Apache-2.0
package org.tutti;

import java.util.Iterator;
import java.util.NoSuchElementException;
import java.util.Spliterator;
import java.util.Spliterators;
import java.util.concurrent.locks.ReentrantLock;
import java.util.stream.Stream;
import java.util.stream.StreamSupport;

/**
 * Goes once through a dataset. It serves one thread at a time; another one gets {@link Code#FAILED_PRECONDITION}. After
 * a call that was cancelled, and after any other error, the next call goes on.
 *
 * <pre>{@code
 * try (DatasetIterator elements = dataset.iterator(7)) {
 *     for (Tensor[] element : elements) {
 *         System.out.println(element[0]);
 *         Tensor.closeAll(element);
 *     }
 * }
 * }</pre>
 */
public final class DatasetIterator extends NativeObject implements Iterator<Tensor[]>, Iterable<Tensor[]> {
    private final int components;
    private final ReentrantLock busy = new ReentrantLock();
    /** Of a loop, which does not close it. */
    private final boolean closesAtEnd;
    private Tensor @Nullable [] ahead;
    private boolean ended;

    DatasetIterator(long number, int components, Dataset dataset, boolean closesAtEnd) {
        super(new Handle("DatasetIterator", number, Raw::iterator_unref), dataset);
        this.components = components;
        this.closesAtEnd = closesAtEnd;
    }

    /** What the library lends is good until the next call, which must wait that long. */
    private void lock() {
        if (!busy.tryLock()) {
            if (isClosed()) { // just now: close holds it for a moment, too
                throw new ClosedException("DatasetIterator");
            }
            throw TuttiException.ofTutti(Code.FAILED_PRECONDITION, "the iterator is in use by another thread");
        }
    }

    /** The next element.
     *
     * @return one tensor for each component, to be closed; null at the end
     */
    public Tensor @Nullable [] read() {
        lock();
        try {
            Tensor @Nullable [] element = ahead;
            ahead = null;
            return element != null ? element : advance();
        } finally {
            busy.unlock();
        }
    }

    private Tensor @Nullable [] advance() {
        if (ended) {
            return null;
        }
        Tensor[] element = nextElement();
        ended = element == null && closesAtEnd;
        if (ended) {
            close();
        }
        return element;
    }

    private Tensor @Nullable [] nextElement() {
        try (Use use = new Use(); Call call = Call.begin(handle())) {
            long number = use.of(this);
            boolean[] more = new boolean[1];
            long[] failure = new long[1];
            call.check(Raw.iterator_next(number, call.token(), more, failure), failure);
            if (!more[0]) {
                return null;
            }
            Tensor[] element = new Tensor[components];
            for (int i = 0; i < components; i++) {
                element[i] = Tensor.share(Raw.iterator_get_component(number, i));
            }
            return element;
        }
    }

    /** The rows of the element last given that a replica of this process gets, without a copy. To be called before
     * {@link #hasNext}, which reads ahead. The dataset is one of {@link Strategy#distribute}.
     *
     * @param replica its number in this process, from 0 on
     * @return one tensor for each component, to be closed
     */
    public Tensor[] piece(long replica) {
        lock();
        try (Use use = new Use()) {
            long number = use.of(this);
            Tensor[] piece = new Tensor[components];
            for (int i = 0; i < components; i++) {
                piece[i] = Tensor.share(Raw.iterator_get_piece(number, replica, i));
                if (piece[i] == null) {
                    throw TuttiException.ofTutti(Code.INVALID_ARGUMENT,
                        "there is no element, no such replica, or no strategy has distributed the dataset");
                }
            }
            return piece;
        } finally {
            busy.unlock();
        }
    }

    /** This object, so that a loop takes the elements that are left; a loop that is left early loses none but its own.
     *
     * @return this
     */
    @Override
    public Iterator<Tensor[]> iterator() {
        return this;
    }

    @Override
    public boolean hasNext() {
        lock();
        try {
            if (ahead == null) {
                ahead = advance();
            }
            return ahead != null;
        } finally {
            busy.unlock();
        }
    }

    @Override
    public Tensor[] next() {
        Tensor[] element = read();
        if (element == null) {
            throw new NoSuchElementException("the dataset is at its end");
        }
        return element;
    }

    /** The elements that are left as a stream of Java, read lazily; closing it closes this object.
     *
     * @return the stream, whose tensors are to be closed
     */
    public Stream<Tensor[]> stream() {
        int order = Spliterator.ORDERED | Spliterator.NONNULL;
        return StreamSupport.stream(Spliterators.spliteratorUnknownSize(this, order), false).onClose(this::close);
    }

    /** The position after the element last given. Not between hasNext and next: then the iterator has gone on.
     *
     * @return the position, a text that {@link #restore} understands
     */
    public String save() {
        lock();
        try (Use use = new Use()) {
            if (ahead != null) {
                throw TuttiException.ofTutti(Code.FAILED_PRECONDITION, "hasNext has read an element; take it first");
            }
            long[] failure = new long[1];
            String state = Raw.iterator_save(use.of(this), failure);
            if (failure[0] != 0) {
                throw TuttiException.take(Raw.error_get_code(failure[0]), failure[0]);
            }
            return state;
        } finally {
            busy.unlock();
        }
    }

    /** What the walk has cost until now, stage by stage, and which stage limits it.
     *
     * @return the report
     */
    public InputReport report() {
        lock();
        try (Use use = new Use()) {
            long[] failure = new long[1];
            String report = Raw.iterator_get_report(use.of(this), failure);
            if (failure[0] != 0) {
                throw TuttiException.take(Raw.error_get_code(failure[0]), failure[0]);
            }
            return InputReport.of(report);
        } finally {
            busy.unlock();
        }
    }

    /** Goes to a position.
     *
     * @param state what {@link #save} gave
     */
    public void restore(String state) {
        lock();
        try (Use use = new Use()) {
            long[] failure = new long[1];
            TuttiException.check(Raw.iterator_restore(use.of(this), state, failure), failure);
            if (ahead != null) {
                Tensor.closeAll(ahead);
                ahead = null;
            }
        } finally {
            busy.unlock();
        }
    }

    @Override
    public void close() {
        super.close();
        if (busy.tryLock()) {
            try {
                if (ahead != null) {
                    Tensor.closeAll(ahead);
                    ahead = null;
                }
            } finally {
                busy.unlock();
            }
        }
    }
}
