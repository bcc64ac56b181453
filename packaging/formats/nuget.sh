# SPDX-License-Identifier: Apache-2.0
# For packaging/build.sh: the assembly, and the native libraries with what they need. Mono's compiler makes it, with
# references to mscorlib, which .NET forwards; a real assembly of .NET Standard needs the .NET SDK (Tutti.csproj).
packaging/install-deps.sh tarball
build_release
mkdir -p "$out/nuget" "$work/nuget/native" "$work/nuget/licenses"
cp "$release/root/tutti/lib/libtuttisharp.so" "$release/root"/tutti/lib/tutti/plugins-*/tutti-gloo.so \
    "$release/root"/tutti/lib/tutti/plugins-*/tutti-pjrt.so "$work/nuget/native"
cp -L "$release/root/tutti/lib/libtutti.so.0.1" "$work/nuget/native"
python3 packaging/bundle_libraries.py "$work/nuget/native" "$work"/nuget/native/*.so* --licences "$work/nuget/licenses"
python3 packaging/formats/nuget_package.py Tutti "$version" "$out/nuget" \
    'Trains neural networks on every device, and predicts on all of them.' --dependency Tutti.Native.linux-x64 \
    "$release/root/tutti/lib/tutti/Tutti.dll=lib/netstandard2.0/Tutti.dll" \
    "$release/build/bindings/csharp/Tutti.xml=lib/netstandard2.0/Tutti.xml" \
    "$release/source/bindings/csharp/README.md=README.md"
python3 packaging/formats/nuget_package.py Tutti.Native.linux-x64 "$version" "$out/nuget" \
    'The native libraries of Tutti for Linux on x86-64, with what they need but glibc.' \
    "$work/nuget/native=runtimes/linux-x64/native" "$work/nuget/licenses=licenses" \
    "$release/source/bindings/csharp/README.md=README.md"
