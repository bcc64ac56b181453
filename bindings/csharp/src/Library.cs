// SPDX-License-Identifier: Apache-2.0
using System;
using System.Collections.Generic;

namespace Tutti
{
    /// <summary>The native library: which one it is, what it can do, and how many of its objects are alive.</summary>
    public static class Library
    {
        private static readonly object Gate = new object();
        private static volatile bool loaded;
        private static string directory; // guarded by Gate

        /// <summary>The folder of libtuttisharp.so, with libtutti.so beside it, to be set before anything else is
        /// used. Null: the folder that the environment's TUTTI_LIBRARY_DIR names. Where it has none, the library is
        /// looked for beside the assembly, in runtimes/linux-x64/native there, where the runtime looks, and in the
        /// system.</summary>
        public static string Directory
        {
            get
            {
                lock (Gate)
                    return directory;
            }
            set
            {
                lock (Gate)
                {
                    if (loaded)
                        throw new InvalidOperationException("the native library is loaded already");
                    directory = value;
                }
            }
        }

        /// <summary>The library's version, such as "0.1.0".</summary>
        public static string Version
        {
            get
            {
                Load();
                return Raw.version();
            }
        }

        /// <summary>How the library was built.</summary>
        public static BuildInfo BuildInfo
        {
            get
            {
                Load();
                return new BuildInfo(Raw.build_info());
            }
        }

        /// <summary>Whether the library was built with "backend:cpu", "format:idx", "op:conv2d", ...</summary>
        public static bool HasFeature(string feature)
        {
            Load();
            return Raw.has_feature(feature);
        }

        /// <summary>Why a backend cannot be used here; null when it can.</summary>
        public static string WhyUnavailable(string backend)
        {
            Load();
            return Raw.why_unavailable(backend);
        }

        /// <summary>Describes each key of a schema of options: "context", "run", "train", "predictor" or
        /// "cluster".</summary>
        public static IReadOnlyList<OptionKey> OptionKeys(string schema)
        {
            Load();
            var keys = new List<OptionKey>();
            for (long i = 0; i < Raw.options_count_keys(schema); i++)
                keys.Add(new OptionKey(Raw.options_describe_key(schema, i)));
            return keys;
        }

        /// <summary>How many objects of a type ("tensor", "dataset", ...) are alive; null = of all types. For leak
        /// tests.</summary>
        public static long LiveObjects(string type = null)
        {
            Load();
            return Raw.debug_live_objects(type);
        }

        // What every call begins with: finds the library, and says clearly when there is none or it does not fit.
        internal static void Load()
        {
            if (loaded)
                return;
            lock (Gate)
            {
                if (loaded)
                    return;
                var search = new NativeSearch();
                search.Run(directory);
                try
                {
                    CheckAbi(Raw.abi_version());
                    Callbacks.Install();
                    Leaving.Install();
                }
                catch (DllNotFoundException e)
                {
                    throw TuttiException.Ours(ErrorCode.Unavailable, search.Missing(e.Message), e);
                }
                catch (EntryPointNotFoundException e)
                {
                    throw TuttiException.Ours(ErrorCode.Unavailable,
                        "libtuttisharp.so is not of the release of Tutti.dll", e);
                }
                loaded = true;
            }
        }

        private static void CheckAbi(int found)
        {
            int major = found >> 16, minor = found & 0xffff;
            if (major != Raw.ABI_MAJOR || minor < Raw.ABI_MINOR)
            {
                throw TuttiException.Ours(ErrorCode.Unavailable, "libtutti " + Raw.version() + " has the binary " +
                    "interface " + major + "." + minor + "; Tutti.dll needs " + Raw.ABI_MAJOR + "." + Raw.ABI_MINOR);
            }
        }
    }

    /// <summary>How the native library was built.</summary>
    public sealed class BuildInfo : Report
    {
        internal BuildInfo(string text) : base(text)
        {
            JsonValue json = JsonValue.Parse(text, "the build's description");
            Version = json.Get("version").Text;
            AbiVersion = json.Get("abi").Text;
            BuildId = json.Get("build_id").Text;
            Compiler = json.Get("compiler").Text;
            Backends = json.Get("backends").List(one => one.Text);
        }

        /// <summary>The library's version, such as "0.1.0".</summary>
        public string Version { get; private set; }

        /// <summary>The version of its binary interface, such as "0.1".</summary>
        public string AbiVersion { get; private set; }

        /// <summary>What tells this build from others.</summary>
        public string BuildId { get; private set; }

        /// <summary>The compiler's version.</summary>
        public string Compiler { get; private set; }

        /// <summary>The backends that are built in.</summary>
        public IReadOnlyList<string> Backends { get; private set; }

        /// <summary>Version and backends, on one line.</summary>
        public override string ToString()
        {
            return "tutti " + Version + " with " + string.Join(", ", Backends);
        }
    }
}
