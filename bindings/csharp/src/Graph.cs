// SPDX-License-Identifier: Apache-2.0
using System;
using System.Collections.Generic;

namespace Tutti
{
    /// <summary>What a model is built for.</summary>
    public enum Mode
    {
        /// <summary>To train.</summary>
        Train = Raw.MODE_TRAIN,
        /// <summary>To measure loss and metrics.</summary>
        Eval = Raw.MODE_EVAL,
        /// <summary>To answer.</summary>
        Predict = Raw.MODE_PREDICT,
    }

    /// <summary>Writes a model for one mode. Called once per mode, on the thread whose call needs it. The variables of
    /// <see cref="Mode.Eval"/> and <see cref="Mode.Predict"/> must be among those of <see cref="Mode.Train"/>. What it
    /// throws comes back from that call.</summary>
    public delegate void ModelFunction(Graph graph, Mode mode);

    /// <summary>Where a model function writes the model, for the global batch: how many replicas share it is not its
    /// business. Valid during the function, on its thread. A call that cannot work gives an invalid value, which later
    /// calls pass through; the function need not look, for its caller reports the first error.</summary>
    public sealed partial class Graph
    {
        /// <summary>In a shape, the number of rows of the batch.</summary>
        public const long DimBatch = Raw.DIM_BATCH;

        private IntPtr number;

        internal Graph(IntPtr number)
        {
            this.number = number;
        }

        internal void End()
        {
            number = IntPtr.Zero;
        }

        internal bool HasEnded
        {
            get { return number == IntPtr.Zero; }
        }

        internal IntPtr Number
        {
            get
            {
                if (number == IntPtr.Zero)
                    throw new ObjectDisposedException("Graph",
                        "the graph is used after the function that it was given to");
                return number;
            }
        }

        /// <summary>What the model is built for.</summary>
        public Mode Mode
        {
            get { return (Mode)Raw.graph_get_mode(Number); }
        }

        /// <summary>The run option Params of the estimator whose model this is.</summary>
        public string Params
        {
            get { return Raw.graph_get_params(Number); }
        }

        /// <summary>A component of the dataset, with the batch as first dimension.</summary>
        public Value GetFeature(string name)
        {
            return Made(Raw.graph_get_feature(Number, name));
        }

        /// <summary>A label of the dataset.</summary>
        public Value GetLabel(string name)
        {
            return Made(Raw.graph_get_label(Number, name));
        }

        /// <summary>A component of weights, one per example; no value when there is none of the name.</summary>
        public Value GetSampleWeight(string name)
        {
            return Made(Raw.graph_get_sample_weight(Number, name));
        }

        /// <summary>Names a prediction: what predict gives for each row.</summary>
        public void SetOutput(string name, Value value)
        {
            Raw.graph_set_output(Number, name, value.Id);
        }

        /// <summary>Says which scalar to make small.</summary>
        public void SetLoss(Value loss)
        {
            Raw.graph_set_loss(Number, loss.Id);
        }

        /// <summary>Names a scalar that train and evaluate report, exact over all examples.</summary>
        public void AddMetric(string name, Value value)
        {
            Raw.graph_add_metric(Number, name, value.Id);
        }

        /// <summary>Limits the global norm of all gradients before the update.</summary>
        public void SetGradientClipNorm(double norm)
        {
            Raw.graph_set_gradient_clip_norm(Number, norm);
        }

        /// <summary>Calls everything that is added until the scope is closed "name/...".</summary>
        public IDisposable Scope(string name)
        {
            Raw.graph_push_scope(Number, name);
            return new OpenScope(this);
        }

        private sealed class OpenScope : IDisposable
        {
            private Graph graph;

            public OpenScope(Graph graph)
            {
                this.graph = graph;
            }

            public void Dispose()
            {
                if (graph != null)
                    Raw.graph_pop_scope(graph.Number);
                graph = null;
            }
        }

        /// <summary>A scalar constant.</summary>
        public Value Constant(DType dtype, double value)
        {
            return Made(Raw.graph_constant(Number, (int)dtype, value));
        }

        /// <summary>A constant with the tensor's contents.</summary>
        public Value ConstantTensor(Tensor tensor)
        {
            using (var use = new Uses())
                return Made(Raw.graph_constant_tensor(Number, use.Need(tensor, "tensor")));
        }

        /// <summary>A scalar that the program can change while training with <see cref="Session.SetScalar"/>.</summary>
        public Value HostScalar(string name, double initialValue)
        {
            return Made(Raw.graph_host_scalar(Number, name, initialValue));
        }

        /// <summary>A variable; its name is put behind the scope, and reusing one is an error. The initializer is
        /// zeros, ones, constant, glorot_uniform, glorot_normal, he_uniform, he_normal, random_normal, random_uniform
        /// or truncated_normal, the parameter its constant, standard deviation or bound.</summary>
        public Value Variable(string name, DType dtype, long[] dims, string initializer = "zeros", double parameter = 0,
            bool trainable = true)
        {
            dims = dims ?? new long[0];
            return Made(Raw.graph_variable(Number, name, (int)dtype, dims, dims.Length, initializer, parameter,
                trainable));
        }

        /// <summary>Says what a variable's next value is, stored when the step is complete.</summary>
        public void Assign(Value variable, Value value)
        {
            Raw.graph_assign(Number, variable.Id, value.Id);
        }

        /// <summary>d(target)/d(of[i]) for each i; invalid where there is no path.</summary>
        public Value[] Gradients(Value target, IReadOnlyList<Value> of)
        {
            long[] ids = Numbers(of, "of");
            var gradients = new long[ids.Length];
            if (ids.Length > 0)
                Raw.gradients(Number, target.Id, ids, ids.Length, gradients);
            return Array.ConvertAll(gradients, Made);
        }

        /// <summary>Gives the optimizer these gradients, each shaped like its variable, in place of those of the
        /// loss.</summary>
        public void ApplyGradients(IReadOnlyList<Value> variables, IReadOnlyList<Value> gradients)
        {
            long[] left = Numbers(variables, "variables"), right = Numbers(gradients, "gradients");
            if (left.Length != right.Length)
                throw new ArgumentException(
                    "there are " + left.Length + " variables and " + right.Length + " gradients");
            Raw.apply_gradients(Number, left, right, left.Length);
        }

        /// <summary>Throws the first error so far.</summary>
        public void Check()
        {
            IntPtr failure;
            Errors.Check(Raw.graph_check(Number, out failure), failure);
        }

        private Value Made(long id)
        {
            return new Value(this, id);
        }

        private static long[] Numbers(IReadOnlyList<Value> values, string name)
        {
            if (values == null)
                throw new ArgumentNullException(name);
            var ids = new long[values.Count];
            for (int i = 0; i < ids.Length; i++)
                ids[i] = values[i].Id;
            return ids;
        }
    }
}
