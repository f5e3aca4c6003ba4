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
 * `nightshift agent`: enrols and runs an agent that connects to the API. `nightshift mesh agent`
 * runs an agent that listens.
 */
export function addAgentOutCommand(program: CliCommand): void {
  program
    .command('agent')
    .description('run the agent of this host: it connects out to the control plane and opens no port')
    .option(
      '--connect <url>',
      'address of the control plane; needed at the first start, or when the address has changed',
    )
    .option('--token <token>', 'the token that "mesh enroll" printed; it works once, for 15 minutes')
    .option('--ca-sha256 <digest>', 'trust only the certificate authority with this digest; printed with the token')
    .option(
      '--insecure-http',
      'allow plain http to another machine; anybody on the network path can read the traffic and pose as the control plane',
    )
    .option('--state <dir>', 'folder for keys, journal, nonces and the name of this host', '/var/lib/nightshift-agent')
    .option('--only-enrol', 'enrol, then exit; a service runs the agent afterwards')
    .option('--docker-host <address>', 'where the container engine listens (default: unix:///var/run/docker.sock)')
    .option('--user-services', "repair services of the agent's own user (systemctl --user) instead of the system's")
    .option('--accept-lost-journal', 'allow writes after the journal was lost, once a person has checked what was done')
    .addHelpText(
      'after',
      '\nExample:\n  nightshift agent --connect https://nightshift.example.com --token nst_…\n  nightshift agent',
    )
    .action(async (flags: Flags) => {
      const { connect: api, token, state } = flags
      const places: Places = { state }
      if (token && !api)
        throw new CommandFailed('usage', '--token needs the address of the control plane too: --connect.')
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

/** Enrols with the one-time token, and prints how reads on this host will be confined. */
async function enrolHere(
  places: Places,
  { connect: api, token, caSha256, insecureHttp }: Flags & { connect: string; token: string },
) {
  const { device, manifest } = await withEnrolmentErrors(() =>
    enrolToConnect(places, { api, token, caSha256: caSha256 ?? null, isPlainAllowed: insecureHttp ?? false }),
  )
  printNote(
    `${inert(device)} is enrolled with manifest ${inert(manifest)}. Later starts need no options: nightshift agent`,
  )
  await sayConfinement()
}
