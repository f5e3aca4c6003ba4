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
 * The door of a decision token: the API, for the person it was made for, or Temporal, where nobody
 * is signed in.
 */
const tokenPurpose = z.enum(['decision', 'temporal'])
export type TokenPurpose = z.infer<typeof tokenPurpose>

/** A token that gives one decision on one approval, once. */
export const decisionToken = z.object({
  token: z.string(),
  approvalId: z.string(),
  incidentId: z.string(),
  decision,
  purpose: tokenPurpose.default('decision'),
  expiresAt: z.string(),
})

/** What kind of no it is: the agent reads it with the words. */
export const denialCategory = z.enum(['wrong_target', 'too_risky', 'wrong_time', 'need_evidence', 'other'])
export type DenialCategory = z.infer<typeof denialCategory>

/** A decision as its person made it: all that a decision token carries. */
export const decisionBody = z.strictObject({
  decision,
  reason: z.string().max(2000).nullable().default(null),
  category: denialCategory.nullable().default(null),
  /**
   * The end of "not now", within a day: from then the action may be asked and the incident
   * investigated again.
   */
  askAgainAt: z.iso.datetime({ offset: true }).nullable().default(null),
  /** Approvals: arguments to run instead. */
  args: z.record(z.string(), z.unknown()).nullable().default(null),
  /** Approvals: how often the same action may run again unasked. */
  grant: grantWish.nullable().default(null),
  /** Approvals of a plan: hosts of which this person made sure that they are off. */
  hostIsOff: hostIsOff.nullable().default(null),
})
export type DecisionBody = z.infer<typeof decisionBody>

/** What a decision token is minted for: a whole decision, or at Temporal the verdict alone. */
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
    /** What will prove that it worked; absent where an earlier version asked. */
    proof: proof.optional(),
    ...attachmentFields,
  }),
  actionDigest: z.string(),
  stateFingerprint: z.string(),
  status: approvalStatus,
  requestedAt: z.string(),
  expiresAt: z.string(),
  useBy: z.string().nullable(),
  /** The first approval of a shared card, its own id on that one; null where it was asked alone. */
  askedWith: z.string().nullable().default(null),
  /** The person of this own write; null, or absent from an older API, where the agent asks. */
  askedBy: z.string().nullish(),
  /** The person who changed the arguments before approving, and what they became. */
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

/** A row of the incident's log that an approval rests on. */
export const evidence = z.object({
  seq: z.number().int(),
  /** `look`: a look-up of its targets; `proposed`: the model's turn with the call. */
  what: z.enum(['alert', 'look', 'proposed']),
  tool: z.string().nullable(),
  /** Those of the approval's targets, and of what the incident is about, that it told about. */
  about: z.array(resourceRef),
  /** What it found, in a sentence (`isSaid`), else how its answer begins. */
  found: z.string(),
  /** Absent from rows of earlier versions. */
  isSaid: z.boolean().default(false),
  /** When it was written; absent from an older API. */
  at: z.string().optional(),
})
export type Evidence = z.infer<typeof evidence>

/** What a row tells, in words; they hold a stranger's text. */
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

/** How the steps of a call stand: those of its plan that were not begun are `waiting`. */
const callStepStates = ['waiting', 'running', 'done', 'failed', 'skipped'] as const

/** Steps of an approved call so far, folded from its rows. Its texts hold a stranger's words. */
const callRun = z.object({
  startedAt: z.string(),
  endedAt: z.string().nullable(),
  outcome: z.enum(['running', 'done', 'failed', 'indeterminate']),
  /** What it said of its result, or why it failed; empty while it runs. */
  said: z.string(),
  steps: z.array(
    z.object({ step: z.number().int(), text: z.string(), state: z.enum(callStepStates), detail: z.string() }),
  ),
  /** The last lines that it printed. */
  output: z.array(z.string()),
  verification: z.object({ outcome: z.enum(verificationOutcomes), text: z.string() }).nullable(),
  /** The rows that this rests on. */
  rows: z.array(z.number().int()),
})
export type CallRun = z.infer<typeof callRun>

/** A later call of the answer that nobody is asked about yet, with the judge's word of now. */
const nextCall = z.object({
  callId: z.string(),
  tool: z.string(),
  about: z.string(),
  /** Null: judging it takes more than there is for one look at a card. */
  verdict: z.enum(['run', 'ask', 'refuse']).nullable(),
  risk: z.enum(risks),
})
export type NextCall = z.infer<typeof nextCall>

/** One approval with everything that its card shows. */
export const approvalDetail = approval.extend({
  evidence: z.array(evidence),
  /** The resource of its incident; null where that is not known. */
  about: resourceRef.nullable().default(null),
  /** What the agent takes for the cause in the attempt that asks. */
  hypotheses: z.array(hypothesis).default([]),
  /** Why approving it cannot be made a standing grant; null when it can. */
  grantRefused: z.string().nullable(),
  /** The approval of the same call that it took the place of, and the one that took its place. */
  replaces: z.string().nullable(),
  replacedBy: z.string().nullable(),
  /** Null until it starts. */
  run: callRun.nullable().default(null),
  /** The other approvals of its card, in the order of their calls: each is decided by itself. */
  together: z.array(approval).default([]),
  /** People who may approve it and have not spoken, twenty at most; empty once it is decided. */
  approvers: z.array(z.string()).default([]),
  /** People whom the site's list names, in order; empty where everybody was told at once. */
  asked: z.array(z.object({ name: z.string(), at: z.string() })).default([]),
  /** Empty once it is decided. */
  next: z.array(nextCall).default([]),
  /**
   * Witnesses who say now that hosts are dead whose VMs it would start elsewhere; empty once it is
   * decided.
   */
  deaths: z.array(judgedDeath).default([]),
  /** The last approval at Temporal without a token, which decides nothing; null: none. */
  unheardAt: z.string().nullable().default(null),
  /** JSON schema of the arguments, for the form that changes them; null for an unknown tool. */
  schema: z.record(z.string(), z.unknown()).nullable().default(null),
})
export type ApprovalDetail = z.infer<typeof approvalDetail>

/**
 * The outcome of a decision, at any door. `recorded`: it counts (`status` may stay `pending` for a
 * second person). `repeated`: the same person said so before; nothing changed.
 */
export type DecisionOutcome =
  | { outcome: 'recorded' | 'repeated'; status: ApprovalStatus; approvalId: string; incidentId: string }
  | { outcome: 'not_found' }
  | { outcome: 'forbidden'; code: string; message: string }
  | { outcome: 'conflict'; status: ApprovalStatus; message: string }
  | { outcome: 'gone'; status: ApprovalStatus; message: string }

/**
 * Default time to decide, unless `approval.expiry.<tool>` or the tool says another: enough to wake
 * up and log in.
 */
export const defaultExpirySeconds = 3_600
/** What one extension adds. */
export const extensionSeconds = 900
/** An approval cannot be extended beyond this: the world it describes has moved on. */
export const extendableSeconds = 4 * 3_600
/** Longer than a weekend on call; a plan older than this describes another platform. */
export const maxExpirySeconds = 7 * 24 * 3600
/** An approved action starts within this time or asks again: it must still be what is meant. */
export const useBySeconds = 900

export type NamingFacts = Pick<ToolFacts, 'name' | 'names' | 'kindField'>
type Action = {
  arguments: Record<string, unknown>
  targets: readonly ResourceRef[]
  /** The container's name, as its engine gave it when the action was tried. */
  container?: string | null
}

/** The name by which a rehearsal found its container; null where it found none. */
export function containerFound({ details }: { details: Record<string, unknown> }): string | null {
  const found = rehearsedContainer.safeParse(details)
  return found.success ? found.data.rehearsal.container : null
}
const rehearsedContainer = z.looseObject({ rehearsal: z.looseObject({ container: z.string() }) })

/**
 * Digests an action with each thing under its one key. `vm:x` and `node:x` may name one machine,
 * and a container has a name, an id and its beginning: a denial under one name holds under each.
 * `keyOf` answers a resource's key; leases go by the registry's.
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
  // The key says of which kind it is; the word that the caller chose is part of the name.
  if (kindField !== undefined) delete keyed[kindField]
  return actionDigest(tool, keyed)
}

/** Reads keys from what was stored: what has no entry is its own. */
export function keyReader(keys: Readonly<Record<string, string>>): (ref: ResourceRef) => string {
  return (ref) => {
    const own = resourceKey(ref)
    return Object.hasOwn(keys, own) ? (keys[own] as string) : own
  }
}
