// SPDX-License-Identifier: Apache-2.0
#if NETCOREAPP
using System;
using System.Collections.Generic;
using System.Threading;
using System.Threading.Tasks;

namespace Tutti
{
    // A sequence for `await foreach` over one whose elements are waited for: each step is made on a thread of the pool.
    internal sealed class AsyncSequence<T> : IAsyncEnumerable<T>
    {
        private readonly Func<CancellationToken, IEnumerable<T>> sequence;
        private readonly CancellationToken cancellation;

        // The sequence gets a token that ends its steps.
        public AsyncSequence(Func<CancellationToken, IEnumerable<T>> sequence, CancellationToken cancellation)
        {
            this.sequence = sequence;
            this.cancellation = cancellation;
        }

        // Both tokens end the loop: this one is that of WithCancellation.
        public IAsyncEnumerator<T> GetAsyncEnumerator(CancellationToken cancellationToken)
        {
            return new Steps(sequence,
                CancellationTokenSource.CreateLinkedTokenSource(cancellation, cancellationToken));
        }

        private sealed class Steps : IAsyncEnumerator<T>
        {
            private readonly CancellationTokenSource either;
            private readonly IEnumerator<T> steps;

            public Steps(Func<CancellationToken, IEnumerable<T>> sequence, CancellationTokenSource either)
            {
                this.either = either;
                steps = sequence(either.Token).GetEnumerator();
            }

            public T Current
            {
                get { return steps.Current; }
            }

            public ValueTask<bool> MoveNextAsync()
            {
                return new ValueTask<bool>(Call.OnPool<bool>(steps.MoveNext, either.Token));
            }

            public ValueTask DisposeAsync()
            {
                steps.Dispose();
                either.Dispose();
                return default(ValueTask);
            }
        }
    }
}
#endif
