import { request } from 'node:https'
import { text } from 'node:stream/consumers'
import { parse } from 'yaml'

/** An object of the cluster's API, as far as the lab reads it. */
// biome-ignore lint/suspicious/noExplicitAny: objects of the API have the shape of their kind, and the lab reads its own
export type ApiObject = any

/**
 * The API of the lab's cluster, used as its admin. All functions except `find` throw the API's
 * error.
 */
export type ClusterApi = {
  get(path: string): Promise<ApiObject>
  /** Returns null if the object is absent. */
  find(path: string): Promise<ApiObject | null>
  list(path: string): Promise<ApiObject[]>
  create(path: string, object: object): Promise<ApiObject>
  /** Sends a merge patch, in which null removes a field. `manager` is recorded as the author. */
  patch(path: string, change: object, manager?: string): Promise<ApiObject>
  /** Reads an object, changes it, and writes it back. `manager` is recorded as the author. */
  change(path: string, change: (object: ApiObject) => void, manager?: string): Promise<ApiObject>
  /** Does nothing if the object is already gone. */
  remove(path: string): Promise<void>
  text(path: string): Promise<string>
}

class ClusterRefusal extends Error {
  override name = 'ClusterRefusal'
  readonly status: number
  constructor(status: number, message: string) {
    super(message)
    this.status = status
  }
}

type Access = { server: string; ca: string; cert: string; key: string }

export function connectCluster(kubeconfig: string): ClusterApi {
  const access = readAccess(kubeconfig)
  const ask = async (method: string, path: string, body?: object, type = 'application/json') => {
    const answer = await exchange(access, method, path, body && JSON.stringify(body), type)
    if (answer.status >= 300) throw new ClusterRefusal(answer.status, `${method} ${path}: ${messageOf(answer.body)}`)
    return answer.body
  }
  const send = async (...words: Parameters<typeof ask>) => JSON.parse(await ask(...words)) as ApiObject
  const read = (path: string) => send('GET', path)
  return {
    get: read,
    async find(path) {
      try {
        return await read(path)
      } catch (error) {
        if (error instanceof ClusterRefusal && error.status === 404) return null
        throw error
      }
    },
    list: async (path) => (await read(path)).items,
    create: (path, made) => send('POST', path, made),
    patch: (path, change, manager = 'kubectl') =>
      send('PATCH', `${path}?fieldManager=${manager}`, change, 'application/merge-patch+json'),
    async change(path, change, manager = 'kubectl') {
      for (;;) {
        const object = await read(path)
        change(object)
        try {
          return await send('PUT', `${path}?fieldManager=${manager}`, object)
        } catch (error) {
          // Reads the object again after a 409, because a controller wrote the object's status in
          // between.
          if (!(error instanceof ClusterRefusal && error.status === 409)) throw error
        }
      }
    },
    async remove(path) {
      try {
        await ask('DELETE', path, { propagationPolicy: 'Background' })
      } catch (error) {
        if (!(error instanceof ClusterRefusal && error.status === 404)) throw error
      }
    },
    text: (path) => ask('GET', path),
  }
}

function readAccess(kubeconfig: string): Access {
  const { clusters, users } = parse(kubeconfig)
  const { server, 'certificate-authority-data': ca } = clusters[0].cluster
  const { 'client-certificate-data': cert, 'client-key-data': key } = users[0].user
  const decode = (data: string) => Buffer.from(data, 'base64').toString()
  return { server, ca: decode(ca), cert: decode(cert), key: decode(key) }
}

function exchange(
  { server, ...credentials }: Access,
  method: string,
  path: string,
  body: string | undefined,
  type: string,
): Promise<{ status: number; body: string }> {
  return new Promise((resolve, reject) => {
    // Sends the length: otherwise the API server reads the body of a DELETE as the next request.
    const about = body !== undefined && { 'content-type': type, 'content-length': Buffer.byteLength(body) }
    const headers = { accept: 'application/json', ...about }
    const asked = request(new URL(path, server), { method, headers, ...credentials, timeout: 30_000 }, (answer) =>
      text(answer).then((said) => resolve({ status: answer.statusCode ?? 0, body: said }), reject),
    )
    asked.on('timeout', () => asked.destroy(new Error(`${method} ${path}: no answer in 30 s`)))
    asked.on('error', reject)
    asked.end(body)
  })
}

function messageOf(body: string): string {
  try {
    return JSON.parse(body).message ?? body.slice(0, 300)
  } catch {
    return body.slice(0, 300)
  }
}
