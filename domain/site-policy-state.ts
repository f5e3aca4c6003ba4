import { z } from 'zod'
import { inertText } from './inert-text.ts'
import { idPattern } from './kinds.ts'
import { inventoryKind } from './registry.ts'
import { nameUnread } from './silence.ts'

const fault = z.object({ line: z.int(), why: z.string(), remedy: z.string() })

/** The policies in force, waiting, and read last, for page and terminal. */
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
  /** Each Alertmanager; null where no rule in force asks about silences. */
  silences: z
    .array(
      z.object({
        source: z.string(),
        readAt: z.string().nullable(),
        fault: z.string().nullable(),
        isUnread: z.boolean(),
      }),
    )
    .nullable(),
})
export type SitePolicyState = z.infer<typeof sitePolicyState>

/**
 * A policy held against the site. `faults` refuse the file; `notes` name what comes to nothing
 * here, and refuse nothing.
 */
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
  /** Alertmanagers whose alerts may be silenced, as of the last read. */
  incidentId: z.string().max(100).optional(),
})
export type SiteCallToExplain = z.infer<typeof siteCallToExplain>

const decision = z.looseObject({
  action: z.enum(['never', 'ask', 'run']),
  rule: z.string(),
  line: z.int(),
  commit: z.string().nullable(),
})

/** `createdBy` and `comment` are a stranger's words. */
const silence = z.union([
  z.object({
    is: z.literal('silenced'),
    source: z.string(),
    id: z.string(),
    until: z.string(),
    createdBy: z.string(),
    comment: z.string(),
    isSupposed: z.boolean(),
  }),
  z.object({ is: z.literal('unread'), source: z.string().nullable(), readAt: z.string().nullable() }),
])

export const siteExplanation = z.object({
  write: decision.nullable(),
  look: decision.nullable(),
  /**
   * Rules that may fit a call of this tool, in order, each with its misfit; null: it fits. For the
   * first touched thing.
   */
  rules: z.array(z.object({ rule: z.string(), line: z.int(), action: z.string(), whyNot: z.string().nullable() })),
  /** Why rules with `silenced` fit, or why none does; both null without one of this tool. */
  silence: silence.nullable(),
  noSilence: z.string().nullable(),
})
export type SiteExplanation = z.infer<typeof siteExplanation>

/** One sentence for people, and whether all is well. */
export function describeSitePolicy({ inForce, waiting, reading, silences }: SitePolicyState): {
  isWell: boolean
  detail: string
} {
  const of = ({ digest, commit }: { digest: string; commit: string | null }) =>
    commit === null ? digest.slice(0, 12) : `${digest.slice(0, 12)} of commit ${commit.slice(0, 12)}`
  const [fault] = reading?.faults ?? []
  const held = inForce ? `In force: ${of(inForce)}.` : 'None is in force: the kernel alone decides.'
  const unread = unreadSilences(silences)
  const parts = [
    held,
    ...(fault ? [`The file was not taken: line ${fault.line}, ${fault.why}; ${fault.remedy}.`] : []),
    ...(waiting
      ? [`One that widens waits for an admin: "nightshift policy accept ${waiting.digest.slice(0, 12)}".`]
      : []),
    ...unread,
  ]
  return { isWell: !fault && !waiting && unread.length === 0, detail: parts.join(' ') }
}

/** Alertmanagers with unknown silences, so that rules about them hold. */
function unreadSilences(silences: SitePolicyState['silences']): string[] {
  if (silences === null) return []
  const holds = 'Rules with silenced hold as if everything were silenced:'
  if (silences.length === 0)
    return [`${holds} ${nameUnread({ source: null, readAt: null })}; "nightshift sources add" connects one.`]
  return silences
    .filter(({ isUnread }) => isUnread)
    .map((each) => {
      const fault = each.fault === null ? '' : ` (${inertText(each.fault, 200)})`
      return `${holds} ${nameUnread(each)}${fault}; "nightshift sources test ${each.source}" says more.`
    })
}
