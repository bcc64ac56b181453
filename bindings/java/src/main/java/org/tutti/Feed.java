// SPDX-License-Identifier: Apache-2.0
package org.tutti;

import java.lang.ref.Reference;
import java.util.Iterator;
import java.util.stream.Stream;

/**
 * A bounded queue into which the program pushes elements; a pipeline that starts with it reads it, once. Several
 * threads may push. Closing the feed ends pushes that wait.
 */
public final class Feed extends NativeObject {
    /** One tensor of each element.
     *
     * @param name its name
     * @param role what it is for
     * @param dtype its type
     * @param dims its shape, without a batch dimension; in a feed of batches, that of one row
     */
    public record Component(String name, Role role, DType dtype, long... dims) {}

    /** What a feed is made of; {@link #build} makes it.
     *
     * <pre>{@code
     * Feed feed = Feed.builder(8, new Feed.Component("x", Role.FEATURE, DType.FLOAT32, 10)).ofBatches(64).build();
     * }</pre>
     */
    public static final class Builder {
        private final long capacity;
        private final Component[] components;
        private @Nullable Context context;
        private boolean isOfBatches;
        private long mostRows;

        private Builder(long capacity, Component... components) {
            this.capacity = capacity;
            this.components = components.clone();
        }

        /** To which context it belongs. Default: the default context.
         *
         * @param owner the context
         * @return this builder
         */
        public Builder context(Context owner) {
            context = owner;
            return this;
        }

        /** Its elements are batches. The first dimension of their tensors is the rows, which may differ from push to
         * push. The pipeline needs no batch: what is pushed is what a step of training takes, its rows split over the
         * replicas.
         *
         * @param rows how many a batch has at most; at least it has one
         * @return this builder
         */
        public Builder ofBatches(long rows) {
            isOfBatches = true;
            mostRows = rows;
            return this;
        }

        /** Makes a feed into which the program pushes.
         *
         * @return the feed, to be closed
         */
        public Feed build() {
            return new Feed(new Handle("Feed", create(), Raw::feed_unref));
        }

        /** Makes a feed that a stream fills, on a thread of its own. The thread ends, and the stream is closed, when
         * the stream or the feed is at its end, and when the feed is closed or nobody can read it any more.
         *
         * @param elements one tensor for each component; they are closed once pushed
         * @return the feed, to be closed
         */
        public Feed buildFrom(Stream<Tensor[]> elements) {
            Thread[] thread = new Thread[1];
            Handle handle = new Handle("Feed", create(), number -> {
                Raw.feed_unref(number);
                thread[0].interrupt();
            });
            // The thread holds the handle, not the feed, so that a forgotten feed is collected.
            thread[0] = new Thread(() -> pushInBackground(handle, elements), "tutti-feed");
            thread[0].setDaemon(true);
            Feed feed = new Feed(handle);
            thread[0].start();
            return feed;
        }

        private long create() {
            for (Component c : components) {
                if (c == null || c.role() == null || c.dtype() == null || c.dims() == null) {
                    throw TuttiException.ofTutti(Code.INVALID_ARGUMENT,
                        "a feed needs name, role, type and shape of each component, got " + c);
                }
            }
            long[] out = new long[1];
            long[] failure = new long[1];
            try (Use use = new Use()) {
                TuttiException.check(Raw.feed_create(use.of(context), capacity, out, failure), failure);
                int code = describe(out[0], failure);
                if (code != Raw.OK) {
                    Raw.feed_unref(out[0]);
                    throw TuttiException.take(code, failure[0]);
                }
                return out[0];
            }
        }

        /** Tells the library the components, and whether they are batches. */
        private int describe(long feed, long[] failure) {
            for (Component c : components) {
                int code = Raw.feed_declare(feed, c.name(), c.role().number(), c.dtype().number(), c.dims(), failure);
                if (code != Raw.OK) {
                    return code;
                }
            }
            return !isOfBatches ? Raw.OK : Raw.feed_set_batch_size(feed, mostRows, failure);
        }
    }

    /** A feed of the default context.
     *
     * @param capacity how many elements it holds at most
     * @param components the tensors of each element
     */
    public Feed(long capacity, Component... components) {
        this(new Handle("Feed", builder(capacity, components).create(), Raw::feed_unref));
    }

    private Feed(Handle handle) {
        super(handle);
    }

    /** Begins a feed of which more is to be said.
     *
     * @param capacity how many elements, or batches, it holds at most
     * @param components the tensors of each element; in a feed of batches, of each row
     * @return a builder
     */
    public static Builder builder(long capacity, Component... components) {
        return new Builder(capacity, components);
    }

    private static void pushInBackground(Handle handle, Stream<Tensor[]> elements) {
        try (elements) {
            pushAll(handle, elements.iterator());
        } catch (Throwable told) {
            // The reader has been told, or there is none.
        }
    }

    /** Adds one element; waits while the feed is full.
     *
     * @param element one tensor for each component; they are shared, not copied, and may be closed
     */
    public void push(Tensor... element) {
        push(handle(), element);
        Reference.reachabilityFence(this);
    }

    private static void push(Handle handle, Tensor... element) {
        try (Use use = new Use(); Call call = Call.begin(handle)) {
            long number = use.of(handle);
            long[] tensors = use.of((NativeObject[]) element);
            long[] failure = new long[1];
            call.check(Raw.feed_push(number, tensors, call.token(), failure), failure);
        }
    }

    /** Says that no more elements will come. */
    public void finish() {
        finish(handle());
        Reference.reachabilityFence(this);
    }

    private static void finish(Handle handle) {
        try (Use use = new Use()) {
            long[] failure = new long[1];
            TuttiException.check(Raw.feed_finish(use.of(handle), failure), failure);
        }
    }

    /** Makes the reader fail.
     *
     * @param reason is the cause of what the reading call throws: that same object
     */
    public void fail(Throwable reason) {
        if (reason == null) {
            throw TuttiException.ofTutti(Code.INVALID_ARGUMENT, "the reason is null");
        }
        fail(handle(), reason);
        Reference.reachabilityFence(this);
    }

    private static void fail(Handle handle, Throwable reason) {
        try (Use use = new Use()) {
            long[] failure = new long[1];
            int code = ThrownErrors.toFeed(reason);
            TuttiException.check(Raw.feed_fail(use.of(handle), code, ThrownErrors.textOf(reason), failure), failure);
        }
    }

    /** The number of the first element that the reader needs.
     *
     * @return 0, or where a resumed training goes on, which is known when its hooks get {@link EventKind#BEGIN};
     *     training from a checkpoint fails where elements were pushed before that
     */
    public long position() {
        try (Use use = new Use()) {
            return Raw.feed_get_position(use.of(this));
        }
    }

    /** Pushes what an iterator gives until its end, then finishes the feed. What the iterator throws fails the feed,
     * and is thrown here too. It is meant for a thread of its own.
     *
     * @param elements one tensor for each component; they are closed once pushed
     */
    public void pushAll(Iterator<Tensor[]> elements) {
        pushAll(handle(), elements);
        Reference.reachabilityFence(this);
    }

    /** Pushes elements; as {@link #pushAll(Iterator)}.
     *
     * @param elements one tensor for each component; they are closed once pushed
     */
    public void pushAll(Iterable<Tensor[]> elements) {
        pushAll(elements.iterator());
    }

    private static void pushAll(Handle handle, Iterator<Tensor[]> elements) {
        try {
            while (elements.hasNext()) {
                Tensor[] element = elements.next();
                try {
                    push(handle, element);
                } finally {
                    Tensor.closeAll(element);
                }
            }
            finish(handle);
        } catch (Throwable thrown) {
            try {
                fail(handle, thrown);
            } catch (TuttiException ended) {
                // The feed is closed or at its end: there is no reader to tell.
            }
            throw thrown;
        }
    }
}
