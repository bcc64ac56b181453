// SPDX-License-Identifier: Apache-2.0
using System;
using System.Collections.Generic;
using System.Globalization;
using System.Linq;

namespace Tutti
{
    /// <summary>Options of one kind of call. A property that is null means the default.</summary>
    public abstract class OptionValues
    {
        internal OptionValues()
        {
        }

        internal abstract string Schema { get; }

        internal abstract void Fill(IntPtr options);

        /// <summary>All options with the values in force.</summary>
        public IReadOnlyList<ResolvedOption> Resolve()
        {
            using (var native = new NativeOptions(this))
            {
                JsonValue json = JsonValue.Parse(Raw.options_get_json(native.Number), "the options");
                return json.Members(one => one).Select(one => new ResolvedOption(one.Key, one.Value)).ToArray();
            }
        }

        /// <summary>The options that were set, such as "seed=7 steps=100".</summary>
        public override string ToString()
        {
            return string.Join(" ", Resolve().Where(option => option.IsSet));
        }
    }

    /// <summary>An option with the value in force.</summary>
    public sealed class ResolvedOption
    {
        internal ResolvedOption(string key, JsonValue json)
        {
            Key = key;
            Value = json.Get("value").Scalar;
            IsSet = json.Get("origin").Text == "set";
        }

        /// <summary>Its name, as the library has it.</summary>
        public string Key { get; private set; }

        /// <summary>A bool, long, double or string; "(hidden)" for a secret that was set.</summary>
        public object Value { get; private set; }

        /// <summary>Whether it was set; else it has its default.</summary>
        public bool IsSet { get; private set; }

        /// <summary>Such as "seed=7".</summary>
        public override string ToString()
        {
            return Key + "=" + Convert.ToString(Value, CultureInfo.InvariantCulture);
        }
    }

    /// <summary>What a schema of options says of a key.</summary>
    public sealed class OptionKey : Report
    {
        internal OptionKey(string text) : base(text)
        {
            JsonValue json = JsonValue.Parse(text, "the description of an option");
            Key = json.Get("key").Text;
            Type = json.Get("type").Text;
            Default = json.Get("default").Scalar;
            Minimum = json.Get("minimum", one => (double?)one.Number);
            Maximum = json.Get("maximum", one => (double?)one.Number);
            Values = json.Get("values", list => list.List(one => one.Text));
            Documentation = json.Get("documentation").Text;
            IsSecret = json.Get("secret", one => one.Flag);
            Environment = json.Get("environment", one => one.Text);
        }

        /// <summary>Its name.</summary>
        public string Key { get; private set; }

        /// <summary>"bool", "i64", "f64" or "string".</summary>
        public string Type { get; private set; }

        /// <summary>A bool, long, double or string.</summary>
        public object Default { get; private set; }

        /// <summary>The least number; null = no limit.</summary>
        public double? Minimum { get; private set; }

        /// <summary>The largest number; null = no limit.</summary>
        public double? Maximum { get; private set; }

        /// <summary>The texts that may be chosen; null = any.</summary>
        public IReadOnlyList<string> Values { get; private set; }

        /// <summary>What it means.</summary>
        public string Documentation { get; private set; }

        /// <summary>Whether what is set is not shown again.</summary>
        public bool IsSecret { get; private set; }

        /// <summary>The variable of the environment that it may be read from; null = none.</summary>
        public string Environment { get; private set; }

        /// <summary>Its name and meaning, on one line.</summary>
        public override string ToString()
        {
            return Key + ": " + Documentation;
        }
    }

    // The C object of a call's options.
    internal sealed class NativeOptions : IDisposable
    {
        public readonly IntPtr Number;

        public NativeOptions(OptionValues values)
        {
            Library.Load();
            IntPtr failure;
            Errors.Check(Raw.options_create(values.Schema, out Number, out failure), failure);
            values.Fill(Number);
            int code = Raw.options_check(Number, out failure);
            if (code == Raw.OK)
                return;
            Raw.options_unref(Number);
            throw Errors.FromC(code, failure);
        }

        public void Dispose()
        {
            Raw.options_unref(Number);
        }
    }
}
