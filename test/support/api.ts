import { afterAll, beforeAll } from '@jest/globals'
import { type Api, type ApiOptions, createApi } from '../../api/app.ts'
import { createToken, ensureOperator } from '../../db/access/tokens.ts'
import type { Db } from '../../db/connect.ts'
import type { Role } from '../../domain/permissions.ts'
import type { Inventory } from '../../domain/platform.ts'
import type { CorePort } from '../../domain/tool.ts'
import type { RunSignal, Runs } from '../../effects/runs.ts'
import { type TestDatabase, useDatabase } from './database.ts'

export type Answer = { status: number; body: Record<string, never> & { [key: string]: unknown }; headers: Headers }
export type Asking = { body?: unknown; raw?: string; key?: string; headers?: Record<string, string>; as?: string }

export type TestApi = TestDatabase & {
  api: Api
  tokens: Record<Role, string>
  /** What the runs were told, newest last. */
  told: { signal: RunSignal; incidentId: string; attempt: number }[]
  triggered: number[]
  /** What telling a run comes to. */
  runs: { answer: Awaited<ReturnType<Runs['tell']>> }
  get(path: string, asking?: Asking): Promise<Answer>
  post(path: string, asking?: Asking): Promise<Answer>
  put(path: string, asking?: Asking): Promise<Answer>
}

/** The API over a database of its own, with a token per role and runs that only listen. */
export function useApi(options: (db: Db) => Partial<ApiOptions> | Promise<Partial<ApiOptions>> = () => ({})): TestApi {
  const test = useDatabase() as TestApi
  const closing = new AbortController()
  test.told = []
  test.triggered = []
  test.runs = { answer: 'told' }
  const runs: Runs = {
    async tell(run, signal) {
      test.told.push({ ...run, signal })
      return test.runs.answer
    },
    // No worker carries it out here: what is asked for is under way.
    startManualChange: async () => false,
    triggerQueue: () => void test.triggered.push(Date.now()),
    isReachable: async () => true,
  }
  beforeAll(async () => {
    test.api = createApi({ db: test.db, runs, closing: closing.signal, ...(await options(test.db)) })
    test.tokens = await tokensOf(test.db)
  })
  afterAll(() => closing.abort())
  const ask =
    (method: string) =>
    async (path: string, asking: Asking = {}) => {
      const { body, raw, key, headers, as } = asking
      const response = await test.api.app.request(`/api/v1${path}`, {
        method,
        headers: {
          ...(as !== '' && { authorization: `Bearer ${as ?? test.tokens.admin}` }),
          ...((body !== undefined || raw !== undefined) && { 'content-type': 'application/json' }),
          ...(key !== undefined && { 'idempotency-key': key }),
          ...headers,
        },
        ...(raw !== undefined ? { body: raw } : body !== undefined && { body: JSON.stringify(body) }),
      })
      const text = await response.text()
      return {
        status: response.status,
        body: /json/.test(response.headers.get('content-type') ?? '') ? JSON.parse(text) : { text },
        headers: response.headers,
      }
    }
  test.get = ask('GET')
  test.post = ask('POST')
  test.put = ask('PUT')
  return test
}

async function tokensOf(db: Db): Promise<Record<Role, string>> {
  const tokens: Partial<Record<Role, string>> = {}
  for (const role of ['viewer', 'operator', 'approver', 'admin'] as const) {
    const operatorId = await ensureOperator(db, role, role)
    tokens[role] = await createToken(db, { name: role, role, operatorId })
  }
  for (const role of ['agent', 'ingest'] as const) {
    tokens[role] = await createToken(db, { name: role, role, operatorId: null })
  }
  return tokens as Record<Role, string>
}

/**
 * Host c is dead. Its big VM fits on a alone, once two small ones have left it for b; its small one
 * fits on b at once.
 */
export function twoWaves(): Inventory {
  const host = (id: string, ramMib: number, state: 'live' | 'dead' = 'live') => ({
    id,
    region: 'osl',
    rack: `rack-${id}`,
    state,
    ramMib,
    cpuMc: 64_000,
    ...(state === 'dead' && { fenced: { by: 'its power switch', at: null } }),
  })
  const vm = (id: string, on: string, ramMib: number, running = true) => ({
    id,
    host: on,
    running,
    ramMib,
    cpuMc: 500,
    haGroup: null,
    tenant: null,
    priority: 0,
    pinnedTo: [],
    forbiddenHosts: [],
    affinityGroup: null,
  })
  return {
    regions: [{ id: 'osl' }],
    shards: [],
    nodes: [],
    tenants: [],
    links: [],
    hosts: [host('a', 8_000), host('b', 7_000), host('c', 9_000, 'dead'), host('d', 1_000)],
    vms: [
      vm('small-1', 'a', 3_000),
      vm('small-2', 'a', 2_000),
      vm('big', 'c', 8_000, false),
      vm('lone', 'c', 900, false),
    ],
  }
}

/** The core API as a worker reaches it. */
export function corePort(api: TestApi): CorePort {
  const answer = ({ status, body }: Answer) =>
    status < 300
      ? { ok: true as const, status, data: body as unknown }
      : { ok: false as const, status, problem: body as unknown as { title: string; detail: string; code?: string } }
  const below = (path: string) => path.replace('/api/v1', '')
  const as = () => api.tokens.agent
  return {
    get: async (path) => answer(await api.get(below(path), { as: as() })),
    post: async (path, body, { idempotencyKey: key, ifMatch }) =>
      answer(await api.post(below(path), { body, key, as: as(), headers: ifMatch ? { 'if-match': ifMatch } : {} })),
  }
}
