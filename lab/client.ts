import { z } from 'zod'
import { type OracleVerdict, type Scenario, verdict } from './oracle.ts'
import { type Fault, type FaultName, fault } from './state.ts'

const effect = z.object({
  key: z.string(),
  request: z.string(),
  status: z.enum(['running', 'done', 'failed']),
  detail: z.string(),
  result: z.record(z.string(), z.unknown()),
  /** How often the write was truly started. */
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
  /** Files that hold `user:password`. */
  credentials: z.object({ read: z.string(), write: z.string() }),
})
const cluster = z.object({ url: z.url(), kubeconfig: z.string(), nodes: z.array(z.string()) })
const device = z.object({ id: z.string(), url: z.string(), root: z.string(), state: z.string() })

/** What one may do to a lab from outside: break it, heal it, and ask whether its state is right. */
export type LabClient = {
  break(fault: FaultName, target: string): Promise<Fault>
  /** Takes back every fault, or only those of one kind, or on one target. Tells how many. */
  heal(fault?: FaultName, target?: string): Promise<number>
  faults(): Promise<Fault[]>
  effects(): Promise<z.infer<typeof effect>[]>
  /** Has the platform confirm that dead hosts are off, or no longer. */
  fencing(confirms: boolean): Promise<void>
  /** Starts Prometheus and Alertmanager for the web nodes, where they do not run yet. */
  monitor(): Promise<z.infer<typeof monitoring>>
  /** Starts PostgreSQL and MariaDB with their replicas, where they do not run yet. */
  openDatabases(): Promise<z.infer<typeof drawer>>
  /** Starts a Kubernetes of two nodes, where it does not run yet. */
  openKubernetes(): Promise<z.infer<typeof cluster>>
  /**
   * Applies a manifest of an account and its rights, as the cluster's admin. Answers the files of
   * its token and of the server certificate's signer.
   */
  giveClusterRights(manifest: string): Promise<{ token: string; authority: string }>
  /** Runs a text of GRANTs as the admin of a database. */
  applyGrants(server: string, sql: string): Promise<void>
  oracle(scenario: Scenario, target?: string): Promise<OracleVerdict>
  devices(): Promise<z.infer<typeof device>[]>
  /** Has a node's agent enrol with a one-time token, and starts it. */
  enrol(id: string, apiUrl: string, token: string): Promise<z.infer<typeof device>>
}

/** Every call throws an error that names what was asked and what the lab answered. */
export function labClient(url: string, controlToken: string): LabClient {
  async function ask<T>(method: string, path: string, schema: z.ZodType<T>, body?: object): Promise<T> {
    const response = await fetch(new URL(path, url), {
      method,
      headers: { authorization: `Bearer ${controlToken}`, 'content-type': 'application/json' },
      body: body && JSON.stringify(body),
      // A heal may start every node again; a cluster fault shows in two minutes, and a busy machine
      // starts one in three.
      signal: AbortSignal.timeout(240_000),
    })
    const text = await response.text()
    if (!response.ok) throw new Error(`the lab refused it (${response.status}): ${detailOf(text)}`)
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

/** What a problem+json says, or the body as it is. */
function detailOf(text: string): string {
  try {
    return z.object({ detail: z.string() }).parse(JSON.parse(text)).detail
  } catch {
    return text.slice(0, 300)
  }
}
