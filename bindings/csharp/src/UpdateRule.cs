// SPDX-License-Identifier: Apache-2.0
using System;
using System.Collections.Generic;
using System.Linq;

namespace Tutti
{
    /// <summary>What a slot has a value for.</summary>
    public enum SlotPer
    {
        /// <summary>Each element of a variable.</summary>
        Element,

        /// <summary>With <see cref="UpdateRuleOptions.Stacks"/>: each row of its matrices, [matrices, rows].</summary>
        Row,

        /// <summary>With <see cref="UpdateRuleOptions.Stacks"/>: each column of its matrices,
        /// [matrices, columns].</summary>
        Column,
    }

    /// <summary>What a rule of update keeps of each variable, from update to update.</summary>
    public sealed class Slot
    {
        /// <summary>Its name, behind that of the variable: variable/name; its first value; and what it has a value
        /// for.</summary>
        public Slot(string name, double initial = 0, SlotPer per = SlotPer.Element)
        {
            Name = name ?? throw new ArgumentNullException(nameof(name));
            Initial = initial;
            Per = per;
        }

        /// <summary>Its name.</summary>
        public string Name { get; }

        /// <summary>Its first value.</summary>
        public double Initial { get; }

        /// <summary>What it has a value for.</summary>
        public SlotPer Per { get; }
    }

    /// <summary>What <see cref="Graph.UpdateRule"/> may be told; null means the default.</summary>
    public sealed class UpdateRuleOptions
    {
        /// <summary>What is kept. Default: nothing.</summary>
        public IReadOnlyList<Slot> Slots { get; set; }

        /// <summary>Given to the rule, for variables whose parameter group has none of its own. Default: 0.</summary>
        public double? WeightDecay { get; set; }

        /// <summary>Of the variables that the rule is for: Float32, also for Float16 and BFloat16 ones, or Float64.
        /// Default: Float32.</summary>
        public DType? DType { get; set; }

        /// <summary>Only for variables with two axes or more, which come as matrices whose columns are the last
        /// axis. A rule for the others comes first; its learning rate, limits and averages are those of both. Default:
        /// false.</summary>
        public bool? Matrices { get; set; }

        /// <summary>For the same variables in place of Matrices: a matrix of the last two axes for each index of the
        /// others, as an array [matrices, rows, columns]. Default: false.</summary>
        public bool? Stacks { get; set; }

        /// <summary>A variable that the model only looks up rows of, by indices of the batch, is updated in the rows
        /// that a step looks up, whatever the rule does to the others. Not for rules that need more than an element at
        /// a time. Default: false.</summary>
        public bool? Lazy { get; set; }

        /// <summary>As Lazy, since the rule changes nothing where the gradient, and the weight decay, is 0. Default:
        /// false.</summary>
        public bool? KeepsUnreached { get; set; }

        /// <summary>Limits each element of the gradients to [-ClipValue, ClipValue], before anything else; 0 = off.
        /// Default: 0.</summary>
        public double? ClipValue { get; set; }

        /// <summary>Limits the Euclidean norm of each variable's gradient, after ClipValue and before
        /// <see cref="Graph.SetGradientClipNorm"/> limits the global norm; 0 = off. Default: 0.</summary>
        public double? ClipNorm { get; set; }

        /// <summary>Keeps an exponential moving average of each weight, which evaluation and prediction use unless
        /// their option RawWeights is set; less than 1; 0 = none. Default: 0.</summary>
        public double? AverageDecay { get; set; }

        /// <summary>Limits the decay to (1 + n) / (10 + n) at update n after AverageStart. Default: false.</summary>
        public bool? AverageRamp { get; set; }

        /// <summary>Until this update the average is equal to the weight; 0: it starts at the initial weight. Default:
        /// 0.</summary>
        public long? AverageStart { get; set; }

        internal int SlotCount
        {
            get { return Slots == null ? 0 : Slots.Count; }
        }

        internal void Fill(IntPtr graph)
        {
            if (SlotCount > 0)
            {
                Raw.graph_set_string(graph, "slots", string.Join(", ", Slots.Select(slot => slot.Name)));
                IEnumerable<string> per = Slots.Select(slot => slot.Per.ToString().ToLowerInvariant());
                Raw.graph_set_string(graph, "slots_per", string.Join(", ", per));
                double[] initial = Slots.Select(slot => slot.Initial).ToArray();
                Raw.graph_set_f64s(graph, "initial", initial, initial.Length);
            }
            Raw.graph_set_f64(graph, "weight_decay", WeightDecay ?? 0);
            Raw.graph_set_i64(graph, "dtype", (long)(DType ?? Tutti.DType.Float32));
            Raw.graph_set_string(graph, "view", Stacks == true ? "stack" : Matrices == true ? "matrix" : "vector");
            Raw.graph_set_bool(graph, "lazy", Lazy ?? false);
            Raw.graph_set_bool(graph, "keeps_unreached", KeepsUnreached ?? false);
            Raw.graph_set_f64(graph, "clip_value", ClipValue ?? 0);
            Raw.graph_set_f64(graph, "clip_norm", ClipNorm ?? 0);
            Raw.graph_set_f64(graph, "average_decay", AverageDecay ?? 0);
            Raw.graph_set_bool(graph, "average_ramp", AverageRamp ?? false);
            Raw.graph_set_i64(graph, "average_start", AverageStart ?? 0);
        }
    }

    /// <summary>What a rule of update gets; see <see cref="Graph.UpdateRule"/>. Weight, gradient and slots are arrays
    /// of one axis, matrices or stacks of matrices.</summary>
    public sealed class VariableUpdate
    {
        // Values in front of the slots.
        internal const int Fixed = 5;

        internal VariableUpdate(Value[] given)
        {
            Weight = given[0];
            Gradient = given[1];
            LearningRate = given[2];
            WeightDecay = given[3];
            Count = given[4];
            Slots = given.Skip(Fixed).ToArray();
        }

        /// <summary>The variable.</summary>
        public Value Weight { get; }

        /// <summary>Its gradient, limited as the options say.</summary>
        public Value Gradient { get; }

        /// <summary>A scalar, of the variable's parameter group.</summary>
        public Value LearningRate { get; }

        /// <summary>A scalar, of the variable's parameter group.</summary>
        public Value WeightDecay { get; }

        /// <summary>The number of the update, a scalar of type Int64, from 1.</summary>
        public Value Count { get; }

        /// <summary>What was kept, as in the options.</summary>
        public IReadOnlyList<Value> Slots { get; }
    }

    /// <summary>What a rule of update gives; see <see cref="Graph.UpdateRule"/>.</summary>
    public sealed class UpdatedVariable
    {
        /// <summary>The variable's new value, and the new value of each slot.</summary>
        public UpdatedVariable(Value weight, params Value[] slots)
        {
            Weight = weight;
            Slots = slots;
        }

        /// <summary>The variable's new value.</summary>
        public Value Weight { get; }

        /// <summary>The new value of each slot.</summary>
        public IReadOnlyList<Value> Slots { get; }
    }
}
