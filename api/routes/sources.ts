import { z } from '@hono/zod-openapi'
import { findBegan } from '../../db/incidents/began.ts'
import { incidentById } from '../../db/incidents/incidents.ts'
import { findAlertResources, resourceById } from '../../db/inventory/resources.ts'
import {
  ForeignAddress,
  listSources,
  putSource,
  removeSource,
  sourceByName,
  storeReading,
} from '../../db/inventory/sources.ts'
import { listSnapshots } from '../../db/inventory/statement-snapshots.ts'
import { recordAudit } from '../../db/log/audit.ts'
import { bodyOfIncident, wholeDigestOf } from '../../db/log/bodies.ts'
import { permissionsOf } from '../../domain/permissions.ts'
import { ref } from '../../domain/registry.ts'
import { nameFaults } from '../../domain/schema-faults.ts'
import {
  addressOf,
  type ListedSource,
  listedSource,
  markPart,
  readPart,
  type Source,
  type SourceReading,
  sourceName,
  sourcePut,
  sourceReading,
  sourceTest,
} from '../../domain/source.ts'
import { forgetSource, healthOf } from '../../sources/ask.ts'
import { defaultSourcesDirectory, findCredentialTrouble, findKnown } from '../../sources/credentials.ts'
import { SourceError, type SourceKind } from '../../sources/kind.ts'
import { planRead, probeSource, readSource, sourceKinds, sourceTools } from '../../sources/kinds.ts'
import type { ApiDeps } from '../deps.ts'
import { pageOf } from '../http/cursor.ts'
import { endpoint } from '../http/endpoint.ts'
import { notFound, Problem } from '../http/problem.ts'
import { syncSource } from '../sync-targets.ts'
import { incidentId } from './examples.ts'

const tag = 'sources'
const params = z.object({ name: sourceName })

const example: ListedSource = {
  name: 'main',
  kind: 'prometheus',
  url: 'https://prometheus.example.com',
  credential: `file:${defaultSourcesDirectory}/prometheus-token`,
  writeCredential: null,
  scheme: null,
  headers: { 'X-Scope-OrgID': 'tenant-a' },
  caFile: null,
  certFile: null,
  keyFile: null,
  options: {},
  timeoutSeconds: 10,
  createdBy: 'anna',
  createdAt: '2026-11-21T01:46:02.000000Z',
  health: { state: 'ok', lastOkAt: '2026-11-21T01:46:02.000Z', lastError: null, restsUntil: null },
}

const listed = (deps: ApiDeps, source: Source): ListedSource => ({
  ...source,
  health: healthOf(deps.sources, source, Date.now()),
})

const listEndpoint = endpoint({
  method: 'get',
  path: '/sources',
  permission: 'read',
  tag,
  summary: 'Sources by name, with the last state that this process saw',
  description: 'For a credential, the response has the reference to it, never the value.',
  answer: pageOf(listedSource),
  example: { items: [example], nextCursor: null },
  async run(_, deps) {
    return { items: (await listSources(deps.db)).map((each) => listed(deps, each)), nextCursor: null }
  },
})

const { health: _, name: __, createdBy: ___, createdAt: ____, ...bodyExample } = example

const putEndpoint = endpoint({
  method: 'put',
  path: '/sources/{name}',
  permission: 'write_config',
  tag,
  summary: 'Adds a source, or changes the source with that name',
  description: `Kinds: ${[...sourceKinds.values()].map(({ kind, title }) => `\`${kind}\` (${title})`).join(', ')}. A credential is a reference that the API process reads: \`file:/path\` below \`SOURCES_DIR\`, or \`env:NIGHTSHIFT_SOURCE_…\`. The value of a header, for example a tenant, may be such a reference too. If a changed address would get a credential, 422 \`CREDENTIAL_ASKED\` asks for its SHA-256, \`credentialSha256\` (several joined by commas), or for another \`credential\`.`,
  params,
  body: sourcePut,
  bodyExample,
  answer: listedSource,
  example,
  async run({ params: { name }, body, principal }, deps) {
    const kind = sourceKinds.get(body.kind)
    if (!kind) {
      throw new Problem(422, 'INVALID', `${body.kind} is not a kind of source: ${[...sourceKinds.keys()].join(', ')}`)
    }
    const options = kind.options.safeParse(body.options)
    if (!options.success) {
      throw new Problem(422, 'INVALID', `options.${nameFaults(options.error, { max: 1 })}`)
    }
    requireProtocol(kind, body.url)
    if (body.writeCredential && !kind.protocol)
      throw new Problem(
        422,
        'INVALID',
        `Nightshift only reads sources of the kind ${kind.kind}. Leave writeCredential out.`,
      )
    const { username, password, search, hash } = new URL(body.url)
    if (username !== '' || password !== '')
      throw new Problem(
        422,
        'INVALID',
        'The address contains a password: write the password to a file, and name that file as credential.',
      )
    if (search !== '' || hash !== '')
      throw new Problem(422, 'INVALID', 'The address has a query or a fragment: end it at the path.')
    if ((body.certFile === null) !== (body.keyFile === null))
      throw new Problem(422, 'INVALID', 'A certificate needs its key. Give both certFile and keyFile, or neither.')
    const { credentialSha256, credential = null, writeCredential = null, ...input } = body
    const put = { ...input, name, credential, writeCredential, options: options.data }
    await requireCredentialsAgain(deps, put, body)
    const trouble = findCredentialTrouble(put, deps.sources.directory)
    if (trouble && !trouble.isAbsent) throw new Problem(422, 'INVALID', `${trouble.text}.`)
    if (trouble === null) requireSound(kind, put, deps.sources.directory)
    const digests = credentialSha256?.split(',') ?? []
    const known = trouble === null ? findKnown(put, deps.sources.directory, digests) : []
    try {
      const { name: _, ...row } = put
      // Trusts only tokens that are not limited to some permissions. A token that may only change
      // settings may be lent, so it must not expose a file of this host.
      const isTrusted = principal.scopes.every((scope) => scope.startsWith('type:'))
      const source = await putSource(deps.db, name, row, principal.name, { known, isTrusted })
      forgetSource(deps.sources, name)
      return listed(deps, source)
    } catch (error) {
      if (!(error instanceof ForeignAddress)) throw error
      const detail = `${error.reference} was set for ${error.known.join(', ') || 'no address yet'}, and ${addressOf(put.url)} would now get this credential`
      await recordAudit(deps.db, { who: principal.name, what: 'source.credential_refused', subject: name, detail })
      const wrong = credentialSha256 === undefined ? '' : ' The SHA-256 that you sent does not match.'
      throw new Problem(422, 'CREDENTIAL_ASKED', `${detail}.${wrong} ${howToSend(error.reference)}`)
    }
  },
})

/** Refuses a source with a mistake that its kind detects. */
function requireSound(kind: SourceKind, put: Parameters<SourceKind['check'] & {}>[0], directory: string): void {
  try {
    kind.check?.(put, directory)
  } catch (error) {
    if (error instanceof SourceError) throw new Problem(422, 'INVALID', `${error.message}.`)
    throw error
  }
}

/** Requires the credentials again if the address changes. An omitted one would be lost. */
async function requireCredentialsAgain(
  { db }: ApiDeps,
  put: SourceUrl,
  given: Partial<Record<'credential' | 'writeCredential', unknown>>,
) {
  const before = await sourceByName(db, put.name)
  if (!before || addressOf(before.url) === addressOf(put.url)) return
  for (const field of ['credential', 'writeCredential'] as const) {
    if (given[field] !== undefined || !before[field]) continue
    const option = field === 'credential' ? '--credential' : '--write-credential'
    const detail = `The address of ${put.name} changes, and the source has a credential. Send "${field}" too: ${before[field]} again, another credential, or null (in the terminal ${option} REF, or ${option} none).`
    throw new Problem(422, 'CREDENTIAL_ASKED', detail)
  }
}

function requireProtocol({ kind, protocol }: SourceKind, url: string): void {
  const { protocol: given, hostname, port, pathname } = new URL(url)
  const isRight = protocol === undefined ? /^https?:$/.test(given) : given === `${protocol}:`
  // Requires a plain host name: without a host, a driver uses the host of its environment, and a
  // driver may read an encoded host differently.
  const isServer = /^(?:\[[\da-f:.]+\]|[\w.-]+)$/i.test(hostname) && port !== '0' && databaseForm.test(pathname)
  if (isRight && (protocol === undefined || isServer)) return
  const form = protocol === undefined ? 'http://HOST:PORT or https://HOST' : `${protocol}://HOST:PORT/DATABASE`
  throw new Problem(
    422,
    'INVALID',
    `The address of a source of the kind ${kind} must be ${form}, not ${isRight ? 'this' : `${given}//…`}.`,
  )
}

/** The form of one database name, with percent-encoded characters as in an address. */
const databaseForm = /^(?:\/(?:[\w.~$-]|%[2-7][\da-f]|%[c-f][\da-f](?:%[89ab][\da-f]){1,3}){0,200})?$/i

type SourceUrl = { name: string; url: string }

function howToSend(reference: string): string {
  const [kind, place = ''] = reference.split(/:(.*)/s)
  const digest = kind === 'file' ? `sha256sum < ${place}` : `printf %s "$${place}" | sha256sum`
  return `Send "credentialSha256" (in the terminal --credential-sha256): the first word of the output of "${digest}" on the host of the API. Or name another credential.`
}

const removeEndpoint = endpoint({
  method: 'post',
  path: '/sources/{name}/remove',
  permission: 'write_config',
  tag,
  summary: 'Removes a source; its earlier readings stay with their incidents',
  params,
  answer: z.object({ removed: z.string() }),
  example: { removed: 'main' },
  status: 200,
  problems: [404],
  async run({ params: { name }, principal }, deps) {
    if (!(await removeSource(deps.db, name, principal.name))) throw notFound(`source ${name}`)
    forgetSource(deps.sources, name)
    return { removed: name }
  },
})

const testEndpoint = endpoint({
  method: 'post',
  path: '/sources/{name}/test',
  permission: 'write_config',
  tag,
  summary: 'Tests a source with one query, and reports the result',
  description:
    'The test also adds the resources that the source lists to the registry. Without a test, the registry gets them every five minutes.',
  params,
  answer: sourceTest,
  example: { ok: true, code: null, detail: 'the source answers queries; 12 targets' },
  status: 200,
  problems: [404],
  async run({ params: { name } }, deps) {
    const source = await sourceByName(deps.db, name)
    if (!source) throw notFound(`source ${name}`)
    try {
      const detail = await probeSource(source, deps.sources)
      await syncSource(deps, source)
      return { ok: true, code: null, detail }
    } catch (error) {
      if (!(error instanceof SourceError)) throw error
      return { ok: false, code: error.code, detail: error.message }
    }
  },
})

const readBody = z.strictObject({ tool: z.string().min(1).max(60), arguments: z.record(z.string(), z.unknown()) })

const readExample: SourceReading = {
  source: 'main',
  isEmpty: false,
  isPartial: false,
  summary: { promql: 'up{instance="web-1:9100"}', seriesFound: 1, series: [] },
  digest: '0'.repeat(64),
  about: [{ kind: 'node', id: 'web-1', name: 'web-1.example.com' }],
}

const readEndpoint = endpoint({
  method: 'post',
  path: '/sources/read',
  permission: 'read',
  tag,
  summary: 'Reads a source by one of its tools',
  description: `Tools: ${[...sourceTools.keys()].map((name) => `\`${name}\``).join(', ')}. 422 \`UNBOUNDED_QUERY\` for a query without a limiting name or with too large a result; 424 with a code if the source did not answer.`,
  body: readBody,
  bodyExample: { tool: 'query_metrics', arguments: { promql: 'up{instance="web-1:9100"}', window: '1h' } },
  answer: sourceReading,
  example: readExample,
  status: 200,
  problems: [424],
  agent: {
    tools: 'the source tool that the request names',
    tool: (body) => (typeof body.tool === 'string' && sourceTools.has(body.tool) ? body.tool : null),
    identity: (_, body) => (body.arguments ?? {}) as Record<string, unknown>,
  },
  async run({ body, judged, principal }, deps) {
    const planned = planRead(await listSources(deps.db), body.tool, body.arguments)
    if (!planned.ok) throw new Problem(422, planned.code, planned.reason)
    // Refuses rows of a database's tables to people who are not admins. Investigations read them if
    // an admin allowed this.
    if (planned.tool.needs && !judged && !permissionsOf(principal).includes('write_config'))
      throw new Problem(
        403,
        'FORBIDDEN',
        `${body.tool} shows rows of tables, so only admins and investigations may use it.`,
      )
    const incident = judged ? await incidentById(deps.db, judged.incidentId) : null
    const incidentBeganMs = incident ? await findBegan(deps.db, incident) : null
    if (!judged) {
      const { name: subject } = planned.source
      const detail = `${body.tool} ${JSON.stringify(planned.args)}`
      await recordAudit(deps.db, { who: principal.name, what: 'source.read', subject, detail })
    }
    const startedAt = performance.now()
    try {
      const { name } = planned.source
      const pastStatements = () => listSnapshots(deps.db, name)
      const read = await readSource(planned, deps.sources, { nowMs: Date.now(), incidentBeganMs, pastStatements })
      const whole = read.isCut || read.isPartial ? markPart(read.whole) : read.whole
      const digest = incident
        ? await storeReading(deps.db, { incidentId: incident.id, source: name, tool: body.tool, whole })
        : null
      // Counts an empty result as a read only if it is evidence of absence.
      const isSeen = read.isEmpty || read.whole !== ''
      const named = isSeen ? await findAbout(deps, planned.tool.labels(planned.args)) : []
      const about = [...(await findItself(deps, planned.source)), ...named]
      return {
        source: name,
        isEmpty: read.isEmpty,
        isPartial: read.isPartial ?? false,
        summary: read.summary,
        digest,
        about,
      }
    } catch (error) {
      if (!(error instanceof SourceError)) throw error
      // Logs only at debug level, because `sources/ask.ts` logs once that a source does not
      // respond.
      deps.log.debug({ source: planned.source.name, code: error.code }, 'a source did not answer a query')
      throw new Problem(424, error.code, error.message)
    } finally {
      deps.metrics.sources.observe({ source: planned.source.name }, (performance.now() - startedAt) / 1000)
    }
  },
})

/** Finds the known resources that the query names. */
async function findAbout({ db }: ApiDeps, labels: Record<string, string>): Promise<SourceReading['about']> {
  const [found] = await findAlertResources(db, [labels], [])
  const resource = found?.resource
  return resource ? [{ kind: resource.kind, id: resource.id, name: resource.id }] : []
}

/** Finds the resource that is the source itself. */
async function findItself({ db }: ApiDeps, { kind, name }: Source): Promise<SourceReading['about']> {
  const is = sourceKinds.get(kind)?.is
  if (!is || !(await resourceById(db, ref(is, name)))) return []
  return [{ kind: is, id: name, name, isSource: true }]
}

const linesEndpoint = endpoint({
  method: 'get',
  path: '/incidents/{id}/bodies/{digest}/lines',
  permission: 'read',
  tag: 'incidents',
  summary: 'Lines of a large result',
  params: z.object({ id: z.string().regex(/^inc_[0-9a-z]{26}$/), digest: z.string().regex(/^[0-9a-f]{12,64}$/) }),
  query: z.object({
    from: z.coerce.number().int().min(1).max(1_000_000).default(1),
    limit: z.coerce.number().int().min(1).max(50).default(20),
    match: z.string().min(1).max(100).optional(),
  }),
  answer: z.object({
    total: z.number().int(),
    matching: z.number().int(),
    from: z.number().int(),
    lines: z.array(z.string()),
    /**
     * True if lines are missing: more lines match than are shown, a line is cut, or the stored text
     * is partial.
     */
    truncated: z.boolean(),
  }),
  example: {
    total: 120,
    matching: 1,
    from: 1,
    truncated: false,
    lines: ['{"labels":{"instance":"web-1:9100"},"points":[[1763689540,1]]}'],
  },
  problems: [404],
  async run({ scope, params: { id, digest }, query: { from, limit, match } }) {
    const whole = digest.length < 64 ? await wholeDigestOf(scope, id, digest) : digest
    const stored = whole === null ? null : await bodyOfIncident(scope, id, whole)
    if (stored === null) throw notFound(`body ${digest.slice(0, 12)}… of ${id || incidentId}`)
    const { text, isPart } = readPart(stored)
    const all = text.split('\n')
    const matching = match === undefined ? all : all.filter((line) => line.includes(match))
    const lines = fitLines(matching.slice(from - 1, from - 1 + limit), match)
    const isCut = lines.length < matching.length || lines.some((line, at) => line !== matching[at])
    // Assumes that a line which the device cut may have contained the searched text.
    const isUnseen = match !== undefined && all.some((line) => line.endsWith('…'))
    return { total: all.length, matching: matching.length, from, lines, truncated: isCut || isUnseen || isPart }
  },
})

const maxLineCharacters = 600
const maxCharacters = 6_000

/** Cuts a long line to its beginning, or to the part around the searched text. */
function cutAround(line: string, match: string): string {
  const at = line.indexOf(match)
  const start = at + match.length <= maxLineCharacters ? 0 : Math.max(0, at - maxLineCharacters / 2)
  const piece = line.slice(start, start + maxLineCharacters)
  return `${start > 0 ? '…' : ''}${piece}… (${line.length} characters)`
}

/** Limits lines to as many as a model should read at once. A long line is cut and marked. */
function fitLines(lines: readonly string[], match = ''): string[] {
  const kept: string[] = []
  let characters = 0
  for (const line of lines) {
    const cut = line.length > maxLineCharacters ? cutAround(line, match) : line
    characters += cut.length
    if (characters > maxCharacters) break
    kept.push(cut.toWellFormed())
  }
  return kept
}

/**
 * Routes for sources of metrics, alerts, logs and pages, and for reads from sources. A read is
 * judged again, and uses credentials that only this process has.
 */
export const sourceRoutes = [listEndpoint, putEndpoint, removeEndpoint, testEndpoint, readEndpoint, linesEndpoint]
