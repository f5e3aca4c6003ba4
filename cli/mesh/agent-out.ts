import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { version } from '../../domain/version.ts'
import { enrolToConnect, moveConnection, type Places, readConnection } from '../../mesh/agent/enrolment.ts'
import type { CliCommand } from '../connection.ts'
import { CommandFailed } from '../exit-codes.ts'
import { inert, printNote } from '../ui/terminal.ts'
import { replaceProcess, sayConfinement, userSystemctl, withEnrolmentErrors } from './agent.ts'

type Flags = {
  connect?: string
  token?: string
  caSha256?: string
  insecureHttp?: boolean
  state: string
  dockerHost?: string
  userServices?: boolean
  acceptLostJournal?: boolean
  onlyEnrol?: boolean
}

/**
 * `nightshift agent`: the agent that calls out, from its enrolment on. `nightshift mesh agent`
 * listens.
 */
export function addAgentOutCommand(program: CliCommand): void {
  program
    .command('agent')
    .description('be the agent of this host: connect out to the control plane and open no port here')
    .option('--connect <url>', 'where the control plane is; at the first start, or when it has moved')
    .option('--token <token>', 'the token that "mesh enroll" printed; it works once, for 15 minutes')
    .option('--ca-sha256 <digest>', 'believe the authority with this digest, and no other; printed with the token')
    .option(
      '--insecure-http',
      'allow plain http to another machine; anybody on the network path can read it and pose as the control plane',
    )
    .option('--state <dir>', 'keys, journal, nonces and the name of this host', '/var/lib/nightshift-agent')
    .option('--only-enrol', 'join, then end; a service runs the agent')
    .option('--docker-host <address>', 'where the container engine listens (default: unix:///var/run/docker.sock)')
    .option('--user-services', "repair services of the agent's own user (systemctl --user) instead of the system's")
    .option('--accept-lost-journal', 'allow writes after the journal was lost: a person has checked what was done')
    .addHelpText(
      'after',
      '\nExample:\n  nightshift agent --connect https://nightshift.example.com --token nst_…\n  nightshift agent',
    )
    .action(async (flags: Flags) => {
      const { connect: api, token, state } = flags
      const places: Places = { state }
      if (token && !api)
        throw new CommandFailed('usage', '--token joins a control plane. Name that with --connect too.')
      if (token && api) await enrolHere(places, { ...flags, connect: api, token })
      else if (api) await withEnrolmentErrors(async () => moveConnection(places, api, flags.insecureHttp ?? false))
      if (flags.onlyEnrol) return
      await withEnrolmentErrors(async () => readConnection(places))
      replaceProcess({
        manifestFile: join(state, 'manifest.json'),
        address: null,
        state,
        rootKeyFile: join(state, 'root-key'),
        tls: null,
        acceptLostJournal: flags.acceptLostJournal ?? false,
        dockerHost: flags.dockerHost,
        ...(flags.userServices && { systemctl: userSystemctl() }),
        version,
      })
    })
}

/** Joins with the one-time token, and says how reads will be confined here. */
async function enrolHere(
  places: Places,
  { connect: api, token, caSha256, insecureHttp }: Flags & { connect: string; token: string },
) {
  mkdirSync(places.state, { recursive: true, mode: 0o700 })
  const { device, manifest } = await withEnrolmentErrors(() =>
    enrolToConnect(places, { api, token, caSha256: caSha256 ?? null, isPlainAllowed: insecureHttp ?? false }),
  )
  printNote(
    `${inert(device)} is enrolled with manifest ${inert(manifest)}. Later starts need no options: nightshift agent`,
  )
  await sayConfinement()
}
