#!/bin/sh
# Installs ibid VERSION for the current user, without root, after checking its hash:
#
#   curl -fsSL URL/install.sh | sh
#
# IBID_URL is where the release is, IBID_BIN the directory of the program (default ~/.local/bin).
set -eu
version=@VERSION@
url=${IBID_URL:-https://github.com/ibidhq/ibid/releases/download/$version}
bin=${IBID_BIN:-$HOME/.local/bin}

fail() {
  echo "install.sh: $*" >&2
  exit 1
}

case $(uname -s) in
Linux) os=linux ;;
Darwin) os=darwin ;;
*) fail "there is no release for $(uname -s): see the README" ;;
esac
case $(uname -m) in
x86_64 | amd64) arch=amd64 ;;
aarch64 | arm64) arch=arm64 ;;
*) fail "there is no release for $(uname -m): see the README" ;;
esac
name=ibid_${version}_${os}_${arch}

dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
for file in SHA256SUMS "$name.tar.gz"; do
  curl -fsSL -o "$dir/$file" "$url/$file" || fail "$url/$file cannot be fetched"
done
want=$(sed -n "s|^\([0-9a-f]\{64\}\) [ *]\(\./\)\{0,1\}$name\.tar\.gz\$|\1|p" "$dir/SHA256SUMS")
[ -n "$want" ] || fail "SHA256SUMS does not list $name.tar.gz"
if command -v sha256sum >/dev/null; then
  is=$(sha256sum "$dir/$name.tar.gz")
else
  is=$(shasum -a 256 "$dir/$name.tar.gz")
fi
[ "${is%% *}" = "$want" ] || fail "$name.tar.gz has another hash than SHA256SUMS says: nothing was installed"
tar -xzf "$dir/$name.tar.gz" -C "$dir"
mkdir -p "$bin"
# Replaced, not overwritten: a running ibid continues with the old file.
cp "$dir/$name/ibid" "$bin/.ibid.new"
chmod 755 "$bin/.ibid.new"
mv "$bin/.ibid.new" "$bin/ibid"
echo "installed ibid $version as $bin/ibid"
case :$PATH: in
*":$bin:"*) ;;
*) echo "$bin is not in PATH: add it, or run $bin/ibid" ;;
esac
