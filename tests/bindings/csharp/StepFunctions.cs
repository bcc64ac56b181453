// SPDX-License-Identifier: Apache-2.0
using System;
using System.Linq;

namespace Tutti.Tests
{
    internal static class StepFunctions
    {
        private static ReplicaValues Run(Session session, string name, int rows)
        {
            var x = new float[rows, Toy.Columns];
            Array.Copy(Toy.X, x, x.Length);
            using (Tensor features = Tensor.From(x.Cast<float>().ToArray(), rows, Toy.Columns))
            using (Tensor labels = Tensor.From(Toy.Y.Take(rows).ToArray()))
                return session.RunStepFunction(name, features, labels);
        }

        [Test]
        private static void ALoopOfSeveralFunctions()
        {
            using (var context = new Context(new ContextOptions { LogicalDevices = 2, Backend = "reference" }))
            using (Strategy both = Strategy.Mirrored(null, context))
            using (var estimator = new Estimator(Toy.Model, null, both, context))
            using (Dataset dataset = Toy.Pipeline(context).Batch(Toy.BatchSize).Build())
            {
                estimator.AddStepFunction("again", Mode.Train, Toy.Model);
                estimator.AddStepFunction("probe", Mode.Predict, Toy.Model, dataset);
                using (Session session = estimator.OpenSession(dataset))
                {
                    session.Run(1);
                    using (ReplicaValues again = Run(session, "again", 5))
                    {
                        Check.Equal("2 5", again.Result.Step + " " + again.Result.Examples);
                        Check.True(again.Result.Loss > 0, "the loss of the step");
                    }
                    using (ReplicaValues probe = Run(session, "probe", 7))
                        CheckValues(probe);
                    using (ReplicaValues even = Run(session, "probe", 4))
                    using (Tensor sum = even.SumAcrossReplicas("class"))
                    using (Tensor mean = even.MeanAcrossReplicas("class"))
                    using (Tensor whole = even.Gather("class"))
                    {
                        long[] all = whole.ToArray<long>();
                        Check.Same(new[] { all[0] + all[2], all[1] + all[3] }, sum.ToArray<long>());
                        Check.Equal((all[0] + all[2]) / 2.0, mean.ToArray<double>()[0]);
                    }
                    Check.Fails(ErrorCode.NotFound, () => Run(session, "prob", 2));
                }
            }
        }

        private static void CheckValues(ReplicaValues probe)
        {
            Check.Equal("2 class", probe.ReplicaCount + " " + string.Join(",", probe.Names));
            Check.True(double.IsNaN(probe.Result.Loss), "a step without a loss");
            Check.True(probe.GetLocal("class", 2) == null, "there is no third replica");
            using (Tensor whole = probe.Gather("class"))
            using (Tensor sum = probe.Sum("class", 0))
            using (Tensor mean = probe.Mean("class", 0))
            using (Tensor first = probe.GetLocal("class", 0))
            {
                long total = whole.ToArray<long>().Sum();
                Check.Equal("7 4", whole.Dims[0] + " " + first.Dims[0]);
                Check.Equal(total, sum.ToArray<long>()[0]);
                Check.Equal(total / 7.0, mean.ToArray<double>()[0]);
            }
            Check.Fails(ErrorCode.InvalidArgument, () => probe.SumAcrossReplicas("class"));
        }
    }
}
