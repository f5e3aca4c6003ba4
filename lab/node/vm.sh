# A virtual machine. It counts, on storage that all hosts share, so the counter continues on the
# host where the VM starts next.
# Arguments: its id, the host that runs it, the host that it moves away from ('' for a start), the
# storage directory.
disk="$4/$1/counter"
beat="$4/$1/running.$2"

# In a migration this copy waits until the source host has released the VM, so that two copies never
# run.
if [ -n "$3" ]; then
  while [ -e "$4/$1/running.$3" ]; do
    kill -0 "$PPID" 2>/dev/null || exit 0
    sleep 0.05
  done
fi

count=0
[ -s "$disk" ] && read -r count <"$disk"

# `1<>` overwrites the file in place with one write, so a reader never finds the file empty. The
# parent process is the host.
# If the VM cannot write its beat on the storage, it ends before it counts.
while kill -0 "$PPID" 2>/dev/null; do
  count=$((count + 1))
  printf '%12d\n' "$$" 1<>"$beat" || exit 1
  printf '%12d\n' "$count" 1<>"$disk"
  sleep 1
done
