# SPDX-License-Identifier: Apache-2.0
# For packaging/check.sh: the NuGet packages, unpacked, on Mono and on CoreCLR, with the tests of the binding.
. packaging/check/coreclr.sh
tests='Stress Failures Borrowing Functions'
made=$store/nuget

# run_tests WHAT PROGRAM CLASS...: the tests of classes, under a collector that is busy all the time.
run_tests() {
    what=$1
    shift
    # shellcheck disable=SC2016
    try "$what" env COMPlus_GCgen0size=10000 TUTTI_DOTNET=/opt/dotnet/dotnet \
        DOTNET_SYSTEM_GLOBALIZATION_INVARIANT=1 sh -c '
        program=$1 && shift && rm -f outcome
        for name in "$@"; do /opt/dotnet/dotnet "$program" "$name" >>outcome 2>&1 || { cat outcome; exit 1; }; done
        echo "$(grep -c ": ok$" outcome) ok, $(grep -c ": skipped" outcome) skipped, of $*"' check "$@"
}
rm -rf "$made"
mkdir "$made"

# Programs are made by Mono's compiler: hello, the tests, and, of the sources, the assembly for .NET with its tests.
begin_root mono-mcs unzip
cp "$folder"/nuget/*.nupkg "$root/packages"
cp "$programs/Hello.cs" "$root/root"
try 'nuget: C#, compiled' sh -c 'for package in /packages/*.nupkg; do unzip -qo "$package" -d unpacked; done
    cp -r unpacked/lib/netstandard2.0/Tutti.dll unpacked/runtimes . && mcs -r:Tutti.dll Hello.cs && echo done'
try_program 'nuget: C# on Mono, natives from the package' mono Hello.exe
try_workers 'nuget: C# on Mono, two processes train together' mono Hello.exe
natives=runtimes/linux-x64/native
in_root sh -c "mkdir other && cp -r Hello.exe Tutti.dll runtimes other && echo text >other/$natives/libtutti.so.0.1"
try_error 'nuget: Mono, a text for a library: told' libtutti.so.0.1 mono other/Hello.exe predict model
in_root sh -c "mkdir bare && cp Hello.exe Tutti.dll bare"
try_error 'nuget: Mono, no natives: told where it looked' "bare/$natives" mono bare/Hello.exe predict model
try_program 'nuget: Mono, natives by TUTTI_LIBRARY_DIR' env TUTTI_LIBRARY_DIR="/root/$natives" mono bare/Hello.exe
mount -t tmpfs -o ro tmpfs "$root/tmp"
try_program 'nuget: Mono, /tmp read-only, no HOME' env -u HOME mono Hello.exe
umount "$root/tmp"
in_root sh -c 'cp Hello.exe Hello.dll'
cp -r "$root/root/Hello.dll" "$root/root/Tutti.dll" "$root/root/runtimes" "$made"
hold 'nuget: bytes of Tutti.Native.linux-x64 (40 MiB at most)' sh -c 'bytes=$(stat -c %s "$1"/Tutti.Native.*.nupkg) &&
    echo "$bytes" && [ "$bytes" -le 41943040 ]' check "$folder/nuget"

if [ -z "$coreclr" ]; then
    say 'nuget: C# on CoreCLR 3.1' "skipped: $no_coreclr"
else
    install_in_root swig python3-yaml
    install_coreclr
    mkdir "$root/root/source"
    tar -c bindings include lib/capi lib/data/*.yaml lib/graph/ops/ops.yaml lib/nn/nn.yaml tests/bindings/csharp |
        tar -x -C "$root/root/source"
    try 'nuget: tests of the binding, compiled' sh -c '
        mcs -langversion:7.2 -unsafe -out:Tests.dll -target:exe -r:Tutti.dll source/tests/bindings/csharp/*.cs \
            source/bindings/csharp/src/JsonReader.cs && echo done'
    try 'nuget: the assembly for .NET, compiled' sh -c '
        python3 source/bindings/csharp/coreclr.py /opt/dotnet core && echo done'
    cp -r "$root/root/Tests.dll" "$root/root/core" "$made"

    begin_root
    install_coreclr
    cp -r "$made"/* "$root/root"
    cp -r "$root/root/runtimes" "$root/root/core"
    for program in root/Hello root/Tests; do configure_coreclr "$program"; done
    # shellcheck disable=SC2086
    {
        try_program 'nuget: C# on CoreCLR 3.1, natives from the package' $dotnet Hello.dll
        try_workers 'nuget: CoreCLR, two processes train together' $dotnet Hello.dll
        mount -t tmpfs -o ro tmpfs "$root/tmp"
        # What debuggers are told goes to /tmp: without that CoreCLR does not start.
        try_program 'nuget: CoreCLR, /tmp read-only, no HOME' env -u HOME COMPlus_EnableDiagnostics=0 $dotnet Hello.dll
        umount "$root/tmp"
        run_tests 'nuget: tests on CoreCLR, netstandard2.0' Tests.dll $tests
        run_tests 'nuget: tests on CoreCLR, assembly for .NET' core/Tests.dll $tests WithSpans
    }
fi
rm -rf "$made"
