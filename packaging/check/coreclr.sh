# SPDX-License-Identifier: Apache-2.0
# For packaging/check.sh: CoreCLR 3.1, which Debian lacks. Read once by each kind that needs it.

# The folder with dotnet; empty, with the reason in $no_coreclr, where there is none.
find_coreclr() {
    coreclr=${TUTTI_CORECLR:-} no_coreclr=''
    [ -z "$coreclr" ] || return 0
    mkdir -p "$store"
    place=${XDG_CACHE_HOME:-$HOME/.cache}/tutti/dotnetcore2
    if [ ! -x "$place/dotnetcore2/bin/dotnet" ]; then
        mkdir -p "$place"
        if ! python3 -m pip download -q --no-deps --only-binary=:all: -d "$place" dotnetcore2 >"$store/log" 2>&1; then
            no_coreclr="pip download dotnetcore2: $(tail -n 1 "$store/log"); TUTTI_CORECLR names no folder"
            return 0
        fi
        python3 -m zipfile -e "$place"/dotnetcore2-*.whl "$place"
        chmod +x "$place/dotnetcore2/bin/dotnet"
    fi
    coreclr=$place/dotnetcore2/bin
}

# Puts it into the root, for $dotnet to run.
dotnet='env DOTNET_SYSTEM_GLOBALIZATION_INVARIANT=1 /opt/dotnet/dotnet'
install_coreclr() {
    cp -r "$coreclr" "$root/opt/dotnet"
}

# What dotnet reads beside a program: for PROGRAM.dll in a folder of the root.
configure_coreclr() {
    echo '{"runtimeOptions": {"framework": {"name": "Microsoft.NETCore.App", "version": "3.1.0"}}}' \
        >"$root/$1.runtimeconfig.json"
}

find_coreclr
