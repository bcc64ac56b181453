# SPDX-License-Identifier: Apache-2.0
# For packaging/check.sh: the repository folder for Maven. Nothing is installed but the language's run time.
jars=$folder/maven/org/tutti/tutti
begin_root default-jdk-headless
cp "$jars"/*/*.jar "$root/packages"
cp "$programs/Hello.java" "$root/root"
# shellcheck disable=SC2016
try 'maven: Java, compiled' sh -c 'javac -cp "$(ls /packages/tutti-*.jar | grep -E "tutti-[0-9.]+.jar$")" Hello.java && echo done'
cp "$root/root"/*.class "$store"
begin_root default-jre-headless
cp "$jars"/*/*.jar "$root/packages"
mv "$store"/*.class "$root/root"
# shellcheck disable=SC2016
class_path=$(in_root sh -c 'echo $(ls /packages/tutti-*.jar | grep -E "tutti-[0-9.]+(-natives-.*)?.jar$") /root | tr " " :')
try_program 'maven: Java, natives from the jar' java -cp "$class_path" Hello
try_workers 'maven: Java, two processes train together' java -cp "$class_path" Hello
mount -t tmpfs -o noexec tmpfs "$root/tmp"
try_program 'maven: Java, no code runs in /tmp' java -cp "$class_path" Hello
try 'maven: Java, nowhere to unpack: told' sh -c "java -Dtutti.unpack.path=/tmp -cp $class_path Hello train model 2>&1 |
    grep -o 'the jar of natives, unpacked in /tmp: [^;]*'"
umount "$root/tmp"
mount -t tmpfs -o ro tmpfs "$root/tmp"
try_program 'maven: Java, /tmp read-only, no HOME' env -u HOME java -cp "$class_path" Hello
# shellcheck disable=SC2086
in_root install -d -o 65534 /srv/own && cp -r "$root"/root/*.class "$root/root/model" "$root/srv/own"
# shellcheck disable=SC2086,SC2016
{
    try_error 'maven: Java, a user who may write nowhere: told' 'the jar of natives, unpacked in /tmp: ' \
        $nobody sh -c 'cd /srv/own && exec java -cp "$1" Hello predict model' check "${class_path%/root}/srv/own"
    try 'maven: the same with -Dtutti.unpack.path' \
        $nobody sh -c 'cd /srv/own && exec java -Dtutti.unpack.path=/srv/own -cp "$1" Hello predict model' \
        check "${class_path%/root}/srv/own"
}
umount "$root/tmp"
# shellcheck disable=SC2016
in_root sh -c 'mv /packages/*-natives-*.jar whole.jar && head -c 1000000 whole.jar >half.jar'
half_path=$(in_root sh -c 'echo $(ls /packages/tutti-*.jar | grep -E "tutti-[0-9.]+.jar$") /root | tr " " :'):half.jar
try_error 'maven: half a jar: told' 'half.jar on the class path cannot be read' \
    java -cp "$half_path" Hello predict model
try_again 'maven: whole again' java -cp "${half_path%half.jar}whole.jar" Hello
# shellcheck disable=SC2016
hold 'maven: bytes of the jar of natives (40 MiB at most)' sh -c 'bytes=$(stat -c %s "$1"/*/*-natives-*.jar) && echo "$bytes" &&
    [ "$bytes" -le 41943040 ]' check "$jars"
