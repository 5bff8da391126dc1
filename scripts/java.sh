#!/usr/bin/env bash
# Prints the home of a Java of at least 17, which Spark needs. Looks at JAVA_HOME, then at PATH, then where systems
# keep theirs. On Debian as root it installs one; elsewhere it says what to install.
set -euo pipefail

major_version() { # of the java binary $1; nothing if it does not run
    "$1" -version 2>&1 | sed -n 's/.*version "\([0-9][0-9]*\).*/\1/p' | head -n 1 || true
}

home_of() { # the directory above bin/java, links resolved
    local binary
    binary="$(readlink -f "$1" 2>/dev/null || echo "$1")"
    dirname "$(dirname "$binary")"
}

find_java() {
    local candidate version
    for candidate in "${JAVA_HOME:+$JAVA_HOME/bin/java}" "$(command -v java || true)" \
        /usr/lib/jvm/*/bin/java /Library/Java/JavaVirtualMachines/*/Contents/Home/bin/java \
        /opt/homebrew/opt/openjdk*/bin/java /usr/local/opt/openjdk*/bin/java; do
        [[ -n "$candidate" && -x "$candidate" ]] || continue
        version="$(major_version "$candidate")"
        if [[ -n "$version" && "$version" -ge 17 ]]; then
            home_of "$candidate"
            return 0
        fi
    done
    return 1
}

find_java && exit 0

if [[ "$(id -u)" -eq 0 && -f /etc/debian_version ]] && command -v apt-get >/dev/null; then
    echo "No Java of at least 17 was found: installing openjdk-17-jre-headless ..." >&2
    export DEBIAN_FRONTEND=noninteractive
    if apt-get update -qq >&2 && { apt-get install -y -qq --no-install-recommends openjdk-17-jre-headless >&2 ||
        apt-get install -y -qq --no-install-recommends default-jre-headless >&2; }; then
        find_java && exit 0
    fi
    echo "The installation did not bring a Java of at least 17." >&2
fi

cat >&2 <<MESSAGE
Spark needs Java 17 or newer. JAVA_HOME is ${JAVA_HOME:-not set}; java on the PATH is $(command -v java || echo not there).
Install one, and set JAVA_HOME if it is not on the PATH:
  Debian, Ubuntu   sudo apt-get install openjdk-17-jre-headless
  Fedora           sudo dnf install java-21-openjdk-headless
  macOS            brew install openjdk@17 && export JAVA_HOME="\$(brew --prefix openjdk@17)"
MESSAGE
exit 1
