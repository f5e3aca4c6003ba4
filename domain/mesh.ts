import { z } from 'zod'

/**
 * The protocol between the control plane and the agent of a device (docs/reference/mesh.md): one
 * signed request per call. The agent accepts nothing else.
 *
 *   POST /capability        CapabilityRequest    → CapabilityAnswer
 *   GET  /operations/{id}   SignedRead           → CapabilityAnswer, or an SSE stream of a running one
 *   DELETE /operations/{id} CancelRequest        → CapabilityAnswer in its current state
 *   GET  /journal?after={n} SignedRead           → JournalPage
 *   GET  /health                                 → Health
 *
 * A request is signed with ed25519 over its canonical JSON (RFC 8785) without `signature`. A
 * request with a wrong signature, device, clock or nonce is refused.
 */

export const deviceId = z.string().regex(/^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$/, 'is not a device id')
const requestId = z.string().regex(/^req_[0-9a-f]{24}$/, 'is not a request id')
/** 16 random bytes in base64. */
const nonce = z.string().regex(/^[A-Za-z0-9+/]{22}==$/, 'is not a nonce of 16 bytes')
const moment = z.iso.datetime({ offset: false })
const sha256 = z.string().regex(/^[0-9a-f]{64}$/, 'is not a SHA-256')
const keyId = z.string().regex(/^[a-z0-9][a-z0-9._-]{0,63}$/, 'is not a key id')
/** An ed25519 signature: 64 bytes in base64. */
const signature = z.string().regex(/^[A-Za-z0-9+/]{86}==$/, 'is not an ed25519 signature')

/**
 * The name of something that a device can do. `mesh/specs/` describes each capability. An agent
 * refuses a capability that it does not have, and the API refuses a capability without a tool.
 */
export const capability = z
  .string()
  .max(60)
  .regex(/^[a-z]+(?:\.[a-z]+)+$/, 'is not the name of a capability')
export type Capability = z.infer<typeof capability>

/**
 * `user`: reads run without approval, everything else needs approval. `sudo`: everything needs an
 * approval and runs as root. `all`: both.
 */
export const meshMode = z.enum(['user', 'sudo', 'all'])
export type MeshMode = z.infer<typeof meshMode>

/**
 * Permission to do one action once. The control plane signs the grant for this device, this request
 * and exactly these arguments. The grant is valid for two minutes, and the device itself verifies
 * it.
 */
export const grant = z.strictObject({
  id: z.string().regex(/^grt_[0-9a-f]{24}$/, 'is not a grant id'),
  device: deviceId,
  request_id: requestId,
  capability,
  /** SHA-256 of the canonical arguments. */
  args_digest: sha256,
  /** The approval, or the standing grant of a person, on which this grant is based. */
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
  /** The time at which the device stops everything that the request started. */
  deadline: moment,
  device: deviceId,
  capability,
  args: z.record(z.string(), z.unknown()),
  /** The key by which the device answers a repeated request from its journal. */
  idempotency_key: z.string().min(1).max(512),
  /**
   * True for long output: the response comes at once, and the output is read from /operations/{id}.
   */
  stream: z.boolean().default(false),
  /** True if the command runs in a temporary copy, so that the device itself does not change. */
  rehearse: z.boolean().default(false),
  /**
   * Containers that the command enters, as the control plane looked them up. Absent if the command
   * enters none, because older agents refuse a request with this field.
   */
  names: z.array(z.string().min(1).max(1_000)).max(50).optional(),
  grant: grant.nullable(),
  key_id: keyId,
  signature,
})
export type CapabilityRequest = z.infer<typeof capabilityRequest>

/**
 * A request to stop a running operation. Signed like every request, with a nonce that is valid
 * once.
 */
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
 * Permission to read the journal of a device: `Authorization: Mesh <base64url of its JSON>`. Signed
 * like every request, for one path with its query, and with a nonce that is valid once.
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

/** Why a device refused or failed. Each code has one meaning. The model reads it unchanged. */
const meshErrorCode = z.enum([
  // The body is not a valid request.
  'malformed',
  'bad_signature',
  'unknown_key',
  'wrong_device',
  'clock_skew',
  'bad_deadline',
  'replayed_nonce',
  'manifest_invalid',
  // Codes of the device's guard.
  'blocked',
  'approval_required',
  'grant_forged',
  'grant_replayed',
  'grant_expired',
  'grant_wrong_device',
  'grant_altered',
  // Codes of the capability itself.
  'capability_unavailable',
  'invalid_arguments',
  'outside_roots',
  'not_found',
  'conflict',
  'failed',
  'timeout',
  'cancelled',
  'busy',
  // Codes of idempotency.
  'idempotency_key_reused',
  'indeterminate',
])
export type MeshErrorCode = z.infer<typeof meshErrorCode>

/**
 * `auto_approved`: the guard allowed the call without a grant. `granted`: a grant allowed the call.
 * `required`: the call needs a grant and has none. `refused`: the call or its grant is refused.
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
  /** The command that ran, after normalization; null if no command ran. */
  cmd_executed: z.string().nullable(),
  /** The end of the journal's chain after this call. Null if the call has no entry. */
  audit_hash: sha256.nullable(),
  truncated: z.boolean(),
  duration_ms: z.number().int().nonnegative(),
})
export type CapabilityAnswer = z.infer<typeof capabilityAnswer>

/**
 * An entry in the journal of a device, without its content. The hash covers the whole line of the
 * journal. The next entry contains this hash as `prev`.
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
  /** The number of the oldest entry that is kept. Older entries are pruned. */
  first: z.number().int().nonnegative(),
  /** The number of the newest entry. */
  last: z.number().int().nonnegative(),
  /**
   * Entries after the requested number, in order. Contains at least one entry, unless there is no
   * later entry.
   */
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
 * A command that checks the temporary copy before people are asked about a write: `["nginx", "-t",
 * "-c", "{path}"]`.
 */
const check = z.strictObject({ path: z.string().max(1_000), argv: z.array(z.string().max(1_000)).min(1).max(50) })

/**
 * A program, by absolute path or by name from the system's own folders, and its arguments. No shell
 * reads the program or the arguments.
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
  .refine(([program = '']) => /^(?:\/|[A-Za-z0-9])[^=\s]*$/.test(program), 'does not begin with a program')

/**
 * The signed list of what a device may do. An agent without a valid manifest serves only `/health`,
 * which shows the reason.
 */
export const manifest = z.strictObject({
  id: z.string().min(1).max(100),
  device: deviceId,
  mode: meshMode,
  /** Allowed capabilities. An empty list stands for every capability that the device has. */
  capabilities: z.array(capability).max(200),
  /** Directories that `fs.*` and `git.*` cannot leave. */
  roots: z.array(z.strictObject({ path: z.string().regex(/^\//).max(1_000), writable: z.boolean() })).max(50),
  /**
   * Programs of commands that may run automatically if the guard proves that they only read. If the
   * list is empty, every command that is proven to read may run.
   */
  auto_approve: z.array(z.string().max(200)).max(500).default([]),
  /**
   * Commands that may run automatically as root to read: exactly these words after `sudo -n`, if
   * the guard proves that the command only reads. None if the field is absent. An older agent
   * refuses a manifest with this field.
   */
  root_reads: z.array(rootRead).max(100).optional(),
  /** Hosts to which `git.clone` and `git.push` may connect. */
  git_hosts: z.array(z.string().max(253)).max(50).default([]),
  checks: z.array(check).max(100).default([]),
  limits: limits.prefault({}),
  /** Public keys of the control plane for requests and grants, each with an end. */
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
  /** Why the agent refuses requests; null if it accepts them. */
  reason: z.string().nullable(),
  version: z.string(),
  manifest_id: z.string().nullable(),
  manifest_expires_at: z.string().nullable(),
  mode: meshMode.nullable(),
  /**
   * Missing capabilities with reasons: `{ "docker.container.list": "no engine socket" }`. The entry
   * `sandbox` says why reads are isolated weakly or not at all.
   */
  unavailable: z.record(z.string(), z.string()),
  /**
   * Capabilities that this version of the agent knows. If the list is absent, the agent knows only
   * the first sixteen capabilities.
   */
  knows: z.array(z.string().max(100)).max(200).optional(),
  /**
   * The sandbox in which automatic reads run: `bwrap`, `unshare`, `user`. `none`: each read needs a
   * grant.
   */
  sandbox: z.enum(['bwrap', 'unshare', 'user', 'none']),
  journal: z.strictObject({ entries: z.number().int(), head: sha256 }).nullable(),
  uptime_seconds: z.number().int(),
})
export type MeshHealth = z.infer<typeof meshHealth>

/**
 * Fields that agents of this version accept, as `/health` reports. The control plane does not send
 * these fields to older agents.
 */
export const knownFields = ['request.names', 'call.if'] as const

/** Maximum seconds of a request, even if its deadline is later. */
export const maxSeconds = 3_600
/** Seconds by which the two clocks may differ, and for which nonces are remembered. */
export const clockSkewSeconds = 300
export const grantSeconds = 120
