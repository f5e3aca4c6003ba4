import { mkdirSync } from 'node:fs'
import { userInfo } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { Option } from 'commander'
import { capitalize } from '../../domain/format.ts'
import { sandboxRemedy } from '../../domain/status-words.ts'
import { version } from '../../domain/version.ts'
import { holderOf } from '../../mesh/agent/agent-processes.ts'
import { describeConfinement, findConfinement } from '../../mesh/agent/confine.ts'
import { enrol, NotEnrolled, type Places, renew } from '../../mesh/agent/enrolment.ts'
import { readAddress } from '../../mesh/agent/manifest.ts'
import { whyNotReady } from '../../mesh/agent/readiness.ts'
import type { AgentOptions } from '../../mesh/agent/start.ts'
import type { CliCommand } from '../connection.ts'
import { CommandFailed } from '../exit-codes.ts'
import { inert, printNote } from '../ui/terminal.ts'

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

export function addAgentCommand(parent: CliCommand): void {
  const agent = parent
    .command('agent')
    .description('run an agent that listens for the control plane; "nightshift agent" connects out instead')
    .option(
      '--manifest <file>',
      'what this device may do, signed by the control plane; read again on SIGHUP (default: manifest.json in the state directory)',
    )
    .addOption(
      new Option('--listen <address>', 'loopback or an address of WireGuard; anything else needs TLS')
        .default('127.0.0.1:7474')
        .env('MESH_LISTEN'),
    )
    .option('--state <dir>', stateHelp, stateDefault)
    .option('--root-key <file>', 'the public key that signs manifests (default: root-key in the state directory)')
    .option('--tls-cert <file>', 'certificate, as PEM')
    .option('--tls-key <file>', 'key of the certificate, as PEM')
    .option('--docker-host <address>', 'where the container engine listens (default: unix:///var/run/docker.sock)')
    .option('--user-services', "repair services of the agent's own user (systemctl --user) instead of the system's")
    .option('--accept-lost-journal', 'allow writes after the journal was lost, once a person has checked what was done')
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
        version,
      })
    })
  addEnrolmentCommands(agent)
  addReadyCommand(agent)
}

/**
 * Returns the command for this user's service manager. The command sets the manager's address,
 * because the agent keeps no environment variables.
 */
export function userSystemctl(): string[] {
  const directory = process.env.XDG_RUNTIME_DIR ?? `/run/user/${process.getuid?.()}`
  return ['/usr/bin/env', `XDG_RUNTIME_DIR=${directory}`, '/usr/bin/systemctl', '--user']
}

const main = fileURLToPath(new URL('../../mesh/agent/main.ts', import.meta.url))

/**
 * Flags that save memory, because an agent is idle most of the time: few threads, a small heap, no
 * compiler.
 */
const flags = [
  '--disable-warning=ExperimentalWarning',
  '--max-semi-space-size=1',
  '--v8-pool-size=1',
  '--no-opt',
  '--no-maglev',
  '--no-sparkplug',
  '--optimize-for-size',
]

/**
 * Replaces this process with the agent: the pid stays, and the memory of the command line is freed.
 */
export function replaceProcess(options: AgentOptions): void {
  if (!process.execve)
    throw new CommandFailed('error', 'This version of Node.js cannot replace a process (process.execve).')
  mkdirSync(options.state, { recursive: true, mode: 0o700 })
  process.execve(process.execPath, [process.execPath, ...flags, main, JSON.stringify(options)], {
    PATH: process.env.PATH ?? '',
    HOME: process.env.HOME ?? '/',
    MALLOC_ARENA_MAX: '2',
    UV_THREADPOOL_SIZE: '2',
    NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE ?? join(options.state, 'compile-cache'),
  })
}

/**
 * Adds the commands that run on the device: `enroll` pins the root key, `refresh` fetches the
 * manifest.
 */
function addEnrolmentCommands(agent: CliCommand): void {
  withPlaces(agent.command('enroll'))
    .description('enrol: pin the root key and fetch the first manifest, with the token that "mesh enroll" printed')
    .requiredOption('--api <url>', 'address of the control plane')
    .requiredOption('--token <token>', 'valid once, for 15 minutes')
    .addHelpText(
      'after',
      '\nExample:\n  nightshift mesh agent enroll --api https://nightshift.example.com --token nst_…',
    )
    .action(async (_: unknown, command: CliCommand) => {
      const { api, token } = command.opts<{ api: string; token: string }>()
      const places = placesOf(command)
      const { device, manifest } = await withEnrolmentErrors(() => enrol(places, api, token))
      printNote(`${inert(device)} is enrolled with manifest ${inert(manifest)}. Next: nightshift mesh agent`)
      await sayConfinement()
    })

  withPlaces(agent.command('refresh'))
    .description(
      'fetch the current manifest now and notify the running agent, which otherwise fetches it every few hours',
    )
    .addHelpText('after', '\nExample:\n  nightshift mesh agent refresh')
    .action(async (_: unknown, command: CliCommand) => {
      const places = placesOf(command)
      const id = await withEnrolmentErrors(() => renew(places))
      const agentPid = holderOf(places.state)
      if (agentPid !== null) process.kill(agentPid, 'SIGHUP')
      printNote(
        `Manifest ${inert(id)} is fetched${agentPid === null ? '; no agent runs' : ', and the agent was notified'}.`,
      )
    })
}

/** Adds `ready`, with which a health check or an installing script tests the agent. */
function addReadyCommand(agent: CliCommand): void {
  withPlaces(agent.command('ready'))
    .description('exit with 0 if the agent of this host works, whether it calls out or listens (MESH_LISTEN)')
    .addHelpText('after', '\nExample:\n  nightshift mesh agent ready')
    .action(async (_: unknown, command: CliCommand) => {
      const { state } = placesOf(command)
      const listen = command.parent?.opts<{ listen?: string }>().listen ?? process.env.MESH_LISTEN ?? '127.0.0.1:7474'
      const wrong = await whyNotReady(state, listen)
      if (wrong !== null) throw new CommandFailed('error', `${inert(wrong)}.`)
      printNote(`The agent of ${state} is ready.`)
    })
}

const stateHelp = 'folder for journal, nonces and the name of this device'
const stateDefault = '/var/lib/nightshift-agent'

/** Adds the flags for an agent's files to `agent` and all its sub-commands. */
function withPlaces(command: CliCommand): CliCommand {
  return command
    .option('--manifest <file>', 'where the manifest is kept (default: manifest.json in the state directory)')
    .option('--state <dir>', stateHelp, stateDefault)
    .option('--root-key <file>', 'where the root key is kept (default: root-key in the state directory)')
}

/** Reads an agent's paths. A flag of the sub-command overrides the same flag of `agent`. */
function placesOf(command: CliCommand): Places {
  const own = command.opts<Places>()
  const parent = command.parent
  const given = Object.entries(parent?.opts() ?? {}).filter(
    ([name]) => parent?.getOptionValueSource(name) === 'cli' && command.getOptionValueSource(name) !== 'cli',
  )
  return { ...own, ...Object.fromEntries(given) }
}

/** Prints how reads of the current user will be confined, before the first read. */
export async function sayConfinement(): Promise<void> {
  const found = await findConfinement()
  found.close()
  const words = capitalize(describeConfinement(found))
  const remedy = found.lack === null ? '' : ` Remedy: ${sandboxRemedy}.`
  printNote(inert(`${words}, for user ${userInfo().username}.${remedy}`))
}

const outcomeByReason = {
  refused: 'auth',
  unreachable: 'error',
  unbelievable: 'error',
  'not enrolled': 'notFound',
  'bad address': 'usage',
  'not ours': 'error',
} as const

export async function withEnrolmentErrors<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    if (!(error instanceof NotEnrolled)) throw error
    throw new CommandFailed(outcomeByReason[error.why], inert(error.message))
  }
}
