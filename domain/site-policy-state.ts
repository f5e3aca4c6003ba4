import { z } from 'zod'
import { idPattern } from './kinds.ts'
import { inventoryKind } from './registry.ts'

const fault = z.object({ line: z.int(), why: z.string(), remedy: z.string() })

/** What is in force, what waits, and what was read last, as page and terminal show it. */
const standingPolicy = z.object({
  digest: z.string(),
  /** The file, in its repository or folder. */
  place: z.string(),
  commit: z.string().nullable(),
  readAt: z.string(),
  inForceAt: z.string().nullable(),
  acceptedBy: z.string().nullable(),
  /** What it allows that the one before did not. */
  widens: z.array(z.string()),
})

export const sitePolicyState = z.object({
  inForce: standingPolicy.nullable(),
  waiting: standingPolicy.nullable(),
  reading: z
    .object({
      readAt: z.string(),
      digest: z.string().nullable(),
      faults: z.array(fault),
    })
    .nullable(),
})
export type SitePolicyState = z.infer<typeof sitePolicyState>

/** A policy held against the site. `faults` refuse the file; `notes` are what comes to nothing here, and refuse nothing. */
export const siteLint = z.object({
  of: z.enum(['text', 'waiting', 'in_force']),
  digest: z.string().nullable(),
  faults: z.array(fault),
  notes: z.array(fault),
})
export type SiteLint = z.infer<typeof siteLint>

export const siteCallToExplain = z.strictObject({
  tool: z.string().min(1).max(64),
  targets: z.array(z.strictObject({ kind: inventoryKind, id: z.string().regex(idPattern) })).max(50),
  type: z.string().min(1).max(100),
  /** Now, where it is absent. */
  at: z.iso.datetime({ offset: true }).optional(),
})
export type SiteCallToExplain = z.infer<typeof siteCallToExplain>

const decision = z.looseObject({
  action: z.enum(['never', 'ask', 'run']),
  rule: z.string(),
  line: z.int(),
  commit: z.string().nullable(),
})

export const siteExplanation = z.object({
  write: decision.nullable(),
  look: decision.nullable(),
  /** Each rule that may fit a call of this tool, in order, with what of it does not; null: it fits. Of the first thing that is touched. */
  rules: z.array(z.object({ rule: z.string(), line: z.int(), action: z.string(), whyNot: z.string().nullable() })),
})
export type SiteExplanation = z.infer<typeof siteExplanation>

/** One sentence for people, and whether all is well. */
export function describeSitePolicy({ inForce, waiting, reading }: SitePolicyState): {
  isWell: boolean
  detail: string
} {
  const of = ({ digest, commit }: { digest: string; commit: string | null }) =>
    commit === null ? digest.slice(0, 12) : `${digest.slice(0, 12)} of commit ${commit.slice(0, 12)}`
  const [fault] = reading?.faults ?? []
  const held = inForce ? `In force: ${of(inForce)}.` : 'None is in force: the kernel alone decides.'
  const parts = [
    held,
    ...(fault ? [`The file was not taken: line ${fault.line}, ${fault.why}; ${fault.remedy}.`] : []),
    ...(waiting
      ? [`One that widens waits for an admin: "nightshift policy accept ${waiting.digest.slice(0, 12)}".`]
      : []),
  ]
  return { isWell: !fault && !waiting, detail: parts.join(' ') }
}
