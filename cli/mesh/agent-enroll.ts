import { mkdirSync } from 'node:fs'
import type { Command } from 'commander'
import { holderOf } from '../../mesh/agent/agent-processes.ts'
import { enrol, NotEnrolled, type Places, renew } from '../../mesh/agent/enrolment.ts'
import { CommandFailed } from '../exit-code.ts'
import { inert } from '../inert.ts'
import { note } from '../terminal.ts'

/** On the device: pins the control plane's root key and keeps the first manifest. */
export function enrollAgent(agent: Command): void {
  agent
    .command('enroll')
    .description('join: pin the root key and fetch the first manifest, with the token that "mesh enroll" printed')
    .requiredOption('--api <url>', 'where the control plane is')
    .requiredOption('--token <token>', 'good once, for 15 minutes')
    .addHelpText(
      'after',
      '\nExample:\n  nightshift mesh agent enroll --api https://nightshift.example.com --token nst_…',
    )
    .action(async (_: unknown, command: Command) => {
      const { api, token, ...places } = command.optsWithGlobals<Places & { api: string; token: string }>()
      mkdirSync(places.state, { recursive: true, mode: 0o700 })
      const { device, manifest } = await told(enrol(places, api, token))
      note(`${inert(device)} is enrolled with manifest ${inert(manifest)}. Next: nightshift mesh agent`)
    })

  agent
    .command('refresh')
    .description('fetch the manifest as it is now, and tell the running agent, which else does so every few hours')
    .addHelpText('after', '\nExample:\n  nightshift mesh agent refresh')
    .action(async (_: unknown, command: Command) => {
      const places = command.optsWithGlobals<Places>()
      const id = await told(renew(places))
      const agentPid = holderOf(places.state)
      if (agentPid !== null) process.kill(agentPid, 'SIGHUP')
      note(`Manifest ${inert(id)} is here${agentPid === null ? '; no agent runs' : ', and the agent was told'}.`)
    })
}

const exits = {
  refused: 'auth',
  unreachable: 'error',
  unbelievable: 'error',
  'not enrolled': 'notFound',
  'bad address': 'usage',
} as const

async function told<T>(work: Promise<T>): Promise<T> {
  try {
    return await work
  } catch (error) {
    if (!(error instanceof NotEnrolled)) throw error
    throw new CommandFailed(exits[error.why], inert(error.message))
  }
}
