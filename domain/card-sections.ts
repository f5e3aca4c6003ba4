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

/** The questions that a card answers, in the order in which a person asks them. */
const cardTitles = {
  cost: 'The worst it costs',
  targets: 'On what',
  dead: 'What says that the host is dead',
  forecast: 'What the platform does by itself',
  reason: 'Why',
  against: 'What speaks against it',
  counted: 'How sizes are counted',
  proof: 'What will prove it',
  back: 'The way back',
  site: 'Who decides',
  approve: 'If you approve',
  deny: 'If you deny',
  wait: 'If you do nothing',
} as const

export type CardSectionName = keyof typeof cardTitles

/**
 * One answer on a card: a few sentences with a stranger's words. `warns`: a person must not
 * overlook it.
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
  /** Can it still be decided? What it costs, and what each answer leads to, is said only then. */
  isOpen: boolean
  /** Writes a time as its reader reads times. */
  moment(iso: string): string
  /**
   * The line about the run's cause; null where it named none, or where the page shows it with its
   * rows.
   */
  cause?: string | null
  /** The resource of its incident: a target beside it may be the wrong one. */
  about?: ResourceRef | null | undefined
  /** Witnesses who say now that hosts are dead; absent where only stored rows make the card. */
  deaths?: readonly JudgedDeath[]
  /** When the newest look that it rests on was made; null where that is not known. */
  lookedAt?: string | null
  /** How many that stay down are named; none where the page draws them. */
  maxNamed?: number
}

/**
 * Sections of a card, the worst first, for every door: page, plain page, terminal, Slack, Teams,
 * mail. Made of what is stored with the approval. Dry run and exact arguments stand beside it.
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
    // What rows bear out comes first: no long word of who asks cuts it off.
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
            `Nothing is changed. The question expires at ${moment(approval.expiresAt)}, and the incident is escalated.`,
          ]),
        ]
      : []),
  ]
}

/** Each answer's cost and consequence, in a sentence or two: for an incident's first screen. */
export function shortSections(approval: CardApproval, moment: Reading['moment']): CardSection[] {
  const { required, approvals, dryRun, expiresAt } = approval
  const missing = required - approvals - 1
  const when =
    missing > 0
      ? `It runs once ${missing === 1 ? 'another person approves' : `${missing} more people approve`}`
      : 'It runs at once'
  const proof =
    dryRun.proof?.by === 'state'
      ? ', then code checks whether it worked'
      : dryRun.proof
        ? ', and nothing proves afterwards that it worked'
        : ''
  return [
    section('cost', [formatCost(approval)], listCosts(approval).length > 0),
    section('approve', [`${when}${proof}.`]),
    section('deny', [formatDenial(approval)]),
    section('wait', [`Nothing is changed. At ${moment(expiresAt)} it is escalated.`]),
  ]
}

/** Witnesses for deaths of hosts whose VMs would start elsewhere; nothing if it starts none. */
function deadSection({ dryRun: { details } }: CardApproval, { isOpen, deaths = [] }: Reading): CardSection[] {
  const all = deaths.length > 0 ? deaths : deathsOfDryRun(details)
  if (all.length === 0) return []
  const open = all.filter(({ verdict }) => verdict === 'unconfirmed' || verdict === 'disputed')
  const sentences = all.map(({ sentence }) => sentence)
  const toSay = isDisputed(all) ? [] : hostsToSay(all)
  const how = `${whatConfirms}, or a person: approve it only if you made sure yourself that ${nameOff(toSay)}. An approval that does not say so is refused.`
  return [section('dead', [...sentences, ...(isOpen && toSay.length > 0 ? [how] : [])], open.length > 0)]
}

/**
 * The forecast in a plan: a person approves the migrations that make room, not where the platform
 * starts what.
 */
function forecastSection({ dryRun: { details } }: CardApproval): CardSection[] {
  const forecast = readForecast(details)
  const migrations = typeof details.migrations === 'number' ? details.migrations : 0
  return forecast ? [section('forecast', formatForecast(forecast, migrations), forecast.staysDown.length > 0)] : []
}

function section(name: CardSectionName, sentences: string[], warns = false): CardSection {
  return { name, title: cardTitles[name], sentences, warns }
}

/** As many names at most are given: of so many it is not known whether there are more. */
const maxGiven = 20

type Asked = { name: string; at: string }

/** `anna, bo and 2 more may approve it. Asked anna at 03:12 UTC, bo at 03:17 UTC.`: for waking. */
export function formatApprovers(names: readonly string[], asked: readonly Asked[] = []): string {
  const turns = asked.map(({ name, at }) => `${name} at ${at.slice(11, 16)} UTC`)
  return [formatNames(names), turns.length > 0 && `Asked ${turns.join(', ')}.`].filter(Boolean).join(' ')
}

function formatNames(names: readonly string[]): string {
  if (names.length === 0) return 'Nobody is left who may approve it.'
  const shown = names.slice(0, 3)
  if (names.length >= maxGiven) return `${shown.join(', ')} and many more may approve it.`
  return `${formatList([...shown, ...(names.length > 3 ? [`${names.length - 3} more`] : [])])} may approve it.`
}

/** What its tool declares as the undo of exactly this; null where it declares none. */
function declaredUndo({ dryRun: { details } }: Pick<CardApproval, 'dryRun'>): string | null {
  return typeof details.undo === 'string' ? details.undo : null
}

/** Says that it can be undone only where an undo is declared: else a person has to know how. */
function formatWayBack(approval: Pick<CardApproval, 'dryRun' | 'reversible'>): string {
  const undo = declaredUndo(approval)
  if (undo !== null) return `It can be undone: ${undo}.`
  return approval.reversible ? 'It can be reversed.' : 'It cannot be undone.'
}

/**
 * The worst that is known of approving, in a few sentences: it stands beside the buttons, so that
 * nobody has to search for it.
 */
export function formatCost(approval: Pick<Approval, 'dryRun' | 'reversible'>): string {
  return listCosts(approval).join(' ') || 'No cost of it is known, and it can be reversed.'
}

const unsaidProof = 'What proves that it worked was not stored.'

function listCosts(approval: Pick<Approval, 'dryRun' | 'reversible'>): string[] {
  const { dryRun, reversible } = approval
  const { unplaced } = readStaysDown(dryRun.details)
  return [
    reversible ? null : 'It cannot be undone.',
    dryRun.possible ? null : 'It had no dry run: what it will do is not known beforehand.',
    unplaced.length > 0 ? `${formatDown(unplaced.length)}.` : null,
    afterOf(approval),
    dryRun.proof?.by === 'state' ? null : dryRun.proof ? 'Afterwards nothing proves that it worked.' : unsaidProof,
  ].filter((each) => each !== null)
}

/** What its plan costs afterwards; null where it has none, or costs nothing. */
function afterOf({ dryRun: { details } }: Pick<Approval, 'dryRun'>): string | null {
  const { standing } = details as { standing?: Standing | null }
  const after = standing && Array.isArray(standing.after) ? formatAfterwards(standing) : null
  return after && `${after[0]?.toUpperCase()}${after.slice(1)}.`
}

const maxTargets = 6

/** Each by its kind and name; a plan's proposal only where it is all there is. */
function formatTargets(targets: Approval['targets']): string {
  const named = targets.filter(({ kind }) => kind !== 'proposal')
  const all = named.length > 0 ? named : targets
  if (all.length === 0) return 'No named target.'
  const main = all.slice(0, maxTargets)
  const more = all.length - main.length
  return `${main.map(({ kind, id }) => `${kind} ${id}`).join(', ')}${more > 0 ? ` and ${more} more` : ''}`
}

/** Why it is asked, and by whom where that is a person. */
function formatReason({ reason, askedBy }: Pick<Approval, 'reason' | 'askedBy'>): string {
  return askedBy ? `${askedBy} asks for it: ${reason}` : reason.trim() || 'The agent gave no reason.'
}

/**
 * Says first that the incident is about another thing than the targets, as for VMs of a dead host:
 * no long list cuts it off.
 */
function formatOther(targets: Approval['targets'], about: ResourceRef | null): string[] {
  if (about === null || targets.some(({ kind, id }) => kind === about.kind && id === about.id)) return []
  return [`The incident is about ${about.kind} ${about.id}.`]
}

/** A look that is older than this when it is asked may tell of another state than today's. */
const freshMs = 15 * 60_000

/** The time of these rows' newest look; null where there is none, or an old version kept none. */
export function newestLookOf(evidence: readonly Evidence[] = []): string | null {
  const looks = evidence.flatMap(({ what, at }) => (what === 'look' && at !== undefined ? [at] : []))
  return looks.sort().at(-1) ?? null
}

/**
 * Doubts of code: an old look, whom a plan leaves down, what was not tried. The longest list comes
 * last, where a cut hurts least.
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

/** An old look, which also stands beside the buttons: it is seen where somebody decides. */
export function formatOldLook(lookedAt: string | null, requestedAt: string, moment: Reading['moment']): string[] {
  const ageMs = lookedAt === null ? 0 : Date.parse(requestedAt) - Date.parse(lookedAt)
  if (lookedAt === null || ageMs <= freshMs) return []
  return [`The newest look that it rests on is of ${moment(lookedAt)}, ${formatSpan(ageMs)} before it was asked.`]
}

/** Absent: the approval was stored by a version that did not say. */
export function formatProof(proof: CardApproval['dryRun']['proof']): string {
  if (!proof)
    return 'What will prove that this worked was not stored with this approval: look at its target afterwards.'
  if (proof.by === 'state') return `Code will prove whether this worked: ${proof.text}.`
  return `Nothing will prove that this worked: ${proof.text}.`
}

const maxStarted = 3

/** When and how it begins, once it is approved. */
/** By which rule of the site people are asked, and who of them may decide. */
function siteSection({ dryRun }: CardApproval): CardSection[] {
  const site = demandOf(dryRun)
  if (!site) return []
  const why = site.silence ? [tellSilence(site.silence)] : []
  const who = site.members === null ? [] : [`It is for ${formatList(site.members)} (${formatList(site.groups)}).`]
  return [section('site', [`${capitalize(nameSiteRule(site))} wants it asked.`, ...why, ...who])]
}

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

/** A person's own write ends with the denial; the agent goes on. */
function formatDenial({ askedBy }: Pick<Approval, 'askedBy'>): string {
  return askedBy
    ? `Nothing is changed, and the incident ends. Its log has your reason, for ${askedBy} to read.`
    : 'Nothing is changed. The agent reads your reason and looks for another way, or escalates. It cannot ask for this action again.'
}
