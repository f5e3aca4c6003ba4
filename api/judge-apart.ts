import { Worker } from 'node:worker_threads'
import type { Policy } from '../domain/refusal.ts'
import type { SafetyState } from '../safety/fold.ts'
import type { DryRunInput, DryRunResult } from '../safety/replay.ts'
import { Problem } from './http/problem.ts'

/**
 * Judges in threads, so that a long text blocks no request. One thread judges texts of people, and
 * one judges for pages. A thread is started when needed. A person has one judgement at a time. A
 * thread that takes too long is ended.
 */

export type JudgeQuestion =
  | { kind: 'supposed'; input: DryRunInput; nowMs: number }
  | { kind: 'call'; call: JudgedCall; state: SafetyState; policy: Policy; nowMs: number }

type JudgedCall = { tool: string; args: Record<string, unknown>; callId?: string }

const maxWaiting = 50
/** Maximum number of characters of a judgement's input as JSON. */
const maxCharacters = 64_000
/** Maximum milliseconds of a judgement. The longest known text takes half a second of CPU time. */
const maxJudgingMs = 10_000
/** Milliseconds after which an idle thread ends, to free its memory. */
const idleMs = 60_000
const maxMemoryMb = 256

type Thread = { worker: Worker; isReady: Promise<void>; idle: NodeJS.Timeout | null; line: Line }
/** The thread if it is free, and the judgements that wait for the thread. */
type Line = { free: Thread | null; isMade: boolean; waiting: ((thread: Thread) => void)[] }
const lines: Record<'people' | 'pages', Line> = {
  people: { free: null, isMade: false, waiting: [] },
  pages: { free: null, isMade: false, waiting: [] },
}
const people = new Set<string>()

/**
 * Judges for a person. `who` is null if a page requests the judgement, because a page may be open
 * twice. Throws Problem if the text is too long, too many judgements wait, or this judgement takes
 * too long.
 */
export async function judgeApart(
  question: JudgeQuestion,
  who: string | null,
  given: unknown,
  maxMs = maxJudgingMs,
): Promise<DryRunResult> {
  if (JSON.stringify(given).length > maxCharacters)
    throw new Problem(422, 'INVALID', `The text is longer than ${maxCharacters} characters. Send a part of the text.`)
  if (who !== null && people.has(who))
    throw tooMany('Your earlier text is still being judged. Send this text after the response.')
  const line = who === null ? lines.pages : lines.people
  if (line.waiting.length >= maxWaiting) throw tooMany('Too many texts are being judged now. Try again.')
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
    // Starts the thread without environment variables, because the variables of this process
    // contain secrets.
    env: {},
    resourceLimits: { maxOldGenerationSizeMb: maxMemoryMb },
  })
  worker.unref()
  const isReady = new Promise<void>((resolve, reject) => {
    worker.once('message', () => resolve())
    worker.once('error', reject)
    worker.once('exit', () => reject(new Error('a judging thread ended before it started')))
  })
  isReady.catch(() => {})
  return { worker, isReady, idle: null, line }
}

async function askThread(thread: Thread, question: JudgeQuestion, maxMs: number): Promise<DryRunResult> {
  let timer: NodeJS.Timeout | undefined
  let isWell = false
  try {
    // Keeps the process alive while a judgement runs, but not for an idle thread.
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
  const detail = `Judging this text takes more ${what} than allowed. Send a part of the text: one command without nested commands.`
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
