import { z } from 'zod'
import {
  type ConvergeDryRun,
  type EffectAnswer,
  effectAnswer,
  type Inventory,
  inventory,
  toldConvergeDryRun,
  type VmAction,
} from '../domain/platform.ts'
import { placeOfFault } from '../domain/schema-faults.ts'
import type { AddressPolicy } from './address.ts'
import { HttpError, request } from './http.ts'

type PlatformOptions = { baseUrl: string; token: string; timeoutMs?: number; allow?: AddressPolicy }

/**
 * A refusal of the platform: an unknown object, a key that was used with another body, or an error
 * in the platform.
 */
export class PlatformError extends Error {
  override name = 'PlatformError' as const
  readonly status: number
  readonly detail: string
  readonly retryable: boolean
  constructor(what: string, status: number, detail: string) {
    super(`the platform answered ${status} to ${what}${detail ? `: ${detail}` : ''}`)
    this.status = status
    this.detail = detail
    this.retryable = status >= 500 || status === 408 || status === 409 || status === 429
  }
}

export type PlatformClient = {
  /** A sentence for readers of a plan: what the platform's sizes of VMs leave out. */
  sizeNote?: string
  inventory(signal?: AbortSignal): Promise<Inventory>
  converge(shardId: string, key: string): Promise<EffectAnswer>
  /** Lists what a convergence would change. Null if the platform does not support this. */
  wouldConverge(shardId: string, signal?: AbortSignal): Promise<ConvergeDryRun | null>
  startVm(vmId: string, host: string, key: string): Promise<EffectAnswer>
  /** Stops or restarts a VM. `failed` if the platform does not support this. */
  powerVm(vmId: string, action: Exclude<VmAction, 'start'>, host: string, key: string): Promise<EffectAnswer>
  migrateVm(vmId: string, move: { from: string; to: string }, key: string): Promise<EffectAnswer>
  /** Returns the outcome of a write call. Null if the platform never accepted its key. */
  effect(key: string): Promise<EffectAnswer | null>
}

/** HTTP statuses with which a platform responds to a request that it does not support. */
const cannot = [404, 405, 501]

/**
 * Implements the protocol of `domain/platform.ts` over HTTP. Throws HttpError if no response came,
 * and PlatformError for a refusal.
 */
export function createPlatformClient(options: PlatformOptions): PlatformClient {
  const base = options.baseUrl.replace(/\/+$/, '')

  async function exchange(method: 'GET' | 'POST', path: string, key?: string, body?: unknown, signal?: AbortSignal) {
    const answer = await request({
      method,
      url: `${base}${path}`,
      headers: {
        authorization: `Bearer ${options.token}`,
        accept: 'application/json',
        ...(key === undefined ? {} : { 'content-type': 'application/json', 'idempotency-key': key }),
      },
      body: body === undefined ? undefined : JSON.stringify(body),
      timeoutMs: options.timeoutMs ?? 30_000,
      maxBytes: 32_000_000,
      allow: options.allow ?? 'private',
      signal,
    })
    return { status: answer.status, text: Buffer.from(answer.body).toString('utf8') }
  }

  function read<T>(schema: z.ZodType<T>, what: string, { status, text }: { status: number; text: string }): T {
    if (status < 200 || status > 299) throw new PlatformError(what, status, detailOf(text))
    const parsed = schema.safeParse(jsonOf(text))
    if (parsed.success) return parsed.data
    const place = placeOfFault(parsed.error)
    throw new HttpError('protocol', `the platform's response to ${what} does not fit the protocol, at ${place}`, true)
  }

  const effect = async (path: string, key: string, body: unknown) =>
    read(effectAnswer, `POST ${path}`, await exchange('POST', path, key, body))

  return {
    inventory: async (signal) =>
      read(inventory, 'GET /v1/inventory', await exchange('GET', '/v1/inventory', undefined, undefined, signal)),
    converge: (shardId, key) => effect(`/v1/shards/${part(shardId)}/converge`, key, {}),
    async wouldConverge(shardId, signal) {
      const path = `/v1/shards/${part(shardId)}/converge?dry_run=true`
      const answer = await exchange('GET', path, undefined, undefined, signal)
      return cannot.includes(answer.status) ? null : read(toldConvergeDryRun, `GET ${path}`, answer)
    },
    startVm: (vmId, host, key) => effect(`/v1/vms/${part(vmId)}/start`, key, { host }),
    async powerVm(vmId, action, host, key) {
      const path = `/v1/vms/${part(vmId)}/${action}`
      const answer = await exchange('POST', path, key, { host })
      if (!cannot.includes(answer.status)) return read(effectAnswer, `POST ${path}`, answer)
      const words = detailOf(answer.text)
      const detail = `this platform cannot ${action} a VM: it answered ${answer.status} to POST ${path}${words && ` (${words})`}`
      return { key, status: 'failed', detail, result: {} }
    },
    migrateVm: (vmId, { from, to }, key) => effect(`/v1/vms/${part(vmId)}/migrate`, key, { from, to }),
    async effect(key) {
      const answer = await exchange('GET', `/v1/effects/${part(key)}`)
      return answer.status === 404 ? null : read(effectAnswer, 'GET /v1/effects/{key}', answer)
    },
  }
}

/**
 * Encodes an id as one path segment. Refuses `.` and `..`, which would lead to a parent path and
 * which no platform uses as ids.
 */
function part(id: string): string {
  if (id === '' || id === '.' || id === '..') throw new HttpError('protocol', 'an id is not a plain identifier', false)
  return encodeURIComponent(id.toWellFormed())
}

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

function detailOf(text: string): string {
  const told = z.looseObject({ detail: z.string() }).safeParse(jsonOf(text))
  return (told.success ? told.data.detail : text).slice(0, 300).toWellFormed()
}
