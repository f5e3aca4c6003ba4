import { existsSync, mkdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type Command, InvalidArgumentError, Option } from 'commander'
import { z } from 'zod'
import type { JournalEntry } from '../../domain/mesh.ts'
import { holderOf } from '../../mesh/agent/agent-processes.ts'
import { segmentsOf, shortOf, verifyChain } from '../../mesh/agent/chain.ts'
import { enrol, NotEnrolled, type Places, renew } from '../../mesh/agent/enrolment.ts'
import { readAddress } from '../../mesh/agent/manifest.ts'
import type { AgentOptions } from '../../mesh/agent/start.ts'
import { specNamed } from '../../mesh/registry.ts'
import { type ApiClient, CommandFailed, listAll } from '../api.ts'
import { type ConnectionOptions, connect, withConnectionOptions } from '../connection.ts'
import { inert, paint, print, printJson, printNote } from '../ui/terminal.ts'
import { addDevicesCommand, addEnrollCommand, apiDevice } from './devices.ts'
import { auditDevice, type DeviceAudit } from './journal.ts'

/** `nightshift mesh`: devices, their agent, and the audit of their journals. */

type AgentFlags = {
  manifest?: string
  listen: string
  state: string
  rootKey?: string
  tlsCert?: string
  tlsKey?: string
  acceptLostJournal?: boolean
  dockerHost?: string
  userServices?: boolean
}

function addAgentCommand(parent: Command): void {
  const agent = parent
    .command('agent')
    .description('run the agent of this device: it answers signed requests, within its manifest and guard')
    .option(
      '--manifest <file>',
      'what this device may do, signed by the control plane; read again on SIGHUP (default: manifest.json in the state directory)',
    )
    .addOption(
      new Option('--listen <address>', 'loopback or an address of WireGuard; anything else needs TLS')
        .default('127.0.0.1:7474')
        .env('MESH_LISTEN'),
    )
    .option('--state <dir>', 'journal, nonces and the name of this device', '/var/lib/nightshift-agent')
    .option('--root-key <file>', 'the public key that signs manifests (default: root-key in the state directory)')
    .option('--tls-cert <file>', 'certificate, as PEM')
    .option('--tls-key <file>', 'its key, as PEM')
    .option('--docker-host <address>', 'where the container engine listens (default: unix:///var/run/docker.sock)')
    .option('--user-services', "repair services of the agent's own user (systemctl --user) instead of the system's")
    .option('--accept-lost-journal', 'allow writes after the journal was lost: a person has checked what was done')
    .addHelpText(
      'after',
      '\nExample:\n  nightshift mesh agent --manifest /etc/nightshift/manifest.json --listen 127.0.0.1:7474',
    )
    .action((options: AgentFlags) => {
      const { listen, state, tlsCert: cert, tlsKey: key } = options
      const address = readAddress(listen)
      if (!address) throw new CommandFailed('usage', `--listen takes an address and a port, not ${listen}.`)
      if (!cert !== !key) throw new CommandFailed('usage', '--tls-cert and --tls-key belong together.')
      replaceProcess({
        manifestFile: options.manifest ?? join(state, 'manifest.json'),
        address,
        state,
        rootKeyFile: options.rootKey ?? join(state, 'root-key'),
        tls: cert && key ? { cert, key } : null,
        acceptLostJournal: options.acceptLostJournal ?? false,
        dockerHost: options.dockerHost,
        ...(options.userServices && { systemctl: userSystemctl() }),
        version: readVersion(),
      })
    })
  addEnrolmentCommands(agent)
}

/** The agent keeps no environment, so where the manager of its user listens is among the words. */
function userSystemctl(): string[] {
  const directory = process.env.XDG_RUNTIME_DIR ?? `/run/user/${process.getuid?.()}`
  return ['/usr/bin/env', `XDG_RUNTIME_DIR=${directory}`, '/usr/bin/systemctl', '--user']
}

const main = fileURLToPath(new URL('../../mesh/agent/main.ts', import.meta.url))
/**
 * An agent is idle most of the time, so these save memory: few threads, a small heap, no optimizing
 * compilers.
 */
const flags = [
  '--disable-warning=ExperimentalWarning',
  '--max-semi-space-size=1',
  '--v8-pool-size=1',
  '--no-opt',
  '--no-maglev',
]

/** Replaces this process with the agent: it keeps the pid, and no memory of the command line. */
function replaceProcess(options: AgentOptions): void {
  if (!process.execve) throw new CommandFailed('error', 'This Node cannot replace a process (process.execve).')
  mkdirSync(options.state, { recursive: true, mode: 0o700 })
  process.execve(process.execPath, [process.execPath, ...flags, main, JSON.stringify(options)], {
    PATH: process.env.PATH ?? '',
    HOME: process.env.HOME ?? '/',
    MALLOC_ARENA_MAX: '2',
    UV_THREADPOOL_SIZE: '2',
    NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE ?? join(options.state, 'compile-cache'),
  })
}

function readVersion(): string {
  return (JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')) as { version: string })
    .version
}

/**
 * Adds the commands that run on the device: `enroll` pins the root key, `refresh` fetches the
 * manifest.
 */
function addEnrolmentCommands(agent: Command): void {
  agent
    .command('enroll')
    .description('join: pin the root key and fetch the first manifest, with the token that "mesh enroll" printed')
    .requiredOption('--api <url>', 'where the control plane is')
    .requiredOption('--token <token>', 'valid once, for 15 minutes')
    .addHelpText(
      'after',
      '\nExample:\n  nightshift mesh agent enroll --api https://nightshift.example.com --token nst_…',
    )
    .action(async (_: unknown, command: Command) => {
      const { api, token, ...places } = command.optsWithGlobals<Places & { api: string; token: string }>()
      mkdirSync(places.state, { recursive: true, mode: 0o700 })
      const { device, manifest } = await withEnrolmentErrors(enrol(places, api, token))
      printNote(`${inert(device)} is enrolled with manifest ${inert(manifest)}. Next: nightshift mesh agent`)
    })

  agent
    .command('refresh')
    .description('fetch the current manifest and notify the running agent, which else fetches it every few hours')
    .addHelpText('after', '\nExample:\n  nightshift mesh agent refresh')
    .action(async (_: unknown, command: Command) => {
      const places = command.optsWithGlobals<Places>()
      const id = await withEnrolmentErrors(renew(places))
      const agentPid = holderOf(places.state)
      if (agentPid !== null) process.kill(agentPid, 'SIGHUP')
      printNote(
        `Manifest ${inert(id)} is here${agentPid === null ? '; no agent runs' : ', and the agent was notified'}.`,
      )
    })
}

const outcomeByReason = {
  refused: 'auth',
  unreachable: 'error',
  unbelievable: 'error',
  'not enrolled': 'notFound',
  'bad address': 'usage',
} as const

async function withEnrolmentErrors<T>(work: Promise<T>): Promise<T> {
  try {
    return await work
  } catch (error) {
    if (!(error instanceof NotEnrolled)) throw error
    throw new CommandFailed(outcomeByReason[error.why], inert(error.message))
  }
}

export function addMeshCommand(program: Command): void {
  const parent = program
    .command('mesh')
    .description('devices, and the agent that runs on each')
    .addHelpText('after', '\nExample:\n  nightshift mesh devices\n  nightshift mesh call node-osl-1 proc.list')
  addDevicesCommand(parent)
  addEnrollCommand(parent)
  addRevokeCommand(parent)
  addCallCommand(parent)
  addAuditCommand(parent)
  addAgentCommand(parent)
}

function addCallCommand(parent: Command): void {
  withConnectionOptions(
    parent
      .command('call')
      .description('call one tool of a device; only approved runs may change something')
      .argument('<on>', 'the node, host, VM or device')
      .argument('<tool>', 'as fs_read, fs.read, exec')
      .argument('[args]', 'JSON of its arguments', parseObject, {}),
  )
    .addHelpText(
      'after',
      '\nExample:\n  nightshift mesh call node-osl-1 fs.read \'{"path":"/var/log/app.log"}\'\n  nightshift mesh call node-osl-1 exec \'{"argv":["uptime"]}\'',
    )
    .action(async (on: string, tool: string, args: Record<string, unknown>, options: ConnectionOptions) => {
      const spec = specNamed(tool)
      if (!spec) throw new CommandFailed('usage', `There is no device tool ${inert(tool)}.`)
      const { api } = connect(options)
      const path = `/api/v1/devices/${encodeURIComponent(on)}/calls`
      const answer = (await api.post(path, { capability: spec.capability, args })) as Record<string, unknown>
      if (options.json) return printJson(answer)
      const { stdout, stderr, content, ...rest } = answer
      for (const text of [stdout, stderr, content]) {
        if (typeof text === 'string' && text !== '') print(inert(text, { lines: true }).trimEnd())
      }
      printJson(rest)
    })
}

function parseObject(text: string): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(text)
    if (value !== null && typeof value === 'object' && !Array.isArray(value)) return value as Record<string, unknown>
  } catch {
    // The error below covers it.
  }
  throw new InvalidArgumentError('It takes a JSON object.')
}

function addRevokeCommand(parent: Command): void {
  withConnectionOptions(
    parent
      .command('revoke')
      .description('revoke a device for good: it gets no more calls, and its name cannot be used again')
      .argument('<name>', 'of the device')
      .option('--reason <text>', 'why, for the audit'),
  )
    .addHelpText('after', '\nExample:\n  nightshift mesh revoke node-osl-1 --reason stolen')
    .action(async (name: string, options: ConnectionOptions & { reason?: string }) => {
      const { api } = connect(options)
      const path = `/api/v1/devices/${encodeURIComponent(name)}/revoke`
      const answer = await api.post(path, { reason: options.reason ?? null })
      const { revoked } = z.looseObject({ revoked: z.boolean() }).parse(answer)
      if (options.json) return printJson(answer)
      if (!revoked) throw new CommandFailed('conflict', `${inert(name)} is already revoked.`)
      printNote(`${inert(name)} gets no more calls. Stop its agent: it may still know what it was sent before.`)
    })
}

export function addAuditCommand(parent: Command): void {
  const audit = parent
    .command('audit')
    .description('compare the journals of devices with the database')
    .addHelpText('after', '\nExample:\n  nightshift mesh audit verify')
  withConnectionOptions(
    audit
      .command('verify')
      .description("compare the devices' whole journals, all calls and the incidents' rows")
      .argument('[device]', 'only this device')
      .option('--journal <dir>', 'state directory of that device, or a copy: also verifies the content of its entries'),
  )
    .addHelpText(
      'after',
      '\nExample:\n  nightshift mesh audit verify\n  nightshift mesh audit verify node-osl-1 --journal /var/lib/nightshift-agent',
    )
    .action(async (device: string | undefined, options: ConnectionOptions & { journal?: string }) => {
      const { api } = connect(options)
      if (options.journal && !device)
        throw new CommandFailed('usage', '--journal belongs to one device: name the device.')
      const reports: DeviceAudit[] = []
      const progress = createProgress()
      try {
        for (const name of device ? [device] : await listEnrolledDevices(api)) {
          const files = options.journal ? readJournalCopy(options.journal) : null
          const report = await auditDevice((path) => api.get(`/api/v1${path}`), name, {
            files: files?.entries ?? null,
            onProgress: progress.show,
          })
          if (files?.problem) report.problems.push(files.problem)
          reports.push(report)
        }
      } finally {
        progress.end()
      }
      if (options.json) printJson(reports)
      else for (const report of reports) printReport(report)
      const bad = reports.filter(({ problems }) => problems.length > 0)
      if (bad.length > 0)
        throw new CommandFailed('error', options.json ? '' : `${bad.length} of ${reports.length} do NOT agree.`)
    })
}

async function listEnrolledDevices(api: ApiClient): Promise<string[]> {
  const devices = await listAll(api, '/api/v1/devices', apiDevice)
  return devices.filter(({ enrolledAt, revokedAt }) => enrolledAt && !revokedAt).map(({ id }) => id)
}

/** The entries of a copy, hashed here. Null, with a problem, when its chain does not hold. */
function readJournalCopy(state: string): { entries: JournalEntry[] | null; problem: string | null } {
  const directory = existsSync(join(state, 'journal')) ? join(state, 'journal') : state
  if (segmentsOf(directory).length === 0) return { entries: null, problem: `there is no journal in ${state}` }
  const entries: JournalEntry[] = []
  const chain = verifyChain(directory, (entry, hash) => entries.push(shortOf(entry, hash)))
  return chain.ok
    ? { entries, problem: null }
    : { entries: null, problem: `the journal does not hold: ${chain.reason}` }
}

const quietMs = 1_000

/** Shows progress in one line of the terminal after a second, and clears it at the end. */
function createProgress(): { show(so: string): void; end(): void } {
  const began = Date.now()
  let shown = false
  return {
    show(so) {
      if (!process.stderr.isTTY || Date.now() - began < quietMs) return
      shown = true
      process.stderr.write(`\r\x1b[K${inert(so)} …`)
    },
    end() {
      if (shown) process.stderr.write('\r\x1b[K')
    },
  }
}

function printReport({ device, calls, journal, older, problems }: DeviceAudit): void {
  const kept = journal ? journal.entries - journal.first + 1 : 0
  const entries = journal ? `${kept} ${kept === 1 ? 'entry' : 'entries'}` : 'no journal'
  const before = older > 0 ? `; ${older} are older than it` : ''
  if (problems.length === 0) {
    print(
      `${paint('green', '✔')} ${inert(device)}: ${calls.length} calls agree with its journal (${entries}${before}) and the incidents`,
    )
    return
  }
  print(`${paint('red', '✘')} ${inert(device)} (${entries}${before})`)
  for (const problem of problems) print(`  ${inert(problem)}`)
}
