// SPDX-License-Identifier: Apache-2.0
using System;

namespace Tutti.Tests
{
    internal static class ClusterResolvers
    {
        [Test]
        private static void Sources()
        {
            const string Config =
                "{\"cluster\": {\"worker\": [\"c:1\"]}, \"task\": {\"type\": \"worker\", \"index\": 0}}";
            using (ClusterResolver list = ClusterResolver.Of(new[] { "a:2222", "b:2223" }, 1))
            using (ClusterResolver config = ClusterResolver.OfTFConfig(Config))
            using (ClusterResolver tpu = ClusterResolver.OfTpu("mine", "ACCELERATOR_TYPE: 'v5litepod-4'"))
            {
                Check.Equal("2 1", list.WorkerCount + " " + list.WorkerIndex);
                Check.Same(new[] { "a:2222", "b:2223" }, list.Addresses);
                Check.Same(new[] { "c:1" }, config.Addresses);
                Check.True(tpu.ToJson().Contains("\"accelerator_type\":\"v5litepod-4\""), tpu.ToJson());
            }
            Check.Fails(ErrorCode.NotFound, () => ClusterResolver.FromEnvironment());
            Check.Fails(ErrorCode.NotFound, () => ClusterResolver.FromEnvironment("Slurm"));
            Check.Fails(ErrorCode.InvalidArgument, () => ClusterResolver.OfTpu("mine"));
        }

        private static void Refused(ErrorCode code, string text, Action call)
        {
            TuttiException failure = Check.Fails(code, call);
            Check.True(failure.Message.Contains(text), failure.Message);
        }

        // Without a TPU the calls say what to do first, and what there is instead.
        [Test]
        private static void TpuIsNotThere()
        {
            using (ClusterResolver resolver = ClusterResolver.OfTpu("local"))
            using (var context = new Context(new ContextOptions { LogicalDevices = 2, Backend = "reference" }))
            {
                Refused(ErrorCode.FailedPrecondition, "connect first", () => Strategy.Tpu(resolver));
                resolver.Connect();
                Refused(ErrorCode.Unavailable, "the default context has", () => resolver.Initialize());
                Refused(ErrorCode.Unavailable, "TPU", () => resolver.InitializeFromEnvironment());
                Refused(ErrorCode.FailedPrecondition, "initialize first", () => Strategy.Tpu(resolver));
                try
                {
                    resolver.MakeContext();
                    throw new Exception("there is no context yet");
                }
                catch (InvalidOperationException)
                {
                }
                using (Strategy workers = Strategy.MultiWorkerFromResolver(resolver, null, context))
                    Check.Equal("2 1", workers.ReplicaCount + " " + workers.WorkerCount);
            }
        }
    }
}
