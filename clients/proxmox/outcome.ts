import type { EffectAnswer, PlatformEffect, PlatformEffectEnding, PlatformEffectRow } from '../../domain/platform.ts'
import { PlatformError } from '../platform.ts'
import { askTask, isSilence, isWell, lastWords, type ProxmoxApi, type Task, tasksOf, typeOf } from './api.ts'
import { type Cluster, type Guest, readCluster } from './cluster.ts'
import { numberOf } from './facts.ts'
import { errorRemedy, isAsWanted } from './operation.ts'

/** Stored write calls that were sent, by their key. The rows outlive the process. */
export type PlatformJournal = {
  get(key: string): Promise<PlatformEffectRow | null>
  /** Returns true for exactly one caller. Only this caller may send the write call. */
  begin(effect: PlatformEffect): Promise<boolean>
  noteTask(key: string, task: string): Promise<void>
  /** Records the ending. If an ending was recorded before, it stays. */
  end(key: string, ending: PlatformEffectEnding): Promise<void>
}

type TaskOutcome = { status: 'running' | 'done' | 'failed'; detail: string }

/** Seconds after which a request that left no task counts as lost: twice its timeout. */
export const lostAfterSeconds = 60
/**
 * Seconds after which an order without an effect counts as dropped. The HA manager reads orders
 * every ten seconds.
 */
const orderedWithinSeconds = 180
/** Seconds to wait until the HA manager starts a guest. Fencing takes one to two minutes. */
const broughtWithinSeconds = 600

/**
 * Reads a write call's outcome from its task, or without a task from the guest's present node.
 * Throws PlatformError 503 while the outcome is unknown; never returns `running` or `failed` then.
 */
export async function readOutcome(
  api: ProxmoxApi,
  journal: PlatformJournal,
  row: PlatformEffectRow,
): Promise<EffectAnswer> {
  const outcome = row.ending ?? (await find(api, journal, row))
  if (outcome.status !== 'running' && !row.ending)
    await journal.end(row.key, { status: outcome.status, detail: outcome.detail })
  const { key, vmId, node, target } = row
  // Reports a new start only for a restart that is done: a run began after the order.
  const newStart = row.action === 'restart' && outcome.status === 'done'
  const result = {
    vm: vmId,
    from: node,
    to: target,
    ...(row.task && { task: row.task }),
    ...(newStart && { newStart }),
  }
  // Reports a change: the write call was sent because the guest was not yet in this state, or it
  // waited for the HA manager.
  const changed = outcome.status === 'done' ? [`${vmId} ${reachedWords[row.action]} ${target}`] : null
  return { key, ...outcome, result, changed }
}

async function find(api: ProxmoxApi, journal: PlatformJournal, row: PlatformEffectRow): Promise<TaskOutcome> {
  if (row.action === 'await') return await awaited(api, row)
  row.task ??= await taskFromList(api, journal, row)
  if (row.task === null) return await withoutTask(api, row)
  const state = await askTask(api, row.node, row.task)
  if (state === 'running') return { status: 'running', detail: `task ${row.task} is running` }
  if (state === 'silent' || state === 'gone') {
    if (await isThere(api, row)) return reached(row, ', and its task can no longer be queried')
    if (state === 'silent') throw unknownOutcome(`${row.node}, where its task runs, does not answer`)
    return { status: 'failed', detail: `the task is gone from ${row.node}, and ${notReached(row)}` }
  }
  const { end } = state
  if (isWell(end) && isPower(row)) return await afterPower(api, row)
  if (isWell(end) && /^ha/.test(typeOf(row.task))) return await byHaManager(api, row)
  if (isWell(end)) return reached(row, end === 'OK' ? '' : ` (its task ended with ${end})`)
  if (await isThere(api, row)) return reached(row, `, although its task ended with: ${end.slice(0, 200)}`)
  return await failedTask(api, row.node, row.task, end)
}

async function failedTask(api: ProxmoxApi, node: string, task: string, end: string): Promise<TaskOutcome> {
  const words = await lastWords(api, node, task)
  return { status: 'failed', detail: `Proxmox VE: ${end.slice(0, 200)}${words && ` | ${words}`}` }
}

const taskTypes: Record<PlatformEffect['action'], RegExp> = {
  migrate: /^(qmigrate|vzmigrate|hamigrate)$/,
  start: /^(qmstart|vzstart|hastart)$/,
  await: /^$/,
  stop: /^(qmshutdown|vzshutdown|hastop)$/,
  restart: /^(qmreboot|vzreboot)$/,
}

/**
 * Finds the task of a row without a task, as after a killed process or a lost response. The row's
 * task is a new task that this token started.
 */
export async function taskFromList(
  api: ProxmoxApi,
  journal: PlatformJournal,
  row: PlatformEffectRow,
): Promise<string | null> {
  let tasks: Task[]
  try {
    tasks = await tasksOf(api, row.node, numberOf(row.vmId) ?? 0)
  } catch (error) {
    if (!isSilence(error)) throw error
    if (await isThere(api, row)) return null
    throw unknownOutcome(`${row.node} does not answer`)
  }
  const types = taskTypes[row.action]
  const own = tasks
    .filter((task) => task.user === api.owner && types.test(task.type) && !row.tasksBefore.includes(task.upid))
    .sort((a, b) => a.startedAt - b.startedAt)
  const [first] = own
  if (!first) return null
  await journal.noteTask(row.key, first.upid)
  return first.upid
}

async function withoutTask(api: ProxmoxApi, row: PlatformEffectRow): Promise<TaskOutcome> {
  if (await isThere(api, row)) return reached(row, '')
  if (row.ageSeconds < lostAfterSeconds) throw unknownOutcome('the request was sent, but it has no task yet')
  return {
    status: 'failed',
    detail: `the task never began: ${row.node} has no task of it, and ${notReached(row)}`,
  }
}

/** Reads the outcome of an order to the HA manager, which does the work in a later task. */
async function byHaManager(api: ProxmoxApi, row: PlatformEffectRow): Promise<TaskOutcome> {
  const { guest } = await guestOf(api, row)
  const { ha } = guest
  const isOver = row.ageSeconds > (row.action === 'migrate' ? orderedWithinSeconds : broughtWithinSeconds)
  if (guest.node === row.target && isUp(guest)) return reached(row, ', by the HA manager')
  if (ha === null)
    return { status: 'failed', detail: `${row.vmId} is no longer HA-managed, and not in the wanted state` }
  if (ha.state === 'error') return { status: 'failed', detail: errorRemedy(guest) }
  if (guest.node !== row.node && guest.node !== row.target) {
    return { status: 'failed', detail: `the HA manager brought ${row.vmId} to ${guest.node}, not to ${row.target}` }
  }
  const waiting: TaskOutcome = { status: 'running', detail: `with the HA manager (${ha.state ?? 'queued'})` }
  if (row.action === 'start') {
    return isOver
      ? { status: 'failed', detail: `the HA manager has not started the guest in time (${ha.state})` }
      : waiting
  }
  if (guest.node === row.target || ha.destination !== null) return waiting
  const tasks = await tasksOf(api, row.node, guest.vmid)
  const work = tasks.find((task) => /^(q|vz)migrate$/.test(task.type) && !row.tasksBefore.includes(task.upid))
  if (work && work.end !== null && !isWell(work.end)) return await failedTask(api, work.node, work.upid, work.end)
  if (work?.end === null || !isOver) return waiting
  const what = work ? 'moved it, then brought it back' : 'did not accept the request'
  return { status: 'failed', detail: `the HA manager ${what}: ${row.vmId} is on ${row.node}` }
}

type PowerRow = PlatformEffectRow & { action: 'stop' | 'restart' }

function isPower(row: PlatformEffectRow): row is PowerRow {
  return row.action === 'stop' || row.action === 'restart'
}

/**
 * Reads the outcome after a task that ended well. A guest that reboots starts later, and a stop of
 * an HA guest was only ordered.
 */
async function afterPower(api: ProxmoxApi, row: PowerRow): Promise<TaskOutcome> {
  const isOrder = /^ha/.test(typeOf(row.task ?? ''))
  if (await isThere(api, row)) return reached(row, isOrder ? ', by the HA manager' : '')
  const { guest } = await guestOf(api, row)
  if (guest.ha?.state === 'error') return { status: 'failed', detail: errorRemedy(guest) }
  if (row.ageSeconds > orderedWithinSeconds) {
    return { status: 'failed', detail: `the task succeeded, and after ${orderedWithinSeconds} s ${notReached(row)}` }
  }
  return {
    status: 'running',
    detail: isOrder ? 'with the HA manager' : `the task has ended, and ${notReached(row)} yet`,
  }
}

/**
 * Reads the outcome of a write call that sent nothing. The HA manager fences a dead node and starts
 * its guests on nodes that it chooses, or moves a guest together with its companion.
 */
async function awaited(api: ProxmoxApi, row: PlatformEffectRow): Promise<TaskOutcome> {
  const { guest } = await guestOf(api, row)
  if (isUp(guest) && guest.node === row.target) return reached(row, ', by the HA manager')
  if (isUp(guest) && guest.node !== row.node) {
    return {
      status: 'failed',
      detail: `the HA manager brought ${row.vmId} to ${guest.node}, not to ${row.target}: it runs there`,
    }
  }
  if (guest.ha === null) return { status: 'failed', detail: `${row.vmId} is no longer HA-managed` }
  if (guest.ha.state === 'error') return { status: 'failed', detail: errorRemedy(guest) }
  const state = guest.ha.state ?? 'queued'
  if (row.ageSeconds > broughtWithinSeconds) {
    return { status: 'failed', detail: `the HA manager has not brought the guest there in 10 minutes (${state})` }
  }
  return { status: 'running', detail: `the HA manager is working on the guest (${state})` }
}

async function guestOf(api: ProxmoxApi, row: PlatformEffectRow): Promise<{ cluster: Cluster; guest: Guest }> {
  const cluster = await readCluster(api)
  if (!cluster.isQuorate) throw unknownOutcome('the cluster has no quorum')
  const guest = cluster.guests.get(numberOf(row.vmId) ?? 0)
  if (!guest) throw unknownOutcome(`${row.vmId} is not a guest that the token may see`)
  // Ignores a dead node's statistics, which show its guests as running for a while.
  const isOnline = cluster.nodes.get(guest.node)?.isOnline === true
  return { cluster, guest: isOnline ? guest : { ...guest, status: 'unknown' } }
}

async function isThere(api: ProxmoxApi, row: PlatformEffectRow): Promise<boolean> {
  const { guest } = await guestOf(api, row)
  if (guest.node !== row.target) return false
  return isPower(row) ? await isAsWanted(api, row.action, guest, row.ageSeconds) : isUp(guest)
}

/**
 * Whether a guest runs. Prefers the HA manager's state of a guest, because the statistics may still
 * be those of the guest's old node.
 */
function isUp({ status, ha }: Guest): boolean {
  return ha === null ? status === 'running' : ha.state === 'started' && ha.isRunning
}

const reachedWords: Record<PlatformEffect['action'], string> = {
  start: 'was started on',
  migrate: 'runs on',
  await: 'runs on',
  stop: 'was stopped on',
  restart: 'was restarted on',
}

function reached({ vmId, action, target }: PlatformEffectRow, how: string): TaskOutcome {
  return { status: 'done', detail: `${vmId} ${reachedWords[action]} ${target}${how}` }
}

function notReached({ vmId, action, target }: PlatformEffectRow): string {
  if (action === 'stop') return `${vmId} is not stopped`
  return action === 'restart' ? `${vmId} has no new start` : `${vmId} is not on ${target}`
}

function unknownOutcome(why: string): PlatformError {
  return new PlatformError('the query for the result of a write', 503, `the result is unknown: ${why}`)
}
