import { z } from 'zod'
import { placeOfFault } from '../../domain/schema-faults.ts'
import type { AddressPolicy } from '../address.ts'
import { HttpError, request } from '../http.ts'
import { PlatformError } from '../platform.ts'

export type ProxmoxApiOptions = {
  /**
   * Addresses of a cluster's nodes, such as https://pve1:8006. If one node does not respond, the
   * next node is tried.
   */
  urls: string[]
  /** The token in the form USER@REALM!TOKENID=UUID. */
  token: string
  /** PEM of the trusted authorities, which replace the system's authorities. */
  ca?: string
  allow?: AddressPolicy
  /** Milliseconds for one request. */
  timeoutMs?: number
}

/** The segments of an API path. Each segment is encoded when it is sent. */
export type ApiPath = (string | number)[]
export type Form = Record<string, string | number>

/**
 * Proxmox VE's REST API. Throws PlatformError for a refusal, with Proxmox's message, and HttpError
 * for no response or one of an undocumented shape. Errors never contain the token.
 */
export type ProxmoxApi = {
  /** The id of the token: USER@REALM!TOKENID. It is the user of tasks that the token started. */
  owner: string
  get<T>(path: ApiPath, schema: z.ZodType<T>, more?: { query?: Form; signal?: AbortSignal }): Promise<T>
  /** Sends once, to one node. If no response comes, the caller has to check the outcome. */
  post<T>(path: ApiPath, form: Form, schema: z.ZodType<T>): Promise<T>
}

const refusal = z.object({
  message: z.string().nullish(),
  errors: z.record(z.string(), z.unknown()).nullish(),
})

export function createProxmoxApi(options: ProxmoxApiOptions): ProxmoxApi {
  const [owner = '', secret = ''] = options.token.split('=')
  const servers: Servers = { options, secret, preferred: 0 }
  return {
    owner,
    async get(path, schema, { query = {}, signal } = {}) {
      const what = `GET /${path.join('/')}`
      for (let attempt = 1; ; attempt += 1) {
        try {
          return readAnswer(servers, what, schema, await exchange(servers, 'GET', { path, form: query, signal }))
        } catch (error) {
          const isLast = attempt === options.urls.length || signal?.aborted
          if (isLast || !(error instanceof HttpError) || error.code !== 'connect') throw error
        }
      }
    },
    async post(path, form, schema) {
      return readAnswer(servers, `POST /${path.join('/')}`, schema, await exchange(servers, 'POST', { path, form }))
    },
  }
}

/** `preferred` is the index of the server that responded last. */
type Servers = { options: ProxmoxApiOptions; secret: string; preferred: number }

async function exchange(
  servers: Servers,
  method: 'GET' | 'POST',
  { path, form, signal }: { path: ApiPath; form: Form; signal?: AbortSignal },
) {
  const { options, preferred: tried } = servers
  const base = (options.urls[tried] ?? '').replace(/\/+$/, '')
  const encoded = new URLSearchParams(
    Object.entries(form).map(([name, value]): [string, string] => [name, String(value)]),
  ).toString()
  const query = method === 'GET' && encoded !== '' ? `?${encoded}` : ''
  try {
    return await request({
      method,
      url: `${base}/api2/json/${path.map(part).join('/')}${query}`,
      headers: {
        authorization: `PVEAPIToken=${options.token}`,
        accept: 'application/json',
        ...(method === 'POST' && { 'content-type': 'application/x-www-form-urlencoded' }),
      },
      body: method === 'POST' ? encoded : undefined,
      timeoutMs: options.timeoutMs ?? 30_000,
      maxBytes: 32_000_000,
      allow: options.allow ?? 'private',
      ca: options.ca,
      signal,
    })
  } catch (error) {
    if (servers.preferred === tried) servers.preferred = (tried + 1) % options.urls.length
    throw error
  }
}

function readAnswer<T>(
  { secret }: Servers,
  what: string,
  schema: z.ZodType<T>,
  answer: { status: number; statusText: string; body: Uint8Array },
): T {
  const text = Buffer.from(answer.body).toString('utf8')
  const body = jsonOf(text)
  if (answer.status < 200 || answer.status > 299) {
    const reason = reasonOf(body, answer.statusText)
    throw new PlatformError(what, answer.status, secret === '' ? reason : reason.replaceAll(secret, '[redacted]'))
  }
  const parsed = z.object({ data: schema }).safeParse(body)
  if (parsed.success) return parsed.data.data as T
  const place = placeOfFault(parsed.error)
  throw new HttpError('protocol', `the response of Proxmox VE to ${what} is not as documented, at ${place}`, true)
}

/**
 * Refuses a slash: Proxmox VE decodes a path before it splits the path, so the slash would make two
 * segments.
 */
function part(value: string | number): string {
  const text = String(value)
  if (text === '' || text === '.' || text === '..' || text.includes('/'))
    throw new HttpError('protocol', 'a name is not a plain name', false)
  return encodeURIComponent(text.toWellFormed())
}

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** Reads the reason. Newer releases write it into the body, older releases into the status line. */
function reasonOf(body: unknown, statusText: string): string {
  const told = refusal.safeParse(body)
  const errors = Object.entries((told.success && told.data.errors) || {}).map(([name, text]) => `${name}: ${text}`)
  const message = (told.success && told.data.message) || statusText
  return [message.trim(), ...errors]
    .filter((text) => text !== '')
    .join('; ')
    .replace(/\s+/g, ' ')
    .slice(0, 300)
    .toWellFormed()
}

/** Matches a task's id, UPID:node:pid:pstart:starttime:type:id:user: with hexadecimal numbers. */
const form =
  /^UPID:([a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?):[0-9A-Fa-f]{8}:[0-9A-Fa-f]{8,9}:([0-9A-Fa-f]{8}):([^:\s/]+):([^:\s/]*):([^:\s/]+):$/

export const upid = z.string().max(400).regex(form, 'is not the id of a task')

export type Task = {
  upid: string
  node: string
  startedAt: number
  type: string
  user: string
  /** The status with which the task ended. Null for a running task. */
  end: string | null
}

const listed = z.object({ upid, endtime: z.coerce.number().optional(), status: z.string().optional() })
const state = z.object({ status: z.enum(['running', 'stopped']), exitstatus: z.string().optional() })
const line = z.object({ t: z.string() })

/** Lists the newest tasks of a guest on a node, including running ones, without consoles. */
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

/** Whether the status of an ended task is `OK`, also with warnings. */
export function isWell(end: string): boolean {
  return /^(OK|WARNINGS: \d+)$/.test(end)
}

/**
 * Reads a task's state: `running`, its end, `gone` (unknown to its node), or `silent` (its node
 * does not respond).
 */
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

/**
 * Whether an error means that no response came. 595: no connection to the node; 596: the connection
 * broke; a proxy has its own statuses for both.
 */
export function isSilence(error: unknown): boolean {
  if (error instanceof PlatformError) return error.status > 501
  return error instanceof HttpError && error.retryable
}

/**
 * Reads the end of a task's log as one line. Empty if the log cannot be read. The text is
 * untrusted.
 */
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
