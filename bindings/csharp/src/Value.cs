// SPDX-License-Identifier: Apache-2.0
using System;
using System.Collections.Generic;

namespace Tutti
{
    /// <summary>An output of an op in one graph. The default is no value: an optional input left out. Operators are ops
    /// of the value's graph, where a number is a constant of the other operand's type; two values are equal when they
    /// are the same output.</summary>
    public readonly struct Value : IEquatable<Value>
    {
        internal readonly long Id;
        private readonly Graph graph; // null for the default

        internal Value(Graph graph, long id)
        {
            this.graph = graph;
            Id = id;
        }

        /// <summary>Whether there is a value, and no error before made it invalid.</summary>
        public bool IsValid
        {
            get { return Id > 0; }
        }

        /// <summary>Its type; 0 for an invalid one.</summary>
        public DType DType
        {
            get { return graph == null ? 0 : (DType)Raw.graph_get_dtype(graph.Number, Id); }
        }

        /// <summary>Its shape as far as known: -1 stands for the batch or another unknown size. null for an invalid
        /// value.</summary>
        public IReadOnlyList<long> Dims
        {
            get
            {
                long rank = graph == null ? -1 : Raw.graph_get_rank(graph.Number, Id);
                if (rank < 0)
                    return null;
                var dims = new long[rank];
                for (int axis = 0; axis < dims.Length; axis++)
                    dims[axis] = Raw.graph_get_dim(graph.Number, Id, axis);
                return dims;
            }
        }

        /// <summary>The sum; shapes are broadcast.</summary>
        public static Value operator +(Value a, Value b)
        {
            return Owner(a, b).Add(a, b);
        }

        /// <summary>The difference; shapes are broadcast.</summary>
        public static Value operator -(Value a, Value b)
        {
            return Owner(a, b).Sub(a, b);
        }

        /// <summary>The product of elements; shapes are broadcast.</summary>
        public static Value operator *(Value a, Value b)
        {
            return Owner(a, b).Mul(a, b);
        }

        /// <summary>The quotient of elements; shapes are broadcast.</summary>
        public static Value operator /(Value a, Value b)
        {
            return Owner(a, b).Div(a, b);
        }

        /// <summary>The negated value.</summary>
        public static Value operator -(Value x)
        {
            return Owner(x, x).Neg(x);
        }

        /// <summary>The sum with a number.</summary>
        public static Value operator +(Value a, double b)
        {
            return a + a.Constant(b);
        }

        /// <summary>The sum with a number.</summary>
        public static Value operator +(double a, Value b)
        {
            return b.Constant(a) + b;
        }

        /// <summary>The difference from a number.</summary>
        public static Value operator -(Value a, double b)
        {
            return a - a.Constant(b);
        }

        /// <summary>The difference from a number.</summary>
        public static Value operator -(double a, Value b)
        {
            return b.Constant(a) - b;
        }

        /// <summary>The product with a number.</summary>
        public static Value operator *(Value a, double b)
        {
            return a * a.Constant(b);
        }

        /// <summary>The product with a number.</summary>
        public static Value operator *(double a, Value b)
        {
            return b.Constant(a) * b;
        }

        /// <summary>The quotient by a number.</summary>
        public static Value operator /(Value a, double b)
        {
            return a / a.Constant(b);
        }

        /// <summary>A number divided by the elements.</summary>
        public static Value operator /(double a, Value b)
        {
            return b.Constant(a) / b;
        }

        /// <summary>Whether both are the same output of the same graph.</summary>
        public static bool operator ==(Value a, Value b)
        {
            return a.Equals(b);
        }

        /// <summary>Whether they are different outputs.</summary>
        public static bool operator !=(Value a, Value b)
        {
            return !a.Equals(b);
        }

        /// <summary>Whether both are the same output of the same graph.</summary>
        public bool Equals(Value other)
        {
            return Id == other.Id && ReferenceEquals(graph, other.graph);
        }

        /// <summary>Whether the object is the same output of the same graph.</summary>
        public override bool Equals(object obj)
        {
            return obj is Value && Equals((Value)obj);
        }

        /// <summary>Goes with Equals.</summary>
        public override int GetHashCode()
        {
            return Id.GetHashCode();
        }

        /// <summary>Such as "Float32 [-1, 5]".</summary>
        public override string ToString()
        {
            if (graph == null)
                return "no value";
            if (graph.HasEnded)
                return "a value of a graph that has ended";
            return IsValid ? DType + " " + TensorSpec.Shown(Dims) : "an invalid value";
        }

        private Value Constant(double number)
        {
            return Owner(this, this).Constant(DType, number);
        }

        private static Graph Owner(Value a, Value b)
        {
            Graph owner = a.graph ?? b.graph;
            if (owner == null)
                throw new InvalidOperationException("an operator has no values");
            return owner;
        }
    }
}
