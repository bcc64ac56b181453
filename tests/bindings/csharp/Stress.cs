// SPDX-License-Identifier: Apache-2.0
using System;
using System.Collections.Generic;
using System.Diagnostics;
using System.IO;
using System.Linq;
using System.Runtime.CompilerServices;
using System.Threading;
using System.Threading.Tasks;

namespace Tutti.Tests
{
    internal static class Stress
    {
        private static readonly bool Long = Environment.GetEnvironmentVariable("TUTTI_TEST_LONG") != null;

        // Runs something while a thread collects without pause.
        private static void WhileCollecting(Action action)
        {
            bool done = false;
            var collector = new Thread(() =>
            {
                while (!Volatile.Read(ref done))
                    GC.Collect();
            });
            collector.Start();
            try
            {
                action();
            }
            finally
            {
                Volatile.Write(ref done, true);
                collector.Join();
            }
        }

        private static void ReadOrFindClosed(Tensor tensor)
        {
            try
            {
                Check.Equal(1000, tensor.ToArray<float>().Length);
            }
            catch (ObjectDisposedException)
            {
                return;
            }
        }

        [Test(Forgets = true)]
        private static void ClosingRaces()
        {
            using (Dataset dataset = Toy.TestSet())
            {
                WhileCollecting(() => Parallel.For(0, 200, new ParallelOptions { MaxDegreeOfParallelism = 8 }, round =>
                {
                    Tensor tensor = Tensor.From(new float[1000]);
                    Parallel.Invoke(() => ReadOrFindClosed(tensor), () => ReadOrFindClosed(tensor), tensor.Dispose);
                    DatasetIterator iterator = dataset.Iterate(round);
                    Check.Equal(2, iterator.Next().Length);
                }));
            }
        }

        [Test]
        private static void CallbacksUnderTheCollector()
        {
            using (Dataset dataset = Toy.Pipeline().Shuffle(Toy.Rows).Repeat().Map(element =>
            {
                GC.Collect(0);
                return element.Select(t => t.DType == DType.Float32 ? Tensor.From(t.ToArray<float>()) : t).ToArray();
            }, 2).Batch(4).Build())
            using (var estimator = new Estimator((g, mode) =>
            {
                GC.Collect();
                Toy.Model(g, mode);
                GC.Collect();
            }))
            {
                long steps = 0;
                Hook[] hooks = { Hook.OnStep(1, e =>
                {
                    GC.Collect();
                    steps++;
                }) };
                WhileCollecting(() => estimator.Train(dataset, new TrainOptions { Steps = 30 }, hooks));
                Check.Equal(30L, steps);
            }
        }

        [Test]
        private static void CancellingAtAnyMoment()
        {
            using (Dataset dataset = Toy.TrainingSet())
            using (var estimator = new Estimator(Toy.Model))
            {
                for (int i = 0; i < 30; i++)
                {
                    using (var source = new CancellationTokenSource())
                    {
                        Task<Result> training = estimator.TrainAsync(dataset, null, new[] { Hook.OnStep(1, e => { }) },
                            source.Token);
                        Thread.SpinWait(i * 20000);
                        source.Cancel();
                        Check.Throws<AggregateException>(() => training.Wait(Program.Deadline));
                        Check.True(training.IsCanceled, training.Status.ToString());
                    }
                }
                estimator.Train(dataset, new TrainOptions { Steps = 2 });
            }
        }

        // The model function and the hook hold the estimator that holds them: the collector takes the ring.
        [MethodImpl(MethodImplOptions.NoInlining)]
        private static WeakReference[] Ring(bool close)
        {
            object model = new byte[1 << 20], hook = new byte[1 << 20];
            Estimator estimator = null;
            estimator = new Estimator((g, mode) =>
            {
                GC.KeepAlive(model);
                Toy.Model(g, mode);
            });
            using (Dataset dataset = Toy.TrainingSet())
            {
                Hook[] hooks = { Hook.OnStep(1, e => GC.KeepAlive(hook)) };
                estimator.Train(dataset, new TrainOptions { Steps = 1 }, hooks);
            }
            if (close)
                estimator.Dispose();
            return new[] { new WeakReference(model), new WeakReference(hook) };
        }

        [Test(Forgets = true)]
        private static void CallbacksAreReleased()
        {
            foreach (bool close in new[] { true, false })
            {
                // Several, and in another thread, for stacks are read with caution: one may seem to be held.
                var all = new List<WeakReference>();
                var thread = new Thread(() =>
                {
                    for (int i = 0; i < 10; i++)
                        all.AddRange(Ring(close));
                });
                thread.Start();
                thread.Join();
                Check.Eventually(() =>
                {
                    GC.Collect();
                    GC.WaitForPendingFinalizers();
                    return all.Count(reference => reference.IsAlive) <= 4;
                }, "callbacks are held, closed: " + close);
            }
        }

        private static long ResidentBytes()
        {
            return long.Parse(File.ReadAllText("/proc/self/statm").Split(' ')[1]) * Environment.SystemPageSize;
        }

        [Test(Forgets = true)]
        private static void ForgottenTensorsDoNotPileUp()
        {
            long most = 0;
            for (int i = 0; i < 400; i++)
            {
                Tensor.Zeros(DType.Float32, 1 << 20); // 4 MB each, never closed: 1.6 GB in all
                most = Math.Max(most, Library.LiveObjects("tensor"));
            }
            Check.True(most < 250, most + " tensors of 4 MB at a time");
        }

        private static void MakeMany(int rounds)
        {
            for (int i = 0; i < rounds; i++)
            {
                Tensor tensor = Tensor.From(new long[] { 1, 2, 3 });
                if (i % 2 == 0)
                    tensor.Dispose();
                new Pipeline();
            }
        }

        [Test(Forgets = true)]
        private static void ManyObjectsLeaveNothing()
        {
            MakeMany(20000);
            GC.Collect();
            long before = ResidentBytes();
            MakeMany(100000);
            GC.Collect();
            long grown = ResidentBytes() - before;
            Check.True(grown < 128 << 20, grown + " bytes more");
        }

        // Steps with temporaries that nobody closes: 10^4, or 10^6 with TUTTI_TEST_LONG.
        [Test(Forgets = true)]
        private static void StepsWithTemporaries()
        {
            long first = Long ? 100000 : 2000, steps = Long ? 1000000 : 10000, before = 0;
            using (Dataset dataset = Toy.TrainingSet())
            using (var estimator = new Estimator(Toy.Model))
            {
                Hook[] hooks = { Hook.OnStep(1, e =>
                {
                    Check.Equal(3, estimator.ReadVariable("dense_1/bias").ToArray<float>().Length);
                    if (e.Step == first)
                        before = ResidentBytes();
                }) };
                estimator.Train(dataset, new TrainOptions { Steps = steps }, hooks);
            }
            long grown = ResidentBytes() - before;
            Check.True(grown < 128 << 20, grown + " bytes more");
        }

        public static int TrainAndLeave()
        {
            var begun = new ManualResetEventSlim();
            Tensor.Wrap(new long[1000]); // whose memory a thread awaits
            Dataset dataset = Toy.Pipeline().Repeat().Map(element => element, 2).Batch(4).Build();
            var estimator = new Estimator(Toy.Model);
            estimator.TrainAsync(dataset, null, new[] { Hook.OnStep(3, e => begun.Set()) });
            return begun.Wait(Program.Deadline) ? 0 : 1;
        }

        // The process may end while training runs, a map computes and memory is lent.
        [Test]
        private static void ExitWhileTraining()
        {
            for (int i = 0; i < 3; i++)
            {
                string[] command = Program.Command("exit-while-training");
                var start = new ProcessStartInfo(command[0], "\"" + command[1] + "\" " + command[2])
                {
                    UseShellExecute = false, RedirectStandardError = true,
                };
                using (Process process = Process.Start(start))
                {
                    string said = process.StandardError.ReadToEnd();
                    Check.True(process.WaitForExit((int)Program.Deadline.TotalMilliseconds), "it ends");
                    Check.Equal(0, process.ExitCode, said);
                }
            }
        }
    }
}
