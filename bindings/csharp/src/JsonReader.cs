// SPDX-License-Identifier: Apache-2.0
using System;
using System.Collections.Generic;
using System.Globalization;
using System.Text;

namespace Tutti
{
    // Reads one JSON text, with nothing around it but white space. Objects are dictionaries and lists are lists of
    // objects; a key that comes twice, and depth beyond a limit, is an error.
    internal sealed class JsonReader
    {
        private const int MostDepth = 64;
        private readonly string text;
        private int at, depth;

        private JsonReader(string text)
        {
            this.text = text;
        }

        public static object Read(string text)
        {
            var reader = new JsonReader(text);
            object value = reader.Value();
            if (reader.Next() != '\0' || reader.at < text.Length)
                throw reader.Expected("the end");
            return value;
        }

        // The next character behind white space; 0 at the end.
        private char Next()
        {
            while (at < text.Length && (text[at] == ' ' || text[at] == '\n' || text[at] == '\r' || text[at] == '\t'))
                at++;
            return at < text.Length ? text[at] : '\0';
        }

        private FormatException Expected(string what)
        {
            return new FormatException("expected " + what + " at character " + at);
        }

        private void Take(char wanted)
        {
            if (Next() != wanted)
                throw Expected("'" + wanted + "'");
            at++;
        }

        private bool TryTake(char wanted)
        {
            if (Next() != wanted)
                return false;
            at++;
            return true;
        }

        private object Value()
        {
            switch (Next())
            {
                case '{':
                    return Nested(Object);
                case '[':
                    return Nested(List);
                case '"':
                    return String();
                case 't':
                    return Word("true", true);
                case 'f':
                    return Word("false", false);
                case 'n':
                    return Word("null", null);
                default:
                    return Number();
            }
        }

        private object Nested(Func<object> read)
        {
            if (++depth > MostDepth)
                throw Expected("less depth");
            object value = read();
            depth--;
            return value;
        }

        private object Word(string word, object value)
        {
            if (string.CompareOrdinal(text, at, word, 0, word.Length) != 0)
                throw Expected(word);
            at += word.Length;
            return value;
        }

        private object Object()
        {
            var members = new Dictionary<string, object>();
            Take('{');
            if (TryTake('}'))
                return members;
            do
            {
                Next();
                string key = String();
                Take(':');
                if (members.ContainsKey(key))
                    throw Expected("no second '" + key + "'");
                members[key] = Value();
            }
            while (TryTake(','));
            Take('}');
            return members;
        }

        private object List()
        {
            var list = new List<object>();
            Take('[');
            if (TryTake(']'))
                return list;
            do
                list.Add(Value());
            while (TryTake(','));
            Take(']');
            return list;
        }

        private string String()
        {
            Take('"');
            var result = new StringBuilder();
            while (true)
            {
                if (at >= text.Length || text[at] < ' ')
                    throw Expected("'\"'");
                char next = text[at++];
                if (next == '"')
                    return result.ToString();
                result.Append(next == '\\' ? Escaped() : next);
            }
        }

        private char Escaped()
        {
            const string Escapes = "\"\\/bfnrt", Meanings = "\"\\/\b\f\n\r\t";
            char next = at < text.Length ? text[at] : '\0';
            if (next == 'u')
                return Numbered();
            int which = next == '\0' ? -1 : Escapes.IndexOf(next);
            if (which < 0)
                throw Expected("an escape");
            at++;
            return Meanings[which];
        }

        private char Numbered()
        {
            ushort code;
            at++;
            if (at + 4 > text.Length || !ushort.TryParse(text.Substring(at, 4), NumberStyles.AllowHexSpecifier,
                CultureInfo.InvariantCulture, out code))
                throw Expected("four hexadecimal digits");
            at += 4;
            return (char)code;
        }

        private object Number()
        {
            int begin = at;
            bool isWhole = true;
            TryDigit('-');
            if (!TryDigit('0'))
                Digits();
            if (TryDigit('.'))
            {
                isWhole = false;
                Digits();
            }
            if (TryDigit('e') || TryDigit('E'))
            {
                isWhole = false;
                if (!TryDigit('-'))
                    TryDigit('+');
                Digits();
            }
            string number = text.Substring(begin, at - begin);
            long whole;
            CultureInfo culture = CultureInfo.InvariantCulture;
            if (isWhole && long.TryParse(number, NumberStyles.AllowLeadingSign, culture, out whole))
                return whole;
            return double.Parse(number, NumberStyles.Float, culture);
        }

        private bool TryDigit(char wanted)
        {
            if (at >= text.Length || text[at] != wanted)
                return false;
            at++;
            return true;
        }

        private void Digits()
        {
            int begin = at;
            while (at < text.Length && text[at] >= '0' && text[at] <= '9')
                at++;
            if (at == begin)
                throw Expected("a value");
        }
    }
}
