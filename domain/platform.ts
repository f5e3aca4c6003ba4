import { z } from 'zod'
import { sentAttachment } from './attachment.ts'

/**
 * The protocol of a platform: an inventory with live state, and five writes. The core API calls it
 * over HTTP with a bearer token:
 *
 *   GET  /v1/inventory                            → Inventory
 *   GET  /v1/shards/{id}/converge?dry_run=true    → ConvergeDryRun; a platform without it answers 404, 405 or 501
 *   POST /v1/shards/{id}/converge  {}             → EffectAnswer
 *   POST /v1/vms/{id}/start        { host }       → EffectAnswer
 *   POST /v1/vms/{id}/migrate      { from, to }   → EffectAnswer
 *   POST /v1/vms/{id}/stop         { host }       → EffectAnswer; a platform without it answers 404, 405 or 501
 *   POST /v1/vms/{id}/restart      { host }       → EffectAnswer; the same
 *   GET  /v1/effects/{key}                        → EffectAnswer, 404 when the key was never accepted
 *
 * Every POST has the header `Idempotency-Key`. The platform writes the key to its journal before it
 * starts, and responds to a repeat from the journal, so that a write happens once. Another request
 * body under the same key gets 422. `docs/reference/platform.openapi.json` is generated from these
 * schemas (`test/support/platform-openapi.ts`). `clients/proxmox/` adapts a Proxmox VE cluster to
 * this protocol.
 */
export const health = z.enum(['nominal', 'degraded', 'critical', 'unknown'])
export type Health = z.infer<typeof health>

export const regionState = z.object({ id: z.string() })

export const shardState = z.object({
  id: z.string(),
  region: z.string(),
  role: z.enum(['database', 'web']),
  status: health,
  config: z
    .record(z.string(), z.union([z.string(), z.number(), z.boolean()]))
    .describe('Desired configuration, small and flat.'),
})

export const nodeState = z.object({
  id: z.string(),
  shard: z.string(),
  region: z.string(),
  role: z.enum(['primary', 'replica', 'web']),
  hostname: z.string(),
  ip: z.string(),
  status: health,
  reason: z
    .string()
    .nullable()
    .describe('One line for people: `replica is 42 s behind`, `disk 131 % of quota`, `process is not running`.'),
  replicationLagSeconds: z.number().nullable(),
  diskUsedBytes: z.number().nullable(),
  diskQuotaBytes: z.number().nullable(),
  diskByDirectory: z.record(z.string(), z.number()).describe('Bytes by top-level directory, as `du` counts them.'),
})

export const tenantState = z.object({ id: z.string(), name: z.string(), shard: z.string(), status: health })

/** Names by which alerts name a machine, if they differ from its id. */
const knownAs = {
  name: z.string().optional().describe('The name that people and alerts use, if it is not the id.'),
  aliases: z.array(z.string()).optional().describe('Other names, host names and addresses that alerts may use.'),
}

const reserve = z.number().int().min(0).max(1_000_000_000).nullable().optional()

export const hostState = z.object({
  id: z.string(),
  ...knownAs,
  region: z.string(),
  rack: z.string(),
  state: z.enum(['live', 'draining', 'dead']),
  ramReserveMib: reserve.describe(
    'RAM of the host that is reserved from VMs. Null or left out: the percentage that applies to all hosts.',
  ),
  cpuReserveMc: reserve.describe('CPU of the host that is reserved from VMs, in thousandths. Null or left out: none.'),
  ramMib: z.number().int(),
  cpuMc: z.number().int(),
  fenced: z
    .object({
      by: z.string().max(200).describe('The source that confirms the state, such as `its power switch`.'),
      at: z.iso.datetime({ offset: true }).nullable(),
    })
    .nullable()
    .optional()
    .describe(
      'For a dead host: it is certain that the host was powered off, or cut from its disks, and stays so. Null or left out: the platform only has no contact, which counts as one source that reports "down".',
    ),
})

export const vmState = z.object({
  id: z.string(),
  ...knownAs,
  host: z.string().nullable().describe('The host on which the VM is defined; the value stays if that host is dead.'),
  running: z.boolean(),
  ramMib: z.number().int(),
  cpuMc: z.number().int(),
  haGroup: z.string().nullable(),
  priority: z
    .number()
    .int()
    .min(0)
    .max(1_000)
    .default(0)
    .describe('If not all VMs fit, VMs with a higher priority come first.'),
  pinnedTo: z
    .array(z.string())
    .default([])
    .describe('The only hosts to which the VM may be moved, or on which it may start. Empty: any host.'),
  forbiddenHosts: z.array(z.string()).default([]),
  affinityGroup: z.string().nullable().default(null).describe('VMs of one affinity group belong on one host.'),
  tenant: z.string().nullable(),
  restartsElsewhere: z
    .boolean()
    .optional()
    .describe(
      "If the VM's host dies, the platform fences this host and starts the VM on another host by itself. A start of this VM in a plan is a forecast, and Nightshift sends nothing.",
    ),
  startedAt: z.iso
    .datetime()
    .nullable()
    .optional()
    .describe("The exact time of the VM's last start: a later time proves a restart. Null or left out: not known."),
  busy: z
    .string()
    .nullable()
    .optional()
    .describe(
      'The current action of the platform on the VM, such as `migrating to host-2`. No repair begins during this action.',
    ),
})

export const linkState = z
  .object({ a: z.string(), b: z.string(), cost: z.number().int(), up: z.boolean() })
  .describe(
    'An undirected edge between two hosts. `up` is the cable; whether it is usable also needs both ends healthy.',
  )

/**
 * The state of a link or path. `unknown`: both ends are live, but the platform reports nothing
 * about links.
 */
export const linkStatus = z.enum(['live', 'down', 'unknown'])
export type LinkStatus = z.infer<typeof linkStatus>
export const reachability = z.enum(['reachable', 'unreachable', 'unknown'])
export type Reachability = z.infer<typeof reachability>

export const inventory = z.object({
  regions: z.array(regionState),
  shards: z.array(shardState),
  nodes: z.array(nodeState),
  tenants: z.array(tenantState),
  hosts: z.array(hostState),
  vms: z.array(vmState),
  links: z
    .array(linkState)
    .describe('A link that is down is listed as down. An empty list: the platform knows no links.'),
})
export type Inventory = z.infer<typeof inventory>
export type ShardState = z.infer<typeof shardState>
export type NodeState = z.infer<typeof nodeState>
export type TenantState = z.infer<typeof tenantState>
export type HostState = z.infer<typeof hostState>
export type VmState = z.infer<typeof vmState>
export type LinkState = z.infer<typeof linkState>

/**
 * The changes that a convergence would make now, node by node. Read by GET, so that no platform
 * takes the request for an instruction to converge.
 */
export const convergeDryRun = z.object({
  nodes: z.array(z.object({ id: z.string(), changes: z.array(z.string()) })),
  attachments: z
    .array(sentAttachment)
    .optional()
    .describe(
      'At most four attachments for the person who decides, such as a diff or a chart. A model never sees them.',
    ),
})
/**
 * The dry run of a convergence as it is read. Attachments are checked one by one, so that an
 * invalid attachment leaves out only itself.
 */
export const toldConvergeDryRun = convergeDryRun.extend({ attachments: z.unknown().optional() })
export type ConvergeDryRun = z.infer<typeof toldConvergeDryRun>

export const effectAnswer = z.object({
  key: z.string(),
  status: z.enum(['running', 'done', 'failed']),
  detail: z.string().describe('For `done` what was done; for `failed` the reason.'),
  result: z.record(z.string(), z.unknown()),
  changed: z
    .array(z.string())
    .nullable()
    .optional()
    .describe(
      'The changes, in words: `node-1: restarted`. Empty: nothing had to be changed. Null or left out: unknown, and the write counts as unproven unless Nightshift saw its target unhealthy before and healthy after.',
    ),
})
export type EffectAnswer = z.infer<typeof effectAnswer>

/** Request bodies of the writes. A different body under a known key gets 422. */
export const convergeBody = z.strictObject({})
export const startBody = z.strictObject({ host: z.string() })
export const migrateBody = z.strictObject({ from: z.string(), to: z.string() })
export const stopBody = z.strictObject({
  host: z.string().describe('The host where the VM runs; if it does not run there, the request fails.'),
})
export const restartBody = z.strictObject({ host: stopBody.shape.host })

/** Actions on a VM that does not change its host. */
export const vmActions = ['start', 'stop', 'restart'] as const
export type VmAction = (typeof vmActions)[number]
/** The tool of each action on a VM. The effect is also stored under this name. */
export const vmTools = { start: 'vm_start', stop: 'vm_stop', restart: 'vm_restart' } as const satisfies Record<
  VmAction,
  string
>

/** The VM before a repair, stored with the effect. A later start time proves a restart. */
export const vmBefore = vmState.pick({ host: true, running: true, startedAt: true })
export type VmBefore = z.infer<typeof vmBefore>

/**
 * A write that is stored under its key before it is sent, for platforms without idempotency keys,
 * such as Proxmox VE.
 */
export type PlatformEffect = {
  key: string
  /** `await`: nothing is sent, because the HA manager already moves the guest to the host. */
  action: 'start' | 'migrate' | 'await' | 'stop' | 'restart'
  vmId: string
  /** The Proxmox node of the guest, on which the task runs. */
  node: string
  target: string
  /** UPIDs of the guest's earlier tasks on the node. Every other task was started later. */
  tasksBefore: string[]
}

export type PlatformEffectEnding = { status: 'done' | 'failed'; detail: string }

/** The effect, and what is known about its task. */
export type PlatformEffectRow = PlatformEffect & {
  /** The UPID of the effect's task; null while the task is unknown. */
  task: string | null
  ageSeconds: number
  ending: PlatformEffectEnding | null
}
