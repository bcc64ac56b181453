// SPDX-License-Identifier: Apache-2.0
using System;
using System.Diagnostics;
using System.Runtime.InteropServices;

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

        // To memory that is new each time, as a batch is, so that its pages are made in both cases.
        private static void MeasurePush()
        {
            const int Rounds = 1000, Elements = 1 << 18;
            var batch = new float[Elements];
            double copied = SecondsOf(() =>
            {
                var kept = new IntPtr[Rounds];
                for (int i = 0; i < Rounds; i++)
                {
                    kept[i] = Marshal.AllocHGlobal(4 * Elements);
                    Marshal.Copy(batch, 0, kept[i], Elements);
                }
                Array.ForEach(kept, Marshal.FreeHGlobal);
            });
            var component = new FeedComponent("x", Role.Feature, DType.Float32, Elements);
            using (var feed = new Feed(Rounds + 1, component))
            using (new Pipeline().AddFeed(feed).Build())
            {
                double pushed = SecondsOf(() =>
                {
                    for (int i = 0; i < Rounds; i++)
                    {
                        using (Tensor tensor = Tensor.From(batch))
                            feed.Push(tensor);
                    }
                });
                Console.WriteLine("push of 1 MB: {0:0.0} us; copy alone: {1:0.0} us", 1e6 * pushed / Rounds,
                    1e6 * copied / Rounds);
            }
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
