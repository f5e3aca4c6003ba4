import { posix } from 'node:path'
import type { Conversation, RunbookStep } from '../conversation.ts'
import {
  call,
  done,
  escalate,
  type Facts,
  lastVerification,
  number,
  type OperatorTurn,
  object,
  quoted,
  quotedOf,
  type RunbookCall,
  resolve,
  rows,
  stepsAfter,
  subject,
  text,
  words,
} from '../facts.ts'
import { undoCommit } from './deploy.ts'

/**
 * Alerts whose cause the platform hides: a metric tells it. One walk: look at the node, ask the
 * metric, repair what it tells and ask again, or hand over what only a person may change.
 */

/** Which metric tells, and by what one sees that it is so. */
type Question = { promql: string; window: string; step?: string; finding(answer: Facts): string | null }

const limitBytes = 160_000_000
const daySeconds = 86_400

/** The last known value: a late scrape leaves a gap. Steps miss nothing that lasts a moment. */
const lastOf = (selector: string): string => `last_over_time(${selector}[15s])`
const lately = { window: '10m', step: '5s' }

const asked: Record<string, (instance: string) => Question> = {
  service_memory_high: (instance) => ({
    promql: lastOf(`process_resident_memory_bytes{instance="${instance}"}`),
    ...lately,
    finding: (answer) => over(answer, 'last', limitBytes, 'bytes of memory'),
  }),
  node_clock_skew_detected: (instance) => ({
    promql: lastOf(`node_timex_offset_seconds{instance="${instance}"}`),
    ...lately,
    finding: (answer) => over(answer, 'max', 0.05, 'seconds of clock skew'),
  }),
  ssl_certificate_will_expire_soon: (instance) => ({
    promql: `${lastOf(`web_certificate_not_after_seconds{instance="${instance}"}`)} - time()`,
    window: 'now',
    finding(answer) {
      const seconds = number(firstOf(answer), 'value')
      return seconds !== null && seconds < 3 * daySeconds ? `${seconds} seconds until the certificate ends` : null
    },
  }),
}

/** Excess over a node's declaration: a converge takes it back. */
export function repairDeclared(conversation: Conversation): OperatorTurn {
  const node = subject(conversation, 'node')
  const instance = instanceOf(conversation)
  const question = instance && asked[conversation.context?.incident.type ?? '']?.(instance)
  if (!node || !question)
    return escalate(conversation, 'The alert names no node that is known, so there is nothing to ask.')
  return walk(conversation, node, question)
}

function walk(conversation: Conversation, node: string, { promql, window, step, finding }: Question): OperatorTurn {
  const { steps } = conversation
  const looked = done(steps, 'get_node', node).at(-1)
  const query = call('query_metrics', { promql, window, ...(step && { step }) })
  if (!looked)
    return { say: `I look at ${node}, and at what the alert measures.`, calls: [call('get_node', { id: node }), query] }
  const first = readings(steps, promql)[0]
  if (!first) return { say: 'I ask what the alert measures.', calls: [query] }
  const found = finding(summaryOf(first))
  if (found === null)
    return escalate(
      conversation,
      `${node} is ${text(object(looked.result?.data), 'status')}, and its metric tells nothing.`,
    )
  return converge(conversation, node, { found, first, query })
}

type Found = { found: string; first: RunbookStep; query: RunbookCall }

/** Converges the shard of a node, and asks the metric again. */
function converge(conversation: Conversation, node: string, { found, first, query }: Found): OperatorTurn {
  const { steps } = conversation
  const looked = done(steps, 'get_node', node).at(-1)
  const shard = text(object(looked?.result.data), 'shard', 'shardId', 'shard_id')
  if (!shard) return escalate(conversation, `${node}: ${found}, and its shard is not known.`)
  if (done(steps, 'get_shard', shard).length === 0)
    return { say: `${node}: ${found}. I look up its shard.`, calls: [call('get_shard', { id: shard })] }
  const written = done(steps, 'converge_shard', shard).at(-1)
  if (!written) {
    return {
      say: `${node}: ${found}. A converge brings it back to what is declared.`,
      calls: [call('converge_shard', { id: shard, reason: `${node}: ${found}.` })],
    }
  }
  const since = stepsAfter(steps, 'converge_shard')
  const health = done(since, 'get_node', node).at(-1)
  const again = done(since, 'query_metrics').at(-1)
  if (!health || !again) {
    const now = call('query_metrics', { ...query.args, window: 'now' })
    return { say: 'I look whether it helped.', calls: [call('get_node', { id: node }), now] }
  }
  if (lastVerification([written, ...since]) === 'not_held')
    return escalate(conversation, `${node}: ${found}. A converge of ${shard} did not hold.`)
  return resolve(conversation, 'repaired', `${node}: ${found}. Converging ${shard} repaired it.`, [
    { kind: 'was', text: `${node}: ${found}`, quotes: quotesOf(first) },
    {
      kind: 'did',
      text: text(object(written.result.data), 'detail') ?? `converged ${shard}`,
      quotes: quoted(written, 'detail'),
    },
    { kind: 'is', text: `${node} is nominal after the write`, quotes: quoted(health, 'status', 'health') },
  ])
}

/** A server is nearly out of connections: who holds them, and where that runs, decides. */
export function freeConnections(conversation: Conversation): OperatorTurn {
  const instance = instanceOf(conversation)
  if (!instance) return escalate(conversation, 'The alert names no server.')
  const promql = `sum by (application_name, state) (${lastOf(`pg_stat_activity_count{instance="${instance}"}`)})`
  const query = call('query_metrics', { promql, window: 'now' })
  const first = readings(conversation.steps, promql)[0]
  if (!first) return { say: 'I ask who holds the connections.', calls: [query] }
  const max = firstOf(summaryOf(first))
  const holder = text(object(max.labels), 'application_name')
  const held = number(max, 'value')
  const found = `${holder} holds ${held} connections, ${text(object(max.labels), 'state')}`
  if (!holder || held === null || !/^[a-z0-9-]+$/.test(holder))
    return escalate(conversation, 'Nobody says who holds the connections.')
  if (done(conversation.steps, 'get_node', holder).length === 0)
    return { say: `${found}. I look whether ${holder} is a node.`, calls: [call('get_node', { id: holder })] }
  return converge(conversation, holder, { found, first, query })
}

/**
 * Errors: what answers them, since when, what else changed, and what its log says. An operator's
 * job removes a lock; else it is the deployment, whose undo needs approval.
 */
export function undoRelease(conversation: Conversation): OperatorTurn {
  const { steps } = conversation
  const node = subject(conversation, 'node')
  const instance = instanceOf(conversation)
  const checkout = labelOf(conversation, 'checkout')
  if (!node || !instance || !checkout) return escalate(conversation, 'The alert names no node with a checkout.')
  if (done(steps, 'get_node', node).length === 0)
    return { say: `I look up ${node}.`, calls: [call('get_node', { id: node })] }
  const errors = `sum by (path, code) (rate(http_requests_total{instance="${instance}"}[30s]))`
  const cpu = `rate(process_cpu_seconds_total{instance="${instance}"}[30s])`
  const logged = done(steps, 'search_logs').at(-1)
  const missing = [
    ...[errors, cpu].flatMap((promql) =>
      readings(steps, promql).length === 0 ? [call('query_metrics', { promql, window: '10m' })] : [],
    ),
    ...(logged ? [] : [askSearchLog(conversation, { node, instance, checkout })]),
  ]
  if (missing.length > 0)
    return {
      say: 'I ask which answers are errors, whether the service is busy, and what its log says.',
      calls: missing,
    }
  const failing = rows(summaryOf(readings(steps, errors)[0]).series).find(({ labels }) =>
    /^5/.test(text(object(labels), 'code') ?? ''),
  )
  if (!failing) return escalate(conversation, `${node} gives no errors any more.`)
  // A busy process may be innocent: a failing path among answering ones is no lack of CPU.
  const path = text(object(failing.labels), 'path')
  // What failed before, and was repaired, stands in the log as well: the newest line counts.
  const [newest] = rows(summaryOf(logged).templates)
    .filter((template) => /search failed:/.test(text(template, 'sample') ?? ''))
    .sort((left, right) => (text(right, 'last') ?? '').localeCompare(text(left, 'last') ?? ''))
  const locked = /the index is locked: [\w./]+ was left by [\w ]+/.exec(text(newest ?? {}, 'sample') ?? '')?.[0]
  if (locked && logged) return unlock(conversation, node, { locked, logged })
  return undoCommit(conversation, {
    node,
    file: posix.join(checkout, 'features.json'),
    why: `Requests to ${path} fail since the last commit`,
  })
}

/** In the source that collects logs, where there is one; else on the node that writes it. */
function askSearchLog(
  { hasLogSource }: Conversation,
  { node, instance, checkout }: { node: string; instance: string; checkout: string },
): RunbookCall {
  const path = posix.join(posix.dirname(checkout), 'logs/search.log')
  const where = hasLogSource ? { labels: { instance }, contains: ['search'] } : { on: node, path }
  return call('search_logs', { ...where, window: '15m' })
}

/** The log names a lock that nobody holds: an operator's job removes it, once a person agrees. */
function unlock(
  conversation: Conversation,
  node: string,
  { locked, logged }: { locked: string; logged: ReturnType<typeof done>[number] },
): OperatorTurn {
  const { steps, context } = conversation
  const job = context?.jobs.find(({ about }) => /\block\b/.test(about))
  const found = `Search on ${node} fails: ${locked}`
  if (!job) {
    const nextStep = `Remove the lock on ${node}, once nothing reindexes there.`
    return escalate(conversation, `${found}.`, { category: 'no_tool', nextStep })
  }
  const ran = done(steps, 'run_job').at(-1)
  if (!ran) {
    const args = { job: job.name, kind: 'node', id: node, reason: `${found}.` }
    return { say: `${found}. The operator declared ${job.name} for that.`, calls: [call('run_job', args)] }
  }
  const since = stepsAfter(steps, 'run_job')
  const health = done(since, 'get_node', node).at(-1)
  if (!health) return { say: 'I look at the node after it.', calls: [call('get_node', { id: node })] }
  if (lastVerification([ran, ...since]) === 'not_held')
    return escalate(conversation, `${found}. ${job.name} ran, and its check mode still finds something to change.`)
  return resolve(conversation, 'repaired', `${found}. ${job.name} removed the lock.`, [
    {
      kind: 'was',
      text: `search on ${node} failed, for ${locked.replace(' is ', ' was ')}`,
      quotes: words(logged, locked),
    },
    { kind: 'did', text: `${job.name} ran with approval`, quotes: quoted(ran, 'detail') },
    { kind: 'is', text: `${node} is nominal after it`, quotes: quoted(health, 'status', 'health') },
  ])
}

/** One tenant sends nearly everything: nothing is broken, and no tool may turn a tenant away. */
export function nameNeighbour(conversation: Conversation): OperatorTurn {
  const node = subject(conversation, 'node')
  const instance = instanceOf(conversation)
  if (!node || !instance) return escalate(conversation, 'The alert names no node that is known.')
  const promql = `sum by (tenant) (rate(http_requests_total{instance="${instance}"}[30s]))`
  const looked = done(conversation.steps, 'get_node', node).at(-1)
  const first = readings(conversation.steps, promql)[0]
  if (!looked || !first)
    return {
      say: `I ask whose requests ${node} gets.`,
      calls: [call('get_node', { id: node }), call('query_metrics', { promql, window: 'now' })],
    }
  const max = firstOf(summaryOf(first))
  const tenant = text(object(max.labels), 'tenant')
  return escalate(
    conversation,
    `${tenant} sends ${number(max, 'value')} requests a second to ${node}, more than any other tenant; ${node} is ${text(object(looked.result.data), 'status')}.`,
    {
      category: 'no_tool',
      nextStep: `Ask ${tenant} what it sends, or limit its requests.`,
    },
  )
}

/** No metrics come, and the service answers: what is broken is the view of it. */
export function escalateWithoutMetrics(conversation: Conversation): OperatorTurn {
  const node = subject(conversation, 'node')
  const instance = instanceOf(conversation)
  if (!node || !instance) return escalate(conversation, 'The alert names no node that is known.')
  const promql = `up{instance="${instance}"}`
  const looked = done(conversation.steps, 'get_node', node).at(-1)
  const first = readings(conversation.steps, promql)[0]
  if (!looked || !first)
    return {
      say: `I look whether ${node} is down, or only its metrics.`,
      calls: [call('get_node', { id: node }), call('query_metrics', { promql, window: '10m' })],
    }
  const status = text(object(looked.result.data), 'status')
  return escalate(conversation, `${node} is ${status} and gives no metrics: alerts that need them stay silent.`, {
    category: 'no_tool',
    nextStep: `Restart what answers /metrics on ${node} when that is convenient; its service answers.`,
  })
}

/** Answers to a query, oldest first. */
function readings(steps: RunbookStep[], promql: string) {
  return done(steps, 'query_metrics').filter(({ args }) => args.promql === promql)
}

const summaryOf = (step: RunbookStep | undefined): Facts => object(object(step?.result?.data).summary)

/** The series or value that comes first: the largest, or the one that moved most. */
const firstOf = (summary: Facts): Facts => rows(summary.series ?? summary.values)[0] ?? {}

const quotesOf = (step: RunbookStep) => quotedOf(step, firstOf(summaryOf(step)), 'last', 'max', 'value')

function over(answer: Facts, field: string, limit: number, what: string): string | null {
  const value = number(firstOf(answer), field)
  return value !== null && Math.abs(value) > limit ? `${value} ${what}` : null
}

function labelOf({ context }: Conversation, name: string): string | null {
  return context?.alerts.map(({ labels }) => labels[name]).find((each) => each !== undefined) ?? null
}

const instanceOf = (conversation: Conversation): string | null => labelOf(conversation, 'instance')
