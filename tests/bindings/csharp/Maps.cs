// SPDX-License-Identifier: Apache-2.0
using System;
using System.Diagnostics;
using System.Linq;
using System.Threading;

namespace Tutti.Tests
{
    internal static class Maps
    {
        private static Tensor[] Doubled(Tensor[] element)
        {
            return new[] { Tensor.Scalar(element[0].ToArray<long>()[0] * 2) };
        }

        [Test]
        private static void KeepsTheOrder()
        {
            string wanted = string.Join(",", Enumerable.Range(0, 100).Select(i => 2 * i));
            foreach (long parallelism in new long[] { 0, 1, 4 })
            {
                int running = 0, most = 0;
                Func<Tensor[], Tensor[]> function = element =>
                {
                    int now = Interlocked.Increment(ref running);
                    lock (wanted)
                        most = Math.Max(most, now);
                    Thread.SpinWait((int)(element[0].ToArray<long>()[0] * 7919 % 5000));
                    Tensor[] result = Doubled(element);
                    Interlocked.Decrement(ref running);
                    return result;
                };
                using (Dataset dataset = Data.Numbers(100).Map(function, parallelism).Batch(100).Build())
                {
                    Check.Equal(wanted, Data.Rows(dataset));
                    Check.Equal(wanted, Data.Rows(dataset), "a second pass");
                }
                Check.True(parallelism == 0 || most <= parallelism, most + " elements at a time");
            }
        }

        [Test]
        private static void ThreadsEnd()
        {
            int ended = 0;
            for (int i = 0; i < 3; i++)
            {
                using (Dataset dataset = Data.Numbers(10).Map(Doubled, 3).Build())
                    Data.Rows(dataset);
                ended++;
            }
            Check.Eventually(() => Names("tutti function") == 0, "threads of maps are left");
            Check.Equal(3, ended);
        }

        // Threads of this process by name, of which the system keeps 15 letters.
        private static int Names(string name)
        {
            return System.IO.Directory.GetDirectories("/proc/self/task").Count(task =>
            {
                try
                {
                    return System.IO.File.ReadAllText(task + "/comm").Trim() == name;
                }
                catch (System.IO.IOException)
                {
                    return false;
                }
            });
        }

        [Test]
        private static void GivesItsInputs()
        {
            Tensor kept = null;
            using (Dataset dataset = Data.Numbers(3).Map(element =>
            {
                kept = element[0];
                return element;
            }, 1).Build())
                Check.Equal("0 1 2", Data.Rows(dataset));
            Check.Throws<ObjectDisposedException>(() => kept.ToArray<long>());
        }

        private static void Broken(Func<Tensor[], Tensor[]> function)
        {
            using (Dataset dataset = Data.Numbers(5).Map(function, 2).Build())
            using (DatasetIterator iterator = dataset.Iterate())
                iterator.Next();
        }

        [Test]
        private static void Throws()
        {
            Failures.Come(fail => Broken(element =>
            {
                fail();
                return element;
            }));
            Check.Throws<TuttiException>(() => Broken(element => null));
            Check.Throws<TuttiException>(() => Broken(element => new Tensor[0]));
            Check.Throws<TuttiException>(() => Broken(element => new Tensor[] { null }));
            Check.Throws<TuttiException>(() => Broken(element => new[] { Tensor.Scalar(1f) }));
            Check.Throws<TuttiException>(() => Broken(element =>
            {
                element[0].Dispose();
                return element;
            }));
            Check.Throws<ArgumentNullException>(() => Broken(null));
        }

        [Test]
        private static void ThreadsMayBeAborted()
        {
            var error = Check.Throws<TuttiException>(() => Broken(element =>
            {
                Thread.CurrentThread.Abort();
                return element;
            }));
            Check.True(error.ToString().Contains("ThreadAbortException"), error.ToString());
        }

        private static double Loss(Pipeline pipeline)
        {
            using (Dataset dataset = pipeline.Batch(Toy.BatchSize).Prefetch().Build())
            using (var estimator = new Estimator(Toy.Model,
                new RunOptions { Seed = 4, Determinism = Determinism.Repeatable }))
                return estimator.Train(dataset, new TrainOptions { Epochs = 3 }).Loss;
        }

        [Test]
        private static void TrainsTheSame()
        {
            int calls = 0;
            double mapped = Loss(Toy.Pipeline().Shuffle(Toy.Rows).Map(element =>
            {
                Interlocked.Increment(ref calls);
                return element;
            }, 2));
            Check.Equal(Loss(Toy.Pipeline().Shuffle(Toy.Rows)), mapped);
            Check.True(calls >= 3 * Toy.Rows, calls + " calls");
            var mine = new OwnException("mine");
            using (Dataset failing = Toy.Pipeline().Map(element => { throw mine; }, 2).Batch(8).Build())
            using (var estimator = new Estimator(Toy.Model))
            {
                var error = Check.Throws<TuttiException>(() => estimator.Train(failing));
                Check.True(Check.Holds(error, mine), error.ToString());
            }
        }
    }
}
