// SPDX-License-Identifier: Apache-2.0
using System;
using System.Collections.Generic;
using System.Linq;

namespace Tutti
{
    // A JSON value that the library gave, and where it stands, for errors. A number with a fraction or an exponent is a
    // double, another one a long.
    internal sealed class JsonValue
    {
        private readonly object value;
        private readonly string place;

        private JsonValue(object value, string place)
        {
            this.value = value;
            this.place = place;
        }

        // `name` says in errors what the text is.
        public static JsonValue Parse(string text, string name)
        {
            try
            {
                return new JsonValue(JsonReader.Read(text ?? ""), name);
            }
            catch (FormatException e)
            {
                throw TuttiException.Ours(ErrorCode.Internal, name + " is no JSON: " + e.Message, e);
            }
        }

        public bool IsNull
        {
            get { return value == null; }
        }

        public bool IsText
        {
            get { return value is string; }
        }

        public bool IsInteger
        {
            get { return value is long; }
        }

        // The value as it is: null, a bool, long, double or string.
        public object Scalar
        {
            get { return value is bool || value is long || value is double || value is string ? value : null; }
        }

        public string Text
        {
            get { return As<string>("a text"); }
        }

        public long Integer
        {
            get { return As<long>("an integer"); }
        }

        public bool Flag
        {
            get { return As<bool>("a truth value"); }
        }

        // JSON has no infinities or NaN: texts stand for them.
        public double Number
        {
            get
            {
                if (value is long)
                    return (long)value;
                switch (value as string)
                {
                    case "NaN":
                        return double.NaN;
                    case "Infinity":
                        return double.PositiveInfinity;
                    case "-Infinity":
                        return double.NegativeInfinity;
                    default:
                        return As<double>("a number");
                }
            }
        }

        public bool Has(string key)
        {
            return Object.ContainsKey(key);
        }

        public JsonValue Get(string key)
        {
            object member;
            if (!Object.TryGetValue(key, out member))
                throw Wrong("a member '" + key + "'");
            return new JsonValue(member, place + "." + key);
        }

        // A member that may be missing, and what stands for it then.
        public T Get<T>(string key, Func<JsonValue, T> read, T otherwise = default(T))
        {
            return Has(key) ? read(Get(key)) : otherwise;
        }

        public T[] List<T>(Func<JsonValue, T> read)
        {
            return As<List<object>>("a list").Select((one, i) => read(new JsonValue(one, place + "[" + i + "]")))
                .ToArray();
        }

        public KeyValuePair<string, T>[] Members<T>(Func<JsonValue, T> read)
        {
            return Object.Select(member => new KeyValuePair<string, T>(member.Key,
                read(new JsonValue(member.Value, place + "." + member.Key)))).ToArray();
        }

        private Dictionary<string, object> Object
        {
            get { return As<Dictionary<string, object>>("an object"); }
        }

        private T As<T>(string what)
        {
            if (value is T)
                return (T)value;
            throw Wrong(what);
        }

        private TuttiException Wrong(string what)
        {
            return TuttiException.Ours(ErrorCode.Internal, place + " has not " + what);
        }
    }
}
