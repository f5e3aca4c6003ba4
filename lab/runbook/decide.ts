import { type Conversation, type RunbookStep, ruleOf } from './conversation.ts'
import {
  call,
  done,
  escalate,
  type Handover,
  healthIn,
  lastVerification,
  type OperatorTurn,
  object,
  quoted,
  type RunbookCall,
  type RunbookClaim,
  rows,
  seqs,
  subject,
  text,
} from './facts.ts'
import { clusterTypes, lookAtCluster } from './playbooks/cluster.ts'
import { askServer, databaseTypes } from './playbooks/database.ts'
import { undoDeploy } from './playbooks/deploy.ts'
import { endRunaway, freePort, installMissing, takenAddress } from './playbooks/device.ts'
import { clearHost } from './playbooks/host.ts'
import {
  escalateWithoutMetrics,
  freeConnections,
  nameNeighbour,
  repairDeclared,
  undoRelease,
} from './playbooks/metrics.ts'
import { diskPressure, repairShard } from './playbooks/shard.ts'

const resourceId = /\b(?:node-)?(?:db|web)-[a-z]+-\d+[a-z]?\b|\bhost-[a-z]+-\d+\b|\bvm-\d+\b|\btenant-\d+\b/

/** Answers a question of a person: finds the resource, reads it, and responds in prose. */
function answerQuestion(conversation: Conversation): OperatorTurn {
  const { incident } = conversation.context!
  const id = incident.resource?.id ?? resourceId.exec(incident.title)?.[0] ?? null
  if (!id) return prose('The question names no resource that I can look up.', 'low')
  const found = done(conversation.steps, 'find_resource', id).at(-1)
  if (!found) return { say: `I look up ${id}.`, calls: [call('find_resource', { text: id })] }
  const look = lookAt(id)
  const read = look && done(conversation.steps, look.tool, id).at(-1)
  if (look && !read) return { say: `I read ${id}.`, calls: [look] }
  const data = read ? read.result.data : rows(found.result.data)[0]
  const facts = object(data)
  const state = healthIn(data) ?? text(facts, 'state', 'host') ?? 'known, but its state is not reported'
  const reason = text(facts, 'reason')
  const evidence = seqs(read ? [read] : [found]).join(', ')
  return prose(`${id}: ${state}${reason ? `, ${reason}` : ''} (evidence: ${evidence}).`, 'high')
}

/**
 * Reads a resource that a person named in a message, before any other step. The table understands
 * nothing in a message except names of resources.
 */
function lookWhereTold({ messages = [], steps }: Conversation): OperatorTurn | null {
  const named = messages.flatMap((text) => [...text.matchAll(new RegExp(resourceId, 'g'))].map(([id]) => id))
  const unseen = named.find((id) => !steps.some(({ args }) => Object.values(args).includes(id)))
  if (unseen === undefined) return null
  const look = lookAt(unseen) ?? call('find_resource', { text: unseen })
  return { say: `A person named ${unseen}: I read ${unseen} first.`, calls: [look] }
}

/**
 * Handles an incident type without a playbook: finds the resource if possible, reads the incident,
 * and escalates.
 */
function lookAndEscalate(conversation: Conversation): OperatorTurn {
  const { incident } = conversation.context!
  const id = incident.resource?.id
  if (id && conversation.steps.every(({ tool }) => tool !== 'find_resource')) {
    return { say: `I look up ${id}.`, calls: [call('find_resource', { text: id })] }
  }
  if (done(conversation.steps, 'get_incident').length === 0) {
    return { say: 'I read the incident.', calls: [call('get_incident', { id: incident.id })] }
  }
  return escalate(
    conversation,
    `There is no runbook for incidents of type ${incident.type}; a person must take over "${incident.title}".`,
    { category: 'no_tool' },
  )
}

function lookAt(id: string): RunbookCall | null {
  if (id.startsWith('node-')) return call('get_node', { id })
  if (id.startsWith('vm-')) return call('current_vm_host', { vm: id })
  if (id.startsWith('tenant-')) return call('get_tenant', { id })
  if (id.startsWith('host-')) return null
  return call('get_shard', { id })
}

function prose(summary: string, confidence: 'high' | 'low'): OperatorTurn {
  return { say: summary, answer: { summary, confidence } }
}

const playbooks: Record<string, (conversation: Conversation) => OperatorTurn> = {
  replication_lag: repairShard,
  service_down: repairService,
  config_drift: repairShard,
  disk_pressure: diskPressure,
  host_down: (conversation) => clearHost(conversation, 'recover'),
  host_draining: (conversation) => clearHost(conversation, 'drain'),
  runaway_process: endRunaway,
  bad_deploy: undoDeploy,
  missing_package: installMissing,
  // Handles a notice like an alert about the shard, by reading the resource.
  backup_running: repairShard,
  service_memory_high: repairDeclared,
  node_clock_skew_detected: repairDeclared,
  ssl_certificate_will_expire_soon: repairDeclared,
  too_many_connections: freeConnections,
  high_error_rate: undoRelease,
  high_request_rate: nameNeighbour,
  target_down: escalateWithoutMetrics,
  question: answerQuestion,
  ...Object.fromEntries(databaseTypes.map((type) => [type, askServer])),
  ...Object.fromEntries(clusterTypes.map((type) => [type, lookAtCluster])),
}

/** Limits of answers, errors, corrections and endings, after which a person takes over. */
const maxBusyAnswers = 3
const maxUnexpected = 2
const maxCorrections = 2
const maxRefusedEndings = 1

/**
 * Returns the next turn of a careful operator. The function is pure, so the same conversation
 * always leads to the same decision.
 */
export function decide(whole: Conversation): OperatorTurn {
  const { context, protocol, corrections } = whole
  if (!context) {
    return { say: '', answer: { summary: 'The incident context is missing or unreadable.', confidence: 'low' } }
  }
  const refusals = refusedEndings(whole)
  if (refusals.length > maxRefusedEndings) {
    return escalate(whole, 'Every check finds the resource nominal, but its alert fires and ends repeatedly.', {
      category: 'no_fault_found',
    })
  }
  const conversation = sinceRefused(whole, refusals)
  const { steps } = conversation
  const decision =
    corrections >= maxCorrections
      ? escalate(conversation, 'My answers were corrected twice; a person must take over.')
      : (trouble(conversation) ??
        lookWhereTold(whole) ??
        (playbooks[context.incident.type] ?? lookAndEscalate)(conversation))
  if (!('calls' in decision)) return decision
  // Proposes one call per response in the JSON protocol. The table proposes the remaining calls in
  // later responses, while their results are missing.
  const calls = protocol === 'json' ? decision.calls.slice(0, 1) : decision.calls
  if (calls.length === 1 && same(calls[0]!, steps.at(-1))) {
    return calls[0]!.tool === 'escalate_incident'
      ? giveUp(decision.say)
      : escalate(conversation, 'The next step would repeat the last one; a person must take over.')
  }
  return { say: decision.say, calls: protocol === 'json' ? calls : [...causeOf(whole, calls), ...calls] }
}

/**
 * Records the assumed cause together with the calls that act on the cause. The cause is proposed
 * with the first write call, supported when the incident is resolved as repaired by this call, and
 * refuted if the repair did not hold. The JSON protocol has one call per response, and therefore no
 * room for the record.
 */
function causeOf({ context, steps }: Conversation, calls: readonly RunbookCall[]): RunbookCall[] {
  const said = steps.flatMap(({ tool, args, result }) =>
    tool === 'add_incident_event' && args.hypothesis !== undefined && result?.ok ? [args] : [],
  )
  const record = (hypothesis: string, detail: unknown, more: object = {}) =>
    call('add_incident_event', {
      incident_id: context!.incident.id,
      action: 'investigated',
      detail,
      hypothesis,
      ...more,
    })
  const [proposed] = said
  const [next] = calls
  if (!proposed) {
    const write = calls.find(({ tool, args }) => tool !== 'escalate_incident' && typeof args.reason === 'string')
    if (!write) return []
    const reason = String(write.args.reason)
    // Cuts the reason of a plan at its colon, behind which the targets of all VMs are listed.
    return [record('proposed', write.tool === 'execute_migration' ? reason.replace(/:.*$/s, '.') : reason)]
  }
  if (said.length > 1) return []
  if (next?.tool === 'resolve_incident' && next.args.outcome === 'repaired') {
    const claims = next.args.claims as RunbookClaim[]
    const was = claims.filter(({ kind }) => kind === 'was')
    const quotes = (was.length > 0 ? was : claims.filter(({ kind }) => kind === 'is')).flatMap((each) => each.quotes)
    return quotes.length > 0 ? [record('supported', proposed.detail, { quotes: quotes.slice(0, maxQuotes) })] : []
  }
  if (next?.tool !== 'escalate_incident' || lastVerification(steps) !== 'not_held') return []
  const read = steps.findLast((step) => quoted(step, 'status', 'health').length > 0)
  return read ? [record('refuted', proposed.detail, { quotes: quoted(read, 'status', 'health') })] : []
}

const maxQuotes = 5

/** Lists calls to resolve the incident that were refused because the fault was not over. */
function refusedEndings({ steps }: Conversation): RunbookStep[] {
  return steps.filter(
    ({ tool, args, result }) =>
      tool === 'resolve_incident' && args.outcome !== 'repaired' && notOver.has(ruleOf(result) ?? ''),
  )
}

const notOver = new Set(['STILL_FIRING', 'STILL_DEGRADED'])

/** Drops the steps before the last refused ending, because every state must be read again. */
function sinceRefused(conversation: Conversation, refusals: RunbookStep[]): Conversation {
  const { context, steps } = conversation
  const last = refusals.at(-1)
  if (!context || !last) return conversation
  const alerts = context.alerts.map((alert) => ({ ...alert, status: 'firing' }))
  return { ...conversation, context: { ...context, alerts }, steps: steps.slice(steps.indexOf(last) + 1) }
}

/** Returns the reaction to an error in the last results. Null to let a playbook decide. */
function trouble(conversation: Conversation): OperatorTurn | null {
  const { steps } = conversation
  const turn = steps.at(-1)?.turn
  const failed = steps.find((step) => step.turn === turn && step.result?.ok === false)
  const error = failed?.result?.error
  if (!failed || !error) return null
  const rule = ruleOf(failed.result) ?? error.code
  const before = steps.filter(({ tool, result }) => tool === failed.tool && ruleOf(result) === rule).length

  if (failed.tool === 'escalate_incident') {
    return before >= 2
      ? giveUp(String(failed.args.reason))
      : readIncident(conversation, 'I read the incident once more before I hand over.')
  }
  switch (rule) {
    case 'DENIED':
      // Leaves a denied plan to the host's playbook, which can make another plan.
      if (failed.tool === 'execute_migration') return null
      return escalate(conversation, `${describeCall(failed)} was denied: "${error.message}"`, denied)
    case 'PAUSED':
      return escalate(conversation, `Writes are paused: ${error.message}`, { category: 'needs_approval' })
    case 'STRICT_RESOLUTION':
      if (before >= 2) return escalate(conversation, `${failed.tool} stays refused: ${error.message}`)
      return { say: 'The target must be looked up first.', calls: [lookUp(failed)] }
    case 'FSM_BLOCKED':
      if (before >= 3) return escalate(conversation, `${failed.tool} stays blocked: ${error.message}`)
      return {
        say: 'An earlier write is not verified yet; I read its target.',
        calls: verifyingReads(conversation, failed),
      }
    case 'TARGET_BUSY':
      if (before >= maxBusyAnswers)
        return escalate(conversation, `${error.message}, three times; a person must take over.`)
      // Makes another read the second time, because two calls that alternate twice would count as a
      // loop.
      if (before > 1)
        return readIncident(conversation, 'Somebody else is still writing to this target; I read the incident.')
      return {
        say: 'Somebody else is writing to this target; I read it again first.',
        calls: verifyingReads(conversation, failed),
      }
  }
  const unexpected = steps.filter(({ result }) => result?.error && !expected.has(ruleOf(result) ?? '')).length
  if (unexpected >= maxUnexpected) {
    return escalate(conversation, `${failed.tool} failed: ${rule}, ${error.message}`)
  }
  return readIncident(conversation, `${failed.tool} failed (${rule}); I read the incident before I try again.`)
}

const denied: Handover = {
  category: 'needs_approval',
  nextStep:
    'Decide what to do instead, or have the incident investigated again when the reason for the denial no longer holds.',
}

/** Describes a call, for example as `converge_shard db-osl-1` or `proc_kill node-web-osl-1a`. */
function describeCall({ tool, args }: RunbookStep): string {
  const about = args.on ?? args.id ?? args.node ?? args.vm
  return typeof about === 'string' ? `${tool} ${about}` : tool
}

const expected = new Set(['DENIED', 'PAUSED', 'STRICT_RESOLUTION', 'FSM_BLOCKED', 'TARGET_BUSY'])

function lookUp({ tool, args }: RunbookStep): RunbookCall {
  const id = args.shard_id ?? args.id ?? args.node ?? args.vm ?? (args.host_ids as unknown[] | undefined)?.[0]
  const kind = tool.includes('shard') ? 'shard' : tool.includes('node') ? 'node' : args.host_ids ? 'host' : undefined
  return call('find_resource', { ...(kind && { kind }), text: String(id ?? args.proposal_id ?? '') })
}

/**
 * Reads the targets that the error of a blocked call names. If the error names none, reads the
 * incident's own resource.
 */
function verifyingReads(conversation: Conversation, failed: RunbookStep): RunbookCall[] {
  const details = object(failed.result?.error?.details)
  const named = [details.target, ...(Array.isArray(details.targets) ? details.targets : [])]
  const reads = named.flatMap((each) => {
    const [kind, id] = typeof each === 'string' ? each.split(':') : [object(each).kind, object(each).id]
    return typeof id === 'string' ? (readOf(String(kind), id) ?? []) : []
  })
  if (reads.length > 0) return reads
  const node = subject(conversation, 'node')
  const shard = subject(conversation, 'shard')
  const vm = done(conversation.steps, 'current_vm_host').at(-1)?.args.vm
  if (shard) return [call('get_shard', { id: shard })]
  if (node) return [call('get_node', { id: node })]
  if (typeof vm === 'string') return [call('current_vm_host', { vm })]
  return [call('get_incident', { id: conversation.context!.incident.id })]
}

function readOf(kind: string, id: string): RunbookCall | null {
  switch (kind) {
    case 'shard':
      return call('get_shard', { id })
    case 'node':
      return call('get_node', { id })
    case 'tenant':
      return call('get_tenant', { id })
    case 'vm':
      return call('current_vm_host', { vm: id })
    case 'host':
      return call('find_resource', { kind: 'host', text: id })
    default:
      return null
  }
}

function readIncident({ context }: Conversation, say: string): OperatorTurn {
  return { say, calls: [call('get_incident', { id: context!.incident.id })] }
}

function giveUp(reason: string): OperatorTurn {
  return {
    say: reason,
    answer: { summary: `The call that hands the incident over failed: ${reason}`, confidence: 'low' },
  }
}

function same({ tool, args }: RunbookCall, last: RunbookStep | undefined): boolean {
  return last !== undefined && last.tool === tool && JSON.stringify(last.args) === JSON.stringify(args)
}

const lastLines = '50'

/**
 * Repairs a service that has a log. First reads the end of the log on the node. The log is
 * untrusted and only explains, so its text decides nothing, and a missing device does not matter.
 * If the log reports that another process took the service's address, the address is checked.
 */
function repairService(conversation: Conversation): OperatorTurn {
  const { steps, context } = conversation
  const node = subject(conversation, 'node')
  const log = context!.alerts.map(({ annotations }) => annotations.log).find(Boolean)
  if (!node || !log) return repairShard(conversation)
  const tail = steps.find(({ tool }) => tool === 'exec')
  if (tail) {
    const address = takenAddress(text(object(tail.result?.data), 'stdout') ?? '')
    return address === null ? repairShard(conversation) : freePort(conversation, node, address)
  }
  if (done(steps, 'get_node', node).length === 0)
    return { say: `I look up ${node}.`, calls: [call('get_node', { id: node })] }
  const argv = ['tail', '-n', lastLines, log]
  return { say: `I read the last log lines of the service of ${node}.`, calls: [call('exec', { on: node, argv })] }
}
