set -eu
ssh='sh /run/microcluster/ssh'
data=@DISK@/debian_en_de
whole="
export LC_ALL=C
for file in '$data' '$data/ID' '$data/SHA256SUMS'; do
  case \$(ls -d \"\$file\" 2>&1) in *'No such file or directory') exit 1 ;; esac
done
cd '$data' && id=\$(cat ID) || exit 2
[ \"\$id\" = 'debian-en-de-5317edde' ] || exit 1
sums=\$(sha256sum -c --quiet SHA256SUMS 2>&1) && exit 0 || code=\$?
case \$sums in *'No such file or directory'*) exit 1 ;; *'FAILED open or read'*) exit 2 ;; esac
exit \$code"
case $1 in
whole) sh -c "$whole" ;;
has) $ssh "$2" "$whole" ;;
bring)
  mkdir -p "$data"
  send="cd '$data' && { echo SHA256SUMS; sed 's/^[0-9a-f]* [ *]//' SHA256SUMS; } | tar -cf - --no-unquote -T -"
  # A stream that ends early may end at the border of two files, which tar takes for the end: ssh's exit code counts too.
  sent=$({ { $ssh "$2" "$send" && echo 0 >&3 || echo $? >&3; } | tar -C "$data" -xf - >&2; } 3>&1)
  exit "$sent"
  ;;
esac
