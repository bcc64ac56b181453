# SPDX-License-Identifier: Apache-2.0
# For packaging/build.sh: a repository folder with the jar, its sources and documentation, and the jar of natives, which
# carries what it needs but glibc. Where the plug-in for NVIDIA's GPUs is built, it is in a jar of its own, which is
# unpacked beside the natives.
packaging/install-deps.sh tarball
build_release
java=$release/build/bindings/java
source=$release/source/bindings/java
javac=$(readlink -f "$(command -v javac)")
native=$work/maven/native
mkdir -p "$native" "$work/maven/jars" "$work/maven/licenses"
cp "$release/root/tutti/lib/jni/libtuttijni.so" "$native"
for plugin in gloo pjrt cuda; do
    find "$release/root/tutti/lib/tutti" -name "tutti-$plugin.so" -exec cp {} "$native" \;
done
cp -L "$release/root/tutti/lib/libtutti.so.0.1" "$native"
python3 packaging/bundle_libraries.py "$native" "$native"/*.so* --licences "$work/maven/licenses"
beside=$(find "$native" -name '*.so*' ! -name 'libtutti.so.*' ! -name libtuttijni.so ! -name tutti-cuda.so | sort)
# shellcheck disable=SC2086
python3 "$source/build_java.py" natives "$java" "$work/maven/jars/natives.jar" "$java/tutti.jar" "$javac" \
    "$native/libtutti.so.0.1" "$native/libtuttijni.so" beside $beside \
    licences "$work/maven/licenses"
gpu=''
if [ -f "$native/tutti-cuda.so" ]; then
    gpu=$work/maven/jars/cuda.jar
    python3 "$source/build_java.py" plugins "$java" "$gpu" cuda "$java/tutti.jar" "$javac" "$native/tutti-cuda.so"
fi
python3 "$source/build_java.py" javadoc "$java" "$(dirname "$javac")/javadoc" >"$work/maven/javadoc.log"
python3 packaging/formats/maven_repository.py "$out/maven" "$version" "$java/pom.xml" "=$java/tutti.jar" \
    "sources=$source/src/main/java,$java/generated" "javadoc=$java/javadoc" \
    "natives-linux-$(uname -m)=$work/maven/jars/natives.jar" ${gpu:+"natives-linux-$(uname -m)-cuda=$gpu"}
