import { z } from 'zod'
import { inertText } from './inert-text.ts'
import { idPattern } from './kinds.ts'
import { inventoryKind } from './registry.ts'
import { nameUnread, type SilenceFinding, type SilenceReading } from './silence.ts'

const fault = z.object({ line: z.int(), why: z.string(), remedy: z.string() })

/** The policies that are in force, waiting for an admin, and last read, for page and terminal. */
const standingPolicy = z.object({
  digest: z.string(),
  /** The path of the policy file in its repository or folder. */
  place: z.string(),
  commit: z.string().nullable(),
  readAt: z.string(),
  inForceAt: z.string().nullable(),
  acceptedBy: z.string().nullable(),
  /** Permissions that the policy gives and the previous policy did not give. */
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
  /** The state of each Alertmanager; null if no rule in force uses silences. */
  silences: z
    .array(
      z.object({
        source: z.string(),
        readAt: z.string().nullable(),
        fault: z.string().nullable(),
        isUnread: z.boolean(),
      }) satisfies z.ZodType<SilenceReading>,
    )
    .nullable(),
})
export type SitePolicyState = z.infer<typeof sitePolicyState>

/**
 * The result of checking a policy against this installation. `faults`: the file is refused.
 * `notes`: rules that have no effect in this installation.
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
  /** The time for which the policy is evaluated. The current time if it is absent. */
  at: z.iso.datetime({ offset: true }).optional(),
  /** The incident whose alerts may be silenced, according to the last read of the Alertmanagers. */
  incidentId: z.string().max(100).optional(),
})
export type SiteCallToExplain = z.infer<typeof siteCallToExplain>

const decision = z.looseObject({
  action: z.enum(['never', 'ask', 'run']),
  rule: z.string(),
  line: z.int(),
  commit: z.string().nullable(),
})

/** A silence that matters for the asked call. `createdBy` and `comment` are untrusted. */
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
]) satisfies z.ZodType<SilenceFinding>

export const siteExplanation = z.object({
  write: decision.nullable(),
  look: decision.nullable(),
  /**
   * The rules for the called tool in order, each with the reason why it does not apply; null if it
   * applies. The reasons are about the first resource of the call.
   */
  rules: z.array(z.object({ rule: z.string(), line: z.int(), action: z.string(), whyNot: z.string().nullable() })),
  /**
   * Why rules with `silenced` apply or do not apply. Both fields are null if no such rule is about
   * the called tool.
   */
  silence: silence.nullable(),
  noSilence: z.string().nullable(),
})
export type SiteExplanation = z.infer<typeof siteExplanation>

/**
 * Describes the state of the policy in one sentence for people, and says whether everything is in
 * order.
 */
export function describeSitePolicy({ inForce, waiting, reading, silences }: SitePolicyState): {
  isWell: boolean
  detail: string
} {
  const of = ({ digest, commit }: { digest: string; commit: string | null }) =>
    commit === null ? digest.slice(0, 12) : `${digest.slice(0, 12)} of commit ${commit.slice(0, 12)}`
  const [fault] = reading?.faults ?? []
  const held = inForce ? `In force: ${of(inForce)}.` : 'None is in force, so only the built-in rules decide.'
  const unread = unreadSilences(silences)
  const parts = [
    held,
    ...(fault ? [`The file was rejected: line ${fault.line}, ${fault.why}; ${fault.remedy}.`] : []),
    ...(waiting
      ? [`A file that allows more waits for an admin: "nightshift policy accept ${waiting.digest.slice(0, 12)}".`]
      : []),
    ...unread,
  ]
  return { isWell: !fault && !waiting && unread.length === 0, detail: parts.join(' ') }
}

/**
 * Lists Alertmanagers whose silences are unknown. Rules about silences then apply as if everything
 * were silenced.
 */
function unreadSilences(silences: SitePolicyState['silences']): string[] {
  if (silences === null) return []
  const holds = 'Rules with silenced apply as if everything were silenced:'
  if (silences.length === 0)
    return [
      `${holds} ${nameUnread({ source: null, readAt: null })}; "nightshift sources add" connects an Alertmanager.`,
    ]
  return silences
    .filter(({ isUnread }) => isUnread)
    .map((each) => {
      const fault = each.fault === null ? '' : ` (${inertText(each.fault, 200)})`
      return `${holds} ${nameUnread(each)}${fault}; "nightshift sources test ${each.source}" shows more.`
    })
}
