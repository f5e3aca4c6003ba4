# A virtual machine: counts, on storage that every host shares, so that it goes on wherever it is started next.
# Arguments: its id, the host that runs it, the host it is taken over from ('' for a start), the storage directory.
disk="$4/$1/counter"
beat="$4/$1/running.$2"

# A migration: this copy waits until the source has let go, so that there are never two.
if [ -n "$3" ]; then
  while [ -e "$4/$1/running.$3" ]; do
    kill -0 "$PPID" 2>/dev/null || exit 0
    sleep 0.05
  done
fi

count=0
[ -s "$disk" ] && read -r count <"$disk"

# `1<>` overwrites in place in one write: a reader never finds the file empty. Its parent is the host. On storage that takes
# no beat it ends before it counts.
while kill -0 "$PPID" 2>/dev/null; do
  count=$((count + 1))
  printf '%12d\n' "$$" 1<>"$beat" || exit 1
  printf '%12d\n' "$count" 1<>"$disk"
  sleep 1
done
