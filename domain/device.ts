import { z } from 'zod'
import { capability, deviceId, manifest, meshHealth, meshMode } from './mesh.ts'

/** Settings that an admin made for a device. The signed manifest contains the same settings. */
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

/** How the agent of a host reaches the guests on the host that have no agent. */
export const guests = z.enum(['docker', 'pct'])
export type Guests = z.infer<typeof guests>

/** A resource on which a device can run commands. */
export const executable = z.object({ kind: z.enum(['node', 'host', 'vm']), id: z.string().min(1).max(100) })
export type Executable = z.infer<typeof executable>

/** A file in a log directory of an agent. `changed`: the time of the last write. */
export const logFile = z.object({ path: z.string(), bytes: z.number(), changed: z.string() })
export type LogFile = z.infer<typeof logFile>

const device = z.object({
  id: deviceId,
  /** The node, host or VM on which the device's commands run. */
  resource: executable,
  /**
   * The address of the agent. Null if the agent connects to the API and keeps one connection open.
   */
  url: z.string().nullable(),
  /** An environment variable of the API that overrides `url` while it is set. */
  urlEnv: z.string().nullable(),
  mode: meshMode,
  guests: guests.nullable(),
  timeoutSeconds: z.number().int(),
  /** The tools that the device accepts. An empty list stands for all tools that the mode allows. */
  toolsAllowed: z.array(z.string()),
  enabled: z.boolean(),
  terms: deviceTerms,
  manifestDays: z.number().int(),
  manifestId: z.string().nullable(),
  manifestExpiresAt: z.string().nullable(),
  health: meshHealth.nullable(),
  /** Why the device's last health check failed. */
  healthProblem: z.string().nullable(),
  healthAt: z.string().nullable(),
  createdAt: z.string(),
  enrolledAt: z.string().nullable(),
  revokedAt: z.string().nullable(),
})
export type Device = z.infer<typeof device>

/**
 * The current connection of an agent that connects to the API, or its last connection if it is not
 * connected now.
 */
const shownConnection = z.object({
  isConnected: z.boolean(),
  /** The time at which the connection began; the time of its end if it has ended. */
  since: z.string().nullable(),
  /** The address from which the agent connects. */
  address: z.string(),
  /** The API process that has the connection. */
  process: z.string(),
  agentVersion: z.string(),
})
export type ShownConnection = z.infer<typeof shownConnection>

/** A device as the API lists it, with its tools. */
export const listedDevice = device.extend({
  tools: z.array(z.string()),
  /** Null if the agent listens for connections, or has not connected yet. */
  connection: shownConnection.nullable().default(null),
})
export type ListedDevice = z.infer<typeof listedDevice>

/** One call to a device, as the API recorded it. */
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
  /** Whether the call succeeded; null while the result is unknown. */
  ok: z.boolean().nullable(),
  errorCode: z.string().nullable(),
  approvalStatus: z.string().nullable(),
  auditHash: z.string().nullable(),
  truncated: z.boolean().nullable(),
  durationMs: z.number().int().nullable(),
})
export type DeviceCall = z.infer<typeof deviceCall>

/** A call to a device with the hashes that are compared with the journal of the device. */
export const auditedCall = z.object({
  key: z.string(),
  requestId: z.string(),
  begunAt: z.string(),
  finishedAt: z.string().nullable(),
  /** The hash of the journal's entry about this call, as the device returned it. */
  auditHash: z.string().nullable(),
  /** The hash in the row of the incident's log; null if no row has it. */
  incidentHash: z.string().nullable(),
})
export type AuditedCall = z.infer<typeof auditedCall>
