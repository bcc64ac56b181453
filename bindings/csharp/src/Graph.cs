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

        /// <summary>Names the classes of a metric that is a tensor and was added before: its elements become metrics,
        /// too. Of shape [classes] they are called "recall/cat" and so on, of [classes, classes] "confusion/cat/dog"
        /// for the row cat and the column dog.</summary>
        public void NameClasses(string metric, params string[] classes)
        {
            byte[] texts = Text.Joined(classes);
            Raw.graph_name_classes(Number, metric, texts, texts.Length, classes.Length);
        }

        /// <summary>Shows a number in TensorBoard, at the steps of the run option save_summary_steps and for each
        /// evaluation. Names of summaries may have "/" between groups, and differ from those of metrics. In mode
        /// Predict there are no summaries.</summary>
        public void SummaryScalar(string name, Value value)
        {
            Raw.summary_scalar(Number, name, value.Id);
        }

        /// <summary>Shows how the elements of a value are distributed, over all rows of the batch or
        /// evaluation.</summary>
        public void SummaryHistogram(string name, Value value)
        {
            Raw.summary_histogram(Number, name, value.Id);
        }

        /// <summary>Shows the first images, <paramref name="most"/> of them, of a value [images, height, width,
        /// channels] of bytes, or of floating point numbers from 0 to 1.</summary>
        public void SummaryImage(string name, Value images, long most = 3)
        {
            Raw.summary_image(Number, name, images.Id, most);
        }

        /// <summary>Shows a text in Markdown.</summary>
        public void SummaryText(string name, string text)
        {
            Raw.summary_text(Number, name, text);
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
        /// a name, or a name with arguments: zeros, ones, constant(value), random_normal(stddev, mean),
        /// truncated_normal(stddev, mean), random_uniform(high, low), orthogonal(gain), identity(gain),
        /// variance_scaling(scale, mode, distribution) and its special cases glorot_uniform, glorot_normal, he_uniform,
        /// he_normal, lecun_uniform and lecun_normal. Of a name without arguments the parameter is the constant,
        /// standard deviation, bound or gain.</summary>
        public Value Variable(string name, DType dtype, long[] dims, string initializer = "zeros", double parameter = 0,
            bool trainable = true)
        {
            dims = dims ?? new long[0];
            return Made(Raw.graph_variable(Number, name, (int)dtype, dims, dims.Length, initializer, parameter,
                trainable));
        }

        /// <summary>Says which values a variable made before begins with, in place of its initializer: those of the
        /// tensor, which has its dtype and shape. The name is the full one, with scopes, so that it may be one of a
        /// layer, such as dense/kernel.</summary>
        public void SetInitialValue(string variable, Tensor value)
        {
            using (var use = new Uses())
                Raw.graph_set_initial_value(Number, variable, use.Need(value, "value"));
        }

        /// <summary>Adds a saved model as a part of this one, such as for training it on: an output (null = the only
        /// one, or the only one of floating point) as a checkpoint, or the newest one of a directory, predicts it. It
        /// is computed from features of the graph with the names and shapes of the saved ones;
        /// <paramref name="input"/>, where there is one, stands for the one called <paramref name="feature"/> (null =
        /// the only one). Its variables are those of the checkpoint, in the scope model, model_1 and so on, as in
        /// model/dense/kernel; they begin with the saved weights. Of layers there is what they do in predictions: no
        /// dropout, and batch normalization by its averages, which stay. The checkpoint is read each time a graph is
        /// built, to evaluate and to resume, too, so it has to stay.</summary>
        public Value AddSavedModel(string path, string output = null, Value input = default(Value),
            string feature = null)
        {
            return Made(Raw.graph_add_saved_model(Number, path, feature ?? "", input.Id, output ?? ""));
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

        /// <summary>The number of completed steps, a scalar of type <see cref="DType.Float32"/>: 0 in the first step. A
        /// learning rate may be computed from it.</summary>
        public Value CompletedSteps
        {
            get { return Made(Raw.graph_get_completed_steps(Number)); }
        }

        /// <summary>A loop over an axis of the sequences, all of which have the same length there, which only the data
        /// may tell. The body gets the states and one element of each sequence, without the axis, and gives the next
        /// states and elements of what is stacked. It is called once, to write the graph, and may use values from
        /// outside.</summary>
        public Scanned Scan(IReadOnlyList<Value> states, IReadOnlyList<Value> sequences,
            Func<Value[], Value[], Scanned> body, long axis = 0, bool reverse = false)
        {
            BeginRegions("scan", states, sequences);
            Raw.graph_set_i64(Number, "states", states.Count);
            Raw.graph_set_i64(Number, "sequences", sequences.Count);
            Raw.graph_set_i64(Number, "axis", axis);
            Raw.graph_set_bool(Number, "reverse", reverse);
            Value[] parameters = BeginRegion(states.Count + sequences.Count);
            Scanned step = body(Part(parameters, 0, states.Count), Part(parameters, states.Count, sequences.Count));
            EndRegion(step.States, step.Results);
            Value[] outputs = EndRegions(step.States.Count + step.Results.Count);
            return new Scanned(Part(outputs, 0, step.States.Count),
                Part(outputs, step.States.Count, step.Results.Count));
        }

        /// <summary>A choice: what the first function writes runs if the predicate, a boolean scalar, is true, else
        /// what the second one writes. Both are called once, and give values of the same types and shapes.</summary>
        public Value[] Cond(Value predicate, Func<IReadOnlyList<Value>> then, Func<IReadOnlyList<Value>> otherwise)
        {
            BeginRegions("cond", new[] { predicate });
            BeginRegion(0);
            IReadOnlyList<Value> results = then();
            EndRegion(results);
            BeginRegion(0);
            EndRegion(otherwise());
            return EndRegions(results.Count);
        }

        /// <summary>A part of the model that the backward pass computes again, so that its values need no memory in
        /// between.</summary>
        public Value[] Call(IReadOnlyList<Value> inputs, Func<Value[], IReadOnlyList<Value>> body)
        {
            BeginRegions("call", inputs);
            IReadOnlyList<Value> results = body(BeginRegion(inputs.Count));
            EndRegion(results);
            return EndRegions(results.Count);
        }

        /// <summary>A function with a gradient of its own: backward gets the inputs, the outputs and the gradients of
        /// the outputs, and gives a value for each input, shaped like it. The functions use nothing but what they
        /// get.</summary>
        public Value[] CustomGradient(IReadOnlyList<Value> inputs, Func<Value[], IReadOnlyList<Value>> forward,
            Func<Value[], Value[], Value[], IReadOnlyList<Value>> backward)
        {
            BeginRegions("custom_gradient", inputs);
            IReadOnlyList<Value> results = forward(BeginRegion(inputs.Count));
            EndRegion(results);
            int n = inputs.Count, m = results.Count;
            Value[] all = BeginRegion(n + 2 * m);
            EndRegion(backward(Part(all, 0, n), Part(all, n, m), Part(all, n + m, m)));
            return EndRegions(m);
        }

        /// <summary>An optimizer of one's own. The rule, from what a variable has, gives its new weight and slots. It
        /// is called once, to write the graph for all variables of the type, whatever their shapes, and may use values
        /// from outside that are computed from constants, schedules and host scalars. Variables of another type need a
        /// rule as well.</summary>
        /// <param name="learningRate">A schedule, or any scalar computed from schedules, constants and host
        /// scalars.</param>
        /// <param name="rule">Writes the rule.</param>
        /// <param name="options">null = the defaults.</param>
        public void UpdateRule(Value learningRate, Func<VariableUpdate, UpdatedVariable> rule,
            UpdateRuleOptions options = null)
        {
            BeginRegions("update_rule", new[] { learningRate });
            options = options ?? new UpdateRuleOptions();
            options.Fill(Number);
            Value[] given = BeginRegion(VariableUpdate.Fixed + options.SlotCount);
            UpdatedVariable updated = rule(new VariableUpdate(given));
            EndRegion(new[] { updated.Weight }, updated.Slots);
            EndRegions(0);
        }

        private void BeginRegions(string op, params IReadOnlyList<Value>[] inputs)
        {
            Raw.graph_begin(Number, op, 1);
            foreach (IReadOnlyList<Value> list in inputs)
                foreach (long id in Numbers(list, "inputs"))
                    Raw.graph_add_input(Number, id);
        }

        private Value[] BeginRegion(int count)
        {
            var parameters = new long[count];
            Raw.graph_begin_region(Number, parameters, count);
            return Array.ConvertAll(parameters, Made);
        }

        private void EndRegion(params IReadOnlyList<Value>[] results)
        {
            var ids = new List<long>();
            foreach (IReadOnlyList<Value> list in results)
                ids.AddRange(Numbers(list, "results"));
            Raw.graph_end_region(Number, ids.ToArray(), ids.Count);
        }

        private Value[] EndRegions(int count)
        {
            var more = new long[Math.Max(count, 1) - 1];
            var all = new Value[more.Length + 1];
            all[0] = Made(Raw.graph_end(Number, more, more.Length));
            for (int i = 0; i < more.Length; i++)
                all[i + 1] = Made(more[i]);
            return Part(all, 0, count);
        }

        private static Value[] Part(Value[] values, int first, int count)
        {
            var part = new Value[count];
            Array.Copy(values, first, part, 0, count);
            return part;
        }

        /// <summary>Throws the first error so far.</summary>
        public void Check()
        {
            IntPtr failure;
            Errors.Check(Raw.graph_check(Number, out failure), failure);
        }

        // The results of a function that gives so many. A number that no function takes is an error of the graph.
        private Value[] MadeMany(IntPtr number, long count)
        {
            const long Most = 1 << 16;
            var more = new long[count >= 1 && count <= Most ? count - 1 : 0];
            var values = new Value[more.Length + 1];
            values[0] = Made(Raw.graph_end(number, more, more.Length));
            for (int i = 0; i < more.Length; i++)
                values[i + 1] = Made(more[i]);
            return values;
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
