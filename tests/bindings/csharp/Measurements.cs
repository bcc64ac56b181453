// SPDX-License-Identifier: Apache-2.0
using System;
using System.Diagnostics;
using System.Runtime.InteropServices;
using System.Threading;
using System.Threading.Tasks;

namespace Tutti.Tests
{
    // What calls cost; figures for people, not tests.
    internal static class Measurements
    {
        public static int Run()
        {
            MeasureHook();
            MeasurePush();
            MeasureMap();
            MeasureRun();
            return 0;
        }

        private static double SecondsOf(Action action)
        {
            Stopwatch clock = Stopwatch.StartNew();
            action();
            return clock.Elapsed.TotalSeconds;
        }

        // The time of the upcall itself: from one call of a hook to the next one of the same event.
        private static void MeasureHook()
        {
            const int Count = 2000, Hooks = 100;
            using (Dataset dataset = Toy.TrainingSet())
            using (var estimator = new Estimator(Toy.Model))
            {
                var hooks = new Hook[Hooks];
                long first = 0, ticks = 0, calls = 0;
                hooks[0] = Hook.OnStep(1, e => first = Stopwatch.GetTimestamp());
                for (int i = 1; i < Hooks - 1; i++)
                    hooks[i] = Hook.OnStep(1, e => calls++);
                hooks[Hooks - 1] = Hook.OnStep(1, e => ticks += Stopwatch.GetTimestamp() - first);
                estimator.Train(dataset, new TrainOptions { Steps = 200 }, hooks);
                ticks = calls = 0;
                estimator.Train(dataset, new TrainOptions { Steps = Count }, hooks);
                Console.WriteLine("one call of a hook: {0:0.000} us",
                    1e6 * ticks / Stopwatch.Frequency / (calls + Count));
            }
        }

        private const int Capacity = 4, Elements = 1 << 18, Batches = 2000;

        private static void MeasurePush()
        {
            for (int round = 0; round < 5; round++)
            {
                double big = PushSeconds(Elements), copy = CopySeconds(), small = PushSeconds(1);
                Console.WriteLine("1 MB: push {0:0.0} us, copy {1:0.0} us; 4 bytes, for the wake-up: {2:0.0} us",
                    1e6 * big / Batches, 1e6 * copy / Batches, 1e6 * small / Batches);
            }
        }

        // While another thread reads.
        private static double PushSeconds(int elements)
        {
            var batch = new float[elements];
            var component = new FeedComponent("x", Role.Feature, DType.Float32, elements);
            using (var feed = new Feed(Capacity, component))
            using (Dataset dataset = new Pipeline().AddFeed(feed).Build())
            {
                var reader = new Thread(() =>
                {
                    foreach (Tensor[] element in dataset.Elements())
                        Tensor.DisposeAll(element);
                });
                reader.Start();
                double seconds = SecondsOf(() =>
                {
                    for (int i = 0; i < Batches; i++)
                    {
                        using (Tensor tensor = Tensor.From(batch))
                            feed.Push(tensor);
                    }
                });
                feed.Finish();
                reader.Join();
                return seconds;
            }
        }

        // Into one place of a ring after the other, as a feed's batches lie.
        private static double CopySeconds()
        {
            var batch = new float[Elements];
            var ring = new IntPtr[Capacity + 2];
            for (int i = 0; i < ring.Length; i++)
            {
                ring[i] = Marshal.AllocHGlobal(sizeof(float) * Elements);
                Marshal.Copy(batch, 0, ring[i], Elements);
            }
            double seconds = SecondsOf(() =>
            {
                for (int i = 0; i < Batches; i++)
                    Marshal.Copy(batch, 0, ring[i % ring.Length], Elements);
            });
            Array.ForEach(ring, Marshal.FreeHGlobal);
            return seconds;
        }

        // A row, as one call, as one of the pool, and, for comparison, as one on a thread of its own.
        private static void MeasureRun()
        {
            using (Dataset dataset = Toy.TrainingSet())
            using (var estimator = new Estimator(Toy.Model))
            {
                estimator.Train(dataset, new TrainOptions { Steps = 1 });
                using (Predictor predictor = estimator.MakePredictor())
                using (Tensor row = Tensor.From(new float[1, Toy.Columns]))
                {
                    for (int round = 0; round < 3; round++)
                    {
                        Console.WriteLine("one row: Run {0:0.0} us, RunAsync {1:0.0} us, on a new thread {2:0.0} us",
                            MicrosecondsOf(() => Task.FromResult(predictor.Run("x", row))),
                            MicrosecondsOf(() => predictor.RunAsync("x", row)),
                            MicrosecondsOf(() => Task.Factory.StartNew(() => predictor.Run("x", row),
                                TaskCreationOptions.LongRunning)));
                    }
                }
            }
        }

        private static double MicrosecondsOf(Func<Task<Batch>> call)
        {
            const int Count = 2000;
            return 1e6 / Count * SecondsOf(() => Await(call, Count).Wait());
        }

        private static async Task Await(Func<Task<Batch>> call, int count)
        {
            for (int i = 0; i < count; i++)
                (await call()).Dispose();
        }

        private static void MeasureMap()
        {
            const int Count = 20000;
            using (Dataset dataset = Data.Numbers(Count).Map(element => element, 1).Build())
            {
                double seconds = SecondsOf(() =>
                {
                    foreach (Tensor[] element in dataset.Elements())
                        Tensor.DisposeAll(element);
                });
                Console.WriteLine("one element of a map: {0:0.0} us", 1e6 * seconds / Count);
            }
        }
    }
}
