# SPDX-License-Identifier: Apache-2.0
# For packaging/check.sh: the repository folder for Maven. Nothing is installed but the language's run time.
jars=$folder/maven/org/tutti/tutti
new_root default-jdk-headless
cp "$jars"/*/*.jar "$root/packages"
cp "$programs/Hello.java" "$root/root"
# shellcheck disable=SC2016
try 'maven: Java, compiled' sh -c 'javac -cp "$(ls /packages/tutti-*.jar | grep -E "tutti-[0-9.]+.jar$")" Hello.java && echo done'
cp "$root/root"/*.class "$store"
new_root default-jre-headless
cp "$jars"/*/*.jar "$root/packages"
mv "$store"/*.class "$root/root"
# shellcheck disable=SC2016
class_path=$(in_root sh -c 'echo $(ls /packages/tutti-*.jar | grep -E "tutti-[0-9.]+(-natives-.*)?.jar$") /root | tr " " :')
try_program 'maven: Java, natives from the jar' java -cp "$class_path" Hello
mount -t tmpfs -o noexec tmpfs "$root/tmp"
try_program 'maven: Java, no code runs in /tmp' java -cp "$class_path" Hello
try 'maven: Java, nowhere to unpack: told' sh -c "java -Dtutti.unpack.path=/tmp -cp $class_path Hello train model 2>&1 |
    grep -o 'the jar of natives, unpacked in /tmp: [^;]*'"
umount "$root/tmp"
# shellcheck disable=SC2016
hold 'maven: bytes of the jar of natives (40 MiB at most)' sh -c 'bytes=$(stat -c %s "$1"/*/*-natives-*.jar) && echo "$bytes" &&
    [ "$bytes" -le 41943040 ]' check "$jars"
