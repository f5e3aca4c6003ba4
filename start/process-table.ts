import { execFileSync, spawn } from 'node:child_process'
import { closeSync, openSync, readdirSync, readFileSync, readlinkSync, renameSync, writeFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'

/**
 * Returns an identity that distinguishes a process from a later process with the same pid: boot and
 * start time. Undefined if no process has the pid. A zombie counts as no process.
 */
export function identityOf(pid: number): string | undefined {
  if (process.platform === 'linux') {
    const stat = statOf(pid)
    return stat && `${bootId()}:${stat.startTicks}`
  }
  try {
    const line = execFileSync('ps', ['-o', 'stat=,lstart=', '-p', String(pid)], { encoding: 'utf8' }).trim()
    return line === '' || line.startsWith('Z') ? undefined : line.replace(/^\S+\s+/, '')
  } catch {
    return undefined
  }
}

/**
 * Returns whether the process with this identity still runs. False if another process has the pid.
 */
export function isRunning(pid: number, identity: string): boolean {
  return identityOf(pid) === identity
}

/** Lists the running processes of a process group. */
export function groupMembers(groupId: number): number[] {
  if (process.platform === 'linux') {
    return readdirSync('/proc')
      .filter((name) => /^\d+$/.test(name))
      .map(Number)
      .filter((pid) => statOf(pid)?.groupId === groupId)
  }
  return execFileSync('ps', ['-A', '-o', 'pid=,pgid=,stat='], { encoding: 'utf8' })
    .split('\n')
    .map((line) => line.trim().split(/\s+/))
    .filter(([, group, state]) => Number(group) === groupId && !state?.startsWith('Z'))
    .map(([pid]) => Number(pid))
}

/**
 * Returns the working directory of a process. Undefined if the process is gone or its directory
 * cannot be read.
 */
export function workingDirectoryOf(pid: number): string | undefined {
  try {
    if (process.platform === 'linux') return readlinkSync(`/proc/${pid}/cwd`)
    const lines = execFileSync('lsof', ['-a', '-p', String(pid), '-d', 'cwd', '-Fn'], { encoding: 'utf8' }).split('\n')
    return lines.find((line) => line.startsWith('n'))?.slice(1)
  } catch {
    return undefined
  }
}

/**
 * Sends a signal to a process, or to a process group by its negated number. False if there is no
 * such process or group.
 */
export function sendSignal(pid: number, signal: NodeJS.Signals): boolean {
  try {
    process.kill(pid, signal)
    return true
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ESRCH') return false
    throw error
  }
}

function statOf(pid: number): { groupId: number; startTicks: string } | undefined {
  let stat: string
  try {
    stat = readFileSync(`/proc/${pid}/stat`, 'latin1')
  } catch {
    return undefined
  }
  // Splits the line after the process' name, which may contain spaces and parentheses.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  const [state, , groupId] = fields
  const startTicks = fields[19]
  if (state === 'Z' || state === 'X' || groupId === undefined || startTicks === undefined) return undefined
  return { groupId: Number(groupId), startTicks }
}

let cachedBootId: string | undefined

function bootId(): string {
  cachedBootId ??= readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()
  return cachedBootId
}

/** A file that lists a process' children, so that the children of a killed start can be stopped. */
export interface Ledger {
  file: string
  add(name: string, pid: number): void
  remove(pid: number): void
  /**
   * Kills the groups of all listed processes at once and synchronously. Then closes the ledger and
   * leaves its file unchanged.
   */
  kill(): void
}

interface Page {
  owner: { pid: number; identity: string }
  processes: { name: string; pid: number; identity: string }[]
}

/**
 * Opens the ledger of this process. Call `stopLeftovers` first, because the content of the file is
 * overwritten.
 */
export function openLedger(file: string): Ledger {
  const page: Page = { owner: { pid: process.pid, identity: identityOf(process.pid) ?? '' }, processes: [] }
  let closed = false
  const write = () => {
    if (closed) return
    writeFileSync(`${file}.new`, `${JSON.stringify(page, null, 2)}\n`, { mode: 0o600 })
    renameSync(`${file}.new`, file)
  }
  write()
  return {
    file,
    add(name, pid) {
      const identity = identityOf(pid)
      if (identity === undefined) return
      page.processes.push({ name, pid, identity })
      write()
    },
    remove(pid) {
      page.processes = page.processes.filter((entry) => entry.pid !== pid)
      try {
        write()
      } catch {
        // Ignores a full disk. The process stays listed, but its identity shows that it is gone.
      }
    },
    kill() {
      closed = true
      for (const { pid } of page.processes) sendSignal(-pid, 'SIGKILL')
    },
  }
}

/**
 * Stops the processes that the ledger in `file` lists, if the process that wrote the ledger is
 * gone. Returns the names of the stopped processes. Never stops a later process that has a listed
 * pid.
 */
export async function stopLeftovers(file: string, graceMs = 3_000): Promise<string[]> {
  const page = readPage(file)
  if (!page || isRunning(page.owner.pid, page.owner.identity)) return []

  const left = page.processes.filter(({ pid, identity }) => isRunning(pid, identity) || lostItsLeader(pid, identity))
  // Stops the latest process first, so that a worker ends before its database.
  for (const { pid } of left.toReversed()) sendSignal(-pid, 'SIGTERM')
  const deadline = Date.now() + graceMs
  const alive = () => left.filter(({ pid }) => groupMembers(pid).length > 0)
  while (alive().length > 0 && Date.now() < deadline) await sleep(25)
  for (const { pid } of alive()) sendSignal(-pid, 'SIGKILL')
  for (let round = 0; alive().length > 0 && round < 80; round++) await sleep(25)
  return left.map((entry) => entry.name)
}

/**
 * Returns whether a process group still runs but its leader has ended. While the group exists, no
 * other process gets the leader's pid.
 */
function lostItsLeader(pid: number, identity: string): boolean {
  const sameBoot = identityOf(process.pid)?.split(':')[0] === identity.split(':')[0]
  return sameBoot && identityOf(pid) === undefined && groupMembers(pid).length > 0
}

/**
 * Stops the ledger's processes after this process has ended for any reason. A shell waits until its
 * input ends, which costs nothing, and then runs this file. Returns a function that ends the shell.
 */
export function stopAfterDeath(file: string, logFile: string): () => void {
  const log = openSync(logFile, 'a', 0o600)
  const words = [process.execPath, '--disable-warning=ExperimentalWarning', fileURLToPath(import.meta.url), file]
  const guardian = spawn('/bin/sh', ['-c', 'read -r _ && exit; exec "$@"', 'sh', ...words], {
    // Runs in a separate group, so that a signal to the terminal's group does not end it.
    detached: true,
    stdio: ['pipe', log, log],
  })
  closeSync(log)
  guardian.on('error', () => undefined)
  guardian.stdin?.on('error', () => undefined)
  guardian.unref()
  ;(guardian.stdin as unknown as { unref(): void }).unref()
  return () => guardian.stdin?.end('done\n')
}

function readPage(file: string): Page | undefined {
  try {
    return JSON.parse(readFileSync(file, 'utf8')) as Page
  } catch {
    // Returns undefined for a file that is absent, or that a full disk cut.
    return undefined
  }
}

if (import.meta.main) {
  const names = await stopLeftovers(process.argv[2] ?? '')
  if (names.length > 0)
    console.log(
      `${new Date().toISOString()} the start was killed, so these processes were stopped: ${names.join(', ')}`,
    )
}
