import { z } from 'zod'
import { capability, deviceId, manifest, meshHealth, meshMode } from './mesh.ts'

/** Settings of a device by an admin; the signed manifest says the same to the device. */
export const deviceTerms = manifest.pick({
  capabilities: true,
  roots: true,
  auto_approve: true,
  root_reads: true,
  git_hosts: true,
  checks: true,
  limits: true,
})
export type DeviceTerms = z.infer<typeof deviceTerms>

/** How the agent of a host reaches the guests on it that have no agent. */
export const guests = z.enum(['docker', 'pct'])
export type Guests = z.infer<typeof guests>

/** What a device can execute for. */
export const executable = z.object({ kind: z.enum(['node', 'host', 'vm']), id: z.string().min(1).max(100) })
export type Executable = z.infer<typeof executable>

/** A file of a directory of logs, by its agent. `changed`: when it was written last. */
export const logFile = z.object({ path: z.string(), bytes: z.number(), changed: z.string() })
export type LogFile = z.infer<typeof logFile>

const device = z.object({
  id: deviceId,
  /** The node, host or VM that commands for it reach. */
  resource: executable,
  /** Where its agent listens; null: its agent calls out, and keeps one connection to the API. */
  url: z.string().nullable(),
  /** A variable of the API's environment that wins over `url` while it is set. */
  urlEnv: z.string().nullable(),
  mode: meshMode,
  guests: guests.nullable(),
  timeoutSeconds: z.number().int(),
  /** Empty: all that the mode leaves. */
  toolsAllowed: z.array(z.string()),
  enabled: z.boolean(),
  terms: deviceTerms,
  manifestDays: z.number().int(),
  manifestId: z.string().nullable(),
  manifestExpiresAt: z.string().nullable(),
  health: meshHealth.nullable(),
  /** Why it did not answer when it was last asked. */
  healthProblem: z.string().nullable(),
  healthAt: z.string().nullable(),
  createdAt: z.string(),
  enrolledAt: z.string().nullable(),
  revokedAt: z.string().nullable(),
})
export type Device = z.infer<typeof device>

/** The connection of an agent that calls out, or the last one it had. */
const shownConnection = z.object({
  isConnected: z.boolean(),
  /** Since when it is connected, or is not. */
  since: z.string().nullable(),
  /** Where the agent called from. */
  address: z.string(),
  /** The process of the API that holds it. */
  process: z.string(),
  agentVersion: z.string(),
})
export type ShownConnection = z.infer<typeof shownConnection>

/** A device as the API lists it, with the tools it can be asked for. */
export const listedDevice = device.extend({
  tools: z.array(z.string()),
  /** Null: its agent listens, or has not called yet. */
  connection: shownConnection.nullable().default(null),
})
export type ListedDevice = z.infer<typeof listedDevice>

/** One call to a device as the control plane knows it. */
export const deviceCall = z.object({
  key: z.string(),
  requestId: z.string(),
  deviceId: z.string(),
  incidentId: z.string().nullable(),
  callId: z.string().nullable(),
  capability,
  rehearse: z.boolean(),
  authority: z.string().nullable(),
  begunAt: z.string(),
  finishedAt: z.string().nullable(),
  /** Null: not known (yet). */
  ok: z.boolean().nullable(),
  errorCode: z.string().nullable(),
  approvalStatus: z.string().nullable(),
  auditHash: z.string().nullable(),
  truncated: z.boolean().nullable(),
  durationMs: z.number().int().nullable(),
})
export type DeviceCall = z.infer<typeof deviceCall>

/** A call to a device with the hashes in its rows, to be held against the device's journal. */
export const auditedCall = z.object({
  key: z.string(),
  requestId: z.string(),
  begunAt: z.string(),
  finishedAt: z.string().nullable(),
  /** What the device answered as the hash of its journal's entry. */
  auditHash: z.string().nullable(),
  /** The hash in the row of the incident; null where there is no row. */
  incidentHash: z.string().nullable(),
})
export type AuditedCall = z.infer<typeof auditedCall>
