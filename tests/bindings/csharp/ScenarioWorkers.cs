// SPDX-License-Identifier: Apache-2.0
using System;
using System.Collections.Generic;
using System.Diagnostics;
using System.Globalization;
using System.IO;
using System.Linq;
using System.Text;
using System.Threading;

namespace Tutti.Tests
{
    // What scenarios of several workers do: tests/bindings/workers.txt says what the lines mean.
    internal sealed partial class Scenarios
    {
        private string[] input = new string[0]; // transforms of all data before the batches
        private string[] fault; // worker, step and what; null: none

        // Tests.exe scenarios FILE: does them as one of several processes.
        public static int RunAsWorker(string path)
        {
            var output = new StreamWriter(Console.OpenStandardOutput(), new UTF8Encoding(false)) { AutoFlush = true };
            using (var scenarios = new Scenarios(output.WriteLine))
            {
                foreach (string line in File.ReadAllLines(path))
                    scenarios.Read(line);
            }
            Check.Equal(0L, Library.LiveObjects(), "objects are left");
            return 0;
        }

        private void UseWorkers(long devices, bool ownInput)
        {
            UseContext(devices);
            input = ownInput ? new[] { "shard" } : new string[0];
            var options = new ClusterOptions
            {
                ConnectTimeoutMs = 30000,
                WorkerInput = ownInput ? WorkerInput.Own : WorkerInput.Whole,
            };
            strategy = Strategy.MultiWorkerFromEnvironment(options, context);
        }

        private void PrintCluster()
        {
            string read = $"input {strategy.InputPipelineId} of {strategy.InputPipelineCount}";
            Print($"worker {strategy.WorkerIndex} of {strategy.WorkerCount}, replicas {strategy.ReplicaCount}, {read}");
        }

        // The hook that makes the scenario's fault happen.
        private void HaveFault(HookEvent happened)
        {
            if (fault == null || happened.Step != Number(fault[1]) || strategy.WorkerIndex != Number(fault[0]))
                return;
            if (fault[2] == "kill")
                Process.GetCurrentProcess().Kill();
            if (fault[2] != "fail")
                Thread.Sleep(TimeSpan.FromSeconds(100));
            throw new TuttiException(ErrorCode.DataLoss, "the hook is broken");
        }

        private Dataset FirstRows(string rows)
        {
            return MakeDataset(new[] { "take", rows }.Concat(input).Concat(new[] { "batch", "3" }).ToArray());
        }

        private void PredictOwn(string rows)
        {
            var seen = new SortedDictionary<string, List<string>>(StringComparer.Ordinal);
            Estimator trained = NeedEstimator();
            using (Dataset dataset = FirstRows(rows))
            using (Predictor predictor = trained.MakePredictor(new PredictorOptions { WorkerRows = WorkerRows.Own }))
            {
                foreach (Batch batch in predictor.Predict(dataset))
                {
                    using (batch)
                        KeepRows(batch, seen);
                }
            }
            foreach (string line in seen.SelectMany(output => output.Value))
                Print($"{line}");
        }

        // By output: its name, the position of a row and its numbers.
        private static void KeepRows(Batch batch, IDictionary<string, List<string>> seen)
        {
            foreach (string name in batch.Names)
            {
                if (!seen.ContainsKey(name))
                    seen[name] = new List<string>();
                seen[name].AddRange(RowsOf(batch, name).Select((row, i) => $"{name} {batch.FirstRow + i} {row}"));
            }
        }

        private void Leave(long worker, long batches, string rows)
        {
            long seen = 0;
            Estimator trained = NeedEstimator();
            try
            {
                using (Dataset dataset = FirstRows(rows))
                using (Predictor predictor = trained.MakePredictor())
                using (PredictionStream stream = predictor.OpenStream(dataset))
                {
                    for (long read = 0; read != batches || strategy.WorkerIndex != worker; read++)
                    {
                        using (Batch batch = stream.Next())
                        {
                            if (batch == null)
                                break;
                            seen += batch.RowCount;
                        }
                    }
                }
            }
            finally
            {
                Print($"rows {seen}");
            }
        }

        private void PrintChecksum(string name)
        {
            ulong sum = 0;
            using (Tensor tensor = NeedEstimator().ReadVariable(name))
            {
                foreach (float value in tensor.ToArray<float>())
                    sum = unchecked(sum * 1000003 + BitConverter.ToUInt32(BitConverter.GetBytes(value), 0));
            }
            Print($"bits {sum.ToString("x16", CultureInfo.InvariantCulture)}");
        }

        private bool RunOnWorkers(string[] words)
        {
            switch (words[0])
            {
                case "workers":
                    UseWorkers(Number(words[2]), words.Length > 3);
                    return true;
                case "fault":
                    fault = words.Skip(1).ToArray();
                    return true;
                case "cluster":
                    PrintCluster();
                    return true;
                case "predict_own":
                    PredictOwn(words[1]);
                    return true;
                case "leave":
                    Leave(Number(words[1]), Number(words[2]), words[3]);
                    return true;
                case "checksum":
                    PrintChecksum(words[1]);
                    return true;
                default:
                    return false;
            }
        }
    }
}
