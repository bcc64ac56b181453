// SPDX-License-Identifier: Apache-2.0
using System;
using System.Collections.Generic;
using System.Globalization;
using System.Linq;

namespace Tutti.Tests
{
    // What scenarios of loops of one's own do: tests/bindings/scenarios.txt says what the lines mean.
    internal sealed partial class Scenarios
    {
        // A session whose steps are batches of these sizes, which come by a feed.
        private void Loop(long most, long[] sizes)
        {
            Estimator trained = NeedEstimator();
            FeedComponent[] components =
            {
                new FeedComponent("x", Role.Feature, DType.Float32, x.GetLength(1)),
                new FeedComponent("y", Role.Label, DType.Int32),
            };
            string batch = most.ToString(CultureInfo.InvariantCulture);
            int left = sizes.Length;
            Hook atLast = Hook.OnStep(1, e =>
            {
                if (--left == 0)
                    Evaluate(batch);
            });
            using (Feed feed = Feed.OfBatches(context, 2, most, components))
            using (Dataset dataset = new Pipeline(context).AddFeed(feed).Build())
            using (Session session = trained.OpenSession(dataset, MakeTrainOptions(), new[] { atLast }))
            {
                long first = 0;
                foreach (long size in sizes)
                {
                    PushRows(feed, first, size);
                    PrintStep(session.Run(1));
                    using (Tensor output = trained.ReadOutput("y"))
                    {
                        foreach (string row in RowsOf(output))
                            Print($"y {row}");
                    }
                    first += size;
                }
                // While the session is open.
                Evaluate(batch);
                Predict("2");
                Save();
                feed.Finish();
                Result last = session.Run(1), whole = session.Finish();
                string reason = last.Reason == Reason.EndOfInput ? "end of input" : "no end";
                Print($"{reason}, examples {last.Examples} of {whole.Examples}");
            }
        }

        // Rows of the data, over again from the first behind the last.
        private void PushRows(Feed feed, long first, long rows)
        {
            long columns = x.GetLength(1);
            var features = new float[rows, columns];
            var labels = new int[rows];
            for (long i = 0; i < rows; i++)
            {
                long row = (first + i) % y.Length;
                labels[i] = y[row];
                for (long j = 0; j < columns; j++)
                    features[i, j] = x[row, j];
            }
            using (Tensor a = Tensor.From(features))
            using (Tensor b = Tensor.From(labels))
                feed.Push(a, b);
        }

        private void PrintStep(Result result)
        {
            IEnumerable<string> metrics = result.Metrics.OrderBy(metric => metric.Key, StringComparer.Ordinal)
                .Select(metric => string.Format(CultureInfo.InvariantCulture, " {0} {1:F5}", metric.Key, metric.Value));
            Print($"step {result.Step} examples {result.Examples} loss {result.Loss:F5}{string.Concat(metrics)}");
        }
    }
}
