// SPDX-License-Identifier: Apache-2.0
using System;
using System.Collections.Generic;
using System.Threading;

namespace Tutti
{
    /// <summary>What a component of a dataset is for.</summary>
    public enum Role
    {
        /// <summary>What the model reads.</summary>
        Feature = Raw.ROLE_FEATURE,
        /// <summary>What it shall predict.</summary>
        Label = Raw.ROLE_LABEL,
        /// <summary>How much a row counts.</summary>
        Weight = Raw.ROLE_WEIGHT,
    }

    /// <summary>Where examples come from and how they are transformed. Immutable, and may be shared; a
    /// <see cref="DatasetIterator"/> owns all progress.</summary>
    public sealed class Dataset : NativeObject
    {
        /// <summary>What <see cref="Cardinality"/> says of a dataset without an end.</summary>
        public const long Infinite = Raw.CARDINALITY_INFINITE;

        /// <summary>What <see cref="Cardinality"/> says when the number is not known.</summary>
        public const long Unknown = Raw.CARDINALITY_UNKNOWN;

        internal Dataset(IntPtr number, Action closing = null) : base(new Handle(KindOf(closing), number))
        {
        }

        private static readonly Kind DatasetKind = new Kind("Dataset", Raw.dataset_unref);

        private static Kind KindOf(Action closing)
        {
            if (closing == null)
                return DatasetKind;
            return new Kind("Dataset", number =>
            {
                Raw.dataset_unref(number);
                closing();
            }, true);
        }

        /// <summary>The number of elements of one pass, <see cref="Infinite"/> or <see cref="Unknown"/>.</summary>
        public long Cardinality
        {
            get
            {
                using (var use = new Uses())
                    return Raw.dataset_get_cardinality(use.Of(this));
            }
        }

        /// <summary>The tensors of each element, in order.</summary>
        public IReadOnlyList<Component> Components
        {
            get { return Spec.Components; }
        }

        /// <summary>The components with their types and shapes, and the rows of a batch.</summary>
        public DatasetSpec Spec
        {
            get
            {
                using (var use = new Uses())
                    return new DatasetSpec(Raw.dataset_get_spec(use.Of(this)));
            }
        }

        internal override string Describe()
        {
            return " " + Spec;
        }

        /// <summary>Well-known mistakes in the order of transforms, each with what is better.</summary>
        public IReadOnlyList<string> Lint
        {
            get
            {
                using (var use = new Uses())
                {
                    string lines = Raw.dataset_get_lint(use.Of(this)) ?? "";
                    return lines.Split(new[] { '\n' }, StringSplitOptions.RemoveEmptyEntries);
                }
            }
        }

        /// <summary>Makes two datasets: the first elements, and the rest.</summary>
        public void Split(long count, out Dataset head, out Dataset rest)
        {
            using (var use = new Uses())
            {
                IntPtr first, second, failure;
                Errors.Check(Raw.dataset_split(use.Of(this), count, out first, out second, out failure), failure);
                head = new Dataset(first);
                rest = new Dataset(second);
            }
        }

        /// <summary>How often each class comes: item i is how many elements, or rows of batches, have the integer i in
        /// a component. Goes once through the dataset; 0 classes means as many as come, and takes a second pass. A
        /// label that is none of the classes is an error with the code OutOfRange.</summary>
        public long[] CountClasses(string component, long classes = 0,
            CancellationToken cancellationToken = default(CancellationToken))
        {
            if (classes < 0)
                throw new ArgumentOutOfRangeException("classes");
            using (var use = new Uses())
            using (var call = new Call(cancellationToken))
            {
                IntPtr number = use.Of(this), failure;
                long needed;
                if (classes == 0)
                {
                    call.Check(Raw.dataset_count_classes(number, component, 0, call.Token, null, out needed,
                        out failure), failure);
                    classes = needed;
                }
                var counts = new long[classes];
                if (classes == 0)
                    return counts;
                call.Check(Raw.dataset_count_classes(number, component, classes, call.Token, counts, out needed,
                    out failure), failure);
                return counts;
            }
        }

        /// <summary>How often each text of a component comes: the most frequent first, and texts that came equally
        /// often in the order of their bytes. The tensor is a vocabulary for Lookup, by
        /// <see cref="Graph.ConstantTensor"/>; dispose of it. Goes once through the dataset.</summary>
        /// <param name="component">One of type Bytes, of any shape.</param>
        /// <param name="counts">How often each text came.</param>
        /// <param name="mostTexts">So many of the most frequent texts; 0 = all.</param>
        /// <param name="leastCount">Only texts that came so often.</param>
        /// <param name="memoryBytes">What all different texts may take, each its length and 64 bytes; 0 = 1 GiB. Going
        /// beyond is an error with the code ResourceExhausted.</param>
        /// <param name="cancellationToken">Ends the walk.</param>
        public Tensor CountTexts(string component, out long[] counts, long mostTexts = 0, long leastCount = 0,
            long memoryBytes = 0, CancellationToken cancellationToken = default(CancellationToken))
        {
            using (var use = new Uses())
            using (var call = new Call(cancellationToken))
            {
                IntPtr texts, numbers, failure;
                call.Check(Raw.dataset_count_texts(use.Of(this), component, mostTexts, leastCount, memoryBytes,
                    call.Token, out texts, out numbers, out failure), failure);
                var found = new Tensor(texts);
                using (var all = new Tensor(numbers))
                    counts = all.ToArray<long>();
                return found;
            }
        }

        /// <summary>Writes a walk over the dataset as an ArrowArrayStream of the Arrow C stream interface to an
        /// address: a record batch for each batch of the dataset, or for so many elements where these are single
        /// examples. The caller must call its release.</summary>
        public void ToArrow(IntPtr address, long batchRows, long seed = 0)
        {
            using (var use = new Uses())
            {
                IntPtr failure;
                IntPtr number = use.Of(this);
                int code = Raw.dataset_to_arrow(number, seed, batchRows, IntPtr.Zero, address, out failure);
                Errors.Check(code, failure);
            }
        }

        /// <summary>Starts at the beginning; the seed is that of shuffling.</summary>
        public DatasetIterator Iterate(long seed = 0)
        {
            using (var use = new Uses())
            {
                IntPtr number = use.Of(this), iterator, failure;
                Errors.Check(Raw.iterator_create(number, seed, out iterator, out failure), failure);
                return new DatasetIterator(iterator, Raw.dataset_get_component_count(number));
            }
        }

        /// <summary>The elements, one tensor for each component, read as they are asked for. The tensors are the
        /// caller's. Each loop is a walk of its own from the beginning, and ends its iterator, however it is left.
        /// </summary>
        public IEnumerable<Tensor[]> Elements(long seed = 0,
            CancellationToken cancellationToken = default(CancellationToken))
        {
            using (DatasetIterator iterator = Iterate(seed))
            {
                foreach (Tensor[] element in iterator.Elements(cancellationToken))
                    yield return element;
            }
        }

#if NETCOREAPP
        /// <summary><see cref="Elements"/> for <c>await foreach</c>; the waiting is done on threads of the
        /// pool.</summary>
        public IAsyncEnumerable<Tensor[]> ElementsAsync(long seed = 0,
            CancellationToken cancellationToken = default(CancellationToken))
        {
            return new AsyncSequence<Tensor[]>(token => Elements(seed, token), cancellationToken);
        }
#endif
    }

    /// <summary>Goes once through a dataset. Serves one thread at a time; a second one gets a
    /// <see cref="TuttiException"/>.</summary>
    public sealed class DatasetIterator : NativeObject
    {
        private static readonly Kind IteratorKind = new Kind("DatasetIterator", Raw.iterator_unref, true);
        private readonly object busy = new object(); // what the library lends is good until the next call
        private readonly long components;

        internal DatasetIterator(IntPtr number, long components) : base(new Handle(IteratorKind, number))
        {
            this.components = components;
        }

        /// <summary>The next element, one tensor for each component; null at the end. After a cancelled call, and after
        /// one that failed, the next one goes on.</summary>
        public Tensor[] Next(CancellationToken cancellationToken = default(CancellationToken))
        {
            return Alone(number =>
            {
                using (var call = new Call(cancellationToken, Handle))
                {
                    byte more;
                    IntPtr failure;
                    call.Check(Raw.iterator_next(number, call.Token, out more, out failure), failure);
                    if (more == 0)
                        return null;
                    var element = new Tensor[components];
                    for (int i = 0; i < element.Length; i++)
                        element[i] = Tensor.Shared(Raw.iterator_get_component(number, i));
                    return element;
                }
            });
        }

        /// <summary>The rows of the element last given that a replica of this process gets, one tensor for each
        /// component, without a copy. The dataset is one of <see cref="Strategy.Distribute"/>.</summary>
        public Tensor[] Piece(long replica)
        {
            return Alone(number =>
            {
                var piece = new Tensor[components];
                for (int i = 0; i < piece.Length; i++)
                {
                    IntPtr tensor = Raw.iterator_get_piece(number, replica, i);
                    if (tensor == IntPtr.Zero)
                        throw TuttiException.Ours(ErrorCode.InvalidArgument,
                            "there is no element, no such replica, or no strategy has distributed the dataset");
                    piece[i] = Tensor.Shared(tensor);
                }
                return piece;
            });
        }

        /// <summary>The elements that are left, as <see cref="Next"/> gives them. A loop that is left early does not
        /// dispose the iterator, and the next one goes on.</summary>
        public IEnumerable<Tensor[]> Elements(CancellationToken cancellationToken = default(CancellationToken))
        {
            Tensor[] element;
            while ((element = Next(cancellationToken)) != null)
                yield return element;
        }

        /// <summary>The position after the element last given, as JSON.</summary>
        public string Save()
        {
            return Alone(number =>
            {
                IntPtr failure;
                string text = Raw.iterator_save(number, out failure);
                if (failure != IntPtr.Zero)
                    throw Errors.FromC(Raw.error_get_code(failure), failure);
                return text;
            });
        }

        /// <summary>What the walk has cost until now, stage by stage, and which stage limits it.</summary>
        public InputReport Report()
        {
            return Alone(number =>
            {
                IntPtr failure;
                string text = Raw.iterator_get_report(number, out failure);
                if (failure != IntPtr.Zero)
                    throw Errors.FromC(Raw.error_get_code(failure), failure);
                return InputReport.Read(text);
            });
        }

        /// <summary>Goes to a position that <see cref="Save"/> gave.</summary>
        public void Restore(string state)
        {
            Alone(number =>
            {
                IntPtr failure;
                Errors.Check(Raw.iterator_restore(number, state, out failure), failure);
                return 0;
            });
        }

        private T Alone<T>(Func<IntPtr, T> function)
        {
            if (!Monitor.TryEnter(busy))
                throw TuttiException.Ours(ErrorCode.FailedPrecondition, "the iterator is in use by another thread");
            try
            {
                using (var use = new Uses())
                    return function(use.Of(this));
            }
            finally
            {
                Monitor.Exit(busy);
            }
        }
    }
}
