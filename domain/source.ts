import { z } from 'zod'
import { toMachineNames } from './alert-machines.ts'
import type { RegistrySource, SourceDeclaration } from './declared-resources.ts'
import { sha256 } from './digest.ts'
import { findExporterHosts, runsExportersAttribute } from './exporter-hosts.ts'
import { type Attributes, type ResourceRef, resourceKey } from './registry.ts'

/** Sources of metrics, alerts, logs and pages, and the queries that they accept. */

export const sourceName = z
  .string()
  .regex(/^[a-z][a-z0-9-]{0,39}$/, 'must be small letters, digits and dashes, 40 at most')

/**
 * A reference to a credential. The credential itself stays at its place, and the core API reads it
 * at each use.
 */
const credentialRef = z
  .string()
  .max(500)
  .regex(
    /^(file:\/[^\0]+|env:NIGHTSHIFT_SOURCE_[A-Z0-9_]+)$/,
    'must be file:/path, or env:NIGHTSHIFT_SOURCE_ with a name',
  )

const credentialScheme = z.enum(['Bearer', 'Basic', 'ApiKey', 'Token'])

/** Whether a text is a reference to a file or a variable, and not the value itself. */
export const isReference = (text: string): boolean => /^(file|env):/.test(text)

/** The name of a tenant, or a reference from which the API process reads it. */
const tenant = z
  .string()
  .min(1)
  .max(500)
  .regex(/^[\x21-\x7e]+$/, 'must be letters, digits and signs, without spaces')
  .refine((text) => !isReference(text) || credentialRef.safeParse(text).success, {
    error: 'must be a tenant, or file:/path, or env:NIGHTSHIFT_SOURCE_ with a name',
  })
  .optional()

/**
 * The header that names the tenant. No other header is allowed; a credential is set with
 * `credential`.
 */
const tenantHeaders = z.strictObject({
  'X-Scope-OrgID': tenant,
  AccountID: tenant,
  ProjectID: tenant,
  'THANOS-TENANT': tenant,
})

const place = z.string().regex(/^\//).max(500).nullable().default(null)

const sourceInput = z.strictObject({
  kind: z.string().min(1).max(40),
  url: z.url({ protocol: /^(?:https?|postgresql|mysql)$/ }).max(500),
  credential: credentialRef.nullable().default(null),
  /** A credential that is used only for writes, after an approval. */
  writeCredential: credentialRef.nullable().default(null),
  /**
   * How the credential is sent. Null stands for a bearer token, or for Basic if the credential is
   * `user:password`.
   */
  scheme: credentialScheme.nullable().default(null),
  headers: tenantHeaders.default({}),
  /** PEM file of the certificate authorities to trust, instead of the system's authorities. */
  caFile: place,
  /** PEM files of the client certificate and its key. */
  certFile: place,
  keyFile: place,
  options: z.record(z.string(), z.unknown()).default({}),
  timeoutSeconds: z.number().int().min(1).max(60).default(10),
})
export type SourceInput = z.infer<typeof sourceInput>

/**
 * Whether an admin allowed a model to write SQL statements for this source. False if the option is
 * absent.
 */
export const allowsStatements = ({ query }: Record<string, unknown>): boolean => query === 'allowed'

/**
 * The request body that sets a source. Without `credential` the source has no credential. If the
 * address of a source changes, the credential must be stated.
 */
export const sourcePut = sourceInput.extend({
  credential: credentialRef.nullable().optional(),
  writeCredential: credentialRef.nullable().optional(),
  /**
   * SHA-256 of the values behind the references, joined by commas. Required if a secret would be
   * sent to another address than before. Compared, never stored.
   */
  credentialSha256: z
    .string()
    .regex(/^[0-9a-f]{64}(,[0-9a-f]{64}){0,5}$/, 'is not a SHA-256 in hexadecimal')
    .optional(),
})

/**
 * Lists a source's references to secrets. A secret may be sent only to the server of the source.
 */
export const listReferences = ({
  credential,
  writeCredential,
  headers,
  keyFile,
}: Pick<SourceInput, 'credential' | 'writeCredential' | 'headers' | 'keyFile'>) => [
  ...[credential, writeCredential].filter((each) => typeof each === 'string'),
  ...Object.values(headers).filter(isReference),
  ...(keyFile === null ? [] : [`file:${keyFile}`]),
]

const usualPorts: Record<string, string> = { 'postgresql:': '5432', 'mysql:': '3306' }

/**
 * Returns the server of an address, in normalized form without path, because a credential is given
 * for a server, not for a path.
 */
export function addressOf(address: string): string {
  const { protocol, origin, hostname, port } = new URL(address)
  const usual = usualPorts[protocol]
  return usual === undefined ? origin : `${protocol}//${hostname.toLowerCase()}:${port || usual}`
}

const source = sourceInput.extend({ name: sourceName, createdBy: z.string(), createdAt: z.string() })
export type Source = z.infer<typeof source>

/**
 * The state of a source as this process last saw it. `resting`: after too many failures, no
 * requests are sent to the source until `restsUntil`.
 */
const sourceHealth = z.object({
  state: z.enum(['unknown', 'ok', 'failing', 'resting']),
  lastOkAt: z.string().nullable(),
  lastError: z.string().nullable(),
  restsUntil: z.string().nullable(),
})
export type SourceHealth = z.infer<typeof sourceHealth>

export const listedSource = source.extend({ health: sourceHealth })
export type ListedSource = z.infer<typeof listedSource>

/** How a source responded to a small test query. */
export const sourceTest = z.object({ ok: z.boolean(), code: z.string().nullable(), detail: z.string() })

/**
 * The verdict about a query. `bounded`: fields that would make the query acceptable, if code knows
 * them. `instead`: a query to send in its place.
 */
export type QueryVerdict =
  | { ok: true }
  | { ok: false; reason: string; bounded: Record<string, string> | null; instead?: string }

/** A response of a source: the summary for the model, and the digest of the whole response. */
export const sourceReading = z.object({
  source: z.string(),
  /** Whether the query searched everything and found nothing, which is evidence of absence. */
  isEmpty: z.boolean(),
  /** Whether the result may be incomplete, so that an empty result is no evidence of absence. */
  isPartial: z.boolean().default(false),
  /** The summary that code makes, at most 2 kB. */
  summary: z.unknown(),
  /**
   * The digest of the whole response, from which `read_result` shows more. Null if the summary
   * contains the whole response.
   */
  digest: z.string().nullable(),
  /**
   * Known resources that the query names. `isSource`: the resource is the queried source itself,
   * whatever it responded.
   */
  about: z.array(z.object({ kind: z.string(), id: z.string(), name: z.string(), isSource: z.boolean().optional() })),
})
export type SourceReading = z.infer<typeof sourceReading>

const partMark = '# a part of what was asked for'

/** Marks a partial result in its first line, because `read_result` reads single lines. */
export const markPart = (whole: string): string => `${partMark}\n${whole}`

/** Reads and removes the mark of a partial result in a stored text. */
export function readPart(whole: string): { text: string; isPart: boolean } {
  const mark = `${partMark}\n`
  if (whole.startsWith(mark)) return { text: whole.slice(mark.length), isPart: true }
  return { text: whole, isPart: /"(?:truncated|total_is_more|isPartial|more)": ?true/.test(whole) }
}

const unitSeconds: Record<string, number> = { ms: 0.001, s: 1, m: 60, h: 3_600, d: 86_400, w: 604_800, y: 31_536_000 }

/** Parses `90s`, `1h30m` or `300` (seconds) to seconds; null for any other text. */
export function parseDuration(text: string): number | null {
  const plain = text.trim()
  if (/^\d+(\.\d+)?$/.test(plain)) return Number(plain)
  if (!/^(\d+(ms|[smhdwy]))+$/.test(plain)) return null
  let seconds = 0
  for (const [, count = '0', unit = 's'] of plain.matchAll(/(\d+)(ms|[smhdwy])/g))
    seconds += Number(count) * (unitSeconds[unit] as number)
  return seconds
}

/**
 * A scrape target as a metrics source lists it, with the labels that all series of the target have.
 */
export type ListedTarget = {
  labels: Readonly<Record<string, string>>
  /** The result and time of the target's last scrape; null if the source does not report them. */
  scraped?: { isUp: boolean; at: string } | null
}

/**
 * Maximum number of targets of one source in the registry. A longer list is refused, and the
 * previous list is kept.
 */
export const maxTargets = 100_000

const maxAttributes = 8
const maxIdCharacters = 128

/**
 * The source under which the registry stores targets. It has no authority: a target may add a lease
 * or a denial, but allows nothing.
 */
export const targetsSource = ({ kind, name }: { kind: string; name: string }): RegistrySource => ({
  name: `${kind}:${name}`,
  hasAuthority: false,
})

/**
 * Returns the full name of the machine in an `instance`; null if it names no machine, or only the
 * metrics server's own machine.
 */
export const machineOfInstance = (instance: string): string | null => toMachineNames(instance)[0] ?? null

/**
 * Converts targets to resources, one for each `instance` over all scrape jobs. A target on a known
 * machine becomes another name of the machine. Leaves out values that change with every scrape, so
 * that an unchanged list is not stored again.
 */
export function targetsToDeclared(
  targets: readonly ListedTarget[],
  findMachine: (name: string) => ResourceRef | null,
): SourceDeclaration {
  const byId = new Map<string, { instance: string; jobs: Set<string>; labels: Record<string, string> }>()
  const withName = targets.flatMap(({ labels }) => {
    const instance = withoutSecrets(labels.instance ?? '')
    const id = toTargetId(instance)
    return id === null ? [] : [{ id, instance, labels }]
  })
  for (const { id, instance, labels } of withName.sort(byIdAndLabels)) {
    const known = byId.get(id) ?? { instance, jobs: new Set<string>(), labels: { ...labels } }
    if (labels.job) known.jobs.add(labels.job)
    byId.set(id, known)
  }
  const all = [...byId].map(([id, each]) => {
    const name = machineOfInstance(each.instance)
    return { id, ...each, machine: name === null ? null : findMachine(name) }
  })
  const exporterHosts = findExporterHosts(
    all.flatMap(({ jobs, machine }) =>
      machine ? [...jobs].map((job) => ({ job, machine: resourceKey(machine) })) : [],
    ),
  )
  const isOnExporterHost = (machine: ResourceRef | null) => machine !== null && exporterHosts.has(resourceKey(machine))
  return {
    resources: all.map(({ id, instance, jobs, labels, machine }) => ({
      kind: 'target' as const,
      id,
      name: instance.slice(0, 200),
      attributes: {
        ...toAttributes([...jobs], labels),
        ...(isOnExporterHost(machine) && { [runsExportersAttribute]: true }),
      },
    })),
    relations: all.flatMap(({ id, machine }) =>
      machine === null ? [] : [{ from: { kind: 'target' as const, id }, kind: 'same_as' as const, to: machine }],
    ),
  }
}

type Named = { id: string; labels: Readonly<Record<string, string>> }

/**
 * Compares targets, so that every server sorts them in one way. The digest of a list then shows
 * whether the list changed.
 */
function byIdAndLabels(a: Named, b: Named): number {
  const [left, right] = a.id === b.id ? [sortKey(a), sortKey(b)] : [a.id, b.id]
  return left < right ? -1 : left > right ? 1 : 0
}

const sortKey = ({ labels }: Named): string => JSON.stringify(Object.entries(labels).sort(byName))

const byName = ([a]: readonly [string, unknown], [b]: readonly [string, unknown]): number => (a < b ? -1 : 1)

/** Removes user, password and token from the address of a probed page. */
const withoutSecrets = (instance: string): string =>
  instance
    .trim()
    .replace(/[?#].*$/s, '')
    .replace(/^([a-z][a-z0-9+.-]*:\/\/)[^/]*@/i, '$1')

/**
 * Converts an `instance` to an id. If the instance has characters that an id may not have
 * (`https://…/health`), a hash is added to keep ids distinct.
 */
function toTargetId(instance: string): string | null {
  const plain = instance
    .replace(/^[a-z][a-z0-9+.-]*:\/\//i, '')
    .replace(/[^A-Za-z0-9._:@-]+/g, '-')
    .replace(/^[^A-Za-z0-9]+/, '')
  if (plain === '') return null
  if (plain === instance && plain.length <= maxIdCharacters) return plain
  return `${plain.slice(0, maxIdCharacters - 9)}-${sha256(instance).slice(0, 8)}`
}

function toAttributes(jobs: readonly string[], labels: Readonly<Record<string, string>>): Attributes {
  const others = Object.entries(labels)
    .filter(([name]) => name !== 'instance' && name !== 'job')
    .sort(byName)
    .slice(0, maxAttributes)
  return Object.fromEntries(
    [['job', [...jobs].sort().join(', ')] as const, ...others].map(([name, value]) => [
      name.slice(0, 100),
      value.slice(0, 200),
    ]),
  )
}

/**
 * Names to search for in logs: names of the machine, of its service and of its workload, and the
 * labels of the alert.
 */
export type LogSubject = {
  machine: readonly string[]
  unit: readonly string[]
  workload: readonly string[]
  alertLabels: Readonly<Record<string, string>>
}

/** The newest log lines of a resource, oldest first, and the labels of the query. Untrusted. */
const lastLines = z.object({ labels: z.record(z.string(), z.string()), lines: z.array(z.string()) })
export type LastLines = z.infer<typeof lastLines>

/**
 * Log lines about the resource of an incident from each source of logs, or why a source returned
 * none.
 */
export const lastLogs = z.array(
  z.union([lastLines.extend({ source: z.string() }), z.object({ source: z.string(), notRead: z.string() })]),
)
export type LastLogs = z.infer<typeof lastLogs>

/** Facts from each database server about an incident, or why a server returned none. */
export const databaseFacts = z.array(
  z.union([
    z.object({ source: z.string(), facts: z.array(z.string()) }),
    z.object({ source: z.string(), notRead: z.string() }),
  ]),
)
export type DatabaseFacts = z.infer<typeof databaseFacts>

/** Facts from the cluster of the resource about an incident, or why the cluster returned none. */
export const clusterFacts = databaseFacts
