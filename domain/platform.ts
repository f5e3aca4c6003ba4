import { z } from 'zod'
import { sentAttachment } from './attachment.ts'

/**
 * A platform for Nightshift: an inventory with live state, and five writes. The core API speaks
 * this protocol, over HTTP with a bearer token, to whatever runs the hosts:
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
 * Every POST carries `Idempotency-Key`. The platform journals it before it starts and answers a
 * repeat from the journal, so that a write happens once however often it is sent. Another body
 * under the same key is a 422. `docs/reference/platform.openapi.json` is made of these schemas
 * (`test/support/platform-openapi.ts`). `clients/proxmox/` adapts a Proxmox VE cluster to this
 * protocol.
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
    .describe(
      'One line a person understands: `replica is 42 s behind`, `disk 131 % of quota`, `process is not running`.',
    ),
  replicationLagSeconds: z.number().nullable(),
  diskUsedBytes: z.number().nullable(),
  diskQuotaBytes: z.number().nullable(),
  diskByDirectory: z
    .record(z.string(), z.number())
    .describe('Bytes by top-level directory, the way `du` would tell: what fills the disk.'),
})

export const tenantState = z.object({ id: z.string(), name: z.string(), shard: z.string(), status: health })

/** What alerts call a machine, where that is not its id. */
const knownAs = {
  name: z.string().optional().describe('What people and alerts call it, where that is not its id.'),
  aliases: z.array(z.string()).optional().describe('Other names, host names and addresses that alerts may use.'),
}

const reserve = z.number().int().min(0).max(1_000_000_000).nullable().optional()

export const hostState = z.object({
  id: z.string(),
  ...knownAs,
  region: z.string(),
  rack: z.string(),
  state: z.enum(['live', 'draining', 'dead']),
  ramReserveMib: reserve.describe('RAM of it that no VM gets. Null or left out: the percentage of all hosts.'),
  cpuReserveMc: reserve.describe('CPU of it that no VM gets, in thousandths. Null or left out: none.'),
  ramMib: z.number().int(),
  cpuMc: z.number().int(),
  fenced: z
    .object({
      by: z.string().max(200).describe('What confirms it, as `its power switch`.'),
      at: z.iso.datetime({ offset: true }).nullable(),
    })
    .nullable()
    .optional()
    .describe(
      'Of a dead host: it is certain that it was powered off, or cut from its disks, and stays so. Null or left out: the platform only does not hear of it, which is one witness that says "down".',
    ),
})

export const vmState = z.object({
  id: z.string(),
  ...knownAs,
  host: z.string().nullable().describe('Where it is defined to run; it stays when that host is dead.'),
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
    .describe('When not all can be placed, the higher ones come first.'),
  pinnedTo: z.array(z.string()).default([]).describe('The only hosts it may be brought to; empty: any.'),
  forbiddenHosts: z.array(z.string()).default([]),
  affinityGroup: z.string().nullable().default(null).describe('VMs of one affinity group belong on one host.'),
  tenant: z.string().nullable(),
  restartsElsewhere: z
    .boolean()
    .optional()
    .describe(
      'Where its host dies, the platform fences that host and starts it on another one by itself: a start of it in a plan is a forecast, and sends nothing.',
    ),
  startedAt: z.iso
    .datetime()
    .nullable()
    .optional()
    .describe('When its present run began, exactly: a later one proves a restart. Null or left out: not known.'),
  busy: z
    .string()
    .nullable()
    .optional()
    .describe('What the platform is doing to it just now, such as `migrating to host-2`: no repair begins then.'),
})

export const linkState = z
  .object({ a: z.string(), b: z.string(), cost: z.number().int(), up: z.boolean() })
  .describe(
    'An undirected edge between two hosts. `up` is the cable; whether it is usable also needs both ends healthy.',
  )

/** The state of a link or path. `unknown`: both ends live, and the platform reports no links. */
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
    .describe('A link that is down is listed as down. No link at all: the platform does not know them.'),
})
export type Inventory = z.infer<typeof inventory>
export type ShardState = z.infer<typeof shardState>
export type NodeState = z.infer<typeof nodeState>
export type TenantState = z.infer<typeof tenantState>
export type HostState = z.infer<typeof hostState>
export type VmState = z.infer<typeof vmState>
export type LinkState = z.infer<typeof linkState>

/**
 * Changes that a convergence would make now, node by node. A GET, so that no platform takes the
 * question for the order.
 */
export const convergeDryRun = z.object({
  nodes: z.array(z.object({ id: z.string(), changes: z.array(z.string()) })),
  attachments: z
    .array(sentAttachment)
    .optional()
    .describe('At most four, shown to the person who decides, such as a diff or a chart. A model never sees them.'),
})
/** A dry run as read: attachments are judged singly, so that a bad one spoils no dry run. */
export const toldConvergeDryRun = convergeDryRun.extend({ attachments: z.unknown().optional() })
export type ConvergeDryRun = z.infer<typeof toldConvergeDryRun>

export const effectAnswer = z.object({
  key: z.string(),
  status: z.enum(['running', 'done', 'failed']),
  detail: z.string().describe('What was done, for `done`; why not, for `failed`.'),
  result: z.record(z.string(), z.unknown()),
  changed: z
    .array(z.string())
    .nullable()
    .optional()
    .describe(
      'What was changed, in words: `node-1: restarted`. Empty: nothing had to be changed. Null or left out: it cannot be told, and the write counts as unproven unless Nightshift saw its target ill before and well after.',
    ),
})
export type EffectAnswer = z.infer<typeof effectAnswer>

/** Bodies of the writes. Another one under the same key is a 422. */
export const convergeBody = z.strictObject({})
export const startBody = z.strictObject({ host: z.string() })
export const migrateBody = z.strictObject({ from: z.string(), to: z.string() })
export const stopBody = z.strictObject({ host: z.string().describe('Where it runs: if it does not, it fails.') })
export const restartBody = z.strictObject({ host: stopBody.shape.host })

/** What can be done to a VM where it is. */
export const vmActions = ['start', 'stop', 'restart'] as const
export type VmAction = (typeof vmActions)[number]
/** The tool of each, which is also what an effect of it is stored as. */
export const vmTools = { start: 'vm_start', stop: 'vm_stop', restart: 'vm_restart' } as const satisfies Record<
  VmAction,
  string
>

/** A VM before a repair, kept with the effect: only a later start than this one is a restart. */
export const vmBefore = vmState.pick({ host: true, running: true, startedAt: true })
export type VmBefore = z.infer<typeof vmBefore>

/**
 * A write under its key, stored before it is sent: for platforms without idempotency keys, as
 * Proxmox VE.
 */
export type PlatformEffect = {
  key: string
  /** `await`: nothing is sent, the HA manager is bringing the guest there by itself. */
  action: 'start' | 'migrate' | 'await' | 'stop' | 'restart'
  vmId: string
  /** Where the guest was, and where its task runs. */
  node: string
  target: string
  /** UPIDs of the guest's tasks on that node before it was sent: any other came after. */
  tasksBefore: string[]
}

export type PlatformEffectEnding = { status: 'done' | 'failed'; detail: string }

/** The state that is known now. */
export type PlatformEffectRow = PlatformEffect & {
  /** The UPID of its task; null while it is not known. */
  task: string | null
  ageSeconds: number
  ending: PlatformEffectEnding | null
}
