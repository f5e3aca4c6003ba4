import { z } from 'zod'

/**
 * The protocol between the control plane and a device's agent (docs/reference/mesh.md): one signed
 * request a capability call. All that the agent believes is written here.
 *
 *   POST /capability        CapabilityRequest    → CapabilityAnswer
 *   GET  /operations/{id}   SignedRead           → CapabilityAnswer, or an SSE stream of a running one
 *   DELETE /operations/{id} CancelRequest        → CapabilityAnswer as it stands
 *   GET  /journal?after={n} SignedRead           → JournalPage
 *   GET  /health                                 → Health
 *
 * A request is signed with ed25519 over its canonical JSON (RFC 8785) without `signature`. Nothing
 * is done for a wrong signature, device, clock or nonce.
 */

export const deviceId = z.string().regex(/^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$/, 'is not a device id')
const requestId = z.string().regex(/^req_[0-9a-f]{24}$/, 'is not a request id')
/** 16 random bytes. */
const nonce = z.string().regex(/^[A-Za-z0-9+/]{22}==$/, 'is not a nonce of 16 bytes')
const moment = z.iso.datetime({ offset: false })
const sha256 = z.string().regex(/^[0-9a-f]{64}$/, 'is not a SHA-256')
const keyId = z.string().regex(/^[a-z0-9][a-z0-9._-]{0,63}$/, 'is not a key id')
/** ed25519: 64 bytes in base64. */
const signature = z.string().regex(/^[A-Za-z0-9+/]{86}==$/, 'is not an ed25519 signature')

/**
 * Abilities of a device, by name. `mesh/specs/` describes each; an agent refuses one that it lacks,
 * and the API one without a tool.
 */
export const capability = z
  .string()
  .max(60)
  .regex(/^[a-z]+(?:\.[a-z]+)+$/, 'is not the name of a capability')
export type Capability = z.infer<typeof capability>

/** `user`: reads run, the rest asks. `sudo`: all asks, commands run as root. `all`: both. */
export const meshMode = z.enum(['user', 'sudo', 'all'])
export type MeshMode = z.infer<typeof meshMode>

/**
 * Leave to do one thing once: signed by the control plane for this device, this request and exactly
 * these arguments, valid for two minutes. The device checks it itself.
 */
export const grant = z.strictObject({
  id: z.string().regex(/^grt_[0-9a-f]{24}$/, 'is not a grant id'),
  device: deviceId,
  request_id: requestId,
  capability,
  /** SHA-256 of the canonical arguments. */
  args_digest: sha256,
  /** The approval, or the standing grant of a person, that stands behind it. */
  authority: z.string().min(1).max(200),
  issued_at: moment,
  expires_at: moment,
  key_id: keyId,
  signature,
})
export type Grant = z.infer<typeof grant>

export const capabilityRequest = z.strictObject({
  request_id: requestId,
  nonce,
  issued_at: moment,
  /** The device stops everything of this request then. */
  deadline: moment,
  device: deviceId,
  capability,
  args: z.record(z.string(), z.unknown()),
  /** A repeat of this key is answered from the device's journal. */
  idempotency_key: z.string().min(1).max(512),
  /** Long output: answered at once, and read from /operations/{id}. */
  stream: z.boolean().default(false),
  /** First done in a throw-away copy: nothing of the device changes. */
  rehearse: z.boolean().default(false),
  /**
   * Containers that the control plane looked up there and the command enters. Absent where it
   * enters none: older agents refuse a request with this field.
   */
  names: z.array(z.string().min(1).max(1_000)).max(50).optional(),
  grant: grant.nullable(),
  key_id: keyId,
  signature,
})
export type CapabilityRequest = z.infer<typeof capabilityRequest>

/** Stops a running operation: signed like a request, its nonce is remembered alike. */
export const cancelRequest = z.strictObject({
  request_id: requestId,
  nonce,
  issued_at: moment,
  device: deviceId,
  key_id: keyId,
  signature,
})
export type CancelRequest = z.infer<typeof cancelRequest>

/**
 * Leave to read a device's journal: `Authorization: Mesh <base64url of its JSON>`, signed like a
 * request, for one path with its query. Its nonce is remembered too.
 */
export const signedRead = z.strictObject({
  read: z
    .string()
    .regex(/^\/[!-~]*$/)
    .max(200),
  nonce,
  issued_at: moment,
  device: deviceId,
  key_id: keyId,
  signature,
})
export type SignedRead = z.infer<typeof signedRead>

/** Why a device did not do it. Each has one meaning; the model reads it as it stands. */
const meshErrorCode = z.enum([
  // The request is not one.
  'malformed',
  'bad_signature',
  'unknown_key',
  'wrong_device',
  'clock_skew',
  'bad_deadline',
  'replayed_nonce',
  'manifest_invalid',
  // The guard.
  'blocked',
  'approval_required',
  'grant_forged',
  'grant_replayed',
  'grant_expired',
  'grant_wrong_device',
  'grant_altered',
  // The capability.
  'capability_unavailable',
  'invalid_arguments',
  'outside_roots',
  'not_found',
  'conflict',
  'failed',
  'timeout',
  'cancelled',
  'busy',
  // Exactly once.
  'idempotency_key_reused',
  'indeterminate',
])
export type MeshErrorCode = z.infer<typeof meshErrorCode>

/**
 * `not_required`: reads like `/health` that the manifest lists; `auto_approved`: the guard's;
 * `granted`: a grant's.
 */
const approvalStatus = z.enum(['auto_approved', 'granted', 'required', 'refused'])

export const capabilityAnswer = z.strictObject({
  request_id: requestId,
  device: deviceId,
  status: z.enum(['running', 'done', 'failed']),
  ok: z.boolean(),
  result: z.record(z.string(), z.unknown()).nullable(),
  error: z.strictObject({ code: meshErrorCode, message: z.string().max(2_000) }).nullable(),
  approval_status: approvalStatus,
  /** The command that ran, after normalisation; null where there was none. */
  cmd_executed: z.string().nullable(),
  /** The journal's chain after this call, over all entries. Null where nothing was written. */
  audit_hash: sha256.nullable(),
  truncated: z.boolean(),
  duration_ms: z.number().int().nonnegative(),
})
export type CapabilityAnswer = z.infer<typeof capabilityAnswer>

/**
 * An entry of a device's journal without its content: its hash covers the whole line, and the next
 * entry names it as `prev`.
 */
export const journalEntry = z.strictObject({
  n: z.number().int().min(1),
  at: moment,
  prev: sha256,
  hash: sha256,
  kind: z.enum(['started', 'accepted', 'running', 'done', 'refused', 'lost', 'loss_accepted', 'pruned']),
  request_id: requestId.nullable(),
})
export type JournalEntry = z.infer<typeof journalEntry>

export const journalPage = z.strictObject({
  device: deviceId,
  /** Where what is still there of it begins: older entries are pruned. */
  first: z.number().int().nonnegative(),
  /** The newest one. */
  last: z.number().int().nonnegative(),
  /** Entries after the asked number, in order: at least one, unless that was the newest. */
  entries: z.array(journalEntry),
})
export type JournalPage = z.infer<typeof journalPage>

const limits = z.strictObject({
  output_bytes: z.number().int().min(1_024).max(10_000_000).default(256_000),
  timeout_seconds: z.number().int().min(1).max(3_600).default(60),
  cpu_seconds: z.number().int().min(1).max(3_600).default(60),
  memory_mib: z.number().int().min(16).max(65_536).default(512),
  concurrent: z.number().int().min(1).max(64).default(8),
})

/**
 * A command that is tried on the throw-away copy before a write is asked: `["nginx", "-t", "-c",
 * "{path}"]`.
 */
const check = z.strictObject({ path: z.string().max(1_000), argv: z.array(z.string().max(1_000)).min(1).max(50) })

/**
 * A program by absolute path, or by name from the system's own folders, and its words; no shell
 * reads them.
 */
const rootRead = z
  .array(
    z
      .string()
      .max(1_000)
      .regex(/^[^\p{Cc}\p{Cf}]*$/u, 'holds a control character'),
  )
  .min(1)
  .max(50)
  .refine(([program = '']) => /^(?:\/|[A-Za-z0-9])[^=\s]*$/.test(program), 'begins with no program')

/**
 * The signed list of what a device may be asked. An agent without a valid one serves `/health`
 * only, and says why.
 */
export const manifest = z.strictObject({
  id: z.string().min(1).max(100),
  device: deviceId,
  mode: meshMode,
  /** Empty: all that the device has. */
  capabilities: z.array(capability).max(200),
  /** Directories that `fs.*` and `git.*` stay inside. */
  roots: z.array(z.strictObject({ path: z.string().regex(/^\//).max(1_000), writable: z.boolean() })).max(50),
  /**
   * Programs that may run unasked, of commands that the guard proves to be reads. Empty: every
   * proven one.
   */
  auto_approve: z.array(z.string().max(200)).max(500).default([]),
  /**
   * Commands that root may look with unasked: exactly these words after `sudo -n`, if proved to be
   * a look. Absent: none. An older agent takes no manifest with this field.
   */
  root_reads: z.array(rootRead).max(100).optional(),
  /** Hosts that `git.clone` and `git.push` may reach. */
  git_hosts: z.array(z.string().max(253)).max(50).default([]),
  checks: z.array(check).max(100).default([]),
  limits: limits.prefault({}),
  /** Keys of the control plane that requests and grants may be signed with, and until when. */
  keys: z
    .array(z.strictObject({ id: keyId, public_key: z.string().max(200), not_after: moment.nullable() }))
    .min(1)
    .max(10),
  issued_at: moment,
  expires_at: moment,
  key_id: keyId,
  signature,
})
export type Manifest = z.infer<typeof manifest>

export const meshHealth = z.strictObject({
  device: deviceId.nullable(),
  status: z.enum(['ready', 'refusing']),
  /** Why it refuses, or null. */
  reason: z.string().nullable(),
  version: z.string(),
  manifest_id: z.string().nullable(),
  manifest_expires_at: z.string().nullable(),
  mode: meshMode.nullable(),
  /**
   * Lacks of the device with reasons: `{ "docker.container.list": "no engine socket" }`; `sandbox`:
   * why reads are confined weakly or not at all.
   */
  unavailable: z.record(z.string(), z.string()),
  /** What this version of the agent knows of; absent: the first sixteen. */
  knows: z.array(z.string().max(100)).max(200).optional(),
  /** The sandbox of auto-approved reads: `bwrap`, `unshare`, `user`. `none`: each needs a grant. */
  sandbox: z.enum(['bwrap', 'unshare', 'user', 'none']),
  journal: z.strictObject({ entries: z.number().int(), head: sha256 }).nullable(),
  uptime_seconds: z.number().int(),
})
export type MeshHealth = z.infer<typeof meshHealth>

/** Fields that this version's agents know, by `/health`; older agents are not sent them. */
export const knownFields = ['request.names', 'call.if'] as const

/** No request may take longer, whatever its deadline says. */
export const maxSeconds = 3_600
/** Both clocks may be this far apart, and nonces are remembered for as long. */
export const clockSkewSeconds = 300
export const grantSeconds = 120
