import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, writeFileSync } from 'node:fs'
import type { Server } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { serve } from '@hono/node-server'
import { afterAll, afterEach, beforeAll } from '@jest/globals'
import type { Role } from '../../domain/permissions.ts'
import { type TestApi, useApi } from './api.ts'
import { compileCache, eventually } from './directory.ts'

/**
 * ESC and CSI, a bell, a right-to-left override, a zero-width space, and an OSC that would rename
 * the window.
 */
export const hostile = 'a\u001b[2Jb\u009b31mc\u0007d\u202ee\u200bf\u001b]0;pwned\u0007\nnext line'

/**
 * What else a terminal acts on or leaves out: a link, the clipboard, a carriage return, fillers,
 * marks that pile up, wide letters.
 */
export const hostileToo = [
  '\u001b]8;;https://evil.example\u0007click\u001b]8;;\u0007 \u001b]52;c;cm0gLXJmIC8=\u0007\u001bP+q\u001b\\',
  'safe\rrm -rf /\u0008\u0008\u007f\u0085\u009d',
  'a\u00adb\u034fc\u061cd\u115fe\u3164f\uffa0g\u2800h\ufe0fi\ufff9j\u{e0041}k\u{e0101}\u2066l',
  `z${'\u0301'.repeat(60)}`,
  '寿司'.repeat(40),
].join(' ')

/** The first character that a terminal would act on or leave out, or null. */
export function harmfulIn(text: string): string | null {
  return (
    [...text].find((each) => each !== '\n' && /[\p{Cc}\p{Cf}\p{Default_Ignorable_Code_Point}\u2800]/u.test(each)) ??
    null
  )
}

const entry = fileURLToPath(new URL('../../cli/main.ts', import.meta.url))
/** What each command is given. */
const common = { PATH: process.env.PATH ?? '', NODE_COMPILE_CACHE: compileCache }
/** Where nothing runs. */
export const emptyDir = mkdtempSync(join(tmpdir(), 'nightshift-cli-'))

export function tokenFile(token: string): string {
  const file = join(emptyDir, token)
  writeFileSync(file, `${token}\n`, { mode: 0o600 })
  return file
}

export type Ended = { code: number | null; stdout: string; stderr: string }

/**
 * The command as a process of its own, without a terminal and without the caller's settings. With
 * `input` null its stdin stays open.
 */
export function startCli(args: string[], env: Record<string, string> = {}, input: string | null = '') {
  const child = spawn(process.execPath, [entry, ...args], {
    env: { ...common, HOME: emptyDir, NIGHTSHIFT_STATE_DIR: emptyDir, TZ: 'UTC', ...env },
    stdio: 'pipe',
  })
  const said = { stdout: '', stderr: '' }
  child.stdout.on('data', (chunk) => {
    said.stdout += chunk
  })
  child.stderr.on('data', (chunk) => {
    said.stderr += chunk
  })
  child.stdin.on('error', () => undefined)
  if (input !== null) child.stdin.end(input)
  const ended = new Promise<Ended>((resolve) => {
    child.on('close', (code) => resolve({ code, ...said }))
  })
  return { child, said, ended }
}

export function runCli(args: string[], env?: Record<string, string>, input?: string): Promise<Ended> {
  return startCli(args, env, input).ended
}

/**
 * The command at a terminal of eighty columns, where somebody types this when it asks, and Ctrl-C
 * once they have seen `enough`.
 */
export async function runAtTerminal(
  args: string[],
  env: Record<string, string> = {},
  typed = '',
  enough: (shown: string) => boolean = () => false,
) {
  const line = [process.execPath, '--disable-warning=ExperimentalWarning', entry, ...args]
  const child = spawn('script', ['--quiet', '--return', '--command', line.join(' '), '/dev/null'], {
    env: { ...common, HOME: emptyDir, NIGHTSHIFT_STATE_DIR: emptyDir, NO_COLOR: '1', ...env },
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  let shown = ''
  let hadEnough = false
  child.stdout.on('data', (chunk) => {
    // What comes then is the terminal's own ^C.
    if (hadEnough) return
    const wasAsked = shown.includes('[y/N]')
    shown += chunk
    if (!wasAsked && shown.includes('[y/N]')) child.stdin.write(`${typed}\n`)
    hadEnough = enough(shown)
    if (hadEnough) child.stdin.write('\u0003')
  })
  const code = await new Promise<number | null>((resolve) => child.on('close', resolve))
  return { code, shown: shown.replaceAll('\r\n', '\n') }
}

type ServedApi = TestApi & {
  /** Where the API listens; `url` is its database. */
  apiUrl: string
  /** What a command is told about where to ask, and as whom. */
  as(role: Role): Record<string, string>
  /** Requests as `METHOD path`, oldest first, with the id a stream was resumed from. */
  requests: { asked: string; lastEventId: string | undefined }[]
  /** How many streams are open. */
  listeners(): number
  /** Every connection breaks, as behind a proxy that restarts. */
  dropConnections(): void
}

/** The API itself, listening, over a database of this test file. */
export function useServedApi(options?: Parameters<typeof useApi>[0]): ServedApi {
  const api = useApi(options) as ServedApi
  const sockets = new Set<Socket>()
  let open = 0
  let server: Server
  api.requests = []
  api.listeners = () => open
  api.dropConnections = () => {
    for (const socket of sockets) socket.destroy()
  }
  api.as = (role) => ({ NIGHTSHIFT_URL: api.apiUrl, NIGHTSHIFT_TOKEN_FILE: tokenFile(api.tokens[role]) })
  beforeAll(async () => {
    server = serve({ fetch: api.api.app.fetch, port: 0, hostname: '127.0.0.1' }) as Server
    server.on('connection', (socket) => {
      sockets.add(socket)
      socket.once('close', () => sockets.delete(socket))
    })
    server.on('request', ({ method, url, headers }, response) => {
      api.requests.push({ asked: `${method} ${url}`, lastEventId: headers['last-event-id'] as string | undefined })
      if (!url?.startsWith('/api/v1/stream')) return
      open += 1
      response.once('close', () => {
        open -= 1
      })
    })
    if (!server.listening) await once(server, 'listening')
    api.apiUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  })
  afterEach(async () => {
    // A stream that is left open would still ask the database after it is gone.
    api.dropConnections()
    await eventually('the streams to end', () => open === 0)
  })
  afterAll(() => void server.close())
  return api
}
