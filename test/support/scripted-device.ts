import { createHash, type KeyObject } from 'node:crypto'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import {
  type CapabilityAnswer,
  type CapabilityRequest,
  capabilityRequest,
  type Manifest,
  type MeshErrorCode,
  signedRead,
} from '../../domain/mesh.ts'
import { argsDigest, isSigned, readPublicKey } from '../../mesh/sign.ts'

type Did = { ok: true; result: Record<string, unknown> } | { ok: false; code: MeshErrorCode; message?: string }

export type ScriptedDevice = {
  id: string
  url: string
  /** Its manifest, as the enrolment gave it. */
  manifest: Manifest | null
  files: Map<string, string>
  processes: { pid: number; start_time: string; name: string }[]
  head: string
  /** Deeds by idempotency key, in order. */
  done: { key: string; capability: string; args: Record<string, unknown>; granted: string | null }[]
  /** Every request that came in. */
  heard: CapabilityRequest[]
  cancelled: string[]
  /** How the next answers go wrong; each is used once. */
  moods: ('drop_before' | 'drop_after' | 'other_request' | 'other_device' | 'junk' | 'hang' | 'busy' | 'timeout')[]
  /** Answers `indeterminate` for keys that it knows. */
  journalLost: boolean
  /** What a rehearsal shows, instead of the diff of a file. */
  rehearsal: Record<string, unknown> | null
  /** Why it confines no reads; null where it does. */
  sandboxLack: string | null
  lines: string[]
  lineEveryMs: number
  stop(): Promise<void>
  resume(): Promise<void>
}

const sha = (text: string) => createHash('sha256').update(text).digest('hex')

/**
 * A device that speaks the protocol and does what it is asked in memory: it checks signatures,
 * nonces and grants by itself, journals by key, and can be down, slow or a liar.
 */
export async function scriptedDevice(id: string): Promise<ScriptedDevice> {
  const journal = new Map<string, { digest: string; answer: CapabilityAnswer }>()
  const nonces = new Set<string>()
  const grants = new Set<string>()
  const operations = new Map<string, CapabilityAnswer>()
  const server = createServer((request, response) => void serve(request, response).catch(() => response.destroy()))
  const listen = (port: number) => new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve))
  await listen(0)
  const { port } = server.address() as AddressInfo
  const device: ScriptedDevice = {
    id,
    url: `http://127.0.0.1:${port}`,
    manifest: null,
    files: new Map(),
    processes: [],
    head: sha(''),
    done: [],
    heard: [],
    cancelled: [],
    moods: [],
    journalLost: false,
    rehearsal: null,
    sandboxLack: null,
    lines: [],
    lineEveryMs: 10,
    async stop() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
    resume: () => listen(port),
  }

  async function serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const path = request.url ?? ''
    if (request.method === 'GET' && path === '/health') return send(response, 200, health())
    if (request.method === 'GET' && path.startsWith('/operations/')) return await operation(request, response, path)
    if (request.method === 'DELETE') {
      device.cancelled.push(path.slice('/operations/'.length))
      return send(response, 202, {})
    }
    const body = JSON.parse(await text(request)) as CapabilityRequest & { signature: string }
    const mood = device.moods.shift()
    if (mood === 'drop_before') return void response.destroy()
    if (mood === 'hang') return
    if (mood === 'junk') return send(response, 200, 'I am a teapot')
    const answer = mood === 'busy' || mood === 'timeout' ? refuse(body, mood) : handle(body)
    if (mood === 'drop_after') return void response.destroy()
    if (mood === 'other_request') return send(response, 200, { ...answer, request_id: `req_${'0'.repeat(24)}` })
    if (mood === 'other_device') return send(response, 200, { ...answer, device: 'somebody-else' })
    if (body.stream && answer.ok) {
      return send(response, 202, { ...answer, status: 'running', result: null, ok: true })
    }
    send(response, answer.ok ? 200 : 403, answer)
  }

  async function operation(request: IncomingMessage, response: ServerResponse, path: string): Promise<void> {
    if (!mayRead(request)) return send(response, 401, {})
    const answer = operations.get(path.slice('/operations/'.length))
    if (!answer) return send(response, 404, {})
    if (request.headers.accept !== 'text/event-stream') return send(response, 200, answer)
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    for (const [index, line] of device.lines.entries()) {
      response.write(`id: ${index + 1}\nevent: line\ndata: ${JSON.stringify(line)}\n\n`)
      await new Promise((resolve) => setTimeout(resolve, device.lineEveryMs))
      if (device.cancelled.includes(answer.request_id)) {
        const stopped = {
          ...answer,
          ok: false,
          status: 'failed' as const,
          error: { code: 'cancelled' as const, message: '' },
        }
        operations.set(answer.request_id, stopped)
        break
      }
    }
    response.end(`event: answer\ndata: ${JSON.stringify(operations.get(answer.request_id))}\n\n`)
  }

  function mayRead({ headers, url }: IncomingMessage): boolean {
    const shown = JSON.parse(Buffer.from((headers.authorization ?? '').slice('Mesh '.length), 'base64url').toString())
    const leave = signedRead.parse(shown)
    const key = device.manifest && keyNamed(device.manifest, leave.key_id)
    const fresh = !nonces.has(leave.nonce)
    nonces.add(leave.nonce)
    return !!key && fresh && leave.device === id && leave.read === url && isSigned(leave, key)
  }

  function handle(request: CapabilityRequest): CapabilityAnswer {
    const parsed = capabilityRequest.safeParse(request)
    if (!parsed.success) return refuse(request, 'malformed')
    device.heard.push(request)
    const { manifest } = device
    if (!manifest || Date.parse(manifest.expires_at) <= Date.now()) return refuse(request, 'manifest_invalid')
    const key = keyNamed(manifest, request.key_id)
    if (!key) return refuse(request, 'unknown_key')
    if (!isSigned(request, key)) return refuse(request, 'bad_signature')
    if (request.device !== id) return refuse(request, 'wrong_device')
    if (nonces.has(request.nonce)) return refuse(request, 'replayed_nonce')
    nonces.add(request.nonce)
    const { capability, args, idempotency_key: own } = request
    const known = journal.get(own)
    if (known && device.journalLost) return refuse(request, 'indeterminate')
    if (known?.digest === argsDigest(args)) return { ...known.answer, request_id: request.request_id }
    if (known) return refuse(request, 'idempotency_key_reused')
    const read = request.rehearse || isRead(capability, args)
    if (manifest.mode === 'sudo' || !read) {
      const refused = grantProblem(request, manifest)
      if (refused) return refuse(request, refused)
      grants.add(request.grant?.id ?? '')
    }
    const did = request.rehearse ? rehearse(args) : act(capability, args)
    if (!request.rehearse) device.done.push({ key: own, capability, args, granted: request.grant?.authority ?? null })
    device.head = sha(`${device.head}${own}`)
    const answer: CapabilityAnswer = {
      request_id: request.request_id,
      device: id,
      status: did.ok ? 'done' : 'failed',
      ok: did.ok,
      result: did.ok ? did.result : null,
      error: did.ok ? null : { code: did.code, message: did.message ?? 'as it was scripted' },
      approval_status: request.grant ? 'granted' : 'auto_approved',
      cmd_executed: Array.isArray(args.argv) ? args.argv.join(' ') : typeof args.text === 'string' ? args.text : null,
      audit_hash: device.head,
      truncated: false,
      duration_ms: 1,
    }
    journal.set(own, { digest: argsDigest(args), answer })
    operations.set(answer.request_id, answer)
    return answer
  }

  function grantProblem({ grant, request_id, capability, args }: CapabilityRequest, manifest: Manifest) {
    if (!grant) return 'approval_required'
    const key = keyNamed(manifest, grant.key_id)
    if (!key || !isSigned(grant, key)) return 'grant_forged'
    if (grant.device !== id) return 'grant_wrong_device'
    if (grants.has(grant.id)) return 'grant_replayed'
    if (Date.parse(grant.expires_at) <= Date.now()) return 'grant_expired'
    const same = grant.request_id === request_id && grant.capability === capability
    return same && grant.args_digest === argsDigest(args) ? null : 'grant_altered'
  }

  function keyNamed(manifest: Manifest, name: string): KeyObject | null {
    const found = manifest.keys.find((key) => key.id === name)
    if (!found || (found.not_after !== null && Date.parse(found.not_after) <= Date.now())) return null
    return readPublicKey(found.public_key)
  }

  function refuse(request: CapabilityRequest, code: MeshErrorCode): CapabilityAnswer {
    return {
      request_id: request.request_id,
      device: id,
      status: 'failed',
      ok: false,
      result: null,
      error: { code, message: `scripted: ${code}` },
      approval_status: code === 'approval_required' ? 'required' : 'refused',
      cmd_executed: null,
      audit_hash: null,
      truncated: false,
      duration_ms: 0,
    }
  }

  function isRead(capability: string, args: Record<string, unknown>): boolean {
    if (capability === 'shell.exec') return ['uptime', 'git', 'ps'].includes((args.argv as string[])[0] ?? '')
    return ['fs.read', 'fs.list', 'fs.stat', 'proc.list', 'pkg.search', 'docker.container.logs'].includes(capability)
  }

  function act(capability: string, args: Record<string, unknown>): Did {
    const path = String(args.path)
    const content = device.files.get(path)
    switch (capability) {
      case 'fs.read':
      case 'fs.stat':
        if (content === undefined) return { ok: false, code: 'not_found' }
        return { ok: true, result: { path, content, size: content.length, sha256: sha(content), type: 'file' } }
      case 'fs.write':
        device.files.set(path, String(args.content))
        return { ok: true, result: { path, sha256: sha(String(args.content)) } }
      case 'proc.list':
        return { ok: true, result: { processes: device.processes } }
      case 'proc.kill':
        device.processes = device.processes.filter((each) => each.pid !== args.pid)
        return { ok: true, result: { ended: true } }
      default:
        return { ok: true, result: { stdout: 'done\n', stderr: '', exit_code: 0 } }
    }
  }

  function rehearse(args: Record<string, unknown>): Did {
    if (device.rehearsal) return { ok: true, result: device.rehearsal }
    const before = device.files.get(String(args.path)) ?? ''
    return {
      ok: true,
      result: {
        diff: `-${before}\n+${String(args.content)}`,
        checks: [{ argv: ['appctl', 'check'], exit_code: 0, output: 'ok' }],
        would_change: before !== args.content,
      },
    }
  }

  const health = () => ({
    device: id,
    status: device.manifest ? 'ready' : 'refusing',
    reason: null,
    version: '0.1.0',
    manifest_id: device.manifest?.id ?? null,
    manifest_expires_at: device.manifest?.expires_at ?? null,
    mode: device.manifest?.mode ?? null,
    unavailable: {
      'docker.container.list': 'no engine socket',
      ...(device.sandboxLack !== null && { sandbox: device.sandboxLack }),
    },
    sandbox: device.sandboxLack === null ? 'bwrap' : 'none',
    journal: { entries: journal.size, head: device.head },
    uptime_seconds: 1,
  })
  return device
}

async function text(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(chunk as Buffer)
  return Buffer.concat(chunks).toString('utf8')
}

function send(response: ServerResponse, status: number, body: unknown): void {
  response.writeHead(status, { 'content-type': 'application/json' })
  response.end(JSON.stringify(body))
}
