import { z } from 'zod'

/** Where metrics, alerts, logs and pages are read: what a source is, and what a query of one may be. */

export const sourceName = z
  .string()
  .regex(/^[a-z][a-z0-9-]{0,39}$/, 'takes small letters, digits and dashes, 40 at most')

/** How the core API gets at a credential: it stays where it is, and is read each time. */
export const credentialRef = z
  .string()
  .max(500)
  .regex(/^(file:\/[^\0]+|env:NIGHTSHIFT_SOURCE_[A-Z0-9_]+)$/, 'is file:/path, or env:NIGHTSHIFT_SOURCE_ with a name')

export const sourceInput = z.strictObject({
  kind: z.string().min(1).max(40),
  url: z.url({ protocol: /^https?$/ }).max(500),
  /** Sent as a bearer token; `user:password` is sent as Basic. */
  credential: credentialRef.nullable().default(null),
  /** PEM file of the authorities to believe, instead of those of the system. */
  caFile: z.string().regex(/^\//).max(500).nullable().default(null),
  options: z.record(z.string(), z.unknown()).default({}),
  timeoutSeconds: z.number().int().min(1).max(60).default(10),
})
export type SourceInput = z.infer<typeof sourceInput>

export const source = sourceInput.extend({ name: sourceName, createdBy: z.string(), createdAt: z.string() })
export type Source = z.infer<typeof source>

/** How a source does, as this process saw it last. `resting`: too many failures, nothing is asked until then. */
export const sourceHealth = z.object({
  state: z.enum(['unknown', 'ok', 'failing', 'resting']),
  lastOkAt: z.string().nullable(),
  lastError: z.string().nullable(),
  restsUntil: z.string().nullable(),
})
export type SourceHealth = z.infer<typeof sourceHealth>

export const listedSource = source.extend({ health: sourceHealth })
export type ListedSource = z.infer<typeof listedSource>

/** A query as code judges it; `bounded`: fields that make it one that may be sent, where code knows them. */
export type QueryVerdict = { ok: true } | { ok: false; reason: string; bounded: Record<string, string> | null }

/** What a read of a source answers: what the model sees, and where the whole is. */
export const sourceReading = z.object({
  source: z.string(),
  /** Nothing was found: no look at anything, and evidence of absence. */
  isEmpty: z.boolean(),
  /** Made by code, 2 kB at most. */
  summary: z.unknown(),
  /** Of the whole answer; `read_result` shows more of it. Null: the summary is all. */
  digest: z.string().nullable(),
  /** Resources that the query names and that the registry knows. */
  about: z.array(z.object({ kind: z.string(), id: z.string(), name: z.string() })),
})
export type SourceReading = z.infer<typeof sourceReading>

const unitSeconds: Record<string, number> = { ms: 0.001, s: 1, m: 60, h: 3_600, d: 86_400, w: 604_800, y: 31_536_000 }

/** `90s`, `1h30m` or `300` (seconds) as seconds, else null. */
export function parseDuration(text: string): number | null {
  const plain = text.trim()
  if (/^\d+(\.\d+)?$/.test(plain)) return Number(plain)
  if (!/^(\d+(ms|[smhdwy]))+$/.test(plain)) return null
  let seconds = 0
  for (const [, count = '0', unit = 's'] of plain.matchAll(/(\d+)(ms|[smhdwy])/g))
    seconds += Number(count) * (unitSeconds[unit] as number)
  return seconds
}
