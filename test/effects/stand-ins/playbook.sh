#!/bin/bash
# Stands in for ansible-playbook: `playbook.sh DIRECTORY --limit HOST [--check --diff]`. A host is a file that should hold "wanted".
directory=$1 host=$3 mode=${4:-run}
echo "$mode $host" >> "$directory/calls"
echo "TASK [configuration] $(date +%H:%M:%S)"
[ "$host" = broken ] && { echo "$host : unreachable=1 failed=0"; exit 4; }
changed=0
if [ "$(cat "$directory/$host" 2>/dev/null)" != wanted ]; then
  changed=1
  echo "-$(cat "$directory/$host" 2>/dev/null)"
  echo '+wanted'
  [ "$mode" = --check ] || echo wanted > "$directory/$host"
fi
echo "token is $JOB_TOKEN, database is ${DATABASE_URL:-unset}"
echo "$host : ok=2 changed=$changed unreachable=0 failed=0"
