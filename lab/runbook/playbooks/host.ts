import { type Conversation, type Result, ruleOf, type Step } from '../conversation.ts'
import { call, type Decision, escalate, nothingWrong, resolve } from '../decision.ts'
import { after, done, type Facts, lastVerification, object, rows, seqs, subject, text } from '../facts.ts'

/** So many of the moved VMs are looked at one by one. */
const verifyAtMost = 3

/** Find the host, have a plan made, propose it, and look where its VMs run. A denied plan is never proposed again. */
export function recoverHost(conversation: Conversation): Decision {
  const { steps } = conversation
  const host = subject(conversation, 'host') ?? conversation.context!.alerts[0]?.labels.instance ?? null
  if (!host) return escalate(conversation, 'The alert names no host.')
  if (done(steps, 'find_resource', host).length === 0) {
    return { say: `I look up ${host}.`, calls: [call('find_resource', { kind: 'host', text: host })] }
  }
  const moved = done(steps, 'execute_migration').at(-1)
  if (moved) return verifyMoves(conversation, host, moved)

  const denials = deniedPlans(steps)
  const withRacks = denials.some(({ reason }) => /rack/i.test(reason))
  const unhelpful = denials.find(({ reason }) => !/rack/i.test(reason))
  if (unhelpful) return escalate(conversation, `The plan to recover ${host} was denied: "${unhelpful.reason}"`)
  const proposed = done(steps, 'schedule_ha_proposal').findLast(({ args }) => args.use_rack_constraints === withRacks)
  if (!proposed) {
    const why = withRacks
      ? `The denial asks for racks to be kept apart: a new plan for ${host}.`
      : `A plan to recover ${host}.`
    const args = { intent: 'recover', host_ids: [host], use_rack_constraints: withRacks }
    return { say: why, calls: [call('schedule_ha_proposal', args)] }
  }

  const plan = object(proposed.result.data)
  const state = text(plan, 'state')
  if (state === 'no_action') return nothingWrong(conversation, `Nothing on ${host} needs a new place`, seqs([proposed]))
  if (state !== 'planned') {
    return escalate(
      conversation,
      `No complete plan to recover ${host} (${state}): ${text(plan, 'reason') ?? 'no reason given'}`,
    )
  }
  const denied = denials.find(({ moves }) => moves === movesOf(plan))
  if (denied) return escalate(conversation, `The only plan to recover ${host} was denied: "${denied.reason}"`)
  const list = stepsOf(plan)
    .map((step) => `${text(step, 'vm')} to ${text(step, 'to')}`)
    .join(', ')
  return {
    say: `${host} is down; the plan starts its VMs elsewhere: ${list}.`,
    calls: [call('execute_migration', { proposal_id: proposalId(plan), reason: `${host} is down: ${list}.` })],
  }
}

function verifyMoves(conversation: Conversation, host: string, moved: Step & { result: Result }): Decision {
  const { steps } = conversation
  const proposed = done(steps, 'schedule_ha_proposal').find(
    ({ result }) => proposalId(object(result.data)) === moved.args.proposal_id,
  )
  const plan = object(proposed?.result.data)
  const targets = new Map(stepsOf(plan).map((step) => [text(step, 'vm')!, text(step, 'to')!]))
  const sample = [...targets].slice(0, verifyAtMost)
  const since = after(steps, 'execute_migration')
  const unread = sample.filter(([vm]) => done(since, 'current_vm_host', vm).length === 0)
  if (unread.length > 0) {
    return { say: 'I look where the VMs run now.', calls: unread.map(([vm]) => call('current_vm_host', { vm })) }
  }
  const reads = sample.map(([vm]) => done(since, 'current_vm_host', vm).at(-1)!)
  const wrong = sample.filter(([, to], i) => hostIn(reads[i]!.result.data) !== to)
  if (wrong.length > 0 || lastVerification([moved, ...since]) === 'not_held') {
    const list = wrong.map(([vm, to]) => `${vm} is not on ${to}`).join(', ') || 'its verification did not hold'
    return escalate(conversation, `The plan to recover ${host} was carried out, but ${list}.`)
  }
  const where = sample.map(([vm, to]) => `${vm} on ${to}`).join(', ')
  return resolve(conversation, 'repaired', `${host} is down; ${targets.size} VMs were started elsewhere: ${where}.`, [
    { text: `a plan moves ${targets.size} VMs from ${host}`, evidence: seqs(proposed ? [proposed] : []) },
    { text: 'the approved plan was carried out', evidence: seqs([moved]).slice(0, 1) },
    { text: where, evidence: seqs(reads) },
  ])
}

/** What a person said no to: the plan's moves, by which another proposal of the same plan is known, and why. */
function deniedPlans(steps: Step[]): { moves: string | null; reason: string }[] {
  return steps
    .filter(({ tool, result }) => tool === 'execute_migration' && ruleOf(result) === 'DENIED')
    .map(({ args, result }) => {
      const proposed = done(steps, 'schedule_ha_proposal').find(
        (step) => proposalId(object(step.result.data)) === args.proposal_id,
      )
      return { moves: proposed ? movesOf(object(proposed.result.data)) : null, reason: result!.error!.message }
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
