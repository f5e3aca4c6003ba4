import { z } from 'zod'
import { type JournalEntry, journalEntry } from '../../domain/mesh.ts'
import { ApiProblem } from '../problem.ts'
import { compareJournal, findChainBreak, type JournalledCall } from './held-against.ts'

/** Asks the core API for a path below `/api/v1`; throws ApiProblem for whatever is no success. */
export type GetPath = (path: string) => Promise<unknown>

export type DeviceAudit = {
  device: string
  /** What the device tells of its journal; null when it does not answer, or has none. */
  journal: { entries: number; first: number; head: string } | null
  calls: { key: string; requestId: string; auditHash: string }[]
  /** Calls from before the oldest entry that the journal still has. */
  older: number
  problems: string[]
}

const cursor = z.union([z.string(), z.number()]).nullish()
const callPage = z.looseObject({
  items: z.array(
    z.looseObject({
      key: z.string(),
      requestId: z.string(),
      begunAt: z.string(),
      finishedAt: z.string().nullable(),
      auditHash: z.string().nullable(),
      incidentHash: z.string().nullable(),
    }),
  ),
  nextCursor: cursor,
})
const entryPage = z.looseObject({
  items: z.array(z.looseObject(journalEntry.shape)),
  nextCursor: cursor,
  first: z.number(),
  last: z.number(),
})

/**
 * Holds everything that the journal of a device still has against all calls that rows know of: by what the device tells, or, where it
 * does not answer, by `files`, the entries of a copy. `onProgress` is told how much was read so far.
 */
export async function auditDevice(
  ask: GetPath,
  device: string,
  { files = null, onProgress = () => {} }: { files?: JournalEntry[] | null; onProgress?(so: string): void } = {},
): Promise<DeviceAudit> {
  const path = `/devices/${encodeURIComponent(device)}`
  // Calls first: what is called meanwhile is in the journal that is read afterwards.
  const calls = await allCalls()
  const problems: string[] = []
  const told = await allEntries()
  const entries = told ?? files ?? []
  const last = entries.at(-1)
  if (told && !last) problems.push(`${device} has no journal`)
  const broken = findChainBreak(entries)
  if (broken !== null) problems.push(`the journal does not hold: ${broken}`)
  if (told && files) problems.push(...compareCopies(told, files))
  const held = last ? compareJournal(entries, calls) : { problems: [], strangers: [], older: 0 }
  problems.push(...held.problems)
  if (held.strangers.length > 0) {
    // Some were called while the journal was read.
    const known = new Set((await allCalls()).map(({ requestId }) => requestId))
    for (const { n, at, request_id } of held.strangers) {
      if (!known.has(request_id ?? ''))
        problems.push(`entry ${n} of ${at}: no call of the control plane stands behind ${request_id}`)
    }
  }
  return {
    device,
    journal: told && last ? { entries: last.n, first: told[0]?.n ?? 0, head: last.hash } : null,
    calls: calls
      .reverse()
      .flatMap(({ key, requestId, auditHash }) => (auditHash ? [{ key, requestId, auditHash }] : [])),
    older: held.older,
    problems,
  }

  async function allCalls(): Promise<JournalledCall[]> {
    const all: JournalledCall[] = []
    for (let next: string | null = null; ; ) {
      const page = callPage.parse(
        await ask(`${path}/audit${next === null ? '' : `?cursor=${encodeURIComponent(next)}`}`),
      )
      all.push(...page.items)
      onProgress(`${device}: ${all.length} calls`)
      if (page.nextCursor == null || page.items.length === 0) return all
      next = String(page.nextCursor)
    }
  }

  /** Null when the device gives no answer, which is a problem of its own. */
  async function allEntries(): Promise<JournalEntry[] | null> {
    const all: JournalEntry[] = []
    try {
      for (;;) {
        const page = entryPage.parse(await ask(`${path}/journal?cursor=${all.at(-1)?.n ?? 0}`))
        all.push(...page.items)
        onProgress(`${device}: ${calls.length} calls, ${all.length} of ${page.last - page.first + 1} entries`)
        if (page.nextCursor == null || page.items.length === 0) return all
      }
    } catch (error) {
      if (!(error instanceof ApiProblem)) throw error
      problems.push(error.problem.detail || error.problem.title)
      return null
    }
  }
}

/** Where the files have something else than the device tells. */
function compareCopies(told: readonly JournalEntry[], files: readonly JournalEntry[]): string[] {
  const hashes = new Map(told.map(({ n, hash }) => [n, hash]))
  const other = files.find(({ n, hash }) => hashes.has(n) && hashes.get(n) !== hash)
  return other ? [`the device tells of another entry ${other.n} than this journal has`] : []
}
