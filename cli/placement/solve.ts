import { constants, openSync, statSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { Socket } from 'node:net'
import { isScalar, parseDocument } from 'yaml'
import { z } from 'zod'
import { formatCount } from '../../domain/format.ts'
import { type PlacementProblem, type Plan, plan } from '../../domain/placement.ts'
import { listFaults } from '../../domain/schema-faults.ts'
import { type EngineName, engineNames } from '../../placement/bound/assignment.ts'
import { type Flaw, InvalidProblemError } from '../../placement/certificate.ts'
import { decodeUtf8, parseJson, readProblemFile } from '../../placement/problem-file.ts'
import { type SolveProgress, solve } from '../../placement/solve.ts'
import type { CliCommand } from '../connection.ts'
import { CommandFailed, type ExitOutcome } from '../exit-codes.ts'
import { parseOneOf, parseSeconds, parseWholeNumber } from '../ui/terminal.ts'

export type SolveOptions = { engine: EngineName; timeout: number; seed: number; json?: boolean }

/** Adds the options of every command that plans. */
export function withSolveOptions(command: CliCommand): CliCommand {
  return command
    .option('--engine <name>', `solver: ${engineNames.join(', ')}`, parseOneOf(engineNames), 'glpk')
    .option(
      '--timeout <seconds>',
      'answer within this time, including reading, with the best plan so far',
      parseSeconds,
      10,
    )
    .option(
      '--seed <n>',
      'seed of the random search; one seed gives one plan, unless time ends the search',
      parseWholeNumber,
      1,
    )
    .option('--json', 'the whole plan as JSON')
}

/** The problem in a file, and the options with the time that remains after reading it. */
export async function readProblemInTime<O extends SolveOptions>(
  file: string,
  options: O,
): Promise<[PlacementProblem, O]> {
  const began = performance.now()
  const problem = await readProblem(file, options.timeout)
  return [problem, { ...options, timeout: Math.max(0.05, options.timeout - (performance.now() - began) / 1_000) }]
}

/** Solves the problem. Shows progress in one line of the terminal, and clears it at the end. */
export async function solveWithProgress(problem: PlacementProblem, options: SolveOptions, what = ''): Promise<Plan> {
  const { engine, timeout, seed } = options
  const began = Date.now()
  let known: SolveProgress | null = null
  const show = () => process.stderr.write(`\r\x1b[K${what}${formatProgress(known, (Date.now() - began) / 1_000)}`)
  const timer = process.stderr.isTTY ? setInterval(show, 100) : null
  try {
    const onProgress = (now: SolveProgress) => {
      known = now
    }
    return await solve(problem, { engine, timeoutMs: timeout * 1_000, seed, onProgress })
  } finally {
    if (timer) {
      clearInterval(timer)
      process.stderr.write('\r\x1b[K')
    }
  }
}

function formatProgress(known: SolveProgress | null, secondsGone: number): string {
  const best = known?.migrations == null ? 'no plan yet' : `best plan: ${formatCount(known.migrations, 'migration')}`
  const bound = known ? `≥ ${known.lowerBound}` : ''
  const left = known && known.unplaced > 0 ? `${known.unplaced} without a place` : ''
  return [`${secondsGone.toFixed(1)} s`, best, bound, left].filter(Boolean).join('  ')
}

const outcomes: Record<Plan['state'], ExitOutcome> = {
  no_action: 'ok',
  planned: 'ok',
  partial: 'partial',
  infeasible: 'infeasible',
  not_found: 'undecided',
}

/**
 * Throws CommandFailed with the exit code for a plan that is not complete. The plan is already
 * printed.
 */
export function exitByState({ state }: Plan): void {
  if (outcomes[state] !== 'ok') throw new CommandFailed(outcomes[state], '')
}

/**
 * The plan with `gap`: how formatCount migrations a better plan might save. Null unless all VMs are
 * placed.
 */
export function withGap(plan: Plan): Plan & { gap: number | null } {
  return { ...plan, gap: plan.state === 'planned' ? Math.max(0, plan.migrations - plan.lowerBound) : null }
}

/**
 * Reads a problem from a file of YAML or JSON (docs/explanation/placement.md), `-` for stdin. Throws
 * CommandFailed with every wrong field, or after `timeoutSeconds`, because a pipe may never end.
 */
export async function readProblem(file: string, timeoutSeconds?: number): Promise<PlacementProblem> {
  return withFlaws(file, 'is not a placement problem', readProblemFile, await parseFile(file, timeoutSeconds))
}

/** Reads a plan as `placement plan` writes it with --out or --json. */
export async function readPlan(file: string): Promise<Plan> {
  const found = plan.safeParse(await parseFile(file))
  if (found.success) return found.data
  const flaws = listFaults(found.error).map(({ field, message }) => ({ path: field || 'the plan', message }))
  throw toInvalidFileError(file, 'is not a plan', flaws)
}

function withFlaws<G, T>(file: string, what: string, read: (given: G) => T, given: G): T {
  try {
    return read(given)
  } catch (error) {
    if (error instanceof InvalidProblemError) throw toInvalidFileError(file, what, error.flaws)
    throw error
  }
}

function toInvalidFileError(file: string, what: string, flaws: Flaw[]): CommandFailed {
  const lines = flaws.map(({ path, message }) => `${path}: ${message}`)
  return new CommandFailed('usage', [`${file} ${what}:`, ...lines].join('\n'))
}

async function parseFile(file: string, timeoutSeconds?: number): Promise<unknown> {
  const text = withFlaws(file, 'cannot be read', decodeUtf8, await readBytes(file, timeoutSeconds))
  // The YAML parser also reads JSON, but is slow with large files.
  if (/^\s*\{/.test(text)) {
    try {
      return withFlaws(file, 'cannot be read', parseJson, text)
    } catch (error) {
      // The YAML parser reports the line of the error.
      if (!(error instanceof SyntaxError)) throw error
    }
  }
  return parseYaml(file, text)
}

function parseYaml(file: string, text: string): unknown {
  // 1 and "1" become the same key of an object.
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
  // Opened without blocking: opening a pipe without a writer would wait for one.
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
