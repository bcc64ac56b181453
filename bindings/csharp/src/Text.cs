// SPDX-License-Identifier: Apache-2.0
using System;
using System.Collections.Generic;
using System.Text;

namespace Tutti
{
    // Text as it crosses to C and back: UTF-8, ended by a zero byte.
    internal static unsafe class Text
    {
        private const byte Substitute = 0x1a;
        private static readonly UTF8Encoding Utf8 = new UTF8Encoding(false);

        // null stays null. A zero inside would end the text early, and a path would name another file: it becomes
        // SUBSTITUTE, which no name has.
        public static byte[] ToC(string text)
        {
            return text == null ? null : Joined(new[] { text });
        }

        // A list as the C layer takes it: a zero byte ends each text.
        public static byte[] Joined(IReadOnlyList<string> texts)
        {
            int size = 0;
            foreach (string text in texts)
                size += Utf8.GetByteCount(text) + 1;
            var bytes = new byte[size];
            int end = 0;
            foreach (string text in texts)
            {
                int begin = end;
                end += Utf8.GetBytes(text, 0, text.Length, bytes, begin);
                for (int i = begin; i < end; i++)
                {
                    if (bytes[i] == 0)
                        bytes[i] = Substitute;
                }
                end++;
            }
            return bytes;
        }

        // A copy of text that the library lends; null when there is none.
        public static string FromC(IntPtr address)
        {
            var text = (byte*)address;
            if (text == null)
                return null;
            int size = 0;
            while (text[size] != 0)
                size++;
            return size == 0 ? "" : Utf8.GetString(text, size);
        }
    }
}
