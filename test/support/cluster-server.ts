import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { type ClusterKind, clusterKinds } from '../../sources/kubernetes/kinds.ts'

/**
 * A stand-in for an API server: lists in pages, watches from a version on, and answers 403, 410 and
 * 429 as a test says.
 */

export type ClusterObject = { metadata: Record<string, unknown> & { name: string; namespace?: string } } & Record<
  string,
  unknown
>

type Change = { version: number; type: 'ADDED' | 'MODIFIED' | 'DELETED'; kind: ClusterKind; object: ClusterObject }
type Refusal = { status: number; headers?: Record<string, string>; message?: string; body?: string; times: number }

export type StandInCluster = Awaited<ReturnType<typeof startCluster>>

export async function startCluster() {
  const objects = new Map<string, { kind: ClusterKind; object: ClusterObject }>()
  const changes: Change[] = []
  const refusals = new Map<ClusterKind | 'log' | 'version', Refusal>()
  const watches = new Set<{ kind: ClusterKind; namespace: string | null; response: ServerResponse }>()
  const asked: { path: string; query: URLSearchParams; authorization: string | undefined; atMs: number }[] = []
  const logs = new Map<string, string | Buffer>()
  let version = 1_000
  /** Versions before it are no longer kept. */
  let oldest = 0

  const keyOf = (kind: ClusterKind, { metadata: { namespace = '', name } }: ClusterObject) =>
    `${kind}/${namespace}/${name}`
  const send = (response: ServerResponse, status: number, body: unknown, headers: Record<string, string> = {}) => {
    response.writeHead(status, { 'content-type': 'application/json', ...headers })
    response.end(typeof body === 'string' ? body : JSON.stringify(body))
  }
  const refuse = (
    response: ServerResponse,
    { status, headers, message = `it says ${status}`, body }: Omit<Refusal, 'times'>,
  ) =>
    // What limits the requests of a real server answers before anything that knows of objects.
    status === 429
      ? send(response, status, 'Too many requests, please try again later.\n', {
          'content-type': 'text/plain',
          ...headers,
        })
      : send(response, status, body ?? statusOf(status, message), headers)
  const eventLine = ({ type, object }: { type: string; object: unknown }) => `${JSON.stringify({ type, object })}\n`
  const isOf = (place: { kind: ClusterKind; namespace: string | null }, kind: ClusterKind, object: ClusterObject) =>
    place.kind === kind && (place.namespace === null || place.namespace === object.metadata.namespace)

  function tell(change: Change): void {
    changes.push(change)
    for (const watch of watches) if (isOf(watch, change.kind, change.object)) watch.response.write(eventLine(change))
  }

  /** Puts an object, new or changed; its uid is its name unless it has one. */
  function put(kind: ClusterKind, object: ClusterObject): void {
    version += 1
    const { uid = `uid-of-${kind}-${object.metadata.name}` } = object.metadata
    const stored = { ...object, metadata: { ...object.metadata, uid, resourceVersion: String(version) } }
    const key = keyOf(kind, stored)
    const type = objects.has(key) ? 'MODIFIED' : 'ADDED'
    objects.set(key, { kind, object: stored })
    tell({ version, type, kind, object: stored })
  }

  function remove(kind: ClusterKind, namespace: string, name: string): void {
    const found = objects.get(`${kind}/${namespace}/${name}`)
    if (!found) throw new Error(`there is no ${kind} ${name}`)
    objects.delete(keyOf(kind, found.object))
    version += 1
    const object = { ...found.object, metadata: { ...found.object.metadata, resourceVersion: String(version) } }
    tell({ version, type: 'DELETED', kind, object })
  }

  function answer(request: IncomingMessage, response: ServerResponse) {
    const url = new URL(request.url ?? '/', 'http://stand-in')
    asked.push({
      path: url.pathname,
      query: url.searchParams,
      authorization: request.headers.authorization,
      atMs: performance.now(),
    })
    if (request.method !== 'GET') return refuse(response, { status: 405 })
    if (url.pathname === '/version') {
      const refusal = takeRefusal('version')
      return refusal ? refuse(response, refusal) : send(response, 200, { gitVersion: 'v1.34.4' })
    }
    const place = placeOf(url.pathname)
    if (!place) return refuse(response, { status: 404, message: 'the server could not find the requested resource' })
    const refusal = takeRefusal(place.isLog ? 'log' : place.kind)
    if (refusal) return refuse(response, refusal)
    if (place.isLog) return sendLog(response, `${place.namespace}/${place.name}`, url.searchParams)
    if (place.name !== null) {
      const found = objects.get(`${place.kind}/${place.namespace ?? ''}/${place.name}`)
      return found ? send(response, 200, { kind: place.kind, ...found.object }) : refuse(response, { status: 404 })
    }
    if (url.searchParams.get('watch') === 'true')
      return watch(response, place, Number(url.searchParams.get('resourceVersion')))
    return sendList(response, place, url.searchParams)
  }

  function takeRefusal(of: ClusterKind | 'log' | 'version'): Refusal | null {
    const refusal = refusals.get(of)
    if (!refusal || refusal.times <= 0) return null
    refusal.times -= 1
    return refusal
  }

  type Place = { kind: ClusterKind; namespace: string | null }

  function watch(response: ServerResponse, place: Place, from: number) {
    if (from > version)
      return refuse(response, { status: 504, message: `Too large resource version: ${from}, current: ${version}` })
    response.writeHead(200, { 'content-type': 'application/json' })
    response.flushHeaders()
    // A real server begins the watch, and says in its first event that it cannot go on.
    if (from < oldest)
      return response.end(
        eventLine({ type: 'ERROR', object: statusOf(410, `too old resource version: ${from} (${oldest})`) }),
      )
    for (const change of changes)
      if (change.version > from && isOf(place, change.kind, change.object)) response.write(eventLine(change))
    const entry = { ...place, response }
    watches.add(entry)
    return response.on('close', () => watches.delete(entry))
  }

  function sendList(response: ServerResponse, place: Place, query: URLSearchParams): void {
    const chosen = [...objects.values()]
      .filter(({ kind, object }) => isOf(place, kind, object) && isChosen(object, query.get('fieldSelector')))
      .map(({ object }) => object)
    const from = Number(query.get('continue') ?? 0)
    const limit = Number(query.get('limit') ?? 0) || chosen.length
    const rest = chosen.length > from + limit ? String(from + limit) : ''
    send(response, 200, {
      kind: `${place.kind}List`,
      metadata: { resourceVersion: String(version), ...(rest !== '' && { continue: rest }) },
      items: chosen.slice(from, from + limit),
    })
  }

  function sendLog(response: ServerResponse, key: string, query: URLSearchParams) {
    const text = logs.get(`${key}${query.get('previous') === 'true' ? ' previous' : ''}`)
    if (text === undefined) return refuse(response, { status: 400, message: 'previous terminated container not found' })
    response.writeHead(200, { 'content-type': 'text/plain' })
    return response.end(text)
  }

  const server = createServer(answer)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo

  return {
    url: `http://127.0.0.1:${port}`,
    asked,
    logs,
    put,
    remove,
    clear: () => {
      objects.clear()
      logs.clear()
    },
    /** The next answers about this kind, `times` of them. */
    refuse: (of: ClusterKind | 'log' | 'version', refusal: Omit<Refusal, 'times'>, times = Number.POSITIVE_INFINITY) =>
      refusals.set(of, { ...refusal, times }),
    allow: (of: ClusterKind | 'log' | 'version') => refusals.delete(of),
    /** Forgets what was before now, as an API server does after minutes, and ends all watches. */
    compact: () => {
      oldest = version + 1
      version += 1
      for (const { response } of watches) response.destroy()
    },
    /** Goes on with what another server, or a backup of this one, has: its versions are lower. */
    restore: () => {
      version = 10
      oldest = 0
      changes.length = 0
      for (const { response } of watches) response.destroy()
    },
    endWatches: () => {
      for (const { response } of watches) response.destroy()
    },
    watching: (kind: ClusterKind) => [...watches].filter((each) => each.kind === kind).length,
    /** Writes a line to the watches of a kind as it is. */
    say: (kind: ClusterKind, line: string) => {
      for (const each of watches) if (each.kind === kind) each.response.write(`${line}\n`)
    },
    stop: async () => {
      server.closeAllConnections()
      await new Promise<void>((resolve) => server.close(() => resolve()))
    },
  }
}

const statusOf = (code: number, message: string) => ({
  kind: 'Status',
  apiVersion: 'v1',
  metadata: {},
  status: 'Failure',
  message,
  code,
})

const isChosen = (object: ClusterObject, selector: string | null): boolean =>
  (selector ?? '')
    .split(',')
    .filter((each) => each !== '')
    .every((each) => {
      const [path = '', value] = each.split('=')
      const found = path
        .split('.')
        .reduce<unknown>((at, key) => (at as Record<string, unknown> | undefined)?.[key], object)
      return found === value
    })

function placeOf(path: string) {
  for (const [kind, { api, plural }] of Object.entries(clusterKinds) as [
    ClusterKind,
    { api: string; plural: string },
  ][]) {
    const found = new RegExp(`^${api}(?:/namespaces/([^/]+))?/${plural}(?:/([^/]+))?(/log)?$`).exec(path)
    if (found)
      return {
        kind,
        namespace: found[1] ?? null,
        name: found[2] ? decodeURIComponent(found[2]) : null,
        isLog: found[3] !== undefined,
      }
  }
  return null
}
