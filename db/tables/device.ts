import type { ColumnType, Generated } from 'kysely'
import type { DeviceTerms, Guests } from '../../domain/device.ts'
import type { Manifest, MeshHealth, MeshMode } from '../../domain/mesh.ts'
import type { Deadline, Json, NullableTime, Time } from './column.ts'

/** Devices with an agent, the keys they believe, and what they were called for. */
export type DeviceTables = {
  device: {
    id: string
    resourceKind: 'node' | 'host' | 'vm'
    resourceId: string
    url: string
    urlEnv: string | null
    mode: MeshMode
    guests: Guests | null
    timeoutSeconds: number
    toolsAllowed: Json<string[]>
    enabled: Generated<boolean>
    terms: Json<DeviceTerms>
    manifestDays: number
    manifest: ColumnType<Manifest | null, undefined, string>
    manifestExpiresAt: NullableTime
    /** Of the secret by which the device fetches its next manifest. */
    refreshSha256: ColumnType<string | null, undefined, string | null>
    health: ColumnType<MeshHealth | null, undefined, string | null>
    healthProblem: ColumnType<string | null, undefined, string | null>
    healthAt: NullableTime
    createdAt: Time
    enrolledAt: NullableTime
    revokedAt: NullableTime
  }
  deviceEnrolment: {
    sha256: string
    deviceId: string
    createdBy: string
    createdAt: Time
    expiresAt: Deadline
    usedAt: NullableTime
  }
  meshKey: {
    id: string
    publicKey: string
    knownSince: Time
    signingSince: NullableTime
    notAfter: NullableTime
  }
  deviceCall: {
    key: string
    requestId: string
    deviceId: string
    incidentId: string | null
    callId: string | null
    capability: string
    argsDigest: string
    rehearse: boolean
    grantId: string | null
    authority: string | null
    begunAt: Time
    finishedAt: NullableTime
    ok: boolean | null
    errorCode: string | null
    approvalStatus: string | null
    auditHash: string | null
    truncated: boolean | null
    durationMs: number | null
  }
}
