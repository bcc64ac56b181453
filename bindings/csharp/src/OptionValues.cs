// SPDX-License-Identifier: Apache-2.0
using System;

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

        /// <summary>A JSON object of all keys, with the value in force and where it came from ("set" or
        /// "default").</summary>
        public string Resolve()
        {
            using (var native = new NativeOptions(this))
                return Raw.options_get_json(native.Number);
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
