import { Worker } from 'node:worker_threads'
import type { Policy } from '../domain/refusal.ts'
import type { SafetyState } from '../safety/fold.ts'
import type { DryRunInput, DryRunResult } from '../safety/replay.ts'
import { Problem } from './http/problem.ts'

/**
 * Judging apart from the loop that answers requests: a long text keeps nobody waiting. One thread
 * for people's texts and one for pages, made when needed; one judgement a person at a time; a
 * thread that is too long at one is ended.
 */

export type JudgeQuestion =
  | { kind: 'supposed'; input: DryRunInput; nowMs: number }
  | { kind: 'call'; call: JudgedCall; state: SafetyState; policy: Policy; nowMs: number }

type JudgedCall = { tool: string; args: Record<string, unknown>; callId?: string }

const maxWaiting = 50
/** Length of a question as JSON. */
const maxCharacters = 64_000
/** The longest known text takes half a second of a processor; a busy machine has many at work. */
const maxJudgingMs = 10_000
/** A thread that nobody needs goes, and its memory with it. */
const idleMs = 60_000
const maxMemoryMb = 256

type Thread = { worker: Worker; isReady: Promise<void>; idle: NodeJS.Timeout | null; line: Line }
/** One thread where it is at rest, and the questions that wait for it. */
type Line = { free: Thread | null; isMade: boolean; waiting: ((thread: Thread) => void)[] }
const lines: Record<'people' | 'pages', Line> = {
  people: { free: null, isMade: false, waiting: [] },
  pages: { free: null, isMade: false, waiting: [] },
}
const people = new Set<string>()

/**
 * Judges for a person (`who`: null where a page asks, which may be open twice). Throws Problem
 * where it takes too much.
 */
export async function judgeApart(
  question: JudgeQuestion,
  who: string | null,
  given: unknown,
  maxMs = maxJudgingMs,
): Promise<DryRunResult> {
  if (JSON.stringify(given).length > maxCharacters)
    throw new Problem(422, 'INVALID', `The text is longer than ${maxCharacters} characters. Ask about a part of it.`)
  if (who !== null && people.has(who)) throw tooMany('You have one judgement under way. Ask again when it is answered.')
  const line = who === null ? lines.pages : lines.people
  if (line.waiting.length >= maxWaiting) throw tooMany('Too many texts are being judged now. Ask again.')
  if (who !== null) people.add(who)
  try {
    return await askThread(await takeThread(line), question, maxMs)
  } finally {
    if (who !== null) people.delete(who)
  }
}

const tooMany = (detail: string) => new Problem(429, 'TOO_MANY', detail, { headers: { 'retry-after': '2' } })

function takeThread(line: Line): Promise<Thread> | Thread {
  const thread = line.free
  if (thread) {
    clearTimeout(thread.idle ?? undefined)
    line.free = null
    return thread
  }
  if (!line.isMade) return startThread(line)
  return new Promise((resolve) => line.waiting.push(resolve))
}

function startThread(line: Line): Thread {
  line.isMade = true
  const worker = new Worker(new URL('./judge-thread.ts', import.meta.url), {
    // It is given no variable: this process knows secrets.
    env: {},
    resourceLimits: { maxOldGenerationSizeMb: maxMemoryMb },
  })
  worker.unref()
  const isReady = new Promise<void>((resolve, reject) => {
    worker.once('message', () => resolve())
    worker.once('error', reject)
    worker.once('exit', () => reject(new Error('a thread that judges ended before it began')))
  })
  isReady.catch(() => {})
  return { worker, isReady, idle: null, line }
}

async function askThread(thread: Thread, question: JudgeQuestion, maxMs: number): Promise<DryRunResult> {
  let timer: NodeJS.Timeout | undefined
  let isWell = false
  try {
    // A process that ends does not wait for it, but a request that waits holds the process.
    thread.worker.ref()
    await thread.isReady
    const answer = await new Promise<DryRunResult>((resolve, reject) => {
      thread.worker.once('message', resolve)
      thread.worker.once('error', (error: NodeJS.ErrnoException) =>
        reject(error.code === 'ERR_WORKER_OUT_OF_MEMORY' ? tooLong('memory') : error),
      )
      timer = setTimeout(() => reject(tooLong('time')), maxMs)
      thread.worker.postMessage(question)
    })
    isWell = true
    return answer
  } finally {
    clearTimeout(timer)
    thread.worker.removeAllListeners('message')
    thread.worker.removeAllListeners('error')
    thread.worker.on('error', () => {})
    thread.worker.unref()
    if (isWell) giveBack(thread)
    else await endThread(thread)
  }
}

function tooLong(what: 'time' | 'memory'): Problem {
  const detail = `Judging this text takes more ${what} than one text may use. Ask about a part of it: one command without nested ones.`
  return new Problem(422, 'TOO_LONG_TO_JUDGE', detail)
}

function giveBack(thread: Thread): void {
  const { line } = thread
  const next = line.waiting.shift()
  if (next) {
    next(thread)
    return
  }
  line.free = thread
  thread.idle = setTimeout(() => {
    line.free = null
    void endThread(thread)
  }, idleMs)
  thread.idle.unref()
}

async function endThread({ worker, line }: Thread): Promise<void> {
  await worker.terminate()
  line.isMade = false
  const next = line.waiting.shift()
  if (next) next(startThread(line))
}
