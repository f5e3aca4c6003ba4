import { z } from 'zod'
import { attachmentFields } from './attachment.ts'
import { claimQuote } from './claim.ts'
import { hostIsOff, judgedDeath } from './death.ts'
import { actionDigest } from './digest.ts'
import { proof, verificationOutcomes } from './envelope.ts'
import { grantWish } from './grant.ts'
import { hypothesisStates } from './hypothesis.ts'
import { type ResourceRef, resourceKey, resourceRef } from './registry.ts'
import { risks, type ToolFacts } from './tool.ts'

export const approvalStatus = z.enum(['pending', 'approved', 'denied', 'expired', 'withdrawn', 'consumed'])
export type ApprovalStatus = z.infer<typeof approvalStatus>

const decision = z.enum(['approve', 'deny'])
export type Decision = z.infer<typeof decision>

/**
 * The place where a decision token is used. `decision`: at the API, by the person for whom the
 * token was made. `temporal`: at Temporal, where nobody is signed in.
 */
const tokenPurpose = z.enum(['decision', 'temporal'])
export type TokenPurpose = z.infer<typeof tokenPurpose>

/** A token for one decision on one approval. The token works once. */
export const decisionToken = z.object({
  token: z.string(),
  approvalId: z.string(),
  incidentId: z.string(),
  decision,
  purpose: tokenPurpose.default('decision'),
  expiresAt: z.string(),
})

/** The category of a denial. The agent reads it together with the person's reason. */
export const denialCategory = z.enum(['wrong_target', 'too_risky', 'wrong_time', 'need_evidence', 'other'])
export type DenialCategory = z.infer<typeof denialCategory>

/** A decision as the person made it. A decision token contains nothing else. */
export const decisionBody = z.strictObject({
  decision,
  reason: z.string().max(2000).nullable().default(null),
  category: denialCategory.nullable().default(null),
  /**
   * The time until which a person postpones the question, within a day. Afterwards the incident may
   * be investigated again, and the action requested again.
   */
  askAgainAt: z.iso.datetime({ offset: true }).nullable().default(null),
  /** For an approval: the arguments to use instead of the requested arguments. */
  args: z.record(z.string(), z.unknown()).nullable().default(null),
  /** For an approval: how often the approved action may run again without asking. */
  grant: grantWish.nullable().default(null),
  /** For an approval of a plan: hosts that this person has verified to be off. */
  hostIsOff: hostIsOff.nullable().default(null),
})
export type DecisionBody = z.infer<typeof decisionBody>

/** The request for a decision token: for a whole decision, or for yes or no at Temporal. */
export const mintingBody = z.union([
  decisionBody.extend({ purpose: z.literal('decision').default('decision') }),
  z.strictObject({ decision, purpose: z.literal('temporal') }),
])

export const approval = z.object({
  id: z.string(),
  incidentId: z.string(),
  attempt: z.number().int(),
  callId: z.string(),
  tool: z.string(),
  arguments: z.record(z.string(), z.unknown()),
  targets: z.array(resourceRef),
  reason: z.string(),
  risk: z.enum(risks),
  reversible: z.boolean(),
  required: z.number().int(),
  approvals: z.number().int(),
  dryRun: z.object({
    possible: z.boolean(),
    summary: z.string(),
    details: z.record(z.string(), z.unknown()),
    /** How the write will be verified. Absent in approvals of earlier versions. */
    proof: proof.optional(),
    ...attachmentFields,
  }),
  actionDigest: z.string(),
  stateFingerprint: z.string(),
  status: approvalStatus,
  requestedAt: z.string(),
  expiresAt: z.string(),
  useBy: z.string().nullable(),
  /**
   * The id of the first approval on a card with several approvals; on the first approval it is its
   * own id. Null if the card has one approval.
   */
  askedWith: z.string().nullable().default(null),
  /**
   * The person who requests this write. Null if the agent requests the write, or absent in an older
   * API.
   */
  askedBy: z.string().nullish(),
  /** The person who changed the arguments before approving, and the new arguments. */
  edited: z
    .object({ by: z.string(), arguments: z.record(z.string(), z.unknown()) })
    .nullable()
    .default(null),
  decisions: z.array(
    z.object({
      operator: z.string(),
      decision,
      reason: z.string().nullable(),
      category: denialCategory.nullable().default(null),
      via: z.string(),
      at: z.string(),
    }),
  ),
})
export type Approval = z.infer<typeof approval>

/** A row of the incident's log on which an approval rests. */
export const evidence = z.object({
  seq: z.number().int(),
  /** `look`: a read of the targets. `proposed`: the turn in which the model proposed the call. */
  what: z.enum(['alert', 'look', 'proposed']),
  tool: z.string().nullable(),
  /**
   * The resources that the row is about, among the approval's targets and the incident's resource.
   */
  about: z.array(resourceRef),
  /** The finding in a sentence if `isSaid` is true, otherwise the beginning of the result. */
  found: z.string(),
  /** Whether `found` is a sentence. Absent from rows of earlier versions. */
  isSaid: z.boolean().default(false),
  /** The time of the log row; absent from an older API. */
  at: z.string().optional(),
})
export type Evidence = z.infer<typeof evidence>

/** Describes a log row on which an approval rests. The description contains untrusted text. */
export function formatEvidence({ what, tool, about, found, isSaid }: Evidence): string {
  if (what === 'proposed') return 'what the agent wrote when it proposed this'
  if (what === 'alert' || isSaid) return found
  return `${tool} about ${about.map(({ id }) => id).join(', ')}: ${found}`
}

const hypothesis = z.object({
  id: z.string(),
  text: z.string(),
  state: z.enum(hypothesisStates),
  seq: z.number().int(),
  by: z.string(),
  firstSeq: z.number().int().optional(),
  supports: z.array(claimQuote),
  refutes: z.array(claimQuote),
})

/** States of the steps of a call. `waiting`: a step of the plan that has not begun. */
const callStepStates = ['waiting', 'running', 'done', 'failed', 'skipped'] as const

/** The steps of an approved call so far, computed from its log rows. The texts are untrusted. */
const callRun = z.object({
  startedAt: z.string(),
  endedAt: z.string().nullable(),
  outcome: z.enum(['running', 'done', 'failed', 'indeterminate']),
  /** The result in words, or the reason of the failure. Empty while the call runs. */
  said: z.string(),
  steps: z.array(
    z.object({ step: z.number().int(), text: z.string(), state: z.enum(callStepStates), detail: z.string() }),
  ),
  /** The last lines of the call's output. */
  output: z.array(z.string()),
  verification: z.object({ outcome: z.enum(verificationOutcomes), text: z.string() }).nullable(),
  /** Numbers of the log rows on which the state of the call is based. */
  rows: z.array(z.number().int()),
})
export type CallRun = z.infer<typeof callRun>

/**
 * A later call of the approval's turn, about which nobody has been asked yet, with the policy
 * decision that the call would get now.
 */
const nextCall = z.object({
  callId: z.string(),
  tool: z.string(),
  about: z.string(),
  /** Null if the policy decision would take longer than a card may take to appear. */
  verdict: z.enum(['run', 'ask', 'refuse']).nullable(),
  risk: z.enum(risks),
})
export type NextCall = z.infer<typeof nextCall>

/** One approval with everything that its card shows. */
export const approvalDetail = approval.extend({
  evidence: z.array(evidence),
  /** The resource of the incident; null if unknown. */
  about: resourceRef.nullable().default(null),
  /** The causes that the agent assumes in the attempt that asks. */
  hypotheses: z.array(hypothesis).default([]),
  /** Why this approval cannot become a standing grant; null if it can. */
  grantRefused: z.string().nullable(),
  /**
   * The approval that this approval replaces, and the approval that replaces this approval. All of
   * them are about one call.
   */
  replaces: z.string().nullable(),
  replacedBy: z.string().nullable(),
  /** Null until the approved call starts. */
  run: callRun.nullable().default(null),
  /**
   * The other approvals on the card of this approval, in the order of their calls. Each approval is
   * decided separately.
   */
  together: z.array(approval).default([]),
  /**
   * People who may approve and have not answered, at most twenty. Empty once the approval is
   * decided.
   */
  approvers: z.array(z.string()).default([]),
  /**
   * People who were asked one after another, in the order of the configured list. Empty if
   * everybody was notified at once.
   */
  asked: z.array(z.object({ name: z.string(), at: z.string() })).default([]),
  /** Further calls of the turn that requested the approval. Empty once it is decided. */
  next: z.array(nextCall).default([]),
  /**
   * The current reports of witnesses about the death of hosts whose VMs the action would start
   * elsewhere. Empty once the approval is decided.
   */
  deaths: z.array(judgedDeath).default([]),
  /**
   * The time of the last approval that somebody gave at Temporal without a decision token. Such an
   * approval decides nothing. Null if there was none.
   */
  unheardAt: z.string().nullable().default(null),
  /** The JSON schema of the arguments, for the form that changes them. Null for an unknown tool. */
  schema: z.record(z.string(), z.unknown()).nullable().default(null),
})
export type ApprovalDetail = z.infer<typeof approvalDetail>

/**
 * The result of a decision, wherever it was made. `recorded`: the decision counts (`status` may
 * stay `pending` until a second person decides). `repeated`: the same person made the same decision
 * before, and nothing changed.
 */
export type DecisionOutcome =
  | { outcome: 'recorded' | 'repeated'; status: ApprovalStatus; approvalId: string; incidentId: string }
  | { outcome: 'not_found' }
  | { outcome: 'forbidden'; code: string; message: string }
  | { outcome: 'conflict'; status: ApprovalStatus; message: string }
  | { outcome: 'gone'; status: ApprovalStatus; message: string }

/**
 * Default seconds within which an approval must be decided, unless `approval.expiry.<tool>` or the
 * tool sets another time. Long enough to wake up and log in.
 */
export const defaultExpirySeconds = 3_600
/** Seconds that one extension of an approval adds. */
export const extensionSeconds = 900
/**
 * Seconds after which no extension can move the end of an approval. Limited, because the state that
 * the approval describes changes meanwhile.
 */
export const extendableSeconds = 4 * 3_600
/**
 * Maximum seconds within which an approval must be decided: longer than a weekend on call. A plan
 * that is older than this time is out of date.
 */
export const maxExpirySeconds = 7 * 24 * 3600
/**
 * The most seconds between an approval and the start of the action. A later start asks people
 * again, because the target may have changed.
 */
export const useBySeconds = 900

export type NamingFacts = Pick<ToolFacts, 'name' | 'names' | 'kindField'>
type Action = {
  arguments: Record<string, unknown>
  targets: readonly ResourceRef[]
  /** The name of the container, as its engine reported it in the dry run. */
  container?: string | null
}

/** The name under which a dry run found its container; null if it found none. */
export function containerFound({ details }: { details: Record<string, unknown> }): string | null {
  const found = rehearsedContainer.safeParse(details)
  return found.success ? found.data.rehearsal.container : null
}
const rehearsedContainer = z.looseObject({ rehearsal: z.looseObject({ container: z.string() }) })

/**
 * Computes the digest of an action with one key for each resource. `vm:x` and `node:x` may be one
 * machine, and a container has a name, an id and a short id. A denial under one name therefore
 * applies under all names. `keyOf` returns the key of a resource. Leases use the same keys, from
 * the registry.
 */
export function actionByKeys(
  { name: tool, names, kindField }: NamingFacts,
  action: Action,
  keyOf: (ref: ResourceRef) => string,
): string {
  const keyed = { ...action.arguments }
  if (typeof keyed.container === 'string' && action.container) keyed.container = action.container
  for (const [field, kinds] of Object.entries(names)) {
    const allowed: readonly string[] = typeof kinds === 'string' ? [kinds] : kinds
    const toKey = (id: unknown): unknown => {
      const target = action.targets.find((each) => each.id === id && allowed.includes(each.kind))
      return target ? keyOf(target) : id
    }
    const value = keyed[field]
    if (value !== undefined) keyed[field] = Array.isArray(value) ? value.map(toKey) : toKey(value)
  }
  // Removes the kind that the caller gave, because the key already contains the kind.
  if (kindField !== undefined) delete keyed[kindField]
  return actionDigest(tool, keyed)
}

/** Returns a function that looks up the key of a resource in `keys`, else returns its own key. */
export function keyReader(keys: Readonly<Record<string, string>>): (ref: ResourceRef) => string {
  return (ref) => {
    const own = resourceKey(ref)
    return Object.hasOwn(keys, own) ? (keys[own] as string) : own
  }
}
