import { z } from 'zod'
import { HttpError } from '../http.ts'
import { PlatformError } from '../platform.ts'
import type { ProxmoxApi } from './api.ts'

/** UPID:node:pid:pstart:starttime:type:id:user: with numbers in hexadecimal. */
const form =
  /^UPID:([a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?):[0-9A-Fa-f]{8}:[0-9A-Fa-f]{8,9}:([0-9A-Fa-f]{8}):([^:\s/]+):([^:\s/]*):([^:\s/]+):$/

export const upid = z.string().max(400).regex(form, 'is not the id of a task')

export type Task = {
  upid: string
  node: string
  startedAt: number
  type: string
  user: string
  /** Null while it runs. */
  end: string | null
}

const listed = z.object({ upid, endtime: z.coerce.number().optional(), status: z.string().optional() })
const state = z.object({ status: z.enum(['running', 'stopped']), exitstatus: z.string().optional() })
const line = z.object({ t: z.string() })

/** The newest tasks of a guest on a node, those that run among them. Consoles are left out: to look on is not to do. */
export async function tasksOf(api: ProxmoxApi, node: string, vmid: number): Promise<Task[]> {
  const query = { vmid, source: 'all', limit: 50 }
  const found = await api.get(['nodes', node, 'tasks'], z.array(listed), { query })
  return found.map(taskOf).filter((task) => !/proxy$|shell$/.test(task.type))
}

function taskOf({ upid, endtime, status }: z.infer<typeof listed>): Task {
  const [, node = '', startedAt = '0', type = '', , user = ''] = form.exec(upid) ?? []
  const end = endtime === undefined ? null : (status ?? 'unknown')
  return { upid, node, startedAt: Number.parseInt(startedAt, 16), type, user, end }
}

export function typeOf(task: string): string {
  return form.exec(task)?.[3] ?? ''
}

/** `OK`, or OK with warnings. */
export function isWell(end: string): boolean {
  return /^(OK|WARNINGS: \d+)$/.test(end)
}

/** How a task stands: `running`, how it ended, `gone` (its node knows none such), or `silent` (its node does not answer). */
export async function askTask(
  api: ProxmoxApi,
  node: string,
  task: string,
): Promise<'running' | 'gone' | 'silent' | { end: string }> {
  try {
    const { status, exitstatus } = await api.get(['nodes', node, 'tasks', task, 'status'], state)
    return status === 'running' ? 'running' : { end: exitstatus ?? 'unknown' }
  } catch (error) {
    if (isSilence(error)) return 'silent'
    if (error instanceof PlatformError && /no such task/i.test(error.detail)) return 'gone'
    throw error
  }
}

/** 595: no connection to the node that was asked for; 596: it broke off; what a proxy in between says for the same. */
export function isSilence(error: unknown): boolean {
  if (error instanceof PlatformError) return error.status > 501
  return error instanceof HttpError && error.retryable
}

/** The end of a task's log in one line, or nothing when it cannot be read. Its text comes from outside. */
export async function lastWords(api: ProxmoxApi, node: string, task: string): Promise<string> {
  try {
    const lines = await api.get(['nodes', node, 'tasks', task, 'log'], z.array(line), { query: { limit: 20_000 } })
    return lines
      .map(({ t }) => t.trim())
      .filter((text) => text !== '')
      .slice(-6)
      .map((text) => text.slice(0, 200))
      .join(' | ')
      .toWellFormed()
  } catch (error) {
    if (error instanceof PlatformError || error instanceof HttpError) return ''
    throw error
  }
}
