import { spawn } from 'node:child_process'

/**
 * A shell that outlives the controller by an instant: it gets every child's process group, and when the pipe to it
 * ends, however the controller ended, it kills those that are left. A child in SIGSTOP cannot watch its own parent.
 */
export type Guard = { add(pid: number): void; drop(pid: number): void; release(): void }

const script = `
pids=
while read -r word pid; do
  if [ "$word" = add ]; then pids="$pids $pid"; continue; fi
  kept=
  for each in $pids; do [ "$each" = "$pid" ] || kept="$kept $each"; done
  pids=$kept
done
for each in $pids; do kill -s KILL -- "-$each" 2>/dev/null; done
`

export function startGuard(): Guard {
  const shell = spawn('/bin/sh', ['-c', script], { stdio: ['pipe', 'ignore', 'ignore'], detached: true, env: {} })
  // Without its guard the lab still runs: children also watch their own end of the parent, and a start clears leftovers.
  shell.stdin.on('error', () => {})
  shell.on('error', () => {})
  return {
    add: (pid) => void shell.stdin.write(`add ${pid}\n`),
    drop: (pid) => void shell.stdin.write(`drop ${pid}\n`),
    release: () => void shell.stdin.end(),
  }
}
