// SPDX-License-Identifier: Apache-2.0
using System;
using System.Collections.Generic;
using System.Threading;
using System.Threading.Tasks;

namespace Tutti
{
    /// <summary>One tensor of each element of a feed: its type and its shape, without a batch dimension; of a feed of
    /// batches, the shape of one row.</summary>
    public sealed class FeedComponent
    {
        /// <summary>Declares a component; without dimensions it is a scalar.</summary>
        public FeedComponent(string name, Role role, DType dtype, params long[] dims)
        {
            Name = name;
            Role = role;
            DType = dtype;
            Dims = dims ?? new long[0];
        }

        /// <summary>The name under which a model reads it.</summary>
        public string Name { get; private set; }

        /// <summary>What it is for.</summary>
        public Role Role { get; private set; }

        /// <summary>The type of its elements.</summary>
        public DType DType { get; private set; }

        /// <summary>Its shape.</summary>
        public long[] Dims { get; private set; }
    }

    /// <summary>A bounded queue into which the program pushes elements; a pipeline that starts with
    /// <see cref="Pipeline.AddFeed"/> reads it, once. Several threads may push.</summary>
    public sealed class Feed : NativeObject
    {
        private static readonly Kind FeedKind = new Kind("Feed", Raw.feed_unref, true);

        /// <summary>Makes a feed of the default context that holds at most so many elements.</summary>
        public Feed(long capacity, params FeedComponent[] components) : this(null, capacity, components)
        {
        }

        /// <summary>Makes a feed that holds at most so many elements.</summary>
        public Feed(Context context, long capacity, params FeedComponent[] components)
            : base(new Handle(FeedKind, Create(context, capacity)))
        {
            try
            {
                if (components == null || Array.IndexOf(components, null) >= 0)
                    throw new ArgumentNullException("components");
                foreach (FeedComponent c in components)
                {
                    Do(number =>
                    {
                        IntPtr failure;
                        Errors.Check(Raw.feed_declare(number, c.Name, (int)c.Role, (int)c.DType, c.Dims, c.Dims.Length,
                            out failure), failure);
                    });
                }
            }
            catch (Exception)
            {
                Dispose();
                throw;
            }
        }

        /// <summary>Makes a feed whose elements are batches of 1 to <paramref name="mostRows"/> rows, which may differ
        /// from push to push: the first dimension of each tensor is the rows. Its pipeline needs no Batch: what is
        /// pushed is what a step of training takes, its rows split over the replicas.</summary>
        public static Feed OfBatches(Context context, long capacity, long mostRows, params FeedComponent[] components)
        {
            var feed = new Feed(context, capacity, components);
            try
            {
                feed.Do(number =>
                {
                    IntPtr failure;
                    Errors.Check(Raw.feed_set_batch_size(number, mostRows, out failure), failure);
                });
                return feed;
            }
            catch (Exception)
            {
                feed.Dispose();
                throw;
            }
        }

        private static IntPtr Create(Context context, long capacity)
        {
            using (var use = new Uses())
            {
                IntPtr number, failure;
                Errors.Check(Raw.feed_create(use.Of(context), capacity, out number, out failure), failure);
                return number;
            }
        }

        /// <summary>The number of the first element that the reader needs: 0, or where a resumed training goes on,
        /// which is known when its hooks get EventKind.Begin. Training from a checkpoint fails where elements were
        /// pushed before that.</summary>
        public long Position
        {
            get
            {
                using (var use = new Uses())
                    return Raw.feed_get_position(use.Of(this));
            }
        }

        /// <summary>Adds one element, a tensor for each component; waits while the feed is full. The tensors are
        /// shared, not copied, and may be closed.</summary>
        public void Push(params Tensor[] element)
        {
            Push(element, default(CancellationToken));
        }

        /// <summary>Adds one element, a tensor for each component; waits while the feed is full. The tensors are
        /// shared, not copied, and may be closed.</summary>
        public void Push(IReadOnlyCollection<Tensor> element, CancellationToken cancellationToken)
        {
            using (var use = new Uses())
            {
                IntPtr number = use.Of(this), failure;
                IntPtr[] tensors = use.NeedAll(element, "element");
                using (var call = new Call(cancellationToken, Handle))
                    call.Check(Raw.feed_push(number, tensors, tensors.Length, call.Token, out failure), failure);
            }
        }

        /// <summary>Says that no more elements will come.</summary>
        public void Finish()
        {
            Do(number =>
            {
                IntPtr failure;
                Errors.Check(Raw.feed_finish(number, out failure), failure);
            });
        }

        /// <summary>Makes the reader fail; the exception is among the inner exceptions of what the reading call
        /// throws.</summary>
        public void Fail(Exception reason)
        {
            if (reason == null)
                throw new ArgumentNullException("reason");
            Do(number =>
            {
                IntPtr failure;
                Errors.Check(Raw.feed_fail(number, Errors.FeedNumber(reason), Errors.Describe(reason), out failure),
                    failure);
            });
        }

        /// <summary>Pushes all elements, closing the tensors of each one once it is pushed, then finishes the feed.
        /// What the elements throw fails the feed, and is thrown. Their enumerator is closed in every case.</summary>
        public void PushAll(IEnumerable<Tensor[]> elements,
            CancellationToken cancellationToken = default(CancellationToken))
        {
            if (elements == null)
                throw new ArgumentNullException("elements");
            try
            {
                foreach (Tensor[] element in elements)
                {
                    try
                    {
                        Push(element, cancellationToken);
                    }
                    finally
                    {
                        Tensor.DisposeAll(element);
                    }
                }
            }
            catch (Exception e)
            {
                TryFail(e);
                throw;
            }
            Finish();
        }

        /// <summary><see cref="PushAll"/> on a thread of its own.</summary>
        public Task PushAllAsync(IEnumerable<Tensor[]> elements,
            CancellationToken cancellationToken = default(CancellationToken))
        {
            return Call.OnThread(() =>
            {
                PushAll(elements, cancellationToken);
                return true;
            }, cancellationToken);
        }

        private void TryFail(Exception reason)
        {
            try
            {
                Fail(reason);
            }
            catch (TuttiException)
            {
                return; // it has ended: there is no reader to tell
            }
            catch (ObjectDisposedException)
            {
                return;
            }
        }

        private void Do(Action<IntPtr> function)
        {
            using (var use = new Uses())
                function(use.Of(this));
        }
    }

    // The thread behind Pipeline.AddElements.
    internal sealed class FeedPusher
    {
        private readonly Feed feed;
        private readonly IEnumerable<Tensor[]> elements;

        public FeedPusher(Feed feed, IEnumerable<Tensor[]> elements)
        {
            this.feed = feed;
            this.elements = elements;
        }

        public void Start()
        {
            new Thread(Run) { IsBackground = true, Name = "tutti feed" }.Start();
        }

        public void Stop()
        {
            feed.Dispose();
        }

        private void Run()
        {
            try
            {
                feed.PushAll(elements);
            }
            catch (Exception)
            {
                return; // the reader has been told, or is gone
            }
            finally
            {
                feed.Dispose();
            }
        }
    }
}
