// SPDX-License-Identifier: Apache-2.0
using System;
using System.Collections.Generic;

namespace Tutti
{
    /// <summary>What a step function gave in one step: its loss and metrics, and for each of its outputs the rows of
    /// each replica's piece of the batch. It does not change with later steps.</summary>
    public sealed class ReplicaValues : NativeObject
    {
        private static readonly Kind ValuesKind = new Kind("ReplicaValues", Raw.replica_values_unref);

        internal ReplicaValues(IntPtr number, Result result) : base(new Handle(ValuesKind, number))
        {
            Result = result;
        }

        /// <summary>Loss, metrics, and the rows of the step.</summary>
        public Result Result { get; }

        /// <summary>The number of replicas of this process.</summary>
        public long ReplicaCount
        {
            get
            {
                using (var use = new Uses())
                    return Raw.replica_values_get_replica_count(use.Of(this));
            }
        }

        /// <summary>The names of the outputs.</summary>
        public IReadOnlyList<string> Names
        {
            get
            {
                using (var use = new Uses())
                {
                    IntPtr number = use.Of(this);
                    var names = new string[Raw.replica_values_get_output_count(number)];
                    for (int i = 0; i < names.Length; i++)
                        names[i] = Raw.replica_values_get_output_name(number, i);
                    return names;
                }
            }
        }

        /// <summary>The rows of an output that one replica of this process had, without a copy; null when it had none,
        /// and when there is no such output or replica.</summary>
        public Tensor GetLocal(string output, long replica)
        {
            using (var use = new Uses())
            {
                IntPtr tensor = Raw.replica_values_get_local(use.Of(this), output, replica);
                return tensor == IntPtr.Zero ? null : Tensor.Shared(tensor);
            }
        }

        /// <summary>An output of all replicas of all workers, one behind the other along an axis, in the order of the
        /// batch. With several workers all of them make this call at the same point, as they do the sums and
        /// means.</summary>
        public Tensor Gather(string output, long axis = 0)
        {
            using (var use = new Uses())
            {
                IntPtr tensor, failure;
                Errors.Check(Raw.replica_values_gather(use.Of(this), output, axis, out tensor, out failure), failure);
                return new Tensor(tensor);
            }
        }

        /// <summary>The sum of an output over an axis, which the sum does not have any more, and over all
        /// replicas.</summary>
        public Tensor Sum(string output, long axis)
        {
            return Reduce(output, Raw.REDUCE_SUM, axis);
        }

        /// <summary>The mean of an output over an axis and over all replicas: over axis 0 every row counts once. That
        /// of integers is of type <see cref="DType.Float64"/>.</summary>
        public Tensor Mean(string output, long axis)
        {
            return Reduce(output, Raw.REDUCE_MEAN, axis);
        }

        /// <summary>The sum of what the replicas have, element by element; their pieces must have equal
        /// shapes.</summary>
        public Tensor SumAcrossReplicas(string output)
        {
            return Reduce(output, Raw.REDUCE_SUM, Raw.ACROSS_REPLICAS);
        }

        /// <summary>The mean of what the replicas have, element by element; their pieces must have equal
        /// shapes.</summary>
        public Tensor MeanAcrossReplicas(string output)
        {
            return Reduce(output, Raw.REDUCE_MEAN, Raw.ACROSS_REPLICAS);
        }

        private Tensor Reduce(string output, int reduction, long axis)
        {
            using (var use = new Uses())
            {
                IntPtr tensor, failure;
                Errors.Check(
                    Raw.replica_values_reduce(use.Of(this), output, reduction, axis, out tensor, out failure), failure);
                return new Tensor(tensor);
            }
        }
    }
}
