import { z } from 'zod'
import { formatSpan, truncate } from './format.ts'
import { resourceKey, resourceRef } from './resource.ts'

/** What was deployed or configured. Every text of it is a stranger's: it is shown inert to people and fenced to a model. */

export const changeSources = ['generic', 'github', 'gitlab'] as const

/** A change as its sender tells it. */
export type Change = {
  source: (typeof changeSources)[number]
  /** The same for every repeat of one delivery. */
  delivery: string
  at: string
  title: string
  author: string | null
  url: string | null
  revision: string | null
  environment: string | null
  /** Names or keys (`kind:id`) of what it is about, as the sender gave them. */
  resources: string[]
  labels: Record<string, string>
}

/** `ignored`: why a delivery that can be read holds no change. */
export type ParsedChanges = { ok: true; changes: Change[]; ignored: string | null } | { ok: false; reason: string }

/** A stored change about one resource. One about several is a row for each. */
export const storedChange = z.object({
  id: z.string(),
  at: z.string(),
  receivedAt: z.string(),
  source: z.enum(changeSources),
  title: z.string(),
  author: z.string().nullable(),
  url: z.string().nullable(),
  revision: z.string().nullable(),
  environment: z.string().nullable(),
  /** Null: nothing that the registry knows was found. */
  resource: resourceRef.nullable(),
  /** What decided about the resource, or what was tried. */
  why: z.string(),
  labels: z.record(z.string(), z.string()),
})
export type StoredChange = z.infer<typeof storedChange>

/** A change near a resource. `steps`: how far away along what the resource runs on and depends on; 0 is the resource. */
export const nearChange = storedChange.extend({ steps: z.number().int() })
export type NearChange = z.infer<typeof nearChange>

/** `4 min before it began`; of a moment that is no begin, `4 min ago`. */
export function formatDistance(atIso: string, from: { iso: string; isBegin: boolean }): string {
  const distanceMs = Date.parse(from.iso) - Date.parse(atIso)
  if (!from.isBegin) return `${formatSpan(distanceMs)} ago`
  return distanceMs >= 0 ? `${formatSpan(distanceMs)} before it began` : `${formatSpan(-distanceMs)} after it began`
}

const mostTitleCharacters = 160
const mostWordCharacters = 60

/** What a model is shown of a change: short, and the same in the context and as an answer. */
export function summarizeChange(change: NearChange, from: { iso: string; isBegin: boolean }): Record<string, unknown> {
  const { at, title, author, revision, environment, url, source, resource, steps } = change
  const short = (text: string | null): string | null => text && truncate(text, mostWordCharacters)
  const fields = {
    when: formatDistance(at, from),
    at,
    title: truncate(title, mostTitleCharacters),
    // Of the resource itself nothing has to be said.
    onWhatItNeeds: steps > 0 && resource ? resourceKey(resource) : null,
    source,
    author: short(author),
    revision: short(revision),
    environment: short(environment),
    url: url !== null && url.length <= 200 ? url : null,
  }
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== null))
}

export const mostContextChanges = 5

/** Of the changes around the begin of an incident those nearest before it, then those after it, newest first. */
export function chooseNearest(changes: readonly NearChange[], beganIso: string): NearChange[] {
  const newestFirst = changes.toSorted((a, b) => Date.parse(b.at) - Date.parse(a.at))
  const began = Date.parse(beganIso)
  const before = newestFirst.filter(({ at }) => Date.parse(at) <= began)
  const after = newestFirst.filter(({ at }) => Date.parse(at) > began)
  // What came after can be a repair; the one that nobody may miss lies before.
  const kept = new Set([...before, ...after.toReversed()].slice(0, mostContextChanges))
  return newestFirst.filter((each) => kept.has(each))
}
