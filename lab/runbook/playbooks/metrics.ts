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
 * Handles alerts whose cause only a metric shows: reads the node, queries the metric, repairs the
 * cause and queries again, or escalates faults that need a person.
 */

/**
 * The query, and a function that returns the sign of the fault in its result; null if there is no
 * sign.
 */
type Question = { promql: string; window: string; step?: string; finding(answer: Facts): string | null }

const limitBytes = 160_000_000
const daySeconds = 86_400

/**
 * Selects the last known value of each series, because a late scrape leaves a gap. The steps are
 * small, so that no short change is missed.
 */
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

/** Repairs a node that exceeds its declared limits with a converge. */
export function repairDeclared(conversation: Conversation): OperatorTurn {
  const node = subject(conversation, 'node')
  const instance = instanceOf(conversation)
  const question = instance && asked[conversation.context?.incident.type ?? '']?.(instance)
  if (!node || !question) return escalate(conversation, 'The alert names no known node, so I have nothing to check.')
  return walk(conversation, node, question)
}

function walk(conversation: Conversation, node: string, { promql, window, step, finding }: Question): OperatorTurn {
  const { steps } = conversation
  const looked = done(steps, 'get_node', node).at(-1)
  const query = call('query_metrics', { promql, window, ...(step && { step }) })
  if (!looked)
    return { say: `I read ${node} and the metric of the alert.`, calls: [call('get_node', { id: node }), query] }
  const first = readings(steps, promql)[0]
  if (!first) return { say: 'I read the metric of the alert.', calls: [query] }
  const found = finding(summaryOf(first))
  if (found === null)
    return escalate(
      conversation,
      `${node} is ${text(object(looked.result?.data), 'status')}, and its metric has no usable value.`,
    )
  return converge(conversation, node, { found, first, query })
}

type Found = { found: string; first: RunbookStep; query: RunbookCall }

/** Converges the shard of a node, and then queries the metric again. */
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
      say: `${node}: ${found}. A converge restores the declared state.`,
      calls: [call('converge_shard', { id: shard, reason: `${node}: ${found}.` })],
    }
  }
  const since = stepsAfter(steps, 'converge_shard')
  const health = done(since, 'get_node', node).at(-1)
  const again = done(since, 'query_metrics').at(-1)
  if (!health || !again) {
    const now = call('query_metrics', { ...query.args, window: 'now' })
    return { say: 'I check whether the write helped.', calls: [call('get_node', { id: node }), now] }
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

/**
 * Handles a server that is nearly out of connections. The next step depends on the program that
 * holds them, and on where it runs.
 */
export function freeConnections(conversation: Conversation): OperatorTurn {
  const instance = instanceOf(conversation)
  if (!instance) return escalate(conversation, 'The alert names no server.')
  const promql = `sum by (application_name, state) (${lastOf(`pg_stat_activity_count{instance="${instance}"}`)})`
  const query = call('query_metrics', { promql, window: 'now' })
  const first = readings(conversation.steps, promql)[0]
  if (!first) return { say: 'I check which program holds the connections.', calls: [query] }
  const max = firstOf(summaryOf(first))
  const holder = text(object(max.labels), 'application_name')
  const held = number(max, 'value')
  const found = `${holder} holds ${held} connections, ${text(object(max.labels), 'state')}`
  if (!holder || held === null || !/^[a-z0-9-]+$/.test(holder))
    return escalate(conversation, 'No metric shows which program holds the connections.')
  if (done(conversation.steps, 'get_node', holder).length === 0)
    return { say: `${found}. I check whether ${holder} is a node.`, calls: [call('get_node', { id: holder })] }
  return converge(conversation, holder, { found, first, query })
}

/**
 * Handles errors of a service: reads the failing path, the time when the errors began, other
 * changes, and the log. If a lock was left behind, an operator's job removes it. Otherwise the
 * deployment is the cause, and its undo needs an approval.
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
      say: 'I check which answers are errors, whether the service is busy, and what its log says.',
      calls: missing,
    }
  const failing = rows(summaryOf(readings(steps, errors)[0]).series).find(({ labels }) =>
    /^5/.test(text(object(labels), 'code') ?? ''),
  )
  if (!failing) return escalate(conversation, `${node} answers without errors now.`)
  // Takes the failing path. If one path fails and others work, a busy process is not the cause.
  const path = text(object(failing.labels), 'path')
  // Takes the newest line, because the log may also contain older errors that were repaired.
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

/**
 * Searches the source that collects logs. Without such a source, searches the log on the node that
 * writes it.
 */
function askSearchLog(
  { hasLogSource }: Conversation,
  { node, instance, checkout }: { node: string; instance: string; checkout: string },
): RunbookCall {
  const path = posix.join(posix.dirname(checkout), 'logs/search.log')
  const where = hasLogSource ? { labels: { instance }, contains: ['search'] } : { on: node, path }
  return call('search_logs', { ...where, window: '15m' })
}

/** Proposes a job that removes the lock that the log names. A person has to approve the job. */
function unlock(
  conversation: Conversation,
  node: string,
  { locked, logged }: { locked: string; logged: ReturnType<typeof done>[number] },
): OperatorTurn {
  const { steps, context } = conversation
  const job = context?.jobs.find(({ about }) => /\block\b/.test(about))
  const found = `Search on ${node} fails: ${locked}`
  if (!job) {
    const nextStep = `Remove the lock on ${node} when no reindex runs on that node.`
    return escalate(conversation, `${found}.`, { category: 'no_tool', nextStep })
  }
  const ran = done(steps, 'run_job').at(-1)
  if (!ran) {
    const args = { job: job.name, kind: 'node', id: node, reason: `${found}.` }
    return {
      say: `${found}. The operator declared the job ${job.name} for this fault.`,
      calls: [call('run_job', args)],
    }
  }
  const since = stepsAfter(steps, 'run_job')
  const health = done(since, 'get_node', node).at(-1)
  if (!health) return { say: 'I read the node after the job.', calls: [call('get_node', { id: node })] }
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

/**
 * Reports that one tenant sends nearly all requests. Escalates, because no tool may block a tenant.
 */
export function nameNeighbour(conversation: Conversation): OperatorTurn {
  const node = subject(conversation, 'node')
  const instance = instanceOf(conversation)
  if (!node || !instance) return escalate(conversation, 'The alert names no known node.')
  const promql = `sum by (tenant) (rate(http_requests_total{instance="${instance}"}[30s]))`
  const looked = done(conversation.steps, 'get_node', node).at(-1)
  const first = readings(conversation.steps, promql)[0]
  if (!looked || !first)
    return {
      say: `I check which tenants send requests to ${node}.`,
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

/** Reports that metrics are missing although the service works: only monitoring is broken. */
export function escalateWithoutMetrics(conversation: Conversation): OperatorTurn {
  const node = subject(conversation, 'node')
  const instance = instanceOf(conversation)
  if (!node || !instance) return escalate(conversation, 'The alert names no known node.')
  const promql = `up{instance="${instance}"}`
  const looked = done(conversation.steps, 'get_node', node).at(-1)
  const first = readings(conversation.steps, promql)[0]
  if (!looked || !first)
    return {
      say: `I check whether ${node} is down, or only its metrics are missing.`,
      calls: [call('get_node', { id: node }), call('query_metrics', { promql, window: '10m' })],
    }
  const status = text(object(looked.result.data), 'status')
  return escalate(conversation, `${node} is ${status} and gives no metrics: alerts on these metrics cannot fire.`, {
    category: 'no_tool',
    nextStep: `Restart the process that serves /metrics on ${node} when convenient; the service itself answers.`,
  })
}

/** Lists the results of a query, oldest first. */
function readings(steps: RunbookStep[], promql: string) {
  return done(steps, 'query_metrics').filter(({ args }) => args.promql === promql)
}

const summaryOf = (step: RunbookStep | undefined): Facts => object(object(step?.result?.data).summary)

/** Returns the first entry of a summary: the largest value, or the series that changed most. */
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
