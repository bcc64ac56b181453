// SPDX-License-Identifier: Apache-2.0
using System;
using System.Collections.Generic;
using System.Globalization;
using System.IO;
using System.Linq;

namespace Tutti.Tests
{
    // What the library reports, as objects.
    internal static class Reports
    {
        [Test]
        private static void JsonOfEveryKind()
        {
            var all = (Dictionary<string, object>)JsonReader.Read(
                " {\"a\" : [null, true,false, -12, 1.5, 2e3, 9223372036854775807, 0],\r\n\t\"\\u00e9\\n\\\"\": {}} ");
            Check.Same(new[] { "a", "\u00e9\n\"" }, all.Keys);
            var list = (List<object>)all["a"];
            Check.True(list[0] == null && (bool)list[1] && !(bool)list[2], "words");
            Check.Equal(-12L, (long)list[3]);
            Check.Equal(1.5, (double)list[4]);
            Check.Equal(2000.0, (double)list[5]);
            Check.Equal(long.MaxValue, (long)list[6]);
            Check.Equal(0, ((List<object>)JsonReader.Read("[]")).Count);
            Check.Equal("\ud83d\ude00", (string)JsonReader.Read("\"\\ud83d\\ude00\""));
        }

        [Test]
        private static void WhatIsNoJsonIsRefused()
        {
            string[] wrong =
            {
                "", " ", "{", "[1,]", "{\"a\":1,}", "{\"a\" 1}", "{a:1}", "01", "-", "1.", "1e", ".5", "+1", "nul",
                "tru", "\"a", "\"\\x\"", "\"\\u12\"", "\"\n\"", "[1 2]", "1 2", "NaN", "{\"a\":1,\"a\":2}", "]", "'a'",
                new string('[', 100) + new string(']', 100),
            };
            foreach (string text in wrong)
                Check.Throws<FormatException>(() => JsonReader.Read(text));
        }

        // Hooks of the library: progress goes to standard error, metrics to a file.
        [Test]
        private static void HooksOfTheLibrary()
        {
            string file = Path.GetTempFileName();
            File.Delete(file);
            try
            {
                using (Dataset train = Toy.TrainingSet())
                using (var estimator = new Estimator(Toy.Model))
                {
                    estimator.Train(train, new TrainOptions { Steps = 20 }, new[]
                    {
                        Hook.ShowProgress(ProgressStyle.Lines), Hook.WriteMetrics(file, MetricsFormat.Csv, 5),
                    });
                    string[] lines = File.ReadAllLines(file);
                    Check.True(lines[0].StartsWith("event,time,step,epoch,examples_per_second,loss"), lines[0]);
                    Check.Equal(4, lines.Count(line => line.StartsWith("step,")));
                    Check.True(lines.Last().StartsWith("end,"), lines.Last());
                    File.WriteAllText(file, "something else\n");
                    var refused = Check.Throws<TuttiException>(() => estimator.Train(train,
                        new TrainOptions { Steps = 1 }, new[] { Hook.WriteMetrics(file, MetricsFormat.JsonLines, 1) }));
                    Check.Equal(ErrorCode.FailedPrecondition, refused.Code);
                }
            }
            finally
            {
                File.Delete(file);
            }
        }

        [Test]
        private static void OfATraining()
        {
            using (Strategy all = Strategy.Mirrored())
            using (Dataset train = Toy.TrainingSet(), test = Toy.TestSet())
            using (var estimator = new Estimator(Toy.Model, null, all))
            {
                Result result = estimator.Train(train, new TrainOptions { Steps = 20 });
                StepReport steps = result.StepReport;
                Check.True(steps.Steps > 0 && steps.Steps <= 20 && steps.StepSeconds > 0, steps.Json);
                Check.Equal(all.ReplicaCount, steps.ReplicaCount);
                Check.Equal(all.ReplicaCount > 1, steps.Efficiency != null);
                Check.Same(all.Devices, steps.Devices.Select(device => device.Device));
                Check.True(steps.Devices.All(one => Math.Abs(one.Utilisation + one.Idle - 1) < 1e-9), steps.Json);
                InputReport input = result.InputReport;
                Check.Same(new[] { "batch", "repeat", "shuffle" }, input.Stages.Take(3).Select(stage => stage.Name));
                Check.True(input.Stages[0].IsCounted && input.Stages[0].Elements >= 20, input.Json);
                Check.True(input.LimitingStage.Length > 0 && input.Reason.Length > 0, input.Json);
                Check.True(input.Text.Contains("limit: " + input.LimitingStage), input.Text);
                Result evaluated = estimator.Evaluate(test);
                Check.True(evaluated.StepReport == null && evaluated.InputReport == null, "of an evaluation");
                Check.Equal(Reason.Unfinished, evaluated.Reason);
            }
        }

        [Test]
        private static void OfAWalk()
        {
            using (Dataset dataset = Data.Numbers(10).Batch(4).Build())
            using (DatasetIterator iterator = dataset.Iterate())
            {
                Tensor.DisposeAll(iterator.Next());
                InputReport report = iterator.Report();
                Check.Equal("batch", report.Stages[0].Name);
                Check.Equal(1L, report.Stages[0].Elements);
                Check.True(report.ElapsedMilliseconds > 0 && report.Json.StartsWith("{"), report.Json);
            }
        }

        [Test]
        private static void OfMemory()
        {
            using (Dataset dataset = Toy.TrainingSet())
            using (var estimator = new Estimator(Toy.Model))
            {
                MemoryEstimate estimate = estimator.EstimateMemory(dataset, 7);
                Check.Equal(7L, estimate.BatchSize);
                Check.Equal(estimate.Total, estimate.Devices.Sum(device => device.Total));
                DeviceMemory first = estimate.Devices[0];
                Check.Equal(first.Total, first.Weights + first.Slots + first.Gradients + first.Workspace + first.Input +
                    first.Outputs);
                Check.True(first.Weights > 0 && first.Available > 0 && estimate.Fits, estimate.Json);
            }
        }

        [Test]
        private static void OfAPredictor()
        {
            using (Dataset dataset = Toy.TrainingSet())
            using (var estimator = new Estimator(Toy.Model))
            {
                estimator.Train(dataset, new TrainOptions { Steps = 1 });
                using (Predictor predictor = estimator.MakePredictor())
                {
                    Signature signature = predictor.Signature;
                    Check.Equal("x Float32 [-1, 5]", signature.Inputs.Single().ToString());
                    TensorSpec output = signature.Outputs.Single();
                    Check.Equal("class", output.Name);
                    Check.Equal(DType.Int64, output.DType);
                    Check.Same(new long[] { -1 }, output.Dims);
                    PredictionPlan plan = predictor.DescribePlan(8), timed = predictor.DescribePlan(8, 2);
                    Check.Equal("1 8 8", plan.Step + " " + plan.Rows + " " + plan.ComputedRows);
                    Check.True(plan.Kernels.Count > 0 && plan.Kernels.All(kernel => kernel.Kernel != ""), plan.Json);
                    Check.True(plan.Seconds == null && timed.Seconds > 0, timed.Json);
                }
            }
        }

        [Test]
        private static void OfAProfile()
        {
            using (var context = new Context(new ContextOptions { LogicalDevices = 1 }))
            using (Dataset dataset = Toy.Pipeline(context).Batch(8).Build())
            using (var estimator = new Estimator(Toy.Model, null, null, context))
            {
                context.StartProfile();
                estimator.Train(dataset, new TrainOptions { Steps = 3 });
                ProfileReport profile = context.StopProfile();
                Check.True(profile.Steps > 0 && profile.Seconds > 0, profile.Json);
                Check.Equal(1, profile.Devices.Count);
                Check.Equal(1, profile.Replicas.Count);
                Check.True(profile.Devices[0].Kernels > 0 && profile.Replicas[0].StepMilliseconds > 0, profile.Json);
                Check.True(profile.Layers.Any(layer => layer.Layer == "dense"), profile.Json);
                Check.True(profile.Text.Contains("dense"), profile.Text);
            }
        }

        [Test]
        private static void OfDevicesOptionsAndTheBuild()
        {
            IReadOnlyList<DeviceDescription> devices = Context.DescribeDevicesOf(null);
            Check.Same(Context.DevicesOf(null), devices.Select(device => device.Name));
            Check.True(devices.All(device => device.Backend != "" && device.Memory != ""), devices[0].Json);
            OptionKey precision = Library.OptionKeys("run").Single(key => key.Key == "precision");
            Check.Equal("string f32", precision.Type + " " + precision.Default);
            Check.True(precision.Values.Contains("f32") && precision.Minimum == null, precision.Json);
            Check.True(Library.OptionKeys("cluster").Single(key => key.Key == "job_secret").IsSecret, "a secret");
            ResolvedOption seed = new RunOptions { Seed = 7 }.Resolve().Single(option => option.Key == "seed");
            Check.True(seed.IsSet && (long)seed.Value == 7, seed.ToString());
            Check.Equal("(hidden)", (string)new ClusterOptions { JobSecret = "s" }.Resolve()
                .Single(option => option.Key == "job_secret").Value);
            Check.True(Library.BuildInfo.Backends.Contains("reference"), Library.BuildInfo.Json);
        }

        [Test]
        private static void OfADataset()
        {
            using (Dataset single = Toy.Pipeline().Build(), batched = Toy.TestSet())
            {
                Check.Equal("x Float32 [5] Feature, y Int32 [] Label", single.Spec.ToString());
                Check.Equal("x Float32 [-1, 5] Feature, y Int32 [-1] Label", batched.Spec.ToString());
                Check.Equal(0L, single.Spec.BatchSize);
                Check.Equal((long)Toy.BatchSize, batched.Spec.BatchSize);
                Check.Equal(Role.Label, batched.Components[1].Role);
            }
        }

        // What is printed tells the values, not the type, on one line.
        [Test]
        private static void PrintShortly()
        {
            using (Dataset train = Toy.TrainingSet())
            using (var estimator = new Estimator(Toy.Model))
            using (Tensor tensor = Tensor.From(new float[2, 3]))
            {
                Result result = estimator.Train(train, new TrainOptions { Steps = 2 });
                string loss = result.Loss.ToString("G6", CultureInfo.InvariantCulture);
                Check.True(result.ToString().StartsWith("step 2, loss " + loss + ", accuracy "), result.ToString());
                Check.True(result.ToString().EndsWith(" (MaxSteps)"), result.ToString());
                Check.Equal("Tensor Float32 [2, 3]", tensor.ToString());
                Check.Equal("x Float32 [-1, 5] Feature, y Int32 [-1] Label",
                    train.ToString().Replace("Dataset ", ""));
                object[] shown =
                {
                    result.StepReport, result.StepReport.Devices[0], result.InputReport, result.InputReport.Stages[0],
                    estimator.EstimateMemory(train), Context.DescribeDevicesOf(null)[0], Library.BuildInfo,
                    Library.OptionKeys("run")[0], new TrainOptions { Steps = 3 }, estimator,
                };
                foreach (object one in shown)
                {
                    string text = one.ToString();
                    Check.True(text.Length > 4 && !text.StartsWith("Tutti.") && !text.Contains("\n"), text);
                }
                tensor.Dispose();
                Check.Equal("Tensor (closed)", tensor.ToString());
            }
        }
    }
}
