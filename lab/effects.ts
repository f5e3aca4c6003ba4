import { existsSync, fsyncSync, openSync, readFileSync, truncateSync, writeSync } from 'node:fs'
import { z } from 'zod'
import type { EffectAnswer } from '../domain/platform.ts'
import type { Lab } from './state.ts'

/**
 * The journal of writes: JSON lines, appended and synced. A write is `accepted` before anything is looked at, `started`
 * just before it touches the platform, and `done` or `failed` after; a repeat of its key is answered from here.
 */
const line = z.object({
  at: z.iso.datetime(),
  key: z.string(),
  /** Method, path and body: what must be the same under the same key. */
  request: z.string(),
  event: z.enum(['accepted', 'started', 'done', 'failed']),
  detail: z.string(),
  result: z.record(z.string(), z.unknown()),
})
type Line = z.infer<typeof line>

export type EffectRecord = EffectAnswer & { request: string; runs: number }
export type Outcome = { status: 'done' | 'failed'; detail: string; result: Record<string, unknown> }

export type Journal = {
  get(key: string): EffectRecord | undefined
  all(): EffectRecord[]
  /**
   * Runs `run` unless the key is known; writes about the same thing one at a time, others side by side. Null when the key is
   * known for another request. An error of `run` is a failed write.
   */
  once(key: string, about: string, request: string, run: () => Promise<Outcome>): Promise<EffectRecord | null>
  /** Resolves when no write is under way. */
  idle(): Promise<void>
}

/**
 * Opens a journal. A write that an earlier controller accepted but did not start is `failed`, which is true; of one it
 * did start, `whatBecameOf` may tell, and where it cannot (null) the write stays `running`.
 */
export function openJournal(file: string, whatBecameOf: (request: string) => Outcome | null): Journal {
  const records = new Map<string, EffectRecord>()
  for (const each of readLines(file)) apply(records, each)
  const fd = openSync(file, 'a', 0o600)
  const underWay = new Map<string, Promise<EffectRecord>>()
  /** The last write about each thing. */
  const last = new Map<string, Promise<unknown>>()

  function append(
    key: string,
    request: string,
    event: Line['event'],
    detail: string,
    result: Line['result'] = {},
  ): void {
    const entry: Line = { at: new Date().toISOString(), key, request, event, detail, result }
    writeSync(fd, `${JSON.stringify(entry)}\n`)
    fsyncSync(fd)
    apply(records, entry)
  }

  for (const { key, request, status, runs } of [...records.values()]) {
    if (status !== 'running') continue
    if (runs === 0) append(key, request, 'failed', 'the controller ended before it was started')
    else {
      const outcome = whatBecameOf(request)
      if (outcome) append(key, request, outcome.status, outcome.detail, outcome.result)
    }
  }

  async function perform(key: string, request: string, run: () => Promise<Outcome>): Promise<EffectRecord> {
    append(key, request, 'started', 'under way')
    try {
      const { status, detail, result } = await run()
      append(key, request, status, detail, result)
    } catch (error) {
      append(key, request, 'failed', (error as Error).message)
    }
    return records.get(key)!
  }

  return {
    get: (key) => records.get(key),
    all: () => [...records.values()],
    async once(key, about, request, run) {
      const known = records.get(key)
      if (known && known.request !== request) return null
      if (known) return underWay.get(key) ?? known
      append(key, request, 'accepted', 'accepted')
      const turn = (last.get(about) ?? Promise.resolve())
        .then(() => perform(key, request, run))
        .finally(() => underWay.delete(key))
      underWay.set(key, turn)
      last.set(
        about,
        turn.catch(() => {}),
      )
      return turn
    },
    idle: async () => void (await Promise.all(last.values())),
  }
}

function apply(records: Map<string, EffectRecord>, { key, request, event, detail, result }: Line): void {
  const runs = (records.get(key)?.runs ?? 0) + (event === 'started' ? 1 : 0)
  const status = event === 'done' || event === 'failed' ? event : 'running'
  records.set(key, { key, request, status, detail, result, runs })
}

function readLines(file: string): Line[] {
  if (!existsSync(file)) return []
  const text = readFileSync(file, 'utf8')
  const whole = text.slice(0, text.lastIndexOf('\n') + 1)
  // The line that was being written when the controller died was never synced, so nothing followed from it.
  if (whole.length < text.length) truncateSync(file, Buffer.byteLength(whole))
  return whole
    .split('\n')
    .filter(Boolean)
    .map((each) => line.parse(JSON.parse(each)))
}

/**
 * What became of a write that was under way when an earlier controller died. All processes died with it, and a VM's
 * definition is changed last, so for a VM the definition tells. Of a converge nothing remains to tell by: null.
 */
export function whatBecameOf({ placement }: Pick<Lab, 'placement'>, request: string): Outcome | null {
  const match = /^POST \/v1\/vms\/([^/]+)\/(start|migrate|stop|restart) (.*)$/.exec(request)
  if (!match) return null
  const [, vm, action, body] = match
  const { host, to } = JSON.parse(body!) as { host?: string; to?: string }
  // Every VM begins again with the lab, before its journal is read.
  if (action === 'stop') return { status: 'failed', detail: `${vm} began again with the lab`, result: {} }
  if (action === 'restart') return { status: 'done', detail: `${vm} began again with the lab`, result: { vm, host } }
  const target = action === 'start' ? host : to
  return placement[vm!] === target
    ? { status: 'done', detail: `${vm} is defined on ${target}`, result: { vm, target } }
    : { status: 'failed', detail: `the controller ended before ${vm} was defined on ${target}`, result: {} }
}
