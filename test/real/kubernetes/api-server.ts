import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { openSync, readFileSync, writeFileSync } from 'node:fs'
import { request } from 'node:https'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { eventually, freePort, temporaryDirectory } from '../../support/directory.ts'
import { findProgram } from '../kinds.ts'

export type RealApiServer = {
  /** The answer of a path, asked with a token that may do everything. */
  get(path: string): Promise<{ status: number; body: string }>
  send(method: 'POST' | 'PUT' | 'DELETE', path: string, body: unknown): Promise<{ status: number; body: string }>
  /** Starts a program of the cluster on it, such as its scheduler. */
  startBeside(name: string, words?: string[]): void
  url: string
  /** PEM of the authority of its certificate. */
  ca(): string
  stop(): Promise<void>
}

/** An API server of Kubernetes with an etcd of its own, on loopback: no node, no controller. */
export async function startApiServer(): Promise<RealApiServer> {
  const place = temporaryDirectory()
  const at = (name: string) => join(place.path, name)
  const [etcdPort, peerPort, port] = [await freePort(), await freePort(), await freePort()]
  const log = openSync(at('log'), 'a')
  const started: ChildProcess[] = []
  const start = (name: string, words: string[]) => {
    const child = spawn(findProgram(name)!, words, { stdio: ['ignore', log, log] })
    started.push(child)
    return child
  }
  const etcdUrl = `http://127.0.0.1:${etcdPort}`
  const peerUrl = `http://127.0.0.1:${peerPort}`
  start('etcd', [
    ...['--data-dir', at('etcd'), '--listen-client-urls', etcdUrl, '--advertise-client-urls', etcdUrl],
    ...[
      '--listen-peer-urls',
      peerUrl,
      '--initial-advertise-peer-urls',
      peerUrl,
      '--initial-cluster',
      `default=${peerUrl}`,
    ],
  ])
  execFileSync('openssl', ['genrsa', '-out', at('accounts.key'), '2048'], { stdio: 'ignore' })
  writeFileSync(at('tokens.csv'), 'of-a-test,admin,1,system:masters\n')
  const api = start('kube-apiserver', [
    ...[
      '--etcd-servers',
      etcdUrl,
      '--secure-port',
      String(port),
      '--bind-address',
      '127.0.0.1',
      '--cert-dir',
      at('certs'),
    ],
    ...[
      '--token-auth-file',
      at('tokens.csv'),
      '--authorization-mode',
      'RBAC',
      '--service-cluster-ip-range',
      '10.43.0.0/16',
    ],
    ...['--service-account-issuer', 'https://kubernetes.default.svc', '--service-account-key-file', at('accounts.key')],
    ...['--service-account-signing-key-file', at('accounts.key')],
  ])
  const send = async (method: string, path: string, sent?: unknown) =>
    await new Promise<{ status: number; body: string }>((resolve, reject) => {
      const options = { host: '127.0.0.1', port, path, method, rejectUnauthorized: false, agent: false }
      const headers = { authorization: 'Bearer of-a-test', 'content-type': 'application/json' }
      const asked = request({ ...options, headers }, (response) =>
        text(response).then((body) => resolve({ status: response.statusCode ?? 0, body }), reject),
      )
      asked.on('error', reject).end(sent === undefined ? undefined : JSON.stringify(sent))
    })
  const get = (path: string) => send('GET', path)
  const config = {
    ...{ apiVersion: 'v1', kind: 'Config', 'current-context': 'c' },
    clusters: [{ name: 'c', cluster: { server: `https://127.0.0.1:${port}`, 'insecure-skip-tls-verify': true } }],
    users: [{ name: 'u', user: { token: 'of-a-test' } }],
    contexts: [{ name: 'c', context: { cluster: 'c', user: 'u' } }],
  }
  writeFileSync(at('config.json'), JSON.stringify(config))
  const startBeside = (name: string, words: string[] = []) => {
    start(name, ['--kubeconfig', at('config.json'), ...words])
  }
  const stop = async () => {
    for (const child of started.reverse()) {
      if (child.exitCode !== null || child.signalCode !== null) continue
      const exit = new Promise((resolve) => child.once('exit', resolve))
      child.kill('SIGKILL')
      await exit
    }
    place.remove()
  }
  await eventually('the API server to be ready', async () => {
    if (api.exitCode !== null) throw new Error(`the API server ended: ${readFileSync(at('log'), 'utf8').slice(-2_000)}`)
    return (await get('/readyz').catch(() => null))?.status === 200
  })
  const ca = () => readFileSync(at('certs/apiserver.crt'), 'utf8')
  return { get, send, startBeside, url: `https://127.0.0.1:${port}`, ca, stop }
}
