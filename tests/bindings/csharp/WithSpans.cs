// SPDX-License-Identifier: Apache-2.0
#if NETCOREAPP
using System;
using System.Collections.Generic;
using System.IO;
using System.Linq;
using System.Threading;
using System.Threading.Tasks;

namespace Tutti.Tests
{
    // What newer runtimes have: spans, memory, and sequences that are awaited.
    internal static class WithSpans
    {
        [Test]
        private static void SpansOverLentMemory()
        {
            using (Tensor tensor = Tensor.From<float>(new ReadOnlySpan<float>(new float[] { 1, 2, 3, 4 }, 0, 4), 2, 2))
            {
                Check.Same(new long[] { 2, 2 }, tensor.Dims);
                using (TensorView<float> view = tensor.Write<float>())
                {
                    Span<float> span = view.WritableSpan;
                    span[3] = 7;
                    Check.Equal(7f, view[3]);
                }
                using (TensorView<float> view = tensor.Read<float>())
                {
                    GC.Collect();
                    Check.Same(new float[] { 1, 2, 3, 7 }, view.Span.ToArray());
                    Check.Same(new float[] { 2, 3 }, view.Slice(1, 2).ToArray());
                    Check.Throws<InvalidOperationException>(() => view.WritableSpan.Clear());
                    Check.Throws<ArgumentOutOfRangeException>(() => view.Slice(3, 2).ToArray());
                }
            }
            using (Tensor vector = Tensor.From<long>(new ReadOnlySpan<long>(new long[3])))
                Check.Same(new long[] { 3 }, vector.Dims);
        }

        [Test]
        private static void MemoryIsBorrowed()
        {
            var data = new long[] { 1, 2, 3, 4 };
            using (Tensor middle = Tensor.Wrap(new Memory<long>(data, 1, 2)))
            {
                data[1] = 9; // shows, for nothing has been copied
                GC.Collect();
                Check.Same(new long[] { 9, 3 }, middle.ToArray<long>());
            }
            using (Tensor shaped = Tensor.Wrap(new ReadOnlyMemory<long>(data), 2, 2))
                Check.Same(new long[] { 2, 2 }, shaped.Dims);
        }

        // As `await foreach` does it.
        private static async Task<List<T>> All<T>(IAsyncEnumerable<T> sequence, int most = int.MaxValue,
            CancellationToken cancellation = default(CancellationToken))
        {
            var list = new List<T>();
            IAsyncEnumerator<T> steps = sequence.GetAsyncEnumerator(cancellation);
            try
            {
                while (list.Count < most && await steps.MoveNextAsync())
                    list.Add(steps.Current);
            }
            finally
            {
                await steps.DisposeAsync();
            }
            return list;
        }

        private static long Number(Tensor[] element)
        {
            long number = element[0].ToArray<long>()[0];
            Tensor.DisposeAll(element);
            return number;
        }

        [Test]
        private static void ElementsAreAwaited()
        {
            using (Dataset dataset = Data.Numbers(5).Build())
            {
                IAsyncEnumerable<Tensor[]> elements = dataset.ElementsAsync();
                Check.Same(new long[] { 0, 1, 2, 3, 4 }, All(elements).Result.Select(Number));
                Check.Same(new long[] { 0, 1 }, All(elements, 2).Result.Select(Number), "a loop that is left");
            }
            var mine = new OwnException("mine");
            using (Dataset failing = Data.Numbers(5).Map(element => { throw mine; }, 1).Build())
            {
                var error = Check.Throws<AggregateException>(() => All(failing.ElementsAsync()).Wait());
                Check.True(Check.Holds(error.InnerException, mine), error.ToString());
            }
            using (var source = new CancellationTokenSource())
            using (Dataset waiting = Data.Numbers(5).Map((element, token) =>
            {
                source.Cancel();
                token.WaitHandle.WaitOne(Program.Deadline);
                throw new OperationCanceledException(token);
            }, 1).Build())
            {
                Task<List<Tensor[]>> all = All(waiting.ElementsAsync(), 5, source.Token);
                Check.Throws<AggregateException>(() => all.Wait(Program.Deadline));
                Check.True(all.IsCanceled, all.Status.ToString());
            }
        }

        [Test]
        private static void PredictionsAreAwaited()
        {
            using (Dataset train = Toy.TrainingSet(), test = Toy.TestSet())
            using (var estimator = new Estimator(Toy.Model))
            {
                estimator.Train(train, new TrainOptions { Steps = 2 });
                using (Predictor predictor = estimator.MakePredictor())
                {
                    var classes = new List<long>();
                    foreach (Batch batch in All(predictor.PredictAsync(test)).Result)
                    {
                        classes.AddRange(batch.ToArray<long>("class"));
                        batch.Dispose();
                    }
                    using (Batch whole = predictor.RunAll(test))
                        Check.Same(whole.ToArray<long>("class"), classes);
                    foreach (Batch batch in All(predictor.PredictAsync(test), 1).Result)
                        batch.Dispose();
                }
            }
        }
    }
}
#endif
