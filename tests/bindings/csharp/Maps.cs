// SPDX-License-Identifier: Apache-2.0
using System;
using System.Diagnostics;
using System.IO;
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

        // The worker processes are this program with the argument "serve".
        public static int Serve()
        {
            Worker.ServeMap((element, token) =>
            {
                long number = element[0].ToArray<long>()[0];
                Console.WriteLine("element " + number);
                if (number == 3)
                    throw new InvalidOperationException("three is not allowed");
                return new[] { Tensor.Scalar(number / 2.0) };
            });
            return 0;
        }

        [Test]
        private static void MapsInProcesses()
        {
            string[] command = Program.Command("serve");
            using (Tensor half = Tensor.Scalar(0.5))
            using (Dataset like = new Pipeline().AddTensor("half", Role.Feature, half).Build())
            using (Dataset dataset = Data.Numbers(6)
                .MapProcess(command, new MapProcessOptions { Processes = 2, Like = like }).Build())
            using (DatasetIterator iterator = dataset.Iterate())
            {
                for (int i = 0; i < 6; i++)
                {
                    if (i == 3)
                    {
                        var error = Check.Throws<TuttiException>(() => iterator.Next());
                        Check.True(error.ToString().Contains("three is not allowed"), error.ToString());
                        continue;
                    }
                    Tensor[] element = iterator.Next();
                    Check.Equal(i / 2.0, element[0].ToArray<double>()[0]);
                    foreach (Tensor tensor in element)
                        tensor.Dispose();
                }
            }
            Check.Throws<ArgumentNullException>(() => Worker.ServeMap((Func<Tensor[], Tensor[]>)null));
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

        // Lines of text become features and labels.
        [Test]
        private static void GivesOtherComponents()
        {
            string path = Path.Combine(Path.GetTempPath(), "tutti-" + Guid.NewGuid().ToString("N"));
            File.WriteAllText(path, "3 1\n4 0\n5 1\n");
            Func<Tensor[], Tensor[]> parse = element =>
            {
                long[] numbers = element[0].ToTexts()[0].Split(' ').Select(long.Parse).ToArray();
                return (numbers[0] == 4 ? numbers.Take(1) : numbers).Select(Tensor.Scalar).ToArray();
            };
            var options = new SelectOptions { Features = new[] { "x = n" }, Labels = new[] { "odd" } };
            using (Dataset two = Data.Numbers(1).AddSlices("odd", Role.Feature, new[] { 0L }).Build())
            using (Dataset dataset =
                new Pipeline().TextLines(new[] { path }).Map(parse, 2, two).Select(options).Build())
            using (DatasetIterator iterator = dataset.Iterate())
            {
                Check.Equal("x Feature odd Label",
                    string.Join(" ", dataset.Components.Select(c => c.Name + " " + c.Role)));
                Check.Equal("3 1", Numbers(iterator));
                Exception error = Check.Throws<TuttiException>(() => Numbers(iterator));
                Check.True(error.ToString().Contains("the function gives 1 tensors; expected 2"), error.ToString());
                Check.Equal("5 1", Numbers(iterator));
            }
            File.Delete(path);
        }

        private static string Numbers(DatasetIterator iterator)
        {
            Tensor[] element = iterator.Next();
            string text = string.Join(" ", element.Select(tensor => tensor.ToArray<long>()[0]));
            Tensor.DisposeAll(element);
            return text;
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
            if (!Program.IsMono)
                throw new SkipException("the runtime aborts no threads");
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
