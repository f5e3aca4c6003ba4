import type { Approval, Evidence } from './approval.ts'
import type { JudgedDeath } from './death.ts'
import { capitalize, formatList, formatSpan } from './format.ts'
import { parseRehearsal } from './format-approval.ts'
import { deathsOfDryRun, hostsToSay, isDisputed, nameOff, whatConfirms } from './format-death.ts'
import {
  formatAfterwards,
  formatDown,
  formatForecast,
  formatWhyDown,
  readForecast,
  readStaysDown,
} from './format-plan.ts'
import type { Standing } from './placement.ts'
import type { ResourceRef } from './registry.ts'
import { tellSilence } from './silence.ts'
import { demandOf, nameSiteRule } from './site-decision.ts'

/** Titles of a card's sections, in the order in which a person reads them. */
const cardTitles = {
  cost: 'Highest cost',
  targets: 'Targets',
  dead: 'Sources that say the host is dead',
  forecast: 'What the platform does by itself',
  reason: 'Why',
  against: 'Reasons against it',
  counted: 'How sizes are counted',
  proof: 'Verification',
  back: 'Undo',
  site: 'Who decides',
  approve: 'If you approve',
  deny: 'If you deny',
  wait: 'If you do nothing',
} as const

export type CardSectionName = keyof typeof cardTitles

/**
 * One section of a card: a few sentences, which contain untrusted text. `warns`: the section is
 * shown as a warning.
 */
export type CardSection = { name: CardSectionName; title: string; sentences: string[]; warns: boolean }

type CardApproval = Pick<
  Approval,
  | 'tool'
  | 'targets'
  | 'reason'
  | 'dryRun'
  | 'reversible'
  | 'required'
  | 'approvals'
  | 'requestedAt'
  | 'expiresAt'
  | 'askedBy'
>

type Reading = {
  /**
   * Whether the question is still open. Costs and consequences of an answer are shown only for an
   * open question.
   */
  isOpen: boolean
  /** Formats a time for the reader. */
  moment(iso: string): string
  /**
   * The sentence about the cause that the run found. Null if the run named no cause, or if the page
   * shows the cause with its rows.
   */
  cause?: string | null
  /** The resource of the incident. A target that differs from this resource may be a mistake. */
  about?: ResourceRef | null | undefined
  /**
   * The current reports of witnesses about the death of hosts. Absent if the card is made only from
   * stored rows.
   */
  deaths?: readonly JudgedDeath[]
  /** The time of the newest read on which the request for approval rests; null if unknown. */
  lookedAt?: string | null
  /**
   * The maximum number of VMs to name among those that stay down; 0 if the page draws these VMs.
   */
  maxNamed?: number
}

/**
 * Builds the sections of a card, the worst first, from the stored approval. Both web pages, the
 * terminal, Slack, Teams and mail use the sections, and show the dry run and the exact arguments
 * beside them.
 */
export function cardSections(approval: CardApproval, reading: Reading): CardSection[] {
  const { isOpen, moment, cause = null, about = null } = reading
  const { dryRun } = approval
  const against = listDoubts(approval, reading)
  const isAgainst = against.length > 0 || readStaysDown(dryRun.details).unplaced.length > 0
  return [
    ...(isOpen ? [section('cost', [formatCost(approval)], listCosts(approval).length > 0)] : []),
    section('targets', [...formatOther(approval.targets, about), formatTargets(approval.targets)]),
    ...deadSection(approval, reading),
    ...forecastSection(approval),
    // Puts a cause that log rows support first, so that a long reason cannot cut it off.
    section('reason', [...(cause === null ? [] : [cause]), formatReason(approval)]),
    ...(isAgainst ? [section('against', against, true)] : []),
    ...(typeof dryRun.details.sizeNote === 'string' ? [section('counted', [dryRun.details.sizeNote])] : []),
    section('proof', [formatProof(dryRun.proof)], dryRun.proof?.by !== 'state'),
    section('back', [formatWayBack(approval)], !approval.reversible),
    ...siteSection(approval),
    ...(isOpen
      ? [
          section('approve', [formatStart(approval)]),
          section('deny', [formatDenial(approval)]),
          section('wait', [
            `Nothing is changed. The approval expires at ${moment(approval.expiresAt)}, and the incident is escalated.`,
          ]),
        ]
      : []),
  ]
}

/**
 * Returns a short form of the cost and consequence of each answer, for the first screen of an
 * incident.
 */
export function shortSections(approval: CardApproval, moment: Reading['moment']): CardSection[] {
  const { required, approvals, dryRun, expiresAt } = approval
  const missing = required - approvals - 1
  const when =
    missing > 0
      ? `The action runs once ${missing === 1 ? 'another person approves' : `${missing} more people approve`}`
      : 'The action runs at once'
  const proof =
    dryRun.proof?.by === 'state'
      ? ', then code checks whether it worked'
      : dryRun.proof
        ? ', and nothing can verify that it worked'
        : ''
  return [
    section('cost', [formatCost(approval)], listCosts(approval).length > 0),
    section('approve', [`${when}${proof}.`]),
    section('deny', [formatDenial(approval)]),
    section('wait', [`Nothing is changed. At ${moment(expiresAt)} the incident is escalated.`]),
  ]
}

/**
 * Lists the reports of witnesses about the death of hosts whose VMs would start elsewhere. Empty if
 * there are no such reports.
 */
function deadSection({ dryRun: { details } }: CardApproval, { isOpen, deaths = [] }: Reading): CardSection[] {
  const all = deaths.length > 0 ? deaths : deathsOfDryRun(details)
  if (all.length === 0) return []
  const open = all.filter(({ verdict }) => verdict === 'unconfirmed' || verdict === 'disputed')
  const sentences = all.map(({ sentence }) => sentence)
  const toSay = isDisputed(all) ? [] : hostsToSay(all)
  const how = `${whatConfirms}, or a person. Approve only if you checked yourself that ${nameOff(toSay)}. An approval without this statement is refused.`
  return [section('dead', [...sentences, ...(isOpen && toSay.length > 0 ? [how] : [])], open.length > 0)]
}

/**
 * Explains the forecast of a plan. A person approves only the migrations that make room. The
 * platform itself chooses the host on which it starts a VM.
 */
function forecastSection({ dryRun: { details } }: CardApproval): CardSection[] {
  const forecast = readForecast(details)
  const migrations = typeof details.migrations === 'number' ? details.migrations : 0
  return forecast ? [section('forecast', formatForecast(forecast, migrations), forecast.staysDown.length > 0)] : []
}

function section(name: CardSectionName, sentences: string[], warns = false): CardSection {
  return { name, title: cardTitles[name], sentences, warns }
}

/** The maximum number of names that the API returns. A list of this length may be incomplete. */
const maxGiven = 20

type Asked = { name: string; at: string }

/**
 * Lists who may approve, and who was asked when: `anna, bo, cy and 2 more may approve. Asked anna
 * at 03:12 UTC, bo at 03:17 UTC.` The reader sees whom to wake.
 */
export function formatApprovers(names: readonly string[], asked: readonly Asked[] = []): string {
  const turns = asked.map(({ name, at }) => `${name} at ${at.slice(11, 16)} UTC`)
  return [formatNames(names), turns.length > 0 && `Asked ${turns.join(', ')}.`].filter(Boolean).join(' ')
}

function formatNames(names: readonly string[]): string {
  if (names.length === 0) return 'Nobody is left who may approve.'
  const shown = names.slice(0, 3)
  if (names.length >= maxGiven) return `${shown.join(', ')} and many more may approve.`
  return `${formatList([...shown, ...(names.length > 3 ? [`${names.length - 3} more`] : [])])} may approve.`
}

/** Returns the undo that the tool declares for this call; null if it declares none. */
function declaredUndo({ dryRun: { details } }: Pick<CardApproval, 'dryRun'>): string | null {
  return typeof details.undo === 'string' ? details.undo : null
}

/** Describes how the action can be undone. Names an undo only if the tool declares one. */
function formatWayBack(approval: Pick<CardApproval, 'dryRun' | 'reversible'>): string {
  const undo = declaredUndo(approval)
  if (undo !== null) return `The action can be undone: ${undo}.`
  return approval.reversible ? 'The action can be reversed.' : 'The action cannot be undone.'
}

/**
 * Describes the worst known consequences of an approval in a few sentences, which are shown beside
 * the buttons.
 */
export function formatCost(approval: Pick<Approval, 'dryRun' | 'reversible'>): string {
  return listCosts(approval).join(' ') || 'The action has no known cost and can be reversed.'
}

const unsaidProof = 'No verification is stored for this approval.'

function listCosts(approval: Pick<Approval, 'dryRun' | 'reversible'>): string[] {
  const { dryRun, reversible } = approval
  const { unplaced } = readStaysDown(dryRun.details)
  return [
    reversible ? null : 'The action cannot be undone.',
    dryRun.possible ? null : 'No dry run showed its effect.',
    unplaced.length > 0 ? `${formatDown(unplaced.length)}.` : null,
    afterOf(approval),
    dryRun.proof?.by === 'state' ? null : dryRun.proof ? 'Nothing can verify its result.' : unsaidProof,
  ].filter((each) => each !== null)
}

/** Describes the cost that remains after the plan has run; null if there is no plan or no cost. */
function afterOf({ dryRun: { details } }: Pick<Approval, 'dryRun'>): string | null {
  const { standing } = details as { standing?: Standing | null }
  const after = standing && Array.isArray(standing.after) ? formatAfterwards(standing) : null
  return after && `${after[0]?.toUpperCase()}${after.slice(1)}.`
}

const maxTargets = 6

/**
 * Names each target by kind and name. Names the proposal of a plan only if the proposal is the only
 * target.
 */
function formatTargets(targets: Approval['targets']): string {
  const named = targets.filter(({ kind }) => kind !== 'proposal')
  const all = named.length > 0 ? named : targets
  if (all.length === 0) return 'No named target.'
  const main = all.slice(0, maxTargets)
  const more = all.length - main.length
  return `${main.map(({ kind, id }) => `${kind} ${id}`).join(', ')}${more > 0 ? ` and ${more} more` : ''}`
}

/**
 * Returns the reason of the request, and the person who requests the action if it is not the agent.
 */
function formatReason({ reason, askedBy }: Pick<Approval, 'reason' | 'askedBy'>): string {
  return askedBy ? `${askedBy} requests it: ${reason}` : reason.trim() || 'The agent gave no reason.'
}

/**
 * Reports that the incident is about a resource other than the targets, such as the dead host of
 * the VMs. The sentence is placed first, so that no long list of targets cuts it off.
 */
function formatOther(targets: Approval['targets'], about: ResourceRef | null): string[] {
  if (about === null || targets.some(({ kind, id }) => kind === about.kind && id === about.id)) return []
  return [`The incident is about ${about.kind} ${about.id}.`]
}

/** The age from which a read may be out of date when the question is asked. */
const freshMs = 15 * 60_000

/** Returns the time of the newest read in the evidence; null if there is no read. */
export function newestLookOf(evidence: readonly Evidence[] = []): string | null {
  const looks = evidence.flatMap(({ what, at }) => (what === 'look' && at !== undefined ? [at] : []))
  return looks.sort().at(-1) ?? null
}

/**
 * Lists reasons against an approval that code finds: an old read, checks that the dry run could not
 * make, and VMs that a plan leaves down. The longest list comes last, where a cut loses least.
 */
function listDoubts(
  { dryRun: { details }, requestedAt }: CardApproval,
  { moment, lookedAt = null, maxNamed = 20 }: Reading,
): string[] {
  const untried = parseRehearsal(details)?.untried ?? []
  return [...formatOldLook(lookedAt, requestedAt, moment), ...untried, ...listDown(details, maxNamed)]
}

function listDown(details: Record<string, unknown>, maxNamed: number): string[] {
  const left = readStaysDown(details)
  const { unplaced } = left
  if (unplaced.length === 0 || maxNamed === 0) return []
  const down = unplaced.slice(0, maxNamed).map(({ vm, reason }) => (reason ? `${vm}: ${reason}` : vm))
  const more = unplaced.length - down.length
  return [`${formatDown(unplaced.length)}.`, ...down, ...(more > 0 ? [`And ${more} more.`] : []), formatWhyDown(left)]
}

/** Warns of an old read behind the request. The warning is also shown beside the buttons. */
export function formatOldLook(lookedAt: string | null, requestedAt: string, moment: Reading['moment']): string[] {
  const ageMs = lookedAt === null ? 0 : Date.parse(requestedAt) - Date.parse(lookedAt)
  if (lookedAt === null || ageMs <= freshMs) return []
  return [`The newest check is from ${moment(lookedAt)}, ${formatSpan(ageMs)} before the request.`]
}

/**
 * Describes how the action will be verified. `proof` is absent if an older version stored the
 * approval.
 */
export function formatProof(proof: CardApproval['dryRun']['proof']): string {
  if (!proof) return 'This approval has no stored verification. Check the target afterwards.'
  if (proof.by === 'state') return `Code will verify this: ${proof.text}.`
  return `Nothing can verify this: ${proof.text}.`
}

const maxStarted = 3

/** Names the configured rule that requires the approval, and the people who may decide. */
function siteSection({ dryRun }: CardApproval): CardSection[] {
  const site = demandOf(dryRun)
  if (!site) return []
  const why = site.silence ? [tellSilence(site.silence)] : []
  const who = site.members === null ? [] : [`Only ${formatList(site.members)} (${formatList(site.groups)}) may decide.`]
  return [section('site', [`${capitalize(nameSiteRule(site))} requires approval.`, ...why, ...who])]
}

/** Describes when and how the action begins after an approval. */
function formatStart({ tool, targets, required, approvals }: CardApproval): string {
  const others = required - approvals - 1
  const when = others > 0 ? `Once ${others === 1 ? 'another person approves' : `${others} more approve`}, the` : 'The'
  return `${when} targets are read again. If they are unchanged, ${tool} runs at once${formatStarted(targets)}; otherwise you are asked again.`
}

function formatStarted(targets: Approval['targets']): string {
  const named = targets.filter(({ kind }) => kind !== 'proposal')
  if (named.length === 0) return ''
  const shown = named.slice(0, maxStarted).map(({ kind, id }) => `${kind} ${id}`)
  const more = named.length - shown.length
  return ` on ${shown.join(', ')}${more > 0 ? ` and ${more} more` : ''}`
}

/**
 * Describes what a denial does. A denial ends a person's own write; the agent continues after a
 * denial.
 */
function formatDenial({ askedBy }: Pick<Approval, 'askedBy'>): string {
  return askedBy
    ? `Nothing is changed, and the incident ends. Its log keeps your reason for ${askedBy}.`
    : 'Nothing is changed. The agent reads your reason and tries another way, or escalates. It cannot request this action again.'
}
