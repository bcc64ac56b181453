// SPDX-License-Identifier: Apache-2.0
using System;
using System.Collections.Generic;

namespace Tutti
{
    /// <summary>Which processes ("workers") train a model together, and which of them this one is. All sources give the
    /// same object, which <see cref="Strategy.MultiWorkerFromResolver"/> takes.
    ///
    /// TPUs are used in four calls, each of which throws before the one in front of it was made:
    /// <see cref="OfTpu"/> says which machines the TPUs are attached to, <see cref="Connect"/> lets the workers meet,
    /// <see cref="Initialize(ContextOptions)"/> opens the library for TPUs and finds their devices, and
    /// <see cref="Strategy.Tpu"/> makes a strategy over them, whose context has them.</summary>
    public sealed class ClusterResolver : NativeObject
    {
        private static readonly Kind ResolverKind = new Kind("ClusterResolver", Raw.cluster_resolver_unref);

        private delegate int Create(out IntPtr number, out IntPtr failure);

        private ClusterResolver(IntPtr number) : base(new Handle(ResolverKind, number))
        {
        }

        private static ClusterResolver Make(Create create)
        {
            Library.Load();
            IntPtr number, failure;
            Errors.Check(create(out number, out failure), failure);
            return new ClusterResolver(number);
        }

        /// <summary>A cluster of the workers with these addresses, "host:port", of which this process is the one at the
        /// index.</summary>
        public static ClusterResolver Of(IReadOnlyList<string> workers, long index)
        {
            string joined = string.Join(",", workers);
            return Make((out IntPtr number, out IntPtr failure) =>
                Raw.cluster_resolver_create_list(joined, index, out number, out failure));
        }

        /// <summary>The cluster of a TF_CONFIG variable with this text. Errors name the key.</summary>
        public static ClusterResolver OfTFConfig(string text)
        {
            return Make((out IntPtr number, out IntPtr failure) =>
                Raw.cluster_resolver_create_tf_config(text, out number, out failure));
        }

        /// <summary>What a launcher has set in the environment: "TF_CONFIG", "torchrun", "mpirun", "Slurm" or "GKE";
        /// null = the first of these that is there.</summary>
        public static ClusterResolver FromEnvironment(string launcher = null)
        {
            return Make((out IntPtr number, out IntPtr failure) =>
                Raw.cluster_resolver_create_from_environment(launcher, out number, out failure));
        }

        /// <summary>The workers of a TPU: "local" for the chips of this machine, addresses such as
        /// "grpc://192.0.2.2:8470", or a name, whose workers are in the metadata of its machines;
        /// tutti/cluster_resolver.h says what these look like. Nothing is requested over the network.</summary>
        public static ClusterResolver OfTpu(string tpu, string metadata = "")
        {
            return Make((out IntPtr number, out IntPtr failure) =>
                Raw.cluster_resolver_create_tpu(tpu, metadata, out number, out failure));
        }

        /// <summary>The number of workers.</summary>
        public long WorkerCount
        {
            get
            {
                using (var use = new Uses())
                    return Raw.cluster_resolver_get_worker_count(use.Of(this));
            }
        }

        /// <summary>The number of this process among the workers; 0 for an evaluator.</summary>
        public long WorkerIndex
        {
            get
            {
                using (var use = new Uses())
                    return Raw.cluster_resolver_get_worker_index(use.Of(this));
            }
        }

        /// <summary>The addresses of the workers, "host:port"; "" where the launcher tells only that of worker
        /// 0.</summary>
        public IReadOnlyList<string> Addresses
        {
            get
            {
                using (var use = new Uses())
                {
                    IntPtr number = use.Of(this);
                    var addresses = new List<string>();
                    for (long w = 0; w < Raw.cluster_resolver_get_worker_count(number); w++)
                        addresses.Add(Raw.cluster_resolver_get_address(number, w));
                    return addresses;
                }
            }
        }

        /// <summary>All that is known, as a JSON object.</summary>
        public string ToJson()
        {
            using (var use = new Uses())
                return Raw.cluster_resolver_get_json(use.Of(this));
        }

        /// <summary>The workers meet: returns when all have called it. Options are those of a strategy of several
        /// workers, without Workers and Worker; null = defaults. An error names the worker that does not come. A worker
        /// alone opens no connection.</summary>
        public void Connect(ClusterOptions options = null)
        {
            using (var use = new Uses())
            using (var native = new NativeOptions(options ?? new ClusterOptions()))
            {
                IntPtr failure;
                Errors.Check(Raw.cluster_resolver_connect(use.Of(this), native.Number, out failure), failure);
            }
        }

        /// <summary>Opens the library that the option PjrtPlugin names, such as libtpu.so, and finds the devices of
        /// this worker. Without a TPU, or its library, the exception has the code Unavailable and says what there is
        /// instead.</summary>
        public void Initialize(ContextOptions options = null)
        {
            Initialize(options, false);
        }

        /// <summary>The same with the library that the environment variable TPU_LIBRARY_PATH names, unless options name
        /// one.</summary>
        public void InitializeFromEnvironment(ContextOptions options = null)
        {
            Initialize(options, true);
        }

        private void Initialize(ContextOptions options, bool readsEnvironment)
        {
            using (var use = new Uses())
            using (var native = new NativeOptions(options ?? new ContextOptions()))
            {
                if (readsEnvironment)
                    Raw.options_set_from_environment(native.Number);
                IntPtr failure;
                Errors.Check(Raw.cluster_resolver_initialize(use.Of(this), native.Number, out failure), failure);
            }
        }

        /// <summary>A context with the devices of this worker.</summary>
        public Context MakeContext()
        {
            using (var use = new Uses())
            {
                IntPtr context = Raw.cluster_resolver_get_context(use.Of(this));
                if (context == IntPtr.Zero)
                    throw new InvalidOperationException("the cluster resolver is not initialized");
                Raw.context_ref(context);
                return new Context(context);
            }
        }

        internal override string Describe()
        {
            return " " + ToJson();
        }
    }
}
