// SPDX-License-Identifier: Apache-2.0
using System;
using System.Collections.Generic;

namespace Tutti
{
    /// <summary>On which devices a model runs. The model that training gives does not depend on it; only the time
    /// does. Immutable; may be shared.</summary>
    public sealed class Strategy : NativeObject
    {
        private static readonly Kind StrategyKind = new Kind("Strategy", Raw.strategy_unref);

        private Strategy(IntPtr number) : base(new Handle(StrategyKind, number))
        {
        }

        /// <summary>Everything on one device, such as "cpu:0"; null = the context's first.</summary>
        public static Strategy OneDevice(string device = null, Context context = null)
        {
            using (var use = new Uses())
            {
                IntPtr number, failure;
                Errors.Check(Raw.strategy_create_one_device(use.Of(context), device, out number, out failure), failure);
                return new Strategy(number);
            }
        }

        /// <summary>The devices that train fastest, as far as the library can tell: one replica on each GPU or other
        /// device with memory of its own; without such devices one with one thread on each processor core, or, if a
        /// batch has fewer than 32 rows for each of them, fewer replicas with more threads each. batchSize is the
        /// number of rows of a global batch; 0 = not known. The choice is logged with its reason.</summary>
        public static Strategy Auto(long batchSize = 0, Context context = null)
        {
            using (var use = new Uses())
            {
                IntPtr number, failure;
                Errors.Check(Raw.strategy_create_auto(use.Of(context), batchSize, out number, out failure), failure);
                return new Strategy(number);
            }
        }

        /// <summary>One replica on each device, kept equal; null = on all devices of the context. Devices of several
        /// backends, such as those of a context whose Backend is "cuda,cpu", predict and evaluate together, however
        /// much their speeds differ; they do not train.</summary>
        public static Strategy Mirrored(IReadOnlyList<string> devices = null, Context context = null)
        {
            using (var use = new Uses())
            {
                IntPtr number, failure;
                byte[] texts = Text.Joined(devices ?? new string[0]);
                long count = devices == null ? 0 : devices.Count;
                Errors.Check(Raw.strategy_create_mirrored(use.Of(context), texts, texts.Length, count, out number,
                    out failure), failure);
                return new Strategy(number);
            }
        }

        /// <summary>One replica on each device, as mirrored; but variables, optimizer slots and averages are stored in
        /// one place, and updated there once per step: on the device <paramref name="storage"/>, such as "cpu:0", or if
        /// that is null on the first of <paramref name="devices"/>. It needs less memory on the other devices, and more
        /// time; see tutti/strategy.h. Devices null = every GPU of the context, or every device if it has
        /// none.</summary>
        public static Strategy CentralStorage(string storage = null, IReadOnlyList<string> devices = null,
            Context context = null)
        {
            using (var use = new Uses())
            {
                IntPtr number, failure;
                byte[] texts = Text.Joined(devices ?? new string[0]);
                long count = devices == null ? 0 : devices.Count;
                Errors.Check(Raw.strategy_create_central_storage(use.Of(context), storage, texts, texts.Length, count,
                    out number, out failure), failure);
                return new Strategy(number);
            }
        }

        /// <summary>Several processes, each with the same strategy but for its number: P workers with k devices each
        /// give the weights that one process gives with P * k. See tutti/strategy.h for what all must have in
        /// common. Workers may have devices of several backends, and others than each other; these predict and
        /// evaluate, and do not train.</summary>
        public static Strategy MultiWorker(ClusterOptions options, Context context = null)
        {
            using (var use = new Uses())
            using (var native = new NativeOptions(options))
            {
                IntPtr number, failure;
                Errors.Check(Raw.strategy_create_multi_worker(use.Of(context), native.Number, out number, out failure),
                    failure);
                return new Strategy(number);
            }
        }

        /// <summary>The same where the launcher (TF_CONFIG, torchrun, mpirun, srun) says who the workers
        /// are.</summary>
        public static Strategy MultiWorkerFromEnvironment(ClusterOptions options = null, Context context = null)
        {
            using (var use = new Uses())
            using (var native = new NativeOptions(options ?? new ClusterOptions()))
            {
                IntPtr number, failure;
                Errors.Check(Raw.strategy_create_multi_worker_from_environment(use.Of(context), native.Number,
                    out number, out failure), failure);
                return new Strategy(number);
            }
        }

        /// <summary>The same with the workers of a resolver; options without Workers and Worker.</summary>
        public static Strategy MultiWorkerFromResolver(ClusterResolver resolver, ClusterOptions options = null,
            Context context = null)
        {
            using (var use = new Uses())
            using (var native = new NativeOptions(options ?? new ClusterOptions()))
            {
                IntPtr number, failure;
                Errors.Check(Raw.strategy_create_multi_worker_from_resolver(use.Of(context), use.Of(resolver),
                    native.Number, out number, out failure), failure);
                return new Strategy(number);
            }
        }

        /// <summary>TPUs, or other devices with a PJRT plug-in: mirrored over the devices of this worker, and over the
        /// workers of a resolver that was connected and initialized. Its context has the devices.</summary>
        public static Strategy Tpu(ClusterResolver resolver)
        {
            using (var use = new Uses())
            {
                IntPtr number, failure;
                Errors.Check(Raw.strategy_create_tpu(use.Of(resolver), out number, out failure), failure);
                return new Strategy(number);
            }
        }

        /// <summary>The number of replicas of all workers.</summary>
        public long ReplicaCount
        {
            get
            {
                using (var use = new Uses())
                    return Raw.strategy_get_replica_count(use.Of(this));
            }
        }

        /// <summary>The most rows of a batch of so many rows that a replica gets.</summary>
        public long PerReplicaBatchSize(long globalBatchSize)
        {
            using (var use = new Uses())
                return Raw.strategy_get_per_replica_batch_size(use.Of(this), globalBatchSize);
        }

        /// <summary>Makes a dataset of batches for the replicas of this strategy. Estimators of the strategy take it
        /// like the dataset, and do not distribute it twice; its iterators also give the pieces of the replicas. If the
        /// strategy divides datasets among workers (ClusterOptions.WorkerInput), it is the part of this one.</summary>
        public Dataset Distribute(Dataset dataset)
        {
            using (var use = new Uses())
            {
                IntPtr number, failure;
                Errors.Check(Raw.strategy_distribute_dataset(use.Of(this), use.Need(dataset, "dataset"), out number,
                    out failure), failure);
                return new Dataset(number);
            }
        }

        /// <summary>The number of processes that train together; 1 unless the strategy is one of several.</summary>
        public long WorkerCount
        {
            get
            {
                using (var use = new Uses())
                    return Raw.strategy_get_worker_count(use.Of(this));
            }
        }

        /// <summary>The number of this process among the workers.</summary>
        public long WorkerIndex
        {
            get
            {
                using (var use = new Uses())
                    return Raw.strategy_get_worker_index(use.Of(this));
            }
        }

        /// <summary>The devices of the replicas of this process.</summary>
        public IReadOnlyList<string> Devices
        {
            get
            {
                using (var use = new Uses())
                {
                    IntPtr number = use.Of(this);
                    var devices = new List<string>();
                    long count = Raw.strategy_get_replica_count(number) / Raw.strategy_get_worker_count(number);
                    for (long i = 0; i < count; i++)
                        devices.Add(Raw.strategy_get_device(number, i));
                    return devices;
                }
            }
        }

        internal override string Describe()
        {
            return " on " + string.Join(", ", Devices);
        }

        /// <summary>How many inputs the run reads. What a process reads is shared among all of its replicas:
        /// <see cref="Pipeline.Shard"/> by this number and <see cref="InputPipelineId"/>, before shuffle and batch,
        /// gives each element to exactly one process. Sharding by the number of replicas would lose elements. 1 unless
        /// workers have input of their own.</summary>
        public long InputPipelineCount
        {
            get
            {
                using (var use = new Uses())
                    return Raw.strategy_get_input_pipeline_count(use.Of(this));
            }
        }

        /// <summary>Which of the inputs this process reads; see <see cref="InputPipelineCount"/>.</summary>
        public long InputPipelineId
        {
            get
            {
                using (var use = new Uses())
                    return Raw.strategy_get_input_pipeline_id(use.Of(this));
            }
        }

        /// <summary>Makes a context whose default strategy is this one: what is made from it uses the strategy without
        /// being told.</summary>
        public Context MakeContext()
        {
            using (var use = new Uses())
            {
                IntPtr context = Raw.strategy_get_context(use.Of(this));
                Raw.context_ref(context);
                return new Context(context);
            }
        }
    }
}
