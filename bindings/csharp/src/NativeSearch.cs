// SPDX-License-Identifier: Apache-2.0
using System;
using System.Collections.Generic;
using System.IO;
using System.Reflection;
using System.Runtime.InteropServices;

namespace Tutti
{
    // Finds libtuttisharp.so: in the folder that the program or the environment names, beside the assembly, in the
    // folder of a package there; else the runtime and the system look for it. The first that is there is taken.
    internal sealed class NativeSearch
    {
        private const string Variable = "TUTTI_LIBRARY_DIR";
        private const string Name = "tuttisharp", FileName = "lib" + Name + ".so";
        private const int Now = 2; // RTLD_NOW
        private static IntPtr handle;
        private static bool resolves;
        private readonly List<string> tried = new List<string>();

        // Leads the runtime to the file. An error where it is there and cannot be loaded.
        public void Run(string named)
        {
            foreach (string folder in Folders(named))
            {
                string path = Path.Combine(folder, FileName);
                if (!File.Exists(path))
                {
                    tried.Add("no " + path);
                    continue;
                }
                string reason;
                IntPtr library = Open(path, out reason);
                if (reason != null)
                {
                    throw TuttiException.Ours(ErrorCode.Unavailable,
                        "the native library " + path + " cannot be loaded: " + reason);
                }
                Lead(path, library);
                return;
            }
        }

        // What to say when the runtime found none, either.
        public string Missing(string saidByRuntime)
        {
            string reason;
            Open(FileName, out reason);
            tried.Add("the system: " + (reason ?? saidByRuntime));
            return "the native library " + FileName + " was not found or cannot be loaded. Install tutti, or name " +
                "its folder by Library.Directory, " + Variable + " or LD_LIBRARY_PATH. Tried: " +
                string.Join("; ", tried);
        }

        private IEnumerable<string> Folders(string named)
        {
            string variable = Environment.GetEnvironmentVariable(Variable);
            if (!string.IsNullOrEmpty(named))
                yield return Path.GetFullPath(named);
            else if (!string.IsNullOrEmpty(variable))
                yield return Path.GetFullPath(variable);
            else
                tried.Add(Variable + " is not set");
            string assembly = typeof(NativeSearch).Assembly.Location;
            string own = assembly.Length > 0 ? Path.GetDirectoryName(assembly) : AppContext.BaseDirectory;
            yield return own;
            string machine = "linux-" + RuntimeInformation.ProcessArchitecture.ToString().ToLowerInvariant();
            yield return Path.Combine(own, "runtimes", machine, "native");
        }

        // The loader's reason, which the runtimes do not tell, or only in part; null when it is loaded, or where there
        // is no such loader.
        private static IntPtr Open(string path, out string reason)
        {
            reason = null;
            try
            {
                dlerror(); // found now: to find it later would overwrite what it is to tell
                IntPtr library = dlopen(path, Now);
                if (library == IntPtr.Zero)
                    reason = Marshal.PtrToStringAnsi(dlerror());
                return library;
            }
            catch (DllNotFoundException)
            {
                return IntPtr.Zero;
            }
        }

        // Mono has a map of names. Runtimes that have neither are given what the loader knows under that name.
        private static void Lead(string path, IntPtr library)
        {
            handle = library;
            if (!Leaving.IsMono)
            {
                ResolveHere();
                return;
            }
            try
            {
                mono_dllmap_insert(IntPtr.Zero, Name, null, path, null);
            }
            catch (EntryPointNotFoundException)
            {
            }
        }

        private static void ResolveHere()
        {
            if (resolves)
                return;
            resolves = true;
            try
            {
#if NETCOREAPP
                NativeLibrary.SetDllImportResolver(typeof(NativeSearch).Assembly, Resolve);
#else
                // Which .NET Standard 2.0 does not know, and .NET has.
                const string Services = "System.Runtime.InteropServices";
                Type library = Type.GetType(Services + ".NativeLibrary, " + Services);
                MethodInfo set = library == null ? null : library.GetMethod("SetDllImportResolver");
                if (set == null)
                    return;
                const BindingFlags Hidden = BindingFlags.Static | BindingFlags.NonPublic;
                MethodInfo own = typeof(NativeSearch).GetMethod("Resolve", Hidden);
                Delegate resolver = Delegate.CreateDelegate(set.GetParameters()[1].ParameterType, own);
                set.Invoke(null, new object[] { typeof(NativeSearch).Assembly, resolver });
#endif
            }
            catch (Exception e) when (e is InvalidOperationException || e.InnerException is InvalidOperationException)
            {
                // The program has a resolver for this assembly.
            }
        }

        private static IntPtr Resolve(string name, Assembly assembly, DllImportSearchPath? path)
        {
            return name == Name ? handle : IntPtr.Zero; // 0: the runtime's own way
        }

        [DllImport("libdl.so.2")]
        private static extern IntPtr dlopen(string path, int flags);

        [DllImport("libdl.so.2")]
        private static extern IntPtr dlerror();

        [DllImport("__Internal")]
        private static extern void mono_dllmap_insert(IntPtr image, string name, string function, string target,
            string targetFunction);
    }
}
