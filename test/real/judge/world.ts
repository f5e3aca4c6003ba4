import { type ChildProcessWithoutNullStreams, spawn, spawnSync } from 'node:child_process'
import { existsSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { temporaryDirectory } from '../../support/directory.ts'

/** What lies in a world before a text runs in it: files and links by their path, and processes. */
export type Furniture = {
  files: { path: string; mode: string; content: string | Buffer }[]
  links: { path: string; target: string }[]
  neighbours: { name: string; option: string; environment: Record<string, string> }[]
}

export type Job = { text: string; environment: Record<string, string>; directory: string }

export type Outcome = {
  /** `time`: it was still there when its seconds were over. */
  how: 'ended' | 'time' | 'output' | 'world'
  exitCode: number | null
  tookMs: number
  stdout: string
  stderr: string
  /** What it left: `made /x`, `alive 12 tail -f x`, `call kill`, `packets 1`, `mounts changed`. */
  left: string[]
}

export type Worlds = {
  run(job: Job): Promise<Outcome>
  close(): Promise<void>
}

/**
 * They take root that may mount, perl, and the numbers that x86-64 gives to calls of the kernel.
 */
export const canRunWorlds = (): boolean =>
  process.arch === 'x64' &&
  process.getuid?.() === 0 &&
  existsSync(perl) &&
  spawnSync('unshare', ['--mount', 'true']).status === 0

const perl = '/usr/bin/perl'

/** The wall in seconds at which a text is killed. */
export const wallSeconds = 5

/**
 * Lanes side by side: most of the time of a text is waited, and each lane has one text at a time.
 */
export function openWorlds(furniture: Furniture, lanes: number): Worlds {
  const open = Array.from({ length: lanes }, () => openLane(furniture))
  const free = [...open]
  const waiting: ((lane: Lane) => void)[] = []
  const take = () => {
    const lane = free.pop()
    return lane ? Promise.resolve(lane) : new Promise<Lane>((resolve) => waiting.push(resolve))
  }
  const give = (lane: Lane) => {
    const next = waiting.shift()
    if (next) next(lane)
    else free.push(lane)
  }
  return {
    async run(job) {
      const lane = await take()
      try {
        return await lane.run(job)
      } finally {
        give(lane)
      }
    },
    async close() {
      await Promise.all(open.map((lane) => lane.close()))
    },
  }
}

type Lane = { run(job: Job): Promise<Outcome>; close(): Promise<void> }

const program = join(import.meta.dirname, 'world.pl')

function openLane({ files, links, neighbours }: Furniture): Lane {
  const place = temporaryDirectory()
  const child = spawn(perl, [program, place.path], {
    stdio: ['pipe', 'pipe', 'pipe'],
    env: { PATH: '/usr/sbin:/usr/bin:/sbin:/bin', LC_ALL: 'C' },
  })
  child.stdin.on('error', () => undefined)
  let said = ''
  child.stderr.on('data', (chunk: Buffer) => {
    said = (said + chunk.toString()).slice(-4_000)
  })
  const answers = frames(child, () => said)
  const send = (...fields: (string | number)[]) => {
    const bytes = Buffer.from(fields.join('\0'))
    child.stdin.write(`${bytes.length}\n`)
    child.stdin.write(bytes)
  }
  for (const { path, mode, content } of files) send('f', path, mode, Buffer.from(content).toString('base64'))
  for (const { path, target } of links) send('l', path, target)
  for (const { name, option, environment } of neighbours) send('n', name, option, ...assigned(environment))
  return {
    async run({ text, environment, directory }) {
      const set = assigned(environment)
      send('t', wallSeconds, directory, set.length, ...set, text)
      return readOutcome(await answers())
    },
    async close() {
      const ended = new Promise((resolve) => child.once('exit', resolve))
      child.stdin.end()
      if (child.exitCode === null && child.signalCode === null) await ended
      rmSync(place.path, { recursive: true, force: true })
      place.remove()
    },
  }
}

const assigned = (environment: Record<string, string>) =>
  Object.entries(environment).map(([name, value]) => `${name}=${value}`)

/** One frame after the other; each is asked for. */
function frames(child: ChildProcessWithoutNullStreams, said: () => string): () => Promise<Buffer> {
  let held = Buffer.alloc(0)
  let wanted: { resolve(frame: Buffer): void; reject(error: Error): void } | null = null
  const look = () => {
    const end = held.indexOf(10)
    if (!wanted || end < 0) return
    const length = Number(held.subarray(0, end).toString())
    if (held.length < end + 1 + length) return
    const frame = held.subarray(end + 1, end + 1 + length)
    held = held.subarray(end + 1 + length)
    wanted.resolve(frame)
    wanted = null
  }
  child.stdout.on('data', (chunk: Buffer) => {
    held = Buffer.concat([held, chunk])
    look()
  })
  child.once('exit', (code) => wanted?.reject(new Error(`the lane of worlds ended with ${code}: ${said()}`)))
  return () =>
    new Promise((resolve, reject) => {
      if (child.exitCode !== null) reject(new Error(`the lane of worlds has ended: ${said()}`))
      wanted = { resolve, reject }
      look()
    })
}

function readOutcome(frame: Buffer): Outcome {
  const [how, status, tookMs, ...parts] = frame.toString('latin1').split('\0')
  const [left = '', stdout = '', stderr = ''] = parts.map((part) => Buffer.from(part, 'base64').toString('utf8'))
  const code = Number(status)
  return {
    how: how as Outcome['how'],
    exitCode: code < 0 || (code & 127) !== 0 ? null : code >> 8,
    tookMs: Number(tookMs),
    stdout,
    stderr,
    left: left.split('\n').filter(Boolean),
  }
}
