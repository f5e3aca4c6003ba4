import { constants, openSync, statSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { Socket } from 'node:net'
import { isScalar, parseDocument } from 'yaml'
import { z } from 'zod'
import { type PlacementProblem, type Plan, plan } from '../../domain/placement.ts'
import { type Flaw, InvalidProblemError } from '../../placement/check.ts'
import { jsonOf, textOf } from '../../placement/document.ts'
import { problemOfFile } from '../../placement/file.ts'
import { CommandFailed } from '../errors.ts'

/**
 * The problem in a file of YAML or JSON (docs/placement.md), `-` for stdin. Ends the command with every field that is wrong, and when the
 * file is not there after so many seconds: a pipe may never end.
 */
export async function readProblem(file: string, timeoutSeconds?: number): Promise<PlacementProblem> {
  return withFlaws(file, 'is no placement problem', problemOfFile, await parseFile(file, timeoutSeconds))
}

/** A plan as `placement plan` writes it with --out or --json. */
export async function readPlan(file: string): Promise<Plan> {
  const found = plan.safeParse(await parseFile(file))
  if (found.success) return found.data
  const flaws = found.error.issues.map(({ path, message }) => ({ path: path.join('.') || 'the plan', message }))
  throw invalidFile(file, 'is no plan', flaws)
}

function withFlaws<G, T>(file: string, what: string, read: (given: G) => T, given: G): T {
  try {
    return read(given)
  } catch (error) {
    if (error instanceof InvalidProblemError) throw invalidFile(file, what, error.flaws)
    throw error
  }
}

function invalidFile(file: string, what: string, flaws: Flaw[]): CommandFailed {
  const lines = flaws.map(({ path, message }) => `${path}: ${message}`)
  return new CommandFailed('usage', [`${file} ${what}:`, ...lines].join('\n'))
}

async function parseFile(file: string, timeoutSeconds?: number): Promise<unknown> {
  const text = withFlaws(file, 'cannot be read', textOf, await readBytes(file, timeoutSeconds))
  // YAML holds JSON as well, but takes its time over a large one.
  if (/^\s*\{/.test(text)) {
    try {
      return withFlaws(file, 'cannot be read', jsonOf, text)
    } catch (error) {
      // YAML knows the line.
      if (!(error instanceof SyntaxError)) throw error
    }
  }
  return parseYaml(file, text)
}

function parseYaml(file: string, text: string): unknown {
  // 1 and "1" are one key of what becomes of it.
  const nameOf = (key: unknown) => (isScalar(key) ? String(key.value) : key)
  const document = parseDocument(text, { prettyErrors: true, uniqueKeys: (a, b) => nameOf(a) === nameOf(b) })
  const first = document.errors[0]
  if (first) {
    const at = first.linePos?.[0]
    const message = first.message.replace(/ at line \d+, column \d+:[\s\S]*$/, '')
    throw new CommandFailed('usage', `${file}${at ? `, line ${at.line}, column ${at.col}` : ''}: ${message}`)
  }
  try {
    return document.toJS({ maxAliasCount: 100 })
  } catch (error) {
    throw new CommandFailed('usage', `${file}: ${error instanceof Error ? error.message : error}`)
  }
}

async function readBytes(file: string, timeoutSeconds: number | undefined): Promise<Uint8Array> {
  const signal = timeoutSeconds === undefined ? undefined : AbortSignal.timeout(timeoutSeconds * 1_000)
  try {
    return await (file === '-' ? readStream(process.stdin, signal) : readFileBytes(file, signal))
  } catch (error) {
    if (signal?.aborted) {
      const what = file === '-' ? 'stdin' : file
      throw new CommandFailed('undecided', `${what} was not read to its end within ${timeoutSeconds} s.`)
    }
    const missing = z.object({ code: z.literal('ENOENT') }).safeParse(error).success
    throw new CommandFailed('notFound', missing ? `There is no file ${file}.` : `${file} cannot be read.`)
  }
}

async function readFileBytes(file: string, signal: AbortSignal | undefined): Promise<Uint8Array> {
  if (!statSync(file).isFIFO()) return await readFile(file, { signal })
  // Opened without waiting: a pipe that nothing writes to would hold the command until it does.
  const fd = openSync(file, constants.O_RDONLY | constants.O_NONBLOCK)
  return await readStream(new Socket({ fd, readable: true, writable: false }), signal)
}

async function readStream(stream: NodeJS.ReadableStream & { destroy(): unknown }, signal: AbortSignal | undefined) {
  const chunks: Uint8Array[] = []
  const stop = () => stream.destroy()
  signal?.addEventListener('abort', stop, { once: true })
  try {
    for await (const chunk of stream) chunks.push(chunk as Uint8Array)
    signal?.throwIfAborted()
    return Buffer.concat(chunks)
  } finally {
    signal?.removeEventListener('abort', stop)
  }
}
