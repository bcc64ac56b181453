# SPDX-License-Identifier: Apache-2.0
# For packaging/build.sh: a repository folder with the jar, its sources and documentation, and the jars of natives, which
# carry what they need but glibc.
packaging/install-deps.sh tarball
build_release
java=$release/build/bindings/java
javac=$(readlink -f "$(command -v javac)")
native=$work/maven/native
mkdir -p "$native" "$work/maven/jars" "$work/maven/licenses"
cp "$release/root/tutti/lib/jni/libtuttijni.so" "$release/root"/tutti/lib/tutti/plugins-*/tutti-gloo.so "$native"
cp -L "$release/root/tutti/lib/libtutti.so.0.1" "$native"
python3 packaging/bundle_libraries.py "$native" "$native"/*.so* --licences "$work/maven/licenses"
beside=$(find "$native" -name '*.so*' ! -name 'libtutti.so.*' ! -name libtuttijni.so | sort)
# shellcheck disable=SC2086
python3 bindings/java/build_java.py natives "$java" "$work/maven/jars/natives.jar" "$java/tutti.jar" "$javac" \
    "$native/libtutti.so.0.1" "$native/libtuttijni.so" beside $beside
python3 bindings/java/build_java.py javadoc "$java" "$(dirname "$javac")/javadoc" >"$work/maven/javadoc.log"
python3 packaging/formats/maven_repository.py "$out/maven" "$version" "$java/pom.xml" "=$java/tutti.jar" \
    "sources=bindings/java/src/main/java,$java/generated" "javadoc=$java/javadoc" \
    "natives-linux-$(uname -m)=$work/maven/jars/natives.jar"
