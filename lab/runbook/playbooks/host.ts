import { type Conversation, type RunbookStep, ruleOf, type ToolResult } from '../conversation.ts'
import {
  call,
  done,
  escalate,
  type Facts,
  type Handover,
  lastVerification,
  nothingWrong,
  type OperatorTurn,
  object,
  quoted,
  quotedOf,
  resolve,
  rows,
  stepsAfter,
  subject,
  text,
} from '../facts.ts'

/**
 * The purpose of a plan: to start a dead host's VMs elsewhere (`recover`), or to move the running
 * VMs off a host that is to be emptied (`drain`).
 */
type Intent = 'recover' | 'drain'

/** The most plans that are proposed. If so many plans are cancelled, a person should take over. */
const maxPlans = 3
/**
 * The most moved VMs that are checked one by one. The JSON protocol checks fewer, because each
 * check is a turn.
 */
const maxVerifications = { native: 3, json: 1 }

/**
 * Clears a host: finds the host, requests a plan, proposes the plan, and checks where its VMs run.
 * Never proposes a denied plan again.
 */
export function clearHost(conversation: Conversation, intent: Intent): OperatorTurn {
  const { steps } = conversation
  const host = subject(conversation, 'host') ?? conversation.context!.alerts[0]?.labels.instance ?? null
  if (!host) return escalate(conversation, 'The alert names no host.')
  const neighbours = intent === 'recover' ? neighboursOf(conversation, host) : []
  const unread = neighbours.filter((id) => done(steps, 'active_alerts', id).length === 0)
  if (done(steps, 'find_resource', host).length === 0 || unread.length > 0) {
    const found = done(steps, 'find_resource', host).length > 0
    return {
      say: unread.length > 0 ? `I look up ${host}, and whether it failed alone.` : `I look up ${host}.`,
      calls: [
        ...(found ? [] : [call('find_resource', { kind: 'host', text: host })]),
        ...unread.map((resource) => call('active_alerts', { resource })),
      ],
    }
  }
  const hosts = [host, ...neighbours.filter((id) => diedWith(conversation, host, id))].sort()
  const goal = intent === 'recover' ? `recover ${list(hosts)}` : `empty ${host}`
  const moved = done(steps, 'execute_migration').at(-1)
  const isOpen = moved !== undefined && wasCalledOff(moved) && done(steps, 'execute_migration').length < maxPlans
  if (moved && !isOpen) return verifyMoves(conversation, goal, intent, hosts, moved)

  const denials = deniedPlans(steps)
  // Escalates if the time was wrong, because a person would deny any plan now. After a denial for
  // another reason, another plan may be approved.
  const untimely = denials.find(({ category, reason }) => category === 'wrong_time' || isAboutTime(reason))
  if (untimely) return escalate(conversation, `The plan to ${goal} was denied: "${untimely.reason}"`, denied)
  const withRacks = denials.length > 0
  const since = isOpen ? stepsAfter(steps, 'execute_migration') : steps
  const proposed = done(since, 'schedule_ha_proposal').findLast(({ args }) => args.use_rack_constraints === withRacks)
  if (!proposed) {
    const why = isOpen
      ? `Another change made the plan outdated while it ran: a new plan to ${goal}.`
      : withRacks
        ? `The plan was denied: I make another plan to ${goal}, which keeps racks apart.`
        : `I make a plan to ${goal}.`
    const args = { intent, host_ids: hosts, use_rack_constraints: withRacks }
    return { say: why, calls: [call('schedule_ha_proposal', args)] }
  }

  const plan = object(proposed.result.data)
  const state = text(plan, 'state')
  if (state === 'no_action') return nothingToMove(conversation, intent, hosts, proposed)
  if (state !== 'planned' && state !== 'partial') {
    const rest = remainder(plan, intent)
    const why = rest?.text ?? text(plan, 'reason') ?? 'no reason given'
    return escalate(conversation, `There is no plan to ${goal} (${state}). ${why}`, noRoom(rest))
  }
  const before = denials.find(({ moves }) => moves === movesOf(plan))
  if (before) return escalate(conversation, `The only plan to ${goal} was denied: "${before.reason}"`, denied)
  const named = denials.find(({ reason }) => stepsOf(plan).some((step) => isNamed(text(step, 'to'), reason)))
  if (named) {
    const told = `A plan to ${goal} was denied: "${named.reason}". The second plan uses a resource that the denial names.`
    return escalate(conversation, told, denied)
  }
  const moves = stepsOf(plan).map((step) => `${text(step, 'vm')} to ${text(step, 'to')}`)
  const left = rows(plan.unplaced).map((each) => text(each, 'vm'))
  const staying = left.length > 0 ? `; there is no room for ${left.join(', ')}` : ''
  return {
    say: `The plan to ${goal}: ${moves.join(', ')}${staying}.`,
    calls: [call('execute_migration', { proposal_id: proposalId(plan), reason: reasonOf(hosts, intent, moves) })],
  }
}

const denied: Handover = {
  category: 'needs_approval',
  nextStep:
    'Decide what to do with the VMs, or have the incident investigated again when the reason for the denial no longer holds.',
}

function isAboutTime(reason: string): boolean {
  return /\b(wait|later|tonight|tomorrow|morning|freeze|not (now|during|before|until))\b/i.test(reason)
}

/**
 * Returns whether a person's reason names the host, also in the short form `ams-2` for
 * `host-ams-2`.
 */
function isNamed(host: string | null, reason: string): boolean {
  const words = reason.toLowerCase().split(/[^a-z0-9-]+/)
  return host !== null && (words.includes(host) || words.includes(host.replace(/^host-/, '')))
}

/**
 * Handles a host from which no VM has to be moved. An empty host that is to be drained is right. A
 * dead host is still dead, and no tool starts it.
 */
function nothingToMove(
  conversation: Conversation,
  intent: Intent,
  hosts: string[],
  proposed: RunbookStep,
): OperatorTurn {
  const what = `Nothing on ${list(hosts)} needs a new place`
  if (intent === 'drain') return nothingWrong(conversation, what, quoted(proposed, 'state'))
  return escalate(conversation, `${what}.`, { category: 'no_tool', nextStep: repairOf(hosts) })
}

function noRoom(rest: Remainder | null): Handover {
  return { category: 'no_tool', ...(rest?.help && { nextStep: rest.help }) }
}

function repairOf(hosts: string[]): string {
  return `Repair ${list(hosts)}: ${hosts.length === 1 ? 'its alert fires' : 'their alerts fire'} until then.`
}

/** Lists the hosts that the context shows as neighbours of this host. */
function neighboursOf({ context }: Conversation, host: string): string[] {
  return context!.neighbours.filter(({ kind, id }) => kind === 'host' && id !== host).map(({ id }) => id)
}

/**
 * Returns whether the rack's other host is also reported as down. One plan then covers the VMs of
 * both hosts.
 */
function diedWith({ context, steps }: Conversation, host: string, other: string): boolean {
  const rack = context!.alerts.map(({ labels }) => labels).find((labels) => labels.host === host)?.rack
  if (!rack) return false
  const [read] = done(steps, 'active_alerts', other)
  return rows(read?.result.data).some(({ name, status, labels }) => {
    const about = object(labels)
    return status === 'firing' && name === 'host_down' && about.host === other && about.rack === rack
  })
}

function reasonOf(hosts: string[], intent: Intent, moves: string[]): string {
  const why = intent === 'recover' ? `${isDown(hosts)}` : `${list(hosts)} is to be emptied`
  const told = `${why}: ${moves.join(', ')}.`
  return told.length <= 500 ? told : `${why}: ${moves.length} steps.`
}

/** Returns whether a plan was cancelled after a change, with another plan for the remaining VMs. */
function wasCalledOff({ result }: RunbookStep & { result: ToolResult }): boolean {
  return text(object(result.data), 'next_proposal_id') !== null
}

function verifyMoves(
  conversation: Conversation,
  goal: string,
  intent: Intent,
  hosts: string[],
  moved: RunbookStep & { result: ToolResult },
): OperatorTurn {
  const { steps } = conversation
  const proposed = done(steps, 'schedule_ha_proposal').find(
    ({ result }) => proposalId(object(result.data)) === moved.args.proposal_id,
  )
  const plan = object(proposed?.result.data)
  // Sorts the VMs of the cleared hosts before VMs that moved only to make room for them.
  const about = (step: Facts) => hosts.includes(text(step, 'from') ?? '')
  const ordered = stepsOf(plan).sort((a, b) => Number(about(b)) - Number(about(a)))
  const targets = new Map(ordered.map((step) => [text(step, 'vm')!, text(step, 'to')!]))
  const sample = [...targets].slice(0, maxVerifications[conversation.protocol])
  const since = stepsAfter(steps, 'execute_migration')
  const unread = sample.filter(([vm]) => done(since, 'current_vm_host', vm).length === 0)
  if (unread.length > 0) {
    return { say: 'I check where the VMs run now.', calls: unread.map(([vm]) => call('current_vm_host', { vm })) }
  }
  const reads = sample.map(([vm]) => done(since, 'current_vm_host', vm).at(-1)!)
  const failed = stepsOf(object(moved.result.data)).filter((step) => text(step, 'status') !== 'OK')
  const wrong = sample.filter(
    ([vm, to], i) => hostIn(reads[i]!.result.data) !== to && failed.every((step) => step.vm !== vm),
  )
  if (failed.length > 0 || wrong.length > 0 || lastVerification([moved, ...since]) === 'not_held') {
    const told = [
      ...failed.map((step) => {
        const became = text(step, 'status') === 'SKIPPED' ? 'was skipped' : 'failed'
        return `step ${step.step} ${became} (${text(step, 'detail') ?? text(step, 'vm')})`
      }),
      ...wrong.map(([vm, to]) => `${vm} is not on ${to}`),
    ]
    const what = told.join(', ') || 'its verification did not hold'
    return escalate(conversation, `The plan to ${goal} was carried out, but ${what}.`)
  }
  const where = sample.map(([vm, to]) => `${vm} on ${to}`).join(', ')
  const found = ordered.filter(about).length
  const count = `${found} ${found === 1 ? 'VM' : 'VMs'}`
  const others = targets.size - found
  const room = others === 0 ? '' : `, and ${others} moved to make room`
  const result =
    intent === 'recover'
      ? `${isDown(hosts)}; ${count} started elsewhere${room}: ${where}.`
      : `${list(hosts)} is to be emptied; ${count} moved elsewhere while running${room}: ${where}.`
  const rest = remainder(plan, intent)
  if (rest) return escalate(conversation, `${result} ${rest.text}`, noRoom(rest))
  // Escalates, because only the VMs run again and the host itself is still dead.
  if (intent === 'recover') return escalate(conversation, result, { category: 'mitigated', nextStep: repairOf(hosts) })
  return resolve(conversation, 'repaired', result, [
    {
      kind: 'was',
      text: `a plan to ${goal} has a place for ${count}`,
      quotes: proposed
        ? ordered
            .filter(about)
            .slice(0, 20)
            .flatMap((step) => quotedOf(proposed, step, 'vm'))
        : [],
    },
    { kind: 'did', text: 'the approved plan was carried out', quotes: quoted(moved, 'detail') },
    { kind: 'is', text: where, quotes: reads.flatMap((read) => quoted(read, 'id', 'host')) },
  ])
}

type Remainder = { text: string; help: string | null }

/**
 * Describes the VMs that the plan could not place, with the reason and remedies. Null if the plan
 * has placed every VM.
 */
function remainder(plan: Facts, intent: Intent): Remainder | null {
  const left = rows(plan.unplaced)
  if (left.length === 0) return null
  const stay = `${left.length === 1 ? '1 VM stays' : `${left.length} VMs stay`} ${intent === 'recover' ? 'down' : 'there'}`
  const obstacle = object(plan.obstacle)
  const why = text(obstacle, 'text') ?? left.map((each) => text(each, 'reason') ?? 'no room').join('; ')
  // Leaves out remedies that repeat the obstacle's text, and "they stay there", which is not a
  // remedy.
  const repairs = rows(obstacle.repairs)
    .filter(({ kind }) => kind !== 'leave_down')
    .flatMap((repair) => text(repair, 'text') ?? [])
    .filter((repair) => !why.includes(repair))
  return {
    text: `${stay}: ${left.map((each) => text(each, 'vm')).join(', ')}. ${/[.!?]$/.test(why) ? why : `${why}.`}`,
    help: repairs.length > 0 ? `What would help: ${repairs.join('; or ')}.` : null,
  }
}

/**
 * Lists the plans that a person denied: the plan's moves, by which a later plan is recognized as
 * the same, and the reason.
 */
function deniedPlans(steps: RunbookStep[]): { moves: string | null; reason: string; category: string | null }[] {
  return steps
    .filter(({ tool, result }) => tool === 'execute_migration' && ruleOf(result) === 'DENIED')
    .map(({ args, result }) => {
      const proposed = done(steps, 'schedule_ha_proposal').find(
        (step) => proposalId(object(step.result.data)) === args.proposal_id,
      )
      const { message: reason, details } = result!.error!
      const moves = proposed ? movesOf(object(proposed.result.data)) : null
      return { moves, reason, category: text(object(details), 'category') }
    })
}

function proposalId(plan: Facts): string | null {
  return text(plan, 'proposal_id', 'proposalId', 'id')
}

function stepsOf(plan: Facts): Facts[] {
  return rows(plan.steps)
}

function movesOf(plan: Facts): string {
  return JSON.stringify(
    stepsOf(plan).map((step) => [text(step, 'action'), text(step, 'vm'), text(step, 'from'), text(step, 'to')]),
  )
}

function hostIn(data: unknown): string | null {
  if (typeof data === 'string') return data
  const facts = object(data)
  return facts.running === false ? null : text(facts, 'host', 'hostId', 'host_id')
}

function list(hosts: string[]): string {
  return hosts.join(' and ')
}

function isDown(hosts: string[]): string {
  return `${list(hosts)} ${hosts.length === 1 ? 'is' : 'are'} down`
}
