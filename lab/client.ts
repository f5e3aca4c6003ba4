import { z } from 'zod'
import { type OracleVerdict, type Scenario, verdict } from './oracle.ts'
import { type Fault, type FaultName, fault } from './state.ts'

const effect = z.object({
  key: z.string(),
  request: z.string(),
  status: z.enum(['running', 'done', 'failed']),
  detail: z.string(),
  result: z.record(z.string(), z.unknown()),
  /** How many times the write call was really started. */
  runs: z.number().int(),
})

const monitoring = z.object({
  prometheusUrl: z.url(),
  alertmanagerUrl: z.url(),
  logsUrl: z.url().nullable().default(null),
})
const drawer = z.object({
  servers: z.array(
    z.object({
      name: z.string(),
      kind: z.enum(['postgresql', 'mysql']),
      role: z.enum(['primary', 'replica']),
      replicatesFrom: z.string().nullable(),
      url: z.string(),
      instance: z.string(),
      adminUser: z.string(),
    }),
  ),
  /** Paths of files that contain `user:password`. */
  credentials: z.object({ read: z.string(), write: z.string() }),
})
const cluster = z.object({ url: z.url(), kubeconfig: z.string(), nodes: z.array(z.string()) })
const device = z.object({ id: z.string(), url: z.string(), root: z.string(), state: z.string() })

/** Controls a lab from outside: breaks the lab, heals it, and checks whether its state is right. */
export type LabClient = {
  break(fault: FaultName, target: string): Promise<Fault>
  /**
   * Undoes every fault, or only the faults of one kind or on one target. Returns the number of
   * undone faults.
   */
  heal(fault?: FaultName, target?: string): Promise<number>
  faults(): Promise<Fault[]>
  effects(): Promise<z.infer<typeof effect>[]>
  /** Sets whether the platform confirms that dead hosts are off. */
  fencing(confirms: boolean): Promise<void>
  /** Starts Prometheus and Alertmanager for the web nodes, unless they are running. */
  monitor(): Promise<z.infer<typeof monitoring>>
  /** Starts PostgreSQL and MariaDB with their replicas, unless they are running. */
  openDatabases(): Promise<z.infer<typeof drawer>>
  /** Starts a Kubernetes cluster of two nodes, unless it is running. */
  openKubernetes(): Promise<z.infer<typeof cluster>>
  /**
   * Applies a manifest of an account and its rights, as the cluster's admin. Returns the paths of
   * the account's token and of the CA certificate.
   */
  giveClusterRights(manifest: string): Promise<{ token: string; authority: string }>
  /** Runs a text of GRANT statements as the admin of a database. */
  applyGrants(server: string, sql: string): Promise<void>
  oracle(scenario: Scenario, target?: string): Promise<OracleVerdict>
  devices(): Promise<z.infer<typeof device>[]>
  /** Enrols a node's agent with a one-time token, and starts it. */
  enrol(id: string, apiUrl: string, token: string): Promise<z.infer<typeof device>>
}

/** Connects to a lab. A failed call throws an error with the request and the lab's response. */
export function labClient(url: string, controlToken: string): LabClient {
  async function ask<T>(method: string, path: string, schema: z.ZodType<T>, body?: object): Promise<T> {
    const response = await fetch(new URL(path, url), {
      method,
      headers: { authorization: `Bearer ${controlToken}`, 'content-type': 'application/json' },
      body: body && JSON.stringify(body),
      // Waits long, because a heal may start every node again. A cluster fault takes up to two
      // minutes to show, and a busy machine takes up to three minutes to start a cluster.
      signal: AbortSignal.timeout(240_000),
    })
    const text = await response.text()
    if (!response.ok) throw new Error(`the lab refused the request (${response.status}): ${detailOf(text)}`)
    return schema.parse(JSON.parse(text))
  }
  return {
    break: (name, target) => ask('POST', '/control/faults', fault, { fault: name, target }),
    async heal(fault, target) {
      const query = new URLSearchParams({ ...(fault && { fault }), ...(target && { target }) })
      return (await ask('DELETE', `/control/faults?${query}`, z.object({ healed: z.number() }))).healed
    },
    faults: async () => (await ask('GET', '/control/faults', z.object({ items: z.array(fault) }))).items,
    effects: async () => (await ask('GET', '/control/effects', z.object({ items: z.array(effect) }))).items,
    devices: async () => (await ask('GET', '/control/devices', z.object({ items: z.array(device) }))).items,
    enrol: (id, apiUrl, token) => ask('POST', `/control/devices/${id}`, device, { apiUrl, token }),
    fencing: async (confirms) => {
      await ask('POST', '/control/fencing', z.object({ confirms: z.boolean() }), { confirms })
    },
    monitor: () => ask('POST', '/control/monitoring', monitoring),
    openDatabases: () => ask('POST', '/control/databases', drawer),
    openKubernetes: () => ask('POST', '/control/kubernetes', cluster),
    giveClusterRights: (manifest) =>
      ask('POST', '/control/kubernetes/rights', z.object({ token: z.string(), authority: z.string() }), { manifest }),
    applyGrants: async (server, sql) => {
      await ask('POST', '/control/databases/grants', z.object({ applied: z.literal(true) }), { server, sql })
    },
    oracle: (scenario, target) =>
      ask('GET', `/control/oracle?${new URLSearchParams({ scenario, ...(target && { target }) })}`, verdict),
  }
}

/** Returns the detail of a problem+json body, or the start of another body. */
function detailOf(text: string): string {
  try {
    return z.object({ detail: z.string() }).parse(JSON.parse(text)).detail
  } catch {
    return text.slice(0, 300)
  }
}
