// SPDX-License-Identifier: Apache-2.0
using System;
using System.Collections.Generic;
using System.IO;
using System.Linq;
using System.Threading;
using System.Threading.Tasks;

namespace Tutti.Tests
{
    // What programs in C# expect of a library.
    internal static class Idioms
    {
        // x is 1, 2, 3 and 4.
        private static double[] Mapped(Func<Graph, Value, Value> compute)
        {
            Pipeline pipeline = new Pipeline().AddSlices("x", Role.Feature, new double[] { 1, 2, 3, 4 }).Batch(4);
            using (Dataset dataset = pipeline.MapGraph(g => g.SetOutput("x", compute(g, g.GetFeature("x")))).Build())
            using (DatasetIterator iterator = dataset.Iterate())
            {
                Tensor[] element = iterator.Next();
                double[] values = element[0].ToArray<double>();
                Tensor.DisposeAll(element);
                return values;
            }
        }

        [Test]
        private static void OperatorsOfValues()
        {
            Check.Same(new double[] { 2, 4, 6, 8 }, Mapped((g, x) => x + x));
            Check.Same(new double[] { 0, 2, 6, 12 }, Mapped((g, x) => x * x - x));
            Check.Same(new double[] { -1, -2, -3, -4 }, Mapped((g, x) => -x));
            Check.Same(new double[] { 1, 1, 1, 1 }, Mapped((g, x) => x / x));
            Check.Same(new double[] { 3, 5, 7, 9 }, Mapped((g, x) => 2 * x + 1));
            Check.Same(new double[] { 2, 3, 4, 5 }, Mapped((g, x) => 1 + x * 1));
            Check.Same(new double[] { 0, -1, -2, -3 }, Mapped((g, x) => 1 - x));
            Check.Same(new double[] { 0, 1, 2, 3 }, Mapped((g, x) => x - 1));
            Check.Same(new double[] { 12, 6, 4, 3 }, Mapped((g, x) => 12 / x));
            Check.Same(new[] { 0.5, 1, 1.5, 2 }, Mapped((g, x) => x / 2));
            Check.Throws<InvalidOperationException>(() => (default(Value) + default(Value)).ToString());
            Check.Throws<InvalidOperationException>(() => (default(Value) * 2).ToString());
        }

        [Test]
        private static void ValuesTellWhatTheyAre()
        {
            Value kept = default(Value);
            Mapped((g, x) =>
            {
                Value again = g.GetFeature("x"), twice = x + x;
                kept = x;
                Check.True(x == kept && x != twice && x.Equals((object)x) && !x.Equals(null), "equality");
                Check.True(default(Value) == default(Value) && default(Value) != x, "equality of none");
                Check.Equal(x.GetHashCode(), kept.GetHashCode());
                Check.Equal(DType.Float64, twice.DType);
                Check.Equal("Float64 [-1]", again.ToString());
                Check.Equal("no value", default(Value).ToString());
                Check.True(default(Value).Dims == null && default(Value).DType == 0, "no value");
                return x;
            });
            Check.Equal("a value of a graph that has ended", kept.ToString());
            Check.Throws<ObjectDisposedException>(() => (kept + kept).ToString());
        }

        // An activation or padding is one type, whoever takes it; what an op does not know the library refuses.
        [Test]
        private static void ChoicesAreShared()
        {
            Check.Same(new[] { "Same", "Valid", "Explicit", "Causal" }, Enum.GetNames(typeof(Padding)));
            Check.Same(new[] { "None", "Relu", "Sigmoid", "Tanh", "Gelu", "Silu", "GeluTanh" },
                Enum.GetNames(typeof(Activation)));
            foreach (Type options in new[] { typeof(LayerDenseOptions), typeof(LayerConv2dOptions) })
                Check.Equal(typeof(Activation?), options.GetProperty("Activation").PropertyType);
            foreach (Type options in new[] { typeof(Conv2dOptions), typeof(LayerMaxPool2dOptions) })
                Check.Equal(typeof(Padding?), options.GetProperty("Padding").PropertyType);
            Check.Fails(ErrorCode.InvalidArgument, () => Toy.Pipeline().Batch(2).MapGraph(g => g.SetOutput("x",
                g.LayerMaxPool2d(g.Reshape(g.GetFeature("x"), new long[] { -1, 5, 1, 1 }), 2,
                    new LayerMaxPool2dOptions { Padding = Padding.Causal }))).Build());
        }

        // What Build throws says where it was thrown first.
        [Test]
        private static void StacksAreKept()
        {
            var pipeline = new Pipeline();
            pipeline.AddSlices("x", Role.Feature, (Tensor)null);
            var error = Check.Throws<ArgumentNullException>(() => pipeline.Build());
            Check.True(error.StackTrace.Contains("Uses.Need"), error.StackTrace);
        }

        private static void ByIndex<T>(params T[] values) where T : struct
        {
            using (Tensor tensor = Tensor.From(values))
            {
                using (TensorView<T> view = tensor.Write<T>())
                {
                    T first = view[0];
                    view[0] = view[view.Length - 1];
                    view[view.Length - 1] = first;
                }
                Check.Same(values.Reverse(), tensor.ToArray<T>(), typeof(T).Name);
                using (TensorView<T> view = tensor.Read<T>())
                {
                    Check.Equal(values[1], view[0]);
                    Check.Throws<ArgumentOutOfRangeException>(() => view[2].ToString());
                    Check.Throws<ArgumentOutOfRangeException>(() => view[-1].ToString());
                    Check.Throws<InvalidOperationException>(() => view[0] = default(T));
                }
            }
        }

        [Test]
        private static void ViewsAreIndexed()
        {
            ByIndex(1.5f, float.NaN);
            ByIndex(1.0 / 3, double.MaxValue);
            ByIndex(-1, int.MinValue);
            ByIndex(1L << 40, long.MinValue);
            ByIndex<byte>(0, 255);
            ByIndex<sbyte>(-128, 127);
            ByIndex<short>(-32768, 32767);
            ByIndex<ushort>(1, 65535);
            ByIndex(1u, uint.MaxValue);
            ByIndex(1ul, ulong.MaxValue);
            ByIndex(true, false);
        }

        private static void WithPredictor(Action<Estimator, Predictor> use)
        {
            using (Dataset dataset = Toy.TrainingSet())
            using (var estimator = new Estimator(Toy.Model))
            {
                estimator.Train(dataset, new TrainOptions { Steps = 2 });
                using (Predictor predictor = estimator.MakePredictor())
                    use(estimator, predictor);
            }
        }

        // Whether a call ends, within a time, although no thread of the pool is free.
        private static bool EndsWithoutPool(Func<Task> call, TimeSpan time)
        {
            int workers, ports, few = Environment.ProcessorCount;
            ThreadPool.GetMaxThreads(out workers, out ports);
            var release = new ManualResetEventSlim();
            Check.True(ThreadPool.SetMaxThreads(few, ports), "as few threads as cores");
            try
            {
                Task[] waiting = Enumerable.Range(0, few + 8).Select(i => Task.Run(() => release.Wait())).ToArray();
                Task asked = call();
                bool ended = asked.Wait(time);
                release.Set();
                Task.WaitAll(waiting);
                Check.True(asked.Wait(Program.Deadline), "it ends");
                return ended;
            }
            finally
            {
                release.Set();
                ThreadPool.SetMaxThreads(workers, ports);
            }
        }

        // Short calls share the threads of the pool; one that may take hours takes none of them.
        [Test]
        private static void AsyncOnThePool()
        {
            WithPredictor((estimator, predictor) =>
            {
                TimeSpan shortly = TimeSpan.FromMilliseconds(300);
                using (Dataset dataset = Toy.TrainingSet())
                using (Tensor x = Tensor.From(Toy.X))
                using (var source = new CancellationTokenSource())
                {
                    predictor.RunAsync("x", x).Result.Dispose();
                    Check.True(!EndsWithoutPool(() => predictor.RunAsync("x", x), shortly), "Run needs the pool");
                    Check.True(!EndsWithoutPool(() => predictor.ReloadAsync(null), shortly), "Reload needs the pool");
                    Check.True(EndsWithoutPool(() => estimator.TrainAsync(dataset, new TrainOptions { Steps = 1 }),
                        Program.Deadline), "Train needs no thread of the pool");
                    source.Cancel();
                    Task<Batch> asked = predictor.RunAsync("x", x, source.Token);
                    Check.Throws<AggregateException>(() => asked.Wait(Program.Deadline));
                    Check.True(asked.IsCanceled, asked.Status.ToString());
                }
            });
        }

        [Test]
        private static void SavesAndReloadsAsynchronously()
        {
            Data.WithFolder(folder => WithPredictor((estimator, predictor) =>
            {
                estimator.SaveAsync(folder).Wait();
                Check.True(Directory.Exists(Path.Combine(folder, "checkpoint-2")), "the checkpoint");
                using (Dataset dataset = Toy.TrainingSet())
                    estimator.Train(dataset, new TrainOptions { Steps = 1 });
                predictor.ReloadAsync(null).Wait();
                Check.Equal(3L, predictor.Step);
                predictor.ReloadAsync(folder).Wait();
                Check.Equal(2L, predictor.Step);
                var error = Check.Throws<AggregateException>(() => predictor.ReloadAsync(folder + "/none").Wait());
                Check.Equal(ErrorCode.NotFound, ((TuttiException)error.InnerException).Code);
            }));
        }

        // Unlike Progress, it is called at once.
        private sealed class Reported : IProgress<TrainingProgress>
        {
            public readonly List<TrainingProgress> All = new List<TrainingProgress>();
            public Exception Thrown;

            public void Report(TrainingProgress value)
            {
                All.Add(value);
                if (Thrown != null)
                    throw Thrown;
            }
        }

        [Test]
        private static void ProgressIsReported()
        {
            using (Dataset dataset = Toy.TrainingSet())
            using (var estimator = new Estimator(Toy.Model))
            {
                var reported = new Reported();
                Hook[] hooks = { Hook.ReportTo(reported, 2, "accuracy", "nothing") };
                Result result = estimator.Train(dataset, new TrainOptions { Steps = 6 }, hooks);
                Check.Same(new long[] { 2, 4, 6, 6 }, reported.All.Select(progress => progress.Step));
                Check.Same(new[] { false, false, false, true }, reported.All.Select(progress => progress.HasEnded));
                TrainingProgress last = reported.All[2];
                Check.Equal(result.Loss, last.Loss);
                Check.Equal(result.Metrics["accuracy"], last.Metrics["accuracy"]);
                Check.True(double.IsNaN(last.Metrics["nothing"]), "a metric that is not there");
                Check.True(reported.All.Any(progress => progress.ExamplesPerSecond > 0), "the speed");
                reported.Thrown = new OwnException("mine");
                var error = Check.Throws<TuttiException>(() => estimator.Train(dataset, null, hooks));
                Check.True(Check.Holds(error, reported.Thrown), error.ToString());
                Check.Throws<ArgumentNullException>(() => Hook.ReportTo(null));
            }
        }

        [Test]
        private static void TheDefaultContextHasALog()
        {
            var lines = new List<string>();
            Context.SetDefaultLog(Severity.Info, (severity, text) =>
            {
                lock (lines)
                    lines.Add(severity + " " + text);
            });
            using (Dataset dataset = Toy.TrainingSet())
            using (var estimator = new Estimator(Toy.Model, new RunOptions { LogStepCountSteps = 1 }))
            {
                estimator.Train(dataset, new TrainOptions { Steps = 2 });
                lock (lines)
                    Check.True(lines.Any(line => line.StartsWith("Info ") && line.Contains("loss")), "lines");
                var mine = new OwnException("mine");
                Context.SetDefaultLog(Severity.Info, (severity, text) => { throw mine; });
                estimator.Train(dataset, new TrainOptions { Steps = 2 });
                Check.True(ReferenceEquals(mine, Context.DefaultLogException), "the exception is kept");
                Context.SetDefaultLog(Severity.Info, null);
                Check.True(Context.DefaultLogException == null, "no function, no exception");
                int before = lines.Count;
                estimator.Train(dataset, new TrainOptions { Steps = 2 });
                Check.Equal(before, lines.Count);
            }
        }

        // A function waits for its token; the call ends, and the element comes again.
        [Test]
        private static void FunctionsGetTheTokenOfTheirCall()
        {
            int calls = 0;
            var waiting = new ManualResetEventSlim();
            Func<Tensor[], CancellationToken, Tensor[]> function = (element, token) =>
            {
                if (Interlocked.Increment(ref calls) > 1)
                    return element;
                waiting.Set();
                Check.True(token.CanBeCanceled, "a token");
                Check.True(token.WaitHandle.WaitOne(Program.Deadline), "it is cancelled");
                throw new OperationCanceledException(token);
            };
            using (var source = new CancellationTokenSource())
            using (Dataset dataset = Data.Numbers(3).Map(function, 1).Build())
            using (DatasetIterator iterator = dataset.Iterate())
            {
                Task.Run(() =>
                {
                    waiting.Wait(Program.Deadline);
                    source.Cancel();
                });
                var ended = Check.Throws<OperationCanceledException>(() => iterator.Next(source.Token));
                Check.True(ended.CancellationToken == source.Token, "the token");
                Tensor[] first = iterator.Next();
                Check.Equal(0L, first[0].ToArray<long>()[0]);
                Tensor.DisposeAll(first);
            }
        }

        // A function that asks nothing cancels what reads in its third call: that ends with the element under way, not
        // with the batch, and what was read is part of what the next call gives.
        [Test]
        private static void SlowFunctionsEndTheirCallWithTheElement()
        {
            int calls = 0;
            CancellationTokenSource source = null;
            Func<Tensor[], Tensor[]> slow = element =>
            {
                if (Interlocked.Increment(ref calls) == 3 && source != null)
                    source.Cancel();
                if (source != null)
                    Thread.Sleep(20);
                return element;
            };
            Action<Action<CancellationToken>> ends = call =>
            {
                Volatile.Write(ref calls, 0);
                using (source = new CancellationTokenSource())
                    Check.Throws<OperationCanceledException>(() => call(source.Token));
                source = null;
                Check.True(Volatile.Read(ref calls) <= Toy.Rows / 2, calls + " calls");
            };
            using (Dataset dataset = Toy.Pipeline().Map(slow, 1).Batch(Toy.Rows).Build())
            using (DatasetIterator iterator = dataset.Iterate())
            using (var estimator = new Estimator(Toy.Model))
            {
                ends(token => iterator.Next(token));
                ends(token => estimator.Train(dataset, null, null, token));
                ends(token =>
                {
                    using (Session session = estimator.OpenSession(dataset, null, null, token))
                        session.Run(1);
                });
                Tensor[] element = iterator.Next();
                Check.Same(Toy.X.Cast<float>(), element[0].ToArray<float>());
                Tensor.DisposeAll(element);
                Check.Equal((long)Toy.Rows, estimator.Train(dataset).Examples);
            }
        }

        private static void Push(Feed feed, long number)
        {
            using (Tensor tensor = Tensor.Scalar(number))
                feed.Push(tensor);
        }

        private static void Take(DatasetIterator iterator, long wanted)
        {
            Tensor[] element = iterator.Next();
            Check.Equal(wanted, element[0].ToArray<long>()[0]);
            Tensor.DisposeAll(element);
        }

        // Of the pool: who takes an element out may push the next, while another thread takes.
        [Test]
        private static void ThreadsThatReadAndPushAFeedChange()
        {
            using (var feed = new Feed(1, new FeedComponent("n", Role.Feature, DType.Int64)))
            using (Dataset dataset = new Pipeline().AddFeed(feed).Build())
            using (DatasetIterator iterator = dataset.Iterate())
            {
                Push(feed, 0);
                Take(iterator, 0);
                Push(feed, 1); // it is full: this thread waits until another one takes
                Task taken = Task.Factory.StartNew(() =>
                {
                    Thread.Sleep(20);
                    Take(iterator, 1);
                    Take(iterator, 2);
                }, TaskCreationOptions.LongRunning);
                Push(feed, 2);
                Check.True(taken.Wait(Program.Deadline), "taken");
                Func<Action, Task> later = action => Task.Factory.StartNew(action, TaskCreationOptions.LongRunning);
                Task pushes = later(() =>
                {
                    for (long i = 3; i < 300; i++)
                        Check.True(Task.Run(() => Push(feed, i)).Wait(Program.Deadline), "pushed");
                });
                for (long i = 3; i < 300; i++)
                    Check.True(Task.Run(() => Take(iterator, i)).Wait(Program.Deadline), "taken");
                Check.True(pushes.Wait(Program.Deadline), "all are pushed");
            }
        }

        [Test]
        private static void EveryFunctionMayHaveAToken()
        {
            var number = new FeedComponent("n", Role.Feature, DType.Int64);
            using (Tensor zero = Tensor.Scalar(0L))
            {
                Gives("1 3", Data.Numbers(5).Filter((e, token) => e[0].ToArray<long>()[0] % 2 == 1));
                Gives("0 1", Data.Numbers(5).TakeWhile((e, token) => e[0].ToArray<long>()[0] < 2));
                Gives("0 1 2", Data.Numbers(3).Scan((state, e, token) => (state, e), null, new ScanState("s", zero)));
                Gives("0 1 0 1", Data.Numbers(2).FlatMap((e, token) => Data.Numbers(2).Build()));
                Gives("0 0 1 1", Data.Numbers(2).InterleaveMap((e, token) => Data.Numbers(2).Build(),
                    new InterleaveMapOptions { CycleLength = 2, BlockLength = 1 }));
                Gives("0 1", new Pipeline().AddGenerator(
                    (pass, i, token) => i < 2 ? new[] { Tensor.Scalar(i) } : null, number));
            }
            Failures.Come(fail => Data.Rows(Data.Numbers(2).Map((element, token) =>
            {
                fail();
                return element;
            }).Build()));
        }

        private static void Gives(string wanted, Pipeline pipeline)
        {
            using (Dataset dataset = pipeline.Build())
                Check.Equal(wanted, Data.Rows(dataset));
        }

        // Closing ends what waits, and lets what computes finish; afterwards every call throws.
        [Test]
        private static void CloseMeansTheSameEverywhere()
        {
            using (Dataset dataset = Toy.TrainingSet())
            {
                var estimator = new Estimator(Toy.Model);
                Task<Result> training = estimator.TrainAsync(dataset);
                Check.Eventually(() => estimator.GlobalStep > 0 || training.IsCompleted, "it trains");
                estimator.Dispose();
                var error = Check.Throws<AggregateException>(() => training.Wait(Program.Deadline));
                Check.True(error.InnerException is ObjectDisposedException, error.ToString());
                Check.True(estimator.IsDisposed, "closed");
            }
            var feed = new Feed(1, new FeedComponent("x", Role.Feature, DType.Float32));
            using (Tensor x = Tensor.Scalar(1f))
            {
                feed.Push(x);
                Task pushing = Task.Run(() => feed.Push(x));
                feed.Dispose();
                var error = Check.Throws<AggregateException>(() => pushing.Wait(Program.Deadline));
                Check.True(error.InnerException is ObjectDisposedException, error.ToString());
            }
        }
    }
}
