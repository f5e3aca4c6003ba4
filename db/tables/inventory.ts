import type { ColumnType, Generated } from 'kysely'
import type { DeviceTerms, Guests } from '../../domain/device.ts'
import type { InventoryKind, RelationKind } from '../../domain/kinds.ts'
import type { Manifest, MeshHealth, MeshMode } from '../../domain/mesh.ts'
import type { Obstacle, Plan, PlanProof, Standing, Triage } from '../../domain/placement.ts'
import type { Attributes } from '../../domain/registry.ts'
import type { SiteChange, SiteFault } from '../../domain/site.ts'
import type { SourceInput } from '../../domain/source.ts'
import type { Deadline, Json, JsonOrDefault, JsonOrNull, NullableTime, Time } from '../tables.ts'

/**
 * Regions, shards, nodes, tenants, hosts, VMs and links, as the platform last reported them; and
 * imports.
 */
export type InventoryTables = {
  region: { id: string }
  shard: { id: string; region: string; role: string; status: Generated<string>; config: Json<Record<string, unknown>> }
  node: {
    id: string
    shard: string
    region: string
    role: string
    hostname: string
    ip: string
    status: Generated<string>
    reason: string | null
    replicationLagSeconds: number | null
    diskUsedBytes: number | null
    diskQuotaBytes: number | null
    diskByDirectory: Json<Record<string, number>>
  }
  tenant: { id: string; name: string; shard: string; status: Generated<string> }
  host: {
    id: string
    region: string
    rack: string
    state: string
    ramMib: number
    cpuMc: number
    ramReserveMib: number | null
    cpuReserveMc: number | null
  }
  vm: {
    id: string
    host: string | null
    running: boolean
    ramMib: number
    cpuMc: number
    haGroup: string | null
    priority: Generated<number>
    pinnedTo: JsonOrDefault<string[]>
    forbiddenHosts: JsonOrDefault<string[]>
    affinityGroup: string | null
    tenant: string | null
    startedAt: NullableTime
    busy: Generated<string | null>
  }
  link: { a: string; b: string; cost: number; up: boolean }
  inventorySync: { onlyRow: Generated<boolean>; at: Time }
  inventoryImport: {
    id: string
    who: string
    isDryRun: boolean
    entries: number
    state: Generated<'running' | 'done' | 'failed'>
    /** The current step of the import, in which `done` of `total` entries are processed. */
    step: Generated<string>
    done: Generated<number>
    total: Generated<number>
    change: JsonOrNull<SiteChange>
    faults: JsonOrNull<SiteFault[]>
    /** Why the import failed. */
    reason: string | null
    createdAt: Time
    seenAt: Time
    endedAt: NullableTime
  }
}

/** Resources that sources list. The table `resource` is computed from `resource_source`. */
export type RegistryTables = {
  registrySource: {
    source: string
    hasAuthority: boolean
    digest: string
    relationsDigest: string | null
    seenAt: Time
  }
  resourceSource: {
    kind: InventoryKind
    id: string
    source: string
    name: string
    aliases: Generated<string[]>
    /** Names in normalized form, for matching alerts. */
    names: string[]
    attributes: JsonOrDefault<Attributes>
    seenAt: Time
  }
  resource: {
    kind: InventoryKind
    id: string
    name: string
    /** Names in lower case, for matching alerts. */
    names: string[]
    canonical: string
    leaseKey: string
    team: string | null
    firstSeenAt: Time
  }
  relation: {
    fromKind: InventoryKind
    fromId: string
    kind: RelationKind
    toKind: InventoryKind
    toId: string
    source: string
  }
}

/** Sources of metrics, alerts, logs and pages. */
export type SourceTables = {
  source: {
    name: string
    kind: string
    url: string
    credential: string | null
    writeCredential: string | null
    scheme: SourceInput['scheme']
    headers: JsonOrDefault<SourceInput['headers']>
    caFile: string | null
    certFile: string | null
    keyFile: string | null
    options: Json<Record<string, unknown>>
    timeoutSeconds: number
    createdBy: string
    createdAt: Time
  }
  /** Servers to which a credential may be sent. */
  credentialAddress: { reference: string; address: string; givenAt: Time }
  /** Whole responses of sources, for the incident that requested them. */
  sourceReading: { incidentId: string; digest: string; source: string; tool: string; at: Time }
  /** Pods of clusters and their owners, each with its workload. */
  clusterMember: {
    source: string
    uid: string
    namespace: string
    name: string
    workload: string
    goneAt: string | null
  }
  /** The digest of each cluster's last list of members. An unchanged list is not merged again. */
  clusterListing: { source: string; digest: string }
  /** Counters of the statements of a database server, once a day. */
  statementSnapshot: {
    source: string
    day: string
    takenAt: Time
    server: string
    version: string
    countedSince: string | null
    isWhole: boolean
    counts: string
  }
  /** The silences of each Alertmanager by its last response, one row for each Alertmanager. */
  sourceSilences: {
    source: string
    /** The address of the Alertmanager that was queried. */
    url: string
    triedAt: Deadline
    readAt: NullableTime
    fault: string | null
    digest: string
    silences: string
  }
}

/**
 * Deployments and other changes. A change has a row for each resource, or one row if no resource
 * was found.
 */
export type ChangeTables = {
  change: {
    id: string
    source: string
    delivery: string
    part: number
    at: Time
    receivedAt: Time
    title: string
    author: string | null
    url: string | null
    revision: string | null
    environment: string | null
    resourceKind: string | null
    resourceId: string | null
    why: string
    labels: Json<Record<string, string>>
  }
}

/** Placement plans. */
export type PlacementTables = {
  proposal: {
    id: string
    incidentId: string | null
    intent: string
    hostIds: Json<string[]>
    state: string
    migrations: number
    steps: Json<unknown>
    lowerBound: Generated<number>
    fromInventory: Generated<boolean>
    proof: JsonOrDefault<PlanProof>
    unplaced: JsonOrDefault<Plan['unplaced']>
    triage: JsonOrNull<Triage>
    obstacle: Json<Obstacle | null> | null
    standing: Json<Standing | null> | null
    reason: string | null
    planDigest: string
    stateFingerprint: string
    problem: Json<unknown>
    createdAt: Time
  }
}

/** Devices with an agent, the keys that they trust, and calls to them. */
export type DeviceTables = {
  device: {
    id: string
    resourceKind: 'node' | 'host' | 'vm'
    resourceId: string
    /** The address of the agent; null if the agent connects to the API. */
    url: string | null
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
    /** The hash of the secret with which the device gets its next manifest. */
    refreshSha256: ColumnType<string | null, undefined, string | null>
    /** The public key of an agent that connects to the API. */
    agentKey: ColumnType<string | null, undefined, string | null>
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
  meshProcess: { id: string; name: string; startedAt: Time; seenAt: Time }
  deviceConnection: {
    deviceId: string
    connection: string
    processId: string | null
    process: string
    address: string
    agentVersion: string
    connectedAt: Time
    endedAt: NullableTime
  }
  meshRelay: {
    id: string
    deviceId: string
    toProcess: string
    fromProcess: string
    sealed: Buffer
    expiresAt: Deadline
  }
  meshRelayPiece: { relayId: string; n: number; toProcess: string; sealed: Buffer; expiresAt: Deadline }
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
