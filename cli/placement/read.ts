import { constants, createReadStream, openSync, statSync } from 'node:fs'
import { Socket } from 'node:net'
import { Worker } from 'node:worker_threads'
import { z } from 'zod'
import type { PlacementProblem } from '../../domain/placement.ts'
import type { WrittenPlan } from '../../placement/plan-file.ts'
import { CommandFailed } from '../exit-codes.ts'
import { type Parsed, type ParseTask, parse } from './parse.ts'

/**
 * Reads files of hosts, VMs and plans within a time limit. A signal ends the reading of bytes.
 * Parsing runs in a thread that can be stopped, because a parser does not stop by itself.
 */

const maxMib = 64
/** Bytes up to which parsing takes less time than starting a thread. */
const maxBytesAtOnce = 32_768
const maxMemoryMb = 2_048
/** Seconds that planning needs at least. */
const minSecondsToPlan = 0.5

/**
 * Reads the problem in a file, and returns the options with the remaining time. Throws
 * CommandFailed if no time remains.
 */
export async function readProblemInTime<O extends { timeout: number; whyLate?: string }>(
  file: string,
  options: O,
): Promise<[PlacementProblem, O]> {
  const began = performance.now()
  const problem = await readProblem(file, options.timeout)
  const used = (performance.now() - began) / 1_000
  const left = options.timeout - used
  if (left < Math.min(minSecondsToPlan, options.timeout / 2)) throw toTimeUp(file, used, options.timeout)
  const whyLate =
    used > options.timeout / 2 ? { whyLate: `${describeReading(file, used, options.timeout)}. ${advice}` } : {}
  return [problem, { ...options, ...whyLate, timeout: left }]
}

/**
 * Reads a problem from YAML or JSON (docs/explanation/placement.md), or from stdin for `-`. Throws
 * CommandFailed with every wrong field, or after `timeoutSeconds`.
 */
export async function readProblem(file: string, timeoutSeconds?: number): Promise<PlacementProblem> {
  return (await readAs('problem', file, timeoutSeconds)) as PlacementProblem
}

/** Reads a plan as `placement plan` writes it with --out or --json. */
export async function readPlan(file: string): Promise<WrittenPlan> {
  return (await readAs('plan', file, undefined)) as WrittenPlan
}

async function readAs(kind: ParseTask['kind'], file: string, timeoutSeconds: number | undefined): Promise<unknown> {
  const began = performance.now()
  const bytes = await readBytes(file, timeoutSeconds)
  const task = { kind, bytes, name: file }
  const leftMs = timeoutSeconds === undefined ? null : Math.max(1, timeoutSeconds * 1_000 - (performance.now() - began))
  const parsed = bytes.length <= maxBytesAtOnce ? parse(task) : await parseApart(task, leftMs)
  if (parsed === 'time is up') throw toTimeUp(file, timeoutSeconds as number, timeoutSeconds as number)
  if (parsed === 'too large')
    throw new CommandFailed('usage', `${file} is too large: reading it takes more than ${maxMemoryMb} MB of memory.`)
  if ('value' in parsed) return parsed.value
  const lines = parsed.flaws.map(({ path, message }) => `${path}: ${message}`)
  // Writes a position in the text directly after the name of the file.
  const [first] = lines
  const isPlace = lines.length === 1 && first?.startsWith('line ')
  const message = isPlace ? `${file}, ${first}` : [`${file} ${parsed.fault}:`, ...lines].join('\n')
  throw new CommandFailed('usage', message)
}

function toTimeUp(file: string, seconds: number, of: number): CommandFailed {
  return new CommandFailed('undecided', `${describeReading(file, seconds, of)}. That leaves no time to plan. ${advice}`)
}

const advice = 'Give the command more time (--timeout), or write JSON, which is faster to read than YAML.'

function describeReading(file: string, seconds: number, of: number): string {
  return `Reading ${nameOf(file)} took ${seconds.toFixed(1)} of ${of} s`
}

function nameOf(file: string): string {
  return file === '-' ? 'stdin' : file
}

/** Parses a file in a thread, which is stopped if the time or the memory is used up. */
async function parseApart(task: ParseTask, withinMs: number | null): Promise<Parsed | 'time is up' | 'too large'> {
  const worker = new Worker(new URL('./parse-thread.ts', import.meta.url), {
    env: {},
    workerData: task,
    resourceLimits: { maxOldGenerationSizeMb: maxMemoryMb },
  })
  let timer: NodeJS.Timeout | undefined
  try {
    return await new Promise((resolve, reject) => {
      worker.once('message', resolve)
      worker.once('error', (error) =>
        'code' in error && error.code === 'ERR_WORKER_OUT_OF_MEMORY' ? resolve('too large') : reject(error),
      )
      if (withinMs !== null) timer = setTimeout(() => resolve('time is up'), withinMs)
    })
  } finally {
    clearTimeout(timer)
    await worker.terminate()
  }
}

async function readBytes(file: string, timeoutSeconds: number | undefined): Promise<Uint8Array> {
  const signal = timeoutSeconds === undefined ? undefined : AbortSignal.timeout(timeoutSeconds * 1_000)
  try {
    return await readStream(file === '-' ? process.stdin : openFile(file), signal)
  } catch (error) {
    if (error instanceof CommandFailed) throw error
    if (signal?.aborted) {
      throw new CommandFailed('undecided', `${nameOf(file)} was not read to its end within ${timeoutSeconds} s.`)
    }
    const missing = z.object({ code: z.literal('ENOENT') }).safeParse(error).success
    throw new CommandFailed('notFound', missing ? `There is no file ${file}.` : `${file} cannot be read.`)
  }

  async function readStream(stream: NodeJS.ReadableStream & { destroy(): unknown }, signal: AbortSignal | undefined) {
    const chunks: Uint8Array[] = []
    let left = maxMib * 1_048_576
    const stop = () => stream.destroy()
    signal?.addEventListener('abort', stop, { once: true })
    try {
      for await (const chunk of stream) {
        left -= (chunk as Uint8Array).length
        if (left < 0) throw new CommandFailed('usage', `${nameOf(file)} has more than ${maxMib} MiB.`)
        chunks.push(chunk as Uint8Array)
      }
      signal?.throwIfAborted()
      return Buffer.concat(chunks)
    } finally {
      signal?.removeEventListener('abort', stop)
    }
  }
}

function openFile(file: string): NodeJS.ReadableStream & { destroy(): unknown } {
  if (!statSync(file).isFIFO()) return createReadStream(file)
  // Opens a pipe without blocking. Otherwise a pipe without a writer would block the command.
  const fd = openSync(file, constants.O_RDONLY | constants.O_NONBLOCK)
  return new Socket({ fd, readable: true, writable: false })
}
