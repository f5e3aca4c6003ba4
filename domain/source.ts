import { z } from 'zod'
import { toMachineNames } from './alert-machines.ts'
import type { RegistrySource, SourceDeclaration } from './declared-resources.ts'
import { sha256 } from './digest.ts'
import { findExporterHosts, runsExportersAttribute } from './exporter-hosts.ts'
import { type Attributes, type ResourceRef, resourceKey } from './registry.ts'

/** Sources of metrics, alerts, logs and pages, and the queries they take. */

export const sourceName = z
  .string()
  .regex(/^[a-z][a-z0-9-]{0,39}$/, 'takes small letters, digits and dashes, 40 at most')

/** How the core API gets at a credential: it stays where it is, and is read each time. */
const credentialRef = z
  .string()
  .max(500)
  .regex(/^(file:\/[^\0]+|env:NIGHTSHIFT_SOURCE_[A-Z0-9_]+)$/, 'is file:/path, or env:NIGHTSHIFT_SOURCE_ with a name')

const credentialScheme = z.enum(['Bearer', 'Basic', 'ApiKey', 'Token'])

/** Is it read from a file or a variable, and not meant as it stands? */
export const isReference = (text: string): boolean => /^(file|env):/.test(text)

/** The tenant as it is sent, or where the API process reads it. */
const tenant = z
  .string()
  .min(1)
  .max(500)
  .regex(/^[\x21-\x7e]+$/, 'takes letters, digits and signs, no spaces')
  .refine((text) => !isReference(text) || credentialRef.safeParse(text).success, {
    error: 'is a tenant, or file:/path, or env:NIGHTSHIFT_SOURCE_ with a name',
  })
  .optional()

/**
 * The header that names whose data is asked for, and the only one allowed: credentials go by
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
  /** A login for the kind's writes alone: effects read it, once a person approved. */
  writeCredential: credentialRef.nullable().default(null),
  /** How the credential is sent. Null: as a bearer token, `user:password` as Basic. */
  scheme: credentialScheme.nullable().default(null),
  headers: tenantHeaders.default({}),
  /** PEM file of the authorities to believe, instead of those of the system. */
  caFile: place,
  /** PEM files of the certificate that the server asks of its clients, and of its key. */
  certFile: place,
  keyFile: place,
  options: z.record(z.string(), z.unknown()).default({}),
  timeoutSeconds: z.number().int().min(1).max(60).default(10),
})
export type SourceInput = z.infer<typeof sourceInput>

/** An admin allowed that a model writes statements for it; what is not said is not allowed. */
export const allowsStatements = ({ query }: Record<string, unknown>): boolean => query === 'allowed'

/** What somebody puts: without `credential` none is meant, where the address did not change. */
export const sourcePut = sourceInput.extend({
  credential: credentialRef.nullable().optional(),
  writeCredential: credentialRef.nullable().optional(),
  /**
   * SHA-256 of what each reference names, joined by commas: asked for where another address would
   * be sent it. Compared, stored nowhere.
   */
  credentialSha256: z
    .string()
    .regex(/^[0-9a-f]{64}(,[0-9a-f]{64}){0,5}$/, 'is no SHA-256 in hexadecimal')
    .optional(),
})

/** Secrets read elsewhere that let us in at a server: each belongs to its servers. */
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
 * The server of an address: a credential is given for it. One spelling a server, whatever stands
 * behind its port.
 */
export function addressOf(address: string): string {
  const { protocol, origin, hostname, port } = new URL(address)
  const usual = usualPorts[protocol]
  return usual === undefined ? origin : `${protocol}//${hostname.toLowerCase()}:${port || usual}`
}

const source = sourceInput.extend({ name: sourceName, createdBy: z.string(), createdAt: z.string() })
export type Source = z.infer<typeof source>

/**
 * A source's state as this process saw it last. `resting`: too many failures, nothing is asked
 * until then.
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

/** How a source answered something small. */
export const sourceTest = z.object({ ok: z.boolean(), code: z.string().nullable(), detail: z.string() })

/**
 * A query as code judges it. `bounded`: fields that make it sendable, where code knows them;
 * `instead`: what to ask where it knows none.
 */
export type QueryVerdict =
  | { ok: true }
  | { ok: false; reason: string; bounded: Record<string, string> | null; instead?: string }

/** What a read of a source answers: what the model sees, and where the whole is. */
export const sourceReading = z.object({
  source: z.string(),
  /** Nothing was found where all was searched: a look at nothing, and evidence of absence. */
  isEmpty: z.boolean(),
  /** Something may be missing, by the summary: nothing found is no evidence of absence. */
  isPartial: z.boolean().default(false),
  /** Made by code, 2 kB at most. */
  summary: z.unknown(),
  /** The whole answer; `read_result` shows more of it. Null: the summary is all. */
  digest: z.string().nullable(),
  /** Known resources that the query names. `isSource`: the asked one, whatever it answered. */
  about: z.array(z.object({ kind: z.string(), id: z.string(), name: z.string(), isSource: z.boolean().optional() })),
})
export type SourceReading = z.infer<typeof sourceReading>

const partMark = '# a part of what was asked for'

/** A whole that is a part: its first line says so, since lines of it are read later and alone. */
export const markPart = (whole: string): string => `${partMark}\n${whole}`

/** Whether a stored text of a source or tool, without its mark, is less than was asked for. */
export function readPart(whole: string): { text: string; isPart: boolean } {
  const mark = `${partMark}\n`
  if (whole.startsWith(mark)) return { text: whole.slice(mark.length), isPart: true }
  return { text: whole, isPart: /"(?:truncated|total_is_more|isPartial|more)": ?true/.test(whole) }
}

const unitSeconds: Record<string, number> = { ms: 0.001, s: 1, m: 60, h: 3_600, d: 86_400, w: 604_800, y: 31_536_000 }

/** `90s`, `1h30m` or `300` (seconds) as seconds, else null. */
export function parseDuration(text: string): number | null {
  const plain = text.trim()
  if (/^\d+(\.\d+)?$/.test(plain)) return Number(plain)
  if (!/^(\d+(ms|[smhdwy]))+$/.test(plain)) return null
  let seconds = 0
  for (const [, count = '0', unit = 's'] of plain.matchAll(/(\d+)(ms|[smhdwy])/g))
    seconds += Number(count) * (unitSeconds[unit] as number)
  return seconds
}

/** Targets that a metrics source scrapes, as it lists them: the labels on every series of each. */
export type ListedTarget = {
  labels: Readonly<Record<string, string>>
  /** How its last scrape went, and when that was; null where the source does not say. */
  scraped?: { isUp: boolean; at: string } | null
}

/** Targets of one source in the registry; a longer list is refused, and the old one stays. */
export const maxTargets = 100_000

const maxAttributes = 8
const maxIdCharacters = 128

/** What a source lists has no authority: it may add a lease or a denial, and widens nothing. */
export const targetsSource = ({ kind, name }: { kind: string; name: string }): RegistrySource => ({
  name: `${kind}:${name}`,
  hasAuthority: false,
})

/** The machine's full name in an `instance`; null where it names none, or the server itself. */
export const machineOfInstance = (instance: string): string | null => toMachineNames(instance)[0] ?? null

/**
 * Targets as resources, one for each `instance` over all jobs. One on a known machine is a name of
 * it. Leaves out what changes with every scrape: an unchanged list is not written.
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

/** One order, whatever the server's: a list's digest tells whether it changed. */
function byIdAndLabels(a: Named, b: Named): number {
  const [left, right] = a.id === b.id ? [sortKey(a), sortKey(b)] : [a.id, b.id]
  return left < right ? -1 : left > right ? 1 : 0
}

const sortKey = ({ labels }: Named): string => JSON.stringify(Object.entries(labels).sort(byName))

const byName = ([a]: readonly [string, unknown], [b]: readonly [string, unknown]): number => (a < b ? -1 : 1)

/** A probe's address may carry a user, a password or a token. */
const withoutSecrets = (instance: string): string =>
  instance
    .trim()
    .replace(/[?#].*$/s, '')
    .replace(/^([a-z][a-z0-9+.-]*:\/\/)[^/]*@/i, '$1')

/**
 * An instance as an id; one with characters no id has (`https://…/health`) gets a hash, so that two
 * stay two.
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
 * Names to ask logs about: the machine it is or runs on, its service there, its workload, and its
 * alert's words.
 */
export type LogSubject = {
  machine: readonly string[]
  unit: readonly string[]
  workload: readonly string[]
  alertLabels: Readonly<Record<string, string>>
}

/** The newest lines of a thing, oldest first, and the labels that found them. Untrusted. */
const lastLines = z.object({ labels: z.record(z.string(), z.string()), lines: z.array(z.string()) })
export type LastLines = z.infer<typeof lastLines>

/** What each source of logs holds of an incident's resource: lines, or why it gave none. */
export const lastLogs = z.array(
  z.union([lastLines.extend({ source: z.string() }), z.object({ source: z.string(), notRead: z.string() })]),
)
export type LastLogs = z.infer<typeof lastLogs>

/** Each database server's own lines about an incident, or why it said nothing. */
export const databaseFacts = z.array(
  z.union([
    z.object({ source: z.string(), facts: z.array(z.string()) }),
    z.object({ source: z.string(), notRead: z.string() }),
  ]),
)
export type DatabaseFacts = z.infer<typeof databaseFacts>

/** The same of the cluster that an incident's resource is of. */
export const clusterFacts = databaseFacts
