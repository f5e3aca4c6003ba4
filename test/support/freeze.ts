import { readdirSync, readFileSync } from 'node:fs'

/** Stops a process and all below it without ending them, as a machine that hangs does. Answers how to let them go on. */
export function freeze(pid: number): () => void {
  const frozen: number[] = []
  // A parent first: it starts no more children while they are looked for.
  const stop = (each: number) => {
    process.kill(each, 'SIGSTOP')
    frozen.push(each)
    for (const child of childrenOf(each)) stop(child)
  }
  stop(pid)
  return () => {
    for (const each of frozen.reverse()) process.kill(each, 'SIGCONT')
  }
}

function childrenOf(parent: number): number[] {
  return readdirSync('/proc')
    .map(Number)
    .filter((pid) => Number.isInteger(pid) && parentOf(pid) === parent)
}

function parentOf(pid: number): number | null {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
    return Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1])
  } catch {
    return null
  }
}
