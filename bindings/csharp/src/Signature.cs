// SPDX-License-Identifier: Apache-2.0
using System;
using System.Collections.Generic;
using System.Linq;

namespace Tutti
{
    /// <summary>The type and shape of a named tensor.</summary>
    public class TensorSpec
    {
        private static readonly Dictionary<string, DType> DTypes = new Dictionary<string, DType>
        {
            { "f32", DType.Float32 }, { "f64", DType.Float64 }, { "i32", DType.Int32 }, { "i64", DType.Int64 },
            { "u8", DType.UInt8 }, { "boolean", DType.Boolean }, { "f16", DType.Float16 }, { "bf16", DType.BFloat16 },
            { "i8", DType.Int8 }, { "i16", DType.Int16 }, { "u16", DType.UInt16 }, { "u32", DType.UInt32 },
            { "u64", DType.UInt64 }, { "bytes", DType.Bytes },
        };

        internal TensorSpec(JsonValue json)
        {
            Name = json.Get("name").Text;
            DType = DTypeOf(json.Get("dtype").Text);
            Dims = json.Get("dims").List(one => one.IsInteger ? one.Integer : -1);
        }

        /// <summary>Its name.</summary>
        public string Name { get; private set; }

        /// <summary>The type of its elements.</summary>
        public DType DType { get; private set; }

        /// <summary>Its shape; -1 stands for the rows of a batch, or another size that differs.</summary>
        public IReadOnlyList<long> Dims { get; private set; }

        /// <summary>Such as "x Float32 [-1, 5]".</summary>
        public override string ToString()
        {
            return Name + " " + DType + " " + Shown(Dims);
        }

        internal static string Shown(IEnumerable<long> dims)
        {
            return "[" + string.Join(", ", dims) + "]";
        }

        private static DType DTypeOf(string name)
        {
            DType dtype;
            if (!DTypes.TryGetValue(name, out dtype))
                throw TuttiException.Ours(ErrorCode.Internal, "there is no type '" + name + "'");
            return dtype;
        }
    }

    /// <summary>What a predictor takes and gives.</summary>
    public sealed class Signature : Report
    {
        internal Signature(string text) : base(text)
        {
            JsonValue json = JsonValue.Parse(text, "the signature");
            Inputs = json.Get("inputs").List(one => new TensorSpec(one));
            Outputs = json.Get("outputs").List(one => new TensorSpec(one));
        }

        /// <summary>The tensors that <see cref="Predictor.Run(string, Tensor, System.Threading.CancellationToken)"/>
        /// takes, by name.</summary>
        public IReadOnlyList<TensorSpec> Inputs { get; private set; }

        /// <summary>The outputs of a batch of its results.</summary>
        public IReadOnlyList<TensorSpec> Outputs { get; private set; }

        /// <summary>Such as "(x Float32 [-1, 5]) -> (class Int64 [-1])".</summary>
        public override string ToString()
        {
            return "(" + string.Join(", ", Inputs) + ") -> (" + string.Join(", ", Outputs) + ")";
        }
    }

    /// <summary>One tensor of each element of a dataset.</summary>
    public sealed class Component : TensorSpec
    {
        internal Component(JsonValue json) : base(json)
        {
            Role = RoleOf(json.Get("role").Text);
        }

        /// <summary>What it is for.</summary>
        public Role Role { get; private set; }

        /// <summary>Such as "x Float32 [-1, 5] Feature".</summary>
        public override string ToString()
        {
            return base.ToString() + " " + Role;
        }

        private static Role RoleOf(string name)
        {
            Role role;
            if (!Enum.TryParse(name, true, out role))
                throw TuttiException.Ours(ErrorCode.Internal, "there is no role '" + name + "'");
            return role;
        }
    }

    /// <summary>What the elements of a dataset are.</summary>
    public sealed class DatasetSpec : Report
    {
        internal DatasetSpec(string text) : base(text)
        {
            JsonValue json = JsonValue.Parse(text, "the dataset's spec");
            Components = json.Get("components").List(one => new Component(one));
            BatchSize = json.Get("batch_size").Integer;
        }

        /// <summary>The tensors of each element, in order.</summary>
        public IReadOnlyList<Component> Components { get; private set; }

        /// <summary>The rows of a batch; 0 where elements are single examples.</summary>
        public long BatchSize { get; private set; }

        /// <summary>The components, on one line.</summary>
        public override string ToString()
        {
            return string.Join(", ", Components.Select(component => component.ToString()));
        }
    }

    /// <summary>What there is to say about a device.</summary>
    public sealed class DeviceDescription : Report
    {
        internal DeviceDescription(string text) : base(text)
        {
            JsonValue json = JsonValue.Parse(text, "the description of a device");
            Name = json.Get("name").Text;
            Backend = json.Get("backend").Text;
            Kind = json.Get("kind").Text;
            MemoryBytes = json.Get("memory_bytes").Integer;
            Description = json.Get("description").Text;
            Reaches = json.Get("reaches").List(one => one.Text);
            Memory = json.Get("memory").Text;
            Pci = json.Get("pci", one => one.Text);
            NumaNode = json.Get("numa_node", one => (long?)one.Integer);
            Libraries = json.Get("libraries", all => all.Members(one => one.Text),
                new KeyValuePair<string, string>[0]).ToDictionary(one => one.Key, one => one.Value);
        }

        /// <summary>Its name, as strategies take it.</summary>
        public string Name { get; private set; }

        /// <summary>Whose it is.</summary>
        public string Backend { get; private set; }

        /// <summary>What it is.</summary>
        public string Kind { get; private set; }

        /// <summary>Its memory; 0 = not limited.</summary>
        public long MemoryBytes { get; private set; }

        /// <summary>For people.</summary>
        public string Description { get; private set; }

        /// <summary>The devices whose memory it reads without the host's help; none where all share the
        /// host's.</summary>
        public IReadOnlyList<string> Reaches { get; private set; }

        /// <summary>The name of its memory; devices with equal ones share it.</summary>
        public string Memory { get; private set; }

        /// <summary>Its address on the bus; null when not known.</summary>
        public string Pci { get; private set; }

        /// <summary>Where it is connected; null when not known.</summary>
        public long? NumaNode { get; private set; }

        /// <summary>What its backend makes use of: by name a version, or "is missing: " and why.</summary>
        public IReadOnlyDictionary<string, string> Libraries { get; private set; }

        /// <summary>Its name and description, on one line.</summary>
        public override string ToString()
        {
            return Name + ": " + Description;
        }
    }
}
