// SPDX-License-Identifier: Apache-2.0
using System;
using System.Collections.Generic;

namespace Tutti.Tests
{
    internal static class InputFunctions
    {
        [Test]
        private static void ParamsReachTheFunctions()
        {
            var said = new List<string>();
            ModelFunction model = (graph, mode) =>
            {
                said.Add(graph.Params);
                Toy.Model(graph, mode);
            };
            using (var context = new Context(new ContextOptions { LogicalDevices = 2, Backend = "reference" }))
            using (Strategy both = Strategy.Mirrored(null, context))
            using (var estimator = new Estimator(model, new RunOptions { Params = "7" }, null, context))
            {
                Func<InputContext, Dataset> rows = input =>
                {
                    said.Add(input.InputPipelineId + " of " + input.InputPipelineCount);
                    return Toy.Pipeline(context).Batch(long.Parse(input.Params)).Build();
                };
                estimator.TrainFrom(rows, new TrainOptions { Steps = 3 });
                double alone = estimator.EvaluateFrom(rows).Loss;
                estimator.SetEvaluationStrategy(both);
                Check.True(Math.Abs(alone - estimator.EvaluateFrom(rows).Loss) < 1e-6, "the loss on two devices");
                estimator.SetEvaluationStrategy(null);
                Check.Equal(alone, estimator.EvaluateFrom(rows).Loss);
                using (Dataset whole = Toy.Pipeline(context).Batch(7).Build())
                using (Dataset pieces = both.Distribute(whole))
                using (DatasetIterator iterator = pieces.Iterate())
                {
                    Tensor[] element = iterator.Next(), first = iterator.Piece(0), second = iterator.Piece(1);
                    Check.Equal("4 3", first[1].Dims[0] + " " + second[1].Dims[0]);
                    Check.Equal(4L, both.PerReplicaBatchSize(7));
                    Check.Fails(ErrorCode.InvalidArgument, () => iterator.Piece(2));
                    foreach (Tensor[] tensors in new[] { element, first, second })
                        Array.ForEach(tensors, tensor => tensor.Dispose());
                }
                Check.Same(new[] { "0 of 1", "7", "0 of 1", "7", "0 of 1", "0 of 1" }, said);
            }
        }
    }
}
