import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, mkdirSync, openSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { setTimeout as sleep } from 'node:timers/promises'
import { z } from 'zod'
import type { Account } from './account.ts'
import { startGuard } from './guard.ts'
import { killGroup, processStart } from './process.ts'
import { writeWhole } from './write-whole.ts'

export type Child = { id: string; pid: number; port: number }

/** The processes of the lab, by id. A child that ends is simply no longer there. */
export type Children = {
  get(id: string): Child | undefined
  /** Of all that run, by id. */
  pids(): Record<string, number>
  /** Resolves when the program listens; rejects when it ends before or takes longer than `startMs`. */
  start(id: string, program: string, directory: string, spec: object): Promise<Child>
  /** Sends one JSON line to the child, if it is there. */
  tell(id: string, message: object): void
  /** Kills the child with everything in its process group and waits until it is gone. */
  kill(id: string): Promise<void>
  stopAll(): Promise<void>
}

const startMs = 15_000

const leftovers = z.array(z.object({ id: z.string(), pid: z.number().int(), start: z.string() }))
type Leftover = z.infer<typeof leftovers>[number]

/** Kills what an earlier controller left in `dir`. Throws when that controller is still alive. */
export function openChildren(dir: string, account: Account | null): Children {
  const file = join(dir, 'children.json')
  clearLeftovers(file, dir)
  mkdirSync(join(dir, 'log'), { recursive: true, mode: 0o700 })
  const guard = startGuard()
  const children = new Map<string, Child & { process: ChildProcess; start: string }>()

  function record(): void {
    const all: Leftover[] = [...children.values()].map(({ id, pid, start }) => ({ id, pid, start }))
    all.push({ id: 'controller', pid: process.pid, start: processStart(process.pid) ?? '' })
    writeWhole(file, JSON.stringify(all))
  }
  record()

  /** Where compiled programs are kept, if anywhere: seventeen nodes start at once. */
  const compiled = process.env.NODE_COMPILE_CACHE && { NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE }

  async function start(id: string, program: string, directory: string, spec: object): Promise<Child> {
    if (children.has(id)) throw new Error(`${id} already runs`)
    const log = openSync(join(dir, 'log', `${id}.log`), 'a', 0o600)
    const child = spawn(
      process.execPath,
      [join(import.meta.dirname, 'node', program), JSON.stringify({ ...spec, id, account })],
      // Its own group, so that it can be killed with all it started; hardly any environment, so that it knows no token.
      { cwd: directory, stdio: ['pipe', 'pipe', log], detached: true, env: { PATH: '/usr/bin:/bin', ...compiled } },
    )
    closeSync(log)
    child.stdin!.on('error', () => {})
    const pid = child.pid
    if (pid === undefined) {
      const [error] = await once(child, 'error')
      throw new Error(`${id} did not start: ${(error as Error).message}`)
    }
    guard.add(pid)
    const entry = { id, pid, port: 0, process: child, start: processStart(pid) ?? '' }
    children.set(id, entry)
    record()
    const ended = new Promise<never>((_, reject) => {
      child.once('exit', (code, signal) => {
        // What it started goes with it, whatever it died of.
        killGroup(pid)
        guard.drop(pid)
        children.delete(id)
        record()
        const log = join('log', `${id}.log`)
        reject(new Error(`${id} ended with ${signal ?? `code ${code}`}${lastError(join(dir, log))}; see ${log}`))
      })
    })
    ended.catch(() => {})
    const deadline = AbortSignal.timeout(startMs)
    const late = once(deadline, 'abort').then(() => {
      throw new Error(`${id} did not listen within ${startMs / 1000} s`)
    })
    late.catch(() => {})
    try {
      entry.port = await Promise.race([listening(child), ended, late])
    } catch (error) {
      killGroup(pid)
      throw error
    }
    return { id, pid, port: entry.port }
  }

  async function kill(id: string): Promise<void> {
    const child = children.get(id)
    if (!child) return
    const exited = once(child.process, 'exit')
    killGroup(child.pid)
    await exited
  }

  return {
    get: (id) => children.get(id),
    pids: () => Object.fromEntries([...children.values()].map(({ id, pid }) => [id, pid])),
    start,
    tell: (id, message) => void children.get(id)?.process.stdin?.write(`${JSON.stringify(message)}\n`),
    kill,
    async stopAll() {
      // A closed stdin asks each to end in its own way; who is stopped or slow is killed.
      for (const child of children.values()) child.process.stdin?.end()
      const patience = Date.now() + 500
      while (children.size > 0 && Date.now() < patience) await sleep(10)
      await Promise.all([...children.keys()].map(kill))
      guard.release()
      writeWhole(file, '[]')
    },
  }
}

/** What a program that ended said of it, so that nobody has to open the log first. */
function lastError(log: string): string {
  const line = readFileSync(log, 'utf8')
    .match(/^.*Error: .*$/gm)
    ?.at(-1)
  return line === undefined ? '' : ` (${line.trim().slice(0, 200)})`
}

async function listening(child: ChildProcess): Promise<number> {
  const lines = createInterface({ input: child.stdout! })
  const [line] = await once(lines, 'line')
  return z.object({ listening: z.number().int() }).parse(JSON.parse(line as string)).listening
}

function clearLeftovers(file: string, dir: string): void {
  let all: Leftover[]
  try {
    all = leftovers.parse(JSON.parse(readFileSync(file, 'utf8')))
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return
    throw new Error(`cannot read ${file}: ${(error as Error).message}`)
  }
  const alive = all.filter(({ pid, start }) => processStart(pid) === start)
  const controller = alive.find(({ id }) => id === 'controller')
  if (controller && controller.pid !== process.pid) {
    throw new Error(`another lab runs in ${dir} (process ${controller.pid})`)
  }
  for (const { id, pid } of alive) if (id !== 'controller') killGroup(pid)
}
