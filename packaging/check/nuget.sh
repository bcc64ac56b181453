# SPDX-License-Identifier: Apache-2.0
# For packaging/check.sh: the NuGet packages on Mono, as they are unpacked.
new_root mono-mcs unzip
cp "$folder"/nuget/*.nupkg "$root/packages"
cp "$programs/Hello.cs" "$root/root"
try 'nuget: C#, compiled' sh -c 'for package in /packages/*.nupkg; do unzip -qo "$package" -d unpacked; done
    cp unpacked/lib/netstandard2.0/Tutti.dll unpacked/runtimes/linux-x64/native/* . && mcs -r:Tutti.dll Hello.cs && echo done'
try_program 'nuget: C# on Mono, natives from the package' mono Hello.exe
